"""Documents as they are stored: the rows, and every change they go through.

Owns what "a document exists" means. A document is named by an ordinal (uint32, per tenant, in order
of arrival). Its file is a blob, kept once for all documents of the tenant with the same content;
its extracted text is kept in pieces, its chunks as ranges of it; each indexed chunk is a memory
(plugins/memories/rows.py), whose content is the chunk's text at the time.

Invariants
- a row of `document_blobs` counts the documents that need its file, and is gone with the last of
  them; the file follows by a job. A document in `document_files_gone` has failed and needs none;
- in one collection there is at most one document of the same content: `document_digests` names it;
- a document is readable when its row is there and its collection's number is not dropped;
- a chunk has a memory exactly when its index is below the row's `indexed`;
- `document_bytes` is the sum of the files in `document_blobs` and of `document_text_bytes`.

    documents         (ordinal,)                    -> DocumentRow
    document_ids      (document id,)                -> ordinal, 4 bytes big endian
    document_digests  (collection number, content)  -> ordinal, 4 bytes big endian
    document_blobs    (content,)                    -> BlobRow
    document_text     (ordinal, piece)              -> TextRow
    document_text_bytes  (ordinal,)                 -> of its text, 8 bytes big endian
    document_chunks   (ordinal, index)              -> ChunkRow
    document_cues     (ordinal, number)             -> CueRow
    document_bytes    ()                            -> of files and texts, 8 bytes big endian
    document_sweep    ()                            -> Unix milliseconds, 8 bytes big endian
    document_files_gone  (ordinal,)                 -> Unix milliseconds, 8 bytes big endian
    document_charsets (ordinal,)                    -> what is said of a text, by Python's name
    document_fields   bitmaps of ordinals: live, collection, status, digest

`content` is the keyed digest of the file's SHA-256; a piece has TEXT_PIECE_CHARS characters of the
extracted text, which `document_text_bytes` measures in UTF-8 (a document that was read before there
was this table has no row); `document_cues` has what a model has read so far and is empty once all
of it is read; `document_sweep` says when files that nobody needs were last looked for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec
from pyroaring import BitMap

from plugins.collections import (
    adjust_count,
    dropped_numbers,
    is_dropped,
    member_totals,
    require_collection,
)
from plugins.documents.chunking import TextChunk
from plugins.documents.limits import (
    DOCUMENTS_BESIDE_MAX,
    DOCUMENTS_KEPT,
    FILE_BYTES_KEPT,
    TEXT_PIECE_CHARS,
)
from plugins.documents.models import DocumentChanged
from plugins.documents.parsing import formats
from plugins.documents.parsing.encodings import declared
from runtime import ids
from runtime.api import metering
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Event
from runtime.api.tiers import check_room, records_limit
from runtime.errors import NotFound, PayloadTooLarge
from runtime.timestamps import iso
from storage.blobs import Blob
from storage.indexes import BitmapIndex
from storage.store import Table

PENDING, PROCESSING, COMPLETED, FAILED = "pending", "processing", "completed", "failed"
UNFINISHED = (PENDING, PROCESSING)
FRESH = {
    "reason": "",
    "message": "",
    "kind": "",
    "language": None,
    "page_count": None,
    "duration_seconds": None,
}
_LANGUAGE = re.compile(r"\.[a-z]{2,3}(?:-[a-z]{2,4})?$")
UPLOAD_CREDITS = 5  # and one for each chunk

# --- rows -----------------------------------------------------------------------------------------


class DocumentRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in Unix milliseconds. number: of its collection. indexed: chunks that have a memory.
    title_given: by the caller.

    charge: operation id under which the credits of reading it are set aside
    (runtime/api/metering.py).
    """

    id: str
    ordinal: int
    number: int
    collection_id: str
    filename: str
    media_type: str
    size: int
    sha256: str
    created_at: int
    updated_at: int
    job_id: str = ""
    charge: bytes = b""
    title: str | None = None
    title_given: bool = False
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    status: str = PENDING
    version: int = 1
    reason: str = ""
    message: str = ""
    page_count: int | None = None
    chunk_count: int = 0
    indexed: int = 0
    duration_seconds: float | None = None
    kind: str = ""
    language: str | None = None


