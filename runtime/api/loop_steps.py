"""Goes through many things on an event loop without holding it: others run in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from runtime.limits import ITEMS_PER_LOOP_STEP

T = TypeVar("T")


async def in_steps(things: Iterable[T]) -> AsyncIterator[T]:
    """The things one after another; after each ITEMS_PER_LOOP_STEP of them the loop runs others.

    A thread would not do: it holds the interpreter's lock, which the loop needs.
    """
    for place, thing in enumerate(things, 1):
        yield thing
        if place % ITEMS_PER_LOOP_STEP == 0:
            await asyncio.sleep(0)
