"""Two entities that are the same thing become one: what is said of the one is said of the other
from then on, on both clocks, and the one goes.

Claims keep their ids. Where the other one has a claim that says the same, both become that one,
with the sources and ends of both. A claim between the two would relate the one that stays to
itself, and goes. What is moved at once is bounded; of a larger entity the rest stays as it was
until the merge is asked for again, and both stand meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from plugins.graph.limits import (
    ALIAS_SOURCES_MAX,
    ALIASES_MAX,
    CLAIMS_MERGED_MAX,
    ENDS_PER_CLAIM_ITEMS_MAX,
    ENTITIES_NAMED_MAX,
    MENTIONS_MERGED_MAX,
)
from plugins.graph.rows import (
    CLAIM_FIELDS,
    CLAIMS,
    ENTITY,
    MENTIONS,
    RELATIONSHIP,
    RELATIONSHIPS,
    SOURCES,
    UNKNOWN_TYPE,
    EntityRow,
    RelationshipRow,
    normalized,
    with_attributes,
)
from plugins.graph.store import (
    claim_key,
    counted,
    delete_entity,
    delete_relationship,
    enter_claim,
    find_entity,
    leave_claim,
    mentioned,
    named,
    put_claim,
    put_entity,
    supported,
)
from plugins.memories import find_rows_at
from runtime.api.context import ReadContext, WriteContext
from runtime.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge has done: the entity that stays, how many claims and mentions it got, and
    whether that was all.
    """

    row: EntityRow
    claims: int
    mentions: int
    is_complete: bool


def require_one(alike: Sequence[EntityRow], param: str | None = None) -> None:
    """Raise Conflict where a name is that of several entities."""
    if len(alike) > 1:
        ids = ", ".join(each.id for each in alike[:ENTITIES_NAMED_MAX])
        raise Conflict(f"Several entities go by this name; name one by its id: {ids}.", param=param)


def two_called(ctx: ReadContext, name: str, into: str) -> tuple[EntityRow, EntityRow]:
    """The entity that goes and the one that stays, by their names or ids. Raises NotFound, and
    Conflict where nobody knows which of several is meant. One that was merged in part shares its
    name with the one that stays, and is meant by it.
    """
    called, kept = _all_called(ctx, name), _all_called(ctx, into)
    if not called:
        raise NotFound("There is no entity with this name or id.")
    if not kept:
        raise NotFound("There is no entity with this name or id to merge it into.", param="into")
    gone = _others(called, kept)
    require_one(gone)
    stays = _others(kept, gone)
    require_one(stays, "into")
    return gone[0], stays[0]


def _all_called(ctx: ReadContext, name_or_id: str) -> list[EntityRow]:
    """The entity of this id, or all that go by this name."""
    row = find_entity(ctx, name_or_id)
    return [] if row is None else [row] if row.id == name_or_id else named(ctx, name_or_id)


def _others(rows: Sequence[EntityRow], taken: Sequence[EntityRow]) -> Sequence[EntityRow]:
    """Those that are not among the others; all of them where none is left."""
    ordinals = {each.ordinal for each in taken}
    return [each for each in rows if each.ordinal not in ordinals] or rows


def merge_entity(ctx: WriteContext, gone: EntityRow, stays: EntityRow) -> Merge:
    """Let `stays` have the names, attributes, claims and mentions of `gone`, CLAIMS_MERGED_MAX and
    MENTIONS_MERGED_MAX of them at once; remove `gone` when it has none left. Nothing is done where
    both are the same.
    """
    if gone.ordinal == stays.ordinal:
        return Merge(stays, 0, 0, True)
    claims = ctx.index(CLAIM_FIELDS).of("end", gone.ordinal)
    moving = [(ordinal,) for ordinal in claims[:CLAIMS_MERGED_MAX]]
    for claim in ctx[RELATIONSHIPS].rows(moving):
        _move(ctx, claim, gone.ordinal, stays.ordinal)
    left, after, mentions = hand_over(ctx, gone, _described(stays, gone), MENTIONS_MERGED_MAX)
    put_entity(ctx, after, stays)
    is_complete = len(claims) == len(moving) and not any(ctx[MENTIONS].keys(gone.ordinal, limit=1))
    if is_complete:
        delete_entity(ctx, gone)
    else:
        put_entity(ctx, left, gone)
    return Merge(after, len(moving), mentions, is_complete)


