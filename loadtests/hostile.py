"""Have 200 hostile clients of ten kinds beside 20 honest ones, and see what it costs those: python
loadtests/hostile.py [--seconds 300] [--turns 2] [--engine local] [--kinds KIND … [--each-apart]]

The honest ones read, list, search and write, each a request every half second, whether or not the
one before was answered; what they get alone is measured first, then again beside the hostile ones,
and both once more where several turns are asked for. --each-apart shows what each kind costs:

    slow heads      a byte of a request's head a second
    slow bodies     a byte of a large body a second
    idle uploads    a form that begins and does not go on
    pumped texts    long runs of what makes patterns slow, as memories and as files
    wide filters    250 conditions on texts over 300 memories
    guessing        passwords of the honest
    webhooks        receivers that never answer, and writes that they are told of
    imports         exports of 500 memories, again and again
    deep graphs     questions five hops deep over 100 claims, on a tier that has them
    broken streams  an export whose reader stops reading, or leaves half of its connection open

It holds when the honest get 80 % of their answers, each within ANSWER_SECONDS_MAX, and the 99th
percentile of their times is at most three times that alone. A run in which a kind of the hostile
met nothing, because the machine has no processor left for them, counts as one that does not hold.

The hostile have the tier `free` where nothing else is said, an account each, and an address of
their own on the loopback network. They run in a process of the lowest priority (nice 19), since
generator and service share the machine; what they take of it is printed, and still counts against
the service. The honest run in another, which notes when each request was due, and how late it was
begun.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx

from loadtests.load import figures, settle
from tests.support.flood import raise_file_limit
from tests.support.served import Served, served

HONEST, HOSTILE_OF_KIND = 20, 20
HONEST_PAUSE_SECONDS, HOSTILE_PAUSE_SECONDS = 0.5, 0.5
ALONE_SECONDS_MAX = 60.0
SETTLED_SECONDS_MAX = 120.0
ANSWER_SECONDS_MAX = 10.0
RATE_SHARE_MIN, P99_FACTOR_MAX = 0.8, 3.0
WIDE = {"OR": [{"content": {"icontains": f"nothing like {n}"}} for n in range(250)]}
PUMPED = ("!" * 99_000, "！" * 30_000, "a." * 45_000, "<!---->" * 14_000, "“(" * 45_000)


# --- the honest -----------------------------------------------------------------------------------


@dataclass
class Seen:
    """What the honest saw. latencies: of good answers, seconds from when each was due."""

    asked: int = 0
    by_operation: dict[str, list[float]] = field(default_factory=dict)
    otherwise: Counter[str] = field(default_factory=Counter)
    late: list[float] = field(default_factory=list)  # how late a request was begun, seconds

    @property
    def latencies(self) -> list[float]:
        return [each for found in self.by_operation.values() for each in found]

    def add(self, other: Seen) -> None:
        """What was seen in another turn, too."""
        self.asked += other.asked
        self.otherwise += other.otherwise
        self.late += other.late
        for operation, found in other.by_operation.items():
            self.by_operation.setdefault(operation, []).extend(found)

    @property
    def share(self) -> float:
        return len(self.latencies) / max(self.asked, 1)

    def quantile(self, share: float) -> float:
        return quantile(self.latencies, share)

    def told(self) -> str:
        each = ", ".join(
            f"{operation} {quantile(found, 0.5) * 1000:.0f}/{quantile(found, 0.99) * 1000:.0f}"
            for operation, found in sorted(self.by_operation.items())
        )
        return (
            f"{self.share:.1%} of {self.asked} answered well, p50 {self.quantile(0.5) * 1000:.0f} "
            f"ms, p99 {self.quantile(0.99) * 1000:.0f} ms ({each}); else "
            f"{dict(self.otherwise) or 'none'}; begun up to "
            f"{quantile(self.late, 0.99) * 1000:.0f} ms late"
        )


def quantile(found: list[float], share: float) -> float:
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


async def honest(url: str, tokens: list[str], memories: list[str], seconds: float) -> Seen:
    """All honest clients for so long."""
    seen = Seen()

    async def ask(client: httpx.AsyncClient, number: int, memory: str, due: float) -> None:
        operation, method, path, body = (
            ("read", "GET", f"/v1/memories/{memory}", None),
            ("search", "POST", "/v1/search", {"query": f"where is the violin of number {number}?"}),
            ("list", "GET", "/v1/memories?limit=20", None),
            (
                "write",
                "POST",
                "/v1/memories",
                {"content": f"the violin of number {number} was played"},
            ),
        )[number % 4]
        seen.asked += 1
        seen.late.append(asyncio.get_running_loop().time() - due)
        try:
            async with asyncio.timeout_at(due + ANSWER_SECONDS_MAX):
                answer = await client.request(method, path, json=body)
        except (httpx.HTTPError, TimeoutError) as failed:
            seen.otherwise[type(failed).__name__] += 1
            return
        if answer.is_success:
            found = seen.by_operation.setdefault(operation, [])
            found.append(asyncio.get_running_loop().time() - due)
        else:
            seen.otherwise[str(answer.status_code)] += 1

    async def ask_on(own: httpx.AsyncClient, place: int, due: float) -> None:
        under_way = set()
        for number in itertools.count(place):
            if time.monotonic() > until:
                break
            await asyncio.sleep(max(0.0, due - loop.time()))
            asked = asyncio.create_task(ask(own, number, memories[place], due))
            under_way.add(asked)
            asked.add_done_callback(under_way.discard)
            due += HONEST_PAUSE_SECONDS
        await asyncio.gather(*under_way)

    async with contextlib.AsyncExitStack() as clients:
        opened = [
            await clients.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.AsyncHTTPTransport(local_address=f"127.0.1.{place + 1}"),
                    base_url=url,
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=None,
                )
            )
            for place, token in enumerate(tokens)
        ]
        # To open them takes half a second, for which the first requests of all would be late.
        loop, until = asyncio.get_running_loop(), time.monotonic() + seconds
        await asyncio.gather(
            *(
                ask_on(own, place, loop.time() + HONEST_PAUSE_SECONDS * place / len(opened))
                for place, own in enumerate(opened)
            )
        )
    return seen


# --- the hostile ----------------------------------------------------------------------------------


@dataclass
class Attacker:
    """One hostile client: its account, its address, and what it has met so far."""

    url: str
    token: str
    address: str
    victim: str
    export: bytes
    met: Counter[str]

    def __post_init__(self) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(local_address=self.address, verify=False),
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
        )

    def head(self, method: str, path: str, *lines: str) -> bytes:
        own = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.token}")
        return "\r\n".join((*own, *lines)).encode() + b"\r\n\r\n"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        where = urlsplit(self.url)
        return await asyncio.open_connection(
            where.hostname, where.port, local_addr=(self.address, 0)
        )

    async def trickle(self, begin: bytes, drops: bytes, pause: float) -> None:
        """Begin a request and go on with a byte at a time, until the other side has enough."""
        reader, writer = await self.connect()
        try:
            writer.write(begin)
            for place in itertools.count():
                writer.write(drops[place % len(drops) : place % len(drops) + 1])
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        answer = await reader.read(100)
                        self.met[answer[9:12].decode() or "closed"] += 1
                        return
        finally:
            writer.close()

    async def ask(self, method: str, path: str, body: object = None, **more: object) -> None:
        sent = {"json": body} if body is not None else {}
        answer = await self._client.request(method, path, **sent, **more)
        self.met[str(answer.status_code)] += 1
        await asyncio.sleep(HOSTILE_PAUSE_SECONDS)


async def slow_heads(own: Attacker) -> None:
    await own.trickle(b"GET /v1/memories HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"a", 1)


async def slow_bodies(own: Attacker) -> None:
    json_of = "Content-Type: application/json"
    await own.trickle(own.head("POST", "/v1/memories", json_of, "Content-Length: 900000"), b" ", 1)


async def idle_uploads(own: Attacker) -> None:
    form = "Content-Type: multipart/form-data; boundary=b"
    head = own.head("POST", "/v1/documents/upload", form, "Content-Length: 900000")
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    await own.trickle(head + part, b"x", 15)


async def pumped_texts(own: Attacker) -> None:
    text = random.choice(PUMPED)
    await own.ask("POST", "/v1/memories/raw", {"content": text})
    await own.ask("POST", "/v1/documents/upload", files={"file": ("a.txt", text.encode())})


async def wide_filters(own: Attacker) -> None:
    await own.ask("POST", "/v1/memories/query", {"filters": WIDE})
    await own.ask("POST", "/v1/search", {"query": "violin", "filters": WIDE})


async def guessing(own: Attacker) -> None:
    await own.ask(
        "POST", "/v1/auth/login", {"email": own.victim, "password": f"guess {random.random()}"}
    )


async def webhooks(own: Attacker) -> None:
    name = f"{random.randbytes(4).hex()}.example.com"
    receiver = {"url": f"https://{name}/hang", "events": ["memory.created"]}
    await own.ask("POST", "/v1/webhooks", receiver)
    await own.ask("POST", "/v1/memories", {"content": f"told to nobody {random.random()}"})


async def imports(own: Attacker) -> None:
    kind = {"Content-Type": "application/x-ndjson"}
    await own.ask("POST", "/v1/account/import", content=own.export, headers=kind)


async def deep_graphs(own: Attacker) -> None:
    await own.ask("POST", "/v1/knowledge-graph/query", {"entity": "e0", "depth": 5, "limit": 500})
    await own.ask("POST", "/v1/search/graph", {"query": "e0 e1 e2", "depth": 5})


async def broken_streams(own: Attacker) -> None:
    reader, writer = await own.connect()
    try:
        writer.write(own.head("GET", "/v1/account/export"))
        await writer.drain()
        own.met[(await reader.read(12))[9:].decode() or "closed"] += 1
        if random.random() < 0.5:
            writer.write_eof()
        await asyncio.sleep(10)
    finally:
        writer.close()


KINDS: tuple[Callable[[Attacker], Awaitable[None]], ...] = (
    slow_heads, slow_bodies, idle_uploads, pumped_texts, wide_filters,
    guessing, webhooks, imports, deep_graphs, broken_streams,
)  # fmt: skip


async def attack(
    url: str, tokens: Mapping[str, list[str]], victim: str, export: bytes, seconds: float
) -> dict[str, Counter[str]]:
    """All hostile clients of these kinds for so long -> what each kind met."""
    until = asyncio.get_running_loop().time() + seconds
    met: dict[str, Counter[str]] = {kind: Counter() for kind in tokens}

    async def client(place: int, number: int, kind: Callable[[Attacker], Awaitable[None]]) -> None:
        own = Attacker(
            url,
            tokens[kind.__name__][number],
            f"127.1.{place}.{number + 1}",
            victim,
            export,
            met[kind.__name__],
        )
        while True:
            try:
                await kind(own)
            except (OSError, httpx.HTTPError) as failed:
                own.met[type(failed).__name__] += 1
                await asyncio.sleep(HOSTILE_PAUSE_SECONDS)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            await asyncio.gather(
                *(
                    client(place, number, kind)
                    for place, kind in enumerate(KINDS)
                    for number in range(len(tokens.get(kind.__name__, ())))
                )
            )
    return met


def attack_apart(
    url: str,
    tokens: Mapping[str, list[str]],
    victim: str,
    export: bytes,
    seconds: float,
    told: multiprocessing.Queue,
) -> None:
    """In a process of its own, of the lowest priority. Puts what each kind met, and the seconds of
    processor time that this took."""
    os.nice(19)
    raise_file_limit()
    met = asyncio.run(attack(url, tokens, victim, export, seconds))
    told.put((met, time.process_time()))


# --- the run --------------------------------------------------------------------------------------


def prepare_hostile(service: Served, kind: str) -> str:
    """What an attack of this kind needs to be in its account -> its token."""
    email = f"{kind}-{random.randbytes(6).hex()}@example.com"
    token = service.register(email)
    headers = {"Authorization": f"Bearer {token}"}
    if kind in ("wide_filters", "broken_streams"):
        for start in range(0, 300, 100):
            # In a language that nobody is named in, or whose memories would be read for minutes.
            batch = [{"content": f"die Geige Nummer {start + n} ist hier"} for n in range(100)]
            service.http.post(
                "/v1/memories/batch", json={"memories": batch}, headers=headers
            ).raise_for_status()
    if kind == "deep_graphs":
        upgrade(service, email, "pro")  # claims are for those who pay
        for n in range(100):
            claim = {"source": f"e{n % 7}", "target": f"e{n % 11}", "type": f"knows_{n}"}
            service.http.post(
                "/v1/knowledge-graph/relationships", json=claim, headers=headers
            ).raise_for_status()
    return token


def upgrade(service: Served, email: str, tier: str) -> None:
    secret = (service.data_dir / "secrets/operator_token").read_text().strip()
    service.http.post(
        "/v1/internal/billing/set-tier",
        json={"email": email, "tier": tier, "price_cents": 0},
        headers={"Authorization": f"Bearer {secret}"},
    ).raise_for_status()


def exported(service: Served) -> bytes:
    """An export with 500 memories of a thousand characters."""
    email = "exporting@example.com"
    token = service.register(email)
    upgrade(service, email, "enterprise")
    headers = {"Authorization": f"Bearer {token}"}
    for start in range(0, 500, 100):
        batch = [{"content": f"{start + n}: " + "and so on " * 100} for n in range(100)]
        service.http.post(
            "/v1/memories/batch", json={"memories": batch}, headers=headers
        ).raise_for_status()
    return service.http.get("/v1/account/export", headers=headers).content


def prepare_honest(service: Served) -> tuple[list[str], list[str]]:
    """-> (a token, a memory) of each of the honest, who are on the largest tier."""
    tokens, memories = [], []
    for place in range(HONEST):
        email = f"honest-{place}@example.com"
        token = service.register(email)
        upgrade(service, email, "enterprise")
        memory = {"content": f"the violin of number {place} is here", "wait_for_index": True}
        answer = service.http.post(
            "/v1/memories", json=memory, headers={"Authorization": f"Bearer {token}"}
        )
        tokens.append(token)
        memories.append(answer.json()["id"])
    return tokens, memories


@dataclass
class Ground:
    """A service with everybody's accounts in it."""

    service: Served
    tokens: list[str]
    memories: list[str]
    hostile: dict[str, list[str]]
    export: bytes

    def alone(self, seconds: float) -> Seen:
        return asyncio.run(honest(self.service.url, self.tokens, self.memories, seconds))

    def beside(self, kinds: Collection[str], seconds: float) -> tuple[Seen, dict[str, Counter]]:
        """-> what the honest saw beside hostile clients of these kinds, and what those met."""
        context = multiprocessing.get_context("spawn")
        told: multiprocessing.Queue = context.Queue()
        tokens = {kind: self.hostile[kind] for kind in kinds}
        given = (self.service.url, tokens, "honest-0@example.com", self.export, seconds + 5, told)
        attacking = context.Process(target=attack_apart, args=given)
        attacking.start()
        time.sleep(4)  # until it is in full swing
        began = time.process_time()
        seen = self.alone(seconds)
        own = time.process_time() - began
        met, theirs = told.get()
        attacking.join()
        print(
            f"  of one core the honest took {own / seconds:.1%}, the hostile "
            f"{theirs / (seconds + 5):.1%}"
        )
        return seen, met


