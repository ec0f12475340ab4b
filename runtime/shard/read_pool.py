"""Runs prepared reads on threads of their own, so that a search of milliseconds does not hold back
a look-up of microseconds.

One thread works; a further one starts only when reads wait and none has ended for
READ_PATIENCE_SECONDS, because two threads contend for the interpreter's lock and make both reads
later. So a long read does not hold all others.

Reads of one operation and tenant that are ready at the same moment run one after another on one
snapshot and share what `Read.batch` makes for all of them: eight searches then cost one
pass over the tenant's vectors. Each is answered as soon as it is done. Tenants take turns by the
processor time that they have had, and run fewer of them at a time while another asks.

A read that is alone has what needs no model found meanwhile (runtime/shard/prefetch.py), and goes
on from there on the same snapshot.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from runtime.account_work import account_work
from runtime.api.operation import Read, Reply
from runtime.api.slot_context import OperatorReadContext
from runtime.errors import PLUGIN_RAISES
from runtime.limits import (
    READ_GROUP_CALLS_CROWDED_MAX,
    READ_GROUP_CALLS_MAX,
    READ_PATIENCE_SECONDS,
)
from runtime.shard.prefetch import Found, Prefetch
from runtime.turns import Crowd, InTurns
from storage.store import Snapshot, Store


@dataclass(slots=True)
class _Ready:
    make: Callable[[Snapshot], OperatorReadContext]
    prepared: Any
    future: asyncio.Future


@dataclass(slots=True)
class _Group:
    """Reads of one operation and tenant that share a snapshot."""

    tenant: tuple[int, int]
    operation: Read
    waiting: list[_Ready]
    since: float | None = None  # when it began to wait for a thread


class ReadPool:
    """`await run(...)` from one event loop; close() at the end.

    form    (operation, what a handler returned) -> encoded Reply
    on_backlog  called, from any thread, with whether reads wait for a thread, when that changes
    """

    def __init__(
        self,
        store: Store,
        form: Callable[[Read, object], Reply],
        threads: int,
    ):
        self._store = store
        self._form = form
        self.on_backlog: Callable[[bool], None] = lambda _: None
        # One more than work: a prefetch is not to wait for them.
        self._threads = ThreadPoolExecutor(max_workers=threads + 1, thread_name_prefix="mneme-read")
        self._threads_max = threads
        self._ready: dict[tuple, _Group] = {}
        self._crowd = Crowd()
        self._relief: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()  # of the following
        self._queue: InTurns[_Group] = InTurns()
        self._at_work = 0  # threads
        self._ended = 0  # reads
        self._has_backlog = False

    async def run(
        self,
        operation: Read,
        tenant: tuple[int, int],
        make: Callable[[Snapshot], OperatorReadContext],
        prepared: Any,
        prefetch: Prefetch | None = None,
    ) -> Reply:
        """Run the handler in its turn, with the others that are ready; -> its reply. make: from a
        snapshot to the call's context; prepared: what the handler finds there.
        """
        self._crowd.asked(tenant)
        loop = asyncio.get_running_loop()
        ready = _Ready(make, prepared, loop.create_future())
        if prefetch is not None:
            group = _Group(tenant, operation, [ready])
            if prefetch.go_on(partial(self._go_on, group, loop)):
                return await ready.future
        key = (operation.name, *tenant)
        waiting = self._ready.get(key)
        if waiting is None:
            self._ready[key] = _Group(tenant, operation, [ready])
            # Whatever else becomes ready in this turn of the loop comes along.
            loop.call_soon(self._start, key)
        else:
            waiting.waiting.append(ready)
            if len(waiting.waiting) >= (
                READ_GROUP_CALLS_CROWDED_MAX if self._crowd.is_here() else READ_GROUP_CALLS_MAX
            ):
                self._start(key)
        return await ready.future

    def prefetch(
        self, operation: Read, make: Callable[[Snapshot], OperatorReadContext]
    ) -> Prefetch:
        """The prefetch of a read that is alone, to be begun when its model is busy."""
        return Prefetch(operation, make, self._store, self._threads)

    def close(self) -> None:
        self._threads.shutdown()

    def _start(self, key: tuple) -> None:
        group = self._ready.pop(key, None)
        if group is not None:
            self._enqueue(group)

    def _enqueue(self, group: _Group) -> None:
        loop = asyncio.get_running_loop()
        group.since = time.monotonic()
        with self._lock:
            self._queue.put(group.tenant, group)
            is_first = not self._at_work
            self._at_work += is_first
            self._tell_backlog(not is_first)
        if is_first:
            self._threads.submit(self._work, loop)
        elif self._relief is None:
            self._relief = loop.call_later(READ_PATIENCE_SECONDS, self._relieve, loop, self._ended)

    def _relieve(self, loop: asyncio.AbstractEventLoop, ended: int) -> None:
        """Send one more thread where nothing has ended since `ended` was counted, and look again
        while reads wait.
        """
        with self._lock:
            helps = bool(self._queue) and self._ended == ended and self._at_work < self._threads_max
            self._at_work += helps
            waits, ended = len(self._queue) > helps, self._ended
        if helps:
            self._threads.submit(self._work, loop)
        self._relief = (
            loop.call_later(READ_PATIENCE_SECONDS, self._relieve, loop, ended) if waits else None
        )

    def _go_on(self, group: _Group, loop: asyncio.AbstractEventLoop, found: Found | None) -> None:
        """Run the read that this thread was ahead of, and then those that came meanwhile."""
        with self._lock:
            self._at_work += 1
        self._work(loop, group, found)

    def _work(
        self,
        loop: asyncio.AbstractEventLoop,
        group: _Group | None = None,
        found: Found | None = None,
    ) -> None:
        """Run this group, if one is given, and others until none waits."""
        begun = time.thread_time()
        while True:
            if group is not None:
                waited = 0.0 if group.since is None else time.monotonic() - group.since
                self._run_group(group, loop, found)
            ended = time.thread_time()
            if group is not None:
                account_work().note(group.tenant, read_seconds=ended - begun, waited_seconds=waited)
            with self._lock:
                if group is not None:
                    self._queue.charge(group.tenant, ended - begun)
                group, found, begun = self._queue.take(), None, ended
                if group is None:
                    self._at_work -= 1
                    return
                self._tell_backlog(bool(self._queue))

    def _tell_backlog(self, has_backlog: bool) -> None:
        if has_backlog != self._has_backlog:
            self._has_backlog = has_backlog
            self.on_backlog(has_backlog)

    def _run_group(
        self, group: _Group, loop: asyncio.AbstractEventLoop, found: Found | None
    ) -> None:
        """found: by a prefetch, of the only read of a group."""
        waiting = group.waiting
        futures = [ready.future for ready in waiting]
        try:
            with ExitStack() as opened:
                if isinstance(found, BaseException):
                    raise found
                if found is not None:
                    contexts = [found]
                else:
                    taken = opened.enter_context(self._store.snapshot())
                    contexts = [ready.make(taken) for ready in waiting]
                for ctx, ready in zip(contexts, waiting, strict=True):
                    ctx.prepared = ready.prepared
                for ctx in contexts[1:]:
                    ctx.share(contexts[0])
                self._answer_all(group.operation, futures, contexts, loop)
        except PLUGIN_RAISES as error:
            for future in futures:
                _answer(loop, future, error)

    def _answer_all(
        self,
        operation: Read,
        futures: list[asyncio.Future],
        contexts: list[OperatorReadContext],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Answer each as soon as it is done."""
        answered = 0
        try:
            if operation.batch is not None:
                operation.batch(contexts[0], [ctx.prepared for ctx in contexts])
            for future, ctx in zip(futures, contexts, strict=True):
                _answer(loop, future, self._attempt(operation, ctx))
                answered += 1
                with self._lock:
                    self._ended += 1
        except PLUGIN_RAISES as error:
            for future in futures[answered:]:
                _answer(loop, future, error)

    def _attempt(self, operation: Read, ctx: OperatorReadContext) -> Reply | BaseException:
        try:
            return self._form(operation, operation.handler(ctx, ctx.call.body))
        except PLUGIN_RAISES as error:
            return error


def _answer(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future, outcome: Reply | BaseException
) -> None:
    loop.call_soon_threadsafe(_settle, future, outcome)


def _settle(future: asyncio.Future, outcome: Reply | BaseException) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
