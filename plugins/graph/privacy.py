"""What an account takes along of its graph when it leaves, and what is removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from plugins.graph import statistics as graph_stats
from plugins.graph.queries import ends_of, entity_view, relationship_view
from plugins.graph.rows import ENTITIES, INDEXES, RELATIONSHIPS, TABLES
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
    """("entity", record) and ("relationship", record) for all that can be seen, oldest first."""
    return sections(ctx, _entities, _relationships)


def _entities(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    sight = Sight.of(ctx)
    for key, row in ctx[ENTITIES].scan(after=after):
        if sight.sees(row):
            yield "entity", entity_view(row), key


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
                },
                key,
            )
