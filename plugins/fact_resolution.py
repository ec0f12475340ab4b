"""From facts to memories: what is new, what is known, what takes another's place (requirements of smart ingestion).

Facts with the same words are one *statement*, which becomes one memory and any number of claims in the graph. It is compared with
what is known in its scope (the collection and the end user), first by its text, then claim by claim, by subject and predicate:

    NOOP    its text is known, or a memory says the same (plugins/fact_merging.py) and stands for it
    ADD     it says something new
    UPDATE  a claim of it takes the place of another one: the other way of answering the same question
    DELETE  it says that something known holds no more

Nothing is changed in place. The older claim gets an end, and the memory behind it is superseded by the new one once none of its
claims is left. Event time decides which is older, not arrival: a fact from before what is known is stored as already superseded.
Deleting the new memory gives back what it had superseded; that is also how a whole job is undone.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugins import fact_merging as merging
from plugins.collections import CollectionRow
from plugins.fact_store import FACTS, REPLACED, SUCCESSORS, TEXTS, Evidence, FactRow
from plugins.facts import PREDICATES, Fact, Said
from plugins.graph_store import (
    ENTITIES,
    FUNCTIONAL,
    GRAPH_IDS,
    RELATIONSHIPS,
    UNKNOWN_TYPE,
    Claim,
    EntityRow,
    RelationshipRow,
    assert_claim,
    begin_claim,
    claims_of,
    end_claim,
    ensure_entity,
    named,
    note_bound,
    support_claim,
)
from plugins.graph_store import forget_memory as forget_claims
from plugins.memory_store import (
    MEMORIES,
    Draft,
    Indexed,
    MemoryRow,
    find_row,
    is_readable,
    restore,
    store_memory,
    supersede,
)
from runtime.operation import ReadContext, WriteContext
from storage.analysis import analyze

OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
UNRELATED = frozenset({"plans", "did", "named", "age", "born_on"})  # their objects are no things one could meet again
SOURCE_TYPE = "inferred"


@dataclass(slots=True)
class Statement:
    """One memory to be: a text and the claims it makes."""

    text: str
    facts: list[Fact]
    indexed: Indexed | None = None


@dataclass(slots=True)
class Target:
    """Where memories go, and what they all have in common. at: event time of the conversation, Unix milliseconds."""

    collection: CollectionRow
    fields: dict[str, Any]
    at: int
    job_id: str = ""

    @property
    def scope(self) -> tuple[int, str | None]:
        return self.collection.number, self.fields.get("user_id")


@dataclass(slots=True)
class Outcome:
    """What was done, in the words of a job's result."""

    events: list[dict[str, Any]] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    updated: int = 0
    invalidated: int = 0
    skipped: int = 0
    entities: set[str] = field(default_factory=set)
    relationships: set[str] = field(default_factory=set)

    def noop(self, event: dict[str, Any]) -> None:
        """A statement that added nothing."""
        self.skipped += 1
        self.events.append(event)


def statements(facts: Iterable[Fact]) -> list[Statement]:
    """Facts with the same text belong together, in the order of the conversation."""
    found: dict[tuple[str, str], Statement] = {}
    for fact in facts:
        found.setdefault((fact.text.casefold(), ""), Statement(fact.text, [])).facts.append(fact)
    return list(found.values())


def settle(ctx: WriteContext, wanted: Sequence[Statement], said: Sequence[Said], target: Target) -> Outcome:
    """Store what is new of these statements, in their order."""
    outcome = Outcome()
    for statement in wanted:
        _settle_one(ctx, statement, said, target, outcome)
    return outcome


