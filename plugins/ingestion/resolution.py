"""From statements to memories: what is new, what is known, what takes another's place.

A statement (plugins/ingestion/statements.py) becomes one memory and any number of claims in the
graph. It is compared with what is known in its scope (the collection and the end user), first by
its text, then claim by claim, by subject and predicate:

    NOOP    its text is known, or a memory says the same (plugins/ingestion/duplicates.py) and
            stands for it. A turn that claims nothing lasting is known only where the same was said
            on the same occasion: in the same session, or on the same day
    ADD     it says something new
    UPDATE  a claim of it takes the place of another one: the other way of answering the same
            question
    DELETE  it says that something known holds no more

Nothing is changed in place. The older claim gets an end, and the memory behind it is superseded by
the new one once none of its claims is left, unless it says much more than they do; a turn once all
its sentences are such memories. Event time decides which is older, not arrival: a fact from before
what is known is stored as already superseded. Deleting the new memory gives back what it had
superseded; that is also how a whole job is undone.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plugins.graph import (
    Claim,
    RelationshipRow,
    assert_claim,
    begin_claim,
    end_claim,
    ensure_entity,
    note_bound,
    note_stored,
    read_at_once,
    support_claim,
)
from plugins.ingestion import duplicates as merging
from plugins.ingestion.classification import (
    UNRELATED,
    Verdict,
    began,
    classify,
    event_time,
    is_functional,
    is_namesake,
    subject_of,
)
from plugins.ingestion.corrections import THAT
from plugins.ingestion.duplicates import DATED
from plugins.ingestion.facts import (
    ALL,
    ANY,
    CORRECTS,
    PREDICATES,
    TAKES_BACK,
    Fact,
    Said,
)
from plugins.ingestion.statements import ResolutionOutcome, Statement, Target
from plugins.ingestion.store import (
    FACT,
    FACTS,
    REPLACED,
    SUCCESSORS,
    TEXTS,
    TOLD_OF,
    TURN,
    EvidenceRange,
    FactRow,
    is_over,
    note_told,
    occasion,
    tell_claims,
)
from plugins.ingestion.superseding import Superseded, end
from plugins.ingestion.taking_back import claims_of_all, corrected, statement_before
from plugins.memories import (
    Draft,
    MemoryRow,
    Storing,
    find_row,
    find_rows_at,
    supersede,
    unreadable,
)
from runtime.api.context import WriteContext
from runtime.timestamps import DAY_MS


@dataclass(slots=True)
class Settlement:
    """One statement on its way into what is known.

    taken_back  memories that it takes back
    corrected   claims that it makes in the place of others
    verdicts    how each fact stands to what is known
    """

    ctx: WriteContext
    statement: Statement
    said: Sequence[Said]
    target: Target
    outcome: ResolutionOutcome
    storing: Storing
    fresh: merging.Fresh
    key: bytes = b""
    taken_back: list[MemoryRow] = field(default_factory=list)
    corrected: list[tuple[Fact, RelationshipRow]] = field(default_factory=list)
    verdicts: list[tuple[Fact, Verdict]] = field(default_factory=list)

    @property
    def message(self) -> Said:
        """Where it was said."""
        return self.said[self.statement.source]

    @property
    def occasion(self) -> str:
        """When it was said, as far as that tells two turns of the same words apart; "" where it
        claims what lasts.
        """
        statement, target = self.statement, self.target
        lasting = any(f.relates and f.predicate not in DATED for f in statement.facts)
        if statement.turn is not None or lasting:
            return ""
        return target.fields.get("session_id") or f"\0{target.at // DAY_MS}"

    @property
    def speaker(self) -> str:
        """Who said it."""
        return self.message.speaker

    def record(
        self, kind: str, memory_id: str | None, reason: str, previous: MemoryRow | None = None
    ) -> None:
        """Add what was done to the outcome."""
        self.statement.memory_id = memory_id
        self.outcome.events.append(self.event(kind, memory_id, reason, previous))

    def record_noop(self, memory_id: str | None, reason: str, **further: str) -> None:
        """Record in the outcome that the statement added nothing."""
        self.statement.memory_id = memory_id
        self.outcome.repeated += self.statement.sentences
        self.outcome.record_noop(self.event("NOOP", memory_id, reason) | further)

    def event(
        self, kind: str, memory_id: str | None, reason: str, previous: MemoryRow | None = None
    ) -> dict[str, Any]:
        """What was done, as a job's result says it."""
        said = self.said
        event = {
            "event": kind,
            "memory_id": memory_id,
            "memory": self.statement.text,
            "evidence": [
                {
                    "source": source,
                    "start": start,
                    "end": end,
                    "quote": said[source].content[start:end],
                }
                for source, start, end in self.statement.evidence
            ],
            "reason": reason,
        }
        if previous is not None:
            event |= {"previous_memory_id": previous.id, "previous_content": previous.content}
        return event


