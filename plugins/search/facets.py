"""Facets: how often each value of a field occurs among all results of a search, those beyond its
page included.

Fields are the names that filters compare for equality, and `metadata.<path>`. Of each the most
frequent FACET_VALUES_MAX are given, equal counts in the order of their values. A memory counts once
for each distinct value that it holds. The values are read from the memories, since the index keeps
texts as digests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

from plugins.memories import Facet, MemoryRow
from plugins.search.limits import FACET_VALUES_MAX


def counted(name: str, rows: Sequence[MemoryRow]) -> list[dict[str, Any]]:
    """[{value, count}] of a facet, most frequent first."""
    facet = Facet(name)
    counts = Counter(
        value for row in rows for value in dict.fromkeys(map(_kinded, facet.values(row)))
    )
    most = nsmallest(FACET_VALUES_MAX, counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [
        {"value": None if kind == "null" else value, "count": count}
        for (kind, value), count in most
    ]


def _kinded(value: Any) -> tuple[str, Any]:
    """The value with its kind, which tells true from 1 and lets any two be ordered; 1 and 1.0 are
    one value.
    """
    if value is None:
        return "null", 0
    return (
        "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
    ), value
