"""Documents: files that are uploaded, read, cut into chunks and found again (specification part 4, Documents).

Owns the endpoints. What a document is and how it changes is in plugins/document_store.py, from a file to searchable chunks in
plugins/document_processing.py, the reading of files in plugins/parsing/.

An upload answers 202 when the file is durable and a job will read it; the document's own URL says how far that is. Uploading the
same content into the same collection again makes no second document: it answers with the one that is there, with 200 when that is
completed, and tries again when it had failed.

Choices where the specification is silent:
- of an upload that finds its document there, title, tags and metadata are not taken over; of one that repeats a failed one they are;
- `GET …/content` is sent as an attachment, so that no browser runs what somebody uploaded;
- `GET …/text` is plain text, empty until the document has been read;
- recordings need the tier feature `media`; recordings and pictures count against the media cap;
- the credits of an upload are set aside, and charged with those of its chunks when it is completed; one that failed, was deleted
  before, or found its document there costs nothing;
- deleting a document deletes the memories of its chunks; deleting such a memory leaves the document as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from plugins.collections import COLLECTION_CLEANUP, Sweep, adjust_count, require_collection
from plugins.document_processing import PROCESS_JOB
from plugins.document_store import (
    DOCUMENT_BLOBS,
    DOCUMENT_CHUNKS,
    DOCUMENT_DIGESTS,
    DOCUMENT_FIELDS,
    DOCUMENT_IDS,
    DOCUMENT_SWEEP,
    DOCUMENTS,
    EVENTS,
    FAILED,
    FRESH,
    PARTS,
    PENDING,
    TABLES,
    UNFINISHED,
    UPLOAD_CREDITS,
    DocumentRow,
    add,
    advance,
    beside,
    blob_of,
    chunk_view,
    content_key,
    document_view,
    find_twin,
    get_row,
    hide_memories,
    lane_of,
    marks,
    matching,
    put,
    remove,
    remove_file,
    text_of,
)
from plugins.document_views import (
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
from plugins.parsing import formats
from runtime import metering
from runtime.blobs import blob_store
from runtime.checks import Counter, Derived, Marks, Pursued, last_ordinal
from runtime.jobs import Again
from runtime.limits import (
    BLOBS_ORPHANED_SECONDS,
    BLOBS_SWEPT_PER_STEP,
    CLEANUP_ROWS_PER_STEP,
    DOCUMENT_RESERVED_SECONDS_MAX,
    DOCUMENTS_SWEPT_PER_STEP,
    RETRY_AFTER_SECONDS,
)
from runtime.operation import Idempotency, Kind, Operation, ReadContext, Reply, StoredFile, Upload, WriteContext
from runtime.pagination import Page, PageQuery, envelope, newest_first, position
from runtime.plugin import Job, Plugin
from storage.blob_store import Blob, BlobStore

# --- uploading --------------------------------------------------------------------------------------------------------


def upload(ctx: WriteContext, body: NewDocument) -> Reply:
    """Take the file over: a document and the job that reads it. Raises CollectionNotFound."""
    collection = require_collection(ctx, body.collection_id)
    _look_for_orphans(ctx)
    ctx.credits = 0
    file = body.file
    blob = Blob(file.blob_name, file.sha256, file.size_bytes, file.blob_key)
    twin = find_twin(ctx, collection.number, file.sha256)
    if twin is not None:
        if twin.status == FAILED:
            twin = _again(ctx, twin, body)
        remove_file(ctx, blob.name)
        return _uploaded(twin)
    ordinal = ctx.next_ordinal("documents")
    row = DocumentRow(
        id=ctx.new_id("doc"), ordinal=ordinal, number=collection.number, collection_id=collection.id, filename=file.filename,
        media_type=file.media_type, size=file.size_bytes, sha256=file.sha256, created_at=ctx.now, updated_at=ctx.now,
        **_queued(ctx, ordinal), **_given(body),
    )  # fmt: skip
    unneeded = add(ctx, row, blob)
    if unneeded is not None:
        remove_file(ctx, unneeded)
    _help_recording(ctx, row)
    return _uploaded(row)


def _help_recording(ctx: WriteContext, row: DocumentRow) -> None:
    """Subtitles have come for a recording that nobody could transcribe: it is processed once more."""
    if row.media_type in formats.SUBTITLES:
        recording = beside(ctx, row, formats.SOUND)
        if recording is not None and recording.status == FAILED and recording.reason == "transcription_unavailable":
            advance(ctx, recording, status=PENDING, **FRESH, **_queued(ctx, recording.ordinal))


def _again(ctx: WriteContext, row: DocumentRow, body: NewDocument) -> DocumentRow:
    """Process a document that had failed once more, described as it is now."""
    return advance(ctx, row, status=PENDING, filename=body.file.filename, **FRESH, **_queued(ctx, row.ordinal), **_given(body))


def _queued(ctx: WriteContext, ordinal: int) -> dict[str, Any]:
    """The job that will read the document, and what it may cost, set aside."""
    job_id = ctx.enqueue("documents.process", {"ordinal": ordinal, "phase": "begin"}, lane=lane_of(ctx, "documents"))
    charge = metering.reserve(ctx, "documents.upload", UPLOAD_CREDITS, seconds_max=DOCUMENT_RESERVED_SECONDS_MAX)
    return {"job_id": job_id, "charge": charge}


def _given(body: NewDocument) -> dict[str, Any]:
    title = (body.title or "").strip() or None
    return {"title": title, "title_given": title is not None, "tags": body.tags, "metadata": body.metadata}


def _uploaded(row: DocumentRow) -> Reply:
    url = f"/v1/documents/{row.id}"
    pending = row.status in UNFINISHED
    headers = {"Location": url, "Retry-After": str(RETRY_AFTER_SECONDS)} if pending else {"Location": url}
    return Reply(202 if pending else 200, {"document": document_view(row), "job_id": row.job_id, "status_url": url}, headers)


# --- reading ----------------------------------------------------------------------------------------------------------


def get(ctx: ReadContext, body: None) -> dict[str, Any]:
    return document_view(get_row(ctx, ctx.path["id"]))


def list_documents(ctx: ReadContext, body: None) -> dict[str, Any]:
    found = matching(ctx, ctx.query)
    page, following = newest_first(ctx, found)
    rows = ctx[DOCUMENTS].get_many([(ordinal,) for ordinal in page])
    return envelope(ctx, [document_view(row) for row in rows], following, len(found))


def list_chunks(ctx: ReadContext, body: None) -> dict[str, Any]:
    row = get_row(ctx, ctx.path["id"])
    start = position(ctx)
    after = None if start is None else (row.ordinal, start[0])
    found = [(key[1], chunk) for key, chunk in ctx[DOCUMENT_CHUNKS].scan(row.ordinal, after=after, limit=ctx.query.limit + 1)]
    page = found[: ctx.query.limit]
    items = [chunk_view(ctx, row, index, chunk) for index, chunk in page]
    return envelope(ctx, items, (page[-1][0],) if len(found) > len(page) else None, row.chunk_count)


def get_text(ctx: ReadContext, body: None) -> Reply:
    return Reply(200, text_of(ctx, get_row(ctx, ctx.path["id"])).encode(), content_type="text/plain; charset=utf-8")


def get_content(ctx: ReadContext, body: None) -> Reply:
    row = get_row(ctx, ctx.path["id"])
    disposition = f"attachment; filename*=UTF-8''{quote(row.filename, safe='')}"
    headers = {"Content-Disposition": disposition, "ETag": f'"{row.sha256}"'}
    return Reply(200, None, headers, row.media_type, file=StoredFile(ctx.principal.tenant_id, blob_of(ctx, row)))


# --- deleting ---------------------------------------------------------------------------------------------------------


def delete(ctx: WriteContext, body: None) -> dict[str, Any]:
    row = get_row(ctx, ctx.path["id"])
    hide_memories(ctx, row)
    remove(ctx, row)
    adjust_count(ctx, row.collection_id, documents=-1)
    return {"id": row.id, "deleted": True}


def sweep_collection(ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str) -> None:
    """Subscriber: one step of removing a dropped collection's documents. A step as large as ours leaves no allowance for others.

    Their memories are members of the collection too, and go as such.
    """
    step = min(data.rows_left, DOCUMENTS_SWEPT_PER_STEP)
    if step <= 0:
        return
    members = ctx.index(DOCUMENT_FIELDS).of("collection", data.number)[:step]
    for row in ctx[DOCUMENTS].get_many([(ordinal,) for ordinal in members]):
        remove(ctx, row)
    data.erased("documents", len(members))
    if len(members) == step:
        data.rows_left = 0


# --- what nobody needs any more ---------------------------------------------------------------------------------------


def _look_for_orphans(ctx: WriteContext) -> None:
    """Now and then, have a job look for files that no document needs: of uploads whose end nobody learnt."""
    last = ctx[DOCUMENT_SWEEP].get()
    if last is None or int.from_bytes(last, "big") + BLOBS_ORPHANED_SECONDS * 1000 <= ctx.now:
        ctx[DOCUMENT_SWEEP].put((), ctx.now.to_bytes(8, "big"))
        ctx.enqueue("documents.orphans", {"unlink": []}, lane=lane_of(ctx, "files"))


def _load_sweep(ctx: ReadContext, payload: Mapping[str, Any]) -> tuple[BlobStore, str]:
    return blob_store(ctx.settings), ctx.principal.tenant_id


async def _unlink(loaded: tuple[BlobStore, str], payload: Mapping[str, Any], models: Any) -> None:
    """A name is never used twice, so a file that nobody needs is needed by nobody ever after."""
    blobs, owner = loaded
    for name in payload["files"]:
        await asyncio.to_thread(blobs.remove, owner, name)


def sweep(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `documents.sweep`: files that lost their last document, and in bounded steps what a deleted document left behind."""
    left = CLEANUP_ROWS_PER_STEP
    erased = {"files": len(payload["files"]), **payload["erased"]}
    if payload["ordinal"] is not None:
        for table in PARTS:
            for key in list(ctx[table].keys(payload["ordinal"], limit=left)):
                ctx[table].delete(*key)
                erased[table.name] = erased.get(table.name, 0) + 1
                left -= 1
            if left == 0:
                return Again({**payload, "files": [], "erased": erased})
    return {"erased": erased}


