"""How memories go: one, some, any number, or by their own expiry.

What is deleted is out of every read when the transaction commits. Some memories (a bulk delete) are
removed on the spot. Any number of them (all, or a dropped collection) are hidden at once by one
bitmap in `memories_hidden`, and removed in bounded steps by background jobs. A memory past its
`expires_at` needs neither: reads go by the time, and the job `memories.expire` follows a minute
later.

Removal takes the row, its id, history, features, bitmaps, postings and vector, and emits
memory.deleted, in one transaction. The tables are those of plugins/memories/rows.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyroaring import BitMap

from plugins.collections import Sweep, adjust_count
from plugins.memories import passages
from plugins.memories.limits import MEMORIES_SWEPT_PER_STEP
from plugins.memories.neighbours import unlink
from plugins.memories.room import count_out
from plugins.memories.rows import (
    MEMORIES,
    MEMORIES_HIDDEN,
    MEMORY_ALARM,
    MEMORY_DELETED,
    MEMORY_EXPIRY,
    MEMORY_FEATURES,
    MEMORY_FIELDS,
    MEMORY_HISTORY,
    MEMORY_IDS,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    TABLES,
    HiddenRow,
    MemoryRow,
)
from plugins.memories.store import facts_resting_on, ordinals_by_entry, set_alarm
from plugins.memories.vectors import forget_vectors
from runtime.api.context import WriteContext
from runtime.api.jobs import Again
from runtime.timestamps import iso


def delete_memories(ctx: WriteContext, rows: Sequence[MemoryRow]) -> None:
    """Delete memories that can be read now, with everything derived from them, the memories that
    rest on them among it.
    """
    rows = [*rows, *_resting_on(ctx, rows)]
    _count_out_of_collections(ctx, rows)
    _remove(ctx, [(row, ctx.now) for row in rows])


def _resting_on(ctx: WriteContext, rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """The further memories that can be read now and rest on these."""
    given = {row.ordinal for row in rows}
    resting = (fact for row in rows for fact in facts_resting_on(ctx, row))
    return list({fact.ordinal: fact for fact in resting if fact.ordinal not in given}.values())


def _count_out_of_collections(ctx: WriteContext, rows: Iterable[MemoryRow]) -> None:
    for collection_id, count in Counter(row.collection_id for row in rows).items():
        adjust_count(ctx, collection_id, memories=-count)


def remove_unreadable(ctx: WriteContext, rows: Sequence[MemoryRow]) -> None:
    """Remove memories at once that are hidden or have expired, and wait for a job: their ids are
    free from now on.
    """
    wanted = BitMap(row.ordinal for row in rows)
    at: dict[int, int] = {}
    for (cause, number), hidden in list(ctx[MEMORIES_HIDDEN].scan()):
        ordinals = BitMap.deserialize(hidden.ordinals)
        if mine := ordinals & wanted:
            at |= dict.fromkeys(mine, hidden.at)
            _put_hidden(ctx, cause, number, ordinals - mine, hidden.at)
    _count_out_of_collections(ctx, [row for row in rows if row.ordinal not in at])
    _remove(ctx, [(row, at.get(row.ordinal, row.expires_at or ctx.now)) for row in rows])


def hide(ctx: WriteContext, cause: str, number: int, ordinals: BitMap) -> None:
    """Take any number of memories out of every read at once; `sweep` then removes them. Counts are
    the caller's business.
    """
    if not ordinals:
        return
    ordinals.run_optimize()
    ctx[MEMORIES_HIDDEN].put((cause, number), HiddenRow(ordinals.serialize(), ctx.now))


def sweep(ctx: WriteContext, cause: str, number: int, rows_max: int) -> int:
    """Remove up to `rows_max` hidden memories; -> how many. Fewer than rows_max means none are
    left.
    """
    hidden = ctx[MEMORIES_HIDDEN].get(cause, number)
    if hidden is None:
        return 0
    ordinals = BitMap.deserialize(hidden.ordinals)
    portion = ordinals[:rows_max]
    found = ctx[MEMORIES].get_many([(ordinal,) for ordinal in portion])
    rows = [row for row in found if row is not None]
    further = _resting_on(ctx, rows)
    _count_out_of_collections(ctx, further)
    _remove(ctx, [(row, hidden.at) for row in (*rows, *further)])
    _put_hidden(ctx, cause, number, ordinals - portion, hidden.at)
    return len(portion)


def _put_hidden(ctx: WriteContext, cause: str, number: int, left: BitMap, at: int) -> None:
    if left:
        ctx[MEMORIES_HIDDEN].put((cause, number), HiddenRow(left.serialize(), at))
    else:
        ctx[MEMORIES_HIDDEN].delete(cause, number)


def hide_collections(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: the members of dropped collections are out of every read from this transaction
    on.
    """
    fields = ctx.index(MEMORY_FIELDS)
    for number in data["numbers"]:
        hide(ctx, "collection", number, fields.of("collection", number))


