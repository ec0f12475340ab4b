"""What a memory was read to mention becomes rows: which entity each mention is, and what no memory
names.

An entity is found by its name, whatever its type. Where a memory names somebody who was known only
as somebody's ("Mira's sister" is Ana), both become one. What claims alone speak of, and the
memories that make them do not name, is a value ("likes | long walks"): it stands at the ends of its
claims, and is no entity; without a claim it goes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from pyroaring import BitMap

from plugins.graph.forgetting import forget_mention
from plugins.graph.limits import ALIAS_SOURCES_MAX, ALIASES_MAX, MENTIONS_MOVED_MAX
from plugins.graph.mentions import NAMELESS, Mention, Mentioned
from plugins.graph.rows import (
    CLAIM_FIELDS,
    CLAIMED,
    ENTITIES,
    ENTITY,
    MENTIONS,
    NAMES,
    SOURCES,
    EntityRow,
    normalized,
)
from plugins.graph.store import (
    delete_entity,
    mentioned,
    new_entity,
    put_entity,
)
from plugins.graph.unread import pass_over
from plugins.memories import MemoryRow, find_rows_at
from runtime.api.context import ReadContext, WriteContext


def note(ctx: WriteContext, memory: MemoryRow, read: Mentioned) -> None:
    """Store what a memory mentions."""
    rows = [_note(ctx, memory, each) for each in read.mentions]
    if read.was_read:
        _judge_claimed(ctx, memory, {row.ordinal for row in rows if row is not None})


def note_stored(ctx: WriteContext, read: Mapping[int, Mentioned]) -> None:
    """Store what memories of this transaction mention, by their ordinals, which were read before
    they were stored: the job that reads the others has nothing left to do for them.
    """
    for memory in find_rows_at(ctx, sorted(read)):
        note(ctx, memory, read[memory.ordinal])
    if read:
        pass_over(ctx, BitMap(read))


def _note(ctx: WriteContext, memory: MemoryRow, mention: Mention) -> EntityRow | None:
    """Store one mention; -> its entity, None where there is none."""
    known = _called(ctx, mention.name)
    same = [row for row in known if row.normalized == normalized(mention.name)] or known
    if len(same) > 1 and same is known:
        return None  # an alias of several: nobody knows which of them is meant
    nameless = [
        row
        for alias in mention.aliases
        for row in _called(ctx, alias)
        if row.normalized == normalized(alias) and row not in same
    ]
    before = next((row for row in same if row.type == mention.kind), same[0] if same else None)
    if before is None and nameless:
        before = nameless.pop(0)
        row = msgspec.structs.replace(
            before,
            name=mention.name,
            normalized=normalized(mention.name),
        )
    elif before is not None:
        row = before
    elif mention.is_sure:
        row = new_entity(ctx, mention.name, mention.kind, memory.occurred_at)
        row = msgspec.structs.replace(row, is_read=True)
    else:
        return None
    row = mentioned(ctx, row, memory, mention.kind.encode())
    for other in nameless:
        row = _merged(ctx, row, other)
    put_entity(ctx, _with_aliases(row, mention, memory), before)
    return row


def _called(ctx: ReadContext, name: str) -> list[EntityRow]:
    """The entities of this name or alias, hidden ones too, those most spoken of first."""
    keys = ctx[NAMES].keys(ctx.digest("name", normalized(name)))
    rows = ctx[ENTITIES].get_many([(ordinal,) for _, ordinal in keys])
    return sorted(
        (row for row in rows if row is not None), key=lambda row: (-row.mentions, row.ordinal)
    )


def _with_aliases(row: EntityRow, mention: Mention, memory: MemoryRow) -> EntityRow:
    known = {row.normalized, *map(normalized, row.aliases)}
    given = dict(row.read_aliases)
    for alias in mention.aliases:
        said = next((each for each in given if normalized(each) == normalized(alias)), alias)
        by = given.get(said, [])
        if normalized(alias) not in known and (by or len(given) < ALIASES_MAX):
            given[said] = [*(each for each in by if each != memory.ordinal), memory.ordinal][
                -ALIAS_SOURCES_MAX:
            ]
    return msgspec.structs.replace(
        row,
        read_aliases=given,
        first_seen_at=min(row.first_seen_at, memory.occurred_at),
        last_seen_at=max(row.last_seen_at, memory.occurred_at),
    )


def _merged(ctx: WriteContext, row: EntityRow, other: EntityRow) -> EntityRow:
    """The row when the mentions of another one, which turns out to be the same, are its own. One
    that has claims, was made through the API, or has many mentions stays what it is.
    """
    if (
        other.asked_for
        or other.mentions > MENTIONS_MOVED_MAX
        or ctx.index(CLAIM_FIELDS).of("end", other.ordinal)
    ):
        return row
    taken_for = {key[1]: raw for key, raw in ctx[MENTIONS].scan(other.ordinal)}
    for memory in find_rows_at(ctx, taken_for):
        row = mentioned(ctx, row, memory, taken_for[memory.ordinal])
        ctx[SOURCES].delete(memory.id, ENTITY, other.ordinal)
    delete_entity(ctx, other)
    return row


def _judge_claimed(ctx: WriteContext, memory: MemoryRow, found: set[int]) -> None:
    """Make values of what only this memory's claims speak of, and nobody names."""
    speakers = {normalized(name) for name in (memory.speaker, memory.user_id, NAMELESS) if name}
    for _, _, ordinal in list(ctx[SOURCES].keys(memory.id, ENTITY)):
        row = ctx[ENTITIES].get(ordinal)
        if (
            row is None
            or ordinal in found
            or row.kinds
            or row.asked_for
            or row.is_value
            or row.normalized in speakers
            or ctx[MENTIONS].get(ordinal, memory.ordinal) != CLAIMED
        ):
            continue
        if ctx.index(CLAIM_FIELDS).of("end", ordinal):
            put_entity(ctx, msgspec.structs.replace(row, is_value=True), row)
        else:
            ctx[SOURCES].delete(memory.id, ENTITY, ordinal)
            forget_mention(ctx, row, memory.ordinal)
