"""Reading a memory anew whose text was edited: it makes the claims of its new text.

What the old text claimed goes with the edit itself; the job `ingestion.reread` finds by the rules
what the new one claims, and compares it with what is known. What it contradicts is superseded, and
what the old text had superseded holds again unless the new one says the same of it. Nothing is
stored but its claims, and no language model is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plugins.collections import CollectionNotFound, require_collection
from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Fact, Said
from plugins.ingestion.resolution import settle_anew
from plugins.ingestion.statements import Target
from plugins.ingestion.store import facts_of
from plugins.ingestion.successors import give_back
from plugins.memories import MemoryRow, find_row
from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import Job
from runtime.api.steps import JobSteps
from runtime.inference import Models

REREAD = "ingestion.reread"


def read_anew(ctx: WriteContext, row: MemoryRow) -> None:
    """Have the job read this text of a memory."""
    ctx.enqueue(REREAD, {"memory_id": row.id, "content_version": row.content_version})


def _load(ctx: ReadContext, payload: Mapping[str, Any]) -> MemoryRow | None:
    """The memory, unless its text is another one by now, or it was given claims meanwhile, as one
    of the same words.
    """
    row = find_row(ctx, payload["memory_id"])
    if row is None or row.content_version != payload["content_version"]:
        return None
    return None if facts_of(ctx, row.id) else row


async def _prepare(
    steps: JobSteps, row: MemoryRow | None, payload: Mapping[str, Any], models: Models
) -> list[Fact]:
    if row is None or row.superseded:
        return []
    found = await RuleEngine(models.read_language).extract(_said(row), row.occurred_at, None)
    return found.facts


def _said(row: MemoryRow) -> list[Said]:
    speaker = row.speaker or row.user_id or row.role or "user"
    return [Said(speaker, row.content, role=row.role)]


def _finish(ctx: WriteContext, payload: Mapping[str, Any]) -> dict[str, int]:
    row = _load(ctx, payload)
    if row is None:
        return {"claims": 0}
    try:
        collection = require_collection(ctx, row.collection_id)
    except CollectionNotFound:  # its memories go with it
        return {"claims": 0}
    claims = 0
    if not row.superseded:  # what holds no more claims nothing
        target = Target(collection, {"user_id": row.user_id}, row.occurred_at)
        claims = settle_anew(ctx, row, ctx.prepared, _said(row), target)
    give_back(ctx, row)
    return {"claims": claims}


JOB = Job(REREAD, _finish, load=_load, prepare=_prepare, keep=False)
