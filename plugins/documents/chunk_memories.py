"""The memories that a document's chunks have become, as far as they are there.

A memory may be deleted while its document stays, and brought again by an import, under its id and
another ordinal.

What an upload says anew of a document that is there, its memories are told by the job
`documents.describe`, some at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyroaring import BitMap

from plugins.collections import is_dropped
from plugins.documents.limits import CHUNKS_PER_STEP
from plugins.documents.store import (
    DOCUMENT_CHUNKS,
    DOCUMENTS,
    FAILED,
    UNFINISHED,
    ChunkRow,
    DocumentRow,
    chunk_id,
    slice_of,
)
from plugins.memories import find_row, hide_all, readable, update_memory
from runtime.api import metering
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again, GiveUp
from runtime.api.plugin import Job
from runtime.errors import PermissionDenied, RateLimited

SOURCE_TYPE = "document"
_WAIT_MS = 5_000


def chunk_view(ctx: ReadContext, row: DocumentRow, index: int, chunk: ChunkRow) -> dict[str, Any]:
    """Turn a chunk's row into the API's Chunk."""
    return {
        "id": chunk_id(ctx, row, index),
        "document_id": row.id,
        "index": index,
        "content": slice_of(ctx, row, chunk.start, chunk.end),
        "start": chunk.start,
        "end": chunk.end,
        "page": chunk.page,
        "heading": chunk.heading,
        "start_seconds": chunk.begins,
        "end_seconds": chunk.ends,
        "memory_id": chunk.memory if chunk.memory and find_row(ctx, chunk.memory) else None,
    }


def memory_fields(row: DocumentRow, index: int, chunk: ChunkRow) -> dict[str, Any]:
    """What a chunk's memory says beside its text, which it holds without the white space around it.

    The chunks of a document are one session: neighbours help each other to be found.
    """
    place = {
        "document_id": row.id,
        "chunk_index": index,
        "filename": row.filename,
        "page": chunk.page,
        "heading": chunk.heading,
        "start_seconds": chunk.begins,
        "end_seconds": chunk.ends,
    }
    return {
        "title": chunk.heading or row.title,
        "tags": row.tags,
        "source": row.filename,
        "source_type": SOURCE_TYPE,
        "source_reference": row.id,
        "session_id": row.id,
        "metadata": {
            **row.metadata,
            **{name: value for name, value in place.items() if value is not None},
        },
    }


def is_whole(ctx: ReadContext, row: DocumentRow) -> bool:
    """Whether every chunk that became a memory is one still."""
    return len(_present(ctx, row)) == row.indexed


def hide_memories(ctx: WriteContext, row: DocumentRow) -> None:
    """Take the memories of a document's chunks out of every read; what they leave behind is swept
    by memories' own job.
    """
    if doomed := _present(ctx, row):
        hide_all(ctx, doomed)


def _present(ctx: ReadContext, row: DocumentRow) -> BitMap:
    """The ordinals of the memories that can be read now."""
    chunks = ctx[DOCUMENT_CHUNKS].scan(row.ordinal, limit=row.indexed) if row.indexed else ()
    made = {chunk.memory_ordinal: chunk.memory for _, chunk in chunks if chunk.memory}
    present = BitMap(made) & readable(ctx, include_superseded=True)
    brought = (find_row(ctx, name) for ordinal, name in made.items() if ordinal not in present)
    return present | BitMap(memory.ordinal for memory in brought if memory is not None)


def describe(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | GiveUp | dict[str, Any]:
    """The job `documents.describe`: the memories of one step say what their document says now, of
    the fields that are named. It waits while the document is processed.
    """
    row = ctx[DOCUMENTS].get(payload["ordinal"])
    if row is None or is_dropped(ctx, row.number) or row.status == FAILED:
        return {"described": payload["next"]}
    if row.status in UNFINISHED:
        return Again({**payload, "next": 0}, delay_ms=_WAIT_MS)
    after = (row.ordinal, payload["next"] - 1) if payload["next"] else None
    step = list(ctx[DOCUMENT_CHUNKS].scan(row.ordinal, after=after, limit=CHUNKS_PER_STEP))
    for (_, index), chunk in step:
        memory = find_row(ctx, chunk.memory) if chunk.memory else None
        if memory is None:
            continue
        fields = memory_fields(row, index, chunk)
        told = {name: fields[name] for name in payload["fields"] if name in fields}
        if any(getattr(memory, name) != value for name, value in told.items()):
            try:
                metering.require_left(ctx, 1)
                update_memory(ctx, memory, told, reason="document")
            except (PermissionDenied, RateLimited) as refused:
                return GiveUp(refused.message)
            ctx.credits += 1  # as a change of the memory costs
    described = payload["next"] + len(step)
    if len(step) < CHUNKS_PER_STEP:
        return {"described": described}
    return Again({**payload, "next": described}, progress=min(1.0, described / row.chunk_count))


DESCRIBE_JOB = Job("documents.describe", describe)
