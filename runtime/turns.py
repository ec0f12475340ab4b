"""Whose turn it is: what waits is taken from the account that has had least.

Whoever asks for much waits behind itself. An account that comes back after a pause begins where
those are that are served now: nobody saves up.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

from runtime.limits import CROWDED_SECONDS

Thing = TypeVar("Thing")
_REMEMBERED_MAX = 1_024
_ACCOUNT: ContextVar[Hashable] = ContextVar("account", default=None)


@contextlib.contextmanager
def in_turn_of(account: Hashable) -> Iterator[None]:
    """Let what is asked for within wait for this account's turn."""
    before = _ACCOUNT.set(account)
    try:
        yield
    finally:
        _ACCOUNT.reset(before)


def work_for(account: Hashable) -> None:
    """Let what this task asks for from now on wait for this account's turn."""
    _ACCOUNT.set(account)


def account_in_turn() -> Hashable:
    """The account that is being worked for; None for nobody's."""
    return _ACCOUNT.get()


class Crowd:
    """Whether several accounts have asked of late."""

    def __init__(self) -> None:
        self._last: Hashable = None
        self._until = float("-inf")  # seconds of the clock

    def asked(self, account: Hashable) -> None:
        """Note a request of this account; None: of nobody's."""
        if account is not None and account != self._last:
            if self._last is not None:
                self._until = time.monotonic() + CROWDED_SECONDS
            self._last = account

    def is_here(self) -> bool:
        return time.monotonic() < self._until


class InTurns(Generic[Thing]):
    """A queue of accounts' things, each account's in the order they came. put() them, take() the
    next, and charge() the account with what it took, in any one unit; without charges accounts come
    one after the other. Not safe from several threads.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[Thing]] = {}
        self._had: dict[Hashable, float] = {}
        self._turns: list[tuple[float, int, Hashable]] = []  # a heap, an account once
        self._order = itertools.count()
        self._level = 0.0  # what the account had that was served last, when it was
        self._count = 0
        self._remembered_max = _REMEMBERED_MAX

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Thing]:
        for own in self._waiting.values():
            yield from own

    def waiting(self, account: Hashable) -> int:
        """How many of the account's wait."""
        return len(self._waiting.get(account, ()))

    def put(self, account: Hashable, thing: Thing) -> None:
        """Let it wait behind the account's others."""
        self._count += 1
        own = self._waiting.get(account)
        if own is None:
            self._waiting[account] = deque((thing,))
            self._enter(account)
        else:
            own.append(thing)

    def take(self, may: Callable[[Hashable], bool] = lambda account: True) -> Thing | None:
        """The next thing; None where there is none. may: whose turn it may be; the others keep
        theirs.
        """
        return next(iter(self.take_run(1, may=may)), None)

    def take_run(
        self,
        count_max: int,
        fits: Callable[[Thing, Thing], bool] = lambda first, other: True,
        may: Callable[[Hashable], bool] = lambda account: True,
    ) -> list[Thing]:
        """As take, with those of the account's next things that fit the first, none left out
        between them; at most so many together.
        """
        passed, found = [], list[Thing]()
        while self._turns:
            turn = heapq.heappop(self._turns)
            had, _, account = turn
            if had < self._had.get(account, 0.0):  # it was charged since
                self._enter(account)
                continue
            if not may(account):
                passed.append(turn)
                continue
            self._level = max(self._level, had)
            own = self._waiting[account]
            found.append(own.popleft())
            while own and len(found) < count_max and fits(found[0], own[0]):
                found.append(own.popleft())
            self._count -= len(found)
            if own:
                self._enter(account)
            else:
                del self._waiting[account]
            break
        for turn in passed:
            heapq.heappush(self._turns, turn)
        return found

    def is_due(self, account: Hashable) -> bool:
        """Whether the account has had less than whoever waits: it would come next."""
        while self._turns and self._turns[0][0] < self._had.get(self._turns[0][2], 0.0):
            self._enter(heapq.heappop(self._turns)[2])  # it was charged since
        return not self._turns or max(self._had.get(account, 0.0), self._level) < self._turns[0][0]

    def charge(self, account: Hashable, cost: float) -> None:
        """Count what the account took of what all share."""
        self._had[account] = max(self._had.get(account, 0.0), self._level) + cost
        if len(self._had) > self._remembered_max:
            self._had = {who: had for who, had in self._had.items() if had > self._level}
            self._remembered_max = max(_REMEMBERED_MAX, 2 * len(self._had))

    def forget(self) -> None:
        """Count nothing of what accounts have had; not while anything waits."""
        self._had.clear()
        self._level = 0.0

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()
        self._turns.clear()
        self._count = 0

    def _enter(self, account: Hashable) -> None:
        had = max(self._had.get(account, 0.0), self._level)
        heapq.heappush(self._turns, (had, next(self._order), account))
