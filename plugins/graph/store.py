"""How the knowledge graph is read and changed: entities, claims, their sources, contradictions.
What is stored, and the two clocks it is stored on, is in rows.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pyroaring import BitMap

from plugins.collections import dropped_numbers
from plugins.graph import statistics as graph_stats
from plugins.graph.limits import ALIASES_MAX, CLAIMS_COMPARED_MAX, SOURCES_PER_CLAIM_MAX
from plugins.graph.room import check_entities
from plugins.graph.rows import (
    ALWAYS,
    CLAIM_FIELDS,
    CLAIMED,
    CLAIMS,
    CONFLICTS,
    ENTITIES,
    ENTITY,
    ENTITY_FIELDS,
    FUNCTIONAL,
    GIVEN,
    GRAPH_IDS,
    MENTIONS,
    NAMES,
    RELATIONSHIP,
    RELATIONSHIPS,
    SOURCES,
    UNKNOWN_TYPE,
    Begin,
    End,
    EntityRow,
    RelationshipRow,
    normalized,
    with_attributes,
    with_end,
)
from plugins.memories import MemoryRow, find_rows_at, unreadable
from runtime.api.context import ReadContext, WriteContext
from runtime.errors import NotFound, PermissionDenied
from runtime.ids import id_tag
from storage.store import Key

_NO_TYPES = frozenset([GIVEN.decode(), UNKNOWN_TYPE])

# --- who may be seen ------------------------------------------------------------------------------


@dataclass(slots=True)
class Sight:
    """What of the graph can be seen now: memories hidden or expired but not swept yet speak for
    nothing any more.
    """

    ctx: ReadContext
    gone: BitMap
    dropped: frozenset[int]

    @classmethod
    def of(cls, ctx: ReadContext) -> Sight:
        return cls(ctx, unreadable(ctx), dropped_numbers(ctx))

    def sees_claim(self, row: RelationshipRow) -> bool:
        if self.gone and not row.asked_for and all(ordinal in self.gone for ordinal in row.sources):
            return False
        return not self.dropped or all(
            self.sees_ordinal(ordinal) for ordinal in (row.source, row.target)
        )

    def sees_ordinal(self, ordinal: int) -> bool:
        row = self.ctx[ENTITIES].get(ordinal)
        return row is not None and self.sees(row)

    def sees(self, row: EntityRow) -> bool:
        if not self.gone and not self.dropped:
            return True
        if row.asked_for and row.number not in self.dropped:
            return True
        return any(memory not in self.gone for _, memory in self.ctx[MENTIONS].keys(row.ordinal))


# --- finding --------------------------------------------------------------------------------------


def named(ctx: ReadContext, name: str) -> list[EntityRow]:
    """The entities that have this name or alias, those most spoken of first."""
    wanted = normalized(name)
    ordinals = [key[1] for key in ctx[NAMES].keys(ctx.digest("name", wanted))]
    if not ordinals:
        return []
    sight = Sight.of(ctx)
    rows = [
        row
        for row in ctx[ENTITIES].get_many([(ordinal,) for ordinal in ordinals])
        if row is not None and sight.sees(row)
    ]
    return sorted(rows, key=lambda row: (row.normalized != wanted, -row.mentions, row.ordinal))


def find_entity(ctx: ReadContext, name_or_id: str) -> EntityRow | None:
    """Find it by id, else by name or alias. Raises PermissionDenied for another account's id."""
    tag = id_tag("ent", name_or_id)
    if tag is not None:
        if tag != ctx.principal.tag:
            raise PermissionDenied("This id belongs to another account.")
        raw = ctx[GRAPH_IDS].get(name_or_id)
        row = None if raw is None else ctx[ENTITIES].get(int.from_bytes(raw, "big"))
        return row if row is not None and Sight.of(ctx).sees(row) else None
    return next(iter(named(ctx, name_or_id)), None)


def get_entity(ctx: ReadContext, name_or_id: str) -> EntityRow:
    """As find_entity, or NotFound."""
    row = find_entity(ctx, name_or_id)
    if row is None:
        raise NotFound("There is no entity with this name or id.")
    return row


