"""Storing memories by the thousand: lines in, an outcome for each line out, while it goes on.

The lines go, a hundred at a time and one hundred after the other, through the same create as a
batch, each in a transaction of its own that charges for it: so memories are in the order of their
lines, and an import that is broken off has stored, and cost, what it has answered for, and perhaps
the hundred that was under way.

Choices:
- Each line stands for itself: one that is no memory fails alone. But a body with a line that is no
  JSON object at all is refused before anything is stored, since it was cut or is something else.
- A line that names another account's collection fails those that are stored together with it.
- It stops where going on would fail the same way: the account has no room, or the service is busy
  or going down. The summary says so, and the lines from there on have no outcome.
- Under an Idempotency-Key it is resumed by sending the same lines again: what is stored already is
  answered for and not stored, or charged, again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

import orjson
from pydantic import Field, ValidationError

from plugins.memories import limits
from plugins.memories.create import CREATE_BATCH
from plugins.memories.models import EXAMPLE, EXAMPLE_ID, Batch, ItemError, RawMemory, Status
from runtime.api.context import WriteContext
from runtime.api.findings import failed
from runtime.api.loop_steps import in_steps
from runtime.api.operation import Body, Call, Flow, Idempotency, Reply, View
from runtime.errors import ApiError
from runtime.inference import Models

NDJSON = "application/x-ndjson"
CREATED, FAILED = "created", "failed"
_OF_THE_LINES = (403, 404, 422)  # any other refusal would meet the next lines, too
_NO_ROOM = "quota_exceeded"
_TOLD = ("status", "id", "processing_status", "error")


class ImportedLines(Body):
    lines_field: ClassVar[str] = "memories"
    memories: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=limits.IMPORT_LINES_MAX,
        description="The memories, each as in `POST /v1/memories/raw`.",
    )


class ImportSummary(View):
    lines: int = Field(description="Lines that were sent.")
    created: int = Field(description="Memories stored.")
    failed: int = Field(description="Lines that are no memory, or cannot be one.")
    error: ItemError | None = Field(
        description=(
            "Why it stopped before the end: lines without an outcome are to be sent again, with "
            "all others and the same key. null when every line has one."
        )
    )


class LineOutcome(View):
    """A line of the answer: what became of a line, or, as the last one, the summary."""

    line: int | None = Field(
        default=None, description="The line's number, from 1; empty lines are not counted."
    )
    status: str | None = Field(default=None, description="`created` or `failed`.")
    id: str | None = Field(default=None, description="The memory's id; null when it failed.")
    processing_status: Status | None = Field(
        default=None, description="`completed` when it is searchable."
    )
    error: ItemError | None = Field(default=None, description="Why it failed.")
    summary: ImportSummary | None = Field(default=None, description="On the last line alone.")


async def import_lines(call: Call, steps: Any, models: Models | None) -> Reply:
    """The first hundred is stored before the answer begins, so that a refusal is a refusal."""
    lines = call.body.memories
    first = await _store(lines, 0, steps)
    reply = Reply(200, content_type=NDJSON)
    reply.body = _stored(lines, first, steps, reply)
    return reply


async def _stored(
    lines: Sequence[dict[str, Any]], first: list[dict[str, Any]], steps: Any, reply: Reply
) -> AsyncIterator[bytes]:
    counts, outcomes = {CREATED: 0, FAILED: 0}, first
    error: dict[str, Any] | None = None
    for start in range(0, len(lines), limits.BATCH_ITEMS_MAX):
        if start:
            try:
                outcomes = await _store(lines, start, steps)
            except ApiError as stopped:
                reply.error, error = stopped, _error(stopped)
                break
        for outcome in outcomes:
            counts[outcome["status"]] += 1
        yield b"".join(orjson.dumps(outcome) + b"\n" for outcome in outcomes)
    yield orjson.dumps({"summary": {"lines": len(lines), **counts, "error": error}}) + b"\n"


async def _store(lines: Sequence[dict[str, Any]], first: int, steps: Any) -> list[dict[str, Any]]:
    """Store the hundred that begins there; -> their outcomes. Raises the ApiError that would refuse
    the next, too: then nobody knows whether these are stored, but a repeat finds out.
    """
    outcomes: list[dict[str, Any]] = []
    memories: list[RawMemory] = []
    waiting: list[dict[str, Any]] = []  # of the outcomes: what is a memory
    async for number, line in in_steps(
        enumerate(lines[first : first + limits.BATCH_ITEMS_MAX], first + 1)
    ):
        outcomes.append({"line": number})
        try:
            memories.append(RawMemory.model_validate(line))
            waiting.append(outcomes[-1])
        except ValidationError as invalid:
            outcomes[-1] |= _failure(failed(invalid, line))
    if not memories:
        return outcomes
    try:
        results = (await steps.run(CREATE_BATCH.name, Batch(memories=memories)))["results"]
    except ApiError as refused:
        if refused.status not in _OF_THE_LINES or refused.code == _NO_ROOM:
            raise
        for outcome in waiting:
            outcome |= _failure(refused)
        return outcomes
    for outcome, result in zip(waiting, results, strict=True):
        outcome |= {name: result[name] for name in _TOLD if name in result}
    return outcomes


def _failure(why: ApiError) -> dict[str, Any]:
    return {"status": FAILED, "id": None, "processing_status": FAILED, "error": _error(why)}


def _error(why: ApiError) -> dict[str, Any]:
    return {"code": why.code or why.type, "message": why.message}


def settle(ctx: WriteContext, body: ImportedLines) -> None:
    """Charge nothing more: each part has cost what it stored."""
    ctx.credits = 0


IMPORT = Flow(
    name="memories.import",
    method="POST",
    path="/v1/memories/import",
    handler=import_lines,
    finish=settle,
    credits=lambda body: len(body.memories),
    body=ImportedLines,
    response=LineOutcome,
    produces=NDJSON,
    scope="write",
    rate="batch",
    idempotency=Idempotency.CACHED,
    summary="Create memories by the thousand",
    description=(
        "The memories as application/x-ndjson, one a line, or as `memories`. The answer is "
        "application/x-ndjson, too, and comes while they are stored: an outcome for each line, in "
        "order, and a summary as the last. They are stored a hundred at a time. An answer without "
        "a summary was broken off, and one whose summary has an `error` stopped: with an "
        "Idempotency-Key it goes on when the same lines are sent again, and what is stored already "
        "is not stored, or charged, again. A body with a line that is no JSON object is refused as "
        "a whole. Costs 1 credit per memory."
    ),
    example={"memories": [{name: EXAMPLE[name] for name in ("content", "user_id", "tags")}]},
    example_reply={
        "line": 1,
        "status": CREATED,
        "id": EXAMPLE_ID,
        "processing_status": "completed",
    },
)
