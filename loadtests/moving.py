"""Move tenants from one shard to another while they are in use: python loadtests/moving.py
[--tenants 50] [--engine ray]

Every tenant is filled with memories, then clients read, write and search them all without a pause,
each request repeated under its Idempotency-Key while it is told 503 with Retry-After. Meanwhile the
operator orders the moves, so many slots at a time. At the end every acknowledged memory is there
exactly once, every tenant has arrived, and `mneme admin verify` finds nothing. The table shows what
clients saw before and during the moves.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtime.tenancy import slot_of_email
from tests.support.served import MNEME, ROOT, Served
from tests.support.sharded import emails

BATCH = 100
WRITES, SEARCHES = 0.2, 0.2  # shares of the requests; the rest lists
POLL_SECONDS = 0.05
WAIT_SECONDS_MAX = 900


@dataclass
class Tenant:
    """expected: every text that was acknowledged."""

    email: str
    token: str
    expected: list[str] = field(default_factory=list)


@dataclass
class Phase:
    """What clients saw. waits: seconds of each answered request, its repetitions included; refused:
    503 with Retry-After.
    """

    waits: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    longest_refusal: float = 0.0

    def row(self, name: str, seconds: float) -> str:
        cuts = [1000 * cut for cut in quantiles(self.waits, n=1000)]
        told = (
            f"{len(self.waits)} requests, {len(self.waits) / seconds:.0f}/s, p50 {cuts[499]:.1f} "
            f"ms, p99 {cuts[989]:.0f} ms"
        )
        refusals = (
            f"{sum(self.refused.values())} times 503, after {1000 * self.longest_refusal:.0f} ms "
            "at most"
        )
        return f"{name}: {told}, longest {1000 * max(self.waits):.0f} ms; {refusals}"


class Clients:
    """So many clients on all tenants. `phase` is where they count."""

    def __init__(self, http: httpx.AsyncClient, tenants: list[Tenant], chance: random.Random):
        self.http, self.tenants, self.chance = http, tenants, chance
        self.phase = Phase()
        self.numbers = itertools.count()
        self.stopped = False

    async def run(self) -> None:
        while not self.stopped:
            tenant, kind = self.chance.choice(self.tenants), self.chance.random()
            number = next(self.numbers)
            headers = {"Authorization": f"Bearer {tenant.token}"}
            if kind < WRITES:
                text = f"note {number} while moving"
                body = {"messages": [{"role": "user", "content": text}]}
                await self._ask(
                    "POST",
                    "/v1/memories",
                    body,
                    {**headers, "Idempotency-Key": f"n{number}", "Prefer": "respond-async"},
                )
                tenant.expected.append(text)
            elif kind < WRITES + SEARCHES:
                await self._ask(
                    "POST", "/v1/search", {"query": f"note {number}", "limit": 5}, headers
                )
            else:
                await self._ask("GET", "/v1/memories?limit=10", None, headers)

    async def _ask(self, method: str, path: str, body: object, headers: dict[str, str]) -> None:
        began = time.perf_counter()
        while True:
            sent = time.perf_counter()
            answer = await self.http.request(method, path, json=body, headers=headers)
            if answer.is_success:
                self.phase.waits.append(time.perf_counter() - began)
                return
            assert answer.status_code == 503 and "Retry-After" in answer.headers, (
                answer.status_code,
                answer.text,
            )
            self.phase.refused[path] += 1
            self.phase.longest_refusal = max(self.phase.longest_refusal, time.perf_counter() - sent)
            await asyncio.sleep(POLL_SECONDS)


def fill(service: Served, count: int, memories: int) -> list[Tenant]:
    tenants = [Tenant(email, service.register(email)) for email in emails(0, 2, count)]
    for tenant, start in itertools.product(tenants, range(0, memories, BATCH)):
        texts = [
            f"{tenant.email} keeps fact {number} of the harbour"
            for number in range(start, min(start + BATCH, memories))
        ]
        headers = {"Authorization": f"Bearer {tenant.token}", "Prefer": "respond-async"}
        answer = service.http.post(
            "/v1/memories/batch",
            json={"memories": [{"content": text} for text in texts]},
            headers=headers,
        )
        assert answer.status_code in (200, 201, 202), answer.text
        tenant.expected += texts
    return tenants


async def measure(service: Served, tenants: list[Tenant], options: argparse.Namespace) -> None:
    limits = httpx.Limits(max_connections=options.clients)
    operator = {
        "Authorization": "Bearer "
        + (service.data_dir / "secrets/operator_token").read_text().strip()
    }
    async with (
        httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as http,
        httpx.AsyncClient(timeout=120) as office,
    ):
        clients = Clients(http, tenants, random.Random(options.seed))
        running = [asyncio.create_task(clients.run()) for _ in range(options.clients)]
        await asyncio.sleep(options.seconds)
        print(clients.phase.row("before", options.seconds), flush=True)
        clients.phase, began = Phase(), time.perf_counter()
        slots = [slot_of_email(tenant.email) for tenant in tenants]
        for start in range(0, len(slots), options.together):
            order = {"slots": slots[start : start + options.together], "shard": 1}
            answer = await office.post(
                f"{service.url}/v1/internal/cluster/moves", json=order, headers=operator
            )
            answer.raise_for_status()
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while (
                report := (
                    await office.get(f"{service.url}/v1/internal/cluster", headers=operator)
                ).json()
            )["moves"]:
                await asyncio.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - began
        clients.stopped = True
        await asyncio.gather(*running)
        print(clients.phase.row("during", seconds))
        print(
            f"{len(tenants)} tenants moved in {seconds:.1f} s by {report['finished']} moves, "
            f"{len(report['failures'])} given up"
        )


def check(service: Served, tenants: list[Tenant]) -> None:
    """Every acknowledged memory is there exactly once."""
    for tenant in tenants:
        found, cursor = Counter(), ""
        while cursor is not None:
            path = "/v1/memories?limit=100" + (f"&cursor={cursor}" if cursor else "")
            page = service.http.get(
                path, headers={"Authorization": f"Bearer {tenant.token}"}
            ).json()
            found.update(memory["content"] for memory in page["items"])
            cursor = page["next_cursor"]
        assert found == Counter(tenant.expected), (
            tenant.email,
            found - Counter(tenant.expected),
            Counter(tenant.expected) - found,
        )
    print(f"{sum(len(tenant.expected) for tenant in tenants)} memories are there once each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--tenants", type=int, default=50)
    parser.add_argument("--memories", type=int, default=200, help="of each tenant before the moves")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--together", type=int, default=10, help="slots in one move")
    parser.add_argument("--seconds", type=float, default=10, help="of load before the moves")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data_dir = Path(directory) / "data"
        service = Served(
            data_dir, options.engine, {"shards.count": 2, "auth.register_per_minute": 0}
        )
        try:
            tenants = fill(service, options.tenants, options.memories)
            asyncio.run(measure(service, tenants, options))
            check(service, tenants)
        finally:
            service.end()
        verify = [
            MNEME,
            "admin",
            "verify",
            "--config",
            "configs/test.yaml",
            "--data-dir",
            str(data_dir),
        ]
        print(
            subprocess.run(
                verify,
                cwd=ROOT,
                check=False,
                capture_output=True,
                text=True,
                timeout=WAIT_SECONDS_MAX,
            ).stdout.strip()
        )


if __name__ == "__main__":
    main()
