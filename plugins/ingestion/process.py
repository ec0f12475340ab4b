"""POST /v1/memories/process, and taking back what a job did.

Choices are in plugins/ingestion/__init__.py; the work is done by plugins/ingestion/job.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictBool, model_validator

from plugins.collections import require_collection
from plugins.ingestion.job import PROCESS, Conversation, Prepared, complete_now, enqueue, extract
from plugins.ingestion.limits import INSTRUCTIONS_CHARS_MAX, PROCESS_WAIT_SECONDS_MAX
from plugins.ingestion.settings import IngestionSettings
from plugins.ingestion.store import SUCCESSORS
from plugins.ingestion.successors import disown
from plugins.memories import (
    EXAMPLE,
    Content,
    Messages,
    Metadata,
    Scoped,
    ScopeName,
    delete_memories,
    find_row,
    job_view,
)
from runtime.api import jobs
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Idempotency, Reply, View, Write
from runtime.errors import Conflict, NotFound, ValidationFailed
from runtime.inference import Models
from runtime.limits import RETRY_AFTER_SECONDS
from runtime.timestamps import Timestamp

# --- requests and responses -----------------------------------------------------------------------

# Whose what is made of a request is: the request's own, and its session.
_SCOPES = (*(name for name in Scoped.model_fields if name != "collection_id"), "session_id")


class ProcessBody(Scoped):
    """A text, or the messages of a conversation."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["content"], "properties": {"content": {"type": "string"}}},
                {"required": ["messages"], "properties": {"messages": {"type": "array"}}},
            ]
        }
    )

    content: Content | None = Field(
        default=None,
        description="A text, as one message of the user; required unless `messages` are given.",
    )
    messages: Messages | None = Field(default=None, description="A conversation.")
    session_id: ScopeName | None = Field(
        default=None, description="The session it was said in; run_id when absent."
    )
    occurred_at: Timestamp | None = Field(
        default=None,
        description="When it took place; now when absent. Relative times count from it.",
    )
    metadata: Metadata = Field(default_factory=dict)
    instructions: str | None = Field(
        default=None,
        max_length=INSTRUCTIONS_CHARS_MAX,
        description="What a language model is to look for.",
    )
    dry_run: StrictBool = Field(default=False, description="Say what would happen; store nothing.")

    @model_validator(mode="after")
    def _one_of_both(self) -> ProcessBody:
        if self.content is None and self.messages is None:
            raise ValidationFailed.at(("body", "content"), "is required", "missing")
        if self.content is not None and self.messages is not None:
            raise ValidationFailed.at(
                ("body", "messages"), "must be absent when content is given", "value_error"
            )
        return self


class EvidenceSpan(View):
    source: int = Field(description="Index of the message, from 0; 0 for a content.")
    start: int = Field(description="First code point of the quotation.")
    end: int = Field(description="The code point after its last.")
    quote: str = Field(description="The words, verbatim.")


class IngestionEvent(View):
    event: Literal["ADD", "UPDATE", "DELETE", "NOOP"] = Field(
        description="What became of the statement."
    )
    memory_id: str | None = Field(description="The memory that holds it; null in a dry run.")
    memory: str = Field(description="The text.")
    previous_content: str | None = Field(
        default=None, description="UPDATE, DELETE: the text that it supersedes."
    )
    previous_memory_id: str | None = Field(
        default=None, description="UPDATE, DELETE: the memory that it supersedes."
    )
    merged_memory_id: str | None = Field(
        default=None,
        description=(
            "NOOP: where its words are kept, superseded by `memory_id`; restoring that undoes the "
            "merge."
        ),
    )
    evidence: list[EvidenceSpan] = Field(description="Where it was said.")
    reason: str = Field(description="Why.")


class LeftOut(View):
    """Sentences that no memory holds, by reason."""

    greeting: int = Field(description="They greet, or part.")
    acknowledgement: int = Field(description="They agree, thank or decline.")
    reaction: int = Field(description="They only react to what was said.")
    question: int = Field(description="They ask, and tell nothing.")
    duplicate: int = Field(description="Their turn was known.")
    other: int = Field(description="They say nothing else to be kept.")


class StatementCounts(View):
    seen: int = Field(description="Sentences of the messages that were read.")
    kept: int = Field(description="Of these, those that a memory made by this job holds.")
    facts: int = Field(description="Of these, those that facts were found in.")
    left_out: LeftOut = Field(description="The rest, by why no new memory holds them.")


class IngestionResult(View):
    facts_extracted: int = Field(description="Claims found.")
    memories_created: int = Field(
        description="Memories stored, those of UPDATE and DELETE included."
    )
    memories_updated: int = Field(description="Memories superseded by another claim.")
    memories_invalidated: int = Field(description="Memories superseded because they hold no more.")
    skipped: int = Field(description="Statements that were known.")
    events: list[IngestionEvent] = Field(description="One per statement, in order.")
    statements: StatementCounts | None = Field(
        default=None, description="What became of the sentences."
    )
    entities: int = Field(description="Entities spoken of.")
    relationships: int = Field(description="Claims stored in the graph.")
    engine: Literal["rules", "llm"] = Field(description="Who found the facts.")
    degraded: list[str] | None = Field(
        default=None, description="What went wrong on the way; absent when nothing did."
    )


