"""What an account takes along of its graph when it leaves, and what is removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from plugins.graph import statistics as graph_stats
from plugins.graph.limits import CLAIMING_MEMORIES_EXPORTED_MAX
from plugins.graph.queries import ends_of, entity_view, relationship_view
from plugins.graph.rows import (
    ENTITIES,
    ENTITY,
    GIVEN,
    INDEXES,
    MENTIONS,
    RELATIONSHIPS,
    SOURCES,
    TABLES,
    EntityRow,
)
from plugins.graph.store import Sight
from plugins.memories import find_rows_at
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
    seen. An import takes in what was asked for and what memories claim, each of which says from
    which version of which memories; what these mention besides is read again from them.
    """
    return sections(ctx, _entities, _relationships, _mentions)


def _entities(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    sight = Sight.of(ctx)
    for key, row in ctx[ENTITIES].scan(after=after):
        if sight.sees(row):
            record = {**entity_view(row), "asked_for": row.asked_for}
            if not row.asked_for and not row.is_read:
                by = _claiming(ctx, row, sight)
                record["claimed"] = {"by": by, "aliases": row.aliases}
            yield "entity", record, key


def _claiming(ctx: ReadContext, row: EntityRow, sight: Sight) -> list[tuple[str, int]]:
    """Some of the memories whose claims may speak of an entity: ids and versions."""
    said = (
        memory for (_, memory), taken_for in ctx[MENTIONS].scan(row.ordinal) if taken_for != GIVEN
    )
    seen = (memory for memory in said if memory not in sight.gone)
    return _versions(ctx, islice(seen, CLAIMING_MEMORIES_EXPORTED_MAX))


def _versions(ctx: ReadContext, memories: Iterable[int]) -> list[tuple[str, int]]:
    return [(memory.id, memory.version) for memory in find_rows_at(ctx, list(memories))]


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
                    "claimed": {
                        "by": _versions(ctx, (o for o in row.sources if o not in sight.gone)),
                        "narrowed": msgspec.to_builtins(row.narrowed),
                        "retracted_by": row.retracted_by,
                    },
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