def _settle_one(ctx: WriteContext, statement: Statement, said: Sequence[Said], target: Target, outcome: Outcome) -> None:
    key = _text_key(ctx, statement, said, target)
    raw = ctx[TEXTS].get(key)
    known = None if raw is None else find_row(ctx, raw.decode())
    if known is not None and ctx[FACTS].first(known.id) is None:
        known = None  # it was rewritten since, or its claims were taken away again
    if known is not None and ((kept := merging.keeper(ctx, known)) is not None or target.at <= known.occurred_at):
        outcome.noop(_event("NOOP", (kept or known).id, statement, said, "The same text is known."))
        return
    judged = [(fact, _judge(ctx, fact, target)) for fact in statement.facts]
    if all(verdict.known is not None for _, verdict in judged):
        _known(ctx, key, judged, statement, said, target, outcome)
        return
    speaker = said[statement.facts[0].source].speaker
    if not any(verdict.rivals or verdict.ends or verdict.later for _, verdict in judged):
        twin = merging.same_words(ctx, statement.text, speaker, target.scope)
        if twin is not None:
            _adopt(ctx, twin, key, judged, statement, said, target, outcome)
            return
        made = (*outcome.created, *outcome.merged)
        near = merging.same_meaning(ctx, statement.text, statement.facts, statement.indexed, speaker, target.scope, made)
        if near is not None and merging.has_room(ctx, near[0]):
            _share(ctx, near[0], judged)
            why = f"it says the same in other words (cosine {near[1]:.3f})"
            _merge(ctx, near[0], why, key, judged, statement, said, target, outcome)
            return
    memory = _store(ctx, key, statement, said, target)
    outcome.created.append(memory.id)
    done = _Done()
    for number, (fact, verdict) in enumerate(judged):
        _carry_out(ctx, memory, number, fact, verdict, said, target, done, outcome)
    _report(ctx, memory, statement, said, done, outcome)


def _store(ctx: WriteContext, key: bytes, statement: Statement, said: Sequence[Said], target: Target) -> MemoryRow:
    fields = {**target.fields, "occurred_at": target.at, "source_type": SOURCE_TYPE, "speaker": said[statement.facts[0].source].speaker}
    memory = store_memory(ctx, Draft(statement.text, target.collection, fields, statement.indexed), reason="extracted")
    ctx[TEXTS].put((key,), memory.id.encode())
    return memory


# --- saying the same --------------------------------------------------------------------------------------------------


def _known(
    ctx: WriteContext, key: bytes, judged: list[tuple[Fact, _Verdict]], statement: Statement, said: Sequence[Said], target: Target,
    outcome: Outcome,
) -> None:  # fmt: skip
    """Every claim of the statement is known: the memory that made the first of them stands for it."""
    first = next(verdict.known for _, verdict in judged if verdict.known is not None)
    sources = (row for row in ctx[MEMORIES].get_many([(ordinal,) for ordinal in first.sources]) if row is not None)
    standing = (merging.keeper(ctx, row) for row in sources if (row.number, row.user_id) == target.scope and is_readable(ctx, row))
    kept = next((row for row in standing if row is not None), None)
    if kept is not None and merging.has_room(ctx, kept):
        _merge(ctx, kept, "all that it says is known", key, judged, statement, said, target, outcome)
        return
    outcome.noop(_event("NOOP", first.source_memory_id if kept is None else kept.id, statement, said, "All that it says is known."))


def _share(ctx: ReadContext, kept: MemoryRow, judged: list[tuple[Fact, _Verdict]]) -> None:
    """Let the claims of the memory that says the same be known, in place of new ones."""
    known = merging.facts_of(ctx, kept.id)
    for fact, verdict in judged:
        verdict.known = merging.claim_of(ctx, merging.like(fact, known))


def _merge(
    ctx: WriteContext, kept: MemoryRow, why: str, key: bytes, judged: list[tuple[Fact, _Verdict]], statement: Statement,
    said: Sequence[Said], target: Target, outcome: Outcome,
) -> None:  # fmt: skip
    """Store the statement as a memory that another one stands for."""
    memory = _store(ctx, key, statement, said, target)
    for number, (fact, verdict) in enumerate(judged):
        _carry_out(ctx, memory, number, fact, verdict, said, target, _Done(), outcome)
    merging.merge(ctx, memory, kept, why)
    outcome.merged.append(memory.id)
    outcome.noop(_event("NOOP", kept.id, statement, said, f"Merged: {why}.") | {"merged_memory_id": memory.id})