class Ingestion(View):
    job_id: str = Field(description="The job's id.")
    status: Literal["queued", "processing", "completed", "failed"] = Field(
        description="Where it stands."
    )
    status_url: str = Field(description="Where to ask again.")
    poll_url: str = Field(description="The same.")
    progress: float | None = Field(
        default=None, description="0 to 1; in the answer to a request that waited."
    )
    created_at: str | None = Field(default=None, description="When it was accepted (ISO 8601).")
    started_at: str | None = Field(default=None, description="When it began (ISO 8601).")
    finished_at: str | None = Field(default=None, description="When it ended (ISO 8601).")
    attempts: int | None = Field(default=None, description="Attempts so far.")
    result: IngestionResult | None = Field(default=None, description="What it did.")
    error: str | None = Field(default=None, description="Why it failed.")


class Undone(View):
    job_id: str = Field(description="The job.")
    deleted: int = Field(description="Memories it had created that are now deleted.")
    restored: int = Field(description="Memories it had superseded that hold again.")
    kept: list[str] = Field(
        description=(
            "Memories it had created that stay: those whose text was edited since, and the turns "
            "that these rest on."
        ),
    )


# --- handlers -------------------------------------------------------------------------------------


CARRIED = ("metadata", "tags", "expires_at")  # by each memory that is made of a conversation


