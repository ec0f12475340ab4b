"""What accounts took of this process of late.

Whatever lets accounts take turns notes here what a turn took. A ledger holds whole minutes: the one
before and the one that runs, so that its figures are of the last 60 to 120 seconds, and what nobody
asks about any more is forgotten by itself. A reader process sends what it noted to its shard's,
where all of an account comes together.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields
from functools import cache

from runtime.limits import ACCOUNT_WORK_ACCOUNTS_MAX

Account = tuple[int, int]  # slot, number of the tenant
_MINUTE = 60.0  # seconds


@dataclass(slots=True)
class Work:
    """What an account took.

    calls           requests that the shard let in
    read_seconds    of threads, for searches and for reads that may be wide
    write_seconds   of the writer, between two commits
    beside_seconds  of the threads of long work: jobs, and what is taken apart or loaded
    waited_seconds  for turns at any of these, that others had
    embedded_chars  characters of texts that the embedding model was given
    """

    calls: int = 0
    read_seconds: float = 0.0
    write_seconds: float = 0.0
    beside_seconds: float = 0.0
    waited_seconds: float = 0.0
    embedded_chars: int = 0

    @property
    def seconds(self) -> float:
        """Of all threads together."""
        return self.read_seconds + self.write_seconds + self.beside_seconds

    def add(self, other: Work) -> None:
        for name in _FIGURES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_FIGURES = tuple(each.name for each in fields(Work))


class AccountWork:
    """A ledger; from any thread. Of accounts beyond ACCOUNT_WORK_ACCOUNTS_MAX in a minute nothing
    is noted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._lock = threading.Lock()  # of the following
        self._minute = clock()  # when it began
        self._now: dict[Account, Work] = {}
        self._before: dict[Account, Work] = {}
        self._before_seconds = 0.0

    def note(self, account: Hashable, **took: float) -> None:
        """Add figures of Work to an account's; whoever else has turns, such as nobody, has none."""
        if not isinstance(account, tuple):
            return
        with self._lock:
            work = self._of(account)
            if work is not None:
                for name, more in took.items():
                    setattr(work, name, getattr(work, name) + more)

    def take_over(self, noted: Mapping[Account, Work]) -> None:
        """Add what another process noted."""
        with self._lock:
            for account, more in noted.items():
                if (work := self._of(account)) is not None:
                    work.add(more)

    def hand_over(self) -> Mapping[Account, Work]:
        """What was noted since the last time, which is forgotten here."""
        with self._lock:
            noted, left = self._now, self._before  # of a minute that ended since
            self._now, self._before = {}, {}
        for account, more in left.items():
            noted.setdefault(account, Work()).add(more)
        return noted

    def of(self, account: Account) -> tuple[Work, float]:
        """What an account took, and in how many seconds."""
        with self._lock:
            self._turn()
            return self._sum(account), self._seconds()

    def busiest(
        self, count: int, among: Callable[[Account], bool] = lambda _: True
    ) -> tuple[list[tuple[Account, Work]], float]:
        """The accounts that took most, the first ones first, and in how many seconds. among: which
        of them count.
        """
        with self._lock:
            self._turn()
            known = {
                account: self._sum(account)
                for account in self._now.keys() | self._before.keys()
                if among(account)
            }
            seconds = self._seconds()
        return heapq.nlargest(count, known.items(), lambda item: item[1].seconds), seconds

    def _of(self, account: Account) -> Work | None:
        self._turn()
        work = self._now.get(account)
        if work is None and len(self._now) < ACCOUNT_WORK_ACCOUNTS_MAX:
            work = self._now[account] = Work()
        return work

    def _turn(self) -> None:
        """Begin another minute where one is over."""
        passed = self._clock() - self._minute
        if passed >= _MINUTE:
            self._before_seconds = passed if passed < 2 * _MINUTE else 0.0
            self._before = self._now if passed < 2 * _MINUTE else {}
            self._now = {}
            self._minute += passed

    def _sum(self, account: Account) -> Work:
        work = Work()
        for part in (self._before, self._now):
            if account in part:
                work.add(part[account])
        return work

    def _seconds(self) -> float:
        return self._before_seconds + self._clock() - self._minute


@cache
def account_work() -> AccountWork:
    """That of this process."""
    return AccountWork()