def _adopt(
    ctx: WriteContext, twin: MemoryRow, key: bytes, judged: list[tuple[Fact, _Verdict]], statement: Statement, said: Sequence[Said],
    target: Target, outcome: Outcome,
) -> None:  # fmt: skip
    """The statement's claims become those of a memory that has the same words; taking them away again undoes it."""
    last = ctx[FACTS].last(twin.id)
    for number, (fact, verdict) in enumerate(judged, 0 if last is None else last[0][1] + 1):
        _carry_out(ctx, twin, number, fact, verdict, said, target, _Done(), outcome)
    ctx[TEXTS].put((key,), twin.id.encode())
    outcome.noop(_event("NOOP", twin.id, statement, said, "A memory has the same words; its claims are known now."))


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Verdict:
    """What is known of a claim's question.

    known   the claim that says the same
    rivals  claims that cannot hold beside it, and began no later: they end
    later   a claim that cannot hold beside it, and began after it: it is the older one
    ends    claims that it says hold no more
    returns it held before, and ended; now it begins again
    """

    kind: str
    known: RelationshipRow | None = None
    rivals: list[RelationshipRow] = field(default_factory=list)
    later: RelationshipRow | None = None
    ends: list[RelationshipRow] = field(default_factory=list)
    returns: bool = False


@dataclass(slots=True)
class _Done:
    replaced: list[MemoryRow] = field(default_factory=list)
    ended: list[MemoryRow] = field(default_factory=list)
    later: MemoryRow | None = None


def claim_type(fact: Fact) -> str:
    """The predicate, and for favourites of a kind that kind with it."""
    if fact.predicate == "favorite" and fact.detail:
        return "_".join(["favorite", *fact.detail.casefold().split()])[:64]
    return fact.predicate


def is_functional(kind: str) -> bool:
    return kind in FUNCTIONAL or kind.startswith("favorite_")


def _judge(ctx: WriteContext, fact: Fact, target: Target) -> _Verdict:
    kind = claim_type(fact)
    verdict = _Verdict(kind)
    subject = _subject(ctx, fact)
    if subject is None or kind in UNRELATED - FUNCTIONAL:
        return verdict
    standing = [row for row in claims_of(ctx, subject.ordinal, kind) if _is_of_scope(ctx, row, target)]
    at = _event_time(fact, target)
    same = _about(ctx, standing, fact)
    if fact.polarity != "holds":
        verdict.ends = [row for row in same if row.valid_to is None]
        verdict.known = same[0] if same and not verdict.ends else None
        return verdict
    verdict.returns = any(row.valid_from is None for row in same)
    for row in same:
        covers = row.valid_to is None or row.valid_to > at
        if covers and (fact.valid_from is None or row.begins in (None, fact.valid_from)):
            verdict.known = row
            return verdict
    others = [row for row in standing if is_functional(kind) and row not in same]
    opposite = OPPOSITES.get(kind)
    if opposite is not None:
        others += [row for row in _about(ctx, claims_of(ctx, subject.ordinal, opposite), fact) if _is_of_scope(ctx, row, target)]
    for row in others:
        began = _began(ctx, row)
        if began > at:
            verdict.later = row if verdict.later is None or began < _began(ctx, verdict.later) else verdict.later
        elif row.valid_to is None or row.valid_to > at:
            verdict.rivals.append(row)
    return verdict


def _subject(ctx: WriteContext, fact: Fact) -> EntityRow | None:
    """The entity it is about; "Ada's sister" is Clara when we know her."""
    if fact.relative is not None and fact.owner is not None:
        owner = _thing(ctx, fact.owner, None)
        relatives = [] if owner is None else claims_of(ctx, owner.ordinal, fact.relative)
        if len(relatives) == 1:
            return ctx[ENTITIES].get(relatives[0].target)
    return _thing(ctx, fact.subject, None)