def settle(
    ctx: WriteContext, wanted: Sequence[Statement], said: Sequence[Said], target: Target
) -> ResolutionOutcome:
    """Store what is new of these statements, in their order."""
    outcome, fresh = ResolutionOutcome(), merging.Fresh()
    with read_at_once(ctx):
        storing = Storing(ctx, "extracted")
        for statement in wanted:
            _settle(Settlement(ctx, statement, said, target, outcome, storing, fresh))
        storing.finish()
        # Behind all claims, as it is for memories that are read later.
        read = {each.ordinal: each.mentioned for each in wanted if each.ordinal is not None}
        note_stored(ctx, {ordinal: each for ordinal, each in read.items() if each is not None})
    here = occasion(ctx, target.fields.get("session_id"), target.at)
    for event in outcome.events:
        for name in TOLD_OF:
            if (memory_id := event.get(name)) is not None:
                again = event["event"] == "NOOP" and name == "memory_id"
                note_told(ctx, memory_id, target.job_id, here if again else None)
    return outcome


def settle_anew(
    ctx: WriteContext,
    memory: MemoryRow,
    found: Sequence[Fact],
    said: Sequence[Said],
    target: Target,
) -> int:
    """Let a memory that has no claims make those of its text, in place of what they replace or end;
    -> how many.
    """
    facts = [fact for fact in found if fact.predicate not in (TAKES_BACK, CORRECTS)]
    statement = Statement(memory.content, facts, 0, [(0, 0, len(memory.content))])
    storing, fresh = Storing(ctx), merging.Fresh()
    one = Settlement(ctx, statement, said, target, ResolutionOutcome(), storing, fresh)
    one.verdicts = [(fact, _judged(one, fact)) for fact in facts]
    superseded = Superseded()
    for number in range(len(one.verdicts)):
        _apply(one, memory, number, number, superseded)
    _report(one, memory, superseded)
    if facts:
        tell_claims(ctx, memory.id)
    return len(facts)


def _settle(one: Settlement) -> None:
    ctx, statement, target = one.ctx, one.statement, one.target
    one.key = _text_key(one)
    raw = ctx[TEXTS].get(one.key)
    known = None if raw is None else find_row(ctx, raw.decode())
    if _takes_up(one):
        known = None  # each time it is said it is about another statement
        told = [(fact.predicate, fact.text) for fact in statement.facts]
        if not one.taken_back and told == [(TAKES_BACK, statement.text)]:
            one.record_noop(None, "There is nothing before it that it could take back.")
            return
    if known is not None and not _says_still(one, known):
        known = None  # it was rewritten since, or its claims were taken away again
    if known is not None and (
        one.occasion or merging.keeper(ctx, known) is not None or target.at <= known.occurred_at
    ):
        one.record_noop((merging.keeper(ctx, known) or known).id, "The same text is known.")
        return
    one.verdicts = [(fact, _judged(one, fact)) for fact in statement.facts]
    if one.verdicts and all(verdict.known is not None for _, verdict in one.verdicts):
        kept = _standing_for(one)
        adds = statement.turn is None if kept is None else merging.adds_words(ctx, statement, kept)
        if not adds:
            _settle_known(one, kept)
            return
    elif not one.taken_back and not any(
        verdict.rivals or verdict.ends or verdict.later for _, verdict in one.verdicts
    ):
        twin = merging.same_words(ctx, statement.text, one.speaker, target.scope, one.fresh)
        if twin is not None and _is_of_occasion(one, twin):
            _attach(one, twin)
            return
        near = merging.same_meaning(ctx, statement, one.speaker, target.scope, one.fresh)
        if near is not None and merging.has_room(ctx, near[0]):
            _share(one, near[0])
            _merge(one, near[0], f"it says the same in other words (cosine {near[1]:.3f})")
            return
    memory = _store(one)
    one.statement.memory_id = memory.id
    one.outcome.created.append(memory.id)
    superseded = Superseded()
    _take_back(one, memory, superseded)
    for number in range(len(one.verdicts)):
        _apply(one, memory, number, number, superseded)
    _report(one, memory, superseded)