class BlobRow(msgspec.Struct, frozen=True):
    """The file of one content, and how many documents need it."""

    name: str
    key: bytes
    size: int
    documents: int


class TextRow(msgspec.Struct, frozen=True):
    text: str


class ChunkRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Characters start to end of the extracted text; memory is its id, "" while there is none, and
    memory_ordinal its number.
    """

    start: int
    end: int
    page: int | None = None
    heading: str | None = None
    begins: float | None = None
    ends: float | None = None
    memory: str = ""
    memory_ordinal: int = 0


class CueRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something a model has read: said between two moments, or standing on a page."""

    text: str
    page: int | None = None
    begins: float | None = None
    ends: float | None = None


DOCUMENTS: Table[DocumentRow] = Table(
    "documents", key=("ordinal",), row=DocumentRow, doc="documents in order of arrival"
)
DOCUMENT_IDS: Table[bytes] = Table(
    "document_ids",
    key=("document_id",),
    row=bytes,
    doc="document id to ordinal, 4 bytes big endian",
)
DOCUMENT_DIGESTS: Table[bytes] = Table(
    "document_digests",
    key=("number", "content"),
    row=bytes,
    doc="content in a collection to ordinal, 4 bytes big endian",
)
DOCUMENT_BLOBS: Table[BlobRow] = Table(
    "document_blobs", key=("content",), row=BlobRow, doc="files, and how many documents need them"
)
DOCUMENT_BYTES: Table[bytes] = Table(
    "document_bytes", key=(), row=bytes, doc="bytes of all files and texts, 8 bytes big endian"
)
DOCUMENT_TEXT: Table[TextRow] = Table(
    "document_text", key=("ordinal", "piece"), row=TextRow, doc="extracted text in pieces"
)
DOCUMENT_TEXT_BYTES: Table[bytes] = Table(
    "document_text_bytes",
    key=("ordinal",),
    row=bytes,
    doc="bytes of the extracted text of a document, 8 bytes big endian",
)
DOCUMENT_CHUNKS: Table[ChunkRow] = Table(
    "document_chunks", key=("ordinal", "index"), row=ChunkRow, doc="chunks of documents"
)
DOCUMENT_CUES: Table[CueRow] = Table(
    "document_cues", key=("ordinal", "number"), row=CueRow, doc="what a model has read so far"
)
DOCUMENT_SWEEP: Table[bytes] = Table(
    "document_sweep",
    key=(),
    row=bytes,
    doc="when orphaned files were last looked for, 8 bytes big endian",
)
DOCUMENT_FILES_GONE: Table[bytes] = Table(
    "document_files_gone",
    key=("ordinal",),
    row=bytes,
    doc="failed documents whose file was removed: when, 8 bytes big endian",
)
DOCUMENT_CHARSETS: Table[bytes] = Table(
    "document_charsets",
    key=("ordinal",),
    row=bytes,
    doc="the encoding that is said of a document's text, unless that is UTF-8",
)
DOCUMENT_FIELDS = BitmapIndex(
    "document_fields", fields=("live", "collection", "status", "digest", "stem"), version=3
)  # 3: stem

TABLES: tuple[Table, ...] = (
    DOCUMENTS, DOCUMENT_IDS, DOCUMENT_DIGESTS, DOCUMENT_BLOBS, DOCUMENT_TEXT, DOCUMENT_CHUNKS,
    DOCUMENT_CUES, DOCUMENT_SWEEP, DOCUMENT_FILES_GONE, DOCUMENT_BYTES, DOCUMENT_TEXT_BYTES,
    DOCUMENT_CHARSETS,
)  # fmt: skip
PARTS: tuple[Table, ...] = (
    DOCUMENT_TEXT,
    DOCUMENT_CHUNKS,
    DOCUMENT_CUES,
)  # what a document leaves behind, to be swept

