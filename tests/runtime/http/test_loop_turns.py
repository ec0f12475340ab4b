"""Whose request goes on next at a gateway whose loop is full."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import pytest

from runtime.http.loop_turns import LoopTurns
from runtime.limits import LOOP_REST_SECONDS

STEP_SECONDS = 0.002  # of the loop, for one request: longer than a slice


class Loop:
    """Requests at a loop, each a step of it, and the order in which they went on."""

    def __init__(self) -> None:
        self.turns = LoopTurns(lambda: self.has_calls)
        self.has_calls = False
        self.order: list[str] = []

    async def request(self, account: str) -> None:
        turn = self.turns.turn(account)
        if turn is not None:
            await turn
        self.order.append(account)
        began = time.perf_counter()
        while time.perf_counter() - began < STEP_SECONDS:
            pass
        self.turns.ended(account, STEP_SECONDS)

    async def flood(self, account: str, count: int) -> list[asyncio.Task[None]]:
        """So many at once, of which the loop has begun."""
        flood = [asyncio.create_task(self.request(account)) for _ in range(count)]
        await asyncio.sleep(0)
        return flood


def test_whoever_asks_once_goes_before_those_of_another_that_wait() -> None:
    async def work() -> None:
        loop = Loop()
        await loop.request("ada")
        flood = await loop.flood("eve", 20)
        await asyncio.sleep(0)
        before = len(loop.order)
        await loop.request("ada")
        assert loop.order[before] == "ada" and before < 10
        await asyncio.gather(*flood)
        assert loop.order.count("eve") == 20

    asyncio.run(work())


def test_two_that_flood_have_half_each() -> None:
    async def work() -> None:
        loop = Loop()
        await loop.request("ada")
        await asyncio.gather(*(await loop.flood("eve", 40)), *(await loop.flood("ada", 10)))
        del loop.order[0]
        until = len(loop.order) - loop.order[::-1].index("ada")
        since = loop.order.index("ada")
        assert 8 <= loop.order[since:until].count("eve") <= 12

    asyncio.run(work())


def test_where_others_make_the_rounds_long_more_go_on_in_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were it one a round, the last of thirty would wait for thirty pieces of what others do."""
    monkeypatch.setattr(sys.modules[__name__], "STEP_SECONDS", 0.0002)

    async def work() -> None:
        loop, rounds, ended = Loop(), 0, False

        async def busy_otherwise() -> None:
            nonlocal rounds
            while not ended:
                rounds += 1
                began = time.perf_counter()
                while time.perf_counter() - began < 0.003:
                    pass
                await asyncio.sleep(0)

        for _ in range(100):  # so that it knows what a request takes
            await loop.request("ada")
        other = asyncio.create_task(busy_otherwise())
        await asyncio.gather(*(loop.request(f"one of many {number}") for number in range(30)))
        ended = True
        await other
        assert rounds < 10

    asyncio.run(work())


def test_one_that_is_alone_waits_for_no_turn() -> None:
    turns = LoopTurns()
    assert [turns.turn("eve") for _ in range(100)] == [None] * 100


def test_nobody_waits_while_the_loop_keeps_up() -> None:
    async def work() -> None:
        turns = LoopTurns()
        for _ in range(20):
            for account in ("eve", "ada"):
                assert turns.turn(account) is None
                turns.ended(account, 0.0)
                await asyncio.sleep(0)
                await asyncio.sleep(0)

    asyncio.run(work())


def test_the_loop_rests_while_threads_of_its_process_have_calls() -> None:
    async def work() -> None:
        loop, running, rested = Loop(), asyncio.get_running_loop(), list[float]()
        call_later = running.call_later

        def noting(delay: float, *others: Any) -> asyncio.TimerHandle:
            rested.append(delay)
            return call_later(delay, *others)

        running.call_later = noting  # type: ignore[method-assign]
        await loop.request("ada")
        await asyncio.gather(*(await loop.flood("eve", 20)))
        assert not rested, "nobody waits for the interpreter"
        loop.has_calls = True
        await asyncio.gather(*(await loop.flood("eve", 20)))
        assert set(rested) == {LOOP_REST_SECONDS}

    asyncio.run(work())


def test_one_that_left_takes_no_turn_of_the_others() -> None:
    async def work() -> None:
        loop = Loop()
        await loop.request("ada")
        flood = await loop.flood("eve", 10)
        for task in flood[5:]:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        assert loop.order.count("eve") == 5
        assert all(task.cancelled() for task in flood[5:])

    asyncio.run(work())
