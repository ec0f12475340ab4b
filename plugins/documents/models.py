"""The document endpoints' requests and responses: field by field what may come in and what goes
out.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, RootModel, WithJsonSchema
from pydantic_core import PydanticCustomError

from plugins.collections import METADATA_BYTES_MAX
from plugins.memories import TITLE_CHARS_MAX, Tags
from runtime import limits
from runtime.api.operation import Body, UploadedFile, View
from runtime.api.pagination import PageQuery

Status = Literal["pending", "processing", "completed", "failed"]
CollectionId = Annotated[str, Field(min_length=1, max_length=limits.ID_CHARS_MAX)]
# How a form shows a file in the description; in here it is what the gateway made of it.
FormFile = Annotated[
    UploadedFile, WithJsonSchema({"type": "string", "format": "binary", "title": "File"})
]


def _split(value: Any) -> Any:
    """What stands between commas, each text once."""
    if not isinstance(value, str):
        return value
    return list(dict.fromkeys(tag.strip() for tag in value.split(",") if tag.strip()))


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value) if value.strip() else {}
    except orjson.JSONDecodeError:
        raise PydanticCustomError("json_invalid", "must be a JSON object") from None


def _small(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    if metadata is not None and len(orjson.dumps(metadata)) > METADATA_BYTES_MAX:
        raise PydanticCustomError(
            "metadata_too_large",
            "must be at most {bytes} bytes of JSON",
            {"bytes": METADATA_BYTES_MAX},
        )
    return metadata


# As of a memory: a document's passages are memories with its tags. None: not sent.
FormTags = Annotated[
    Tags | None,
    BeforeValidator(_split),
    WithJsonSchema({"type": "string"}, mode="validation"),
]
Metadata = Annotated[
    dict[str, Any] | None,
    BeforeValidator(_decoded),
    AfterValidator(_small),
    WithJsonSchema({"type": "string"}, mode="validation"),
]


class NewDocument(Body):
    """The fields of the form."""

    joined_fields: ClassVar[tuple[str, ...]] = ("tags",)

    file: FormFile = Field(description="The file.")
    collection_id: CollectionId | None = Field(
        default=None, description="The collection it belongs to; the default one when absent."
    )
    title: str | None = Field(
        default=None,
        max_length=TITLE_CHARS_MAX,
        description="A name; else the title that the file gives itself.",
    )
    tags: FormTags = Field(
        default=None, description="Labels, with commas between them, at most 32."
    )
    metadata: Metadata = Field(default=None, description="Free JSON object, at most 16 KiB.")


class DocumentError(View):
    reason: str = Field(
        description=(
            "A word for programs, such as `encrypted`, `damaged`, `no_text`, "
            "`transcription_unavailable`."
        )
    )
    message: str = Field(description="A sentence for people.")


class DocumentResult(View):
    kind: Literal["text", "transcript", "no_speech_detected"] = Field(
        description="What processing made of it."
    )
    language: str | None = Field(description="The language of a transcript, where it is known.")


class Document(View):
    id: str = Field(description="The document's id.")
    filename: str = Field(description="The name it was sent under.")
    title: str | None = Field(description="The title given, or the one the file gives itself.")
    collection_id: str = Field(description="The collection it belongs to.")
    media_type: str = Field(description="What it is, by its content.")
    size_bytes: int = Field(description="Length of the file.")
    sha256: str = Field(description="Hex digest of the file.")
    status: Status = Field(
        description="`completed`: every chunk of it is searchable, or there was nothing to be said."
    )
    processing_status: Status = Field(description="The same.")
    error: DocumentError | None = Field(description="Why it failed.")
    page_count: int | None = Field(
        description="Pages, slides or sheets, where the format has them."
    )
    chunk_count: int = Field(description="Chunks it was cut into.")
    duration_seconds: float | None = Field(description="Length of a recording or of subtitles.")
    result: DocumentResult | None = Field(
        description="What came of it; null until it is completed."
    )
    tags: list[str] = Field(description="Labels.")
    metadata: dict[str, Any] = Field(description="Free JSON object.")
    version: int = Field(description="Counts the changes of its state, from 1.")
    created_at: str = Field(description="When it was uploaded (ISO 8601).")
    updated_at: str = Field(description="When its state last changed (ISO 8601).")
    file_removed_at: str | None = Field(
        description=(
            "When its file was removed, because it could not be read (ISO 8601); null: it is kept."
        )
    )


class Uploaded(View):
    document: Document = Field(description="The document.")
    job_id: str = Field(description="The job that processes it.")
    status_url: str = Field(description="Where to look how far it is: the document itself.")


class Chunk(View):
    id: str = Field(description="The chunk's id; the same for the same document and index.")
    document_id: str = Field(description="The document it is of.")
    index: int = Field(description="Its place in the document, from 0.")
    content: str = Field(description="Its text: characters `start` to `end` of the extracted text.")
    start: int = Field(
        description="Its first character in the extracted text, counted in Unicode code points."
    )
    end: int = Field(description="The character after its last.")
    page: int | None = Field(
        description="The page, slide or sheet it is on, from 1; a chunk never spans two."
    )
    heading: str | None = Field(description="The heading it stands under.")
    start_seconds: float | None = Field(description="When it begins to be said.")
    end_seconds: float | None = Field(description="When it ends.")
    memory_id: str | None = Field(
        description="The memory that holds it; null until it is indexed, and once that was deleted."
    )


class DeletedDocument(View):
    id: str = Field(description="The document's id.")
    deleted: Literal[True] = Field(description="It and its chunks can no longer be read or found.")


class DocumentText(RootModel[str]):
    """The extracted text, in UTF-8."""


class DocumentContent(RootModel[str]):
    """The file as it was uploaded."""

    model_config = {"json_schema_extra": {"format": "binary"}}


class DocumentQuery(PageQuery):
    collection_id: CollectionId | None = Field(
        default=None, description="Only documents of this collection."
    )
    status: Status | None = Field(default=None, description="Only documents in this state.")
    sha256: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{64}$", description="Only documents with this content."
    )


class DocumentChanged(View):
    """What the events document.* say."""

    id: str = Field(description="The document's id.")
    version: int = Field(description="Its version after the change.")
    collection_id: str = Field(description="The collection it belongs to.")
    filename: str = Field(description="The name it was sent under.")
    status: str = Field(description="Its state; `deleted` when it was deleted.")
    chunk_count: int = Field(description="Chunks it was cut into.")
    error: DocumentError | None = Field(default=None, description="Why it failed.")


EXAMPLE_ID = "doc_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
EXAMPLE: dict[str, Any] = {
    "id": EXAMPLE_ID,
    "filename": "report.pdf",
    "title": "Annual report",
    "collection_id": "col_06a1kz0a1g3q5b7m9d1s3u5w7y9z2b4d",
    "media_type": "application/pdf",
    "size_bytes": 48_213,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "status": "completed",
    "processing_status": "completed",
    "error": None,
    "page_count": 12,
    "chunk_count": 31,
    "duration_seconds": None,
    "result": {"kind": "text", "language": None},
    "tags": ["finance"],
    "metadata": {"year": 2025},
    "version": 2,
    "created_at": "2026-05-08T13:56:00.000Z",
    "updated_at": "2026-05-08T13:56:04.000Z",
    "file_removed_at": None,
}
EXAMPLE_CHUNK: dict[str, Any] = {
    "id": "chk_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
    "document_id": EXAMPLE_ID,
    "index": 4,
    "content": "Revenue grew by a tenth.",
    "start": 2_910,
    "end": 2_934,
    "page": 3,
    "heading": "Results",
    "start_seconds": None,
    "end_seconds": None,
    "memory_id": "mem_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
}