async def _find_old(loaded: tuple[BlobStore, str], payload: Mapping[str, Any], models: Any) -> list[str]:
    """Unlink what the step before was sure about; -> names that are old enough for their upload to be over."""
    blobs, owner = loaded
    for name in payload["unlink"]:
        await asyncio.to_thread(blobs.remove, owner, name)
    return [] if payload["unlink"] else await asyncio.to_thread(blobs.older, owner, BLOBS_ORPHANED_SECONDS, BLOBS_SWEPT_PER_STEP)


def sweep_orphans(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `documents.orphans`: of the old files, those whose name stands in no row."""
    if payload["unlink"]:
        return {"orphans": len(payload["unlink"])}
    kept = {name: ctx[DOCUMENT_BLOBS].get(content_key(ctx, name.partition("-")[0])) for name in ctx.prepared}
    needed = {name for name, row in kept.items() if row is not None and row.name == name}
    orphans = [name for name in ctx.prepared if name not in needed]
    return Again({"unlink": orphans}) if orphans else {"orphans": 0}


# --- privacy ----------------------------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all documents of the tenant, and their files: the account is closed by then, so nobody misses them if this runs again."""
    blob_store(ctx.settings).remove_owner(ctx.principal.tenant_id)
    return {table.name: ctx[table].delete_prefix() for table in (*TABLES, *DOCUMENT_FIELDS.tables)}


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any], int]]:
    """("document", record with its text and its chunks' places, ordinal) for each that can be read, oldest first.

    An import takes in the memories of its chunks, with the name of the document they came from, and not the document: its file is
    no part of an export.
    """
    readable = matching(ctx, DocumentQuery())
    if ctx.after is not None:
        readable.remove_range(0, ctx.after + 1)
    for ordinal in readable:
        row = ctx[DOCUMENTS].get(ordinal)
        chunks = [chunk_view(ctx, row, key[1], chunk) for key, chunk in ctx[DOCUMENT_CHUNKS].scan(ordinal)]
        yield "document", {**document_view(row), "text": text_of(ctx, row), "chunks": chunks}, ordinal


