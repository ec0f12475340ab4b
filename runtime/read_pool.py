"""Runs prepared reads on threads of their own, so that a search of milliseconds does not hold back a look-up of microseconds.

One thread does the work as long as it gets on: two would mostly wait for each other at the interpreter's lock, and both be later. A
further one comes to help when reads wait and none has ended for READ_PATIENCE_SECONDS, so that a long one does not hold all others.

Reads of one operation and tenant that are ready at the same moment run one after another on one snapshot and share what
`Operation.together` makes for all of them: eight searches then cost one pass over the tenant's vectors. Each is answered as soon
as it is done.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from runtime.limits import READ_GROUP_CALLS_MAX, READ_PATIENCE_SECONDS
from runtime.operation import Operation, ReadContext, Reply
from storage.table import Snapshot, Store


@dataclass(slots=True)
class _Ready:
    make: Callable[[Snapshot], ReadContext]
    future: asyncio.Future


class ReadPool:
    """`await run(...)` from one event loop; close() at the end.

    form    (operation, what a handler returned) -> encoded Reply
    crowds  told, from any thread, when reads begin or cease to wait for a thread
    """

    def __init__(
        self, store: Store, form: Callable[[Operation, object], Reply], threads: int, crowds: Callable[[bool], None] = lambda _: None
    ):
        self._store = store
        self._form = form
        self._crowds = crowds
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="mneme-read")
        self._threads_max = threads
        self._ready: dict[tuple, tuple[Operation, list[_Ready]]] = {}
        self._relief: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()  # of the following
        self._queue: deque[tuple[Operation, list[_Ready]]] = deque()
        self._at_work = 0  # threads
        self._ended = 0  # reads
        self._crowded = False

    async def run(self, operation: Operation, tenant: tuple[int, int], make: Callable[[Snapshot], ReadContext]) -> Reply:
        """The handler's reply. make: from the snapshot to the call's context, `prepared` inside."""
        loop = asyncio.get_running_loop()
        ready = _Ready(make, loop.create_future())
        key = (operation.name, *tenant)
        waiting = self._ready.get(key)
        if waiting is None:
            self._ready[key] = (operation, [ready])
            # Whatever else becomes ready in this turn of the loop comes along.
            loop.call_soon(self._start, key)
        else:
            waiting[1].append(ready)
            if len(waiting[1]) >= READ_GROUP_CALLS_MAX:
                self._start(key)
        return await ready.future

    def close(self) -> None:
        self._threads.shutdown()

    def _start(self, key: tuple) -> None:
        group = self._ready.pop(key, None)
        if group is None:
            return
        loop = asyncio.get_running_loop()
        with self._lock:
            self._queue.append(group)
            is_first = not self._at_work
            self._at_work += is_first
            self._tell_whether_crowded(not is_first)
        if is_first:
            self._threads.submit(self._work, loop)
        elif self._relief is None:
            self._relief = loop.call_later(READ_PATIENCE_SECONDS, self._relieve, loop, self._ended)

    def _relieve(self, loop: asyncio.AbstractEventLoop, ended: int) -> None:
        """Send one more thread where nothing has ended since `ended` was counted, and look again while reads wait."""
        with self._lock:
            helps = bool(self._queue) and self._ended == ended and self._at_work < self._threads_max
            self._at_work += helps
            waits, ended = len(self._queue) > helps, self._ended
        if helps:
            self._threads.submit(self._work, loop)
        self._relief = loop.call_later(READ_PATIENCE_SECONDS, self._relieve, loop, ended) if waits else None

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run groups until none waits."""
        while True:
            with self._lock:
                if not self._queue:
                    self._at_work -= 1
                    return
                group = self._queue.popleft()
                self._tell_whether_crowded(bool(self._queue))
            self._run_together(*group, loop)

    def _tell_whether_crowded(self, is_crowded: bool) -> None:
        if is_crowded != self._crowded:
            self._crowded = is_crowded
            self._crowds(is_crowded)

    def _run_together(self, operation: Operation, waiting: list[_Ready], loop: asyncio.AbstractEventLoop) -> None:
        answered = 0
        try:
            with self._store.snapshot() as snapshot:
                contexts = [ready.make(snapshot) for ready in waiting]
                for ctx in contexts[1:]:
                    ctx.share(contexts[0])
                if operation.together is not None:
                    operation.together(contexts[0], [ctx.prepared for ctx in contexts])
                for ready, ctx in zip(waiting, contexts, strict=True):
                    _answer(loop, ready.future, self._attempt(operation, ctx))
                    answered += 1
                    with self._lock:
                        self._ended += 1
        except Exception as error:
            for ready in waiting[answered:]:
                _answer(loop, ready.future, error)

    def _attempt(self, operation: Operation, ctx: ReadContext) -> Reply | Exception:
        try:
            return self._form(operation, operation.handler(ctx, ctx.call.body))
        except Exception as error:
            return error


def _answer(loop: asyncio.AbstractEventLoop, future: asyncio.Future, outcome: Reply | Exception) -> None:
    loop.call_soon_threadsafe(_settle, future, outcome)


def _settle(future: asyncio.Future, outcome: Reply | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