def prepared(service: Served, kinds: Collection[str]) -> Ground:
    tokens, memories = prepare_honest(service)
    export = exported(service) if "imports" in kinds else b""
    hostile = {
        kind: [prepare_hostile(service, kind) for _ in range(HOSTILE_OF_KIND)] for kind in kinds
    }
    ground = Ground(service, tokens, memories, hostile, export)
    settle(service.url, SETTLED_SECONDS_MAX)
    ground.alone(3)  # warm
    return ground


def stalls(service: Served) -> dict[str, int]:
    """Steps that held an event loop, by who and operation."""
    found = figures(service.url, "mneme_gateway_loop_stalls_total") | figures(
        service.url, "mneme_shard_loop_stalls_total"
    )
    return {name: int(value) for name, value in found.items() if value}


def each_apart(service: Served, kinds: Collection[str], seconds: float) -> None:
    """Print what each kind costs the honest, one after the other."""
    ground = prepared(service, kinds)
    print("alone:", ground.alone(seconds).told(), flush=True)
    for kind in kinds:
        seen, met = ground.beside([kind], seconds)
        print(f"{kind}: {seen.told()}; met {dict(met[kind])}", flush=True)
        print(f"  settled after {settle(service.url, SETTLED_SECONDS_MAX):.0f} s", flush=True)
    print("event loops held for 100 ms or longer:", stalls(service) or "never")


