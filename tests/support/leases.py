"""The time by which leases go, in the test's hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from storage.replication import lease


class LeaseTime:
    """A clock that goes as ever, and leaps when it is told to. Who waits for the end of a lease
    has it leap so far; rested: for how many seconds each of them did.
    """

    def __init__(self) -> None:
        self._uptime, self._leapt = lease.uptime, 0.0
        self.rested: list[float] = []

    def uptime(self) -> float:
        return self._uptime() + self._leapt

    def leap(self, seconds: float) -> None:
        self._leapt += seconds

    def rest(self, seconds: float) -> None:
        self.rested.append(seconds)
        self.leap(seconds)


@contextmanager
def leaping() -> Iterator[LeaseTime]:
    """All leases of this process go by the time that is given."""
    with pytest.MonkeyPatch.context() as patched:
        found = LeaseTime()
        patched.setattr(lease, "uptime", found.uptime)
        patched.setattr(lease, "rest", found.rest)
        yield found


@contextmanager
def waited_out() -> Iterator[None]:
    """Whoever waits for the end of a lease finds that it is over already."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lease, "rest", lambda seconds: None)
        yield
