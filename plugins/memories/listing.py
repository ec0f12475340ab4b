"""Lists of memories beyond the plain one: by a condition of the filter language, whose memories
there are, and which values a field has (beta).

    POST /v1/memories/query    memories that pass a filter, newest first, from any offset on
    POST /v1/memories/values   the values of a field among those that pass a filter, the most
                               frequent first
    GET  /v1/memories/scopes   the end users, agents, applications and runs that have memories, the
                               latest to appear first

Offsets suit pages that are numbered. A list that goes on while writes do is read by the cursor of
GET /v1/memories. Names stand in the index as digests; the oldest memory of each tells what it is.
Of which metadata a digest is, it does not tell: values of metadata, and tags, are read from the
memories themselves.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool
from pydantic_core import PydanticCustomError
from pyroaring import BitMap

from plugins.memories.filters import NAMES, TEXTS, Facet, compile_filter, is_wide
from plugins.memories.limits import LIST_OFFSET_MAX, LISTED_SCOPES_MAX, LISTED_VALUES_MAX
from plugins.memories.models import EXAMPLE, Doomed, Memory, Scoped
from plugins.memories.rows import MEMORY_FIELDS
from plugins.memories.store import memory_view, readable, rows_at
from runtime.api.context import ReadContext
from runtime.api.operation import Query, Read, View
from runtime.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX
from runtime.timestamps import iso
from storage.indexes import AllOf

SCOPE_KINDS = ("user", "agent", "app", "run")


class Matching(Scoped):
    """Which memories a request is about."""

    session_id: str | None = Field(default=None, min_length=1, description="Only this session.")
    filters: dict[str, Any] | None = Field(
        default=None, description="Conditions on fields, with AND, OR and NOT, as in a search."
    )
    include_superseded: StrictBool = Field(
        default=False, description="Include memories that newer ones have superseded."
    )


class MemoriesQuery(Matching):
    limit: int = Field(
        default=PAGE_ITEMS_DEFAULT,
        strict=True,
        ge=1,
        le=PAGE_ITEMS_MAX,
        description="At most so many memories.",
    )
    offset: int = Field(
        default=0, strict=True, ge=0, le=LIST_OFFSET_MAX, description="Skip so many."
    )


class MemoriesFound(View):
    items: list[Memory] = Field(description="Newest first.")
    total_count: int = Field(description="How many memories match.")


def _countable(name: str) -> str:
    if not Facet.exists(name):
        raise PydanticCustomError(
            "unknown_field",
            "The values of this field are not counted; use {fields}.",
            {"fields": ", ".join(Facet.ALL)},
        )
    return name


class ValuesQuery(Matching):
    field: Annotated[str, AfterValidator(_countable)] = Field(
        description=f"Whose values: {', '.join(Facet.ALL)}."
    )
    limit: int = Field(
        default=PAGE_ITEMS_MAX,
        strict=True,
        ge=1,
        le=LISTED_VALUES_MAX,
        description="At most so many values.",
    )
    offset: int = Field(
        default=0, strict=True, ge=0, le=LIST_OFFSET_MAX, description="Skip so many."
    )


class ValueFound(View):
    value: str | bool | int | float | None = Field(description="A value of the field.")
    count: int = Field(description="Memories that have it.")


class ValuesFound(View):
    items: list[ValueFound] = Field(
        description="The most frequent first; of equally frequent ones, the first to appear."
    )
    total_count: int = Field(description="How many distinct values there are.")


class ScopesQuery(Query):
    kind: Literal["user", "agent", "app", "run"] | None = Field(
        default=None, description="Only this kind."
    )
    limit: int = Field(
        default=PAGE_ITEMS_MAX, ge=1, le=LISTED_SCOPES_MAX, description="At most so many."
    )
    offset: int = Field(default=0, ge=0, le=LIST_OFFSET_MAX, description="Skip so many.")


class ScopeFound(View):
    kind: Literal["user", "agent", "app", "run"] = Field(
        description="What it names: `user` stands for user_id, and so on."
    )
    name: str = Field(description="The name that its memories were given.")
    memory_count: int = Field(description="Memories that can be read now, superseded ones aside.")
    first_memory_at: str = Field(description="When the oldest of them was stored (ISO 8601).")
    last_memory_at: str = Field(description="When the newest of them was stored (ISO 8601).")


class ScopesFound(View):
    items: list[ScopeFound] = Field(description="The latest to appear first.")
    total_count: int = Field(description="How many there are.")


def matching(ctx: ReadContext, asked: Matching | Doomed, *, include_superseded: bool) -> BitMap:
    """Ordinals of the memories that a request is about. Raises ValidationFailed for its filters,
    CollectionNotFound and PermissionDenied.
    """
    found = readable(ctx, asked, include_superseded=include_superseded)
    if not asked.filters:
        return found
    compiled = compile_filter(ctx, asked.filters, ("body", "filters"))
    return AllOf(compiled).evaluate(ctx.index(MEMORY_FIELDS), found)


def query(ctx: ReadContext, body: MemoriesQuery) -> dict[str, Any]:
    found = matching(ctx, body, include_superseded=body.include_superseded)
    first = len(found) - body.offset
    ordinals = [found[place] for place in range(first - 1, max(first - body.limit, 0) - 1, -1)]
    rows = rows_at(ctx, ordinals)
    return {"items": [memory_view(row) for row in rows], "total_count": len(found)}


def values(ctx: ReadContext, body: ValuesQuery) -> dict[str, Any]:
    within = matching(ctx, body, include_superseded=body.include_superseded)
    facet = Facet(body.field)
    part = slice(body.offset, body.offset + body.limit)
    if body.field != "tags" and body.field in (*NAMES, *TEXTS):  # a memory has one at most
        each = ctx.index(MEMORY_FIELDS).each(NAMES.get(body.field, body.field))
        holders = [own for _, ordinals in each if (own := ordinals & within)]
        holders.sort(key=lambda own: (-len(own), own.min()))
        oldest = rows_at(ctx, [own.min() for own in holders[part]])
        named = [value for row in oldest for value in facet.values(row)]
        found = list(zip(named, map(len, holders[part]), strict=True))
        total = len(holders)
    else:
        every = facet.counted(row for ordinal in within for row in rows_at(ctx, [ordinal]))
        found = sorted(every, key=lambda counted: -counted[1])[part]
        total = len(every)
    items = [{"value": value, "count": count} for value, count in found]
    return {"items": items, "total_count": total}


def scopes(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked: ScopesQuery = ctx.query
    live, fields = readable(ctx), ctx.index(MEMORY_FIELDS)
    kinds = SCOPE_KINDS if asked.kind is None else (asked.kind,)
    members = (
        (kind, ordinals & live) for kind in kinds for _, ordinals in fields.each(f"{kind}_id")
    )
    found = sorted(
        ((own.min(), kind, own.max(), len(own)) for kind, own in members if own),
        key=lambda entry: (-entry[0], SCOPE_KINDS.index(entry[1])),
    )
    items = []
    for oldest, kind, newest, count in found[asked.offset : asked.offset + asked.limit]:
        first, last = rows_at(ctx, (oldest, newest))
        times = {"first_memory_at": iso(first.created_at), "last_memory_at": iso(last.created_at)}
        items.append(
            {"kind": kind, "name": getattr(first, f"{kind}_id"), "memory_count": count, **times}
        )
    return {"items": items, "total_count": len(found)}


OPERATIONS = (
    Read(
        name="memories.query",
        method="POST",
        path="/v1/memories/query",
        handler=query,
        heavy=lambda call: is_wide(call.body.filters),
        body=MemoriesQuery,
        response=MemoriesFound,
        stability="beta",
        summary="List memories that pass a filter",
        description=(
            "Newest first, from any offset on; the filter language of searches. What would read or "
            "compare too much is 422 and says what would narrow it."
        ),
        example={
            "filters": {"AND": [{"user_id": "ada"}, {"tags": {"contains": "home"}}]},
            "limit": 20,
        },
        example_reply={"items": [EXAMPLE], "total_count": 1},
    ),
    Read(
        name="memories.values",
        method="POST",
        path="/v1/memories/values",
        handler=values,
        heavy=True,
        body=ValuesQuery,
        response=ValuesFound,
        stability="beta",
        summary="List the distinct values of a field",
        description=(
            "With how many memories have each, among those that pass the filter. Tags and metadata "
            "are read from the memories; where that would read too much it is 422."
        ),
        example={"field": "metadata.room", "filters": {"user_id": "ada"}},
        example_reply={"items": [{"value": "kitchen", "count": 12}], "total_count": 1},
    ),
    Read(
        name="memories.scopes",
        method="GET",
        path="/v1/memories/scopes",
        handler=scopes,
        heavy=True,
        query=ScopesQuery,
        response=ScopesFound,
        stability="beta",
        summary="List the users, agents, applications and runs that have memories",
        description="With how many memories each has.",
        example_reply={
            "items": [
                {
                    "kind": "user",
                    "name": "ada",
                    "memory_count": 12,
                    "first_memory_at": "2026-05-08T13:56:00.000Z",
                    "last_memory_at": "2026-06-01T09:00:00.000Z",
                }
            ],
            "total_count": 1,
        },
    ),
)
