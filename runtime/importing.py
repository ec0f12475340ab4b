"""Importing a lot at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Nobody looks for garbage in what the block imports, since it stays: to look again and again
    is a sixth of a start. Nor does anybody afterwards, when all of it would count as new.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.enable()