def get_relationship(ctx: ReadContext, relationship_id: str) -> RelationshipRow:
    """Get it by id. Raises NotFound, or PermissionDenied for another account's."""
    missing = NotFound("There is no relationship with this id.")
    raw = ctx[GRAPH_IDS].get(ctx.check_id("rel", relationship_id, missing))
    row = None if raw is None else ctx[RELATIONSHIPS].get(int.from_bytes(raw, "big"))
    if row is None or not Sight.of(ctx).sees_claim(row):
        raise missing
    return row


def get_entities(ctx: ReadContext, ordinals: Iterable[int]) -> list[EntityRow | None]:
    """The entities of these ordinals, in their order; None where there is none any more."""
    return ctx[ENTITIES].get_many([(ordinal,) for ordinal in ordinals])


def get_claim(ctx: ReadContext, relationship_id: str) -> RelationshipRow | None:
    """The claim of this id as it is stored, seen or not; None when there is none."""
    raw = ctx[GRAPH_IDS].get(relationship_id) if relationship_id else None
    return None if raw is None else ctx[RELATIONSHIPS].get(int.from_bytes(raw, "big"))


def refreshed(ctx: ReadContext, row: RelationshipRow) -> RelationshipRow:
    """The claim as it is stored now, whatever has changed it since the row was read."""
    return ctx[RELATIONSHIPS].row(row.ordinal)


def claims_of(ctx: ReadContext, source: int, kind: str | None) -> list[RelationshipRow]:
    """The claims of one subject and predicate that stand, by target and valid_from; of all its
    predicates where that is None. At most CLAIMS_COMPARED_MAX.
    """
    prefix = (source,) if kind is None else (source, ctx.digest("type", kind))
    keys = [
        (int.from_bytes(raw, "big"),)
        for _, raw in ctx[CLAIMS].scan(*prefix, limit=CLAIMS_COMPARED_MAX)
    ]
    sight = Sight.of(ctx)
    rows = [row for row in ctx[RELATIONSHIPS].get_many(keys) if row is not None]
    return [row for row in rows if row.invalidated_at is None and sight.sees_claim(row)]


# --- entities -------------------------------------------------------------------------------------


def ensure_entity(
    ctx: WriteContext,
    name: str,
    kind: str | None = None,
    *,
    aliases: Iterable[str] = (),
    attributes: Mapping[str, Any] | None = None,
    collection: Any = None,
    memory: MemoryRow | None = None,
    is_given: bool = False,
    entity_id: str = "",
) -> tuple[EntityRow, bool]:
    """The entity of this name (or alias) and type, made when there is none; -> (row, whether it is
    new).

    Without a type any entity of the name will do, and one whose type is unknown, or was read, takes
    the type it is given. `memory` is where the name was mentioned; without one the API asks for it,
    and PermissionDenied is raised where the tier has no room for one more that was asked for: what
    memories mention takes none. is_given: the API says that the memory mentions it. entity_id: what
    a new one is called, where it came from elsewhere.
    """
    rows = named(ctx, name)
    row = next((r for r in rows if kind is None or r.type == kind), None)
    if row is None and memory is not None:
        row = next((r for r in rows if r.is_read or UNKNOWN_TYPE in (r.type, kind)), None)
    at = ctx.now if memory is None else memory.occurred_at
    if row is None:
        if memory is None:
            check_entities(ctx)
        row = new_entity(ctx, name, kind or UNKNOWN_TYPE, at, collection, entity_id)
        is_new = True
    else:
        is_new = False
    wanted = [alias for alias in aliases if normalized(alias) != row.normalized]
    known = {normalized(alias) for alias in row.all_aliases}
    further = [alias for alias in dict.fromkeys(wanted) if normalized(alias) not in known]
    is_told = kind is not None and (row.is_read or row.type == UNKNOWN_TYPE)
    after = msgspec.structs.replace(
        row,
        type=kind if is_told else row.type,
        is_read=row.is_read and kind is None,
        aliases=[*row.aliases, *further][:ALIASES_MAX],
        attributes=with_attributes(row.attributes, attributes),
        asked_for=row.asked_for or memory is None,
        is_value=row.is_value and memory is not None and not is_given,
        first_seen_at=min(row.first_seen_at, at),
        last_seen_at=max(row.last_seen_at, at),
    )
    if memory is not None:
        after = mentioned(ctx, after, memory, GIVEN if is_given else CLAIMED)
    put_entity(ctx, after, None if is_new else row)
    return after, is_new


