"""An event loop in which no time passes in sleep, for tests of how long somebody would wait; and of
who calls it from other threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class HastyLoop(asyncio.SelectorEventLoop):
    """pauses: seconds of each asyncio.sleep, which ends at once. called: set when another thread
    has handed something in.

    Time limits stay what they are: asyncio.timeout does not sleep.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self.called = threading.Event()

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        self.pauses.append(delay)
        return super().call_later(0, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = super().call_soon_threadsafe(callback, *args, context=context)
        self.called.set()
        return handle


def run_hastily(work: Coroutine[Any, Any, Any]) -> tuple[Any, list[float]]:
    """What it returns, and how long it slept."""
    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        return runner.run(work), runner.get_loop().pauses


async def turns_of_others(work: Coroutine[Any, Any, Any]) -> tuple[Any, int]:
    """What it returns or raises, and how often another task of the loop had its turn meanwhile."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    (ended,) = await asyncio.gather(work, return_exceptions=True)
    beside.cancel()
    return ended, turns