def _takes_up(one: Settlement) -> bool:
    """Find what a statement takes back or corrects of the one before it; -> whether it does so."""
    ctx, facts = one.ctx, one.statement.facts
    up = [fact for fact in facts if fact.predicate in (TAKES_BACK, CORRECTS)]
    if not up:
        return False
    source = one.statement.source
    told = [
        event["memory_id"]
        for event in one.outcome.events
        if event["memory_id"] is not None
        and (at := event["evidence"][0]["source"]) < source
        and one.said[at].speaker == one.speaker
    ]
    for fact in up:
        about = fact.object if fact.predicate == TAKES_BACK else THAT
        before = statement_before(ctx, one.target, one.speaker, told, about)
        if fact.predicate == TAKES_BACK:
            one.taken_back += before
        elif (found := corrected(ctx, fact, before)) is not None and not any(
            (found[0].subject, found[0].predicate) == (each.subject, each.predicate)
            for each in facts
        ):
            one.corrected.append(found)
    rest = [fact for fact in facts if fact.predicate != CORRECTS]
    one.statement.facts = [*rest, *(fact for fact, _ in one.corrected)]
    return True


def _judged(one: Settlement, fact: Fact) -> Verdict:
    """How a fact stands to what is known; one that corrects a claim takes its place in any case."""
    verdict = classify(one.ctx, fact, one.target)
    if (verdict.rivals or verdict.ends or verdict.later) and is_namesake(
        one.ctx, fact, one.statement.facts, one.target
    ):
        verdict = Verdict(verdict.kind, known=verdict.known, beside=True)
    for made, claim in one.corrected:
        if made is fact:
            verdict = Verdict(claim.type, known=verdict.known, rivals=[claim])
    return verdict


def _take_back(one: Settlement, memory: MemoryRow, superseded: Superseded) -> None:
    """End what the memories say that are taken back, and them with it."""
    superseded.ended += one.taken_back
    for _, claim in claims_of_all(one.ctx, one.taken_back):
        end(one.ctx, claim, one.target.at, memory, [])


def _says_still(one: Settlement, known: MemoryRow) -> bool:
    """Whether a memory still says what was ingested with it."""
    is_rewritten = known.content_version > 1
    if one.statement.facts:
        is_other = is_rewritten and not merging.are_same_words(known.content, one.statement.text)
        return not is_other and one.ctx[FACTS].first(known.id) is not None
    return not is_rewritten


def _is_of_occasion(one: Settlement, row: MemoryRow) -> bool:
    if not one.occasion:
        return True
    session = one.target.fields.get("session_id")
    return (
        row.session_id == session
        if session is not None
        else row.occurred_at // DAY_MS == one.target.at // DAY_MS
    )


def _store(one: Settlement) -> MemoryRow:
    turn = one.statement.turn
    fields = {
        "role": one.message.role,
        **one.target.fields,
        "occurred_at": one.target.at,
        "source_type": TURN if turn is None else FACT,
        "source_reference": None if turn is None else turn.memory_id,
        "speaker": one.speaker,
    }
    draft = Draft(one.statement.text, one.target.collection, fields, one.statement.indexed)
    one.storing.check_room([draft])
    memory = one.storing.store(draft)
    one.fresh.add(memory)
    one.ctx[TEXTS].put((one.key,), memory.id.encode())
    one.statement.ordinal = memory.ordinal
    return memory


# --- saying the same ------------------------------------------------------------------------------


