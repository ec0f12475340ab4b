"""Facets: how often each value of a field occurs among all results of a search, those beyond its page included.

Fields are those whose values a bitmap index holds: the names that filters know, and `metadata.<path>`. Of each the most frequent
FACET_VALUES_MAX are given, equal counts in the order of their values. A long text is given by its beginning.
"""

from __future__ import annotations

from typing import Any

from pyroaring import BitMap

from plugins.filters import METADATA, NAMES, TEXTS
from plugins.memory_facets import metadata_span, shown_value
from plugins.memory_store import MEMORIES, MEMORY_FIELDS
from runtime.limits import FACET_VALUES_MAX
from runtime.operation import ReadContext
from storage.keycode import beginning

FACETS = (*NAMES, *TEXTS, "conflict_status", "metadata.<path>")


def is_facet(name: str) -> bool:
    """Whether values of a field of this name can be counted."""
    return name in FACETS[:-1] or (name.startswith(METADATA) and len(name) > len(METADATA))


def counted(ctx: ReadContext, name: str, within: BitMap) -> list[dict[str, Any]]:
    """[{value, count}] of a facet, most frequent first."""
    fields = ctx.index(MEMORY_FIELDS)
    if name == "conflict_status":
        superseded = len(fields.of("superseded", 1) & within)
        counts = [("none", len(within) - superseded), ("superseded", superseded)]
        found = sorted(((value, count) for value, count in counts if count), key=lambda entry: -entry[1])
    elif name.startswith(METADATA):
        path = name[len(METADATA) :]
        stored = fields.values("metadata", FACET_VALUES_MAX, within, *metadata_span(path))
        found = [(shown_value(value, path), count) for value, count in stored]
    elif name == "collection_id":
        stored = fields.values("collection", FACET_VALUES_MAX, within)
        found = [(_collection_id(ctx, fields.of("collection", number) & within), count) for number, count in stored]
    else:
        found = [(beginning(value), count) for value, count in fields.values(NAMES.get(name, name), FACET_VALUES_MAX, within)]
    return [{"value": value, "count": count} for value, count in found]


def _collection_id(ctx: ReadContext, members: BitMap) -> str:
    return ctx[MEMORIES].get(members.min()).collection_id
