"""Of what may take long only so much goes on at once, one of an account's, and accounts take turns
(runtime/turns.py).
"""

from __future__ import annotations

import asyncio
import time

from runtime.account_work import account_work
from runtime.errors import RateLimited, Unavailable
from runtime.limits import (
    HEAVY_CALLS_WAITING_MAX,
    HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX,
    RETRY_AFTER_SECONDS,
)
from runtime.turns import InTurns

Account = tuple[int, int]  # slot, number of the tenant


class Turns:
    """take() and leave() from one event loop. at_once: how much goes on at the same time."""

    def __init__(self, at_once: int):
        self._free = at_once
        self._busy: set[Account] = set()
        self._waiting: InTurns[tuple[Account, asyncio.Future[None]]] = InTurns()
        self._closed = False

    @property
    def depth(self) -> int:
        """How much goes on or waits."""
        return len(self._busy) + len(self._waiting)

    async def take(self, account: Account) -> None:
        """Wait for the account's turn; `leave` ends it. Raises RateLimited and Unavailable where
        too many wait, or nothing more begins.
        """
        if self._closed:
            raise _closing()
        if self._free and account not in self._busy:
            self._take(account)
            return
        if self._waiting.waiting(account) >= HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX:
            raise RateLimited(
                "This account has as many wide requests waiting as it may. Wait for their answers "
                "before sending more.",
                limit=HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX,
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        if len(self._waiting) >= HEAVY_CALLS_WAITING_MAX:
            raise Unavailable("Too many wide requests are waiting. Retry in a moment.")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(account, (account, turn))
        since = time.monotonic()
        try:
            await turn
            account_work().note(account, waited_seconds=time.monotonic() - since)
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # it had come
                self.leave(account)
            raise

    def close(self) -> None:
        """Refuse whoever waits, and whoever comes from now on; what goes on may end."""
        self._closed = True
        for _, turn in self._waiting:
            if not turn.done():
                turn.set_exception(_closing())
        self._waiting.clear()

    def _take(self, account: Account) -> None:
        self._free -= 1
        self._busy.add(account)

    def leave(self, account: Account, seconds: float = 0.0) -> None:
        """End the account's turn, which took so much of the processor, and begin the next."""
        self._free += 1
        self._busy.discard(account)
        self._waiting.charge(account, seconds)
        while self._free:
            following = self._waiting.take(lambda who: who not in self._busy)
            if following is None:
                return
            who, turn = following
            if not turn.done():
                self._take(who)
                turn.set_result(None)


def _closing() -> Unavailable:
    return Unavailable(
        "The service is shutting down. Retry in a moment with the same Idempotency-Key."
    )
