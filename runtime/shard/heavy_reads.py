"""Runs heavy reads: those that may read many rows, on threads of their own.

Nobody else's call waits for one: it holds neither the event loop nor a thread of the searches. One
of an account's runs at a time and accounts take turns by the processor time that they have had, so
an account that sends many of them waits for itself. What each may read and take is bounded
(`Bounds`); a read that turns out larger is refused while it runs, with what to do instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from runtime import tracing
from runtime.account_work import account_work
from runtime.api.operation import Call
from runtime.errors import ValidationFailed
from runtime.limits import (
    HEAVY_READ_BYTES_MAX,
    HEAVY_READ_CHECKED_ROWS,
    HEAVY_READ_CPU_SECONDS_MAX,
    HEAVY_READ_ROWS_MAX,
    HEAVY_READ_THREADS,
)
from runtime.long_work import cores
from runtime.shard.turns import Account, Turns
from storage.store import Snapshot, Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one heavy read may take: rows, their bytes, seconds of processor time."""

    rows: int = HEAVY_READ_ROWS_MAX
    size: int = HEAVY_READ_BYTES_MAX
    cpu_seconds: float = HEAVY_READ_CPU_SECONDS_MAX


class Spending:
    """What one read has taken so far, counted on its thread."""

    def __init__(self, call: Call, bounds: Bounds):
        self._where = "query" if call.body is None else "body"
        self._bounds = bounds
        self._rows = self._size = 0
        self._unchecked = 0
        self._until = time.thread_time() + bounds.cpu_seconds

    def spend(self, rows: int, size: int) -> None:
        """Count rows and bytes. Raises ValidationFailed beyond a bound."""
        self._rows += rows
        self._size += size
        self._unchecked += rows
        cores().breathe()
        if self._rows > self._bounds.rows:
            raise self._refusal(f"would read more than {self._bounds.rows} rows")
        if self._size > self._bounds.size:
            raise self._refusal(f"would read more than {self._bounds.size} bytes")
        if self._unchecked >= HEAVY_READ_CHECKED_ROWS:
            self._unchecked = 0
            if time.thread_time() > self._until:
                raise self._refusal(f"takes more than {self._bounds.cpu_seconds:g} seconds")

    def _refusal(self, problem: str) -> ValidationFailed:
        narrower = "ask for less: a collection, a span of time, fewer conditions, a smaller limit"
        return ValidationFailed.at((self._where,), f"{problem}; {narrower}", "too_costly")


class HeavyReads:
    """`await run(...)` from one event loop; close() at the end."""

    def __init__(
        self, store: Store, bounds: Bounds | None = None, threads: int = HEAVY_READ_THREADS
    ):
        self._store, self._bounds = store, bounds or Bounds()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="mneme-heavy")
        self._turns = Turns(threads)

    @property
    def depth(self) -> int:
        """How many run or wait."""
        return self._turns.depth

    async def run(self, account: Account, call: Call, work: Callable[[Snapshot], T]) -> T:
        """What `work` returns, on a snapshot in the account's turn. Raises ValidationFailed beyond
        a bound, RateLimited and Unavailable where too many wait.
        """
        loop = asyncio.get_running_loop()
        with tracing.part("read", call.operation):
            await self._turns.take(account)
            # Whoever asked may leave; its turn is over when the thread is free again.
            taken = [0.0]
            running = loop.run_in_executor(self._threads, self._read, account, call, work, taken)
            running.add_done_callback(lambda _: self._turns.leave(account, taken[0]))
            return await asyncio.shield(running)

    def begin_no_more(self) -> None:
        """Refuse the reads that wait, and those that come."""
        self._turns.close()

    def close(self) -> None:
        """End the threads, once what runs has ended."""
        self._threads.shutdown()

    def _read(
        self, account: Account, call: Call, work: Callable[[Snapshot], T], taken: list[float]
    ) -> T:
        """taken: where the processor time is noted that this took, in seconds."""
        begun = time.thread_time()
        try:
            with (
                cores().held(account),
                self._store.snapshot(Spending(call, self._bounds)) as snapshot,
            ):
                return work(snapshot)
        finally:
            taken[0] = time.thread_time() - begun
            account_work().note(account, read_seconds=taken[0])
