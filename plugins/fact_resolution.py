"""From facts to memories: what is new, what is known, what takes another's place (requirements of smart ingestion).

Facts with the same words are one *statement*, which becomes one memory and any number of claims in the graph. It is compared with
what is known in its scope (the collection and the end user), first by its text, then claim by claim, by subject and predicate:

    NOOP    its text, or every claim of it, is known; or a memory that nothing was extracted from has its words, and gets its claims
    ADD     it says something new
    UPDATE  a claim of it takes the place of another one: the other way of answering the same question
    DELETE  it says that something known holds no more

Nothing is changed in place. The older claim gets an end, and the memory behind it is superseded by the new one once none of its
claims is left. Event time decides which is older, not arrival: a fact from before what is known is stored as already superseded.
Deleting the new memory gives back what it had superseded; that is also how a whole job is undone.

    ingested_texts       (scope and text, 20 bytes)   -> memory id
    ingested_facts       (memory id, number)          -> FactRow
    ingested_successors  (newer memory id, older one) -> b""     whom a memory has superseded
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from pyroaring import BitMap

from plugins.collections import CollectionRow
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
)
from plugins.graph_store import forget_memory as forget_claims
from plugins.memory_store import (
    MEMORIES,
    MEMORY_FIELDS,
    MEMORY_TEXT,
    Draft,
    Indexed,
    MemoryRow,
    find_row,
    is_readable,
    restore,
    store_memories,
    supersede,
)
from runtime.limits import TWIN_MEMORIES_MAX, TWIN_TERMS_MAX
from runtime.operation import WriteContext
from storage.analysis import analyze
from storage.table import Table

OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
UNRELATED = frozenset({"plans", "did", "named", "age", "born_on"})  # their objects are no things one could meet again
SOURCE_TYPE = "inferred"


class Evidence(msgspec.Struct, frozen=True):
    """source: index of the message; start, end: code points in it."""

    source: int
    start: int
    end: int
    quote: str


class FactRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim of a memory. relationship_id: the claim in the graph, "" when it makes none. job_id: the job that found it."""

    subject: str
    predicate: str
    object: str
    polarity: str
    evidence: Evidence
    relationship_id: str = ""
    job_id: str = ""
    valid_from: int | None = None


TEXTS: Table[bytes] = Table("ingested_texts", key=("scope_and_text",), row=bytes, doc="what has been ingested, to memory id")
FACTS: Table[FactRow] = Table("ingested_facts", key=("memory_id", "number"), row=FactRow, doc="the claims of extracted memories")
SUCCESSORS: Table[bytes] = Table("ingested_successors", key=("newer", "older"), row=bytes, doc="which memories a memory superseded")
TABLES = (TEXTS, FACTS, SUCCESSORS)


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
    updated: int = 0
    invalidated: int = 0
    skipped: int = 0
    entities: set[str] = field(default_factory=set)
    relationships: set[str] = field(default_factory=set)


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
    if known is not None and (not known.superseded or target.at <= known.occurred_at):
        outcome.skipped += 1
        outcome.events.append(_event("NOOP", known.id, statement, said, "The same text is known."))
        return
    judged = [(fact, _judge(ctx, fact, target)) for fact in statement.facts]
    if all(verdict.known is not None for _, verdict in judged):
        source = next((verdict.known.source_memory_id for _, verdict in judged if verdict.known is not None), None)
        outcome.skipped += 1
        outcome.events.append(_event("NOOP", source, statement, said, "All that it says is known."))
        return
    if not any(verdict.rivals or verdict.ends or verdict.later for _, verdict in judged):
        twin = _twin(ctx, statement.text, said[statement.facts[0].source].speaker, target)
        if twin is not None:
            _merge(ctx, twin, key, judged, statement, said, target, outcome)
            return
    fields = {**target.fields, "occurred_at": target.at, "source_type": SOURCE_TYPE, "speaker": said[statement.facts[0].source].speaker}
    draft = Draft(statement.text, target.collection, fields, statement.indexed)
    memory = store_memories(ctx, [draft], reason="extracted").rows[0]
    ctx[TEXTS].put((key,), memory.id.encode())
    outcome.created.append(memory.id)
    done = _Done()
    for number, (fact, verdict) in enumerate(judged):
        _carry_out(ctx, memory, number, fact, verdict, said, target, done, outcome)
    _report(ctx, memory, statement, said, done, outcome)


def _merge(
    ctx: WriteContext, twin: MemoryRow, key: bytes, judged: list[tuple[Fact, _Verdict]], statement: Statement, said: Sequence[Said],
    target: Target, outcome: Outcome,
) -> None:  # fmt: skip
    """The statement's claims become those of a memory that has the same words; taking them away again undoes it."""
    last = ctx[FACTS].last(twin.id)
    for number, (fact, verdict) in enumerate(judged, 0 if last is None else last[0][1] + 1):
        _carry_out(ctx, twin, number, fact, verdict, said, target, _Done(), outcome)
    ctx[TEXTS].put((key,), twin.id.encode())
    outcome.skipped += 1
    outcome.events.append(_event("NOOP", twin.id, statement, said, "A memory has the same words; its claims are known now."))


def _twin(ctx: WriteContext, text: str, speaker: str, target: Target) -> MemoryRow | None:
    """A standing memory of the scope with the same words in the same order, however they are spaced and punctuated."""
    fields, index = ctx.index(MEMORY_FIELDS), ctx.index(MEMORY_TEXT)
    found = (fields.of("live", 1) & fields.of("collection", target.collection.number)) - fields.of("superseded", 1)
    terms = list(dict.fromkeys(analyze(text)))[:TWIN_TERMS_MAX]
    for term in terms:
        if not found:
            return None
        found &= BitMap(index.postings(term).ordinals)
    wanted = _words(text)
    for row in ctx[MEMORIES].get_many([(ordinal,) for ordinal in found[-TWIN_MEMORIES_MAX:]] if terms else []):
        same = row is not None and row.user_id == target.fields.get("user_id") and row.speaker in (None, speaker)
        if same and _words(row.content) == wanted and is_readable(ctx, row):
            return row
    return None


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


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
    mine = _thing(ctx, fact.object, PREDICATES.get(fact.predicate))
    at = _event_time(fact, target)
    same = [row for row in standing if mine is not None and row.target == mine.ordinal]
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
    others = [row for row in standing if is_functional(kind) and (mine is None or row.target != mine.ordinal)]
    opposite = OPPOSITES.get(kind)
    if opposite is not None and mine is not None:
        against = claims_of(ctx, subject.ordinal, opposite)
        others += [row for row in against if row.target == mine.ordinal and _is_of_scope(ctx, row, target)]
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
    if fact.polarity == "holds" or (fact.polarity == "ended" and not verdict.ends):
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
        ctx[SUCCESSORS].put((memory.id, row.id), b"")
    if done.later is not None:
        supersede(ctx, memory, done.later.id, reason="older than what is known")
        ctx[SUCCESSORS].put((done.later.id, memory.id), b"")
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


def unmerge(ctx: WriteContext, memory_id: str, job_id: str) -> None:
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
            restore(ctx, row, reason="what had superseded it was deleted")
    job_ids = list(dict.fromkeys(row.job_id for _, row in ctx[FACTS].scan(memory_id) if row.job_id))
    ctx[FACTS].delete_prefix(memory_id)
    return job_ids
