"""Taking in the exported graph, as far as somebody asked for it: entities and relationships that
were entered, under ids of this account. What memories say is read again from them, and skipped.

An entity whose name and type are here already is that one, and a relationship that says the same is
that one, as when they are entered again. Times are taken as they are told: whoever enters a
relationship may name them all. A tier without the feature takes none in, as it enters none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from pydantic import Field

from plugins.collections import find_collection
from plugins.graph import statistics as graph_stats
from plugins.graph.limits import ALIASES_MAX, ENDS_PER_CLAIM_ITEMS_MAX
from plugins.graph.models import GRAPH_WRITE, Kind, Name
from plugins.graph.queries import GRAPH_CHANGED
from plugins.graph.rows import ENTITIES, GRAPH_IDS, RELATIONSHIPS, End, EntityRow
from plugins.graph.store import (
    Claim,
    Sight,
    assert_claim,
    delete_entity,
    delete_relationship,
    ensure_entity,
    note_bound,
    put_claim,
)
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


class ExportedName(Body):
    """What stands at an end of an exported relationship."""

    id: EntityId
    name: Name


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
    ends = [End(until, at, memory and origin.renamed(memory)) for until, at, memory in record.ends]
    if record.invalidated_at is not None:
        graph_stats.claim_went(ctx, row.source, row.target, row.type)
    put_claim(ctx, msgspec.structs.replace(row, ends=ends, invalidated_at=record.invalidated_at))
    for end in ends:
        if end.memory_id and (said := find_row(ctx, end.memory_id)) is not None:
            note_bound(ctx, row, said)
    ctx.emit(GRAPH_CHANGED, {"id": row.id}, row.id)
    return True


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
    return record.asked_for and has_feature(ctx.settings, ctx.principal.tier, GRAPH_WRITE)


RESTORE = {
    "entity": Restore(ExportedEntity, restore_entities, _takes),
    "relationship": Restore(ExportedRelationship, restore_relationships, _takes),
}
