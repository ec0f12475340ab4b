"""Near duplicates: which memory says the same as a statement, and how one memory comes to stand for
several.

A statement says the same as a memory of its scope (the collection and the end user) when

    its claims   are all known: subject, predicate and value are the same, whatever the words
    its words    are the same, however they are spaced and punctuated, and the speaker is
    its meaning  is: every claim of one has its like in the other (subject, predicate, polarity,
                 beginning, a word of the value), both have the same numbers, and the cosine of
                 their vectors is at least MEANING_COSINE_MIN

What does not pass is stored beside it: two memories that say the same cost a little, one that
swallows another costs a fact. loadtests/merging.py measures both; MEANING_COSINE_MIN is chosen by
it.

Merging loses nothing. The duplicate is a memory of its own, with its words and its evidence,
superseded by the one that is kept and a further source of that one's claims. The table
`ingested_successors` says so. `undo` makes the duplicate stand again, with claims of its own; when
the kept one is deleted, that happens by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from pyroaring import BitMap

from plugins.graph import (
    Claim,
    RelationshipRow,
    assert_claim,
    ensure_entity,
    forget_memory,
    get_claim,
    get_entities,
    named,
)
from plugins.ingestion.facts import PREDICATES, Fact
from plugins.ingestion.limits import (
    MERGED_MEMORIES_MAX,
    NEAR_MEMORIES_MAX,
    TWIN_MEMORIES_MAX,
    TWIN_TERMS_FIRST,
    TWIN_TERMS_MAX,
)
from plugins.ingestion.statements import Statement
from plugins.ingestion.store import FACTS, MERGED, SUCCESSORS, FactRow
from plugins.memories import (
    MEMORY_FIELDS,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    Indexed,
    MemoryRow,
    Spaces,
    TextFeatures,
    find_row,
    find_rows_at,
    supersede,
)
from runtime.api.context import ReadContext, WriteContext
from storage.text import analyze

MEANING_COSINE_MIN = 0.935
DATED = frozenset(
    {"did", "plans"}
)  # what may happen again: without a date nobody knows whether it is the same time
Scope = tuple[int, str | None]
_LITTLE = frozenset(
    analyze("well yes still also really right now currently these days today oh so")
)


# --- who says the same ----------------------------------------------------------------------------


class Fresh:
    """The memories of this transaction, which no index has yet."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, ...], list[MemoryRow]] = {}
        self._claiming: dict[int, bool] = {}  # by ordinals, whether it claims something

    def add(self, row: MemoryRow) -> None:
        """Know a memory by its words."""
        self._told.setdefault(_words(row.content), []).append(row)
        self._claiming[row.ordinal] = False

    def claims(self, row: MemoryRow) -> None:
        """Note that a memory claims something, if it is one of these."""
        if row.ordinal in self._claiming:
            self._claiming[row.ordinal] = True

    @property
    def claiming(self) -> list[int]:
        """The ordinals of those that claim something."""
        return [ordinal for ordinal, claims in self._claiming.items() if claims]

    def of_words(self, words: tuple[str, ...]) -> list[MemoryRow]:
        """Those with the same words in the same order, as they were stored."""
        return self._told.get(words, [])


