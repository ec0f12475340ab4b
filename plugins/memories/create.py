"""Creating memories: one, a conversation, a batch.

A create goes through the three steps of a write. `load` refuses what would be refused anyway,
`prepare` indexes the texts within the time the write may take, the handler stores texts and index
in one transaction. 201 says that searches find all of it; 202 says that it is on disk and that a
job is at the rest.

Choices:
- An `expires_at` in the past is accepted; such a memory is stored and at once out of every read.
- `Prefer: respond-async` skips the wait: the answer is 202 even if the index would be ready at
  once.
- A message's memory has the message's name, or else its role, as speaker; messages without any
  session get one of their own.
- In a batch an item's unknown collection fails that item. The batch's own unknown collection fails
  the call, and so does any item's collection of another account.
- A repeated key whose memories are partly deleted answers with those that are left; when none is,
  it is 404.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plugins.collections import CollectionNotFound, CollectionRow, require_collection
from plugins.memories.indexing import index_in_time, indexed_at_once, wait_seconds
from plugins.memories.models import (
    EXAMPLE,
    EXAMPLE_ID,
    Batch,
    BatchCreated,
    Created,
    Described,
    Memory,
    NewMemory,
    RawMemory,
    Scoped,
)
from plugins.memories.rows import (
    FAILED,
    MEMORY_BATCHES,
    PROCESSING,
    SCOPES,
    BatchItem,
    BatchRow,
    Draft,
    Indexed,
    MemoryRow,
    Stored,
)
from plugins.memories.store import Storing, find_row, get_row, memory_view, store_memories
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Idempotency, Reply, Together, Write
from runtime.errors import ApiError, NotFound
from runtime.inference import Models
from runtime.limits import RETRY_AFTER_SECONDS

DRAFT_FIELDS = (
    "importance", "metadata", "title", "tags", "source", "source_type", "source_reference", *SCOPES,
    "speaker", "role", "occurred_at", "expires_at",
)  # fmt: skip

# --- one, or a conversation -----------------------------------------------------------------------


def load_new(ctx: ReadContext, body: Described) -> float:
    """Seconds the write may wait for its index; an unknown collection is refused before any
    work.
    """
    require_collection(ctx, body.collection_id)
    return wait_seconds(ctx, body.wait_for_index)


async def prepare_raw(call: Call, seconds: float, models: Models) -> list[Indexed] | None:
    return await index_in_time([(call.body.speaker, call.body.content)], seconds, models)


async def prepare_new(call: Call, seconds: float, models: Models) -> list[Indexed] | None:
    body = call.body
    if body.messages is None:
        return await prepare_raw(call, seconds, models)
    return await index_in_time(
        [(message.name or message.role, message.content) for message in body.messages],
        seconds,
        models,
    )


def create_raw(ctx: WriteContext, body: RawMemory) -> Reply:
    return memory_reply(store_memories(ctx, _raw_draft(ctx, body)).rows[0], 201)


def create_raw_together(contexts: Sequence[WriteContext]) -> list[Reply]:
    """As create_raw, of several calls of one account."""
    return [memory_reply(row, 201) for (row,) in _stored_together(contexts, _raw_draft)]


def create_memories(ctx: WriteContext, body: NewMemory) -> Reply:
    return _created_by(ctx, store_memories(ctx, _drafts(ctx, body)))


def create_together(contexts: Sequence[WriteContext]) -> list[Reply]:
    """As create_memories, of several calls of one account."""
    stored = _stored_together(contexts, _drafts)
    return [_created_by(ctx, Stored(own, None)) for ctx, own in zip(contexts, stored, strict=True)]


def may_be_together(call: Call, prepared: list[Indexed] | None) -> bool:
    """Whether it can be stored at once with what others create: its index is made."""
    return prepared is not None


def _stored_together(
    contexts: Sequence[WriteContext], drafts_of: Callable[[WriteContext, Any], list[Draft]]
) -> list[list[MemoryRow]]:
    """What each call stores, which is indexed: words and counts of all are entered once."""
    drafts = [drafts_of(ctx, ctx.call.body) for ctx in contexts]
    storing = Storing(contexts[0])
    storing.check_room(list(itertools.chain(*drafts)))
    rows = iter(
        storing.store_each(
            [(ctx, draft) for ctx, own in zip(contexts, drafts, strict=True) for draft in own]
        )
    )
    storing.finish()
    return [list(itertools.islice(rows, len(own))) for own in drafts]


def _raw_draft(ctx: WriteContext, body: RawMemory) -> list[Draft]:
    draft = Draft(body.content, require_collection(ctx, body.collection_id), draft_fields(body))
    return _with_index([draft], ctx.prepared)


def _drafts(ctx: WriteContext, body: NewMemory) -> list[Draft]:
    collection = require_collection(ctx, body.collection_id)
    fields = draft_fields(body)
    if body.content is not None:
        drafts = [Draft(body.content, collection, fields)]
    else:
        fields.setdefault("session_id", ctx.new_id("ses"))
        drafts = [
            Draft(
                said.content,
                collection,
                {**fields, "speaker": said.name or said.role, "role": said.role},
            )
            for said in body.messages or ()
        ]
    return _with_index(drafts, ctx.prepared)


def _created_by(ctx: WriteContext, stored: Stored) -> Reply:
    if len(stored.rows) == 1:
        return _created(ctx, stored.rows, stored.job_id)
    job_id = stored.job_id or indexed_at_once(ctx, len(stored.rows))
    reply = _created(ctx, stored.rows, job_id, several=True)
    reply.resource_id = _remember(ctx, [BatchItem(row.id) for row in stored.rows], job_id)
    return reply


def replay_create(ctx: ReadContext, body: NewMemory, resource_id: str, call: Call) -> Reply:
    """A repeated create: the same memories as they are now."""
    batch = ctx[MEMORY_BATCHES].get(resource_id)
    if batch is None:
        return _created(ctx, [get_row(ctx, resource_id)], None)
    ids = [item.memory_id for item in batch.items if item.memory_id is not None]
    rows = [row for memory_id in ids if (row := find_row(ctx, memory_id)) is not None]
    if not rows:
        raise NotFound("The memories this Idempotency-Key created have been deleted.")
    return _created(ctx, rows, batch.job_id, several=True)


def replay_memory(ctx: ReadContext, body: Any, resource_id: str, call: Call) -> Reply:
    """A repeated write of one memory: that memory as it is now."""
    return memory_reply(get_row(ctx, resource_id), 201)


def draft_fields(body: Described, shared: Scoped | None = None) -> dict[str, Any]:
    """The fields of a new memory that the request sets; scope fields fall back on `shared`."""
    fields = {name: value for name in DRAFT_FIELDS if (value := getattr(body, name)) is not None}
    if shared is not None:
        for name in SCOPES:
            value = getattr(shared, name, None)
            if value is not None:
                fields.setdefault(name, value)
    if "run_id" in fields:
        fields.setdefault("session_id", fields["run_id"])
    return fields


def memory_reply(row: MemoryRow, ready: int) -> Reply:
    """One memory after a write: `ready` (201 or 200), or 202 while it is being indexed."""
    pending = row.pending
    body = memory_view(row)
    headers = {"Location": body["status_url"], "ETag": etag(row)}
    if pending:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return Reply(202 if pending else ready, body, headers, resource_id=row.id)


def etag(row: MemoryRow) -> str:
    """The ETag header of a memory: its version."""
    return f'"{row.version}"'


def _created(
    ctx: ReadContext, rows: Sequence[MemoryRow], job_id: str | None, *, several: bool = False
) -> Reply:
    """The summary of a create, and the memory's own fields when there is one.

    several  whether the write stored more than one, whatever became of them: the summary then
             points at their job
    """
    pending = any(row.pending for row in rows)
    summary = {
        "results": [
            {
                "id": row.id,
                "memory_id": row.id,
                "event": "ADD",
                "memory": row.content,
                "processing_status": row.status,
            }
            for row in rows
        ],
        "memory_ids": [row.id for row in rows],
        "created_count": len(rows),
        "updated_count": 0,
        "skipped_count": 0,
        "collection_id": rows[0].collection_id,
        "processing_status": _status(rows),
        "searchable": all(row.searchable for row in rows),
        "status_url": _job_url(job_id) if several and job_id else f"/v1/memories/{rows[0].id}",
        "outbox_event_id": rows[0].outbox_event_id,
        "request_id": ctx.call.request_id,
    }
    if pending and job_id:
        summary |= {"job_id": job_id, "poll_url": _job_url(job_id)}
    body = summary if len(rows) > 1 else {**memory_view(rows[0]), **summary}
    return Reply(
        202 if pending else 201,
        body,
        _headers(summary["status_url"], pending),
        resource_id=rows[0].id,
    )


def _with_index(drafts: list[Draft], indexed: list[Indexed] | None) -> list[Draft]:
    for draft, made in zip(drafts, indexed or (), strict=False):
        draft.indexed = made
    return drafts


def _headers(status_url: str, pending: bool) -> dict[str, str]:
    return (
        {"Location": status_url, "Retry-After": str(RETRY_AFTER_SECONDS)}
        if pending
        else {"Location": status_url}
    )


def _job_url(job_id: str) -> str:
    return f"/v1/memories/jobs/{job_id}"


def _status(rows: Iterable[MemoryRow]) -> str:
    """The least finished status of all."""
    states = {row.status for row in rows}
    return next((state for state in ("processing", "failed") if state in states), "completed")


def _remember(ctx: WriteContext, items: list[BatchItem], job_id: str | None) -> str | None:
    """Keep what a write of several memories did, for a repeated key; -> the record's id."""
    if ctx.call.idempotency_key is None:
        return None
    batch_id = ctx.new_id("job")
    ctx[MEMORY_BATCHES].put((batch_id,), BatchRow(items, job_id))
    return batch_id


