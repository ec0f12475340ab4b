"""What a memory was read to mention becomes rows: which entity each mention is, and what no memory
names.

An entity is found by its name, whatever its type. Where a memory names somebody who was known only
as somebody's ("Mira's sister" is Ana), both become one. What claims alone speak of, and the
memories that make them do not name, is a value ("likes | long walks"): it stands at the ends of its
claims, and is no entity; without a claim it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from pyroaring import BitMap

from plugins.graph.forgetting import forget_mention
from plugins.graph.limits import ALIAS_SOURCES_MAX, ALIASES_MAX, MENTIONS_MOVED_MAX
from plugins.graph.mentions import NAMELESS, Mention, Mentioned
from plugins.graph.merging import hand_over
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
from runtime.api.context import WriteContext


def note(ctx: WriteContext, read: Iterable[tuple[MemoryRow, Mentioned]]) -> None:
    """Store what memories mention."""
    entities = _Entities(ctx)
    for memory, what in read:
        found = {_note(entities, memory, each) for each in what.mentions}
        if what.was_read:
            _judge_claimed(entities, memory, found)
    entities.store()


def note_stored(ctx: WriteContext, read: Mapping[int, Mentioned]) -> None:
    """Store what memories of this transaction mention, by their ordinals, which were read before
    they were stored: the job that reads the others has nothing left to do for them.
    """
    note(ctx, ((memory, read[memory.ordinal]) for memory in find_rows_at(ctx, sorted(read))))
    if read:
        pass_over(ctx, BitMap(read))


class _Entities:
    """The entities that memories of one transaction mention: each is stored once, however many of
    them name it, unless its names change.
    """

    def __init__(self, ctx: WriteContext):
        self.ctx = ctx
        self._changed: dict[int, tuple[EntityRow, EntityRow]] = {}  # as stored, and as it is
        self._called: dict[str, list[int]] = {}

    def get(self, ordinal: int) -> EntityRow | None:
        """The entity as it is by now."""
        changed = self._changed.get(ordinal)
        return self.ctx[ENTITIES].get(ordinal) if changed is None else changed[1]

    def called(self, name: str) -> list[EntityRow]:
        """The entities of this name or alias, hidden ones too, those most spoken of first."""
        wanted = normalized(name)
        if wanted not in self._called:
            keys = self.ctx[NAMES].keys(self.ctx.digest("name", wanted))
            self._called[wanted] = [ordinal for _, ordinal in keys]
        rows = [row for each in self._called[wanted] if (row := self.get(each)) is not None]
        return sorted(rows, key=lambda row: (-row.mentions, row.ordinal))

    def put(self, row: EntityRow, before: EntityRow | None) -> None:
        """Take an entity's row; before: as it was, None for a new one."""
        if before is not None and _names(before) == _names(row):
            stored = self._changed.get(row.ordinal, (before,))[0]
            self._changed[row.ordinal] = stored, row
            return
        stored, _ = self._changed.pop(row.ordinal, (before, None))
        put_entity(self.ctx, row, stored)
        self._called.clear()

    def settle(self, row: EntityRow) -> None:
        """Store an entity that others are about to change or to delete."""
        self._called.clear()
        stored, now = self._changed.pop(row.ordinal, (None, None))
        if stored is not None and now is not None:
            put_entity(self.ctx, now, stored)

    def store(self) -> None:
        """Store all that changed."""
        for stored, row in self._changed.values():
            put_entity(self.ctx, row, stored)
        self._changed.clear()


def _names(row: EntityRow) -> tuple[str, list[str]]:
    return row.normalized, row.all_aliases


def _note(entities: _Entities, memory: MemoryRow, mention: Mention) -> int | None:
    """Note one mention; -> its entity's ordinal, None where there is none."""
    ctx, known = entities.ctx, entities.called(mention.name)
    same = [row for row in known if row.normalized == normalized(mention.name)] or known
    if len(same) > 1 and same is known:
        return None  # an alias of several: nobody knows which of them is meant
    nameless = [
        row
        for alias in mention.aliases
        for row in entities.called(alias)
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
        entities.settle(other)
        row = _merged(ctx, row, other)
    entities.put(_with_aliases(row, mention, memory), before)
    return row.ordinal


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
    _, row, _ = hand_over(ctx, other, row, MENTIONS_MOVED_MAX)
    delete_entity(ctx, other)
    return row


def _judge_claimed(entities: _Entities, memory: MemoryRow, found: set[int | None]) -> None:
    """Make values of what only this memory's claims speak of, and nobody names."""
    ctx = entities.ctx
    speakers = {normalized(name) for name in (memory.speaker, memory.user_id, NAMELESS) if name}
    for _, _, ordinal in list(ctx[SOURCES].keys(memory.id, ENTITY)):
        row = None if ordinal in found else entities.get(ordinal)
        if (
            row is None
            or row.kinds
            or row.asked_for
            or row.is_value
            or row.normalized in speakers
            or ctx[MENTIONS].get(ordinal, memory.ordinal) != CLAIMED
        ):
            continue
        if ctx.index(CLAIM_FIELDS).of("end", ordinal):
            entities.put(msgspec.structs.replace(row, is_value=True), row)
        else:
            entities.settle(row)
            ctx[SOURCES].delete(memory.id, ENTITY, ordinal)
            forget_mention(ctx, row, memory.ordinal)