def new_entity(
    ctx: WriteContext, name: str, kind: str, at: int, collection: Any = None, entity_id: str = ""
) -> EntityRow:
    """An entity that nobody mentions yet; the caller stores its row."""
    row = EntityRow(
        id=entity_id or ctx.new_id("ent"),
        ordinal=ctx.next_ordinal("graph_entities"),
        name=name,
        normalized=normalized(name),
        type=kind,
        first_seen_at=at,
        last_seen_at=at,
        collection_id=None if collection is None else collection.id,
        number=None if collection is None else collection.number,
    )
    ctx[GRAPH_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))
    graph_stats.entity_came(ctx, row.ordinal, row.type)
    return row


def mentioned(ctx: WriteContext, row: EntityRow, memory: MemoryRow, taken_for: bytes) -> EntityRow:
    """Let a memory mention an entity; -> its row, which the caller stores. What the memory takes it
    for replaces CLAIMED, and nothing else.
    """
    before = ctx[MENTIONS].get(row.ordinal, memory.ordinal)
    if before is not None and (before or not taken_for):
        return row
    ctx[MENTIONS].put((row.ordinal, memory.ordinal), taken_for)
    if before is None:
        ctx[SOURCES].put((memory.id, ENTITY, row.ordinal), memory.ordinal.to_bytes(4, "big"))
        row = msgspec.structs.replace(row, mentions=row.mentions + 1)
    return row if not taken_for else counted(row, taken_for, 1)


def counted(row: EntityRow, taken_for: bytes, by: int) -> EntityRow:
    """The row when so many more memories take the entity for this."""
    kind = taken_for.decode()
    kinds = {**row.kinds, kind: row.kinds.get(kind, 0) + by}
    kinds = {each: count for each, count in kinds.items() if count > 0}
    read = {each: count for each, count in kinds.items() if each not in _NO_TYPES}
    likeliest = max(read, key=lambda each: read[each], default=row.type)
    return msgspec.structs.replace(
        row,
        kinds=kinds,
        type=likeliest if row.is_read else row.type,
        is_value=row.is_value and not kinds,
    )


def put_entity(ctx: WriteContext, row: EntityRow, before: EntityRow | None) -> None:
    """Store an entity's row, and have it found by what it says; before: as it was stored."""
    if before is not None and row.is_value != before.is_value:
        graph_stats.entity_counts(ctx, *((before.type, -1) if row.is_value else (row.type, 1)))
    elif before is not None and row.type != before.type and not row.is_value:
        graph_stats.entity_retyped(ctx, before.type, row.type)
    was_asked_for = before is not None and before.asked_for
    if row.asked_for != was_asked_for:
        graph_stats.asked_for_changed(ctx, 1 if row.asked_for else -1)
    ctx[ENTITIES].put((row.ordinal,), row)
    fields = ctx.index(ENTITY_FIELDS)
    now, then = _entries(row), set() if before is None else _entries(before)
    for field, value in then - now:
        fields.remove(row.ordinal, field, value)
    for field, value in now - then:
        fields.add(row.ordinal, field, value)
    names = {row.normalized, *map(normalized, row.all_aliases)}
    held = set() if before is None else {before.normalized, *map(normalized, before.all_aliases)}
    for name in names - held:
        ctx[NAMES].put((ctx.digest("name", name), row.ordinal), b"")
    for name in held - names:
        ctx[NAMES].delete(ctx.digest("name", name), row.ordinal)


def _entries(row: EntityRow) -> set[tuple[str, int | str]]:
    if row.is_value:
        return set() if row.number is None else {("collection", row.number)}
    entries: set[tuple[str, int | str]] = {("all", 1), ("type", row.type), ("name", row.normalized)}
    if row.number is not None:
        entries.add(("collection", row.number))
    return entries


