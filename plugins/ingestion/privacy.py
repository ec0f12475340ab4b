"""What is erased and exported of ingestion: claims, which memory took which one's place, waiting
conversations, the tiers' alarm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugins.ingestion import store, tiers
from plugins.ingestion.job import INPUTS
from plugins.ingestion.store import FACTS, SUCCESSORS
from plugins.memories import find_row
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from runtime.timestamps import iso
from storage.store import Key, Table

TABLES: tuple[Table, ...] = (INPUTS, *store.TABLES, *tiers.TABLES)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove every claim, every waiting conversation and the tiers' alarm. Counts of rows by
    table.
    """
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext) -> Iterator[Exported]:
    """("fact", record) for every claim of a memory that can be read, and ("succession", record) for
    every two memories of which the newer one took the place of the older one.
    """
    return sections(ctx, _facts, _successions)


def _facts(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for key, fact in ctx[FACTS].scan(after=after):
        memory_id, number = key
        if (memory := find_row(ctx, memory_id)) is not None:
            evidence = fact.evidence
            yield (
                "fact",
                {
                    "memory_id": memory_id,
                    "memory_version": memory.version,
                    "number": number,
                    "subject": fact.subject,
                    "predicate": fact.predicate,
                    "object": fact.object,
                    "polarity": fact.polarity,
                    "valid_from": None if fact.valid_from is None else iso(fact.valid_from),
                    "relationship_id": fact.relationship_id or None,
                    "evidence": {
                        "source": evidence.source,
                        "start": evidence.start,
                        "end": evidence.end,
                        "quote": evidence.quote,
                    },
                },
                key,
            )


def _successions(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for key, why in ctx[SUCCESSORS].scan(after=after):
        newer, older = key
        if find_row(ctx, newer) is not None and find_row(ctx, older) is not None:
            yield "succession", {"newer_id": newer, "older_id": older, "why": why.decode()}, key