def sweep_collection(
    ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str
) -> None:
    """Subscriber: one step of removing a dropped collection's members. A step as large as ours
    leaves no allowance for others.
    """
    step = min(data.rows_left, MEMORIES_SWEPT_PER_STEP)
    if step > 0:
        removed = sweep(ctx, "collection", data.number, step)
        data.erased("memories", removed)
        if removed == step:
            data.rows_left = 0


def hide_all(ctx: WriteContext, ordinals: BitMap) -> None:
    """Delete any number of memories that can be read now: hide them, remove the first of them,
    leave the rest to a job.
    """
    fields = ctx.index(MEMORY_FIELDS)
    for number, count in fields.values("collection", limit=len(ordinals), within=ordinals):
        member = ctx[MEMORIES].row((fields.of("collection", number) & ordinals).min())
        adjust_count(ctx, member.collection_id, memories=-count)
    cause = ctx.next_ordinal("memories_hidden")
    hide(ctx, "delete", cause, ordinals)
    if sweep(ctx, "delete", cause, MEMORIES_SWEPT_PER_STEP) == MEMORIES_SWEPT_PER_STEP:
        ctx.enqueue("memories.sweep", {"number": cause, "deleted": MEMORIES_SWEPT_PER_STEP})


def sweep_deleted(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `memories.sweep`: one step of removing what hide_all hid."""
    removed = sweep(ctx, "delete", payload["number"], MEMORIES_SWEPT_PER_STEP)
    done = {**payload, "deleted": payload["deleted"] + removed}
    return Again(done) if removed == MEMORIES_SWEPT_PER_STEP else {"deleted": done["deleted"]}


def sweep_expired(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `memories.expire`: remove what expired, in bounded steps, then set the alarm for what
    is next.
    """
    alarm = ctx[MEMORY_ALARM].get()
    if alarm is None or int.from_bytes(alarm, "big") != payload["at"]:
        return {"deleted": 0}  # another job watches an earlier moment
    due = [
        ordinal
        for _, ordinal in ctx[MEMORY_EXPIRY].keys(
            before=(ctx.now + 1,), limit=MEMORIES_SWEPT_PER_STEP
        )
    ]
    rows = [row for ordinal in due if (row := ctx[MEMORIES].get(ordinal)) is not None]
    hidden = {row.ordinal for row in rows} & {
        o for _, row in ctx[MEMORIES_HIDDEN].scan() for o in BitMap.deserialize(row.ordinals)
    }
    further = _resting_on(ctx, rows)
    _count_out_of_collections(ctx, [*(row for row in rows if row.ordinal not in hidden), *further])
    over = [(row, row.expires_at) for row in rows if row.expires_at is not None]
    _remove(ctx, [*over, *((row, ctx.now) for row in further)])
    if len(due) == MEMORIES_SWEPT_PER_STEP:
        return Again(payload)
    ctx[MEMORY_ALARM].delete()
    following = ctx[MEMORY_EXPIRY].first()
    if following is not None:
        set_alarm(ctx, following[0][0])
    return {"deleted": len(rows)}


def _remove(ctx: WriteContext, doomed: Sequence[tuple[MemoryRow, int]]) -> None:
    """Remove the row, id, history, features, bitmaps, postings and vector of each memory, then emit
    their events, so that whoever hears of one finds none of them. With each comes when it ceased to
    be readable.
    """
    ctx.index(MEMORY_TEXT).remove_many([row.ordinal for row, _ in doomed if row.searchable])
    fields = ctx.index(MEMORY_FIELDS)
    for entry, ordinals in ordinals_by_entry(ctx, [row for row, _ in doomed]).items():
        fields.remove_each(ordinals, *entry)
    for row, _ in doomed:
        if row.searchable:
            forget_vectors(ctx, row)
        if row.expires_at is not None:
            ctx[MEMORY_EXPIRY].delete(row.expires_at, row.ordinal)
        count_out(ctx, row)
        ctx[MEMORY_HISTORY].delete_prefix(row.id)
        unlink(ctx, row.ordinal)
        ctx[MEMORY_IDS].delete(row.id)
        ctx[MEMORIES].delete(row.ordinal)
    for row, at in doomed:
        data = {
            "id": row.id,
            "version": row.version + 1,
            "collection_id": row.collection_id,
            "deleted_at": iso(at),
        }
        ctx.emit(MEMORY_DELETED, data, row.id)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all memories of the tenant. Counts of rows by table, of documents or vectors by
    index.
    """
    counts = {table.name: ctx[table].delete_prefix() for table in TABLES}
    for table in MEMORY_FIELDS.tables:
        counts[table.name] = ctx[table].delete_prefix()
    return counts | {
        index.name: ctx.index(index).clear()
        for index in (
            MEMORY_TEXT,
            MEMORY_VECTORS,
            MEMORY_WORDS,
            MEMORY_FEATURES,
            *passages.INDEXES,
        )
    }