def are_same_words(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order."""
    return _words(one) == _words(other)


def same_words(
    ctx: ReadContext, text: str, speaker: str, scope: Scope, fresh: Fresh
) -> MemoryRow | None:
    """A standing memory of the scope with the same words in the same order."""
    terms = list(dict.fromkeys(analyze(text)))[:TWIN_TERMS_MAX]
    if not terms:
        return None
    wanted = _words(text)
    rows = find_rows_at(ctx, _with_terms(ctx, terms, scope)[-TWIN_MEMORIES_MAX:])
    for row in (*rows, *fresh.of_words(wanted)):
        if _is_of(row, speaker, scope) and _words(row.content) == wanted:
            found = find_row(ctx, row.id)
            if found is not None and not found.superseded:
                return found
    return None


def _with_terms(ctx: ReadContext, terms: Sequence[str], scope: Scope) -> BitMap:
    """The standing memories of the scope that have all of the terms, of which there are some. Long
    ones are rare, and looked for first.
    """
    index, ordered = ctx.index(MEMORY_TEXT), sorted(terms, key=len, reverse=True)
    found: BitMap | None = None
    for part in (ordered[:TWIN_TERMS_FIRST], ordered[TWIN_TERMS_FIRST:]):
        for postings in index.postings_of(part):
            if not len(postings.ordinals):
                return BitMap()
            having = BitMap(postings.ordinals)
            found = having if found is None else found & having
        if not found:
            return BitMap()
    return BitMap() if found is None else found & _standing(ctx, scope)


def same_meaning(
    ctx: ReadContext,
    statement: Statement,
    speaker: str,
    scope: Scope,
    fresh: Fresh,
) -> tuple[MemoryRow, float] | None:
    """(the nearest memory of the scope that says the same in other words, the cosine)."""
    text, facts, indexed = statement.text, statement.facts, statement.indexed
    if (
        not facts
        or indexed is None
        or any(
            not fact.relates or (fact.predicate in DATED and fact.valid_from is None)
            for fact in facts
        )
    ):
        return None
    for row, cosine in _nearest(ctx, indexed, scope, fresh):
        alike = (
            _is_of(row, speaker, scope)
            and not row.superseded
            and TextFeatures.numbers_in(row.content) == TextFeatures.numbers_in(text)
        )
        # Whether it can be read is asked of the one that would be taken, not of all there are.
        if alike and _alike(facts, facts_of(ctx, row.id)) and find_row(ctx, row.id) is not None:
            return row, cosine
    return None


def _standing(ctx: ReadContext, scope: Scope) -> BitMap:
    fields = ctx.index(MEMORY_FIELDS)
    found = (fields.of("live", 1) & fields.of("collection", scope[0])) - fields.of("superseded", 1)
    return found if scope[1] is None else found & fields.of("user_id", scope[1])


def _is_of(row: MemoryRow, speaker: str, scope: Scope) -> bool:
    return (row.number, row.user_id) == scope and row.speaker in (None, speaker)


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", text.casefold()))


def _nearest(
    ctx: ReadContext, indexed: Indexed, scope: Scope, fresh: Fresh
) -> Iterator[tuple[MemoryRow, float]]:
    """Memories near enough in meaning, nearest first: committed ones by the index, those of this
    transaction by their rows.
    """
    vectors = ctx.index(MEMORY_VECTORS)
    indexed = indexed.within(Spaces.in_use(ctx))
    ordinals, cosines = vectors.search(
        indexed.space, indexed.vector, NEAR_MEMORIES_MAX, _standing(ctx, scope)
    )[0]
    near = dict(zip(ordinals.tolist(), cosines.tolist(), strict=True))
    made = np.array(fresh.claiming, np.uint32)
    if len(made):
        theirs, there = vectors.get_many(indexed.space, made)
        near |= dict(
            zip(made[there].tolist(), (theirs[there] @ indexed.vector).tolist(), strict=True)
        )
    close = sorted(
        ((cosine, ordinal) for ordinal, cosine in near.items() if cosine >= MEANING_COSINE_MIN),
        reverse=True,
    )
    for row in find_rows_at(ctx, (ordinal for _, ordinal in close)):
        yield row, near[row.ordinal]


def facts_of(ctx: ReadContext, memory_id: str) -> list[FactRow]:
    return [row for _, row in ctx[FACTS].scan(memory_id)]


def _alike(facts: Sequence[Fact], known: Sequence[FactRow]) -> bool:
    """Whether each claim has its like on the other side, with a word of its value: "tea to coffee"
    is not "coffee to tea".
    """
    if not known or sorted(map(_question, facts)) != sorted(map(_question, known)):
        return False
    return all(
        not set(analyze(fact.object)).isdisjoint(analyze(like(fact, known).object))
        for fact in facts
    )


def _question(fact: Fact | FactRow) -> tuple[str, str, str, int]:
    """What a claim is about, without its value."""
    return (
        fact.subject.casefold(),
        fact.predicate,
        fact.polarity,
        -1 if fact.valid_from is None else fact.valid_from,
    )


def like(fact: Fact, known: Iterable[FactRow]) -> FactRow:
    """The claim among those of a memory of the same meaning that this one is another form of."""
    return next(row for row in known if _question(row) == _question(fact))


def adds_words(ctx: ReadContext, statement: Statement, kept: MemoryRow) -> bool:
    """Whether a statement whose claims are all known says more than a memory that makes them."""
    said = {word for fact in facts_of(ctx, kept.id) for word in analyze(fact.object)}
    said.update(analyze(kept.content), _LITTLE)
    return not said.issuperset(analyze(statement.text))


def words_beside(memory: MemoryRow, facts: Sequence[FactRow]) -> int:
    """How many content words a memory has beside the clauses that make its claims."""
    told = [(fact.subject, fact.object, fact.evidence.quote) for fact in facts]
    said = {word for texts in told for text in texts for word in analyze(text)}
    return len(set(analyze(memory.content)) - said - _LITTLE)


# --- standing for it ------------------------------------------------------------------------------


def keeper(ctx: ReadContext, row: MemoryRow | None) -> MemoryRow | None:
    """The memory that stands for this one, itself when it stands; None when what stood for it was
    replaced or is gone.
    """
    for _ in range(NEAR_MEMORIES_MAX):
        if row is None or not row.superseded:
            return row
        if (
            row.superseded_by_id is None
            or ctx[SUCCESSORS].get(row.superseded_by_id, row.id) != MERGED
        ):
            return None
        row = find_row(ctx, row.superseded_by_id)
    return None


def has_room(ctx: ReadContext, kept: MemoryRow) -> bool:
    """Whether a memory may stand for one more; from then on duplicates of it leave no trace but in
    their job's result.
    """
    return ctx[SUCCESSORS].count(kept.id) < MERGED_MEMORIES_MAX


def merged_into(ctx: ReadContext, kept: MemoryRow) -> list[MemoryRow]:
    """The memories that this one stands for, by id."""
    older = [key[1] for key, why in ctx[SUCCESSORS].scan(kept.id) if why == MERGED]
    return [
        row
        for memory_id in older
        if (row := find_row(ctx, memory_id)) is not None and row.superseded_by_id == kept.id
    ]


def merge(
    ctx: WriteContext, row: MemoryRow, kept: MemoryRow, why: str, *, asked: bool = False
) -> MemoryRow:
    """Let one memory stand for another, which is superseded by it. Raises PermissionDenied where
    somebody asked for it and the tier has no room for what that keeps.
    """
    ctx[SUCCESSORS].put((kept.id, row.id), MERGED)
    return supersede(ctx, row, kept.id, reason=f"merged: {why}", asked=asked)


def undo(ctx: WriteContext, row: MemoryRow) -> None:
    """Make, before a merged memory is restored, the claims that it shared its own, where their
    values differ.
    """
    if not ctx[SUCCESSORS].delete(row.superseded_by_id or "", row.id):
        return
    found = [(key[1], fact, claim_of(ctx, fact)) for key, fact in ctx[FACTS].scan(row.id)]
    forget_memory(ctx, row.id)
    for number, fact, claim in found:
        if claim is not None:
            ctx[FACTS].put((row.id, number), _own(ctx, row, fact, claim))


def claim_of(ctx: ReadContext, fact: FactRow) -> RelationshipRow | None:
    """The claim in the graph that a fact makes, if it makes one."""
    return get_claim(ctx, fact.relationship_id)


def _own(ctx: WriteContext, row: MemoryRow, fact: FactRow, shared: RelationshipRow) -> FactRow:
    """The fact, with a claim that says exactly what it says and has this memory as a source."""
    subject, thing = get_entities(ctx, (shared.source, shared.target))
    if subject is None or thing is None:
        return msgspec.structs.replace(fact, relationship_id="")
    subject, _ = ensure_entity(ctx, subject.name, subject.type, memory=row)
    same = any(entity.ordinal == thing.ordinal for entity in named(ctx, fact.object))
    name, kind = (thing.name, thing.type) if same else (fact.object, PREDICATES.get(fact.predicate))
    thing, _ = ensure_entity(ctx, name, kind, memory=row)
    begins, ends = (
        shared.valid_from if same else fact.valid_from,
        shared.valid_to if fact.polarity == "ended" else None,
    )
    claim = Claim(
        subject,
        shared.type,
        thing,
        begins,
        ends,
        confidence=shared.confidence,
        functional=shared.functional,
    )
    return msgspec.structs.replace(fact, relationship_id=assert_claim(ctx, claim, row)[0].id)
