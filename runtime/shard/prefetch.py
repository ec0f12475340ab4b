"""Speculative reads: what of a lone read needs no model is found while the model is at work, on the
thread and the snapshot that the read then goes on with.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress

from runtime.api.operation import Read
from runtime.api.slot_context import OperatorReadContext
from runtime.errors import PLUGIN_RAISES
from runtime.limits import PREFETCHED_SECONDS_MAX
from storage.store import Snapshot, Store

Found = OperatorReadContext | BaseException  # what failed, while something was looked for
Rest = Callable[[Found], object]
Make = Callable[[Snapshot], OperatorReadContext]  # with `prepared` as it was loaded


class Prefetch:
    """begin from any thread, once the read's model is busy; then either go_on or leave, once."""

    def __init__(self, operation: Read, make: Make, store: Store, threads: Executor):
        self._operation, self._make, self._store, self._threads = operation, make, store, threads
        self._lock = threading.Lock()  # of the following
        self._is_begun = self._is_over = False
        self._rest: Future[Rest] = Future()

    def begin(self) -> None:
        with self._lock, suppress(RuntimeError):  # the pool is closed
            if not (self._is_over or self._is_begun):
                self._threads.submit(self._run)
                self._is_begun = True

    def go_on(self, rest: Rest) -> bool:
        """Have the rest done where something was found; -> whether there is such a place."""
        with self._lock:
            goes_on, self._is_over = self._is_begun and not self._is_over, True
            if goes_on:
                self._rest.set_result(rest)
        return goes_on

    def leave(self) -> None:
        self.go_on(lambda found: None)

    def _run(self) -> None:
        with self._store.snapshot() as snapshot:
            try:
                found: Found = self._make(snapshot)
                assert self._operation.prefetch is not None
                found.prefetched = self._operation.prefetch(found, found.call.body)
            except PLUGIN_RAISES as failed:
                found = failed
            with suppress(TimeoutError):  # which opens the snapshot for no longer
                self._rest.exception(PREFETCHED_SECONDS_MAX)
            with self._lock:
                self._is_over = True
            if self._rest.done():
                self._rest.result()(found)
