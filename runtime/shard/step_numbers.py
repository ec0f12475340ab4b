"""The steps of an attempt to move slots, taken in turn and once (runtime/shard/slot_moves.py).

Whoever makes an attempt numbers the steps that it asks a shard for, from 1 on, and asks for the
next one when the one before was answered. So any other number is that of a message that comes once
more, or late, or to a process that did not take the first steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator

from runtime.placement import Attempt


class StepNumbers:
    """The last step that this shard took of each attempt."""

    def __init__(self) -> None:
        self._last: dict[Attempt, int] = {}

    @property
    def attempts(self) -> list[Attempt]:
        """Those of which steps were taken."""
        return list(self._last)

    @contextlib.contextmanager
    def taken(self, attempt: Attempt, number: int) -> Iterator[bool]:
        """A block that takes a step; -> whether it is the attempt's next. One that fails may come
        again.
        """
        is_next = number == self._last.get(attempt, 0) + 1
        if is_next:
            self._last[attempt] = number
        try:
            yield is_next
        except BaseException:
            if is_next:
                self._last[attempt] = number - 1
            raise

    def forget(self, attempts: Collection[Attempt]) -> None:
        """Forget these, which are over."""
        for attempt in attempts:
            self._last.pop(attempt, None)
