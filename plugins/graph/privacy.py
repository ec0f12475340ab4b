"""What an account takes along of its graph when it leaves, and what is removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from plugins.graph import statistics as graph_stats
from plugins.graph.queries import ends_of, entity_view, relationship_view
from plugins.graph.rows import ENTITIES, ENTITY, INDEXES, RELATIONSHIPS, SOURCES, TABLES
from plugins.graph.store import Sight
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from storage.store import Key


def figures(ctx: ReadContext) -> dict[str, int]:
    """How many entities the graph has."""
    return {"entities": graph_stats.figure(ctx, "entities")}


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove the tenant's whole graph. Counts of rows by table."""
    tables = (*TABLES, *(table for index in INDEXES for table in index.tables))
    return {table.name: ctx[table].delete_prefix() for table in tables}


def export(ctx: ReadContext) -> Iterator[Exported]:
    """("entity", record), ("relationship", record) and ("mention", record) for all that can be
    seen. An import takes in what was asked for; the rest is read again from the memories it brings.
    """
    return sections(ctx, _entities, _relationships, _mentions)


def _entities(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    sight = Sight.of(ctx)
    for key, row in ctx[ENTITIES].scan(after=after):
        if sight.sees(row):
            yield "entity", {**entity_view(row), "asked_for": row.asked_for}, key


def _relationships(
    ctx: ReadContext, after: Key | None
) -> Iterator[tuple[str, dict[str, Any], Key]]:
    sight = Sight.of(ctx)
    for key, row in ctx[RELATIONSHIPS].scan(after=after):
        if sight.sees_claim(row):
            yield (
                "relationship",
                {
                    **relationship_view(row, ends_of(ctx, [row])),
                    "ends": [msgspec.to_builtins(end) for end in row.ends],
                    "asked_for": row.asked_for or row.is_entered,
                },
                key,
            )


def _mentions(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    sight = Sight.of(ctx)
    for key, raw in ctx[SOURCES].scan(after=after):
        memory_id, kind, ordinal = key
        row = ctx[ENTITIES].get(ordinal) if kind == ENTITY else None
        if row is not None and int.from_bytes(raw, "big") not in sight.gone and sight.sees(row):
            yield "mention", {"entity_id": row.id, "memory_id": memory_id}, key
