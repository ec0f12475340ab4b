"""The endpoints of memories that create none: read, list, change, delete, and look at jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from pyroaring import BitMap

from plugins.memories import create, importing
from plugins.memories.create import etag, memory_reply
from plugins.memories.exporting import version_view
from plugins.memories.filters import compile_filter, holds_whatever, is_wide
from plugins.memories.indexing import index_in_time, wait_seconds
from plugins.memories.job_views import job_views
from plugins.memories.limits import FILTER_NODES_MAX, FILTER_VALUES_MAX
from plugins.memories.listing import matching
from plugins.memories.models import (
    DELETE_ALL_CONFIRMATION,
    EXAMPLE,
    EXAMPLE_ID,
    IMPORTANCE_DEFAULT,
    AllDeleted,
    BulkDelete,
    BulkDeleted,
    DeleteAllQuery,
    Deleted,
    Doomed,
    JobQuery,
    Memory,
    MemoryJob,
    MemoryPatch,
    MemoryQuery,
    Version,
)
from plugins.memories.removal import (
    delete_memories,
    hide_all,
)
from plugins.memories.rows import (
    MEMORIES_CLEARED,
    MEMORY_FIELDS,
    SCOPES,
    Indexed,
    MemoryRow,
)
from plugins.memories.store import (
    get_row,
    memory_view,
    readable,
    rows_at,
    update_memory,
    versions,
)
from plugins.memories.times import within_times
from runtime.api import jobs
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Idempotency, Read, Reply, Write
from runtime.api.pagination import Page, PageQuery, envelope, example_page, newest_first, position
from runtime.errors import (
    BadRequest,
    NotFound,
    PermissionDenied,
    ValidationFailed,
)
from runtime.inference import Models

# What null means for fields that are never null themselves.
CLEARED = {"metadata": {}, "tags": [], "importance": IMPORTANCE_DEFAULT}


# --- reading --------------------------------------------------------------------------------------


def get(ctx: ReadContext, body: None) -> Reply:
    row = get_row(ctx, ctx.path["id"])
    return Reply(200, memory_view(row), {"ETag": etag(row)})


def list_memories(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked = ctx.query
    found = readable(ctx, asked, include_superseded=asked.include_superseded)
    fields = ctx.index(MEMORY_FIELDS)
    for name in ("tier", "tag"):
        value = getattr(asked, name)
        if value is not None:
            found &= fields.of(name, value)
    if asked.created_after is not None or asked.created_before is not None:
        after, before = asked.created_after, asked.created_before
        found = within_times(
            ctx,
            found,
            "created_at",
            None if after is None else after + 1,
            None if before is None else before - 1,
        )
    page, following = newest_first(ctx, found)
    rows = rows_at(ctx, page)
    return envelope(ctx, [memory_view(row) for row in rows], following, len(found))


def history(ctx: ReadContext, body: None) -> dict[str, Any]:
    row = get_row(ctx, ctx.path["id"])
    start = position(ctx)
    found = versions(ctx, row, 0 if start is None else start[0], ctx.query.limit + 1)
    page = found[: ctx.query.limit]
    items = [version_view(number, version) for number, version in page]
    return envelope(ctx, items, (page[-1][0],) if len(found) > len(page) else None, row.version)


# --- changing -------------------------------------------------------------------------------------


def load_patch(ctx: ReadContext, body: MemoryPatch) -> tuple[str | None, float]:
    """(speaker, seconds the write may wait); 0 seconds when there is nothing to index."""
    row = get_row(ctx, ctx.path["id"])
    ctx.call.check_match(row.version, "memory")
    rewritten = "content" in body.model_fields_set and body.content != row.content
    return row.speaker, wait_seconds(ctx, bool(body.wait_for_index)) if rewritten else 0.0


async def prepare_patch(
    call: Call, loaded: tuple[str | None, float], models: Models
) -> list[Indexed] | None:
    speaker, seconds = loaded
    return await index_in_time([(speaker, call.body.content)], seconds, models)


def patch(ctx: WriteContext, body: MemoryPatch) -> Reply:
    row = get_row(ctx, ctx.path["id"])
    ctx.call.check_match(row.version, "memory")
    sent = {name: getattr(body, name) for name in body.model_fields_set - {"wait_for_index"}}
    wanted = {name: CLEARED.get(name) if value is None else value for name, value in sent.items()}
    changes = {name: value for name, value in wanted.items() if _differ(value, getattr(row, name))}
    if not changes:
        return Reply(200, memory_view(row), {"ETag": etag(row)})
    indexed = ctx.prepared[0] if "content" in changes and ctx.prepared else None
    return memory_reply(update_memory(ctx, row, changes, indexed).rows[0], 200)


def _differ(one: Any, other: Any) -> bool:
    """Whether two values are written differently: as values, 1 and true would be the same."""
    if one != other:
        return True
    written, before = (msgspec.json.encode(each, order="deterministic") for each in (one, other))
    return written != before


# --- deleting -------------------------------------------------------------------------------------


def delete(ctx: WriteContext, body: None) -> dict[str, Any]:
    row = get_row(ctx, ctx.path["id"])
    ctx.call.check_match(row.version, "memory")
    delete_memories(ctx, [row])
    return {"id": row.id, "deleted": True}


def bulk_delete(ctx: WriteContext, body: BulkDelete) -> dict[str, Any]:
    doomed: dict[str, MemoryRow] = {}
    results = []
    for memory_id in body.ids:
        status = "not_found"
        try:
            row = get_row(ctx, memory_id)
            if row.id not in doomed:
                doomed[row.id], status = row, "deleted"
        except PermissionDenied:
            status = "forbidden"
        except NotFound:
            pass  # that is the answer
        results.append({"id": memory_id, "status": status})
    delete_memories(ctx, list(doomed.values()))
    return {
        "deleted": len(doomed),
        "not_found": sum(result["status"] == "not_found" for result in results),
        "results": results,
    }


def delete_matching(ctx: WriteContext, body: Doomed) -> dict[str, Any]:
    # Its transaction keeps other writes waiting, which reading memories would do for long.
    if is_wide(body.filters, FILTER_NODES_MAX, FILTER_VALUES_MAX):
        raise ValidationFailed.at(
            ("body", "filters"),
            "deletes by equality and times alone (eq, ne, in, nin); list what else is meant with "
            "POST /v1/memories/query, and delete it by its ids",
            "too_wide",
        )
    # Conditions are often put together by a program, and a list that stayed empty names nobody.
    if holds_whatever(compile_filter(ctx, body.filters, ("body", "filters"))):
        raise ValidationFailed.at(
            ("body", "filters"),
            "holds for every memory, as an empty list of conditions does; say which are meant, or "
            "delete all of them with DELETE /v1/memories/all",
            "too_wide",
        )
    doomed = matching(ctx, body, include_superseded=True)
    if doomed:
        hide_all(ctx, doomed)
    _tell_cleared(ctx, body, body.filters)
    return {"deleted": len(doomed)}


def delete_all(ctx: WriteContext, body: None) -> dict[str, Any]:
    if ctx.query.confirm != DELETE_ALL_CONFIRMATION:
        raise BadRequest(
            f"This deletes many memories at once: confirm with ?confirm={DELETE_ALL_CONFIRMATION}.",
            param="confirm",
        )
    doomed = readable(ctx, ctx.query, include_superseded=True)
    if doomed:
        hide_all(ctx, doomed)
    _tell_cleared(ctx, ctx.query, {})
    return {"deleted": len(doomed)}


def _tell_cleared(
    ctx: WriteContext, asked: Doomed | DeleteAllQuery, filters: dict[str, Any]
) -> None:
    scopes = {name: getattr(asked, name) for name in SCOPES}
    cleared = {"collection_id": asked.collection_id, "scopes": scopes, "filters": filters}
    ctx.emit(MEMORIES_CLEARED, cleared, "")


# --- jobs -----------------------------------------------------------------------------------------


def _listed(ctx: ReadContext) -> tuple[str, ...]:
    """The jobs, of whatever plugin, that an account finds here."""
    return tuple(job.name for job in ctx.registry.jobs.values() if job.listed)


def get_job(ctx: ReadContext, body: None) -> dict[str, Any]:
    return _jobs(ctx, [jobs.get(ctx, ctx.path["job_id"], _listed(ctx))])[0]


def _jobs(ctx: ReadContext, rows: Sequence[jobs.JobRow]) -> list[dict[str, Any]]:
    views = zip(rows, job_views(ctx, rows), strict=True)
    return [{"job_id": row.id, "kind": row.name, **view} for row, view in views]


def list_jobs(ctx: ReadContext, body: None) -> dict[str, Any]:
    fields = ctx.index(jobs.JOB_FIELDS)
    found: BitMap = fields.any_of("name", _listed(ctx))
    if ctx.query.status is not None:
        found &= fields.of("status", ctx.query.status)
    page, following = newest_first(ctx, found)
    rows = ctx[jobs.JOBS].rows([(ordinal,) for ordinal in page])
    return envelope(ctx, _jobs(ctx, rows), following, len(found))


# --- the plugin -----------------------------------------------------------------------------------

_JOB = "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"
_JOB_EXAMPLE = {
    "job_id": _JOB,
    "kind": "memories.index",
    "status": "completed",
    "progress": 1.0,
    "created_at": "2026-05-08T13:56:00.000Z",
    "started_at": "2026-05-08T13:56:00.400Z",
    "finished_at": "2026-05-08T13:56:00.900Z",
    "attempts": 1,
    "result": {"indexed": 3, "skipped": 0},
    "error": None,
}

OPERATIONS = (
    *create.OPERATIONS,
    importing.IMPORT,
    Read(
        name="memories.list",
        method="GET",
        path="/v1/memories",
        handler=list_memories,
        query=MemoryQuery,
        response=Page[Memory],
        summary="List memories",
        description="Newest first, without superseded ones unless asked for.",
        example_reply=example_page(EXAMPLE),
    ),
    Read(
        name="memories.get",
        method="GET",
        path="/v1/memories/{id}",
        handler=get,
        response=Memory,
        summary="Get a memory",
        description="The ETag is its version.",
        example_reply=EXAMPLE,
    ),
    Read(
        name="memories.history",
        method="GET",
        path="/v1/memories/{id}/history",
        handler=history,
        query=PageQuery,
        response=Page[Version],
        summary="List a memory's versions",
        description="Oldest first, the current one last.",
        example_reply=example_page(
            {
                "version": 1,
                "event": "ADD",
                "content": EXAMPLE["content"],
                "importance": 0.5,
                "metadata": {"channel": "chat"},
                "at": "2026-05-08T13:56:00.000Z",
                "actor": "key_06a1kz0c9j3s5d7p9f1w3y5a7c9e2g4h",
                "reason": None,
            }
        ),
    ),
    Write(
        name="memories.update",
        method="PATCH",
        path="/v1/memories/{id}",
        load=load_patch,
        prepare=prepare_patch,
        handler=patch,
        body=MemoryPatch,
        response=Memory,
        statuses=(200, 202),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        summary="Change a memory",
        description=(
            "Absent fields stay, null clears. New content is indexed again; until then (202) "
            "neither old nor new text is found. With If-Match, another version than the named one "
            "is 412."
        ),
        conditional=True,
        example={"content": "I moved to Porto in March.", "importance": 0.8},
        example_reply={
            **EXAMPLE,
            "content": "I moved to Porto in March.",
            "importance": 0.8,
            "version": 2,
        },
    ),
    Write(
        name="memories.delete",
        method="DELETE",
        path="/v1/memories/{id}",
        handler=delete,
        response=Deleted,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Delete a memory",
        description=(
            "With its history and all that was derived from it. Again is 404. With If-Match, "
            "another version than the named one is 412."
        ),
        conditional=True,
        example_reply={"id": EXAMPLE_ID, "deleted": True},
    ),
    Write(
        name="memories.bulk_delete",
        method="POST",
        path="/v1/memories/bulk-delete",
        handler=bulk_delete,
        body=BulkDelete,
        response=BulkDeleted,
        scope="write",
        rate="batch",
        idempotency=Idempotency.CACHED,
        summary="Delete up to 500 memories by their ids",
        description="One transaction, with a result for each id.",
        example={"ids": [EXAMPLE_ID]},
        example_reply={
            "deleted": 1,
            "not_found": 0,
            "results": [{"id": EXAMPLE_ID, "status": "deleted"}],
        },
    ),
    Write(
        name="memories.delete_matching",
        method="POST",
        path="/v1/memories/delete-matching",
        handler=delete_matching,
        body=Doomed,
        response=AllDeleted,
        scope="write",
        rate="batch",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Delete the memories that pass a filter",
        description=(
            "However many there are, in one transaction: none can be read from now on, and the "
            "rest is swept later. Superseded ones are deleted too. Takes conditions of equality "
            "and times."
        ),
        example={"filters": {"AND": [{"user_id": "ada"}, {"tags": "draft"}]}},
        example_reply={"deleted": 12},
    ),
    Write(
        name="memories.delete_all",
        method="DELETE",
        path="/v1/memories/all",
        handler=delete_all,
        query=DeleteAllQuery,
        response=AllDeleted,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Delete all memories, or all that pass the filters",
        description=(
            f"Needs `confirm={DELETE_ALL_CONFIRMATION}`, else 400. None can be read from now on; "
            "the rest is swept later. Texts that still wait to be processed and pass the filters "
            "go, too: their jobs fail."
        ),
        example_reply={"deleted": 12},
    ),
    Read(
        name="memories.jobs.list",
        method="GET",
        path="/v1/memories/jobs",
        handler=list_jobs,
        query=JobQuery,
        response=Page[MemoryJob],
        summary="List indexing and ingestion jobs",
        example_reply=example_page(_JOB_EXAMPLE),
    ),
    Read(
        name="memories.jobs.get",
        method="GET",
        path="/v1/memories/jobs/{job_id}",
        aliases=("/v1/memory-jobs/{job_id}",),
        handler=get_job,
        response=MemoryJob,
        summary="Poll an indexing or ingestion job",
        example_reply=_JOB_EXAMPLE,
    ),
)
