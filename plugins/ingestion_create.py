"""POST /v1/memories with `infer: true`: smart ingestion in the shape of a create (specification part 4, Memories).

Without `infer` it is the create of plugins/memory_creation.py. With it, the conversation is ingested in the request, unless
`async_dispatch`, `Prefer: respond-async` or a slow language model make it a background job: then the answer is 202 with the job.
The answer's `results` are the memories that hold the statements; a statement that is known is a NOOP.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plugins import memory_creation
from plugins.collections import require_collection
from plugins.ingestion_job import Conversation, Prepared, complete_now, enqueue
from plugins.ingestion_process import conversation_of, extract_in_time
from plugins.memory_store import COMPLETED, PROCESSING, MemoryRow, find_row, memory_view
from plugins.memory_views import NewMemory
from runtime import jobs
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.limits import PROCESS_WAIT_SECONDS_MAX, RETRY_AFTER_SECONDS
from runtime.operation import Call, Event, Operation, ReadContext, Reply, View, WriteContext

EVENT_OF = {"ADD": "ADD", "UPDATE": "UPDATE", "DELETE": "UPDATE", "NOOP": "NOOP"}


class Ingested(View):
    """A conversation was taken in; what it says may be known already."""

    id: str


INGESTED = Event("internal.ingested", Ingested)
Loaded = tuple[Conversation, float] | float


def load(ctx: ReadContext, body: NewMemory) -> Loaded:
    seconds = memory_creation.load_new(ctx, body)
    if not body.infer:
        return seconds
    at_once = body.async_dispatch or "respond-async" in ctx.call.prefer
    return conversation_of(body, ctx.now), 0 if at_once else PROCESS_WAIT_SECONDS_MAX


async def prepare(call: Call, loaded: Loaded, models: Models) -> Any:
    if not call.body.infer:
        return await memory_creation.prepare_new(call, loaded, models)
    conversation, seconds = loaded
    return conversation, await extract_in_time(conversation, seconds, models)


def create(ctx: WriteContext, body: NewMemory) -> Reply:
    if not body.infer:
        return memory_creation.create(ctx, body)
    prepared: Prepared | None
    conversation, prepared = ctx.prepared
    job = jobs.find(ctx, enqueue(ctx, conversation))[1] if prepared is None else complete_now(ctx, prepared)
    return _reply(ctx, job, ctx.emit(INGESTED, {"id": job.id}, job.id))


def created_again(ctx: ReadContext, body: NewMemory, resource_id: str, call: Call) -> Reply:
    if not body.infer:
        return memory_creation.created_again(ctx, body, resource_id, call)
    found = jobs.find(ctx, resource_id)
    if found is None:
        raise NotFound("The job this Idempotency-Key started is no longer kept.")
    return _reply(ctx, found[1], None)


def _reply(ctx: ReadContext, job: jobs.JobRow, event_id: str | None) -> Reply:
    """The summary of what the job did so far, and the memory's own fields when it made exactly one."""
    url = f"/v1/memories/jobs/{job.id}"
    result = job.result or {"events": [], "memories_created": 0, "memories_updated": 0, "memories_invalidated": 0, "skipped": 0}
    results, made = [], []
    for event in result["events"]:
        row = None if event["memory_id"] is None else find_row(ctx, event["memory_id"])
        if row is not None:
            results.append(_result(event, row))
            if event["event"] != "NOOP":
                made.append(row)
    finished = job.status in (jobs.COMPLETED, jobs.FAILED)
    pending = not finished or any(row.status == PROCESSING for row in made)
    summary = {
        "results": results,
        "memory_ids": [row.id for row in made],
        "created_count": result["memories_created"],
        "updated_count": result["memories_updated"] + result["memories_invalidated"],
        "skipped_count": result["skipped"],
        "collection_id": made[0].collection_id if made else require_collection(ctx, ctx.call.body.collection_id).id,
        "processing_status": PROCESSING if pending else COMPLETED,
        "searchable": not pending,
        "status_url": url,
        "outbox_event_id": made[0].outbox_event_id if made else event_id,
        "request_id": ctx.call.request_id,
        "job_id": job.id,
        "poll_url": url,
    }
    headers = {"Location": url} | ({"Retry-After": str(RETRY_AFTER_SECONDS)} if pending else {})
    shown = {**memory_view(made[0]), **summary} if len(made) == 1 else summary
    return Reply(202 if pending else 201, shown, headers, resource_id=job.id)


def _result(event: dict[str, Any], row: MemoryRow) -> dict[str, Any]:
    return {"id": row.id, "memory_id": row.id, "event": EVENT_OF[event["event"]], "memory": row.content, "processing_status": row.status}


def operation() -> Operation:
    """The create operation in its fuller form."""
    plain = next(one for one in memory_creation.OPERATIONS if one.name == "memories.create")
    return replace(
        plain,
        load=load,
        prepare=prepare,
        handler=create,
        remote=lambda call: call.body.infer,
        resource=created_again,
        credits=lambda body: 5 if body.infer else len(body.messages or (1,)),
        description=f"{plain.description} With `infer`, what can be learned from it is stored instead (5 credits); `job_id` names the job.",
    )
