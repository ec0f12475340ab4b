"""What is settled and what comes of it: statements, the place they go to, the outcome."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from plugins.collections import CollectionRow
from plugins.ingestion.facts import Fact
from plugins.memories import Indexed


@dataclass(slots=True)
class Statement:
    """One memory to be: a text and the claims it makes."""

    text: str
    facts: list[Fact]
    indexed: Indexed | None = None


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

    def record_noop(self, event: dict[str, Any]) -> None:
        """Record that a statement added nothing, and count it as skipped."""
        self.skipped += 1
        self.events.append(event)


def statements(facts: Iterable[Fact]) -> list[Statement]:
    """Facts with the same text belong together, in the order of the conversation."""
    by_text: dict[str, Statement] = {}
    for fact in facts:
        by_text.setdefault(fact.text.casefold(), Statement(fact.text, [])).facts.append(fact)
    return list(by_text.values())