DOCUMENT_CREATED = Event("document.created", DocumentChanged)
DOCUMENT_PROCESSED = Event("document.processed", DocumentChanged)
DOCUMENT_FAILED = Event("document.failed", DocumentChanged)
DOCUMENT_DELETED = Event("document.deleted", DocumentChanged)
EVENTS = (DOCUMENT_CREATED, DOCUMENT_PROCESSED, DOCUMENT_FAILED, DOCUMENT_DELETED)

# --- reading --------------------------------------------------------------------------------------


def find_row(ctx: ReadContext, document_id: str) -> DocumentRow | None:
    """The document with this id, when it can be read now."""
    ordinal = ctx[DOCUMENT_IDS].get(document_id)
    row = None if ordinal is None else ctx[DOCUMENTS].get(int.from_bytes(ordinal, "big"))
    return None if row is None or is_dropped(ctx, row.number) else row


def get_row(ctx: ReadContext, document_id: str) -> DocumentRow:
    """The document with this id. NotFound when there is none (any more), PermissionDenied for
    another account's.
    """
    missing = NotFound("There is no document with this id.")
    row = find_row(ctx, ctx.check_id("doc", document_id, missing))
    if row is None:
        raise missing
    return row


def content_key(ctx: ReadContext, sha256: str) -> bytes:
    """What stands for a content in keys, which are not sealed: a known file cannot be looked up by
    its digest.
    """
    return ctx.digest("document", sha256)


def concurrency_group_of(ctx: ReadContext, work: str) -> str:
    """The concurrency group of one kind of work on one account's documents, so that many files hold
    up nobody else's.
    """
    return f"{work}/{ctx.principal.tenant_id}"


def find_twin(ctx: ReadContext, number: int, sha256: str) -> DocumentRow | None:
    """The document of this content in a collection."""
    ordinal = ctx[DOCUMENT_DIGESTS].get(number, content_key(ctx, sha256))
    return None if ordinal is None else ctx[DOCUMENTS].get(int.from_bytes(ordinal, "big"))


def stem_of(row: DocumentRow) -> str:
    """What a recording and its subtitles are both called: the name without its extension, and of
    subtitles without their language.
    """
    stem = PurePosixPath(row.filename).stem.casefold()
    return _LANGUAGE.sub("", stem) or stem if row.media_type in formats.SUBTITLES else stem


def beside(ctx: ReadContext, row: DocumentRow, kinds: frozenset[str]) -> DocumentRow | None:
    """The newest document of one of these media types with the same name in the same collection."""
    fields = ctx.index(DOCUMENT_FIELDS)
    found = fields.of("collection", row.number) & fields.of("stem", stem_of(row))
    rows = ctx[DOCUMENTS].get_many(
        [(ordinal,) for ordinal in reversed(found[-DOCUMENTS_BESIDE_MAX:])]
    )
    return next(
        (
            other
            for other in rows
            if other is not None and other.id != row.id and other.media_type in kinds
        ),
        None,
    )


def matching(ctx: ReadContext, asked: Any) -> BitMap:
    """Ordinals of the readable documents that pass the filters of a DocumentQuery."""
    fields = ctx.index(DOCUMENT_FIELDS)
    dropped = (fields.of("collection", number) for number in sorted(dropped_numbers(ctx)))
    found = fields.of("live", 1) - BitMap.union(BitMap(), *dropped)
    if asked.collection_id is not None:
        found &= fields.of("collection", require_collection(ctx, asked.collection_id).number)
    if asked.status is not None:
        found &= fields.of("status", asked.status)
    if asked.sha256 is not None:
        found &= fields.of("digest", asked.sha256)
    return found


def file_gone_at(ctx: ReadContext, row: DocumentRow) -> int | None:
    """The time at which the file of a failed document was removed; None where it is kept."""
    at = ctx[DOCUMENT_FILES_GONE].get(row.ordinal) if row.status == FAILED else None
    return None if at is None else int.from_bytes(at, "big")