# --- checks -----------------------------------------------------------------------------------------------------------


def _by_ordinal(row: DocumentRow) -> bytes:
    return row.ordinal.to_bytes(4, "big")


def _unfinished(ctx: ReadContext) -> Iterator[tuple[int, str]]:
    waiting = ctx.index(DOCUMENT_FIELDS).any_of("status", UNFINISHED) & matching(ctx, DocumentQuery())
    return ((ordinal, f"document {ordinal}") for ordinal in waiting)


def _take_up(ctx: WriteContext, ordinals: list[int]) -> None:
    for row in ctx[DOCUMENTS].get_many([(ordinal,) for ordinal in ordinals]):
        metering.release(ctx, row.charge)
        put(ctx, row, status=PENDING, **_queued(ctx, row.ordinal))


CHECKS = (
    Derived(DOCUMENT_IDS, DOCUMENTS, lambda ctx, key, row: [((row.id,), _by_ordinal(row))]),
    Derived(DOCUMENT_DIGESTS, DOCUMENTS, lambda ctx, key, row: [((row.number, content_key(ctx, row.sha256)), _by_ordinal(row))]),
    Marks(DOCUMENT_FIELDS, DOCUMENTS, lambda ctx, row: marks(row)),
    Counter("documents", last_ordinal(DOCUMENTS)),
    Pursued("documents.process", DOCUMENTS, _unfinished, lambda payload: [payload["ordinal"]], _take_up),
)

