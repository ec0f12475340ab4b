"""Corrections: what a person put right, kept as a memory that takes the place of the wrong one.

A correction is a memory (source_type "correction") and a small record beside it. The memory holds
the corrected content, so searches find it like any other; the memory it corrects is superseded in
the same transaction, so searches leave that one out. Deleting the correction deletes its memory and
restores the other one.

The record has the memory's ordinal, and a correction can be read exactly when its memory can: a
dropped collection, an expiry or a deletion of the memory takes the correction along. What is told
of the content comes from the memories themselves and is stored once.

    corrections        (memory ordinal,)  -> CorrectionRow
    correction_ids     (correction id,)   -> ordinal, 4 bytes big endian
    correction_memories  (memory id,)    -> the same ordinal
    correction_fields  bitmaps of ordinals: type

Choices:
- Collection and scopes come from the corrected memory unless the request names others; without one,
  from the request or the default.
- A memory that was superseded already is 409: correct the one that took its place.
- Whatever takes the memory of a correction, itself deleted, expired or gone with its collection,
  takes the correction with it, and what it had superseded stands again.
- A correction that goes and was itself corrected hands what it had superseded on to the newer one.
- A memory that is an agent's file is 409: its path would be without a file.
- `GET /v1/corrections/relevant` leaves out what is not near to the query; when the embedder is down
  it goes by words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from pydantic import AfterValidator, Field
from pyroaring import BitMap

from plugins.collections import CollectionId, require_collection
from plugins.learning.embedding import Embedded, embedded
from plugins.learning.limits import QUERY_STRING_CHARS_MAX, SIMILAR_ITEMS_DEFAULT, SIMILAR_ITEMS_MAX
from plugins.memories import (
    CONTENT_CHARS_MAX,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    Content,
    Draft,
    Indexed,
    MemoryId,
    MemoryRow,
    Metadata,
    ScopeName,
    delete_memories,
    find_row,
    find_rows_at,
    get_row,
    index_in_time,
    memory_reply,
    readable,
    restore,
    rows_at,
    store_memories,
    supersede,
    wait_seconds,
)
from plugins.memory_tools import FILE
from plugins.search import SearchSettings
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import (
    Body,
    Call,
    Event,
    Idempotency,
    Query,
    Read,
    Reply,
    View,
    Write,
    not_blank,
)
from runtime.api.pagination import Page, PageQuery, envelope, example_page, newest_first
from runtime.errors import Conflict, NotFound
from runtime.inference import Models
from runtime.timestamps import iso
from storage.indexes import BitmapIndex
from storage.store import Key, Table
from storage.text import query_terms

SOURCE_TYPE = "correction"
REASON = "corrected"
# of what is corrected, since a request cannot name them
_KEPT = ("app_id", "run_id", "session_id", "tags")
Type = Literal["preference", "factual", "procedural"]

# --- requests and responses -----------------------------------------------------------------------


class NewCorrection(Body):
    corrected_content: Content = Field(description="What is right, 1 to 100,000 characters.")
    correction_type: Type = Field(description="What kind of thing was wrong.")
    original_content: str | None = Field(
        default=None,
        max_length=CONTENT_CHARS_MAX,
        description="What was wrong; the memory's text when absent.",
    )
    context: str | None = Field(
        default=None, max_length=CONTENT_CHARS_MAX, description="Where it came up."
    )
    memory_id: MemoryId | None = Field(
        default=None, description="The memory that is wrong; the correction supersedes it."
    )
    collection_id: CollectionId | None = Field(
        default=None, description="Where the correction goes."
    )
    user_id: ScopeName | None = Field(default=None, description="The caller's end user.")
    agent_id: ScopeName | None = Field(default=None, description="The agent that was corrected.")
    confidence: Annotated[float, Field(strict=True, ge=0, le=1)] = Field(
        default=1.0, description="How sure the correction is."
    )
    metadata: Metadata = Field(default_factory=dict)


class Correction(View):
    id: str = Field(description="The correction's id.")
    memory_id: str = Field(description="The memory that holds the corrected content.")
    superseded_memory_id: str | None = Field(description="The memory it took the place of.")
    corrected_content: str
    correction_type: Type
    original_content: str | None
    context: str | None
    collection_id: str
    user_id: str | None
    agent_id: str | None
    confidence: float
    metadata: dict[str, Any]
    created_at: str
    searchable: bool
    processing_status: Literal["processing", "completed", "failed"]
    status_url: str
    outbox_event_id: str


class DeletedCorrection(View):
    id: str = Field(description="The correction's id.")
    deleted: Literal[True] = Field(description="It and its memory can no longer be read or found.")


class HandedOn(View):
    id: str = Field(description="What a correction had superseded, by now by what is none.")


HANDED_ON = Event("internal.handed_on", HandedOn)


class RelevantCorrection(Correction):
    score: float = Field(description="How near it is to the query, 0 to 1.")


class RelevantCorrections(View):
    items: list[RelevantCorrection] = Field(description="Nearest first.")
    total_count: int = Field(description="How many are near enough.")


class CorrectionQuery(PageQuery):
    correction_type: Type | None = Field(default=None, description="Only this type.")
    collection_id: CollectionId | None = Field(default=None, description="Only this collection.")
    user_id: ScopeName | None = Field(default=None, description="Only this end user.")
    agent_id: ScopeName | None = Field(default=None, description="Only this agent.")


class RelevantQuery(Query):
    query: Annotated[str, AfterValidator(not_blank)] = Field(
        min_length=1, max_length=QUERY_STRING_CHARS_MAX, description="The task, in plain words."
    )
    correction_type: Type | None = Field(default=None, description="Only this type.")
    collection_id: CollectionId | None = Field(default=None, description="Only this collection.")
    user_id: ScopeName | None = Field(default=None, description="Only this end user.")
    limit: int = Field(
        default=SIMILAR_ITEMS_DEFAULT, ge=1, le=SIMILAR_ITEMS_MAX, description="At most so many."
    )


# --- tables ---------------------------------------------------------------------------------------


class CorrectionRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """superseded_by: what took the place of its memory, to be known when that memory is gone."""

    id: str
    type: str
    created_at: int
    confidence: float = 1.0
    superseded_memory_id: str | None = None
    original_content: str | None = None
    context: str | None = None
    superseded_by: str | None = None


CORRECTIONS: Table[CorrectionRow] = Table(
    "corrections",
    key=("ordinal",),
    row=CorrectionRow,
    version=2,  # 2: superseded_by
    doc="corrections, by their memory's ordinal",
)
CORRECTION_IDS: Table[bytes] = Table(
    "correction_ids",
    key=("correction_id",),
    row=bytes,
    doc="correction id to ordinal, 4 bytes big endian",
)
CORRECTION_MEMORIES: Table[bytes] = Table(
    "correction_memories",
    key=("memory_id",),
    row=bytes,
    doc="memory id of a correction to its ordinal, 4 bytes big endian",
)
CORRECTION_FIELDS = BitmapIndex("correction_fields", fields=("type",))
TABLES: tuple[Table, ...] = (CORRECTIONS, CORRECTION_IDS, CORRECTION_MEMORIES)

# --- reading --------------------------------------------------------------------------------------


def get_correction(ctx: ReadContext, correction_id: str) -> tuple[CorrectionRow, MemoryRow]:
    """The correction and its memory. NotFound when there is none (any more), PermissionDenied for
    another account's.
    """
    missing = NotFound("There is no correction with this id.")
    raw = ctx[CORRECTION_IDS].get(ctx.check_id("cor", correction_id, missing))
    for memory in find_rows_at(ctx, [] if raw is None else [int.from_bytes(raw, "big")]):
        if find_row(ctx, memory.id) is not None:
            return ctx[CORRECTIONS].row(memory.ordinal), memory
    raise missing


def corrections_in_force(
    ctx: ReadContext, asked: Any, correction_type: str | None, *, include_superseded: bool
) -> BitMap:
    """Ordinals of the readable corrections that pass the scope fields of `asked`; one that was
    corrected itself only when asked for.
    """
    fields = ctx.index(CORRECTION_FIELDS)
    types = (
        ("preference", "factual", "procedural") if correction_type is None else (correction_type,)
    )
    return readable(ctx, asked, include_superseded=include_superseded) & fields.any_of(
        "type", types
    )


def relevant_corrections(
    ctx: ReadContext, query: str, vector: Embedded | None, allowed: BitMap, limit: int
) -> tuple[list[tuple[float, int]], int]:
    """([(score, ordinal)] nearest first, at most `limit`; how many are near enough).

    The score is the cosine, and one that counts is at least `search.cosine_min`. Without a vector
    it is the share of the query's words, by their rarity, that the correction has.
    """
    if vector is not None:
        ordinals, cosines = ctx.index(MEMORY_VECTORS).search(
            vector[0], vector[1], max(len(allowed), 1), allowed
        )[0]
        near = int(np.count_nonzero(cosines >= SearchSettings.of(ctx.settings).cosine_min))
        scores = np.clip(cosines[: min(near, limit)], 0, 1)
        return [
            (float(score), int(ordinal)) for score, ordinal in zip(scores, ordinals, strict=False)
        ], near
    terms = query_terms(query)
    text = ctx.index(MEMORY_TEXT)
    ordinals = (
        np.array(text.search(terms, max(len(allowed), 1), allowed)[0], np.int64)
        if terms
        else np.zeros(0, np.int64)
    )
    if not len(ordinals):
        return [], 0
    rarity = np.array(text.idfs(terms))
    shares = rarity @ (text.frequencies(terms, ordinals) > 0) / rarity.sum()
    order = np.argsort(-shares, kind="stable")[:limit]
    return [(float(shares[place]), int(ordinals[place])) for place in order], len(ordinals)


def correction_view(ctx: ReadContext, row: CorrectionRow, memory: MemoryRow) -> dict[str, Any]:
    """The correction's record, with the content and scopes of the memory that holds it."""
    before = None if row.superseded_memory_id is None else find_row(ctx, row.superseded_memory_id)
    return {
        "id": row.id,
        "memory_id": memory.id,
        "superseded_memory_id": None if before is None else before.id,
        "corrected_content": memory.content,
        "correction_type": row.type,
        "original_content": row.original_content
        if row.original_content is not None or before is None
        else before.content,
        "context": row.context,
        "collection_id": memory.collection_id,
        "user_id": memory.user_id,
        "agent_id": memory.agent_id,
        "confidence": row.confidence,
        "metadata": memory.metadata,
        "created_at": iso(row.created_at),
        "searchable": memory.searchable,
        "processing_status": memory.status,
        "status_url": f"/v1/corrections/{row.id}",
        "outbox_event_id": memory.outbox_event_id,
    }


