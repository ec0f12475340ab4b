"""What the knowledge graph answers: entities, relationships, questions on two clocks,
contradictions, figures.

The operations that lead here are declared in plugins/graph/__init__.py, with the choices that were
made; what is stored, and how it changes, is in plugins/graph/store.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyroaring import BitMap

from plugins.collections import Sweep, require_collection
from plugins.graph import statistics as graph_stats
from plugins.graph.forgetting import forget_collection, forget_memory
from plugins.graph.limits import (
    ALIASES_MAX,
    CLAIMS_PER_ENTITY_READ_MAX,
    CLAIMS_VISITED_MAX,
    ENTITIES_SWEPT_PER_STEP,
    SOURCE_MEMORIES_SHOWN_MAX,
)
from plugins.graph.merging import merge_entity, require_one, two_called
from plugins.graph.models import (
    ContradictionQuery,
    EntityMerge,
    EntityQuery,
    GraphQuery,
    NewEntity,
    NewRelationship,
    RelationshipChoice,
    TimelineQuery,
)
from plugins.graph.rows import (
    ALWAYS,
    CLAIM_FIELDS,
    CONFLICTS,
    ENTITIES,
    ENTITY_FIELDS,
    MENTIONS,
    RELATIONSHIPS,
    EntityRow,
    RelationshipRow,
    normalized,
)
from plugins.graph.store import (
    Claim,
    Sight,
    assert_claim,
    claims_from,
    delete_entity,
    delete_relationship,
    ensure_entity,
    get_entity,
    get_relationship,
    invalidate_claim,
    named,
    overlap,
    revive_claim,
)
from plugins.graph.succession import beginning, close_previous
from plugins.memories import MemoryRow, find_row, find_rows_at, get_row, unreadable
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Event, Reply, View
from runtime.api.pagination import envelope, newest_first, position
from runtime.errors import ValidationFailed
from runtime.ids import id_tag
from runtime.settings import Settings
from runtime.timestamps import iso
from storage.indexes import PREFIX_CHARS_MAX

QUOTE_CHARS_MAX = 500


class GraphChanged(View):
    """An entity or relationship came, changed or went."""

    id: str


GRAPH_CHANGED = Event("internal.graph_changed", GraphChanged)

# --- how things look ------------------------------------------------------------------------------


def entity_view(row: EntityRow) -> dict[str, Any]:
    """Turn an entity's row into the API's Entity."""
    return {
        "id": row.id,
        "name": row.name,
        "normalized_name": row.normalized,
        "type": row.type,
        "aliases": row.all_aliases,
        "attributes": row.attributes,
        "mention_count": row.mentions,
        "first_seen_at": _iso(row.first_seen_at),
        "last_seen_at": _iso(row.last_seen_at),
        "collection_id": row.collection_id,
    }


def relationship_view(
    row: RelationshipRow, names: Mapping[int, EntityRow], known_at: int | None = None
) -> dict[str, Any]:
    """Turn a claim's row into the API's Relationship; `names` holds both ends by ordinal."""
    source, target = names[row.source], names[row.target]
    ended = row.valid_to if known_at is None else row.end_known_at(known_at)
    return {
        "id": row.id,
        "source": {"id": source.id, "name": source.name},
        "type": row.type,
        "target": {"id": target.id, "name": target.name},
        "attributes": row.attributes,
        "confidence": row.confidence,
        "valid_from": _iso(row.begins),
        "valid_to": _iso(ended),
        "recorded_at": _iso(row.recorded_at),
        "invalidated_at": _iso(row.invalidated_at),
        "source_memory_id": row.source_memory_id,
        "functional": row.functional,
    }


def ends_of(
    ctx: ReadContext, rows: Iterable[RelationshipRow], *further: int
) -> dict[int, EntityRow]:
    """The entities at the ends of these claims, by ordinal, in the order they are met."""
    ordinals = dict.fromkeys([*further, *(end for row in rows for end in (row.source, row.target))])
    found = ctx[ENTITIES].get_many([(ordinal,) for ordinal in ordinals])
    return {row.ordinal: row for row in found if row is not None}


@lru_cache(maxsize=1_024)
def _iso(ms: int | None) -> str | None:
    """Many claims of an answer share their instants."""
    return None if ms is None else iso(ms)


def _delivery(settings: Settings) -> str:
    """Whether object storage has a write when its reply goes out; in `replicated` mode the reply
    waits for that.
    """
    if settings.object_store.url is None:
        return "not_configured"
    return "delivered" if settings.durability.mode == "replicated" else "pending"


def _receipt(ctx: WriteContext, resource_id: str) -> dict[str, Any]:
    """Rule G: what has happened to a write, here and elsewhere."""
    event_id = ctx.emit(GRAPH_CHANGED, {"id": resource_id}, resource_id)
    return {
        "primary": {
            "status": "committed",
            "read_after_write": True,
            "sequence": ctx.sequence,
        },
        "replica_delivery": {"status": _delivery(ctx.settings), "outbox_event_id": event_id},
    }


# --- entities -------------------------------------------------------------------------------------


def create_entity(ctx: WriteContext, body: NewEntity) -> Reply:
    collection = None if body.collection_id is None else require_collection(ctx, body.collection_id)
    row, is_new = ensure_entity(
        ctx,
        body.name,
        body.type,
        aliases=body.aliases,
        attributes=body.attributes,
        collection=collection,
    )
    known = {row.normalized, *map(normalized, row.all_aliases)}
    if not known.issuperset(map(normalized, body.aliases)):
        raise ValidationFailed.at(
            ("body", "aliases"), f"an entity has at most {ALIASES_MAX}, those it has included"
        )
    return Reply(201 if is_new else 200, {**entity_view(row), **_receipt(ctx, row.id)})


def list_entities(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked: EntityQuery = ctx.query
    fields = ctx.index(ENTITY_FIELDS)
    found = BitMap(fields.of("all", 1))
    if asked.entity_type is not None:
        found &= fields.of("type", asked.entity_type)
    if asked.collection_id is not None:
        found &= fields.of("collection", require_collection(ctx, asked.collection_id).number)
    if asked.name_prefix is not None:
        prefix = normalized(asked.name_prefix)
        found &= fields.starting_with("name", prefix)
        if len(prefix) > PREFIX_CHARS_MAX:
            found = BitMap(
                ordinal
                for ordinal in found
                if ctx[ENTITIES].row(ordinal).normalized.startswith(prefix)
            )
    sight = Sight.of(ctx)
    if sight.gone or sight.dropped:
        found = BitMap(ordinal for ordinal in found if sight.sees_ordinal(ordinal))
    page, following = newest_first(ctx, found)
    rows = ctx[ENTITIES].rows([(ordinal,) for ordinal in page])
    return envelope(ctx, [entity_view(row) for row in rows], following, len(found))


def entity_details(ctx: ReadContext, body: None) -> dict[str, Any]:
    row = get_entity(ctx, ctx.path["entity_name"])
    claims = [
        claim
        for claim in claims_at(ctx, row.ordinal, newest=CLAIMS_PER_ENTITY_READ_MAX)
        if claim.invalidated_at is None
    ]
    names = ends_of(ctx, claims, row.ordinal)
    mentions = ctx[MENTIONS].keys(row.ordinal, reverse=True, limit=SOURCE_MEMORIES_SHOWN_MAX)
    gone = unreadable(ctx)
    sources = [
        {"memory_id": memory.id, "content": memory.content, "occurred_at": iso(memory.occurred_at)}
        for memory in find_rows_at(ctx, (memory for _, memory in mentions))
        if memory.ordinal not in gone
    ]
    return {
        "entity": entity_view(row),
        "relationships": [relationship_view(c, names) for c in claims],
        "source_memories": sources,
    }


def remove_entity(ctx: WriteContext, body: None) -> dict[str, Any]:
    name = ctx.path["entity_name"]
    row = get_entity(ctx, name)
    require_one(named(ctx, name))  # a request that is repeated would delete one after the other
    delete_entity(ctx, row)
    ctx.emit(GRAPH_CHANGED, {"id": row.id}, row.id)
    return {"id": row.id, "deleted": True}


def merge_entities(ctx: WriteContext, body: EntityMerge) -> dict[str, Any]:
    done = merge_entity(ctx, *two_called(ctx, ctx.path["entity_name"], body.into))
    return {
        **entity_view(done.row),
        "relationships_moved": done.claims,
        "mentions_moved": done.mentions,
        "complete": done.is_complete,
        **_receipt(ctx, done.row.id),
    }


# --- relationships --------------------------------------------------------------------------------


def create_relationship(ctx: WriteContext, body: NewRelationship) -> Reply:
    memory = None if body.source_memory_id is None else get_row(ctx, body.source_memory_id)
    created: list[EntityRow] = []
    ends = [_end(ctx, text, memory, created) for text in (body.source, body.target)]
    claim = Claim(
        ends[0],
        body.type,
        ends[1],
        body.valid_from,
        body.valid_to,
        body.recorded_at,
        body.confidence,
        body.functional,
        body.attributes,
    )
    closed = []
    if body.close_previous and body.functional is not False:
        closed = close_previous(ctx, claim, memory)
        claim.valid_from = beginning(ctx, claim, has_closed=bool(closed))
    row, is_new = assert_claim(ctx, claim, memory, is_entered=memory is not None)
    view = {
        **relationship_view(row, {end.ordinal: end for end in ends}),
        "created_entities": [{"id": made.id, "name": made.name} for made in created],
        "closed": closed,
    }
    return Reply(201 if is_new else 200, {**view, **_receipt(ctx, row.id)})


def _end(
    ctx: WriteContext, text: str, memory: MemoryRow | None, created: list[EntityRow]
) -> EntityRow:
    """The entity with this id or name; a name that is new becomes one."""
    if id_tag("ent", text) is not None:
        row = get_entity(ctx, text)
        return ensure_entity(ctx, row.name, row.type, memory=memory, is_given=True)[0]
    row, is_new = ensure_entity(ctx, text, memory=memory, is_given=True)
    if is_new:
        created.append(row)
    return row


def remove_relationship(ctx: WriteContext, body: RelationshipChoice) -> dict[str, Any]:
    chosen = body.relationship_id or ctx.query.relationship_id
    loc = ("body", "relationship_id")
    if chosen is None:
        raise ValidationFailed.at(loc, "is required unless the query has it", "missing")
    if ctx.query.relationship_id not in (None, chosen):
        raise ValidationFailed.at(loc, "must not differ from the query's")
    row = get_relationship(ctx, chosen)
    delete_relationship(ctx, row)
    ctx.emit(GRAPH_CHANGED, {"id": row.id}, row.id)
    return {"id": row.id, "deleted": True}


# --- questions ------------------------------------------------------------------------------------


def claims_at(ctx: ReadContext, entity: int, newest: int | None = None) -> list[RelationshipRow]:
    """The claims an entity is an end of, newest first, those that may be seen."""
    sight = Sight.of(ctx)
    ordinals = ctx.index(CLAIM_FIELDS).of("end", entity)
    keys = [(ordinal,) for ordinal in reversed(ordinals if newest is None else ordinals[-newest:])]
    return [
        row
        for row in ctx[RELATIONSHIPS].get_many(keys)
        if row is not None and sight.sees_claim(row)
    ]


def walk(
    ctx: ReadContext, start: Iterable[int], depth: int, accepts: Any, claims_max: int
) -> tuple[list[RelationshipRow], dict[int, int]]:
    """Breadth first from some entities; -> (claims met that `accepts(row)`, nearest first; hops to
    each entity met).

    Stops at `claims_max` claims met, and looks at no more than CLAIMS_VISITED_MAX.
    """
    sight, fields, claims = Sight.of(ctx), ctx.index(CLAIM_FIELDS), ctx[RELATIONSHIPS]
    hops = dict.fromkeys(start, 0)
    found: list[RelationshipRow] = []
    seen = BitMap()
    front = list(hops)
    for distance in range(1, depth + 1):
        following: list[int] = []
        for entity in front:
            fresh = fields.of("end", entity) - seen
            room = CLAIMS_VISITED_MAX - len(seen)
            if room <= 0:
                return found, hops
            fresh = fresh[-room:]
            seen |= fresh
            for row in claims.get_many([(ordinal,) for ordinal in reversed(fresh)]):
                if row is None or not accepts(row) or not sight.sees_claim(row):
                    continue
                found.append(row)
                other = row.target if row.source == entity else row.source
                if other not in hops:
                    hops[other] = distance
                    following.append(other)
                if len(found) >= claims_max:
                    return found, hops
        front = following
    return found, hops


def query(ctx: ReadContext, body: GraphQuery) -> dict[str, Any]:
    valid_at = next((at for at in (body.valid_at, body.timestamp) if at is not None), ctx.now)
    known_at = ctx.now if body.known_at is None else body.known_at
    between = None if body.between is None else (body.between[0], body.between[1])

    def accepts(row: RelationshipRow) -> bool:
        return (body.relation_type is None or row.type == body.relation_type) and row.holds(
            valid_at, known_at, between
        )

    ends = {
        name: get_entity(ctx, text)
        for name, text in (("entity", body.entity), ("target", body.target))
        if text is not None
    }
    if len(ends) == 2:
        claims = _ways(ctx, ends["entity"].ordinal, ends["target"].ordinal, body.depth, accepts)[
            : body.limit
        ]
    elif ends:
        start = next(iter(ends.values())).ordinal
        claims, _ = walk(ctx, [start], body.depth, accepts, body.limit)
    else:
        claims = _everywhere(ctx, body, accepts)
    names = ends_of(ctx, claims, *(end.ordinal for end in ends.values()))
    return {
        "entities": [entity_view(row) for row in names.values()],
        "relationships": [relationship_view(row, names, known_at) for row in claims],
        "valid_at": iso(valid_at),
        "known_at": iso(known_at),
    }


def _ways(
    ctx: ReadContext, source: int, target: int, depth: int, accepts: Any
) -> list[RelationshipRow]:
    """The claims on ways of at most `depth` hops between two entities."""
    claims, near = walk(ctx, [source], depth, accepts, CLAIMS_VISITED_MAX)
    inside = {row.ordinal for row in claims}
    _, far = walk(ctx, [target], depth, lambda row: row.ordinal in inside, CLAIMS_VISITED_MAX)

    def length(row: RelationshipRow) -> int:
        one, other = row.source, row.target
        return 1 + min(
            near.get(a, depth) + far.get(b, depth) for a, b in ((one, other), (other, one))
        )

    ways = sorted((row for row in claims if length(row) <= depth), key=length)
    return _without_dead_ends(ways, (source, target))


def _without_dead_ends(
    claims: list[RelationshipRow], ends: tuple[int, int]
) -> list[RelationshipRow]:
    """Without what leads nowhere but back; each turn takes off the last hop of every dead end."""
    while True:
        beside: dict[int, set[int]] = {}
        for row in claims:
            beside.setdefault(row.source, set()).add(row.target)
            beside.setdefault(row.target, set()).add(row.source)
        dead = {one for one, others in beside.items() if len(others - {one}) < 2}.difference(ends)
        if not dead:
            return claims
        claims = [row for row in claims if dead.isdisjoint((row.source, row.target))]


def _everywhere(ctx: ReadContext, body: GraphQuery, accepts: Any) -> list[RelationshipRow]:
    """Claims wherever they are, newest first."""
    fields, sight = ctx.index(CLAIM_FIELDS), Sight.of(ctx)
    ordinals = (
        fields.of("all", 1) if body.relation_type is None else fields.of("type", body.relation_type)
    )
    found: list[RelationshipRow] = []
    for ordinal in reversed(ordinals[-CLAIMS_VISITED_MAX:]):
        row = ctx[RELATIONSHIPS].get(ordinal)
        if row is not None and accepts(row) and sight.sees_claim(row):
            found.append(row)
            if len(found) == body.limit:
                break
    return found


def timeline(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked: TimelineQuery = ctx.query
    entity = get_entity(ctx, ctx.path["entity_name"])
    rows = [
        row
        for row in claims_at(ctx, entity.ordinal)
        if asked.relation_type in (None, row.type) and row.invalidated_at is None
    ]

    def place(row: RelationshipRow) -> tuple[int, int]:
        return (ALWAYS if row.begins is None else row.begins, row.ordinal)

    rows.sort(key=place)
    start = position(ctx)
    following = [row for row in rows if start is None or place(row) > start]
    page = following[: asked.limit]
    names = ends_of(ctx, page)
    after = place(page[-1]) if len(following) > len(page) else None
    return envelope(ctx, [relationship_view(row, names) for row in page], after, len(rows))


def contradictions(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked: ContradictionQuery = ctx.query
    memory = None if asked.memory_id is None else get_row(ctx, asked.memory_id)
    entity = None if asked.entity is None else get_entity(ctx, asked.entity)
    number = (
        None if asked.collection_id is None else require_collection(ctx, asked.collection_id).number
    )
    sight = Sight.of(ctx)
    start = position(ctx)
    items, total, last, more = [], 0, None, False
    for key in ctx[CONFLICTS].keys(reverse=True):
        newer, older = ctx[RELATIONSHIPS].rows([(ordinal,) for ordinal in key])
        if not (sight.sees_claim(newer) and sight.sees_claim(older)):
            continue
        if entity is not None and newer.source != entity.ordinal:
            continue
        if memory is not None and memory.ordinal not in (*newer.sources, *older.sources):
            continue
        if number is not None and not _is_of_collection(ctx, (newer, older), number):
            continue
        total += 1
        if start is not None and key >= start:
            continue
        if len(items) == asked.limit:
            more = True
            continue
        items.append(_contradiction(ctx, older, newer))
        last = key
    return envelope(ctx, items, last if more else None, total)


def _is_of_collection(ctx: ReadContext, rows: Sequence[RelationshipRow], number: int) -> bool:
    """Whether a memory of the collection says one of them, or whom they are about belongs to it."""
    if any(ctx[ENTITIES].row(row.source).number == number for row in rows):
        return True
    memories = find_rows_at(ctx, (ordinal for row in rows for ordinal in row.sources))
    return any(memory.number == number for memory in memories)


def _contradiction(
    ctx: ReadContext, older: RelationshipRow, newer: RelationshipRow
) -> dict[str, Any]:
    names = ends_of(ctx, (older, newer))
    both = overlap(older, newer) or (None, None)
    claims = []
    for row in (older, newer):
        memory = None if row.source_memory_id is None else find_row(ctx, row.source_memory_id)
        claims.append(
            {
                "relationship_id": row.id,
                "value": names[row.target].name,
                "valid_from": _iso(row.begins),
                "valid_to": _iso(row.valid_to),
                "memory_id": None if memory is None else memory.id,
                "quote": None if memory is None else memory.content[:QUOTE_CHARS_MAX],
            }
        )
    return {
        "subject": names[older.source].name,
        "predicate": older.type,
        "claims": claims,
        "overlap": {"from": _iso(both[0]), "to": _iso(both[1])},
        "resolution": _resolution(older, newer),
    }


def _resolution(older: RelationshipRow, newer: RelationshipRow) -> dict[str, str] | None:
    """Which claim to go by: the one surer of itself, else the one that began later."""
    if older.confidence != newer.confidence:
        return {
            "kept": max(older, newer, key=lambda row: row.confidence).id,
            "reason": "It is the surer one.",
        }
    if older.begins is None or newer.begins is None or older.begins == newer.begins:
        return None
    later = newer if newer.begins > older.begins else older
    return {"kept": later.id, "reason": "It began later."}


def stats(ctx: ReadContext, body: None) -> dict[str, Any]:
    return graph_stats.figures(ctx)


# --- when memories change -------------------------------------------------------------------------


def on_deleted(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: what only this memory supported goes with it."""
    forget_memory(ctx, resource_id)


def sweep_collection(
    ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str
) -> None:
    """Subscriber: one step of removing what was made in a dropped collection."""
    step = min(data.rows_left, ENTITIES_SWEPT_PER_STEP)
    if step <= 0:
        return
    swept = forget_collection(ctx, data.number, step)
    data.erased("graph_entities", swept)
    if swept == step:
        data.rows_left = 0


def on_updated(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: a rewritten memory supports and mentions nothing it said before, and is read
    again; a superseded one takes its open claims back.
    """
    row = find_row(ctx, resource_id)
    if row is None:
        return
    if row.content_version == row.version:
        forget_memory(ctx, resource_id)
        return
    for claim in claims_from(ctx, resource_id):
        alone = claim.sources == [row.ordinal] and not claim.asked_for
        if row.superseded and alone and claim.valid_to is None:
            invalidate_claim(ctx, claim, row.id)
        elif not row.superseded and claim.retracted_by == row.id:
            revive_claim(ctx, claim)
