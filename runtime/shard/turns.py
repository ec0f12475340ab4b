"""Whose turn it is: of what may take long only so much goes on at once, one of an account's, and
accounts take turns.
"""

from __future__ import annotations

import asyncio
from collections import deque

from runtime.errors import RateLimited, Unavailable
from runtime.limits import (
    HEAVY_CALLS_WAITING_MAX,
    HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX,
    RETRY_AFTER_SECONDS,
)

Account = tuple[int, int]  # slot, number of the tenant


class Turns:
    """take() and leave() from one event loop. at_once: how much goes on at the same time."""

    def __init__(self, at_once: int):
        self._free = at_once
        self._busy: set[Account] = set()
        self._waiting: dict[Account, deque[asyncio.Future[None]]] = {}  # in the order of turns
        self._waiting_count = 0
        self._closed = False

    @property
    def depth(self) -> int:
        """How much goes on or waits."""
        return len(self._busy) + self._waiting_count

    async def take(self, account: Account) -> None:
        """Wait for the account's turn; `leave` ends it. Raises RateLimited and Unavailable where
        too many wait, or nothing more begins.
        """
        if self._closed:
            raise _closing()
        if self._free and account not in self._busy:
            self._take(account)
            return
        own = self._waiting.setdefault(account, deque())
        if len(own) >= HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX:
            raise RateLimited(
                "This account has as many wide requests waiting as it may. Wait for their answers "
                "before sending more.",
                limit=HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX,
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        if self._waiting_count >= HEAVY_CALLS_WAITING_MAX:
            raise Unavailable("Too many wide requests are waiting. Retry in a moment.")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.append(turn)
        self._waiting_count += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # it had come
                self.leave(account)
            raise

    def close(self) -> None:
        """Refuse whoever waits, and whoever comes from now on; what goes on may end."""
        self._closed = True
        for turns in self._waiting.values():
            for turn in turns:
                if not turn.done():
                    turn.set_exception(_closing())
        self._waiting.clear()
        self._waiting_count = 0

    def _take(self, account: Account) -> None:
        self._free -= 1
        self._busy.add(account)

    def leave(self, account: Account) -> None:
        """End the account's turn, and begin the next account's."""
        self._free += 1
        self._busy.discard(account)
        for following, turns in list(self._waiting.items()):
            if following in self._busy:
                continue
            while turns and (turn := turns.popleft()):
                self._waiting_count -= 1
                if not turn.done():
                    self._take(following)
                    turn.set_result(None)
                    break
            # Its next turn comes behind those of the others.
            del self._waiting[following]
            if turns:
                self._waiting[following] = turns
            if not self._free:
                return


def _closing() -> Unavailable:
    return Unavailable(
        "The service is shutting down. Retry in a moment with the same Idempotency-Key."
    )
