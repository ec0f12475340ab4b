"""POST /v1/memories with `infer: true`: smart ingestion in the shape of a create.

Without `infer` it is the create of plugins/memories/create.py. With it, the conversation is
ingested in the request, unless `async_dispatch`, `Prefer: respond-async` or a slow language model
make it a background job: then the answer is 202 with the job. The answer's `results` are the
memories that hold the statements; a statement that is known is a NOOP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from plugins.collections import require_collection
from plugins.ingestion.job import Prepared, complete_now, enqueue
from plugins.ingestion.limits import PROCESS_WAIT_SECONDS_MAX
from plugins.ingestion.process import Asked, asked, prepare_process
from plugins.memories import CREATE, MemoryRow, NewMemory, find_row, memory_view
from runtime.api import jobs
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Event, Operation, Reply, Together, View
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.limits import RETRY_AFTER_SECONDS

EVENT_OF = {"ADD": "ADD", "UPDATE": "UPDATE", "DELETE": "UPDATE", "NOOP": "NOOP"}


class Ingested(View):
    """A conversation was taken in; what it says may be known already."""

    id: str


INGESTED = Event("internal.ingested", Ingested)
Loaded = Asked | float


def _declared(step: Any) -> Any:
    """A step that the create of plugins/memories/create.py is known to have."""
    assert step is not None
    return step


# They are functions of an account's context, where the type of an operation's steps leaves open
# whose context they are given.
_load_plain: Callable[[ReadContext, NewMemory], float] = _declared(CREATE.load)
_prepare_plain: Callable[[Call, float, Models], Awaitable[Any]] = _declared(CREATE.prepare)
_create_plain: Callable[[WriteContext, NewMemory], Reply] = _declared(CREATE.handler)
_together_plain: Together = _declared(CREATE.together)
_replay_plain: Callable[[ReadContext, NewMemory, str, Call], Reply] = _declared(CREATE.resource)


def load(ctx: ReadContext, body: NewMemory) -> Loaded:
    seconds = _load_plain(ctx, body)
    if not body.infer:
        return seconds
    at_once = body.async_dispatch or "respond-async" in ctx.call.prefer
    return asked(ctx, body, 0 if at_once else PROCESS_WAIT_SECONDS_MAX)


async def prepare(call: Call, loaded: Loaded, models: Models) -> Any:
    if not isinstance(loaded, Asked):
        return await _prepare_plain(call, loaded, models)
    return await prepare_process(call, loaded, models)


def may_be_together(call: Call, prepared: Any) -> bool:
    return not call.body.infer and _together_plain.may(call, prepared)


def create(ctx: WriteContext, body: NewMemory) -> Reply:
    if not body.infer:
        return _create_plain(ctx, body)
    prepared: Prepared | None
    conversation, prepared = ctx.prepared
    job = (
        jobs.row(ctx, enqueue(ctx, conversation))
        if prepared is None
        else complete_now(ctx, prepared)
    )
    return _reply(ctx, job, ctx.emit(INGESTED, {"id": job.id}, job.id))


def replay_ingested(ctx: ReadContext, body: NewMemory, resource_id: str, call: Call) -> Reply:
    if not body.infer:
        return _replay_plain(ctx, body, resource_id, call)
    found = jobs.find(ctx, resource_id)
    if found is None:
        raise NotFound("The job this Idempotency-Key started is no longer kept.")
    return _reply(ctx, found[1], None)


def _reply(ctx: ReadContext, job: jobs.JobRow, event_id: str | None) -> Reply:
    """The summary of what the job did so far, and the memory's own fields when it made exactly
    one.
    """
    url = f"/v1/memories/jobs/{job.id}"
    result = job.result or {
        "events": [],
        "memories_created": 0,
        "memories_updated": 0,
        "memories_invalidated": 0,
        "skipped": 0,
    }
    results, made = [], []
    for event in result["events"]:
        row = None if event["memory_id"] is None else find_row(ctx, event["memory_id"])
        if row is not None:
            results.append(_result(event, row))
            if event["event"] != "NOOP":
                made.append(row)
    finished = job.status in (jobs.COMPLETED, jobs.FAILED)
    pending = not finished or any(row.pending for row in made)
    summary = {
        "results": results,
        "memory_ids": [row.id for row in made],
        "created_count": result["memories_created"],
        "updated_count": result["memories_updated"] + result["memories_invalidated"],
        "skipped_count": result["skipped"],
        "collection_id": made[0].collection_id
        if made
        else require_collection(ctx, ctx.call.body.collection_id).id,
        "processing_status": "processing" if pending else "completed",
        "searchable": not pending,
        "status_url": url,
        "outbox_event_id": made[0].outbox_event_id if made else event_id,
        "request_id": ctx.call.request_id,
        "job_id": job.id,
        "poll_url": url,
    }
    headers = {"Location": url} | ({"Retry-After": str(RETRY_AFTER_SECONDS)} if pending else {})
    reply = {**memory_view(made[0]), **summary} if len(made) == 1 else summary
    return Reply(202 if pending else 201, reply, headers, resource_id=job.id)


def _result(event: dict[str, Any], row: MemoryRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "memory_id": row.id,
        "event": EVENT_OF[event["event"]],
        "memory": row.content,
        "processing_status": row.status,
    }


def operation() -> Operation:
    """The create operation in its fuller form."""
    return replace(
        CREATE,
        load=load,
        prepare=prepare,
        handler=create,
        together=Together(may_be_together, _together_plain.handler),
        remote=lambda call: call.body.infer,
        resource=replay_ingested,
        credits=lambda body: 5 if body.infer else len(body.messages or (1,)),
        description=(
            f"{CREATE.description} With `infer`, what can be learned from it is stored instead (5 "
            "credits); `job_id` names the job."
        ),
    )
