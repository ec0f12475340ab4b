"""Taking in the exported graph, under ids of this account: entities and relationships that were
entered, and those that memories claim. Whom memories mention besides is read again from them, and
skipped.

An entity whose name and type are here already is that one, and a relationship that says the same is
that one, as when they are entered again. Times are taken as they are told: whoever enters a
relationship may name them all. A tier without the feature takes in none that was entered, as it
enters none.

What memories claim comes with them, and goes with them. It is taken in as far as they are here in
the version that claims it: what somebody has edited since says something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from pydantic import Field

from plugins.collections import find_collection
from plugins.graph import statistics as graph_stats
from plugins.graph.limits import (
    ALIASES_MAX,
    CLAIMING_MEMORIES_EXPORTED_MAX,
    ENDS_PER_CLAIM_ITEMS_MAX,
    SOURCES_PER_CLAIM_MAX,
)
from plugins.graph.models import GRAPH_WRITE, Kind, Name
from plugins.graph.queries import GRAPH_CHANGED
from plugins.graph.rows import (
    ENTITIES,
    GRAPH_IDS,
    RELATIONSHIPS,
    Begin,
    End,
    EntityRow,
    RelationshipRow,
)
from plugins.graph.store import (
    Claim,
    Sight,
    assert_claim,
    delete_entity,
    delete_relationship,
    ensure_entity,
    note_bound,
    put_claim,
    supported,
)
from plugins.graph.unread import read_again, reading
from plugins.memories import MemoryRow, Metadata, find_row
from runtime.api.context import WriteContext
from runtime.api.operation import Body
from runtime.api.restoring import Origin, Restore
from runtime.api.tiers import has_feature
from runtime.limits import ID_CHARS_MAX
from runtime.timestamps import Timestamp

# Ids become keys, which are not sealed: nothing but an id may stand there.
EntityId = Annotated[str, Field(pattern=r"^ent_[0-9a-hjkmnp-tv-z]{32}$")]
RelationshipId = Annotated[str, Field(pattern=r"^rel_[0-9a-hjkmnp-tv-z]{32}$")]
Milliseconds = Annotated[int, Field(ge=-(2**53), le=2**53)]
MemoryId = Annotated[str, Field(max_length=ID_CHARS_MAX)]
Version = tuple[MemoryId, int]  # of a memory


class ClaimedEntity(Body):
    """The memories whose claims speak of an entity, some of them, and what they call it besides."""

    by: list[Version] = Field(default_factory=list, max_length=CLAIMING_MEMORIES_EXPORTED_MAX)
    aliases: list[Name] = Field(default_factory=list, max_length=ALIASES_MAX)


class ExportedEntity(Body):
    """An entity as an export has it."""

    id: EntityId
    name: Name
    type: Kind
    aliases: list[Name] = Field(default_factory=list, max_length=2 * ALIASES_MAX)
    attributes: Metadata = Field(default_factory=dict)
    first_seen_at: Timestamp
    last_seen_at: Timestamp
    collection_id: str | None = Field(default=None, max_length=ID_CHARS_MAX)
    asked_for: bool = False
    claimed: ClaimedEntity | None = None


class ExportedName(Body):
    """What stands at an end of an exported relationship."""

    id: EntityId
    name: Name


class ClaimedRelationship(Body):
    """The memories that claim a relationship; narrowed: from when it held where it had begun at no
    time that was known, when that was learned, from which memory; retracted_by: the one whose
    superseding took it back.
    """

    by: list[Version] = Field(default_factory=list, max_length=SOURCES_PER_CLAIM_MAX)
    narrowed: tuple[Milliseconds, Milliseconds, MemoryId] | None = None
    retracted_by: MemoryId | None = None


class ExportedRelationship(Body):
    """A relationship as an export has it; ends: [until when it held, when that was learned, from
    which memory], the last of which counts.
    """

    id: RelationshipId
    source: ExportedName
    type: Kind
    target: ExportedName
    attributes: Metadata = Field(default_factory=dict)
    confidence: float = Field(default=1.0, ge=0, le=1)
    valid_from: Timestamp | None = None
    recorded_at: Timestamp
    invalidated_at: Timestamp | None = None
    functional: bool = False
    ends: list[tuple[Milliseconds | None, Milliseconds, MemoryId]] = Field(
        default_factory=list, max_length=ENDS_PER_CLAIM_ITEMS_MAX
    )
    asked_for: bool = False
    source_memory_id: MemoryId | None = None
    claimed: ClaimedRelationship | None = None


def restore_entities(ctx: WriteContext, records: Sequence[ExportedEntity], origin: Origin) -> int:
    """Store the entities that are not here yet; -> how many. Raises PermissionDenied for want of
    room.
    """
    return sum(_restore_entity(ctx, record, origin) for record in records)


def _restore_entity(ctx: WriteContext, record: ExportedEntity, origin: Origin) -> bool:
    entity_id, collection_id = origin.renamed(record.id), record.collection_id
    if (raw := ctx[GRAPH_IDS].get(entity_id)) is not None:
        known = ctx[ENTITIES].row(int.from_bytes(raw, "big"))
        if Sight.of(ctx).sees(known):
            return False
        delete_entity(ctx, known)  # its collection was dropped a moment ago
    if not record.asked_for:
        return _restore_claimed_entity(ctx, record, origin)
    row, is_new = ensure_entity(
        ctx,
        record.name,
        record.type,
        aliases=record.aliases,
        attributes=record.attributes,
        collection=find_collection(ctx, origin.renamed(collection_id)) if collection_id else None,
        entity_id=entity_id,
    )
    if is_new:
        seen = {"first_seen_at": record.first_seen_at, "last_seen_at": record.last_seen_at}
        ctx[ENTITIES].put((row.ordinal,), msgspec.structs.replace(row, **seen))
        ctx.emit(GRAPH_CHANGED, {"id": row.id}, row.id)
    return is_new


def _restore_claimed_entity(ctx: WriteContext, record: ExportedEntity, origin: Origin) -> bool:
    if record.claimed is None:
        return False
    made = [
        ensure_entity(
            ctx,
            record.name,
            record.type,
            aliases=record.claimed.aliases,
            memory=memory,
            entity_id=origin.renamed(record.id),
        )[1]
        for memory in _present(ctx, record.claimed.by, origin)
    ]
    return any(made)


def _present(ctx: WriteContext, by: Sequence[Version], origin: Origin) -> list[MemoryRow]:
    """The memories that are here in these versions. What was read of them before their claims came
    is read once more, for what only claims speak of.
    """
    found = [(find_row(ctx, origin.renamed(name)), version) for name, version in by]
    rows = [row for row, version in found if row is not None and row.version == version]
    read = reading(ctx).read
    for row in rows:
        if row.ordinal < read:
            read_again(ctx, row.ordinal)
    return rows


def restore_relationships(
    ctx: WriteContext, records: Sequence[ExportedRelationship], origin: Origin
) -> int:
    """Store the relationships that are not here yet, between entities that are made where they are
    not; -> how many. Raises PermissionDenied for want of room.
    """
    return sum(_restore_relationship(ctx, record, origin) for record in records)


def _restore_relationship(ctx: WriteContext, record: ExportedRelationship, origin: Origin) -> bool:
    relationship_id = origin.renamed(record.id)
    if (raw := ctx[GRAPH_IDS].get(relationship_id)) is not None:
        known = ctx[RELATIONSHIPS].row(int.from_bytes(raw, "big"))
        if Sight.of(ctx).sees_claim(known):
            return False
        delete_relationship(ctx, known)
    if not record.asked_for:
        return _restore_claimed(ctx, record, origin)
    named = record.source_memory_id and origin.renamed(record.source_memory_id)
    memory = find_row(ctx, named) if named else None
    claim = Claim(
        _entity(ctx, record.source, origin, memory),
        record.type,
        _entity(ctx, record.target, origin, memory),
        valid_from=record.valid_from,
        recorded_at=record.recorded_at,
        confidence=record.confidence,
        functional=record.functional,
        attributes=record.attributes,
        id=relationship_id,
    )
    row, is_new = assert_claim(ctx, claim, memory, is_entered=memory is not None)
    if not is_new:
        return False
    _put_bounds(ctx, row, record, origin)
    ctx.emit(GRAPH_CHANGED, {"id": row.id}, row.id)
    return True


def _put_bounds(
    ctx: WriteContext, row: RelationshipRow, record: ExportedRelationship, origin: Origin
) -> None:
    """Give a claim that was stored a moment ago the ends, and the beginning, that it had."""
    ends = [End(until, at, memory and origin.renamed(memory)) for until, at, memory in record.ends]
    if record.invalidated_at is not None:
        graph_stats.claim_went(ctx, row.source, row.target, row.type)
    bounds: dict[str, Any] = {"ends": ends, "invalidated_at": record.invalidated_at}
    learned_from = [end.memory_id for end in ends]
    if (claimed := record.claimed) is not None:
        if claimed.narrowed is not None:
            begins, at, memory = claimed.narrowed
            learned_from.append(memory and origin.renamed(memory))
            bounds["narrowed"] = Begin(begins, at, learned_from[-1])
        if claimed.retracted_by is not None:
            bounds["retracted_by"] = origin.renamed(claimed.retracted_by)
    put_claim(ctx, msgspec.structs.replace(row, **bounds))
    for name in learned_from:
        if name and (said := find_row(ctx, name)) is not None:
            note_bound(ctx, row, said)


def _restore_claimed(ctx: WriteContext, record: ExportedRelationship, origin: Origin) -> bool:
    claimed = record.claimed
    memories = [] if claimed is None else _present(ctx, claimed.by, origin)
    first = record.source_memory_id and origin.renamed(record.source_memory_id)
    memories.sort(key=lambda memory: memory.id != first)
    if claimed is None or not memories:
        return False
    ends = [
        [_claimed_end(ctx, named, origin, memory) for memory in memories][-1]
        for named in (record.source, record.target)
    ]
    claim = Claim(
        ends[0],
        record.type,
        ends[1],
        valid_from=None if claimed.narrowed is not None else record.valid_from,
        recorded_at=record.recorded_at,
        confidence=record.confidence,
        functional=record.functional,
        attributes=record.attributes,
        id=origin.renamed(record.id),
    )
    row, is_new = assert_claim(ctx, claim, memories[0])
    for memory in sorted(memories[1:], key=lambda memory: memory.ordinal):
        row = supported(ctx, row, memory)
    if is_new:
        _put_bounds(ctx, row, record, origin)
    else:
        put_claim(ctx, row)
    return is_new


def _claimed_end(
    ctx: WriteContext, named: ExportedName, origin: Origin, memory: MemoryRow
) -> EntityRow:
    """What stands at an end of a claim of a memory, which mentions it."""
    entity_id = origin.renamed(named.id)
    raw = ctx[GRAPH_IDS].get(entity_id)
    row = None if raw is None else ctx[ENTITIES].get(int.from_bytes(raw, "big"))
    if row is None:
        return ensure_entity(ctx, named.name, memory=memory, entity_id=entity_id)[0]
    return ensure_entity(ctx, row.name, None if row.is_read else row.type, memory=memory)[0]


def _entity(
    ctx: WriteContext, named: ExportedName, origin: Origin, memory: MemoryRow | None
) -> EntityRow:
    """What stands at an end, which the memory that the relationship was entered from mentions."""
    raw = ctx[GRAPH_IDS].get(origin.renamed(named.id))
    row = None if raw is None else ctx[ENTITIES].get(int.from_bytes(raw, "big"))
    if row is not None and memory is None:
        return row
    name, kind = (named.name, None) if row is None else (row.name, row.type)
    return ensure_entity(ctx, name, kind, memory=memory, is_given=memory is not None)[0]


def _takes(ctx: WriteContext, record: Any) -> bool:
    if not record.asked_for:
        return record.claimed is not None and bool(record.claimed.by)
    return has_feature(ctx.settings, ctx.principal.tier, GRAPH_WRITE)


RESTORE = {
    "entity": Restore(ExportedEntity, restore_entities, _takes),
    "relationship": Restore(ExportedRelationship, restore_relationships, _takes),
}
