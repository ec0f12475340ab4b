"""Goes through many things on an event loop without holding it: others run in between.

However many do so at once, one of them has a piece of each of the loop's rounds, and accounts take
turns (runtime/turns.py). Were each to go on in every round, twenty long bodies would make a round
of a fraction of a millisecond one of ten, and whoever is answered after a few rounds would wait for
all of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Hashable, Iterable
from typing import TypeVar
from weakref import WeakKeyDictionary

from runtime.limits import ITEMS_PER_LOOP_STEP, LOOP_STEP_SECONDS
from runtime.turns import InTurns, account_in_turn

T = TypeVar("T")


class _Rounds:
    """Those of one event loop, each of which lets one piece go on."""

    def __init__(self) -> None:
        self._waiting: InTurns[asyncio.Future[None]] = InTurns()
        self._is_due = False

    async def take(self, account: Hashable) -> None:
        """Wait for the account's next piece."""
        loop = asyncio.get_running_loop()
        piece = loop.create_future()
        self._waiting.put(account, piece)
        if not self._is_due:
            self._is_due = True
            loop.call_soon(self._next)
        await piece

    def _next(self) -> None:
        while (piece := self._waiting.take()) is not None and piece.done():
            pass  # whoever waited has left
        if piece is not None:
            piece.set_result(None)
        self._is_due = bool(self._waiting)
        if self._is_due:
            asyncio.get_running_loop().call_soon(self._next)


_ROUNDS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Rounds] = WeakKeyDictionary()


async def in_steps(things: Iterable[T]) -> AsyncIterator[T]:
    """The things one after another; after each ITEMS_PER_LOOP_STEP of them, or LOOP_STEP_SECONDS,
    the loop runs others.

    A thread would not do: it holds the interpreter's lock, which the loop needs.
    """
    loop, account = asyncio.get_running_loop(), account_in_turn()
    rounds = _ROUNDS.get(loop) or _ROUNDS.setdefault(loop, _Rounds())
    left, began = ITEMS_PER_LOOP_STEP, time.monotonic()
    for thing in things:
        yield thing
        left -= 1
        if not left or time.monotonic() - began >= LOOP_STEP_SECONDS:
            await rounds.take(account)
            left, began = ITEMS_PER_LOOP_STEP, time.monotonic()
