"""When memories go, or say something else: their claims are forgotten, and what they had superseded
holds again, or passes to what has been said since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plugins.graph import (
    RelationshipRow,
    claims_of,
    end_claim,
    note_bound,
)
from plugins.graph import forget_memory as forget_claims
from plugins.ingestion import duplicates as merging
from plugins.ingestion.classification import began
from plugins.ingestion.store import (
    FACTS,
    HANDED_ON,
    REPLACED,
    SUCCESSORS,
    TELLING,
    TURN,
    facts_of_turn,
    is_over,
    tell_claims,
)
from plugins.ingestion.superseding import is_in_passing
from plugins.memories import MemoryRow, find_row, restore, supersede
from runtime.api.context import WriteContext


def disown(ctx: WriteContext, memory_id: str, job_id: str) -> None:
    """Take from a memory the claims that this job alone found in it."""
    facts = [fact for _, fact in ctx[FACTS].scan(memory_id)]
    if facts and all(fact.job_id == job_id for fact in facts):
        forget_claims(ctx, memory_id)
        ctx[FACTS].delete_prefix(memory_id)
        tell_claims(ctx, memory_id)


def on_handed_on(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: a memory was superseded by what had superseded its correction, and holds again
    when that goes.
    """
    row = find_row(ctx, resource_id)
    if row is not None and row.superseded_by_id is not None:
        ctx[SUCCESSORS].put((row.superseded_by_id, row.id), HANDED_ON)


def forget_memory(ctx: WriteContext, memory_id: str) -> list[str]:
    """Forget the claims of a memory that is gone, and give back what it had superseded; -> the jobs
    whose results tell of it.
    """
    older = [name for _, name in ctx[SUCCESSORS].keys(memory_id)]
    for name in older:
        ctx[SUCCESSORS].delete(memory_id, name)
    rows = [row for name in older if (row := find_row(ctx, name)) is not None]
    for row in sorted(rows, key=lambda row: row.source_type == TURN):  # facts before their turns
        now = find_row(ctx, row.id)
        if now is not None and now.superseded_by_id == memory_id:
            _restore(ctx, now)
    job_ids = {row.job_id for _, row in ctx[FACTS].scan(memory_id) if row.job_id}
    job_ids.update(job_id for _, job_id in ctx[TELLING].keys(memory_id))
    ctx[FACTS].delete_prefix(memory_id)
    ctx[TELLING].delete_prefix(memory_id)
    return sorted(job_ids)


def give_back(ctx: WriteContext, memory: MemoryRow) -> None:
    """Let what an edited memory had replaced hold again where its claims do not end it any more.
    What was merged into it stays so, since somebody may have asked for that.
    """
    replaced = [key[1] for key, why in ctx[SUCCESSORS].scan(memory.id) if why == REPLACED]
    rows = [row for name in replaced if (row := find_row(ctx, name)) is not None]
    for row in sorted(rows, key=lambda row: row.source_type == TURN):  # facts before their turns
        now = find_row(ctx, row.id)
        if now is None or now.superseded_by_id != memory.id:
            continue
        successor = _successor(ctx, now) or _successor_of_turn(ctx, now)
        if successor is None or successor.id != memory.id:
            ctx[SUCCESSORS].delete(memory.id, row.id)
            _restore(ctx, now)


def _restore(ctx: WriteContext, row: MemoryRow) -> None:
    """What had superseded a memory is gone: it stands again, or is superseded by what has been said
    since; a turn all of whose sentences are over as well.
    """
    successor = _successor(ctx, row) or _successor_of_turn(ctx, row)
    if successor is None:
        restore(ctx, row, reason="what had superseded it was deleted")
        turn = None if row.rests_on is None else find_row(ctx, row.rests_on)
        if turn is not None and turn.superseded and turn.superseded_by_id is not None:
            ctx[SUCCESSORS].delete(turn.superseded_by_id, turn.id)
            restore(ctx, turn, reason="a fact that rests on it holds again")
    else:
        supersede(
            ctx,
            row,
            successor.id,
            reason="what had superseded it was deleted, and this was said later",
        )
        ctx[SUCCESSORS].put((successor.id, row.id), REPLACED)


def _successor_of_turn(ctx: WriteContext, turn: MemoryRow) -> MemoryRow | None:
    """The memory that superseded the last of a turn's facts, where all it says is over."""
    if turn.source_type != TURN or not is_over(ctx, turn):
        return None
    names = {fact.superseded_by_id for fact in facts_of_turn(ctx, turn)} - {None}
    found = [row for name in names if name and (row := find_row(ctx, name)) is not None]
    return max(found, key=lambda row: row.ordinal, default=None)


def _successor(ctx: WriteContext, row: MemoryRow) -> MemoryRow | None:
    """The memory that ended the last claim of this one, or ends it now; None when a claim of it
    stands.
    """
    successor, facts = None, merging.facts_of(ctx, row.id)
    for fact in facts:
        if fact.polarity != "holds" or is_in_passing(fact, facts):
            continue
        claim = merging.claim_of(ctx, fact)
        if claim is None or claim.invalidated_at is not None:
            return None
        ended_by = (
            claim.ends[-1].memory_id
            if claim.valid_to is not None
            else _ended_by_later(ctx, claim, row)
        )
        successor = find_row(ctx, ended_by) if ended_by else None
        if successor is None or successor.id == row.id:  # it ends itself
            return None
    return successor


def _ended_by_later(ctx: WriteContext, claim: RelationshipRow, row: MemoryRow) -> str | None:
    """End a claim where the next one that cannot hold beside it began; -> the memory that says so,
    if there is one.
    """
    if not claim.functional:
        return None
    rivals = [
        other
        for other in claims_of(ctx, claim.source, claim.type)
        if other.target != claim.target and began(ctx, other) > began(ctx, claim)
    ]
    for other in sorted(rivals, key=lambda other: began(ctx, other)):
        memory = None if other.source_memory_id is None else find_row(ctx, other.source_memory_id)
        if memory is not None and (memory.number, memory.user_id) == (row.number, row.user_id):
            end_claim(ctx, claim, began(ctx, other), memory.id)
            note_bound(ctx, claim, memory)
            return memory.id
    return None
