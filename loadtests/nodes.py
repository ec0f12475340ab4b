"""Kill a node of a Ray cluster under load: python loadtests/nodes.py [--mode
replicated|local-back|local-lost] [--tenants 200]

Three nodes on this machine, each a raylet with a data directory of its own, six shards, a directory
as the object store. Every tenant is written to and read while a node, its raylet and all processes
below it, is killed. A write that is not acknowledged is repeated under its Idempotency-Key until it
is. At the end every acknowledged memory is looked for, once each.

    replicated   the node stays away and its directory is gone: nothing acknowledged may be lost
    local-back   the node comes back with its directory before its shards are given up: nothing may
                 be lost
    local-lost   the node stays away: what was acknowledged shortly before may be lost, no more than
                 the report says
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.served import PASSWORD
from tests.support.several_nodes import OPERATOR, SeveralNodes

WRITES, SEARCHES = 0.4, 0.2  # shares of the requests; the rest lists
POLL_SECONDS = 0.1
WAIT_SECONDS_MAX = 600
MODES = {
    "replicated": {"durability.mode": "replicated"},
    "local-back": {"durability.mode": "local", "cluster.lost_shards": "wait"},
    "local-lost": {"durability.mode": "local"},
}


@dataclass
class Tenant:
    """acknowledged: text -> when (time.time()); served_at: when it was answered first after the
    kill.
    """

    email: str
    token: str = ""
    acknowledged: dict[str, float] = field(default_factory=dict)
    served_at: float | None = None


class Clients:
    """So many clients on all tenants, for as long as `stopped` is not set."""

    def __init__(self, http: httpx.AsyncClient, tenants: list[Tenant], chance: random.Random):
        self.http, self.tenants, self.chance = http, tenants, chance
        self.numbers = itertools.count()
        self.stopped = False
        self.answered: Counter[int] = Counter()

    async def run(self) -> None:
        while not self.stopped:
            tenant, kind = self.chance.choice(self.tenants), self.chance.random()
            number = next(self.numbers)
            if kind < WRITES:
                text = f"note {number} of the harbour"
                body = {"messages": [{"role": "user", "content": text}]}
                headers = {"Idempotency-Key": f"n{number}", "Prefer": "respond-async"}
                if await self._ask(tenant, "POST", "/v1/memories", body, headers):
                    tenant.acknowledged[text] = time.time()
            elif kind < WRITES + SEARCHES:
                await self._ask(
                    tenant, "POST", "/v1/search", {"query": f"note {number}", "limit": 5}, {}
                )
            else:
                await self._ask(tenant, "GET", "/v1/memories?limit=10", None, {})

    async def _ask(
        self, tenant: Tenant, method: str, path: str, body: object, headers: dict[str, str]
    ) -> bool:
        """Ask until it is answered with success, or the load ends; -> whether it was."""
        while True:
            status = await self.once(tenant, method, path, body, headers)
            if status < 300:
                return True
            if self.stopped:
                return False
            await asyncio.sleep(POLL_SECONDS)

    async def once(
        self, tenant: Tenant, method: str, path: str, body: object, headers: dict[str, str]
    ) -> int:
        try:
            headers = {"Authorization": f"Bearer {tenant.token}", **headers}
            answer = await self.http.request(method, path, json=body, headers=headers)
            status, told = answer.status_code, answer.text[:200]
        except httpx.TransportError as lost:
            status, told = 599, repr(lost)  # the gateway or its proxy went with the node
        self.answered[status] += 1
        if status < 300 and tenant.served_at is None:
            tenant.served_at = time.time()
        gone = status in (502, 503, 599) or (
            status == 500 and not told.startswith('{"error"')
        )  # as Serve's proxy says it
        assert status < 300 or gone, (status, path, told)
        return status


async def registered(
    http: httpx.AsyncClient, count: int, chance: asyncio.Semaphore
) -> list[Tenant]:
    async def register(number: int) -> Tenant:
        email = f"tenant{number}@example.com"
        async with chance:
            answer = await http.post(
                "/v1/auth/register", json={"email": email, "password": PASSWORD, "full_name": "Ada"}
            )
        assert answer.status_code == 201, answer.text
        return Tenant(email, answer.json()["access_token"])

    return list(await asyncio.gather(*(register(number) for number in range(count))))


async def found_texts(http: httpx.AsyncClient, tenant: Tenant) -> Counter[str]:
    found: Counter[str] = Counter()
    cursor: str | None = ""
    while cursor is not None:
        path = "/v1/memories?limit=100" + (f"&cursor={cursor}" if cursor else "")
        answer = await http.get(path, headers={"Authorization": f"Bearer {tenant.token}"})
        if answer.status_code == 503:
            await asyncio.sleep(POLL_SECONDS)
            continue
        page = answer.json()
        found.update(memory["content"] for memory in page["items"])
        cursor = page["next_cursor"]
    return found


async def lag_seconds(http: httpx.AsyncClient) -> float:
    """The largest lag that the metrics tell of any shard."""
    text = (await http.get("/metrics", headers={"Authorization": f"Bearer {OPERATOR}"})).text
    return max(
        (
            float(line.split()[-1])
            for line in text.splitlines()
            if line.startswith("mneme_shard_log_unshipped_seconds{")
        ),
        default=0.0,
    )


async def measure(service: SeveralNodes, options: argparse.Namespace) -> bool:
    """Load, kill, load, count; -> whether everything holds that must."""
    limits = httpx.Limits(max_connections=options.clients + 8, keepalive_expiry=1)
    async with httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as http:
        tenants = await registered(http, options.tenants, asyncio.Semaphore(8))
        clients = Clients(http, tenants, random.Random(options.seed))
        running = [asyncio.create_task(clients.run()) for _ in range(options.clients)]
        lags, end = [], time.time() + options.seconds
        while time.time() < end:
            lags.append(await lag_seconds(http))
            await asyncio.sleep(1)
        victim = service.nodes["c"]
        mine = [shard["shard"] for shard in service.report()["shards"] if shard["node"] == "c"]
        for tenant in tenants:
            tenant.served_at = None
        killed_at = time.time()
        victim.kill()
        for tenant in tenants:
            tenant.served_at = None
        print(
            f"node c with shards {mine} killed after {options.seconds} s; largest lag the metrics "
            f"told: {max(lags):.2f} s",
            flush=True,
        )
        if options.mode == "local-back":
            service.add("c")  # Ray takes signals then, so this thread has to do it
            print(f"it is back after {time.time() - killed_at:.1f} s", flush=True)
        else:
            shutil.rmtree(victim.data_dir)
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            for tenant in tenants:
                while tenant.served_at is None:
                    if await clients.once(tenant, "GET", "/v1/memories?limit=1", None, {}) >= 300:
                        await asyncio.sleep(POLL_SECONDS)
        served = max(tenant.served_at for tenant in tenants) - killed_at
        await asyncio.sleep(options.seconds / 2)
        clients.stopped = True
        await asyncio.gather(*running)
        return await judged(http, service, tenants, clients, killed_at, served, options.mode)


async def judged(
    http: httpx.AsyncClient,
    service: SeveralNodes,
    tenants: list[Tenant],
    clients: Clients,
    killed_at: float,
    served: float,
    mode: str,
) -> bool:
    lost: list[float] = []
    doubled = acknowledged = 0
    for tenant in tenants:
        found = await found_texts(http, tenant)
        acknowledged += len(tenant.acknowledged)
        lost += [at for text, at in tenant.acknowledged.items() if text not in found]
        doubled += sum(count - 1 for count in found.values())
    print(f"answers: {dict(sorted(clients.answered.items()))}")
    print(
        f"acknowledged {acknowledged}, lost {len(lost)}, doubled {doubled}, every tenant served "
        f"again after {served:.1f} s"
    )
    restorations = service.report()["restorations"]
    for each in restorations:
        behind = each["behind_seconds_max"]
        print(
            f"shard {each['shard']}: {each['source']} -> {each['target']} in {each['seconds']} s, "
            f"behind at most {behind} s"
        )
    if mode != "local-lost":
        return not lost and not doubled
    oldest = max((killed_at - at for at in lost), default=0.0)
    told = max((each["behind_seconds_max"] for each in restorations), default=0.0)
    print(
        f"the oldest lost write was acknowledged {oldest:.2f} s before the kill; the report says "
        f"{told:.2f} s at most"
    )
    return oldest <= told and not doubled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mode", choices=MODES, default="replicated")
    parser.add_argument("--tenants", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=15, help="of load before the kill")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        settings = {
            "shards.count": options.shards,
            "auth.register_per_minute": 0,
            **MODES[options.mode],
        }
        service = SeveralNodes(Path(directory), "abc", **settings)
        try:
            holds = asyncio.run(measure(service, options))
        finally:
            service.end()
    print("holds" if holds else "DOES NOT HOLD")
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
