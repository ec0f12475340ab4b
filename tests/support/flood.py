"""More requests than a service can answer: a client that sends at a given rate whether or not
answers come.

`capacity` sends as fast as answers come over a few connections. `flood` sends at a rate, each
request over a free connection, a new one when none is free, up to a bound; what finds no connection
counts as `unsent`, as a caller would be left standing. `burst` opens its connections first and then
sends one request over each before it reads an answer, so that as many are under way on a slow
machine as on a fast one. All tell every answer by its status; refusals must say when to come back.

tests/test_overload.py floods for a few seconds, loadtests/overload.py for as long as you like.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CONNECTIONS = 16
CONNECTIONS_MAX = 2_500
ANSWER_SECONDS_MAX = 30
TICK_SECONDS = 0.01
REFUSALS = (429, 503)
BROKEN = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError)

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Tally:
    """seconds: how long it was sent for; latencies: of successes, in seconds."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    silent_refusals: int = 0  # a 429 or 503 without Retry-After
    anonymous: int = 0  # an answer without X-Request-ID
    broken: Counter[str] = field(
        default_factory=Counter
    )  # the connection ended, or no answer came in time
    unsent: int = 0

    @property
    def good(self) -> float:
        """Successes per second."""
        return len(self.latencies) / self.seconds

    @property
    def unexpected(self) -> dict[int, int]:
        """Answers that are neither a success nor a refusal."""
        return {
            status: count
            for status, count in self.statuses.items()
            if status >= 300 and status not in REFUSALS
        }

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies) or [0.0]
        return ordered[int((len(ordered) - 1) * share)]


class Client:
    """Requests to one service as one account. `requests` yields (method, path, body); a body makes
    it JSON.
    """

    def __init__(self, url: str, token: str, requests: Iterator[tuple[str, str, bytes]]):
        address = urlsplit(url)
        self._address = (address.hostname, address.port)
        self._head = (
            f"Host: {address.hostname}\r\nAuthorization: Bearer {token}\r\nContent-Type: "
            "application/json\r\n"
        ).encode()
        self._requests = requests

    async def capacity(self, seconds: float, connections: int = CONNECTIONS) -> Tally:
        tally = Tally()
        begun = time.perf_counter()

        async def one() -> None:
            connection = await asyncio.open_connection(*self._address)
            while time.perf_counter() < begun + seconds:
                await self._ask(connection, tally)
            connection[1].close()

        await asyncio.gather(*(one() for _ in range(connections)))
        tally.seconds = time.perf_counter() - begun
        return tally

    async def flood(
        self, rate: float, seconds: float, watch: Callable[[], None] = lambda: None
    ) -> Tally:
        """Send `rate` requests a second for so long, then wait for what is under way. `watch()` is
        called every tick.
        """
        tally, idle, tasks = Tally(), [], set()
        begun = time.perf_counter()
        sent = connections = 0

        async def one(connection: Connection | None) -> None:
            nonlocal connections
            try:
                if connection is None:
                    connection = await asyncio.open_connection(*self._address)
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    stays_open = await self._ask(connection, tally)
                if stays_open:
                    idle.append(connection)
                else:
                    connections -= 1
                    connection[1].close()
            except BROKEN as error:
                tally.broken[type(error).__name__] += 1
                connections -= 1
                if connection is not None:
                    connection[1].close()

        while (elapsed := time.perf_counter() - begun) < seconds:
            for _ in range(int(elapsed * rate) - sent):
                sent += 1
                if not idle and connections >= CONNECTIONS_MAX:
                    tally.unsent += 1
                    continue
                while (
                    idle and idle[-1][0].at_eof()
                ):  # the service has closed it, as nothing was asked for a while
                    idle.pop()[1].close()
                    connections -= 1
                connections += not idle
                task = asyncio.create_task(one(idle.pop() if idle else None))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            watch()
            await asyncio.sleep(TICK_SECONDS)
        tally.seconds = time.perf_counter() - begun
        good = len(tally.latencies)
        await asyncio.gather(*tasks, return_exceptions=True)
        del tally.latencies[good:]  # what came after the flood was over is no success of it
        for _, writer in idle:
            writer.close()
        return tally

    async def burst(self, connections: int = CONNECTIONS_MAX) -> Tally:
        """Send one request over each of so many connections before the first answer is read."""
        tally = Tally()
        opened = [await asyncio.open_connection(*self._address) for _ in range(connections)]
        begun = time.perf_counter()
        for connection in opened:
            self._send(connection)

        async def one(connection: Connection) -> None:
            try:
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    await self._answer(connection, begun, tally)
            except BROKEN as error:
                tally.broken[type(error).__name__] += 1
            connection[1].close()

        await asyncio.gather(*map(one, opened))
        tally.seconds = time.perf_counter() - begun
        return tally

    async def _ask(self, connection: Connection, tally: Tally) -> bool:
        """One request and its answer; -> whether the connection takes another."""
        begun = time.perf_counter()
        self._send(connection)
        return await self._answer(connection, begun, tally)

    def _send(self, connection: Connection) -> None:
        method, path, body = next(self._requests)
        connection[1].write(
            b"%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s"
            % (method.encode(), path.encode(), self._head, len(body), body)
        )

    async def _answer(self, connection: Connection, begun: float, tally: Tally) -> bool:
        reader = connection[0]
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if length is not None:
            await reader.readexactly(int(length[1]))
        status = int(head[9:12])
        tally.statuses[status] += 1
        tally.anonymous += re.search(rb"(?i)\r\nx-request-id: .", head) is None
        if status < 300:
            tally.latencies.append(time.perf_counter() - begun)
        elif status in REFUSALS:
            tally.silent_refusals += re.search(rb"(?i)\r\nretry-after: [1-9]", head) is None
        return re.search(rb"(?i)\r\nconnection: close", head) is None


def mixed(ids: list[str]) -> Iterator[tuple[str, str, bytes]]:
    """Of ten requests, five read a memory, three search, two write."""
    words = ("violin", "harbour", "lantern", "orchard", "copper")
    for number in itertools.count():
        kind = number * 7 % 10
        if kind < 5:
            yield "GET", f"/v1/memories/{ids[number % len(ids)]}", b""
        elif kind < 8:
            yield (
                "POST",
                "/v1/search",
                b'{"query": "where is the %s of number %d"}'
                % (words[number % 5].encode(), number % 50),
            )
        else:
            yield (
                "POST",
                "/v1/memories",
                b'{"content": "the %s of number %d is here"}'
                % (words[number % 5].encode(), number),
            )


def raise_file_limit(files: int = CONNECTIONS_MAX + 500) -> None:
    """Each connection is a file; raise this process's bound as far as is needed and allowed."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (max(soft, min(files, hard) if hard > 0 else files), hard)
        )
