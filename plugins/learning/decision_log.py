"""The decision log: what was decided and how it went, found again by meaning.

A logged decision is a note: a type, a description, an outcome where one is known. It has no
candidates and no propensity, so nothing can be evaluated with it (the decisions of
decision_store.py can); it answers "have we decided something like this before, and how did it go".

    logged_decisions    (ordinal,)      -> DecisionRow
    logged_ids          (decision id,)  -> ordinal, 8 bytes big endian
    logged_fields       bitmaps of ordinals: all, type, outcome, collection
    logged_vectors      one vector of the description

Choices: `GET /v1/decisions` lists and `GET /v1/decisions/{id}`
reads them; a decision without a collection belongs to none; a look-up leaves out what is not near,
and what the embedder has not taken up yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from pydantic import AfterValidator, Field
from pyroaring import BitMap

from plugins.collections import Sweep, dropped_numbers, require_collection
from plugins.learning.decision_store import NOWHERE, number_of
from plugins.learning.embedding import Embedded, embedded, indexing_job
from plugins.learning.limits import (
    DECISIONS_SWEPT_PER_STEP,
    QUERY_STRING_CHARS_MAX,
    SIMILAR_ITEMS_DEFAULT,
    SIMILAR_ITEMS_MAX,
)
from plugins.learning.models import CollectionId, Context
from plugins.memories import WriteSettings
from plugins.search import SearchSettings
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import (
    Body,
    Call,
    Idempotency,
    Query,
    Read,
    Reply,
    View,
    Write,
    not_blank,
)
from runtime.api.pagination import Page, PageQuery, envelope, example_page, newest_first
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.limits import DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX
from runtime.timestamps import iso
from storage.indexes import BitmapIndex, VectorIndex
from storage.store import Key, Table

OutcomeName = Literal["success", "failure", "partial"]
WORTH = {"success": 1.0, "partial": 0.5, "failure": 0.0}


class NewLogged(Body):
    decision_type: Annotated[
        str,
        Field(min_length=1, max_length=NAME_CHARS_MAX, description="What kind of decision it was."),
    ]
    description: Annotated[
        str,
        Field(min_length=1, max_length=DESCRIPTION_CHARS_MAX, description="What was decided."),
        AfterValidator(not_blank),
    ]
    outcome: OutcomeName | None = Field(
        default=None, description="How it went, where that is known."
    )
    context: Context = Field(default_factory=dict)
    collection_id: CollectionId | None = Field(
        default=None, description="The collection it belongs to; none when absent."
    )


class LoggedDecision(View):
    id: str
    decision_type: str
    description: str
    outcome: OutcomeName | None
    context: dict[str, Any]
    collection_id: str | None
    created_at: str


class SimilarDecision(LoggedDecision):
    score: float = Field(description="How near it is to the query, 0 to 1.")


class SimilarDecisions(View):
    items: list[SimilarDecision] = Field(description="Nearest first.")
    total_count: int = Field(description="How many are near enough.")


class LoggedQuery(PageQuery):
    decision_type: str | None = Field(
        default=None, max_length=NAME_CHARS_MAX, description="Only this type."
    )
    outcome: OutcomeName | None = Field(default=None, description="Only this outcome.")
    collection_id: CollectionId | None = Field(default=None, description="Only this collection.")


class SimilarDecisionQuery(Query):
    query: Annotated[str, AfterValidator(not_blank)] = Field(
        min_length=1,
        max_length=QUERY_STRING_CHARS_MAX,
        description="The decision at hand, in plain words.",
    )
    decision_type: str | None = Field(
        default=None, max_length=NAME_CHARS_MAX, description="Only this type."
    )
    collection_id: CollectionId | None = Field(default=None, description="Only this collection.")
    limit: int = Field(
        default=SIMILAR_ITEMS_DEFAULT, ge=1, le=SIMILAR_ITEMS_MAX, description="At most so many."
    )


class DecisionRow(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    type: str
    description: str
    created_at: int
    number: int = NOWHERE
    outcome: str | None = None
    context: dict[str, Any] = {}
    collection_id: str | None = None


LOGGED: Table[DecisionRow] = Table(
    "logged_decisions", key=("ordinal",), row=DecisionRow, doc="decisions and how they went"
)
LOGGED_IDS: Table[bytes] = Table(
    "logged_ids",
    key=("decision_id",),
    row=bytes,
    doc="logged decision id to ordinal, 8 bytes big endian",
)
LOGGED_FIELDS = BitmapIndex("logged_fields", fields=("all", "type", "outcome", "collection"))
LOGGED_VECTORS = VectorIndex("logged_vectors")

# --- reading --------------------------------------------------------------------------------------


def matching(
    ctx: ReadContext,
    decision_type: str | None,
    collection_id: str | None,
    outcome: str | None = None,
) -> BitMap:
    """Ordinals of the decisions that pass the filters."""
    fields = ctx.index(LOGGED_FIELDS)
    found = fields.of("all", 1)
    for name, value in (("type", decision_type), ("outcome", outcome)):
        if value is not None:
            found &= fields.of(name, value)
    if collection_id is not None:
        found &= fields.of("collection", require_collection(ctx, collection_id).number)
    gone = dropped_numbers(ctx)
    return found - fields.any_of("collection", gone) if gone else found


def nearest(
    ctx: ReadContext, vector: Embedded | None, allowed: BitMap, floor: float
) -> list[tuple[int, float]]:
    """(ordinal, cosine) of those not further from the vector than `floor`, nearest first; nothing
    without a vector.
    """
    if vector is None or not allowed:
        return []
    ordinals, cosines = ctx.index(LOGGED_VECTORS).search(
        vector[0], vector[1], len(allowed), allowed
    )[0]
    near = int(np.count_nonzero(cosines >= floor))
    return [
        (int(ordinal), float(min(cosine, 1.0)))
        for ordinal, cosine in zip(ordinals[:near], cosines[:near], strict=True)
    ]


def decision_view(row: DecisionRow) -> dict[str, Any]:
    """All of a logged decision but its place in the log."""
    return {
        "id": row.id,
        "decision_type": row.type,
        "description": row.description,
        "outcome": row.outcome,
        "context": row.context,
        "collection_id": row.collection_id,
        "created_at": iso(row.created_at),
    }


def get(ctx: ReadContext, body: None) -> dict[str, Any]:
    missing = NotFound("There is no logged decision with this id.")
    raw = ctx[LOGGED_IDS].get(ctx.check_id("dec", ctx.path["id"], missing))
    row = None if raw is None else ctx[LOGGED].get(int.from_bytes(raw, "big"))
    if row is None or row.number in dropped_numbers(ctx):
        raise missing
    return decision_view(row)


def list_logged(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked = ctx.query
    found = matching(ctx, asked.decision_type, asked.collection_id, asked.outcome)
    page, following = newest_first(ctx, found)
    rows = ctx[LOGGED].rows([(ordinal,) for ordinal in page])
    return envelope(ctx, [decision_view(row) for row in rows], following, len(found))


def load_similar(ctx: ReadContext, body: None) -> float:
    """Seconds the query's embedding may take; a bad collection is refused before."""
    number_of(ctx, ctx.query.collection_id)
    return SearchSettings.of(ctx.settings).embedding_wait_seconds


