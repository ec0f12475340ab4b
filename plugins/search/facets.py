"""Facets: how often each value of a field occurs among all results of a search, those beyond its
page included.

Fields are the names that filters compare for equality, and `metadata.<path>`. Of each the most
frequent FACET_VALUES_MAX are given, equal counts in the order of their values. A memory counts once
for each distinct value that it holds. The values are read from the memories, since the index keeps
texts as digests.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

from plugins.memories import Facet, MemoryRow
from plugins.search.limits import FACET_VALUES_MAX


def counted(name: str, rows: Sequence[MemoryRow]) -> list[dict[str, Any]]:
    """[{value, count}] of a facet, most frequent first."""
    most = nsmallest(
        FACET_VALUES_MAX,
        Facet(name).counted(rows),
        key=lambda found: (-found[1], *_ordered(found[0])),
    )
    return [{"value": value, "count": count} for value, count in most]


def _ordered(value: Any) -> tuple[str, Any]:
    """What a value is sorted by among those of any kind."""
    if value is None:
        return "null", 0
    return (
        "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
    ), value
