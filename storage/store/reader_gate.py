"""The gate between many readers and the rare step that none of them may disturb: closing, and the
end of a write that failed.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class ReaderGate:
    """Counts readers; `alone` keeps new ones out, and waits a while until there are none."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._shut = False
        self.readers = 0

    def enter(self) -> None:
        """Count one more reader, as soon as the gate is open."""
        with self._changed:
            while self._shut:
                self._changed.wait()
            self.readers += 1

    def leave(self) -> None:
        with self._changed:
            self.readers -= 1
            if self._shut and self.readers == 0:
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self, seconds_max: float) -> Iterator[None]:
        """A block during which no reader enters, begun when those inside have left, or after
        seconds_max. One block at a time.
        """
        with self._changed:
            self._shut = True
            try:
                self._changed.wait_for(lambda: self.readers == 0, seconds_max)
                yield
            finally:
                self._shut = False
                self._changed.notify_all()
