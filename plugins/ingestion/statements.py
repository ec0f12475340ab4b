"""What is settled and what comes of it: statements, the place they go to, the outcome.

A *turn* is a message that is read; the statement of a turn is its text, whole and verbatim. Beside
it stand the statements of facts: a sentence of it each, with the claims it makes. Where that is the
one salient sentence of the turn, the two are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugins.collections import CollectionRow
from plugins.graph import Mentioned
from plugins.ingestion.facts import Fact, Said
from plugins.ingestion.rules import without_recalled
from plugins.ingestion.salience import REASONS, Reason, judge
from plugins.ingestion.sentences import sentences
from plugins.memories import Indexed

Span = tuple[int, int, int]  # message, first code point, the one after the last


@dataclass(slots=True)
class Statement:
    """One memory to be: a text, the claims it makes, and where it was said.

    turn       the statement of the turn that a fact rests on, None for a turn's own
    memory_id  of the memory that holds it, once it is settled
    sentences  of a turn: how many it has
    mentioned  whom it mentions, where that was read
    ordinal    of the memory that was made of it, where one was
    """

    text: str
    facts: list[Fact]
    source: int
    evidence: list[Span]
    turn: Statement | None = None
    indexed: Indexed | None = None
    memory_id: str | None = None
    sentences: int = 0
    mentioned: Mentioned | None = None
    ordinal: int | None = None


@dataclass(slots=True)
class Count:
    """What became of the sentences of a conversation: seen, those that facts rest on, and those
    that were left out, by reason.
    """

    seen: int = 0
    facts: int = 0
    left_out: Counter[Reason] = field(default_factory=Counter)

    def view(self) -> dict[str, Any]:
        """As a job's result says it."""
        left_out = {reason: self.left_out[reason] for reason in REASONS}
        return {
            "seen": self.seen,
            "kept": self.seen - self.left_out.total(),
            "facts": self.facts,
            "left_out": left_out,
        }


@dataclass(slots=True)
class Target:
    """Where memories go, and what they all have in common. at: event time of the conversation, Unix
    milliseconds.
    """

    collection: CollectionRow
    fields: dict[str, Any]
    at: int
    job_id: str = ""

    @property
    def scope(self) -> tuple[int, str | None]:
        return self.collection.number, self.fields.get("user_id")


@dataclass(slots=True)
class ResolutionOutcome:
    """What was done, in the words of a job's result."""

    events: list[dict[str, Any]] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    repeated: int = 0  # sentences of turns that were known
    updated: int = 0
    invalidated: int = 0
    skipped: int = 0
    entities: set[str] = field(default_factory=set)
    relationships: set[str] = field(default_factory=set)

    def record_noop(self, event: dict[str, Any]) -> None:
        """Record that a statement added nothing, and count it as skipped."""
        self.skipped += 1
        self.events.append(event)


def statements(
    facts: Iterable[Fact], said: Sequence[Said], salience_min: float
) -> tuple[list[Statement], Count]:
    """What a conversation has to be settled, in its order, a turn before the facts that rest on it;
    and what is known by then of what became of its sentences.

    A turn less salient than `salience_min` is left out, unless a fact rests on it.
    """
    by_turn: dict[int, list[Fact]] = {}
    for fact in facts:
        by_turn.setdefault(fact.source, []).append(fact)
    wanted, count = [], Count()
    for source, one in enumerate(said):
        if not one.told:
            continue
        text, spans = _turn(one.content, source)
        found, parts = by_turn.get(source, []), sentences(text)
        judged = judge(text, parts, salience_min)
        count.seen += max(len(parts), len(judged.left_out))
        if found or not judged.left_out:
            made = _of_turn(text, spans, judged.salient, found)
            made[0].sentences = len(parts)
            count.facts += min(len(parts), len({fact.text for fact in found}))
            wanted += made
        else:
            count.left_out.update(judged.left_out)
    return wanted, count


def _turn(content: str, source: int) -> tuple[str, list[Span]]:
    """What is said in a message, and where: all of it but what was recalled from memory."""
    own, spans, place = without_recalled(content), [], 0
    if own == content:
        text = content.strip()
        start = content.index(text)
        return text, [(source, start, start + len(text))]
    for part in own.split("\n"):  # recalled blocks are blank lines by now
        stripped = part.strip()
        if stripped:
            start = place + part.index(stripped)
            spans.append((source, start, start + len(stripped)))
        place += len(part) + 1
    return "\n".join(content[start:end] for _, start, end in spans), spans


def _of_turn(
    text: str, spans: list[Span], salient: Sequence[str], found: list[Fact]
) -> list[Statement]:
    """The turn's statement, with the claims that are all it says those that relate to nothing
    that lasts and those that it takes for given, then one for each other text.
    """
    turn = Statement(text, [], spans[0][0], spans)
    whole = {_same(told) for told in (text, *(salient if len(salient) == 1 else ()))}
    by_text: dict[str, Statement] = {}
    for fact in found:
        key = _same(fact.text)
        if key in whole or not fact.relates or fact.passing:
            turn.facts.append(fact)
            continue
        made = by_text.setdefault(key, Statement(fact.text, [], fact.source, [], turn))
        made.facts.append(fact)
    for made in by_text.values():
        made.evidence = sorted({(fact.source, fact.start, fact.end) for fact in made.facts})
    return [turn, *by_text.values()]


def _same(text: str) -> str:
    """What two texts have in common that differ in case and spacing alone."""
    return " ".join(text.casefold().split())