def run(service: Served, kinds: Collection[str], seconds: float, turns: int) -> list[str]:
    """-> what does not hold."""
    ground = prepared(service, kinds)
    alone, beside, attacked = Seen(), Seen(), dict[str, Counter[str]]()
    for _ in range(turns):
        seen = ground.alone(min(ALONE_SECONDS_MAX, max(10.0, seconds / 3)) / turns)
        alone.add(seen)
        print("alone:", seen.told(), flush=True)
        seen, met = ground.beside(kinds, seconds / turns)
        beside.add(seen)
        for kind, each in met.items():
            attacked.setdefault(kind, Counter()).update(each)
            print(f"  {kind}: {dict(each)}")
        print("beside the hostile:", seen.told(), flush=True)
        print(f"  settled after {settle(service.url, SETTLED_SECONDS_MAX):.0f} s", flush=True)
    print("event loops held for 100 ms or longer:", stalls(service) or "never")
    slower = beside.quantile(0.99) / alone.quantile(0.99)
    print(f"{beside.share / alone.share:.1%} of the rate alone, p99 {slower:.1f} times that alone")
    failures = {
        "the hostile got no answer at all, so nothing was measured": not all(attacked.values()),
        "the service has ended": service.process.poll() is not None,
        f"under {RATE_SHARE_MIN:.0%} of the rate": beside.share < RATE_SHARE_MIN * alone.share,
        f"p99 over {P99_FACTOR_MAX:g} times": slower > P99_FACTOR_MAX,
    }
    return [what for what, fails in failures.items() if fails]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--engine", choices=("local", "ray"), default="ray")
    names = [kind.__name__ for kind in KINDS]
    parser.add_argument("--kinds", nargs="+", choices=names, default=names)
    parser.add_argument("--each-apart", action="store_true")
    given = parser.parse_args()
    raise_file_limit()
    limits = {"limits__requests_per_minute": "null", "billing__default_tier": "free"}
    limits |= {"auth__argon2_time_cost": 3, "auth__argon2_memory_kib": 65_536}  # as by default
    with (
        tempfile.TemporaryDirectory(prefix="mneme-hostile-") as directory,
        served(Path(directory) / "data", given.engine, **limits) as service,
    ):
        if given.each_apart:
            each_apart(service, given.kinds, given.seconds)
            return 0
        failures = run(service, given.kinds, given.seconds, given.turns)
    print("\n".join(f"DOES NOT HOLD: {failure}" for failure in failures) or "all holds")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
