"""The memories that a document's chunks have become, as far as they are there.

A memory may be deleted while its document stays, and brought again by an import, under its id and
another ordinal.
"""

from __future__ import annotations

from typing import Any

from pyroaring import BitMap

from plugins.documents.store import DOCUMENT_CHUNKS, ChunkRow, DocumentRow, chunk_id, slice_of
from plugins.memories import find_row, hide_all, readable
from runtime.api.context import ReadContext, WriteContext


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