def get(ctx: ReadContext, body: None) -> dict[str, Any]:
    return correction_view(ctx, *get_correction(ctx, ctx.path["id"]))


def list_corrections(ctx: ReadContext, body: None) -> dict[str, Any]:
    found = corrections_in_force(ctx, ctx.query, ctx.query.correction_type, include_superseded=True)
    page, following = newest_first(ctx, found)
    items = [
        correction_view(ctx, ctx[CORRECTIONS].row(ordinal), rows_at(ctx, [ordinal])[0])
        for ordinal in page
    ]
    return envelope(ctx, items, following, len(found))


def load_relevant(ctx: ReadContext, body: None) -> float:
    """Seconds the query's embedding may take; a bad collection is refused before."""
    if ctx.query.collection_id is not None:
        require_collection(ctx, ctx.query.collection_id)
    return SearchSettings.of(ctx.settings).embedding_wait_seconds


async def prepare_relevant(call: Call, seconds: float, models: Models) -> Embedded | None:
    return await embedded(call.query.query, seconds, models)


def relevant(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked = ctx.query
    allowed = corrections_in_force(ctx, asked, asked.correction_type, include_superseded=False)
    found, total = relevant_corrections(ctx, asked.query, ctx.prepared, allowed, asked.limit)
    items = [
        {**correction_view(ctx, ctx[CORRECTIONS].row(o), rows_at(ctx, [o])[0]), "score": score}
        for score, o in found
    ]
    return {"items": items, "total_count": total}


# --- writing --------------------------------------------------------------------------------------


def load_new(ctx: ReadContext, body: NewCorrection) -> float:
    """Seconds the write may wait for its index; what cannot be corrected is refused before any
    work.
    """
    if body.collection_id is not None:
        require_collection(ctx, body.collection_id)
    _corrected(ctx, body)
    return wait_seconds(ctx, False)


async def prepare_new(call: Call, seconds: float, models: Models) -> list[Indexed] | None:
    return await index_in_time([(None, call.body.corrected_content)], seconds, models)


def create(ctx: WriteContext, body: NewCorrection) -> Reply:
    """Store the right memory and its record, supersede the wrong one: one transaction."""
    wrong = _corrected(ctx, body)
    correction_id = ctx.new_id("cor")
    fields = {
        "source_type": SOURCE_TYPE,
        "source_reference": correction_id,
        "importance": body.confidence,
        "metadata": body.metadata,
    }
    for name in ("user_id", "agent_id"):
        value = getattr(body, name) or (None if wrong is None else getattr(wrong, name))
        if value is not None:
            fields[name] = value
    if wrong is not None:
        fields |= {name: value for name in _KEPT if (value := getattr(wrong, name))}
    collection = require_collection(
        ctx, body.collection_id or (None if wrong is None else wrong.collection_id)
    )
    indexed = ctx.prepared[0] if ctx.prepared else None
    draft = Draft(body.corrected_content, collection, fields, indexed)
    memory = store_memories(ctx, [draft], reason=REASON).rows[0]
    row = CorrectionRow(
        id=correction_id,
        type=body.correction_type,
        created_at=ctx.now,
        confidence=body.confidence,
        superseded_memory_id=None if wrong is None else wrong.id,
        original_content=body.original_content,
        context=body.context,
    )
    ctx[CORRECTIONS].put((memory.ordinal,), row)
    for table, name in ((CORRECTION_IDS, row.id), (CORRECTION_MEMORIES, memory.id)):
        ctx[table].put((name,), memory.ordinal.to_bytes(4, "big"))
    ctx.index(CORRECTION_FIELDS).add(memory.ordinal, "type", row.type)
    if wrong is not None:
        supersede(ctx, wrong, memory.id, reason=REASON)
    return _reply(ctx, row, memory)


def replay_correction(ctx: ReadContext, body: NewCorrection, resource_id: str, call: Call) -> Reply:
    """A repeated create: the same correction as it is now."""
    return _reply(ctx, *get_correction(ctx, resource_id))


def delete(ctx: WriteContext, body: None) -> dict[str, Any]:
    """Delete the correction and its memory; what it took the place of comes back."""
    row, memory = get_correction(ctx, ctx.path["id"])
    delete_memories(ctx, [memory])  # the rest is `forget`
    return {"id": row.id, "deleted": True}


def note_successor(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Keep, as a subscriber, what takes the place of a correction's memory, or that nothing does
    any more.
    """
    raw = ctx[CORRECTION_MEMORIES].get(resource_id)
    memory = None if raw is None else find_row(ctx, resource_id)
    if memory is None:
        return
    row = ctx[CORRECTIONS].row(memory.ordinal)
    if row.superseded_by != memory.superseded_by_id:
        after = msgspec.structs.replace(row, superseded_by=memory.superseded_by_id)
        ctx[CORRECTIONS].put((memory.ordinal,), after)


def forget(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Remove, as a subscriber, the record of a correction whose memory is gone; what it took the
    place of comes back.
    """
    raw = ctx[CORRECTION_MEMORIES].get(resource_id)
    if raw is None:
        return
    ordinal = int.from_bytes(raw, "big")
    row = ctx[CORRECTIONS].row(ordinal)
    ctx.index(CORRECTION_FIELDS).remove(ordinal, "type", row.type)
    ctx[CORRECTION_MEMORIES].delete(resource_id)
    ctx[CORRECTION_IDS].delete(row.id)
    ctx[CORRECTIONS].delete(ordinal)
    before = None if row.superseded_memory_id is None else find_row(ctx, row.superseded_memory_id)
    if before is None or before.superseded_by_id != resource_id:
        return
    newer = None if row.superseded_by is None else find_row(ctx, row.superseded_by)
    if newer is None:
        restore(ctx, before, reason="correction deleted")
        return
    supersede(ctx, before, newer.id, reason="correction deleted")
    later = ctx[CORRECTIONS].get(newer.ordinal)
    if later is None:
        ctx.emit(HANDED_ON, {"id": before.id}, before.id)
    else:
        handed_on = msgspec.structs.replace(later, superseded_memory_id=before.id)
        ctx[CORRECTIONS].put((newer.ordinal,), handed_on)


def _corrected(ctx: ReadContext, body: NewCorrection) -> MemoryRow | None:
    if body.memory_id is None:
        return None
    row = get_row(ctx, body.memory_id)
    if row.source_type == FILE:
        raise Conflict(
            "This memory is a file of an agent. Change it with POST /v1/memory-tool, for example "
            f'{{"command": "str_replace", "path": {json.dumps(row.source_reference)}, …}}.',
            param="memory_id",
        )
    if row.superseded:
        raise Conflict(
            "This memory has been superseded already. Correct the memory that took its place, or "
            f"bring this one back first: POST /v1/memories/{row.id}/restore.",
            param="memory_id",
        )
    return row


def _reply(ctx: ReadContext, row: CorrectionRow, memory: MemoryRow) -> Reply:
    ready = memory_reply(memory, 201)
    body = correction_view(ctx, row, memory)
    return Reply(
        ready.status, body, {**ready.headers, "Location": body["status_url"]}, resource_id=row.id
    )


# --- privacy --------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all records; their memories are the memories' plugin's. Counts of rows by table."""
    return {
        table.name: ctx[table].delete_prefix() for table in (*TABLES, *CORRECTION_FIELDS.tables)
    }


def export(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    """("correction", record, key) for each behind a key that can be read, oldest first."""
    found = corrections_in_force(ctx, None, None, include_superseded=True)
    if after is not None:
        found.remove_range(0, after[0] + 1)
    for ordinal in found:
        yield (
            "correction",
            correction_view(ctx, ctx[CORRECTIONS].row(ordinal), rows_at(ctx, [ordinal])[0]),
            (ordinal,),
        )


# --- the plugin -----------------------------------------------------------------------------------

_ID = "cor_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_MEMORY = "mem_06a1kz0c8h2r4c6n8e0t2v4x6z8a1c3e"
_WRONG = "mem_06a1kz0a8h2r4c6n8e0t2v4x6z8a1c3e"
_NEW = {
    "corrected_content": "Ada lives in Porto.",
    "correction_type": "factual",
    "memory_id": _WRONG,
}
_EXAMPLE = {
    "id": _ID, "memory_id": _MEMORY, "superseded_memory_id": _WRONG,
    "corrected_content": "Ada lives in Porto.", "correction_type": "factual",
    "original_content": "Ada lives in Lisbon.", "context": None,
    "collection_id": "col_06a1kz0a1g3q5b7m9d1s3u5w7y9z2b4d", "user_id": "ada", "agent_id": None,
    "confidence": 1.0, "metadata": {}, "created_at": "2026-05-08T13:56:00.000Z", "searchable": True,
    "processing_status": "completed", "status_url": f"/v1/corrections/{_ID}",
    "outbox_event_id": "evt_06a1kz0e3m5v7f9r1h3y5a7c9e1g4j6k",
}  # fmt: skip

OPERATIONS = (
    Write(
        name="corrections.create",
        method="POST",
        path="/v1/corrections",
        load=load_new,
        prepare=prepare_new,
        handler=create,
        resource=replay_correction,
        body=NewCorrection,
        response=Correction,
        statuses=(201, 202),
        scope="write",
        idempotency=Idempotency.CANONICAL,
        credits=1,
        summary="Put something right",
        description=(
            "Stores the corrected content as a memory; the memory it corrects is superseded in the "
            "same transaction."
        ),
        example=_NEW,
        example_reply=_EXAMPLE,
    ),
    Read(
        name="corrections.list",
        method="GET",
        path="/v1/corrections",
        handler=list_corrections,
        query=CorrectionQuery,
        response=Page[Correction],
        summary="List corrections",
        example_reply=example_page(_EXAMPLE),
    ),
    Read(
        name="corrections.relevant",
        method="GET",
        path="/v1/corrections/relevant",
        load=load_relevant,
        prepare=prepare_relevant,
        handler=relevant,
        query=RelevantQuery,
        response=RelevantCorrections,
        credits=1,
        summary="Corrections that matter for a task",
        example_reply={"items": [{**_EXAMPLE, "score": 0.71}], "total_count": 1},
    ),
    Read(
        name="corrections.get",
        method="GET",
        path="/v1/corrections/{id}",
        handler=get,
        response=Correction,
        summary="Get a correction",
        example_reply=_EXAMPLE,
    ),
    Write(
        name="corrections.delete",
        method="DELETE",
        path="/v1/corrections/{id}",
        handler=delete,
        response=DeletedCorrection,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Delete a correction and its memory",
        description="What it had superseded is found again. Again is 404.",
        example_reply={"id": _ID, "deleted": True},
    ),
)