# --- batches --------------------------------------------------------------------------------------


def load_batch(ctx: ReadContext, body: Batch) -> float:
    """Seconds the write may wait for its index; refuses what fails the whole call."""
    require_collection(ctx, body.collection_id)
    for collection_id in {item.collection_id for item in body.memories}:
        _collection_of(ctx, collection_id or body.collection_id)
    return wait_seconds(
        ctx, body.wait_for_index or any(item.wait_for_index for item in body.memories)
    )


async def prepare_batch(call: Call, seconds: float, models: Models) -> list[Indexed] | None:
    return await index_in_time(
        [(item.speaker, item.content) for item in call.body.memories], seconds, models
    )


def create_batch(ctx: WriteContext, body: Batch) -> Reply:
    require_collection(ctx, body.collection_id)
    known: dict[str | None, CollectionRow | ApiError] = {}
    drafts: list[Draft] = []
    items: list[BatchItem] = []
    for item, indexed in zip(
        body.memories, ctx.prepared or [None] * len(body.memories), strict=True
    ):
        collection_id = item.collection_id or body.collection_id
        if collection_id not in known:
            known[collection_id] = _collection_of(ctx, collection_id)
        collection = known[collection_id]
        if isinstance(collection, ApiError):
            items.append(BatchItem(code=collection.code or "", message=collection.message))
        else:
            items.append(BatchItem())
            drafts.append(Draft(item.content, collection, draft_fields(item, body), indexed))
    stored = store_memories(ctx, drafts)
    ctx.credits = len(stored.rows)  # items that failed cost nothing
    rows = iter(stored.rows)
    for item in items:
        if not item.code:
            item.memory_id = next(rows).id
    job_id = stored.job_id
    if stored.rows and job_id is None:
        job_id = indexed_at_once(ctx, len(stored.rows))
    reply = _batch_reply(items, {row.id: row for row in stored.rows}, job_id)
    reply.resource_id = _remember(ctx, items, job_id)
    return reply


