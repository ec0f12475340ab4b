"""Days in other spellings: "30 September 2026" and 2026-09-30 are the same words.

A memory that tells a day of the query in any of them counts as one that has the query's own words
for it, in the lexical channel and in late interaction. It is looked for when it is asked for, so
that nothing more is indexed. Only whole dates are: "09:30" has the parts of one too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import reduce

import numpy as np

from plugins.memories import MEMORY_TEXT
from plugins.search.dates import named_days
from runtime.api.context import ReadContext
from storage.indexes import among
from storage.text import DIGIT, query_terms

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
ABBREVIATED = {"september": ("sept", "sep")}  # others by their first three letters
_NAMES = [
    [*query_terms(name), *ABBREVIATED.get(name, (name[:3],) if len(name) > 3 else ())]
    for name in MONTHS
]


@dataclass(frozen=True, slots=True)
class ToldDay:
    """A day of the query. terms: the query's own words for it; ordinals: ascending, the memories
    that tell it in others.
    """

    terms: frozenset[str]
    ordinals: np.ndarray


def told_days(ctx: ReadContext, query: str, today: date) -> list[ToldDay]:
    """The days that the query names and that memories tell in other words."""
    if DIGIT.search(query) is None:
        return []
    found = []
    for text, day in named_days(query, today):
        own = frozenset(query_terms(text))
        told = [ordinals for way in spellings(day) if len(ordinals := _having(ctx, way - own, way))]
        if told:
            found.append(ToldDay(own, reduce(np.union1d, told).astype(np.uint32)))
    return found


def spellings(day: date) -> Iterator[frozenset[str]]:
    """The terms of each way to write the day: as numbers, which are one term, and with the month's
    name. Of 3/4/2026 the first number is the month, as where it is read.
    """
    orders = [(day.month, day.day), *([(day.day, day.month)] if day.day > 12 else [])]
    yield frozenset([day.isoformat()])
    for one, two in orders:
        for sign in "./":
            yield frozenset([f"{one:02}{sign}{two:02}{sign}{day.year}"])
            yield frozenset([f"{one}{sign}{two}{sign}{day.year}"])
    for name in _NAMES[day.month - 1]:
        yield frozenset([str(day.day), name, str(day.year)])


def _having(ctx: ReadContext, missing: frozenset[str], way: frozenset[str]) -> np.ndarray:
    """Memories that have all terms of a way which is not the query's own, ascending."""
    text = ctx.index(MEMORY_TEXT)
    if not missing or not all(text.have_terms(missing)):
        return np.zeros(0, np.uint32)
    return reduce(np.intersect1d, (each.ordinals for each in text.postings_of(way)))


def as_asked(days: list[ToldDay], terms: list[str], ordinals: np.ndarray) -> Iterator[tuple]:
    """For each day the rows and columns, as an index, of the (t, n) places where a memory tells it
    and the term is one of the query's words for it.
    """
    for day in days:
        yield np.ix_(
            np.array([term in day.terms for term in terms], bool), among(day.ordinals, ordinals)
        )
