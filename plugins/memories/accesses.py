"""How often searches returned a memory, and when one last did.

A search only counts what it returned (`note_accesses`); with the usage of every tenth second the
counts of all searches are written, into the rows of the memories that are still there (`count`). It
makes no version and no webhook hears of it. A process that is killed takes its last ten seconds'
counts with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from plugins.memories.rows import MEMORIES
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Event, View

ACCESSES = "memories.accesses"


class Accessed(View):
    """Memories were returned by searches."""

    memories: int


MEMORIES_ACCESSED = Event("internal.memories_accessed", Accessed)


def note_accesses(ctx: ReadContext, ordinals: Iterable[int]) -> None:
    """Count the memories of an answer."""
    ctx.count_accesses(ACCESSES, ordinals)


def count(ctx: WriteContext, accesses: Mapping[int, tuple[int, int]]) -> None:
    """Write the counts into the memories' rows: ordinal -> (how often, last in Unix
    milliseconds).
    """
    for row in ctx[MEMORIES].get_many([(ordinal,) for ordinal in sorted(accesses)]):
        if row is not None:
            number, last = accesses[row.ordinal]
            later = max(last, row.last_accessed_at or 0)
            ctx[MEMORIES].put(
                (row.ordinal,),
                msgspec.structs.replace(
                    row, access_count=row.access_count + number, last_accessed_at=later
                ),
            )
    ctx.emit(MEMORIES_ACCESSED, {"memories": len(accesses)}, "")