def replay_batch(ctx: ReadContext, body: Batch, resource_id: str, call: Call) -> Reply:
    """A repeated batch: the same results, with the memories as they are now."""
    batch = ctx[MEMORY_BATCHES].row(resource_id)
    ids = [item.memory_id for item in batch.items if item.memory_id is not None]
    rows = {memory_id: row for memory_id in ids if (row := find_row(ctx, memory_id)) is not None}
    if ids and not rows:
        raise NotFound("The memories this Idempotency-Key created have been deleted.")
    return _batch_reply(batch.items, rows, batch.job_id)


def _collection_of(ctx: ReadContext, collection_id: str | None) -> CollectionRow | ApiError:
    """The collection, or the reason why an item cannot go there. Another account's collection
    raises: it refuses the whole call.
    """
    try:
        return require_collection(ctx, collection_id)
    except CollectionNotFound as unknown:
        return unknown.without_stack()


def _batch_reply(
    items: Sequence[BatchItem], rows: dict[str, MemoryRow], job_id: str | None
) -> Reply:
    """Answer a batch. rows: the memories that exist, by id; one that was deleted since counts as
    indexed.
    """
    results, errors = [], []
    for index, item in enumerate(items):
        entry: dict[str, Any] = {"index": index, "id": item.memory_id, "memory_id": item.memory_id}
        if item.memory_id is None:
            error = {"code": item.code, "message": item.message}
            errors.append({"index": index, **error})
            entry |= {"status": "failed", "processing_status": "failed", "error": error}
        else:
            row = rows.get(item.memory_id)
            entry |= {
                "status": "created",
                "processing_status": "completed" if row is None else row.status,
            }
        results.append(entry)
    created = [item.memory_id for item in items if item.memory_id is not None]
    pending = any(row.status == PROCESSING for row in rows.values())
    first = next(iter(rows.values()), None)
    status_url = (  # batches of earlier releases that were ready at once had no job
        _job_url(job_id) if job_id else None if first is None else f"/v1/memories/{first.id}"
    )
    body = {
        "created": len(created),
        "failed": len(errors),
        "accepted": len(created),
        "durable": True,
        "memory_ids": created,
        "errors": errors,
        "results": results,
        "searchable": bool(created) and all(row.searchable for row in rows.values()),
        "processing_status": _status(rows.values()) if created else FAILED,
        "status_url": status_url,
        "outbox_event_id": None if first is None else first.outbox_event_id,
    }
    return Reply(202 if pending else 201, body, _headers(status_url, pending) if status_url else {})


