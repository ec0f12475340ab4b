"""What goes when a memory goes: what only it supported, what it mentioned, and what others were
understood to mention because of it.
"""

from __future__ import annotations

import msgspec

from plugins.graph.limits import MENTIONS_MOVED_MAX
from plugins.graph.rows import (
    CLAIM_FIELDS,
    CLAIMED,
    ENTITIES,
    ENTITY,
    ENTITY_FIELDS,
    GIVEN,
    MENTIONS,
    RELATIONSHIP,
    RELATIONSHIPS,
    SOURCES,
    EntityRow,
)
from plugins.graph.store import (
    Sight,
    counted,
    delete_entity,
    delete_relationship,
    note_bound,
    put_claim,
    put_entity,
)
from plugins.graph.unread import read_again
from plugins.memories import find_row, find_rows_at
from runtime.api.context import WriteContext


def forget_memory(ctx: WriteContext, memory_id: str) -> None:
    """Take away what only this memory supported or mentioned, and the ends of claims that only it
    knew of. One that is still stored is read again, and keeps what the API said of it.
    """
    still = find_row(ctx, memory_id)
    claims, entities = [], []
    for key, raw in list(ctx[SOURCES].scan(memory_id)):
        (claims if key[1] == RELATIONSHIP else entities).append(
            (key[2], int.from_bytes(raw, "big"))
        )
        ctx[SOURCES].delete(*key)
    rows = [ctx[RELATIONSHIPS].get(ordinal) for ordinal, _ in claims]
    entered = {
        (row.source, row.type)
        for row, (_, memory) in zip(rows, claims, strict=True)
        if still is not None and row is not None and row.is_entered and memory in row.sources
    }
    for ordinal, memory in claims:
        row = ctx[RELATIONSHIPS].get(ordinal)
        if row is None:
            continue
        if still is not None and (
            row.is_entered
            if memory in row.sources
            else (row.source, row.type) in entered  # what was entered ended it
        ):
            note_bound(ctx, row, still)
            continue
        ends = [end for end in row.ends if end.memory_id != memory_id]
        left = [source for source in row.sources if source != memory]
        if left or row.asked_for or memory not in row.sources:
            named_source = None if row.source_memory_id == memory_id else row.source_memory_id
            narrowed = (
                None
                if row.narrowed is not None and row.narrowed.memory_id == memory_id
                else row.narrowed
            )
            put_claim(
                ctx,
                msgspec.structs.replace(
                    row, ends=ends, narrowed=narrowed, sources=left, source_memory_id=named_source
                ),
            )
        else:
            delete_relationship(ctx, row)
    for ordinal, memory in entities:
        row = ctx[ENTITIES].get(ordinal)
        if row is None:
            continue
        if still is not None and ctx[MENTIONS].get(ordinal, memory) == GIVEN:
            ctx[SOURCES].put((memory_id, ENTITY, ordinal), memory.to_bytes(4, "big"))
            continue
        if any(memory in given for given in row.read_aliases.values()):
            _part(ctx, row)
            row = ctx[ENTITIES].get(ordinal)
        if row is not None:
            forget_mention(ctx, row, memory)
    if still is not None:
        read_again(ctx, still.ordinal)


def _part(ctx: WriteContext, row: EntityRow) -> None:
    """Have all that were read to mention an entity read again, since a memory that gave it a
    further name goes: what was one by that name may be several.
    """
    put_entity(ctx, msgspec.structs.replace(row, read_aliases={}), row)
    keys = [
        memory
        for (_, memory), taken_for in ctx[MENTIONS].scan(row.ordinal, limit=MENTIONS_MOVED_MAX)
        if taken_for not in (CLAIMED, GIVEN)
    ]
    for memory in find_rows_at(ctx, keys):
        present = ctx[ENTITIES].get(row.ordinal)
        if present is None:
            return
        ctx[SOURCES].delete(memory.id, ENTITY, row.ordinal)
        forget_mention(ctx, present, memory.ordinal)
        read_again(ctx, memory.ordinal)


def forget_mention(ctx: WriteContext, row: EntityRow, memory: int) -> None:
    """A memory mentions an entity no more; one that nothing mentions or relates goes."""
    taken_for = ctx[MENTIONS].get(row.ordinal, memory)
    if taken_for is None:
        return
    ctx[MENTIONS].delete(row.ordinal, memory)
    if row.mentions > 1 or row.asked_for or ctx.index(CLAIM_FIELDS).of("end", row.ordinal):
        after = msgspec.structs.replace(row, mentions=max(0, row.mentions - 1))
        put_entity(ctx, counted(after, taken_for, -1) if taken_for else after, row)
    else:
        delete_entity(ctx, row)


def forget_collection(ctx: WriteContext, number: int, entities_max: int) -> int:
    """Take away the entities that were made in a dropped collection, at most so many of them; how
    many they were. One that memories elsewhere mention too stays for as long as these do.
    """
    sight = Sight.of(ctx)
    doomed = ctx.index(ENTITY_FIELDS).of("collection", number)[:entities_max]
    for ordinal in doomed:
        row = ctx[ENTITIES].row(ordinal)
        if sight.sees(row):
            stays = msgspec.structs.replace(row, asked_for=False, collection_id=None, number=None)
            put_entity(ctx, stays, row)
        else:
            delete_entity(ctx, row)
    return len(doomed)