def _standing_for(one: Settlement) -> MemoryRow | None:
    """The memory that made the first of the statement's claims, all of which are known."""
    ctx, first = one.ctx, _first_known(one)
    sources, gone = find_rows_at(ctx, first.sources), unreadable(ctx)
    standing = (
        merging.keeper(ctx, row)
        for row in sources
        if (row.number, row.user_id) == one.target.scope and row.ordinal not in gone
    )
    return next((row for row in standing if row is not None), None)


def _first_known(one: Settlement) -> RelationshipRow:
    return next(verdict.known for _, verdict in one.verdicts if verdict.known is not None)


def _settle_known(one: Settlement, kept: MemoryRow | None) -> None:
    """Every claim of the statement is known: the memory that made them stands for it."""
    if kept is not None and merging.has_room(one.ctx, kept):
        _merge(one, kept, "all that it says is known")
        return
    one.record_noop(
        _first_known(one).source_memory_id if kept is None else kept.id,
        "All that it says is known.",
    )


def _share(one: Settlement, kept: MemoryRow) -> None:
    """Let the claims of the memory that says the same be known, in place of new ones."""
    known = merging.facts_of(one.ctx, kept.id)
    for fact, verdict in one.verdicts:
        verdict.known = merging.claim_of(one.ctx, merging.like(fact, known))


def _merge(one: Settlement, kept: MemoryRow, why: str) -> None:
    """Store the statement as a memory that another one stands for."""
    memory = _store(one)
    for number in range(len(one.verdicts)):
        _apply(one, memory, number, number, Superseded())
    merging.merge(one.ctx, memory, kept, why)
    one.outcome.merged.append(memory.id)
    one.record_noop(kept.id, f"Merged: {why}.", merged_memory_id=memory.id)


def _attach(one: Settlement, twin: MemoryRow) -> None:
    """The statement's claims become those of a memory that has the same words; taking them away
    again undoes it.
    """
    last = one.ctx[FACTS].last(twin.id)
    first = 0 if last is None else last[0][1] + 1
    for index in range(len(one.verdicts)):
        _apply(one, twin, index, first + index, Superseded())
    one.ctx[TEXTS].put((one.key,), twin.id.encode())
    if one.verdicts:
        tell_claims(one.ctx, twin.id)
    why = "; its claims are known now" if one.verdicts else ""
    one.record_noop(twin.id, f"A memory has the same words{why}.")


# --- applying -------------------------------------------------------------------------------------


def _apply(
    one: Settlement, memory: MemoryRow, index: int, number: int, superseded: Superseded
) -> None:
    """Apply one verdict: end what the fact ends, and store its claim as the memory's, under
    `number`.
    """
    ctx, target = one.ctx, one.target
    fact, verdict = one.verdicts[index]
    at = event_time(fact, target)
    for row in verdict.rivals:
        end(ctx, row, at, memory, superseded.replaced)
    for row in verdict.ends:
        end(ctx, row, fact.valid_to or target.at, memory, superseded.ended)
    relationship = None
    if verdict.known is not None:
        relationship = support_claim(ctx, verdict.known, memory)
    elif fact.polarity == "holds" or (
        fact.polarity == "ended"
        and not (verdict.ends or verdict.rivals)
        and not {ANY, ALL} & set(fact.also)
    ):
        relationship = _claim(one, fact, verdict, memory)
    if verdict.later is not None:
        if verdict.later.begins is None:
            begin_claim(ctx, verdict.later, began(ctx, verdict.later), memory.id)
            note_bound(ctx, verdict.later, memory)
        superseded.later = _said_here(one, verdict.later)
    one.fresh.claims(memory)
    quote = one.said[fact.source].content[fact.start : fact.end]
    row = FactRow(
        fact.subject,
        fact.predicate,
        fact.object,
        fact.polarity,
        EvidenceRange(fact.source, fact.start, fact.end, quote),
        "" if relationship is None else relationship.id,
        target.job_id,
        fact.valid_from,
    )
    ctx[FACTS].put((memory.id, number), row)


def _said_here(one: Settlement, claim: RelationshipRow) -> MemoryRow | None:
    """The first memory of this collection and end user that makes a claim."""
    said = find_rows_at(one.ctx, claim.sources)
    return next((row for row in said if (row.number, row.user_id) == one.target.scope), None)


