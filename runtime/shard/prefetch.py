"""Speculative reads: what of a lone read needs no model is found while the model is at work."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack

from runtime.api.operation import Read
from runtime.api.slot_context import OperatorReadContext
from storage.store import Snapshot, Store

Found = tuple[ExitStack, OperatorReadContext]


class Prefetch:
    """One read's snapshot, taken once its model is busy, and what `Read.prefetch` finds on it.

    begin from any thread; then either take or leave, once.
    """

    def __init__(
        self,
        operation: Read,
        make: Callable[[Snapshot], OperatorReadContext],
        store: Store,
        threads: Executor,
    ):
        """make: from a snapshot to the call's context, in which `prepared` is what was loaded."""
        self._operation, self._make, self._store, self._threads = operation, make, store, threads
        self._lock = threading.Lock()  # of the following
        self._is_wanted, self._found = True, None

    def begin(self) -> None:
        with self._lock, contextlib.suppress(RuntimeError):  # the pool is closed
            if self._is_wanted and self._found is None:
                self._found = self._threads.submit(self._find)

    def take(self) -> Future[Found] | None:
        """The snapshot, for its new owner to close, and the context on it; None if not begun."""
        with self._lock:
            self._is_wanted = False
            return self._found

    def leave(self) -> None:
        """Close the snapshot as soon as nothing is looked for on it."""
        if (found := self.take()) is not None:
            found.add_done_callback(lambda found: found.exception() or found.result()[0].close())

    def _find(self) -> Found:
        with ExitStack() as opened:
            ctx = self._make(opened.enter_context(self._store.snapshot()))
            assert self._operation.prefetch is not None
            ctx.prefetched = self._operation.prefetch(ctx, ctx.call.body)
            return opened.pop_all(), ctx
