"""How often searches returned a memory, and when one last did.

A search only notes what it returned (`noted`); with the usage of every tenth second the notes of all searches are written, into
the rows of the memories that are still there (`count`). It makes no version and tells no webhook. A process that is killed takes
its last ten seconds' notes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from plugins.memory_store import MEMORIES
from runtime.operation import Event, ReadContext, View, WriteContext

ACCESSES = "memories.accesses"


class Accessed(View):
    """Memories were returned by searches."""

    memories: int


MEMORIES_ACCESSED = Event("internal.memories_accessed", Accessed)


def noted(ctx: ReadContext, ordinals: Iterable[int]) -> None:
    """These memories are in the answer."""
    ctx.tally(ACCESSES, ordinals)


def count(ctx: WriteContext, accesses: Mapping[int, tuple[int, int]]) -> None:
    """ordinal -> (how often, last in Unix milliseconds)"""
    for row in ctx[MEMORIES].get_many([(ordinal,) for ordinal in sorted(accesses)]):
        if row is not None:
            number, last = accesses[row.ordinal]
            later = max(last, row.last_accessed_at or 0)
            ctx[MEMORIES].put((row.ordinal,), msgspec.structs.replace(row, access_count=row.access_count + number, last_accessed_at=later))
    ctx.emit(MEMORIES_ACCESSED, {"memories": len(accesses)}, "")
