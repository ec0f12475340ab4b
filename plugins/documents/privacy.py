"""What is erased, exported and counted of documents, and what must agree among their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugins.collections import member_totals
from plugins.documents.chunk_memories import chunk_view
from plugins.documents.models import DocumentQuery
from plugins.documents.operations import queued
from plugins.documents.store import (
    DOCUMENT_BLOBS,
    DOCUMENT_BYTES,
    DOCUMENT_CHUNKS,
    DOCUMENT_DIGESTS,
    DOCUMENT_FIELDS,
    DOCUMENT_IDS,
    DOCUMENTS,
    PENDING,
    TABLES,
    UNFINISHED,
    DocumentRow,
    content_key,
    document_view,
    marks,
    matching,
    put,
    stored_bytes,
    text_of,
    true_bytes,
)
from runtime.api import metering
from runtime.api.checks import Counter, Derived, Finding, IndexEntries, Pursued, last_ordinal
from runtime.api.context import ReadContext, WriteContext
from runtime.api.figures import estimated_bytes
from runtime.installation import blob_store

# --- privacy --------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all documents of the tenant, and their files: the account is closed by then, so nobody
    misses them if this runs again.
    """
    blob_store(ctx.settings).remove_owner(ctx.principal.tenant_id)
    return {table.name: ctx[table].delete_prefix() for table in (*TABLES, *DOCUMENT_FIELDS.tables)}


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any], int]]:
    """("document", record with its text and its chunks' places, ordinal) for each that can be read,
    oldest first.

    An import takes in the memories of its chunks, with the name of the document they came from, and
    not the document: its file is no part of an export.
    """
    shown = matching(ctx, DocumentQuery())
    if ctx.after is not None:
        shown.remove_range(0, ctx.after + 1)
    for ordinal in shown:
        row = ctx[DOCUMENTS].row(ordinal)
        chunks = [
            chunk_view(ctx, row, key[1], chunk) for key, chunk in ctx[DOCUMENT_CHUNKS].scan(ordinal)
        ]
        yield (
            "document",
            {**document_view(ctx, row), "text": text_of(ctx, row), "chunks": chunks},
            ordinal,
        )


# --- figures -------------------------------------------------------------------------------------


def figures(ctx: ReadContext) -> dict[str, int]:
    """Documents, the bytes of their files and texts as the tier has room for them, and the files'
    among all bytes; estimated where there are very many.
    """
    _, documents = member_totals(ctx)
    files = ctx[DOCUMENT_BLOBS]
    size = estimated_bytes(
        lambda limit: [row.size for _, row in files.scan(limit=limit)], documents
    )
    return {"documents": documents, "file_bytes": stored_bytes(ctx), "bytes": size}


# --- checks ---------------------------------------------------------------------------------------


def _by_ordinal(row: DocumentRow) -> bytes:
    return row.ordinal.to_bytes(4, "big")


def _unfinished(ctx: ReadContext) -> Iterator[tuple[int, str]]:
    waiting = ctx.index(DOCUMENT_FIELDS).any_of("status", UNFINISHED) & matching(
        ctx, DocumentQuery()
    )
    return ((ordinal, f"document {ordinal}") for ordinal in waiting)


def _bytes(ctx: ReadContext) -> Iterator[Finding]:
    """The sum of the files' and texts' bytes, where it is kept."""
    true = true_bytes(ctx)
    if stored_bytes(ctx) != true:
        yield Finding(
            DOCUMENT_BYTES.name,
            f"the files and texts have {true} bytes, not {stored_bytes(ctx)}",
            lambda ctx: ctx[DOCUMENT_BYTES].put((), true.to_bytes(8, "big")),
        )


def _take_up(ctx: WriteContext, ordinals: list[int]) -> None:
    for row in ctx[DOCUMENTS].rows([(ordinal,) for ordinal in ordinals]):
        metering.release(ctx, row.charge)
        put(ctx, row, status=PENDING, **queued(ctx, row.ordinal))


CHECKS = (
    Derived(DOCUMENT_IDS, DOCUMENTS, lambda ctx, key, row: [((row.id,), _by_ordinal(row))]),
    Derived(
        DOCUMENT_DIGESTS,
        DOCUMENTS,
        lambda ctx, key, row: [((row.number, content_key(ctx, row.sha256)), _by_ordinal(row))],
    ),
    IndexEntries(DOCUMENT_FIELDS, DOCUMENTS, lambda ctx, row: marks(row)),
    Counter("documents", last_ordinal(DOCUMENTS)),
    _bytes,
    Pursued(
        "documents.process", DOCUMENTS, _unfinished, lambda payload: [payload["ordinal"]], _take_up
    ),
)