def _claim(
    one: Settlement, fact: Fact, verdict: Verdict, memory: MemoryRow
) -> RelationshipRow | None:
    """The claim in the graph, with both its ends; None for what relates to nothing."""
    ctx, target = one.ctx, one.target
    subject = subject_of(ctx, fact)
    name = fact.subject if subject is None else subject.name
    subject, _ = ensure_entity(
        ctx, name, subject.type if subject is not None else fact.subject_type or None, memory=memory
    )
    one.outcome.entities.add(subject.id)
    if fact.predicate == "named":
        ensure_entity(ctx, subject.name, subject.type, aliases=[fact.object], memory=memory)
    if fact.predicate in UNRELATED or not fact.relates:
        return None
    thing, _ = ensure_entity(ctx, fact.object, PREDICATES.get(fact.predicate), memory=memory)
    one.outcome.entities.add(thing.id)
    valid_from, valid_to = fact.valid_from, fact.valid_to
    if fact.polarity == "ended" and valid_to is None:
        valid_to = target.at
    if valid_from is None and (verdict.rivals or verdict.later is not None or verdict.returns):
        valid_from = target.at
    later, ended_by = verdict.later, None
    if later is not None:
        ended_by = _said_here(one, later)
        valid_to = began(ctx, later) if ended_by is None else None
    claim = Claim(
        subject,
        verdict.kind,
        thing,
        valid_from,
        valid_to,
        confidence=fact.confidence,
        functional=is_functional(verdict.kind) and not (fact.beside or verdict.beside),
    )
    row, _ = assert_claim(ctx, claim, memory)
    if later is not None and ended_by is not None:  # until that memory goes
        row = end_claim(ctx, row, began(ctx, later), ended_by.id)
        note_bound(ctx, row, ended_by)
    one.outcome.relationships.add(row.id)
    return row


def _report(one: Settlement, memory: MemoryRow, superseded: Superseded) -> None:
    """Supersede what the new memory leaves without a claim, and say what happened."""
    ctx = one.ctx
    older = {row.id: row for row in (*superseded.replaced, *superseded.ended)}
    for row in older.values():
        is_replaced = row in superseded.replaced
        reason = "replaced by what was said later" if is_replaced else "said to hold no more"
        supersede(ctx, row, memory.id, reason=reason)
        ctx[SUCCESSORS].put((memory.id, row.id), REPLACED)
        _supersede_turn(ctx, row, memory)
    if superseded.later is not None:
        supersede(ctx, memory, superseded.later.id, reason="older than what is known")
        ctx[SUCCESSORS].put((superseded.later.id, memory.id), REPLACED)
        one.record("ADD", memory.id, "It is older than what is known, and stored as superseded.")
    elif superseded.replaced:
        one.outcome.updated += len(older)
        why = "It takes the place of what was said before."
        one.record("UPDATE", memory.id, why, superseded.replaced[0])
    elif superseded.ended:
        one.outcome.invalidated += len(older)
        one.record("DELETE", memory.id, "It says that this holds no more.", superseded.ended[0])
    else:
        one.record("ADD", memory.id, "It is new.")


def _supersede_turn(ctx: WriteContext, fact: MemoryRow, memory: MemoryRow) -> None:
    """Supersede the turn that a superseded fact rests on, when each sentence of it is such a
    fact.
    """
    turn = None if fact.rests_on is None else find_row(ctx, fact.rests_on)
    if turn is None or turn.superseded:
        return
    if is_over(ctx, turn):
        supersede(ctx, turn, memory.id, reason="nothing that it says holds any more")
        ctx[SUCCESSORS].put((memory.id, turn.id), REPLACED)


def _text_key(one: Settlement) -> bytes:
    """A statement is the same when scope, speaker and words are; case and spacing do not count."""
    number, user_id = one.target.scope
    words = " ".join(one.statement.text.casefold().split())
    text = "\0".join(
        [str(number), user_id or "", one.speaker, words, *filter(None, [one.occasion])]
    )
    return hmac.digest(one.ctx.scope.key, b"ingested:" + text.encode(), hashlib.sha256)[:20]