def conversation_of(body: Any, now: int) -> Conversation:
    """What a request asks to have ingested: a ProcessBody, or a create with `infer`."""
    messages = (
        [("user", getattr(body, "speaker", None), body.content)] if body.messages is None else []
    )
    messages += [(said.role, said.name, said.content) for said in body.messages or ()]
    fields = {name: value for name in _SCOPES if (value := getattr(body, name, None)) is not None}
    if "run_id" in fields:
        fields.setdefault("session_id", fields["run_id"])
    fields |= {name: value for name in CARRIED if (value := getattr(body, name, None))}
    if body.messages is None and (role := getattr(body, "role", None)) is not None:
        fields["role"] = role  # which says how its memories count, not whether it is read
    return Conversation(
        messages=messages,
        occurred_at=now if body.occurred_at is None else body.occurred_at,
        fields=fields,
        collection_id=body.collection_id,
        instructions=getattr(body, "instructions", None),
        dry_run=getattr(body, "dry_run", False),
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request wants ingested. seconds: how long it waits for the result; salience_min: from
    which salience turns are kept.
    """

    conversation: Conversation
    seconds: float
    salience_min: float


def load_process(ctx: ReadContext, body: ProcessBody) -> Asked:
    require_collection(ctx, body.collection_id)
    wait = ctx.call.prefer.get("wait", "")
    seconds = min(float(wait), PROCESS_WAIT_SECONDS_MAX) if wait.isdecimal() else 0
    return asked(ctx, body, 0 if "respond-async" in ctx.call.prefer else seconds)


def asked(ctx: ReadContext, body: Any, seconds: float) -> Asked:
    """A ProcessBody, or a create with `infer`, whose request waits so many seconds."""
    salience_min = IngestionSettings.of(ctx.settings).salience_min
    return Asked(conversation_of(body, ctx.now), seconds, salience_min)


async def prepare_process(
    call: Call, loaded: Asked, models: Models
) -> tuple[Conversation, Prepared | None]:
    return loaded.conversation, await extract_in_time(loaded, models)


async def extract_in_time(asked: Asked, models: Models) -> Prepared | None:
    """As `extract`, or None when that takes longer than the request waits."""
    if not asked.seconds:
        return None
    try:
        async with asyncio.timeout(asked.seconds):
            return await extract(asked.conversation, models, asked.salience_min)
    except TimeoutError:
        return None


def process(ctx: WriteContext, body: ProcessBody) -> Reply:
    conversation, prepared = ctx.prepared
    if prepared is not None:
        return _job_reply(ctx, complete_now(ctx, prepared))
    return _job_reply(ctx, jobs.row(ctx, enqueue(ctx, conversation)))


def replay_process(ctx: ReadContext, body: ProcessBody, resource_id: str, call: Call) -> Reply:
    """A repeated request: its job, as it stands."""
    found = jobs.find(ctx, resource_id)
    if found is None:
        raise NotFound("The job this Idempotency-Key started is no longer kept.")
    return _job_reply(ctx, found[1])


def _job_reply(ctx: ReadContext, row: jobs.JobRow) -> Reply:
    url = f"/v1/memories/jobs/{row.id}"
    names = {"job_id": row.id, "status": row.status, "status_url": url, "poll_url": url}
    if row.status in (jobs.COMPLETED, jobs.FAILED):
        return Reply(200, {**job_view(ctx, row), **names}, {"Location": url}, resource_id=row.id)
    return Reply(
        202, names, {"Location": url, "Retry-After": str(RETRY_AFTER_SECONDS)}, resource_id=row.id
    )


def undo(ctx: WriteContext, body: None) -> dict[str, Any]:
    listed = tuple(job.name for job in ctx.registry.jobs.values() if job.listed)
    row = jobs.get(ctx, ctx.path["job_id"], listed)
    if row.name != PROCESS:
        raise Conflict(
            "Only a job that extracts memories can be undone. Delete what this one stored, such as "
            "memories by the ids that its request was answered with (bulk-delete)."
        )
    if row.status != jobs.COMPLETED:
        raise Conflict("Only a completed job can be undone.")
    events = row.result["events"]
    made = {
        event["memory_id"]
        for event in events
        if event["event"] != "NOOP" and event["memory_id"] is not None
    }
    made |= {event["merged_memory_id"] for event in events if event.get("merged_memory_id")}
    previous = {older for memory_id in made for _, older in ctx[SUCCESSORS].keys(memory_id)} - made
    kept = _edited(ctx, made)
    rows = [
        memory
        for memory_id in sorted(made - kept)
        if (memory := find_row(ctx, memory_id)) is not None
    ]
    superseded = {
        memory_id
        for memory_id in previous
        if (old := find_row(ctx, memory_id)) is not None and old.superseded
    }
    delete_memories(ctx, rows)
    for event in events:
        if event["event"] == "NOOP" and event["memory_id"] is not None:
            disown(ctx, event["memory_id"], row.id)
    restored = sum(
        (old := find_row(ctx, memory_id)) is not None and not old.superseded
        for memory_id in superseded
    )
    return {
        "job_id": row.id,
        "deleted": len(rows),
        "restored": restored,
        "kept": sorted(kept),
    }


def _edited(ctx: ReadContext, made: set[str]) -> set[str]:
    """Those of these memories whose text somebody has edited since they were made, and the turns
    that these rest on, with which they would go.
    """
    rows = [row for memory_id in made if (row := find_row(ctx, memory_id)) is not None]
    edited = [row for row in rows if row.content_version > 1]
    return {row.id for row in edited} | ({row.rests_on for row in edited if row.rests_on} & made)


# --- operations -----------------------------------------------------------------------------------

_JOB = "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"
_URL = f"/v1/memories/jobs/{_JOB}"
_EXAMPLE = {
    "messages": [{"role": "user", "name": "Ada", "content": "I moved from Lisbon to Oslo in May."}],
    "user_id": "ada",
    "occurred_at": "2026-05-20T09:00:00Z",
}
RESULT_EXAMPLE = {
    "facts_extracted": 2,
    "memories_created": 1,
    "memories_updated": 0,
    "memories_invalidated": 0,
    "skipped": 0,
    "events": [
        {
            "event": "ADD",
            "memory_id": EXAMPLE["id"],
            "memory": "I moved from Lisbon to Oslo in May.",
            "evidence": [
                {"source": 0, "start": 0, "end": 35, "quote": "I moved from Lisbon to Oslo in May."}
            ],
            "reason": "It is new.",
        }
    ],
    "statements": {
        "seen": 1,
        "kept": 1,
        "facts": 1,
        "left_out": {
            "greeting": 0,
            "acknowledgement": 0,
            "reaction": 0,
            "question": 0,
            "duplicate": 0,
            "other": 0,
        },
    },
    "entities": 3,
    "relationships": 2,
    "engine": "rules",
}

OPERATIONS = (
    Write(
        name="memories.process",
        method="POST",
        path="/v1/memories/process",
        load=load_process,
        prepare=prepare_process,
        remote=lambda call: "wait" in call.prefer,
        handler=process,
        resource=replay_process,
        body=ProcessBody,
        response=Ingestion,
        statuses=(202, 200),
        scope="write",
        idempotency=Idempotency.CANONICAL,
        credits=5,
        summary="Extract memories from a text or a conversation",
        description="Facts are deduplicated and conflicts resolved; what is replaced "
        "is superseded, never "
        "lost. Answers 202 with the job;"
        " with `Prefer: wait=N` 200 with its result, if it is done within N seconds.",
        example=_EXAMPLE,
        example_reply={"job_id": _JOB, "status": "queued", "status_url": _URL, "poll_url": _URL},
    ),
    Write(
        name="memories.jobs.undo",
        method="POST",
        path="/v1/memories/jobs/{job_id}/undo",
        handler=undo,
        response=Undone,
        scope="write",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Take back what an ingestion job stored",
        description=(
            "Deletes the memories it created, but for those whose text was edited since; what the "
            "deleted ones had superseded holds again."
        ),
        example_reply={"job_id": _JOB, "deleted": 1, "restored": 1, "kept": []},
    ),
)
