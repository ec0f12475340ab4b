"""What ingestion keeps: which texts it has taken in, what claims each memory makes, and which
memories stand for which.

ingested_texts       (scope and text, 20 bytes)   -> memory id
ingested_facts       (memory id, number)          -> FactRow
ingested_successors  (newer memory id, older one) -> why the newer one superseded the older:
                     REPLACED, MERGED or HANDED_ON
ingested_telling     (memory id, job id)          -> b"": the job's result tells of the memory; of
                     what was told once more, on which occasion and when: digest and 8 bytes
"""

from __future__ import annotations

import msgspec

from plugins.ingestion.limits import TELLING_JOBS_READ_MAX
from plugins.ingestion.sentences import sentences
from plugins.memories import MEMORY_FIELDS, MemoryRow, find_rows_at, unreadable
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Event, View
from runtime.timestamps import DAY_MS
from storage.store import Table

FACT, TURN = "inferred", "message"  # source_type of a fact, whose source_reference is its turn
REPLACED, MERGED, HANDED_ON = b"", b"merged", b"handed on"
TOLD_OF = ("memory_id", "previous_memory_id", "merged_memory_id")  # of an event of a job's result


class ClaimsChanged(View):
    """A memory makes other claims than before, while its text is the same."""

    id: str


CLAIMS_CHANGED = Event("internal.claims_changed", ClaimsChanged)


def tell_claims(ctx: WriteContext, memory_id: str) -> None:
    """Let whoever reads claims know that those of a memory have changed by themselves."""
    ctx.emit(CLAIMS_CHANGED, {"id": memory_id}, memory_id)


class EvidenceRange(msgspec.Struct, frozen=True):
    """source: index of the message; start, end: code points in it."""

    source: int
    start: int
    end: int
    quote: str


class FactRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim of a memory. relationship_id: the claim in the graph, "" when it makes none. job_id:
    the job that found it.
    """

    subject: str
    predicate: str
    object: str
    polarity: str
    evidence: EvidenceRange
    relationship_id: str = ""
    job_id: str = ""
    valid_from: int | None = None


TEXTS: Table[bytes] = Table(
    "ingested_texts", key=("scope_and_text",), row=bytes, doc="what has been ingested, to memory id"
)
FACTS: Table[FactRow] = Table(
    "ingested_facts",
    key=("memory_id", "number"),
    row=FactRow,
    doc="the claims of extracted memories",
)
SUCCESSORS: Table[bytes] = Table(
    "ingested_successors",
    key=("newer", "older"),
    row=bytes,
    doc="which memories a memory superseded, and why",
)
TELLING: Table[bytes] = Table(
    "ingested_telling",
    key=("memory_id", "job_id"),
    row=bytes,
    doc="which jobs' results tell of a memory",
)


def facts_of_turn(ctx: ReadContext, turn: MemoryRow) -> list[MemoryRow]:
    """The memories of facts that rest on a turn and can be read now, superseded ones too."""
    fields = ctx.index(MEMORY_FIELDS)
    found = fields.of("source_reference", turn.id) & fields.of("source_type", FACT)
    return find_rows_at(ctx, found - unreadable(ctx))


def is_over(ctx: ReadContext, turn: MemoryRow) -> bool:
    """Whether each sentence of a turn is a fact that is superseded."""
    over = {row.content for row in facts_of_turn(ctx, turn) if row.superseded}
    return all(turn.content[start:end] in over for start, end in sentences(turn.content))


def facts_of(ctx: ReadContext, memory_id: str) -> list[FactRow]:
    """The claims that a memory makes, as they were found in it."""
    return [fact for _, fact in ctx[FACTS].scan(memory_id)]


def occasion(ctx: ReadContext, session_id: str | None, at: int) -> bytes:
    """Which occasion something was said on: the session, or the day where there is none."""
    return ctx.digest("occasion", f"\0{at // DAY_MS}" if session_id is None else session_id)


def note_told(ctx: WriteContext, memory_id: str, job_id: str, again: bytes | None = None) -> None:
    """Remember that a job's result tells of a memory; again: the occasion on which it was told once
    more.
    """
    if again is not None:
        ctx[TELLING].put((memory_id, job_id), again + ctx.now.to_bytes(8, "big"))
    elif not ctx[TELLING].has(memory_id, job_id):
        ctx[TELLING].put((memory_id, job_id), b"")


def told_again_at(ctx: ReadContext, memory_id: str, here: bytes) -> int:
    """When a memory was last told once more on this occasion, Unix milliseconds; 0 where that was
    in none of the newest TELLING_JOBS_READ_MAX jobs that tell of it.
    """
    newest = ctx[TELLING].scan(memory_id, reverse=True, limit=TELLING_JOBS_READ_MAX)
    told = (raw for _, raw in newest if raw.startswith(here))
    return max((int.from_bytes(raw[len(here) :], "big") for raw in told), default=0)


TABLES: tuple[Table, ...] = (TEXTS, FACTS, SUCCESSORS, TELLING)