def _thing(ctx: WriteContext, name: str, kind: str | None) -> EntityRow | None:
    """The entity an object names: one of its type, or of a type nobody knows."""
    return next((row for row in named(ctx, name) if kind is None or row.type in (kind, UNKNOWN_TYPE)), None)


def _about(ctx: ReadContext, claims: list[RelationshipRow], fact: Fact) -> list[RelationshipRow]:
    """Those of the claims whose object is the fact's: the same entity, or the same words in other forms."""
    mine = _thing(ctx, fact.object, PREDICATES.get(fact.predicate))
    wanted = analyze(fact.object)
    things = ctx[ENTITIES].get_many([(row.target,) for row in claims])
    return [
        row
        for row, thing in zip(claims, things, strict=True)
        if (mine is not None and row.target == mine.ordinal) or (wanted and thing is not None and analyze(thing.name) == wanted)
    ]


def _is_of_scope(ctx: WriteContext, row: RelationshipRow, target: Target) -> bool:
    """Whether a memory of the same collection and end user says so, or the API was asked to keep it."""
    if row.asked_for:
        return True
    memories = ctx[MEMORIES].get_many([(ordinal,) for ordinal in row.sources])
    return any(memory is not None and (memory.number, memory.user_id) == target.scope for memory in memories)


def _event_time(fact: Fact, target: Target) -> int:
    return target.at if fact.valid_from is None else fact.valid_from


def _began(ctx: WriteContext, row: RelationshipRow) -> int:
    """When a claim began, or else when it was told."""
    if row.begins is not None:
        return row.begins
    memory = None if row.source_memory_id is None else find_row(ctx, row.source_memory_id)
    return row.recorded_at if memory is None else memory.occurred_at


# --- carrying out -----------------------------------------------------------------------------------------------------


def _carry_out(
    ctx: WriteContext, memory: MemoryRow, number: int, fact: Fact, verdict: _Verdict, said: Sequence[Said], target: Target, done: _Done,
    outcome: Outcome,
) -> None:  # fmt: skip
    """One claim of a new memory: end what it ends, and store it."""
    at = _event_time(fact, target)
    for row in verdict.rivals:
        _end(ctx, row, at, memory, done.replaced)
    for row in verdict.ends:
        _end(ctx, row, fact.valid_to or target.at, memory, done.ended)
    relationship = None
    if verdict.known is not None:
        relationship = support_claim(ctx, verdict.known, memory)
    elif fact.polarity == "holds" or (fact.polarity == "ended" and not verdict.ends):
        relationship = _claim(ctx, fact, verdict, target, memory, outcome)
    if verdict.later is not None:
        if verdict.later.begins is None:
            begin_claim(ctx, verdict.later, _began(ctx, verdict.later), memory.id)
            note_bound(ctx, verdict.later, memory)
        done.later = None if verdict.later.source_memory_id is None else find_row(ctx, verdict.later.source_memory_id)
    quote = said[fact.source].content[fact.start : fact.end]
    row = FactRow(
        fact.subject,
        fact.predicate,
        fact.object,
        fact.polarity,
        Evidence(fact.source, fact.start, fact.end, quote),
        "" if relationship is None else relationship.id,
        target.job_id,
        fact.valid_from,
    )
    ctx[FACTS].put((memory.id, number), row)


