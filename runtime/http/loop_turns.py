"""Whose request goes on next, where more of them have come to a gateway's event loop than it can
answer at once.

A loop runs what is ready in the order in which it came. So an account that has thirty requests
under way, each sent as soon as the one before is answered, would have thirty of every thirty-one
steps, and whoever asks once would wait for all of them. Here a request that has come waits for a
turn of its account's (runtime/turns.py): a slice of the loop's time is given away, then the loop
looks who else has come. Whoever has had less than those that wait goes on at once.

Where shards work in the same process, their threads need the interpreter's lock, and a loop that
never rests leaves them little of it. So while they have calls, the loop rests after a while for as
long again.

As long as one account asks alone, or the loop keeps up, nobody waits for a turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable

from runtime.limits import (
    CROWDED_SECONDS,
    LOOP_REST_SECONDS,
    LOOP_SLICE_SECONDS,
    LOOP_SLICE_SECONDS_MAX,
)
from runtime.loop_stalls import Label
from runtime.turns import Crowd, InTurns

_SMOOTHING = 0.05  # of the mean, by each request


class RequestLabel(Label):
    """Of a request: whose turn it takes, once that is known."""

    __slots__ = ("account",)

    def __init__(self, operation: str):
        super().__init__(operation)
        self.account: int | str | None = None  # a slot, or the address of who shows no credential


class LoopTurns:
    """From one event loop: turn() when a request has come, ended() when it is answered. must_rest:
    whether threads of this process have calls.
    """

    def __init__(self, must_rest: Callable[[], bool] = lambda: False) -> None:
        self._waiting: InTurns[tuple[Hashable, asyncio.Future[None]]] = InTurns()
        self._must_rest = must_rest
        self._crowd = Crowd()
        self._counted_until = self._slice_began = float("-inf")  # seconds of the clock
        self._is_open = False  # a slice, whose end is noted for the loop's next round
        self._mean = LOOP_SLICE_SECONDS  # of what a request takes
        self._given = 0.0  # since the loop rested, seconds

    def turn(self, account: Hashable) -> Awaitable[None] | None:
        """What to wait for before the request goes on; None: nothing."""
        self._crowd.asked(account)
        waiting = self._waiting
        if not waiting and not self._crowd.is_here():
            return None
        now = time.monotonic()
        if not self._is_open:
            self._begin(now)
        if waiting.is_due(account) if waiting else now - self._slice_began < LOOP_SLICE_SECONDS:
            if now < self._counted_until:
                waiting.charge(account, self._mean)
            return None
        if now > self._counted_until:  # until now nobody took what another waited for
            waiting.forget()
        self._counted_until = now + CROWDED_SECONDS
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.put(account, (account, turn))
        return turn

    def ended(self, account: Hashable, seconds: float) -> None:
        """Note what the request took of the loop's time: meanwhile it was counted as the mean."""
        if time.monotonic() < self._counted_until:
            self._waiting.charge(account, seconds - self._mean)
        self._mean += _SMOOTHING * (seconds - self._mean)

    def _begin(self, now: float) -> None:
        self._is_open, self._slice_began = True, now
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        """A slice is over, and the loop has looked who came: begin the next for those that wait."""
        self._is_open = False
        if not self._waiting:
            return
        if self._given > LOOP_REST_SECONDS and self._must_rest():
            self._given, self._is_open = 0.0, True
            self._slice_began = time.monotonic() + LOOP_REST_SECONDS  # a rest is no round
            asyncio.get_running_loop().call_later(LOOP_REST_SECONDS, self._end)
            return
        # A round that others made long lets more go on: one a round would wait for all of those.
        round_seconds = time.monotonic() - self._slice_began
        given, most = 0.0, min(max(LOOP_SLICE_SECONDS, round_seconds / 2), LOOP_SLICE_SECONDS_MAX)
        while given < most and (following := self._waiting.take()) is not None:
            account, turn = following
            if not turn.done():  # or its client has left
                turn.set_result(None)
            self._waiting.charge(account, self._mean)
            given += self._mean
        self._given += given
        self._begin(time.monotonic())  # which ends after the steps of those that go on now
