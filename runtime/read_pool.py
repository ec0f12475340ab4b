"""Runs prepared reads on threads of their own, so that a search of milliseconds does not hold back a look-up of microseconds.

One thread does the work as long as it gets on: two would mostly wait for each other at the interpreter's lock, and both be later. A
further one comes to help when reads wait and none has ended for READ_PATIENCE_SECONDS, so that a long one does not hold all others.

A read that comes while no other is under way has its snapshot taken at once, and a thread does on it what `Operation.ahead` can do
while the call is prepared. Where others are under way it would only take their turn.

Reads of one operation and tenant that are ready at the same moment run one after another on one snapshot and share what
`Operation.together` makes for all of them: eight searches then cost one pass over the tenant's vectors. Each is answered as soon
as it is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from runtime.limits import READ_AHEAD_SECONDS_MAX, READ_GROUP_CALLS_MAX, READ_PATIENCE_SECONDS
from runtime.operation import Operation, ReadContext, Reply
from storage.table import Snapshot, Store


@dataclass(slots=True)
class _Ready:
    make: Callable[[Snapshot], ReadContext]
    prepared: Any
    future: asyncio.Future


class _Begun:
    """A read that a thread begins with before it is prepared."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.answer = self.loop.create_future()
        self.started = False
        self._prepared: Future = Future()

    def go_on(self, prepared: Any) -> bool:
        """Whether it will answer; otherwise it has not started, or waited for too long, and has no snapshot."""
        if self.started:
            with contextlib.suppress(InvalidStateError):
                self._prepared.set_result(prepared)
                return True
        return False

    def prepared(self) -> Any:
        """From its thread: wait for go_on, for moments. Raises CancelledError or TimeoutError when it does not come."""
        try:
            return self._prepared.result(READ_AHEAD_SECONDS_MAX)
        except TimeoutError:
            if self._prepared.cancel():
                raise
            return self._prepared.result()

    @property
    def is_wanted(self) -> bool:
        return not self._prepared.cancelled()

    def cancel(self) -> None:
        """Nobody waits for the answer any more; no harm once it is there."""
        self._prepared.cancel()
        if not self.answer.cancel() and not self.answer.cancelled():
            self.answer.exception()


class ReadPool:
    """`await run(...)` from one event loop; close() at the end.

    form    (operation, what a handler returned) -> encoded Reply
    crowds  told, from any thread, when reads begin or cease to wait for a thread
    meanwhile  given what is to be called, from any thread, once the model that prepares reads is busy
    """

    def __init__(
        self,
        store: Store,
        form: Callable[[Operation, object], Reply],
        threads: int,
        crowds: Callable[[bool], None] = lambda _: None,
        meanwhile: Callable[[Callable[[], object]], None] = lambda _: None,
    ):
        self._store = store
        self._form = form
        self._crowds = crowds
        self._meanwhile = meanwhile
        self._threads = ThreadPoolExecutor(max_workers=threads + 1, thread_name_prefix="mneme-read")  # one may wait ahead
        self._threads_max = threads
        self._ready: dict[tuple, tuple[Operation, list[_Ready]]] = {}
        self._relief: asyncio.TimerHandle | None = None
        self._under_way = 0  # reads
        self._lock = threading.Lock()  # of the following
        self._queue: deque[tuple[Operation, list[_Ready]]] = deque()
        self._at_work = 0  # threads
        self._ended = 0  # reads
        self._crowded = False

    async def run(
        self, operation: Operation, tenant: tuple[int, int], make: Callable[[Snapshot], ReadContext], preparing: Awaitable[Any]
    ) -> Reply:
        """The handler's reply. make: from a snapshot to the call's context; preparing: gives what the handler finds in `prepared`."""
        self._under_way += 1
        begun = None
        if operation.ahead is not None and self._under_way == 1:
            begun = _Begun()
            self._meanwhile(partial(self._start_ahead, operation, make, begun))
        try:
            prepared = await preparing
            if begun is not None and begun.go_on(prepared):
                return await begun.answer
            return await self._queued(operation, tenant, make, prepared)
        finally:
            self._under_way -= 1
            if begun is not None:
                begun.cancel()

    def close(self) -> None:
        self._threads.shutdown()

    async def _queued(self, operation: Operation, tenant: tuple[int, int], make: Callable[[Snapshot], ReadContext], prepared: Any) -> Reply:
        """In its turn, with the others that are ready."""
        loop = asyncio.get_running_loop()
        ready = _Ready(make, prepared, loop.create_future())
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

    def _start_ahead(self, operation: Operation, make: Callable[[Snapshot], ReadContext], begun: _Begun) -> None:
        """From the thread of the model, which must not fail for it."""
        with contextlib.suppress(RuntimeError):  # the pool is closed
            if begun.is_wanted:
                self._threads.submit(self._run_ahead, operation, make, begun)
                begun.started = True

    def _run_ahead(self, operation: Operation, make: Callable[[Snapshot], ReadContext], begun: _Begun) -> None:
        """A read from before its preparation to its answer, and then those that came meanwhile."""
        try:
            with self._store.snapshot() as snapshot:
                ctx = make(snapshot)
                ctx.ahead = operation.ahead(ctx, ctx.call.body)
                try:
                    ctx.prepared = begun.prepared()
                except (CancelledError, TimeoutError):
                    return
                with self._lock:
                    self._at_work += 1
                self._answer_all(operation, [begun.answer], [ctx], begun.loop)
        except Exception as error:
            _answer(begun.loop, begun.answer, error)
            return
        self._work(begun.loop)

    def _tell_whether_crowded(self, is_crowded: bool) -> None:
        if is_crowded != self._crowded:
            self._crowded = is_crowded
            self._crowds(is_crowded)

    def _run_together(self, operation: Operation, waiting: list[_Ready], loop: asyncio.AbstractEventLoop) -> None:
        futures = [ready.future for ready in waiting]
        try:
            with self._store.snapshot() as snapshot:
                contexts = [ready.make(snapshot) for ready in waiting]
                for ctx, ready in zip(contexts, waiting, strict=True):
                    ctx.prepared = ready.prepared
                for ctx in contexts[1:]:
                    ctx.share(contexts[0])
                self._answer_all(operation, futures, contexts, loop)
        except Exception as error:
            for future in futures:
                _answer(loop, future, error)

    def _answer_all(
        self, operation: Operation, futures: list[asyncio.Future], contexts: list[ReadContext], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Each as soon as it is done."""
        answered = 0
        try:
            if operation.together is not None:
                operation.together(contexts[0], [ctx.prepared for ctx in contexts])
            for future, ctx in zip(futures, contexts, strict=True):
                _answer(loop, future, self._attempt(operation, ctx))
                answered += 1
                with self._lock:
                    self._ended += 1
        except Exception as error:
            for future in futures[answered:]:
                _answer(loop, future, error)

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