def blob_of(ctx: ReadContext, row: DocumentRow) -> Blob:
    """Where the document's file is, which is not gone."""
    stored = ctx[DOCUMENT_BLOBS].row(content_key(ctx, row.sha256))
    return Blob(stored.name, row.sha256, stored.size, stored.key)


def text_of(ctx: ReadContext, row: DocumentRow) -> str:
    """The extracted text; empty while there is none."""
    return "".join(piece.text for _, piece in ctx[DOCUMENT_TEXT].scan(row.ordinal))


def slice_of(ctx: ReadContext, row: DocumentRow, start: int, end: int) -> str:
    """Characters start to end of the extracted text, without reading the rest of it."""
    first, last = start // TEXT_PIECE_CHARS, max(start, end - 1) // TEXT_PIECE_CHARS
    text = "".join(
        ctx[DOCUMENT_TEXT].row(row.ordinal, piece).text for piece in range(first, last + 1)
    )
    return text[start - first * TEXT_PIECE_CHARS : end - first * TEXT_PIECE_CHARS]


def chunk_id(ctx: ReadContext, row: DocumentRow, index: int) -> str:
    """Make the chunk's id, always the same for the same document and index."""
    random = hashlib.blake2b(
        f"{row.id}/{index}".encode(), key=ctx.scope.key, digest_size=10
    ).digest()
    return ids.make_id("chk", row.created_at, ctx.principal.tag, random)


def document_view(ctx: ReadContext, row: DocumentRow) -> dict[str, Any]:
    """Turn a document's row into the API's Document."""
    gone_at = file_gone_at(ctx, row)
    return {
        "id": row.id,
        "filename": row.filename,
        "title": row.title,
        "collection_id": row.collection_id,
        "media_type": row.media_type,
        "size_bytes": row.size,
        "sha256": row.sha256,
        "status": row.status,
        "processing_status": row.status,
        "error": {"reason": row.reason, "message": row.message} if row.reason else None,
        "page_count": row.page_count,
        "chunk_count": row.chunk_count,
        "duration_seconds": row.duration_seconds,
        "result": {"kind": row.kind, "language": row.language} if row.status == COMPLETED else None,
        "tags": row.tags,
        "metadata": row.metadata,
        "version": row.version,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "file_removed_at": None if gone_at is None else iso(gone_at),
    }


# --- changing -------------------------------------------------------------------------------------


def add(ctx: WriteContext, row: DocumentRow, blob: Blob) -> str | None:
    """Store a new document; -> the name of the file that was brought, where the same content is
    kept already and it is not needed. Raises PermissionDenied, PayloadTooLarge where the tier has
    no room.
    """
    check_room(ctx.settings, ctx.principal.tier, DOCUMENTS_KEPT, member_totals(ctx)[1])
    unneeded = _need_file(ctx, row, blob)
    ordinal = row.ordinal.to_bytes(4, "big")
    ctx[DOCUMENT_IDS].put((row.id,), ordinal)
    ctx[DOCUMENT_DIGESTS].put((row.number, content_key(ctx, row.sha256)), ordinal)
    fields = ctx.index(DOCUMENT_FIELDS)
    for name, value in marks(row):
        fields.add(row.ordinal, name, value)
    ctx[DOCUMENTS].put((row.ordinal,), row)
    adjust_count(ctx, row.collection_id, documents=1)
    ctx.emit(DOCUMENT_CREATED, changed(row), row.id)
    return unneeded


def put(ctx: WriteContext, row: DocumentRow, **changes: Any) -> DocumentRow:
    """Change fields of a document that are not shown as a new version."""
    after = msgspec.structs.replace(row, **changes)
    before, now = set(marks(row)), set(marks(after))
    fields = ctx.index(DOCUMENT_FIELDS)
    for name, value in before - now:
        fields.remove(row.ordinal, name, value)
    for name, value in now - before:
        fields.add(row.ordinal, name, value)
    ctx[DOCUMENTS].put((row.ordinal,), after)
    return after


def advance(ctx: WriteContext, row: DocumentRow, **changes: Any) -> DocumentRow:
    """A new version of the document."""
    return put(ctx, row, version=row.version + 1, updated_at=ctx.now, **changes)


