"""The audit: what of an account's memories could be tidied, and merging what is double (beta).

Looks at the newest AUDIT_MEMORIES_MAX memories of a scope and reports groups of near duplicates
(the same words, or vectors closer than `similarity`), memories that are stale (archived, or old and
never used) and how many were never used. It changes nothing.

Merging keeps one memory and supersedes the others by it (plugins/ingestion/duplicates.py);
ingestion does so by itself. The list of what a memory stands for is its record, the history of each
of them says when and why, and `restore` undoes it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from plugins.ingestion import duplicates as fact_merging
from plugins.ingestion.limits import AUDIT_MEMORIES_MAX, MERGED_MEMORIES_MAX
from plugins.memories import (
    BATCH_ITEMS_MAX,
    EXAMPLE,
    MEMORY_VECTORS,
    Filters,
    Memory,
    MemoryId,
    MemoryRow,
    Spaces,
    find_rows_at,
    get_row,
    memory_view,
    readable,
    restore,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Idempotency, Read, View, Write
from runtime.api.pagination import Page, PageQuery, envelope, example_page, position
from runtime.errors import BadRequest, Conflict
from runtime.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX
from runtime.timestamps import DAY_MS, iso
from storage.indexes import ordinals_of

SIMILARITY_DEFAULT = 0.95


class AuditQuery(Filters):
    similarity: float = Field(
        default=SIMILARITY_DEFAULT,
        ge=0.5,
        le=1,
        description="Cosine from which two memories are near duplicates.",
    )
    stale_days: int = Field(
        default=180,
        ge=1,
        le=36_500,
        description="Days after which a memory that was never used is stale.",
    )
    limit: int = Field(
        default=PAGE_ITEMS_DEFAULT,
        ge=1,
        le=PAGE_ITEMS_MAX,
        description="At most so many groups, and so many stale memories.",
    )


class DuplicateGroup(View):
    keep: str = Field(description="The one to keep: the oldest.")
    duplicates: list[str] = Field(description="The others.")
    content: str = Field(description="Text of the one to keep.")
    similarity: float = Field(description="Least cosine between the one to keep and another.")


class StaleMemory(View):
    id: str = Field(description="The memory's id.")
    content: str = Field(description="Its text.")
    reason: Literal["archived", "never_used"] = Field(description="Why it is stale.")
    created_at: str = Field(description="When it was stored (ISO 8601).")


class Audit(View):
    examined: int = Field(description="Memories looked at, the newest of the scope.")
    duplicates: list[DuplicateGroup] = Field(description="Groups of near duplicates.")
    stale: list[StaleMemory] = Field(
        description="Memories that nothing has used for long, oldest first."
    )
    never_used: int = Field(description="Memories no search has returned.")


class Merge(Body):
    keep: MemoryId
    duplicates: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, max_length=BATCH_ITEMS_MAX, description="Memories that say the same."
    )


class Merged(View):
    keep: str = Field(description="The memory that stays.")
    superseded: list[str] = Field(description="Memories it now stands for.")


def audit(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked: AuditQuery = ctx.query
    found = readable(ctx, asked)
    ordinals = ordinals_of(found[-AUDIT_MEMORIES_MAX:])
    rows = find_rows_at(ctx, ordinals)
    oldest = ctx.now - asked.stale_days * DAY_MS
    unused = [row for row in rows if not row.access_count]
    stale = [(row, "archived") for row in rows if row.tier == "archived"]
    stale += [
        (row, "never_used") for row in unused if row.created_at < oldest and row.tier != "archived"
    ]
    return {
        "examined": len(rows),
        "duplicates": _groups(ctx, rows, asked.similarity)[: asked.limit],
        "stale": [
            {
                "id": row.id,
                "content": row.content,
                "reason": reason,
                "created_at": iso(row.created_at),
            }
            for row, reason in sorted(stale, key=lambda item: item[0].ordinal)[: asked.limit]
        ],
        "never_used": len(unused),
    }


def _groups(ctx: ReadContext, rows: list[MemoryRow], similarity: float) -> list[dict[str, Any]]:
    """Near duplicates among rows in order of arrival: each later one goes to the oldest it is near
    to.
    """
    groups: dict[int, list[tuple[MemoryRow, float]]] = {}
    in_use = Spaces.in_use(ctx)
    for space in sorted({in_use or row.space for row in rows if row.space}):
        members = [row for row in rows if row.space and (in_use or row.space) == space]
        vectors, there = ctx.index(MEMORY_VECTORS).get_many(
            space, np.array([row.ordinal for row in members], np.uint32)
        )
        near = vectors @ vectors.T
        taken: set[int] = set()
        for place, row in enumerate(members):
            if place in taken or not there[place]:
                continue
            alike = [
                other
                for other in np.flatnonzero(near[place] >= similarity).tolist()
                if other > place and other not in taken
            ]
            alike = [
                other
                for other in alike
                if there[other]
                and (members[other].number, members[other].user_id) == (row.number, row.user_id)
            ]
            taken.update(alike)
            if alike:
                groups[row.ordinal] = [
                    (members[other], float(near[place][other])) for other in alike
                ]
    by_ordinal = {row.ordinal: row for row in rows}
    return [
        {
            "keep": by_ordinal[ordinal].id,
            "duplicates": [row.id for row, _ in alike],
            "content": by_ordinal[ordinal].content,
            "similarity": round(min(1.0, min(cosine for _, cosine in alike)), 4),
        }
        for ordinal, alike in sorted(groups.items())
    ]


def merge(ctx: WriteContext, body: Merge) -> dict[str, Any]:
    keep = get_row(ctx, body.keep)
    if keep.superseded:
        raise Conflict("The memory to keep is superseded itself; restore it first.", param="keep")
    done = []
    for memory_id in dict.fromkeys(body.duplicates):
        row = get_row(ctx, memory_id)
        if row.id == keep.id:
            raise BadRequest("A memory cannot be merged into itself.", param="duplicates")
        if not row.superseded:
            if not fact_merging.has_room(ctx, keep):
                raise Conflict(
                    f"A memory stands for {MERGED_MEMORIES_MAX} others at most.", param="duplicates"
                )
            fact_merging.merge(ctx, row, keep, "on request", asked=True)
            done.append(row.id)
    return {"keep": keep.id, "superseded": done}


def bring_back(ctx: WriteContext, body: None) -> dict[str, Any]:
    row = get_row(ctx, ctx.path["id"])
    if not row.superseded:
        raise Conflict("This memory is not superseded.")
    fact_merging.undo(ctx, row)
    return memory_view(restore(ctx, row, reason="restored", asked=True))


def merged(ctx: ReadContext, body: None) -> dict[str, Any]:
    keep, start, limit = get_row(ctx, ctx.path["id"]), position(ctx), ctx.query.limit
    rows = fact_merging.merged_into(ctx, keep)
    left = rows if start is None else [row for row in rows if row.id > start[0]]
    page = left[:limit]
    return envelope(
        ctx,
        [memory_view(row) for row in page],
        (page[-1].id,) if len(left) > limit else None,
        len(rows),
    )


_OTHER = "mem_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"

OPERATIONS = (
    Read(
        name="memories.audit",
        method="GET",
        path="/v1/memories/audit",
        handler=audit,
        heavy=True,
        query=AuditQuery,
        response=Audit,
        stability="beta",
        summary="Report duplicates, stale and unused memories",
        description="Of the newest memories of the scope. Changes nothing.",
        example_reply={
            "examined": 120,
            "duplicates": [
                {
                    "keep": EXAMPLE["id"],
                    "duplicates": [_OTHER],
                    "content": EXAMPLE["content"],
                    "similarity": 0.98,
                }
            ],
            "stale": [],
            "never_used": 3,
        },
    ),
    Write(
        name="memories.merge",
        method="POST",
        path="/v1/memories/merge",
        handler=merge,
        body=Merge,
        response=Merged,
        errors=(404,),
        scope="write",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Let one memory stand for its near duplicates",
        description=(
            "The duplicates are superseded by the one that is kept; restoring one of them undoes "
            "it. Ingestion merges by itself."
        ),
        example={"keep": EXAMPLE["id"], "duplicates": [_OTHER]},
        example_reply={"keep": EXAMPLE["id"], "superseded": [_OTHER]},
    ),
    Read(
        name="memories.merged",
        method="GET",
        path="/v1/memories/{id}/merged",
        handler=merged,
        query=PageQuery,
        response=Page[Memory],
        stability="beta",
        summary="List the near duplicates that a memory stands for",
        description=(
            "Merged by ingestion or on request, by id; the history of each says when and why."
        ),
        example_reply=example_page(
            {
                **EXAMPLE,
                "id": _OTHER,
                "conflict_status": "superseded",
                "superseded_by_id": EXAMPLE["id"],
            }
        ),
    ),
    Write(
        name="memories.restore",
        method="POST",
        path="/v1/memories/{id}/restore",
        handler=bring_back,
        response=Memory,
        scope="write",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Bring a superseded memory back",
        description="409 when it is not superseded.",
        example_reply=EXAMPLE,
    ),
)
