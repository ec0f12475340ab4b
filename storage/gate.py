"""The gate between many readers and the rare step that needs none of them: growing or closing the memory map."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class ReaderGate:
    """Counts readers; `alone` waits until there are none and keeps new ones out meanwhile."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._shut = False
        self.readers = 0

    def enter(self, seconds_max: float) -> bool:
        """Count one more reader; False when the gate stayed shut for seconds_max."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._shut, seconds_max):
                return False
            self.readers += 1
            return True

    def leave(self) -> None:
        with self._changed:
            self.readers -= 1
            if self.readers == 0:
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self, seconds_max: float) -> Iterator[bool]:
        """A block during which no reader enters; yields whether those inside left within seconds_max. One block at a time."""
        with self._changed:
            self._shut = True
            try:
                yield self._changed.wait_for(lambda: self.readers == 0, seconds_max)
            finally:
                self._shut = False
                self._changed.notify_all()
