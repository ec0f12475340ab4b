"""What takes a core for milliseconds to seconds, such as the analysis of long texts, a run of the
model over them, or a read of many rows: while several accounts ask, half of the cores are for it,
and accounts take turns by the processor time that they have had.

Threads share one interpreter, and a machine has few cores: were all such work begun at once, as an
account may ask for by many requests, whoever is answered in milliseconds would wait for a share
among many. Work that can, gives its core away for a turn of another account's now and then
(`breathe`). An account that is alone has all cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

from runtime.account_work import account_work
from runtime.limits import LONG_WORK_SLICE_SECONDS, LONG_WORK_THREADS
from runtime.machine import usable_cores
from runtime.turns import Crowd, InTurns, account_in_turn

Made = TypeVar("Made")


class _Turn:
    """A thread that waits for a core, or has one: since when, and by how much processor time."""

    def __init__(self, account: Hashable):
        self.account = account
        self.came = threading.Event()
        self.given_up = False
        self.since = self.used = 0.0


class Cores:
    """take() and leave(), from any thread, one turn of a thread's at a time. asked() by whoever is
    answered in milliseconds.
    """

    def __init__(self, count: int):
        self._count = count
        self._crowd = Crowd()
        self._lock = threading.Lock()  # of the following
        self._taken = 0
        self._waiting: InTurns[_Turn] = InTurns()
        self._own = threading.local()

    def asked(self, account: Hashable) -> None:
        """Note a request of this account."""
        self._crowd.asked(account)

    def are_crowded(self) -> bool:
        """Whether several accounts have asked of late."""
        return self._crowd.is_here()

    def _free(self) -> int:
        return (max(1, self._count // 2) if self.are_crowded() else self._count) - self._taken

    def _spare(self) -> int:
        return 0 if self._waiting else max(0, self._free())

    def _begin_turns(self) -> None:
        while self._free() > 0 and (following := self._waiting.take()) is not None:
            if not following.given_up:
                self._taken += 1
                following.came.set()

    def take(self, account: Hashable, patience_seconds: float | None = None) -> bool:
        """Wait for the account's turn, so long at most; -> whether it came."""
        turn = _Turn(account)
        with self._lock:
            if self._spare():
                self._taken += 1
                turn.came.set()
            else:
                self._waiting.put(account, turn)
        if not turn.came.wait(patience_seconds):
            with self._lock:
                if not turn.came.is_set():
                    turn.given_up = True
                    return False
        turn.since, turn.used = time.monotonic(), time.thread_time()
        self._own.turn = turn
        return True

    def leave(self) -> None:
        """End this thread's turn, and begin the next."""
        turn, self._own.turn = self._own.turn, None
        with self._lock:
            self._taken -= 1
            self._waiting.charge(turn.account, time.thread_time() - turn.used)
            self._begin_turns()

    def spare(self) -> int:
        """How many cores nobody has or waits for."""
        with self._lock:
            return self._spare()

    def lend(self, most: int, spared: int = 0) -> int:
        """Give whoever has a core up to so many more, of those that nobody has or waits for, but
        for so many that are spared; -> how many, which are to be taken back soon.
        """
        with self._lock:
            lent = max(0, min(most, self._spare() - spared))
            self._taken += lent
            return lent

    def take_back(self, lent: int) -> None:
        """End a loan, and begin the turns that waited meanwhile."""
        with self._lock:
            self._taken -= lent
            self._begin_turns()

    @contextlib.contextmanager
    def held(self, account: Hashable) -> Iterator[None]:
        self.take(account)
        try:
            yield
        finally:
            self.leave()

    def breathe(self) -> None:
        """Where others wait and this thread has had its core for a while: let them, and go on in
        its account's next turn.
        """
        turn = getattr(self._own, "turn", None)
        if turn is None or not self._waiting:
            return
        if time.monotonic() - turn.since > LONG_WORK_SLICE_SECONDS:
            self.leave()
            self.take(turn.account)


class LongWork:
    """submit() from any thread: what is done on threads of its own, on a core of `cores`, one piece
    of an account's at a time. Its threads live as long as the process.
    """

    def __init__(self, threads: int, cores: Cores):
        self._threads_max, self._cores = threads, cores
        self._changed = threading.Condition()  # guards the following
        self._waiting: InTurns[tuple[Hashable, Future[Any], Callable[[], Any]]] = InTurns()
        self._busy: set[Hashable] = set()
        self._threads = self._idle = 0

    def submit(self, account: Hashable, work: Callable[[], Made]) -> Future[Made]:
        """Have this done in the account's turn."""
        future: Future[Made] = Future()
        with self._changed:
            self._waiting.put(account, (account, future, work))
            if not self._idle and self._threads < self._threads_max:
                self._threads += 1
                name = f"mneme-long_{self._threads}"
                threading.Thread(target=self._run, name=name, daemon=True).start()
            self._changed.notify()
        return future

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while (taken := self._waiting.take(lambda who: who not in self._busy)) is None:
                    self._changed.wait()
                self._idle -= 1
                account = taken[0]
                self._busy.add(account)
            begun = time.thread_time()
            with self._cores.held(account):
                _settle(*taken[1:])
            took = time.thread_time() - begun
            account_work().note(account, beside_seconds=took)
            with self._changed:
                self._busy.discard(account)
                self._waiting.charge(account, took)
                self._changed.notify()
            del taken  # what it made is its caller's alone


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        made = work()
    except BaseException as failed:
        future.set_exception(failed)
    else:
        future.set_result(made)


@cache
def cores() -> Cores:
    """Those of this process."""
    return Cores(usable_cores())


@cache
def _threads() -> LongWork:
    return LongWork(LONG_WORK_THREADS, cores())


async def aside(work: Callable[..., Made], *args: Any) -> Made:
    """What this work makes, done beside the event loop in the turn of the account that is being
    worked for (`in_turn_of`).
    """
    context = contextvars.copy_context()
    future = _threads().submit(account_in_turn(), lambda: context.run(work, *args))
    return await asyncio.wrap_future(future)