# --- operations -----------------------------------------------------------------------------------

_NEW = {
    name: EXAMPLE[name]
    for name in ("content", "user_id", "session_id", "speaker", "tags", "metadata")
}
_RESULT = {
    "id": EXAMPLE_ID,
    "memory_id": EXAMPLE_ID,
    "event": "ADD",
    "memory": EXAMPLE["content"],
    "processing_status": "completed",
}
_COUNTS = {"created_count": 1, "updated_count": 0, "skipped_count": 0}

CREATE = Write(
    name="memories.create",
    method="POST",
    path="/v1/memories",
    load=load_new,
    prepare=prepare_new,
    handler=create_memories,
    together=Together(may_be_together, create_together),
    resource=replay_create,
    body=NewMemory,
    response=Created,
    statuses=(201, 202),
    scope="write",
    idempotency=Idempotency.CANONICAL,
    credits=lambda body: len(body.messages or (1,)),
    summary="Create a memory, or one for each message of a conversation",
    description=(
        "201: searches find it. 202: it is stored, and will be found when its job is done. "
        "Costs 1 credit per memory."
    ),
    example=_NEW,
    example_reply={
        **EXAMPLE,
        "results": [_RESULT],
        "memory_ids": [EXAMPLE_ID],
        **_COUNTS,
        "request_id": "req-1",
    },
)
CREATE_RAW = Write(
    name="memories.create_raw",
    method="POST",
    path="/v1/memories/raw",
    load=load_new,
    prepare=prepare_raw,
    handler=create_raw,
    together=Together(may_be_together, create_raw_together),
    resource=replay_memory,
    body=RawMemory,
    response=Memory,
    statuses=(201, 202),
    scope="write",
    idempotency=Idempotency.CANONICAL,
    credits=1,
    summary="Create a memory from a text as it is",
    example=_NEW,
    example_reply=EXAMPLE,
)
CREATE_BATCH = Write(
    name="memories.create_batch",
    method="POST",
    path="/v1/memories/batch",
    load=load_batch,
    prepare=prepare_batch,
    handler=create_batch,
    resource=replay_batch,
    body=Batch,
    response=BatchCreated,
    statuses=(201, 202),
    scope="write",
    rate="batch",
    idempotency=Idempotency.CANONICAL,
    credits=lambda body: len(body.memories),
    summary="Create up to 100 memories",
    description=(
        "All accepted items commit in one transaction, with a result for each. Costs 1 credit "
        "per item."
    ),
    example={"memories": [_NEW]},
    example_reply={
        "created": 1,
        "failed": 0,
        "accepted": 1,
        "durable": True,
        "memory_ids": [EXAMPLE_ID],
        "errors": [],
        "results": [
            {
                "index": 0,
                "id": EXAMPLE_ID,
                "memory_id": EXAMPLE_ID,
                "status": "created",
                "processing_status": "completed",
            }
        ],
        "searchable": True,
        "processing_status": "completed",
        "status_url": _job_url("job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"),
        "outbox_event_id": EXAMPLE["outbox_event_id"],
    },
)
OPERATIONS = (CREATE, CREATE_RAW, CREATE_BATCH)
