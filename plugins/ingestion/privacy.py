"""What is erased and exported of ingestion: claims, waiting conversations, the tiers' alarm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugins.ingestion import store, tiers
from plugins.ingestion.job import INPUTS
from plugins.ingestion.store import FACTS
from plugins.memories import find_row
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from storage.store import Key, Table

TABLES: tuple[Table, ...] = (INPUTS, *store.TABLES, *tiers.TABLES)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove every claim, every waiting conversation and the tiers' alarm. Counts of rows by
    table.
    """
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext) -> Iterator[Exported]:
    """("fact", record) for every claim of a memory that can be read."""
    return sections(ctx, _facts)


def _facts(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for key, fact in ctx[FACTS].scan(after=after):
        memory_id, _ = key
        if find_row(ctx, memory_id) is not None:
            evidence = fact.evidence
            yield (
                "fact",
                {
                    "memory_id": memory_id,
                    "subject": fact.subject,
                    "predicate": fact.predicate,
                    "object": fact.object,
                    "polarity": fact.polarity,
                    "evidence": {
                        "source": evidence.source,
                        "start": evidence.start,
                        "end": evidence.end,
                        "quote": evidence.quote,
                    },
                },
                key,
            )
