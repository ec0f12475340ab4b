"""How often somebody may guess at a secret of an account: failures alone are counted, by account
and by network.

The first few failures cost nothing. Each further one makes the next attempt wait, twice as long as
the one before, up to a minute; a success forgets them all, and so does an hour without a failure.
So one network gets some seventy guesses an hour at one account, and the account's owner, who comes
from another one, waits for nobody.

An attempt counts as a failure from its beginning on, until it is known to be none: otherwise any
number of guesses could be under way at once. What is remembered lives in memory: a restart forgets
it.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from runtime.errors import RateLimited
from runtime.limits import (
    GUESSED_AT_ACCOUNTS_MAX,
    GUESSES_AT_ONCE,
    GUESSES_FORGOTTEN_SECONDS,
)

Guessed = tuple[object, ...]  # an account, and the network that guesses at it


@dataclass(slots=True)
class _Failures:
    """number in a row; at: when the last one began; until: when the next attempt may begin."""

    number: int = 0
    at: float = 0.0
    until: float = 0.0


class Guess:
    """One attempt under way; it counts as a failure unless `right` or `take_back` is called."""

    __slots__ = ("_guesses", "_key")

    def __init__(self, guesses: Guesses, key: Guessed):
        self._guesses, self._key = guesses, key

    def right(self) -> None:
        """Take it for no guess: forget the failures before it."""
        self._guesses.forget(self._key)

    def take_back(self) -> None:
        """Count it not: nobody can tell whether it was a guess."""
        self._guesses.uncount(self._key)


class Guesses:
    """Not thread-safe: the shard's event loop alone asks.

    wait_seconds_max  the longest wait; 0 counts nothing
    """

    def __init__(self, clock: Callable[[], float], wait_seconds_max: float):
        self._clock, self._wait_seconds_max = clock, wait_seconds_max
        self._failures: OrderedDict[Guessed, _Failures] = OrderedDict()

    def begin(self, key: Guessed) -> Guess | None:
        """Count an attempt. Raises RateLimited where it comes too soon."""
        if not self._wait_seconds_max:
            return None
        now = self._clock()
        known = self._failures.get(key)
        if known is None or known.at + GUESSES_FORGOTTEN_SECONDS <= now:
            known = self._failures[key] = _Failures()
            if len(self._failures) > GUESSED_AT_ACCOUNTS_MAX:
                self._failures.popitem(last=False)
        if now < known.until:
            wait = max(1, math.ceil(known.until - now))
            raise RateLimited(
                f"Too many attempts at this account failed. Retry in {wait} s.",
                limit=GUESSES_AT_ONCE,
                retry_after_seconds=wait,
            )
        self._failures.move_to_end(key)
        known.number, known.at = known.number + 1, now
        beyond = known.number - GUESSES_AT_ONCE
        if beyond >= 0:
            known.until = now + min(2.0 ** min(beyond, 32), self._wait_seconds_max)
        return Guess(self, key)

    def forget(self, key: Guessed) -> None:
        self._failures.pop(key, None)

    def uncount(self, key: Guessed) -> None:
        known = self._failures.get(key)
        if known is not None:
            known.number, known.until = known.number - 1, 0.0
            if known.number <= 0:
                del self._failures[key]