def _described(stays: EntityRow, gone: EntityRow) -> EntityRow:
    """The one that stays with what the other one says of itself; its own word goes first."""
    names = dict.fromkeys(map(normalized, (stays.name, *stays.aliases)))
    further = {
        normalized(name): name
        for name in (gone.name, *gone.aliases)
        if normalized(name) not in names
    }
    given: dict[str, list[int]] = {}
    for name, memories in (*stays.read_aliases.items(), *gone.read_aliases.items()):
        if normalized(name) not in names and normalized(name) not in further:
            by = dict.fromkeys([*given.get(name, []), *memories])
            given[name] = list(by)[-ALIAS_SOURCES_MAX:]
    is_typed = stays.type != UNKNOWN_TYPE
    return msgspec.structs.replace(
        stays,
        type=stays.type if is_typed else gone.type,
        is_read=stays.is_read if is_typed else gone.is_read,
        aliases=[*stays.aliases, *further.values()][:ALIASES_MAX],
        read_aliases=dict(list(given.items())[:ALIASES_MAX]),
        attributes=with_attributes(gone.attributes, stays.attributes, "into"),
        asked_for=True,  # what somebody said of it is to stay, whatever memories go
        is_value=False,
        first_seen_at=min(stays.first_seen_at, gone.first_seen_at),
        last_seen_at=max(stays.last_seen_at, gone.last_seen_at),
    )


def hand_over(
    ctx: WriteContext, gone: EntityRow, stays: EntityRow, limit: int
) -> tuple[EntityRow, EntityRow, int]:
    """Let the memories that mention `gone`, so many of them at most, mention `stays`; -> (both rows
    as they are then, how many memories), which the caller stores.
    """
    taken_for = {memory: raw for (_, memory), raw in ctx[MENTIONS].scan(gone.ordinal, limit=limit)}
    for memory in find_rows_at(ctx, taken_for):
        stays = mentioned(ctx, stays, memory, taken_for[memory.ordinal])
        ctx[SOURCES].delete(memory.id, ENTITY, gone.ordinal)
    for memory, raw in taken_for.items():
        ctx[MENTIONS].delete(gone.ordinal, memory)
        gone = msgspec.structs.replace(gone, mentions=gone.mentions - 1)
        gone = counted(gone, raw, -1) if raw else gone
    return gone, stays, len(taken_for)


def _move(ctx: WriteContext, claim: RelationshipRow, gone: int, stays: int) -> None:
    """Let a claim about the one entity be about the other."""
    ends = {gone: stays}
    moved = msgspec.structs.replace(
        claim,
        source=ends.get(claim.source, claim.source),
        target=ends.get(claim.target, claim.target),
    )
    if moved.source == moved.target and claim.source != claim.target:
        delete_relationship(ctx, claim)
        return
    leave_claim(ctx, claim)
    raw = ctx[CLAIMS].get(*claim_key(ctx, moved))
    same = None if raw is None else ctx[RELATIONSHIPS].get(int.from_bytes(raw, "big"))
    if same is None or same.invalidated_at is not None or moved.invalidated_at is not None:
        enter_claim(ctx, moved)
        put_claim(ctx, moved)
    else:
        ctx[RELATIONSHIPS].delete(moved.ordinal)
        _join(ctx, same, moved)


def _join(ctx: WriteContext, row: RelationshipRow, other: RelationshipRow) -> None:
    """Let a claim stand for another one that says the same, and is stored no more."""
    for memory in find_rows_at(ctx, other.sources):
        ctx[SOURCES].delete(memory.id, RELATIONSHIP, other.ordinal)
        row = supported(ctx, row, memory)
    for memory_id in _bounding(other):
        raw = ctx[SOURCES].get(memory_id, RELATIONSHIP, other.ordinal)
        if raw is not None:
            ctx[SOURCES].delete(memory_id, RELATIONSHIP, other.ordinal)
            ctx[SOURCES].put((memory_id, RELATIONSHIP, row.ordinal), raw)
    ends = sorted(dict.fromkeys([*row.ends, *other.ends]), key=lambda end: end.learned_at)
    put_claim(
        ctx,
        msgspec.structs.replace(
            row,
            attributes=with_attributes(other.attributes, row.attributes, "into"),
            confidence=max(row.confidence, other.confidence),
            recorded_at=min(row.recorded_at, other.recorded_at),
            ends=ends[-ENDS_PER_CLAIM_ITEMS_MAX:],
            narrowed=row.narrowed or other.narrowed,
            functional=row.functional or other.functional,
            asked_for=row.asked_for or other.asked_for,
            is_entered=row.is_entered or other.is_entered,
        ),
    )


def _bounding(row: RelationshipRow) -> Iterable[str]:
    """The ids of the memories that a claim's beginning or ends are known from."""
    bounds = [*row.ends, *([] if row.narrowed is None else [row.narrowed])]
    return dict.fromkeys(bound.memory_id for bound in bounds if bound.memory_id)
