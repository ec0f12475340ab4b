"""Speculative reads: what of a lone read needs no model is found while the model is at work, on the
thread and the snapshot that the read then goes on with.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future

from runtime.api.operation import Read
from runtime.api.slot_context import OperatorReadContext
from storage.store import Snapshot, Store

Found = OperatorReadContext | Exception


class Prefetch:
    """One read's snapshot, taken once its model is busy, and what `Read.prefetch` finds on it.

    begin from any thread; then either go_on or leave, once.
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
        self._is_begun = self._is_over = False
        self._rest: Future[Callable[[Found], object]] = Future()

    def begin(self) -> None:
        with self._lock, contextlib.suppress(RuntimeError):  # the pool is closed
            if not (self._is_over or self._is_begun):
                self._threads.submit(self._run)
                self._is_begun = True

    def go_on(self, rest: Callable[[Found], object]) -> bool:
        """Have the rest done by the thread, with the context in which it found something, or with
        what failed; -> whether it was begun.
        """
        with self._lock:
            self._is_over = True
        if self._is_begun:
            self._rest.set_result(rest)
        return self._is_begun

    def leave(self) -> None:
        """Give up what is found."""
        self.go_on(lambda ctx: None)

    def _run(self) -> None:
        with self._store.snapshot() as snapshot:
            found: Found
            try:
                found = self._make(snapshot)
                assert self._operation.prefetch is not None
                found.prefetched = self._operation.prefetch(found, found.call.body)
            except Exception as failed:
                found = failed
            self._rest.result()(found)