def put_text(ctx: WriteContext, row: DocumentRow, text: str, chunks: Sequence[TextChunk]) -> None:
    """Store the extracted text and the ranges of its chunks, in place of what an earlier attempt
    stored. Raises PayloadTooLarge, and stores nothing, where the tier has no room for the text.
    """
    _count_text(ctx, row, len(text.encode()))
    for table in PARTS:
        ctx[table].delete_prefix(row.ordinal)
    for piece, start in enumerate(range(0, len(text), TEXT_PIECE_CHARS)):
        ctx[DOCUMENT_TEXT].put(
            (row.ordinal, piece), TextRow(text[start : start + TEXT_PIECE_CHARS])
        )
    for index, chunk in enumerate(chunks):
        stored = ChunkRow(
            chunk.start, chunk.end, chunk.page, chunk.heading, chunk.begins, chunk.ends
        )
        ctx[DOCUMENT_CHUNKS].put((row.ordinal, index), stored)


def _count_text(ctx: WriteContext, row: DocumentRow, size: int) -> None:
    """Have the document's text count so many bytes of what the tier has room for."""
    before = int.from_bytes(ctx[DOCUMENT_TEXT_BYTES].get(row.ordinal) or b"", "big")
    if size == before:
        return
    if size > before:
        _check_room(ctx, size - before, "its text")
    _count_bytes(ctx, size - before)
    if size:
        ctx[DOCUMENT_TEXT_BYTES].put((row.ordinal,), size.to_bytes(8, "big"))
    else:
        ctx[DOCUMENT_TEXT_BYTES].delete(row.ordinal)


def remove(ctx: WriteContext, row: DocumentRow) -> None:
    """Take a document out of every read, and leave the rest, its file included, to a job. Its
    memories are the caller's business.
    """
    fields = ctx.index(DOCUMENT_FIELDS)
    for name, value in marks(row):
        fields.remove(row.ordinal, name, value)
    ctx[DOCUMENTS].delete(row.ordinal)
    ctx[DOCUMENT_IDS].delete(row.id)
    ctx[DOCUMENT_CHARSETS].delete(row.ordinal)
    ctx[DOCUMENT_DIGESTS].delete(row.number, content_key(ctx, row.sha256))
    metering.release(ctx, row.charge)
    _count_text(ctx, row, 0)
    _sweep(ctx, row.ordinal, _leave_file(ctx, row))
    gone = {**changed(msgspec.structs.replace(row, version=row.version + 1)), "status": "deleted"}
    ctx.emit(DOCUMENT_DELETED, gone, row.id)


def say_charset(ctx: WriteContext, ordinal: int, media_type: str, charset: str | None) -> bool:
    """Note the encoding that is said of a document's text; -> whether something else was said
    before. Of UTF-8 a text is known by itself, so it is as if nothing were said.
    """
    named = declared(charset) if media_type in formats.DECLARABLE else None
    before = ctx[DOCUMENT_CHARSETS].get(ordinal) or b""
    said = before if named is None else b"" if named == "utf-8" else named.encode()
    if said == before:
        return False
    charsets = ctx[DOCUMENT_CHARSETS]
    charsets.put((ordinal,), said) if said else charsets.delete(ordinal)
    return True


def remove_file_of(ctx: WriteContext, row: DocumentRow) -> None:
    """Take its file from a document that failed, and have a job remove it if nothing else needs it.
    The document stays.
    """
    for name in _leave_file(ctx, row):
        remove_file(ctx, name)
    ctx[DOCUMENT_FILES_GONE].put((row.ordinal,), ctx.now.to_bytes(8, "big"))


def bring_file(ctx: WriteContext, row: DocumentRow, blob: Blob) -> str | None:
    """The content of a document was uploaded once more; -> the name of the file that was brought,
    where it is kept already and that one is not needed.
    """
    return _need_file(ctx, row, blob) if ctx[DOCUMENT_FILES_GONE].delete(row.ordinal) else blob.name


