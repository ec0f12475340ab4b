"""The reader processes of one shard: started, asked, told and replaced by the shard's own process.

Each is at the other end of a pair of sockets (reader_process.py), so either end learns at once when
the other is gone. What a reader does not answer, because it died, fell silent or met an error, the
shard's process answers itself. One that is silent is asked nothing more until it is heard again,
and replaced where that takes too long.

They are begun when they are first wanted. A lone call is read in the shard's own process, which
saves a hop; the more that has under way, the more goes to readers. Heavy reads of one account go to
one reader, where they take turns. An account of which much is in memory stays with the shard's
process, so that it is there once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from runtime.account_work import account_work
from runtime.api.operation import Call, Principal
from runtime.cluster import nodes
from runtime.cluster.frames import Frames, packed
from runtime.cluster.reader_process import ANSWER, BEAT, FEED, FORGET, KEY, READ, READY, Hello
from runtime.cluster.release import release_of
from runtime.limits import (
    READER_ACCOUNTS_LARGE_MAX,
    READER_BEAT_SECONDS,
    READER_CALLS_MAX,
    READER_HEAVY_LOAD_CALLS,
    READER_LOST_SECONDS,
    READER_PROCESSES_MAX,
    READER_RESTART_SECONDS,
    READER_RESTART_SECONDS_MAX,
    READER_SILENT_SECONDS,
    READER_UNSENT_BYTES_MAX,
    START_SECONDS_MAX,
)
from runtime.machine import usable_cores
from runtime.placement import PlacementTable
from runtime.settings import Settings
from runtime.shard import Answered, ReaderFigures
from storage.store import Committed, Scope

log = logging.getLogger("mneme.readers")

Account = tuple[int, int]  # slot, number of the tenant


class _Reader:
    """One process, and what is under way there.

    told       accounts that it may have in memory
    searching  calls under way that are not heavy
    """

    def __init__(self, process: subprocess.Popen[bytes], on_large: Callable[[Scope], None]):
        self.process = process
        self.frames = Frames(self._received, self.lost)
        self.told: set[Account] = set()
        self.searching = 0
        self.is_ready = False
        self.silent_seconds = 0.0
        self.changed = asyncio.Event()  # it is ready, or gone
        self.gone = asyncio.Event()
        self._on_large = on_large
        self._calls: dict[int, asyncio.Future[Answered | None]] = {}
        self._asked = 0

    @property
    def is_heard(self) -> bool:
        return self.is_ready and self.silent_seconds < READER_SILENT_SECONDS

    @property
    def under_way(self) -> int:
        return len(self._calls)

    @property
    def load(self) -> int:
        """Searches that one would wait for there, more or less: beside a heavy read, which has the
        interpreter for most of the time, one takes as long as behind several.
        """
        return self.searching + READER_HEAVY_LOAD_CALLS * (self.under_way > self.searching)

    async def ask(
        self, call: Call, principal: Principal, scope: Scope, *, heavy: bool
    ) -> Answered | None:
        """Its answer; None where it gives none."""
        if not self.is_ready:
            return None
        self.told.add((scope.slot, scope.tenant))
        self._asked += 1
        number, future = self._asked, asyncio.get_running_loop().create_future()
        self._calls[number] = future
        self.searching += not heavy
        try:
            self.frames.send((READ, number, call, principal, scope))
            return await future
        finally:
            self.searching -= not heavy
            self._calls.pop(number, None)

    def give_back(self) -> None:
        """Have all that is under way there answered by whoever asked."""
        for future in self._calls.values():
            if not future.done():
                future.set_result(None)

    def lost(self) -> None:
        """Nothing more is heard of it."""
        self.is_ready = False
        self.give_back()
        self.gone.set()
        self.changed.set()

    def _received(self, message: Any) -> None:
        self.silent_seconds = 0.0
        kind, *given = message
        if kind == READY:
            self.is_ready = True
            self.changed.set()
        elif kind == BEAT:
            account_work().take_over(*given)
        elif kind == ANSWER:
            number, answered, large = given
            future = self._calls.get(number)
            if future is not None and not future.done():
                future.set_result(answered)
            if large is not None:
                self._on_large(large)


def reader_count(settings: Settings, number: int) -> int:
    """How many processes are to read beside that of a shard of this machine, where the settings
    leave it to the cores: one for each core that its shards' own do not need.
    """
    if settings.shards.readers is not None:
        return settings.shards.readers
    if not nodes.on_ray():  # engine local is one process
        return 0
    shards = PlacementTable.of(settings).load().shards
    beside = sum(shard.node == shards[number].node for shard in shards)
    return max(0, min(READER_PROCESSES_MAX, usable_cores() // beside - 1))


class ReaderProcesses:
    """Keeps `count` of them. See runtime.shard.readers.Readers.

    opener  names what opens the store in a reader, as Hello has it
    """

    def __init__(self, settings: Settings, number: int, opener: str, count: int):
        self.count = count
        self._settings, self._number, self._opener = settings, number, opener
        self._readers: dict[int, _Reader] = {}  # by place
        self._large: dict[Account, None] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._wanted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._after_loss: Callable[[], Awaitable[None]]
        self._calls = self._given_back = self._ended = 0

    async def start(self, after_loss: Callable[[], Awaitable[None]]) -> None:
        self._loop, self._after_loss = asyncio.get_running_loop(), after_loss
        lives = [self._keep(place) for place in range(self.count)]
        self._tasks = [asyncio.create_task(life) for life in (*lives, self._watch())]

    def want(self) -> None:
        """Begin them, unless that was done."""
        self._wanted.set()

    def place(self, account: Account, here: int, *, heavy: bool) -> _Place | None:
        if account in self._large or not (here or heavy):
            return None
        self.want()
        heard = [reader for _, reader in sorted(self._readers.items()) if reader.is_heard]
        if not heard:
            return None
        if heavy:
            return _Place(self, heard[hash(account) % len(heard)], heavy)
        idlest = min(heard, key=lambda reader: reader.load)
        if here <= idlest.load or idlest.searching >= READER_CALLS_MAX:
            return None
        return _Place(self, idlest, heavy)

    async def ask(
        self, reader: _Reader, call: Call, principal: Principal, scope: Scope, *, heavy: bool
    ) -> Answered | None:
        """The answer of the reader that was chosen."""
        self._calls += 1
        answered = await reader.ask(call, principal, scope, heavy=heavy)
        self._given_back += answered is None
        return answered

    def feed(self, committed: Committed) -> None:
        for reader in list(self._readers.values()):
            told = reader.told
            notes = {
                name: own
                for name, changes in committed.notes.items()
                if (own := [each for each in changes if (each[0].slot, each[0].tenant) in told])
            }
            if notes:
                self._tell(reader, packed((FEED, committed.sequence, notes)))

    def rekeyed(self, place: int) -> None:
        for reader in list(self._readers.values()):
            self._tell(reader, packed((KEY, place)))

    def forget(self, scopes: Collection[Scope]) -> None:
        for reader in list(self._readers.values()):
            self._tell(reader, packed((FORGET, list(scopes))))

    def figures(self) -> ReaderFigures:
        readers = self._readers.values()
        return ReaderFigures(
            self.count,
            ready=sum(reader.is_heard for reader in readers),
            under_way=sum(reader.under_way for reader in readers),
            unsent_bytes=sum(reader.frames.unsent for reader in readers),
            calls_total=self._calls,
            given_back_total=self._given_back,
            ended_total=self._ended,
        )

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for reader in self._readers.values():
            await _end(reader)
        self._readers = {}

    def _tell(self, reader: _Reader, message: bytes) -> None:
        """From any thread; what is told one after the other comes so."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the readers with it
            self._loop.call_soon_threadsafe(self._send, reader, message)

    def _send(self, reader: _Reader, message: bytes) -> None:
        reader.frames.send_packed(message)
        if reader.frames.unsent > READER_UNSENT_BYTES_MAX:
            log.warning("a reader of shard %d takes in nothing, and is replaced", self._number)
            reader.frames.close()

    def _learn_large(self, scope: Scope) -> None:
        self._large[scope.slot, scope.tenant] = None
        if len(self._large) > READER_ACCOUNTS_LARGE_MAX:
            del self._large[next(iter(self._large))]
        self.forget([scope])

    # --- their lives ------------------------------------------------------------------------------

    async def _keep(self, place: int) -> None:
        """Have a process at this place, and another one when it ends."""
        pause, name = READER_RESTART_SECONDS, f"reader-{self._number}-{place}"
        await self._wanted.wait()
        while True:
            began = time.monotonic()
            try:
                reader = await self._begun(place, name)
            except OSError as failed:  # no process, memory or file is to spare just now
                log.warning("%s could not be begun: %s", name, failed)
            else:
                await self._lived(place, name, reader)
            if time.monotonic() - began > READER_RESTART_SECONDS_MAX:
                pause = READER_RESTART_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, READER_RESTART_SECONDS_MAX)

    async def _lived(self, place: int, name: str, reader: _Reader) -> None:
        """Return once it has ended, or did not come up in time, and nothing is left of it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS_MAX):
                await reader.changed.wait()
        if reader.is_ready:
            log.info("%s is ready", name)
            await reader.gone.wait()
        del self._readers[place]
        await _end(reader)
        self._ended += 1
        log.warning("%s ended: %s", name, reader.process.returncode)
        await self._after_loss()

    async def _begun(self, place: int, name: str) -> _Reader:
        """A process that opens the store. It ends with this thread, which is the event loop's.
        Raises OSError.
        """
        own, others = socket.socketpair()
        try:
            with others:
                process = subprocess.Popen(
                    [sys.executable, "-m", "runtime.cluster.reader_process", str(others.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[others.fileno()],
                    env={
                        **os.environ,
                        "PYTHONPATH": os.pathsep.join(each or "." for each in sys.path),
                    },
                )
        except OSError:
            own.close()
            raise
        reader = self._readers[place] = _Reader(process, self._learn_large)
        await reader.frames.connect(own)
        release = release_of(self._opener)
        reader.frames.send(
            Hello(self._settings, self._opener, self._number, self.count, name, release)
        )
        return reader

    async def _watch(self) -> None:
        """Notice who is silent. Of a process that is held up as a whole, what came meanwhile is
        heard before it counts.
        """
        while True:
            await asyncio.sleep(READER_BEAT_SECONDS)
            for reader in self._readers.values():
                if not reader.is_ready:
                    continue
                reader.silent_seconds += READER_BEAT_SECONDS
                if not reader.is_heard:
                    reader.give_back()
                if reader.silent_seconds >= READER_LOST_SECONDS:
                    log.warning("a reader of shard %d is silent, and replaced", self._number)
                    reader.frames.close()


class _Place:
    """A reader that was chosen for one call."""

    def __init__(self, processes: ReaderProcesses, reader: _Reader, heavy: bool):
        self._processes, self._reader, self._heavy = processes, reader, heavy

    async def ask(self, call: Call, principal: Principal, scope: Scope) -> Answered | None:
        return await self._processes.ask(self._reader, call, principal, scope, heavy=self._heavy)


async def _end(reader: _Reader) -> None:
    reader.frames.close()
    reader.lost()
    reader.process.kill()
    await asyncio.to_thread(reader.process.wait)
