"""Which statement a correction corrects, and which of its claims.

It is the one that its speaker made directly before: in the same conversation, else the last that is
kept of them in the same session, or on the same day where there are no sessions. What was known and
is told there once more counts from then on. Nothing older is touched, nor what others said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plugins.graph import RelationshipRow, get_entities
from plugins.ingestion import duplicates as merging
from plugins.ingestion.corrections import THAT
from plugins.ingestion.facts import CORRECTS, Fact, key_words
from plugins.ingestion.limits import EARLIER_MEMORIES_MAX
from plugins.ingestion.statements import Target
from plugins.ingestion.store import (
    TURN,
    FactRow,
    facts_of,
    facts_of_turn,
    occasion,
    told_again_at,
)
from plugins.memories import MEMORY_FIELDS, MemoryRow, find_row, find_rows_at, unreadable
from runtime.api.context import ReadContext
from storage.text import analyze

_TIMED = frozenset({"takes_place", "measures", "born_on"})


def statement_before(
    ctx: ReadContext, target: Target, speaker: str, told: Sequence[str], about: str = THAT
) -> list[MemoryRow]:
    """The memories of the statement directly before that stand, the turn first; with `about`, of
    those before that speak of it. told: the memories of this conversation so far, in order.
    """
    wanted = set() if about == THAT else set(analyze(about))
    for row in _before(ctx, target, speaker, told):
        kept = merging.keeper(ctx, row)
        if wanted and (kept is None or not wanted <= set(analyze(kept.content))):
            continue
        return [] if kept is None else _with_its_facts(ctx, kept, told)
    return []


def _before(ctx: ReadContext, target: Target, speaker: str, told: Sequence[str]) -> list[MemoryRow]:
    """What a speaker said on this occasion, the latest first: of this conversation, and else what
    was stored earlier.
    """
    here = [row for each in reversed(told) if (row := find_row(ctx, each)) is not None]
    fields, (number, user_id) = ctx.index(MEMORY_FIELDS), target.scope
    kept = (fields.of("live", 1) & fields.of("collection", number)) - unreadable(ctx)
    kept = kept if user_id is None else kept & fields.of("user_id", user_id)
    session = target.fields.get("session_id")
    this = occasion(ctx, session, target.at)
    earlier: list[tuple[tuple[int, int, int], MemoryRow]] = []
    for row in find_rows_at(ctx, kept[-EARLIER_MEMORIES_MAX:]):
        again = told_again_at(ctx, row.id, this)
        is_of_session = row.session_id == session
        if again or (is_of_session and occasion(ctx, session, row.occurred_at) == this):
            created = row.created_at if is_of_session else 0
            earlier.append(((max(created, again), int(again >= created), row.ordinal), row))
    earlier.sort(key=lambda said: said[0], reverse=True)
    return [
        row
        for row in (*here, *(row for _, row in earlier))
        if row.speaker in (None, speaker)
        and (row.number, row.user_id) == (number, user_id)
        and row.occurred_at <= target.at
    ]


def _with_its_facts(ctx: ReadContext, row: MemoryRow, told: Sequence[str]) -> list[MemoryRow]:
    """A turn and the facts that rest on it, whichever of them is given."""
    turn = row if row.rests_on is None else find_row(ctx, row.rests_on)
    if turn is None or turn.source_type != TURN:
        return [row]
    here = [each for name in told if (each := find_row(ctx, name)) is not None]
    facts = [*facts_of_turn(ctx, turn), *(each for each in here if each.rests_on == turn.id)]
    rows = {each.id: each for each in (turn, *facts)}
    return [each for each in rows.values() if not each.superseded]


def claims_of_all(
    ctx: ReadContext, rows: Sequence[MemoryRow]
) -> list[tuple[FactRow, RelationshipRow]]:
    """The claims of these memories that stand and that no other memory makes."""
    own = {row.ordinal for row in rows}
    found = {}
    for row in rows:
        for fact in facts_of(ctx, row.id):
            claim = merging.claim_of(ctx, fact)
            if claim is not None and claim.valid_to is None and own.issuperset(claim.sources):
                found.setdefault(claim.id, (fact, claim))
    return list(found.values())


def corrected(
    ctx: ReadContext, fact: Fact, rows: Sequence[MemoryRow]
) -> tuple[Fact, RelationshipRow] | None:
    """The claim that a correction makes, and the one of these memories that it is made of; None
    where it is not the only one that may be meant.
    """
    found = [
        (made, claim)
        for known, claim in claims_of_all(ctx, rows)
        if known.polarity == "holds" and (made := _made(ctx, fact, known, claim)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _made(ctx: ReadContext, fact: Fact, known: FactRow, claim: RelationshipRow) -> Fact | None:
    """What a claim becomes by a correction; None where it is not what the correction is about."""
    subject, thing = get_entities(ctx, [claim.source, claim.target])
    if subject is None or thing is None or fact.predicate != CORRECTS:
        return None
    if fact.by is not None:
        wanted, start = set(key_words(fact.by)), known.object.casefold().find(fact.by.casefold())
        if start < 0 or not wanted <= set(key_words(known.object)):
            return None
        new = known.object[:start] + fact.object + known.object[start + len(fact.by) :]
    elif fact.detail is not None:
        is_theirs = subject.name.casefold().endswith(f"'s {fact.detail.casefold()}")
        is_theirs |= fact.detail.casefold() == "birthday" and claim.type == "born_on"
        if not is_theirs:
            return None
        new = fact.object
    elif claim.type in _TIMED:
        new = fact.object
    else:
        return None
    return replace(
        fact, subject=subject.name, subject_type=subject.type, predicate=known.predicate,
        object=new, polarity="holds", detail=None, by=None, relates=True,
    )  # fmt: skip
