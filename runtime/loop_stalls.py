"""Who holds an event loop: each step of a coroutine is timed, and one that takes
LOOP_STALL_SECONDS or longer is counted under its operation's name and logged.

A step is what runs between two waits; while it does, nothing else of its loop runs. What runs on a
thread is no step. The time is that of the clock, so a process that gets no processor shows too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

from runtime.limits import LOOP_STALL_SECONDS

T = TypeVar("T")
OTHER = "other"

log = logging.getLogger("mneme.loop")


class Label:
    """What the steps of a coroutine are counted under; it may change while they run.

    seconds  that they took so far
    """

    __slots__ = ("operation", "seconds")

    def __init__(self, operation: str = OTHER):
        self.operation = operation
        self.seconds = 0.0


class LoopStalls:
    """Times the steps of an event loop's coroutines and counts the long ones.

    counts, seconds: of the long steps so far, by operation
    noted  called with (operation, seconds) of each, where somebody counts them elsewhere
    """

    def __init__(self, noted: Callable[[str, float], None] | None = None):
        self.counts: dict[str, int] = {OTHER: 0}
        self.seconds = 0.0
        self._noted = noted

    def watch(self, work: Coroutine[Any, Any, T], label: Label) -> Awaitable[T]:
        """Run the coroutine, with its steps timed."""
        return _Steps(work, label, self._note)

    def figures(self) -> dict[str, Any]:
        """For a shard's status."""
        return {"stalls_total_by_operation": dict(self.counts), "stall_seconds_total": self.seconds}

    def _note(self, operation: str, seconds: float) -> None:
        self.counts[operation] = self.counts.get(operation, 0) + 1
        self.seconds += seconds
        if self._noted is not None:
            self._noted(operation, seconds)
        log.warning("%s held the event loop for %.0f ms", operation, seconds * 1000)


class _Steps:
    """Awaits a coroutine as it would itself."""

    def __init__(
        self, work: Coroutine[Any, Any, Any], label: Label, note: Callable[[str, float], None]
    ):
        self._work, self._label, self._note = work, label, note

    def __await__(self) -> Generator[Any, Any, Any]:
        thrown: BaseException | None = None
        work, label, clock = self._work, self._label, time.perf_counter
        while True:
            began = clock()
            try:
                waited = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as ended:
                return ended.value
            finally:
                took = clock() - began
                label.seconds += took
                if took >= LOOP_STALL_SECONDS:
                    self._note(label.operation, took)
            try:
                yield waited
                thrown = None
            except BaseException as error:  # a cancellation, or the end of the loop
                thrown = error