def delete_entity(ctx: WriteContext, row: EntityRow) -> None:
    """Remove an entity and its relationships, on both clocks."""
    for ordinal in ctx.index(CLAIM_FIELDS).of("end", row.ordinal):
        claim = ctx[RELATIONSHIPS].get(ordinal)
        if claim is not None:
            delete_relationship(ctx, claim)
    for _, memory in list(ctx[MENTIONS].keys(row.ordinal)):
        ctx[MENTIONS].delete(row.ordinal, memory)
    for field, value in _entries(row):
        ctx.index(ENTITY_FIELDS).remove(row.ordinal, field, value)
    for name in (row.normalized, *map(normalized, row.all_aliases)):
        ctx[NAMES].delete(ctx.digest("name", name), row.ordinal)
    ctx[GRAPH_IDS].delete(row.id)
    ctx[ENTITIES].delete(row.ordinal)
    if row.asked_for:
        graph_stats.asked_for_changed(ctx, -1)
    if row.is_value:
        graph_stats.entity_counts(ctx, row.type, 1)
    graph_stats.entity_went(ctx, row.ordinal, row.type)


# --- relationships --------------------------------------------------------------------------------


@dataclass(slots=True)
class Claim:
    """A relationship to be: between two entities that exist. Instants in Unix milliseconds. id: its
    own, where it had one elsewhere.
    """

    source: EntityRow
    type: str
    target: EntityRow
    valid_from: int | None = None
    valid_to: int | None = None
    recorded_at: int | None = None
    confidence: float = 1.0
    functional: bool | None = None
    attributes: Mapping[str, Any] | None = None
    id: str | None = None


def assert_claim(
    ctx: WriteContext, claim: Claim, memory: MemoryRow | None = None, *, is_entered: bool = False
) -> tuple[RelationshipRow, bool]:
    """Store a claim, or merge it into the one that says the same; -> (row, whether it is new).
    `memory`: its source, else the API; is_entered: the API says that this is its source. Raises
    ValidationFailed when the attributes of both are too many.
    """
    key = (
        claim.source.ordinal,
        ctx.digest("type", claim.type),
        claim.target.ordinal,
        ALWAYS if claim.valid_from is None else claim.valid_from,
    )
    raw = ctx[CLAIMS].get(*key)
    before = None if raw is None else ctx[RELATIONSHIPS].get(int.from_bytes(raw, "big"))
    if before is not None and before.invalidated_at is not None:
        before = None  # what we took back and now hear again is a claim of its own
    recorded_at = ctx.now if claim.recorded_at is None else claim.recorded_at
    if before is None:
        row = RelationshipRow(
            id=claim.id or ctx.new_id("rel"),
            ordinal=ctx.next_ordinal("graph_relationships"),
            source=claim.source.ordinal,
            type=claim.type,
            target=claim.target.ordinal,
            recorded_at=recorded_at,
            confidence=claim.confidence,
            valid_from=claim.valid_from,
            functional=claim.type in FUNCTIONAL if claim.functional is None else claim.functional,
        )
        enter_claim(ctx, row)
    else:
        row = before
    ends = row.ends
    if claim.valid_to is not None and claim.valid_to != row.valid_to:
        end = End(claim.valid_to, recorded_at, "" if memory is None else memory.id)
        ends = with_end(ends, end)
    row = msgspec.structs.replace(
        row,
        ends=ends,
        attributes=with_attributes(row.attributes, claim.attributes),
        asked_for=row.asked_for or memory is None,
        is_entered=row.is_entered or is_entered,
        confidence=max(row.confidence, claim.confidence),
    )
    if memory is not None:
        row = supported(ctx, row, memory)
    ctx[RELATIONSHIPS].put((row.ordinal,), row)
    _compare(ctx, row)
    return row, before is None


def claim_key(ctx: ReadContext, row: RelationshipRow) -> Key:
    """Where CLAIMS has a claim, by what it says."""
    begins = ALWAYS if row.valid_from is None else row.valid_from
    return (row.source, ctx.digest("type", row.type), row.target, begins)


