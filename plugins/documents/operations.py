"""The operations on documents: uploading, reading, deleting."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from plugins.collections import adjust_count, require_collection
from plugins.documents.chunk_memories import chunk_view, hide_memories, is_whole
from plugins.documents.extras import extra_of
from plugins.documents.limits import DOCUMENT_RESERVED_SECONDS_MAX
from plugins.documents.models import (
    EXAMPLE,
    EXAMPLE_CHUNK,
    EXAMPLE_ID,
    Chunk,
    DeletedDocument,
    Document,
    DocumentContent,
    DocumentQuery,
    DocumentText,
    NewDocument,
    Uploaded,
)
from plugins.documents.parsing import formats
from plugins.documents.settings import DocumentsSettings
from plugins.documents.store import (
    COMPLETED,
    DOCUMENT_CHARSETS,
    DOCUMENT_CHUNKS,
    DOCUMENTS,
    FAILED,
    FRESH,
    PENDING,
    UNFINISHED,
    UPLOAD_CREDITS,
    DocumentRow,
    add,
    advance,
    beside,
    blob_of,
    bring_file,
    concurrency_group_of,
    document_view,
    file_gone_at,
    find_twin,
    get_row,
    matching,
    remove,
    remove_file,
    say_charset,
    text_of,
)
from plugins.documents.sweeping import look_for_orphans
from runtime.api import metering
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Idempotency, Read, Reply, StoredFile, Upload, Write
from runtime.api.pagination import Page, PageQuery, envelope, example_page, newest_first, position
from runtime.errors import NotFound
from runtime.limits import RETRY_AFTER_SECONDS
from storage.blobs import Blob

# --- uploading ------------------------------------------------------------------------------------


def upload(ctx: WriteContext, body: NewDocument) -> Reply:
    """Take the file over: a document and the job that reads it. Raises CollectionNotFound."""
    collection = require_collection(ctx, body.collection_id)
    look_for_orphans(ctx)
    ctx.credits = 0
    file = body.file
    blob = Blob(file.blob_name, file.sha256, file.size_bytes, file.blob_key)
    twin = find_twin(ctx, collection.number, file.sha256)
    if twin is not None:
        unneeded = bring_file(ctx, twin, blob)
        if unneeded is not None:
            remove_file(ctx, unneeded)
        is_said_otherwise = say_charset(ctx, twin.ordinal, twin.media_type, file.charset)
        # somebody deleted memories that it had become, or it is, or will be, misread
        is_due = is_said_otherwise or (twin.status == COMPLETED and not is_whole(ctx, twin))
        if is_due:
            hide_memories(ctx, twin)
            metering.release(ctx, twin.charge)
        again = is_due or twin.status == FAILED
        return _uploaded(ctx, (_again if again else _describe)(ctx, twin, body))
    ordinal = ctx.next_ordinal("documents")
    say_charset(ctx, ordinal, file.media_type, file.charset)
    row = DocumentRow(
        id=ctx.new_id("doc"), ordinal=ordinal, number=collection.number,
        collection_id=collection.id, filename=file.filename, media_type=file.media_type,
        size=file.size_bytes, sha256=file.sha256, created_at=ctx.now, updated_at=ctx.now,
        **queued(ctx, ordinal), **_given(body),
    )  # fmt: skip
    unneeded = add(ctx, row, blob)
    if unneeded is not None:
        remove_file(ctx, unneeded)
    _help_recording(ctx, row)
    return _uploaded(ctx, row)


def _help_recording(ctx: WriteContext, row: DocumentRow) -> None:
    """Subtitles have come for a recording that nobody could transcribe: it is processed once
    more.
    """
    if row.media_type in formats.SUBTITLES:
        recording = beside(ctx, row, formats.SOUND)
        if (
            recording is not None
            and recording.status == FAILED
            and recording.reason == "transcription_unavailable"
            and file_gone_at(ctx, recording) is None
        ):
            advance(ctx, recording, status=PENDING, **FRESH, **queued(ctx, recording.ordinal))


def _again(ctx: WriteContext, row: DocumentRow, body: NewDocument) -> DocumentRow:
    """Process a document once more that had failed or lost memories, or was misread."""
    return advance(
        ctx,
        row,
        status=PENDING,
        filename=body.file.filename,
        **FRESH,
        **queued(ctx, row.ordinal),
        **_given(body),
    )


def queued(ctx: WriteContext, ordinal: int) -> dict[str, Any]:
    """The job that will read the document, and what it may cost, set aside."""
    charset = ctx[DOCUMENT_CHARSETS].get(ordinal)
    said = {} if charset is None else {"charset": charset.decode()}
    job_id = ctx.enqueue(
        "documents.process",
        {"ordinal": ordinal, "phase": "begin", **said},
        group=concurrency_group_of(ctx, "documents"),
    )
    charge = metering.reserve(
        ctx, "documents.upload", UPLOAD_CREDITS, seconds_max=DOCUMENT_RESERVED_SECONDS_MAX
    )
    return {"job_id": job_id, "charge": charge}


def _describe(ctx: WriteContext, row: DocumentRow, body: NewDocument) -> DocumentRow:
    """A document that is there says what is given now, and a job has its memories say it."""
    changes = {name: new for name, new in _given(body).items() if getattr(row, name) != new}
    if not changes:
        return row
    if row.indexed:
        ctx.enqueue(
            "documents.describe",
            {"ordinal": row.ordinal, "fields": sorted(changes), "next": 0},
            group=concurrency_group_of(ctx, "documents"),
        )
    return advance(ctx, row, **changes)


def _given(body: NewDocument) -> dict[str, Any]:
    """Those fields of the form that were sent."""
    title = (body.title or "").strip()
    sent = {
        "title": title or None,
        "title_given": bool(title) or None,
        "tags": body.tags,
        "metadata": body.metadata,
    }
    return {name: value for name, value in sent.items() if value is not None}


def _uploaded(ctx: WriteContext, row: DocumentRow) -> Reply:
    url = f"/v1/documents/{row.id}"
    pending = row.status in UNFINISHED
    headers = (
        {"Location": url, "Retry-After": str(RETRY_AFTER_SECONDS)} if pending else {"Location": url}
    )
    return Reply(
        202 if pending else 200,
        {"document": document_view(ctx, row), "job_id": row.job_id, "status_url": url},
        headers,
    )


# --- reading --------------------------------------------------------------------------------------


def get(ctx: ReadContext, body: None) -> dict[str, Any]:
    return document_view(ctx, get_row(ctx, ctx.path["id"]))


def list_documents(ctx: ReadContext, body: None) -> dict[str, Any]:
    found = matching(ctx, ctx.query)
    page, following = newest_first(ctx, found)
    rows = ctx[DOCUMENTS].rows([(ordinal,) for ordinal in page])
    return envelope(ctx, [document_view(ctx, row) for row in rows], following, len(found))


def list_chunks(ctx: ReadContext, body: None) -> dict[str, Any]:
    row = get_row(ctx, ctx.path["id"])
    start = position(ctx)
    after = None if start is None else (row.ordinal, start[0])
    found = [
        (key[1], chunk)
        for key, chunk in ctx[DOCUMENT_CHUNKS].scan(
            row.ordinal, after=after, limit=ctx.query.limit + 1
        )
    ]
    page = found[: ctx.query.limit]
    items = [chunk_view(ctx, row, index, chunk) for index, chunk in page]
    return envelope(ctx, items, (page[-1][0],) if len(found) > len(page) else None, row.chunk_count)


def get_text(ctx: ReadContext, body: None) -> Reply:
    return Reply(
        200,
        text_of(ctx, get_row(ctx, ctx.path["id"])).encode(),
        content_type="text/plain; charset=utf-8",
    )


def get_content(ctx: ReadContext, body: None) -> Reply:
    row = get_row(ctx, ctx.path["id"])
    if file_gone_at(ctx, row) is not None:
        raise NotFound(
            "The file of this document was removed, since it could not be read; upload it again."
        )
    disposition = f"attachment; filename*=UTF-8''{quote(row.filename, safe='')}"
    headers = {"Content-Disposition": disposition, "ETag": f'"{row.sha256}"'}
    return Reply(
        200,
        None,
        headers,
        row.media_type,
        file=StoredFile(ctx.principal.tenant_id, blob_of(ctx, row)),
    )


# --- deleting -------------------------------------------------------------------------------------


def delete(ctx: WriteContext, body: None) -> dict[str, Any]:
    row = get_row(ctx, ctx.path["id"])
    hide_memories(ctx, row)
    remove(ctx, row)
    adjust_count(ctx, row.collection_id, documents=-1)
    return {"id": row.id, "deleted": True}


# --- operations -----------------------------------------------------------------------------------

_CREATED = {
    **EXAMPLE, "status": "pending", "processing_status": "pending", "version": 1,
    "page_count": None, "chunk_count": 0, "result": None,
}  # fmt: skip
_UPLOADED = {
    "document": _CREATED,
    "job_id": "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j",
    "status_url": f"/v1/documents/{EXAMPLE_ID}",
}

OPERATIONS = (
    Write(
        name="documents.upload",
        method="POST",
        path="/v1/documents/upload",
        handler=upload,
        body=NewDocument,
        upload=Upload(
            lambda settings: DocumentsSettings.of(settings).max_upload_bytes, formats.media_type_of
        ),
        response=Uploaded,
        statuses=(202, 200),
        scope="write",
        rate_of=lambda body: "media" if body.file.media_type in formats.MEDIA else "default",
        idempotency=Idempotency.CACHED,
        credits=UPLOAD_CREDITS,
        feature=lambda body: "media" if body.file.media_type in formats.SOUND else None,
        extra=lambda body: extra_of(body.file.media_type),
        summary="Upload a document",
        description=(
            "PDF, DOCX, PPTX, XLSX, TXT, MD, HTML, CSV, JSON, EML, SRT, VTT, MP3, WAV, M4A, FLAC, "
            "OGG, MP4, WebM, MOV, PNG, JPEG, WebP, "
            "by content. 202: it is stored and will be read, or once more where it had failed or "
            "memories of its chunks were deleted. 200: the collection has it already. Of a "
            "document that is there, title, tags and metadata stay unless they are sent."
        ),
        example={"title": "Annual report", "tags": "finance", "metadata": '{"year": 2025}'},
        example_reply=_UPLOADED,
    ),
    Read(
        name="documents.list",
        method="GET",
        path="/v1/documents",
        handler=list_documents,
        query=DocumentQuery,
        response=Page[Document],
        summary="List documents",
        example_reply=example_page(EXAMPLE),
    ),
    Read(
        name="documents.get",
        method="GET",
        path="/v1/documents/{id}",
        handler=get,
        response=Document,
        summary="Get a document",
        example_reply=EXAMPLE,
    ),
    Read(
        name="documents.chunks",
        method="GET",
        path="/v1/documents/{id}/chunks",
        handler=list_chunks,
        query=PageQuery,
        response=Page[Chunk],
        summary="List the chunks of a document",
        description="In the order of the text.",
        example_reply=example_page(EXAMPLE_CHUNK),
    ),
    Read(
        name="documents.text",
        method="GET",
        path="/v1/documents/{id}/text",
        handler=get_text,
        response=DocumentText,
        produces="text/plain",
        summary="Get the extracted text of a document",
        description="The text that the offsets of chunks refer to, in UTF-8.",
        example_reply="Results\n\nRevenue grew by a tenth.",
    ),
    Read(
        name="documents.content",
        method="GET",
        path="/v1/documents/{id}/content",
        handler=get_content,
        response=DocumentContent,
        produces="*/*",
        summary="Get the file of a document",
        description=(
            "Byte for byte as it was uploaded. 404 once it was removed, as that of a document that "
            "failed is (`file_removed_at`)."
        ),
        example_reply="%PDF-1.7 …",
    ),
    Write(
        name="documents.delete",
        method="DELETE",
        path="/v1/documents/{id}",
        handler=delete,
        response=DeletedDocument,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Delete a document and the memories of its chunks",
        description=(
            "Neither can be read or found from now on; files and derived data are swept in the "
            "background. Again is 404."
        ),
        example_reply={"id": EXAMPLE_ID, "deleted": True},
    ),
)
