"""Taking in what an export says of what memories claim, and of which took another one's place.

Both come with the memories, and go with them. A claim is taken in where its memory is here in the
version that makes it: what somebody has edited since says something else. The jobs that found them
are no part of an export, so no claim is theirs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from plugins.graph import get_claim
from plugins.ingestion.limits import FACTS_PER_JOB_MAX
from plugins.ingestion.store import (
    FACTS,
    HANDED_ON,
    MERGED,
    REPLACED,
    SUCCESSORS,
    EvidenceRange,
    FactRow,
    tell_claims,
)
from plugins.memories import CONTENT_CHARS_MAX, find_row
from runtime.api.context import WriteContext
from runtime.api.operation import Body
from runtime.api.restoring import Origin, Restore
from runtime.limits import ID_CHARS_MAX
from runtime.timestamps import Timestamp

Id = Annotated[str, Field(max_length=ID_CHARS_MAX)]
Text = Annotated[str, Field(max_length=CONTENT_CHARS_MAX)]
Place = Annotated[int, Field(ge=0, le=2**31)]
_WHY = {why.decode(): why for why in (REPLACED, MERGED, HANDED_ON)}


class ExportedEvidence(Body):
    """Where in what was said a claim was found."""

    source: Place
    start: Place
    end: Place
    quote: Text


class ExportedFact(Body):
    """A claim of a memory as an export has it."""

    memory_id: Id
    memory_version: int | None = None
    number: int = Field(default=0, ge=0, lt=FACTS_PER_JOB_MAX * FACTS_PER_JOB_MAX)
    subject: Text
    predicate: Text
    object: Text
    polarity: Literal["holds", "ended", "denied"]
    evidence: ExportedEvidence
    valid_from: Timestamp | None = None
    relationship_id: Id | None = None


class ExportedSuccession(Body):
    """That a memory took another one's place, as an export has it."""

    newer_id: Id
    older_id: Id
    why: Literal["", "merged", "handed on"]


def restore_facts(ctx: WriteContext, records: Sequence[ExportedFact], origin: Origin) -> int:
    """Store the claims that are not here yet of memories that are; -> how many."""
    told = [memory_id for record in records if (memory_id := _restore_fact(ctx, record, origin))]
    for memory_id in dict.fromkeys(told):
        tell_claims(ctx, memory_id)
    return len(told)


def _restore_fact(ctx: WriteContext, record: ExportedFact, origin: Origin) -> str | None:
    """-> the memory whose claim is new."""
    row = find_row(ctx, origin.renamed(record.memory_id))
    if row is None or row.version != record.memory_version:
        return None
    if ctx[FACTS].has(row.id, record.number):
        return None
    made = origin.renamed(record.relationship_id) if record.relationship_id else ""
    evidence = record.evidence
    fact = FactRow(
        record.subject,
        record.predicate,
        record.object,
        record.polarity,
        EvidenceRange(evidence.source, evidence.start, evidence.end, evidence.quote),
        "" if get_claim(ctx, made) is None else made,
        valid_from=record.valid_from,
    )
    ctx[FACTS].put((row.id, record.number), fact)
    return row.id


def restore_successions(
    ctx: WriteContext, records: Sequence[ExportedSuccession], origin: Origin
) -> int:
    """Store which memory took which one's place, where that is so here; -> how many are new."""
    new = 0
    for record in records:
        newer = find_row(ctx, origin.renamed(record.newer_id))
        older = find_row(ctx, origin.renamed(record.older_id))
        if newer is None or older is None or older.superseded_by_id != newer.id:
            continue
        if ctx[SUCCESSORS].get(newer.id, older.id) is None:
            ctx[SUCCESSORS].put((newer.id, older.id), _WHY[record.why])
            new += 1
    return new


def _is_of_a_version(ctx: WriteContext, record: ExportedFact) -> bool:
    return record.memory_version is not None


RESTORE = {
    "fact": Restore(ExportedFact, restore_facts, _is_of_a_version),
    "succession": Restore(ExportedSuccession, restore_successions),
}