def enter_claim(ctx: WriteContext, row: RelationshipRow) -> None:
    """Have a claim found by its id, by what it says and by its ends; the caller stores its row. One
    that was taken back leaves what it says to another claim that says the same.
    """
    ctx[GRAPH_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))
    key = claim_key(ctx, row)
    if row.invalidated_at is None or ctx[CLAIMS].get(*key) is None:
        ctx[CLAIMS].put(key, row.ordinal.to_bytes(4, "big"))
    fields = ctx.index(CLAIM_FIELDS)
    for end in {row.source, row.target}:
        fields.add(row.ordinal, "end", end)
    fields.add(row.ordinal, "all", 1)
    fields.add(row.ordinal, "type", row.type)
    if row.invalidated_at is None:
        graph_stats.claim_came(ctx, row.source, row.target, row.type)


def part_claim(
    ctx: WriteContext, row: RelationshipRow, memories: Sequence[MemoryRow]
) -> RelationshipRow:
    """Give these sources of a claim, which are not all it has, a claim of their own that says the
    same, so that one may end without the other; -> it. Where the claim has no beginning, it begins
    with the first of them.
    """
    own = {memory.ordinal for memory in memories}
    begins = row.valid_from
    if begins is None:
        begins = min(memory.occurred_at for memory in memories)
    says = (row.source, ctx.digest("type", row.type), row.target)
    while ctx[CLAIMS].get(*says, begins) is not None:
        begins += 1  # each millisecond that is taken is a claim's, of which there are few
    parted = msgspec.structs.replace(
        row,
        id=ctx.new_id("rel"),
        ordinal=ctx.next_ordinal("graph_relationships"),
        valid_from=begins,
        asked_for=False,
        sources=[source for source in row.sources if source in own],
        source_memory_id=memories[0].id,
    )
    enter_claim(ctx, parted)
    for memory in memories:
        ctx[SOURCES].delete(memory.id, RELATIONSHIP, row.ordinal)
        note_bound(ctx, parted, memory)
    left = [source for source in row.sources if source not in own]
    first = next(iter(find_rows_at(ctx, left)), None)
    gone = {memory.id for memory in memories}
    named_source = row.source_memory_id
    if named_source in gone:
        named_source = None if first is None else first.id
    put_claim(ctx, msgspec.structs.replace(row, sources=left, source_memory_id=named_source))
    return put_claim(ctx, parted)


def supported(ctx: WriteContext, row: RelationshipRow, memory: MemoryRow) -> RelationshipRow:
    """The row with one more source, the newest SOURCES_PER_CLAIM_MAX of which are kept."""
    if memory.ordinal in row.sources:
        return row
    ctx[SOURCES].put((memory.id, RELATIONSHIP, row.ordinal), memory.ordinal.to_bytes(4, "big"))
    sources = [*row.sources, memory.ordinal][-SOURCES_PER_CLAIM_MAX:]
    return msgspec.structs.replace(
        row, sources=sources, source_memory_id=row.source_memory_id or memory.id
    )


def support_claim(ctx: WriteContext, row: RelationshipRow, memory: MemoryRow) -> RelationshipRow:
    """Let one more memory be a source of a claim, which mentions both its ends."""
    for entity in ctx[ENTITIES].rows([(row.source,), (row.target,)]):
        ensure_entity(ctx, entity.name, entity.type, memory=memory)
    row = supported(ctx, row, memory)
    ctx[RELATIONSHIPS].put((row.ordinal,), row)
    return row


def end_claim(
    ctx: WriteContext, row: RelationshipRow, valid_to: int | None, memory_id: str = ""
) -> RelationshipRow:
    """Give a claim an end (None opens it again), learned now."""
    ends = with_end(row.ends, End(valid_to, ctx.now, memory_id))
    return put_claim(ctx, msgspec.structs.replace(row, ends=ends))


def begin_claim(
    ctx: WriteContext, row: RelationshipRow, valid_from: int, memory_id: str = ""
) -> RelationshipRow:
    """Give a claim without a beginning one, learned now."""
    return put_claim(
        ctx, msgspec.structs.replace(row, narrowed=Begin(valid_from, ctx.now, memory_id))
    )


def invalidate_claim(
    ctx: WriteContext, row: RelationshipRow, memory_id: str | None = None
) -> RelationshipRow:
    """Retract it: from now on it is not known, and an earlier known_at still sees it."""
    if row.invalidated_at is not None:
        return row
    graph_stats.claim_went(ctx, row.source, row.target, row.type)
    return put_claim(
        ctx, msgspec.structs.replace(row, invalidated_at=ctx.now, retracted_by=memory_id)
    )