# --- the plugin -------------------------------------------------------------------------------------------------------

_SPEC = "part 4, Documents; part 2, Document"
_CREATED = {
    **EXAMPLE, "status": "pending", "processing_status": "pending", "version": 1, "page_count": None, "chunk_count": 0, "result": None,
}  # fmt: skip
_UPLOADED = {"document": _CREATED, "job_id": "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j", "status_url": f"/v1/documents/{EXAMPLE_ID}"}

OPERATIONS = (
    Operation(
        name="documents.upload",
        method="POST",
        path="/v1/documents/upload",
        kind=Kind.WRITE,
        handler=upload,
        body=NewDocument,
        upload=Upload(lambda settings: settings.documents.max_upload_bytes, formats.media_type_of),
        response=Uploaded,
        statuses=(202, 200),
        scope="write",
        rate_of=lambda body: "media" if body.file.media_type in formats.MEDIA else "default",
        idempotency=Idempotency.CACHED,
        credits=UPLOAD_CREDITS,
        feature=lambda body: "media" if body.file.media_type in formats.SOUND else None,
        summary="Upload a document",
        description=(
            "PDF, DOCX, PPTX, XLSX, TXT, MD, HTML, CSV, JSON, EML, SRT, VTT, MP3, WAV, M4A, FLAC, OGG, MP4, WebM, MOV, PNG, JPEG, WebP, "
            "by content. 202: it is stored and will be read. 200: the collection has it already."
        ),
        spec=_SPEC,
        example={"title": "Annual report", "tags": "finance", "metadata": '{"year": 2025}'},
        example_reply=_UPLOADED,
    ),
    Operation(
        name="documents.list",
        method="GET",
        path="/v1/documents",
        kind=Kind.READ,
        handler=list_documents,
        query=DocumentQuery,
        response=Page[Document],
        summary="List documents",
        spec="part 4, Documents; rule P",
        example_reply={"items": [EXAMPLE], "next_cursor": None, "has_more": False, "total_count": 1},
    ),
    Operation(
        name="documents.get",
        method="GET",
        path="/v1/documents/{id}",
        kind=Kind.READ,
        handler=get,
        response=Document,
        summary="Get a document",
        spec=_SPEC,
        example_reply=EXAMPLE,
    ),
    Operation(
        name="documents.chunks",
        method="GET",
        path="/v1/documents/{id}/chunks",
        kind=Kind.READ,
        handler=list_chunks,
        query=PageQuery,
        response=Page[Chunk],
        summary="List the chunks of a document",
        description="In the order of the text.",
        spec="part 4, Documents; rule P",
        example_reply={"items": [EXAMPLE_CHUNK], "next_cursor": None, "has_more": False, "total_count": 1},
    ),
    Operation(
        name="documents.text",
        method="GET",
        path="/v1/documents/{id}/text",
        kind=Kind.READ,
        handler=get_text,
        response=DocumentText,
        produces="text/plain",
        summary="Get the extracted text of a document",
        description="The text that the offsets of chunks refer to, in UTF-8.",
        spec=_SPEC,
        example_reply="Results\n\nRevenue grew by a tenth.",
    ),
    Operation(
        name="documents.content",
        method="GET",
        path="/v1/documents/{id}/content",
        kind=Kind.READ,
        handler=get_content,
        response=DocumentContent,
        produces="*/*",
        summary="Get the file of a document",
        description="Byte for byte as it was uploaded.",
        spec=_SPEC,
        example_reply="%PDF-1.7 …",
    ),
    Operation(
        name="documents.delete",
        method="DELETE",
        path="/v1/documents/{id}",
        kind=Kind.WRITE,
        handler=delete,
        response=DeletedDocument,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Delete a document and the memories of its chunks",
        description="Neither can be read or found from now on; files and derived data are swept in the background. Again is 404.",
        spec=_SPEC,
        example_reply={"id": EXAMPLE_ID, "deleted": True},
    ),
)

plugin = Plugin(
    name="documents",
    requires=("collections", "memories"),
    operations=OPERATIONS,
    tables=TABLES,
    indexes=(DOCUMENT_FIELDS,),
    events=EVENTS,
    subscribe={COLLECTION_CLEANUP.kind: sweep_collection},
    jobs=(
        PROCESS_JOB,
        Job("documents.sweep", sweep, load=_load_sweep, prepare=_unlink),
        Job("documents.orphans", sweep_orphans, load=_load_sweep, prepare=_find_old),
    ),
    erase=erase,
    export=export,
    swept=PARTS,
    checks=CHECKS,
)
