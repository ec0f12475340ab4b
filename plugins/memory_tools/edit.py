"""Memory tools: what an agent is given to edit its own memory (beta).

Three verbs over memories, which plugins/memories/__init__.py owns:

    insert   remember a text; takes what POST /v1/memories/raw takes
    replace  put a new text in the place of the old one, provided the memory still holds exactly the
             old one; else 409, since the agent then edits something it has not read
    rethink  index a memory afresh: the text stays and makes no new version, what searches know of
             it is made again

A collection_id beside a memory_id is a check: the memory must be in that collection, else 404.
"""

from __future__ import annotations

from pydantic import Field, StrictBool

from plugins.collections import CollectionId, require_collection
from plugins.memories import (
    CREATE_RAW,
    EXAMPLE,
    Content,
    Indexed,
    Memory,
    MemoryId,
    MemoryRow,
    get_row,
    index_again,
    index_in_time,
    memory_reply,
    update_memory,
    wait_seconds,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Call, Idempotency, Reply, Write
from runtime.errors import Conflict, NotFound
from runtime.inference import Models


class Rethink(Body):
    memory_id: MemoryId
    collection_id: CollectionId | None = Field(
        default=None, description="Where the memory must be."
    )
    wait_for_index: StrictBool = Field(
        default=False, description="Wait up to 30 seconds for it to be searchable."
    )


class Replace(Rethink):
    old_content: str = Field(description="The memory's whole text, as the agent knows it.")
    new_content: Content


Loaded = tuple[
    tuple[str | None, str], float
]  # (speaker, content to index), seconds the write may wait


def _row(ctx: ReadContext, body: Rethink) -> MemoryRow:
    row = get_row(ctx, body.memory_id)
    if (
        body.collection_id is not None
        and require_collection(ctx, body.collection_id).id != row.collection_id
    ):
        raise NotFound("There is no memory with this id in this collection.")
    return row


def _row_to_replace(ctx: ReadContext, body: Replace) -> MemoryRow:
    row = _row(ctx, body)
    if row.content != body.old_content:
        raise Conflict(
            "The memory no longer holds old_content. Read it again and repeat the change.",
            param="old_content",
        )
    return row


def load_replace(ctx: ReadContext, body: Replace) -> Loaded:
    row = _row_to_replace(ctx, body)
    seconds = wait_seconds(ctx, body.wait_for_index) if body.new_content != row.content else 0.0
    return (row.speaker, body.new_content), seconds


def load_rethink(ctx: ReadContext, body: Rethink) -> Loaded:
    row = _row(ctx, body)
    return (row.speaker, row.content), wait_seconds(ctx, body.wait_for_index)


async def prepare_one(call: Call, loaded: Loaded, models: Models) -> tuple[str, Indexed | None]:
    """(the content that was indexed, its index or None when it was not ready in time)."""
    text, seconds = loaded
    indexed = await index_in_time([text], seconds, models)
    return text[1], indexed[0] if indexed else None


def replace(ctx: WriteContext, body: Replace) -> Reply:
    row = _row_to_replace(ctx, body)
    if body.new_content == row.content:
        return memory_reply(row, 200)
    return memory_reply(
        update_memory(ctx, row, {"content": body.new_content}, ctx.prepared[1]).rows[0], 200
    )


def rethink(ctx: WriteContext, body: Rethink) -> Reply:
    row = _row(ctx, body)
    content, indexed = ctx.prepared
    # The text may have changed while it was indexed; its own write sees to its index then.
    if content != row.content:
        return memory_reply(row, 200)
    return memory_reply(index_again(ctx, row, indexed).rows[0], 200)


OPERATIONS = (
    Write(
        name="memory_tools.insert",
        method="POST",
        path="/v1/memory-tools/insert",
        load=CREATE_RAW.load,
        prepare=CREATE_RAW.prepare,
        handler=CREATE_RAW.handler,
        resource=CREATE_RAW.resource,
        body=CREATE_RAW.body,
        response=Memory,
        statuses=(201, 202),
        scope="write",
        idempotency=Idempotency.CANONICAL,
        credits=1,
        stability="beta",
        summary="Remember a text",
        example={"content": EXAMPLE["content"], "importance": 0.5},
        example_reply=EXAMPLE,
    ),
    Write(
        name="memory_tools.replace",
        method="POST",
        path="/v1/memory-tools/replace",
        load=load_replace,
        prepare=prepare_one,
        handler=replace,
        body=Replace,
        response=Memory,
        statuses=(200, 202),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        stability="beta",
        summary="Replace a memory's text, if it is still the one the agent knows",
        description="Compares old_content with the whole text; 409 when they differ.",
        example={
            "memory_id": EXAMPLE["id"],
            "old_content": EXAMPLE["content"],
            "new_content": "I moved to Porto in March.",
        },
        example_reply={**EXAMPLE, "content": "I moved to Porto in March.", "version": 2},
    ),
    Write(
        name="memory_tools.rethink",
        method="POST",
        path="/v1/memory-tools/rethink",
        load=load_rethink,
        prepare=prepare_one,
        handler=rethink,
        body=Rethink,
        response=Memory,
        statuses=(200, 202),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        stability="beta",
        summary="Index a memory afresh",
        description="The text and the version stay; its terms, cues and vector are made again.",
        example={"memory_id": EXAMPLE["id"]},
        example_reply=EXAMPLE,
    ),
)