def revive_claim(ctx: WriteContext, row: RelationshipRow) -> RelationshipRow:
    """Let a claim that was taken back stand again; `invalidate_claim` undone."""
    if row.invalidated_at is None:
        return row
    graph_stats.claim_came(ctx, row.source, row.target, row.type)
    return put_claim(ctx, msgspec.structs.replace(row, invalidated_at=None, retracted_by=None))


def delete_relationship(ctx: WriteContext, row: RelationshipRow) -> None:
    """Remove a claim, on both clocks."""
    leave_claim(ctx, row)
    ctx[RELATIONSHIPS].delete(row.ordinal)


def leave_claim(ctx: WriteContext, row: RelationshipRow) -> None:
    """Have a claim, whose row stays, found no more; `enter_claim` undone."""
    _forget_conflicts(ctx, row)
    key = claim_key(ctx, row)
    if ctx[CLAIMS].get(*key) == row.ordinal.to_bytes(4, "big"):
        ctx[CLAIMS].delete(*key)
    fields = ctx.index(CLAIM_FIELDS)
    for end in {row.source, row.target}:
        fields.remove(row.ordinal, "end", end)
    fields.remove(row.ordinal, "all", 1)
    fields.remove(row.ordinal, "type", row.type)
    ctx[GRAPH_IDS].delete(row.id)
    if row.invalidated_at is None:
        graph_stats.claim_went(ctx, row.source, row.target, row.type)


def put_claim(ctx: WriteContext, row: RelationshipRow) -> RelationshipRow:
    """Store a claim that changed, and what it contradicts now."""
    ctx[RELATIONSHIPS].put((row.ordinal,), row)
    _compare(ctx, row)
    return row


def overlap(one: RelationshipRow, other: RelationshipRow) -> tuple[int | None, int | None] | None:
    """The interval [from, to) in which both hold, or None; None inside it is open."""
    begins = [row.begins for row in (one, other) if row.begins is not None]
    ends = [row.valid_to for row in (one, other) if row.valid_to is not None]
    low, high = max(begins, default=None), min(ends, default=None)
    return None if low is not None and high is not None and low >= high else (low, high)


def _compare(ctx: WriteContext, row: RelationshipRow) -> None:
    """Bring the list of contradictions up to this claim."""
    _forget_conflicts(ctx, row)
    if not row.functional or row.invalidated_at is not None:
        return
    for other in claims_of(ctx, row.source, row.type):
        if other.target != row.target and other.functional and overlap(row, other) is not None:
            ctx[CONFLICTS].put(
                (max(row.ordinal, other.ordinal), min(row.ordinal, other.ordinal)), b""
            )
            graph_stats.conflicts_changed(ctx, 1)


def _forget_conflicts(ctx: WriteContext, row: RelationshipRow) -> None:
    if not row.functional:
        return
    rivals = [
        int.from_bytes(raw, "big")
        for _, raw in ctx[CLAIMS].scan(
            row.source, ctx.digest("type", row.type), limit=CLAIMS_COMPARED_MAX
        )
    ]
    gone = sum(
        ctx[CONFLICTS].delete(max(row.ordinal, rival), min(row.ordinal, rival)) for rival in rivals
    )
    if gone:
        graph_stats.conflicts_changed(ctx, -gone)


def note_bound(ctx: WriteContext, row: RelationshipRow, memory: MemoryRow) -> None:
    """Remember that this memory is what we know the claim's beginning or end from, so that the
    bound goes with it.
    """
    ctx[SOURCES].put((memory.id, RELATIONSHIP, row.ordinal), memory.ordinal.to_bytes(4, "big"))


def claims_from(ctx: ReadContext, memory_id: str) -> list[RelationshipRow]:
    """The claims this memory is a source of, or knows the end of."""
    keys = [(key[2],) for key in ctx[SOURCES].keys(memory_id, RELATIONSHIP)]
    return [row for row in ctx[RELATIONSHIPS].get_many(keys) if row is not None]
