"""Facets: how often each value of a field occurs among all results of a search, those beyond its page included.

Fields are the names that filters compare for equality, and `metadata.<path>`. Of each the most frequent FACET_VALUES_MAX are given,
equal counts in the order of their values. A memory counts once for each distinct value that it holds. The values are read from
the memories, since the index keeps texts as digests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any

from plugins.filters import METADATA, NAMES, TEXTS
from plugins.memory_facets import metadata_values
from plugins.memory_store import MemoryRow
from runtime.limits import FACET_VALUES_MAX

FACETS = (*NAMES, *TEXTS, "conflict_status", "metadata.<path>")


def is_facet(name: str) -> bool:
    """Whether values of a field of this name can be counted."""
    return name in FACETS[:-1] or (name.startswith(METADATA) and len(name) > len(METADATA))


def counted(name: str, rows: Sequence[MemoryRow]) -> list[dict[str, Any]]:
    """[{value, count}] of a facet, most frequent first."""
    counts = Counter(value for row in rows for value in dict.fromkeys(map(_kinded, _values_of(row, name))))
    most = nsmallest(FACET_VALUES_MAX, counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [{"value": None if kind == "null" else value, "count": count} for (kind, value), count in most]


def _kinded(value: Any) -> tuple[str, Any]:
    """The value with its kind, which tells true from 1 and lets any two be ordered; 1 and 1.0 are one value."""
    if value is None:
        return "null", 0
    return ("bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"), value


def _values_of(row: MemoryRow, name: str) -> Iterable[Any]:
    if name.startswith(METADATA):
        return [value for path, value in metadata_values(row.metadata) if path == name[len(METADATA) :]]
    if name == "conflict_status":
        return ["superseded" if row.superseded else "none"]
    if name == "tags":
        return row.tags
    value = getattr(row, name)
    return [] if value is None else [value]