def _need_file(ctx: WriteContext, row: DocumentRow, blob: Blob) -> str | None:
    """Count the document among those that need the file of its content, which is this one unless
    one is kept; -> the name of this one where it is not needed. Raises PayloadTooLarge.
    """
    content = content_key(ctx, row.sha256)
    kept = ctx[DOCUMENT_BLOBS].get(content)
    if kept is None:
        _check_room(ctx, blob.size, "this file")
        _count_bytes(ctx, blob.size)
    stored = BlobRow(blob.name, blob.key, blob.size, 0) if kept is None else kept
    ctx[DOCUMENT_BLOBS].put(
        (content,), msgspec.structs.replace(stored, documents=stored.documents + 1)
    )
    return None if kept is None else blob.name


def stored_bytes(ctx: ReadContext) -> int:
    """Bytes of all files and texts together; of an account whose files were not counted yet, added
    up.
    """
    counted = ctx[DOCUMENT_BYTES].get()
    return true_bytes(ctx) if counted is None else int.from_bytes(counted, "big")


def true_bytes(ctx: ReadContext) -> int:
    """The same, from the rows that tell."""
    texts = (int.from_bytes(size, "big") for _, size in ctx[DOCUMENT_TEXT_BYTES].scan())
    return sum(blob.size for _, blob in ctx[DOCUMENT_BLOBS].scan()) + sum(texts)


def _count_bytes(ctx: WriteContext, more: int) -> None:
    """Keep the sum; before the rows that may be added up for it change."""
    ctx[DOCUMENT_BYTES].put((), (stored_bytes(ctx) + more).to_bytes(8, "big"))


def _check_room(ctx: WriteContext, size: int, what: str) -> None:
    """Raise PayloadTooLarge where the tier has no room for so many more bytes. what: they are."""
    settings, tier = ctx.settings, ctx.principal.tier
    limit = records_limit(settings, tier, FILE_BYTES_KEPT)
    if limit is not None and limit < stored_bytes(ctx) + size:
        name = settings.tiers.terms(tier)["display_name"]
        raise PayloadTooLarge(
            f"The tier {name} keeps {limit:,} bytes of files and of "
            f"what is read out of them, and {what} is too large for what is left. Delete "
            "documents, or upgrade.",
            code="document_too_large",
        )


def _leave_file(ctx: WriteContext, row: DocumentRow) -> list[str]:
    """Count the document no more among those that need its file; -> names of files that none needs
    now.
    """
    if ctx[DOCUMENT_FILES_GONE].delete(row.ordinal):
        return []
    content = content_key(ctx, row.sha256)
    blob = ctx[DOCUMENT_BLOBS].row(content)
    if blob.documents == 1:
        _count_bytes(ctx, -blob.size)
        ctx[DOCUMENT_BLOBS].delete(content)
        return [blob.name]
    ctx[DOCUMENT_BLOBS].put((content,), msgspec.structs.replace(blob, documents=blob.documents - 1))
    return []


def remove_file(ctx: WriteContext, name: str) -> None:
    """Have a job remove a file that no document needs."""
    _sweep(ctx, None, [name])


def _sweep(ctx: WriteContext, ordinal: int | None, files: list[str]) -> None:
    ctx.enqueue(
        "documents.sweep",
        {"ordinal": ordinal, "files": files, "erased": {}},
        group=concurrency_group_of(ctx, "files"),
    )


def changed(row: DocumentRow) -> dict[str, Any]:
    """The data of a document's event."""
    data = {
        "id": row.id,
        "version": row.version,
        "collection_id": row.collection_id,
        "filename": row.filename,
        "status": row.status,
        "chunk_count": row.chunk_count,
    }
    return data | ({"error": {"reason": row.reason, "message": row.message}} if row.reason else {})


def marks(row: DocumentRow) -> tuple[tuple[str, int | str], ...]:
    """Every (field, value) whose bitmap holds this document."""
    return (
        ("live", 1),
        ("collection", row.number),
        ("status", row.status),
        ("digest", row.sha256),
        ("stem", stem_of(row)),
    )
