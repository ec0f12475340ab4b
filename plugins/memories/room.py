"""What an account's memories take of the room of its tier: their number, and the bytes of what they
say and once said.

The bytes are those of `stored_bytes`, of the current version and of each earlier one, as long as
the row is there. Their sum changes in the transaction that changes a row. An account whose memories
are older than the sum has it begun by its next write: the sum then knows which ordinals it lacks,
and the job `memories.measure` takes those in, some at a time.

memory_bytes  ()  -> the sum, and from and to which ordinal memories are still to be taken in: 8, 4
                     and 4 bytes, big endian
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from plugins.collections import member_totals
from plugins.memories.limits import (
    MEMORIES_KEPT,
    MEMORIES_MEASURED_PER_STEP,
    TEXT_BYTES_KEPT,
)
from plugins.memories.rows import (
    MEMORIES,
    MEMORY_BYTES,
    MEMORY_HISTORY,
    SCOPES,
    Draft,
    MemoryRow,
    VersionRow,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.figures import estimated_bytes
from runtime.api.jobs import Again
from runtime.api.tiers import check_room, records_limit

MEASURE_JOB = "memories.measure"
_SAID = ("content", "title", "tags", "source", "source_reference", "speaker", "metadata", *SCOPES)
_STORED = struct.Struct(">qII")
_encode = msgspec.msgpack.Encoder().encode


class Measured(NamedTuple):
    """total: bytes; those of the memories from `start` to before `end` are still to be added."""

    total: int
    start: int = 0
    end: int = 0

    def lacks(self, ordinal: int) -> bool:
        return self.start <= ordinal < self.end


def stored_bytes(row: MemoryRow) -> int:
    """Bytes of what a memory says: its text, and what its author gave with it."""
    return len(_encode([getattr(row, name) for name in _SAID]))


def version_bytes(version: VersionRow) -> int:
    return len(_encode((version.content, version.metadata, version.reason)))


def measured(ctx: ReadContext) -> Measured | None:
    """The sum as it is kept; None for an account that has not begun one."""
    raw = ctx[MEMORY_BYTES].get()
    return None if raw is None else Measured(*_STORED.unpack(raw))


def text_bytes(ctx: ReadContext) -> int:
    """The sum; of an account that has not begun one, an estimate."""
    known = measured(ctx)
    if known is not None:
        return known.total
    count = member_totals(ctx)[0]
    return estimated_bytes(lambda limit: ctx[MEMORIES].sizes(limit=limit), count) if count else 0


# --- checking -------------------------------------------------------------------------------------


def check_drafts(ctx: ReadContext, drafts: Sequence[Draft], stored: int) -> None:
    """Raise PermissionDenied where the tier has no room for these memories. stored: how many of
    this transaction their collections do not count yet.
    """
    _check_number(ctx, stored + len(drafts))
    if records_limit(ctx.settings, ctx.principal.tier, TEXT_BYTES_KEPT) is not None:
        said = ([draft.content, *map(draft.fields.get, _SAID[1:])] for draft in drafts)
        check_bytes(ctx, sum(len(_encode(each)) for each in said))


def check_contents(ctx: ReadContext, contents: Sequence[str]) -> None:
    """Raise PermissionDenied where the tier has certainly no room for memories of these contents,
    for whoever is to know it before there are drafts of them.
    """
    _check_number(ctx, len(contents))
    check_bytes(ctx, sum(len(content.encode()) for content in contents))


def _check_number(ctx: ReadContext, more: int) -> None:
    # Counted only where the last ordinal does not show already that there is room.
    tier = ctx.principal.tier
    limit = records_limit(ctx.settings, tier, MEMORIES_KEPT)
    last = next(iter(ctx[MEMORIES].keys(reverse=True, limit=1)), None)
    if limit is not None and (last is None or last[0] + 1 + more > limit):
        check_room(ctx.settings, tier, MEMORIES_KEPT, member_totals(ctx)[0], more)


def check_version(ctx: ReadContext, row: MemoryRow) -> None:
    """Raise PermissionDenied where the tier has no room for one more version of this memory, which
    keeps the one before it.
    """
    check_bytes(ctx, stored_bytes(row))


def check_bytes(ctx: ReadContext, more: int) -> None:
    """Raise PermissionDenied where the tier has no room for so many more bytes of texts."""
    tier = ctx.principal.tier
    if more > 0 and records_limit(ctx.settings, tier, TEXT_BYTES_KEPT) is not None:
        check_room(ctx.settings, tier, TEXT_BYTES_KEPT, text_bytes(ctx), more)


# --- counting -------------------------------------------------------------------------------------


def count_in(ctx: WriteContext, rows: Sequence[MemoryRow]) -> None:
    """Count memories, at least one, none of which is stored yet."""
    _add(ctx, rows[0].ordinal, sum(map(stored_bytes, rows)))


def count_rewritten(ctx: WriteContext, before: MemoryRow, after: MemoryRow) -> None:
    """Count what a memory says otherwise, before that is stored."""
    _add(ctx, before.ordinal, stored_bytes(after) - stored_bytes(before))


def count_out(ctx: WriteContext, row: MemoryRow) -> None:
    """Count a memory and its earlier versions no more, while they are still stored."""
    if measured(ctx) is not None:  # else the sum, once it is begun, never has it
        _add(ctx, row.ordinal, -_all_bytes(ctx, row))


def put_version(ctx: WriteContext, row: MemoryRow, number: int, version: VersionRow) -> None:
    """Keep an earlier version of a memory."""
    _add(ctx, row.ordinal, version_bytes(version))
    ctx[MEMORY_HISTORY].put((row.id, number), version)


def measure(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `memories.measure`: take in some of the memories that the sum lacks."""
    known = measured(ctx)
    if known is None or known.start >= known.end:
        return {}
    rows = [
        row
        for (ordinal,), row in ctx[MEMORIES].scan(
            after=(known.start - 1,) if known.start else None, limit=MEMORIES_MEASURED_PER_STEP
        )
        if known.lacks(ordinal)
    ]
    is_whole = len(rows) < MEMORIES_MEASURED_PER_STEP
    start = known.end if is_whole else rows[-1].ordinal + 1
    total = known.total + sum(_all_bytes(ctx, row) for row in rows)
    put_measured(ctx, Measured(total, start, known.end))
    return {} if is_whole else Again(payload)


def put_measured(ctx: WriteContext, known: Measured) -> None:
    ctx[MEMORY_BYTES].put((), _STORED.pack(*known))


def true_bytes(ctx: ReadContext, known: Measured) -> int:
    """What the sum is to be, from all rows that it knows."""
    return sum(_all_bytes(ctx, row) for (at,), row in ctx[MEMORIES].scan() if not known.lacks(at))


def _all_bytes(ctx: ReadContext, row: MemoryRow) -> int:
    earlier = ctx[MEMORY_HISTORY].scan(row.id) if row.version > 1 else ()
    return stored_bytes(row) + sum(version_bytes(version) for _, version in earlier)


def _add(ctx: WriteContext, ordinal: int, more: int) -> None:
    known = measured(ctx) or _begun(ctx, ordinal)
    if known.lacks(ordinal):
        put_measured(ctx, known)
    else:
        put_measured(ctx, known._replace(total=known.total + more))


def _begun(ctx: WriteContext, ordinal: int) -> Measured:
    """The sum of an account that has none, which is about to count this ordinal."""
    last = next(iter(ctx[MEMORIES].keys(reverse=True, limit=1)), None)
    if last is None:
        return Measured(0)
    ctx.enqueue(MEASURE_JOB, {})
    return Measured(0, 0, last[0] + 1)