def _claim(ctx: WriteContext, fact: Fact, verdict: _Verdict, target: Target, memory: MemoryRow, outcome: Outcome) -> RelationshipRow | None:
    """The claim in the graph, with both its ends; None for what relates to nothing."""
    subject = _subject(ctx, fact)
    name = fact.subject if subject is None else subject.name
    subject, _ = ensure_entity(ctx, name, subject.type if subject is not None else fact.subject_type, memory=memory)
    outcome.entities.add(subject.id)
    if fact.predicate == "named":
        ensure_entity(ctx, subject.name, subject.type, aliases=[fact.object], memory=memory)
    if fact.predicate in UNRELATED:
        return None
    thing, _ = ensure_entity(ctx, fact.object, PREDICATES.get(fact.predicate), memory=memory)
    outcome.entities.add(thing.id)
    valid_from, valid_to = fact.valid_from, fact.valid_to
    if fact.polarity == "ended" and valid_to is None:
        valid_to = target.at
    if valid_from is None and (verdict.rivals or verdict.later is not None or verdict.returns):
        valid_from = target.at
    if verdict.later is not None:
        valid_to = _began(ctx, verdict.later)
    claim = Claim(subject, verdict.kind, thing, valid_from, valid_to, confidence=fact.confidence, functional=is_functional(verdict.kind))
    row, _ = assert_claim(ctx, claim, memory)
    outcome.relationships.add(row.id)
    return row


def _end(ctx: WriteContext, row: RelationshipRow, at: int, memory: MemoryRow, superseded: list[MemoryRow]) -> None:
    """End a claim, and note the memories that have no other claim left."""
    row = ctx[RELATIONSHIPS].get(row.ordinal)
    if row.valid_to is not None and row.valid_to <= at:
        return  # another claim of the same memory has ended it
    end_claim(ctx, row, at, memory.id)
    note_bound(ctx, row, memory)
    for source in ctx[MEMORIES].get_many([(ordinal,) for ordinal in row.sources]):
        if source is not None and not source.superseded and source.id != memory.id and not _still_says(ctx, source):
            superseded.append(source)


def _still_says(ctx: WriteContext, memory: MemoryRow) -> bool:
    """Whether a claim of this memory stands. A memory that nothing was extracted from is left alone."""
    facts = [row for _, row in ctx[FACTS].scan(memory.id)]
    if not facts:
        return True
    for fact in facts:
        if fact.polarity != "holds":
            continue
        raw = ctx[GRAPH_IDS].get(fact.relationship_id) if fact.relationship_id else None
        if raw is None:
            return True
        row = ctx[RELATIONSHIPS].get(int.from_bytes(raw, "big"))
        if row.valid_to is None and row.invalidated_at is None:
            return True
    return False


def _report(ctx: WriteContext, memory: MemoryRow, statement: Statement, said: Sequence[Said], done: _Done, outcome: Outcome) -> None:
    """Supersede what the new memory leaves without a claim, and say what happened."""
    older = {row.id: row for row in (*done.replaced, *done.ended)}
    for row in older.values():
        supersede(ctx, row, memory.id, reason="replaced by what was said later" if row in done.replaced else "said to hold no more")
        ctx[SUCCESSORS].put((memory.id, row.id), REPLACED)
    if done.later is not None:
        supersede(ctx, memory, done.later.id, reason="older than what is known")
        ctx[SUCCESSORS].put((done.later.id, memory.id), REPLACED)
        outcome.events.append(_event("ADD", memory.id, statement, said, "It is older than what is known, and stored as superseded."))
        return
    if done.replaced:
        outcome.updated += len(older)
        outcome.events.append(_event("UPDATE", memory.id, statement, said, "It takes the place of what was said before.", done.replaced[0]))
    elif done.ended:
        outcome.invalidated += len(older)
        outcome.events.append(_event("DELETE", memory.id, statement, said, "It says that this holds no more.", done.ended[0]))
    else:
        outcome.events.append(_event("ADD", memory.id, statement, said, "It is new."))


