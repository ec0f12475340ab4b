"""Work that takes an interpreter for milliseconds to seconds, such as the analysis of long texts:
beside the event loop, so much at once, accounts in turns by the processor time that they have had.

Threads share one interpreter, and a machine has few cores: were all such work begun at once, as an
account may ask for by many requests, each of those who are answered in milliseconds would wait for
a share among many. So half of the cores work on it, and one piece of an account's at a time.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

from runtime.limits import LONG_WORK_THREADS
from runtime.turns import InTurns, account_in_turn

Made = TypeVar("Made")


class LongWork:
    """submit() from any thread. Its threads live as long as the process."""

    def __init__(self, threads: int):
        self._threads_max = threads
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
            _settle(*taken[1:])
            with self._changed:
                self._busy.discard(account)
                self._waiting.charge(account, time.thread_time() - begun)
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
def _of_process() -> LongWork:
    return LongWork(LONG_WORK_THREADS)


async def aside(work: Callable[..., Made], *args: Any) -> Made:
    """What this work makes, done beside the event loop in the turn of the account that is being
    worked for (`in_turn_of`).
    """
    context = contextvars.copy_context()
    future = _of_process().submit(account_in_turn(), lambda: context.run(work, *args))
    return await asyncio.wrap_future(future)