async def prepare_similar(call: Call, seconds: float, models: Models) -> Embedded | None:
    return await embedded(call.query.query, seconds, models)


def similar(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked = ctx.query
    found = nearest(
        ctx,
        ctx.prepared,
        matching(ctx, asked.decision_type, asked.collection_id),
        SearchSettings.of(ctx.settings).cosine_min,
    )
    page = found[: asked.limit]
    rows = ctx[LOGGED].rows([(ordinal,) for ordinal, _ in page])
    items = [
        {**decision_view(row), "score": score} for row, (_, score) in zip(rows, page, strict=True)
    ]
    return {"items": items, "total_count": len(found)}


# --- writing --------------------------------------------------------------------------------------


def load_new(ctx: ReadContext, body: NewLogged) -> float:
    """Seconds the description may take to embed; a bad collection is refused before."""
    number_of(ctx, body.collection_id)
    return WriteSettings.of(ctx.settings).ready_wait_ms / 1000


async def prepare_new(call: Call, seconds: float, models: Models) -> Embedded | None:
    return await embedded(call.body.description, seconds, models)


def create(ctx: WriteContext, body: NewLogged) -> Reply:
    number = number_of(ctx, body.collection_id)
    row = DecisionRow(
        ctx.new_id("dec"),
        body.decision_type,
        body.description,
        ctx.now,
        number,
        body.outcome,
        body.context,
        body.collection_id,
    )
    ordinal = ctx.next_ordinal("logged_decisions")
    ctx[LOGGED].put((ordinal,), row)
    ctx[LOGGED_IDS].put((row.id,), ordinal.to_bytes(8, "big"))
    for name, value in _entries(row):
        ctx.index(LOGGED_FIELDS).add(ordinal, name, value)
    if ctx.prepared is not None:
        ctx.index(LOGGED_VECTORS).put(ctx.prepared[0], ordinal, ctx.prepared[1])
    else:
        ctx.enqueue("decisions.index", {"ordinal": ordinal})
    return Reply(201, decision_view(row), resource_id=row.id)


def _entries(row: DecisionRow) -> Iterator[tuple[str, int | str]]:
    yield from (("all", 1), ("type", row.type), ("collection", row.number))
    if row.outcome is not None:
        yield "outcome", row.outcome


def _text(ctx: ReadContext, ordinal: int) -> str | None:
    row = ctx[LOGGED].get(ordinal)
    return None if row is None else row.description


def sweep_collection(
    ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str
) -> None:
    """Subscriber: one step of removing a dropped collection's decisions."""
    step = min(data.rows_left, DECISIONS_SWEPT_PER_STEP)
    if step <= 0:
        return
    fields, vectors = ctx.index(LOGGED_FIELDS), ctx.index(LOGGED_VECTORS)
    doomed = fields.of("collection", data.number)[:step]
    for ordinal in doomed:
        row = ctx[LOGGED].row(ordinal)
        for name, value in _entries(row):
            fields.remove(ordinal, name, value)
        for space in vectors.spaces():
            vectors.delete(space, ordinal)
        ctx[LOGGED_IDS].delete(row.id)
        ctx[LOGGED].delete(ordinal)
    data.erased("logged_decisions", len(doomed))
    if len(doomed) == step:
        data.rows_left = 0


# --- privacy --------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove the whole log. Counts of rows by table, of vectors by index."""
    counts = {table.name: ctx[table].delete_prefix() for table in (*TABLES, *LOGGED_FIELDS.tables)}
    return counts | {LOGGED_VECTORS.name: ctx.index(LOGGED_VECTORS).clear()}


def export(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    """("logged_decision", record, key) for each behind a key, oldest first."""
    found = matching(ctx, None, None)
    if after is not None:
        found.remove_range(0, after[0] + 1)
    for ordinal in found:
        yield "logged_decision", decision_view(ctx[LOGGED].row(ordinal)), (ordinal,)


# --- the plugin -----------------------------------------------------------------------------------

_NEW = {
    "decision_type": "refund",
    "description": "Refunded a parcel that came two weeks late.",
    "outcome": "success",
}
_EXAMPLE = {
    "id": "dec_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e", **_NEW, "context": {}, "collection_id": None,
    "created_at": "2026-05-08T13:56:00.000Z",
}  # fmt: skip

OPERATIONS = (
    Write(
        name="decisions.log",
        method="POST",
        path="/v1/decisions",
        aliases=("/v1/decisions/log",),
        load=load_new,
        prepare=prepare_new,
        handler=create,
        body=NewLogged,
        response=LoggedDecision,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        summary="Log a decision and its outcome",
        example=_NEW,
        example_reply=_EXAMPLE,
    ),
    Read(
        name="decisions.list",
        method="GET",
        path="/v1/decisions",
        handler=list_logged,
        query=LoggedQuery,
        response=Page[LoggedDecision],
        summary="List logged decisions",
        example_reply=example_page(_EXAMPLE),
    ),
    Read(
        name="decisions.similar",
        method="GET",
        path="/v1/decisions/similar",
        load=load_similar,
        prepare=prepare_similar,
        handler=similar,
        query=SimilarDecisionQuery,
        response=SimilarDecisions,
        credits=1,
        summary="Past decisions like the one at hand",
        example_reply={"items": [{**_EXAMPLE, "score": 0.64}], "total_count": 1},
    ),
    Read(
        name="decisions.get",
        method="GET",
        path="/v1/decisions/{id}",
        handler=get,
        response=LoggedDecision,
        summary="Get a logged decision",
        example_reply=_EXAMPLE,
    ),
)

TABLES: tuple[Table, ...] = (LOGGED, LOGGED_IDS)
INDEXES = (LOGGED_FIELDS, LOGGED_VECTORS)
INDEX_JOB = indexing_job("decisions.index", LOGGED_VECTORS, _text)