def _event(
    kind: str, memory_id: str | None, statement: Statement, said: Sequence[Said], reason: str, previous: MemoryRow | None = None
) -> dict[str, Any]:
    spans = {(fact.source, fact.start, fact.end) for fact in statement.facts}
    event = {
        "event": kind,
        "memory_id": memory_id,
        "memory": statement.text,
        "evidence": [
            {"source": source, "start": start, "end": end, "quote": said[source].content[start:end]} for source, start, end in sorted(spans)
        ],
        "reason": reason,
    }
    if previous is not None:
        event |= {"previous_memory_id": previous.id, "previous_content": previous.content}
    return event


def _text_key(ctx: WriteContext, statement: Statement, said: Sequence[Said], target: Target) -> bytes:
    """A statement is the same when scope, speaker and words are; case and spacing do not count."""
    speaker = said[statement.facts[0].source].speaker
    words = " ".join(statement.text.casefold().split())
    parts = [str(target.collection.number), target.fields.get("user_id") or "", speaker, words]
    return hmac.digest(ctx.scope.key, b"ingested:" + "\0".join(parts).encode(), hashlib.sha256)[:20]


def disown(ctx: WriteContext, memory_id: str, job_id: str) -> None:
    """Take from a memory the claims that this job alone found in it."""
    facts = [fact for _, fact in ctx[FACTS].scan(memory_id)]
    if facts and all(fact.job_id == job_id for fact in facts):
        forget_claims(ctx, memory_id)
        ctx[FACTS].delete_prefix(memory_id)


# --- when memories go -------------------------------------------------------------------------------------------------


def forget_memory(ctx: WriteContext, memory_id: str) -> list[str]:
    """Forget the claims of a memory that is gone, and give back what it had superseded; -> the jobs that had found them."""
    for _, older in list(ctx[SUCCESSORS].keys(memory_id)):
        ctx[SUCCESSORS].delete(memory_id, older)
        row = find_row(ctx, older)
        if row is not None and row.superseded_by_id == memory_id:
            _give_back(ctx, row)
    job_ids = list(dict.fromkeys(row.job_id for _, row in ctx[FACTS].scan(memory_id) if row.job_id))
    ctx[FACTS].delete_prefix(memory_id)
    return job_ids


def _give_back(ctx: WriteContext, row: MemoryRow) -> None:
    """What had superseded a memory is gone: it stands again, or is superseded by what has been said since."""
    heir = _heir(ctx, row)
    if heir is None:
        restore(ctx, row, reason="what had superseded it was deleted")
    else:
        supersede(ctx, row, heir.id, reason="what had superseded it was deleted, and this was said later")
        ctx[SUCCESSORS].put((heir.id, row.id), REPLACED)


def _heir(ctx: WriteContext, row: MemoryRow) -> MemoryRow | None:
    """The memory that ended the last claim of this one, or ends it now; None when a claim of it stands."""
    heir = None
    for fact in merging.facts_of(ctx, row.id):
        claim = merging.claim_of(ctx, fact)
        if claim is None or fact.polarity != "holds" or claim.invalidated_at is not None:
            return None
        ended_by = claim.ends[-1].memory_id if claim.valid_to is not None else _ended_by_later(ctx, claim, row)
        heir = find_row(ctx, ended_by) if ended_by else None
        if heir is None:
            return None
    return heir


def _ended_by_later(ctx: WriteContext, claim: RelationshipRow, row: MemoryRow) -> str | None:
    """End a claim where the next one that cannot hold beside it began; -> the memory that says so, if there is one."""
    if not claim.functional:
        return None
    rivals = [
        other
        for other in claims_of(ctx, claim.source, claim.type)
        if other.target != claim.target and _began(ctx, other) > _began(ctx, claim)
    ]
    for other in sorted(rivals, key=lambda other: _began(ctx, other)):
        memory = None if other.source_memory_id is None else find_row(ctx, other.source_memory_id)
        if memory is not None and (memory.number, memory.user_id) == (row.number, row.user_id):
            end_claim(ctx, claim, _began(ctx, other), memory.id)
            note_bound(ctx, claim, memory)
            return memory.id
    return None
