"""Feedback as it is given: its operations, its rows and their counts.

Invariant: the counts equal a walk over the rows.

    feedback          (ordinal,)            -> FeedbackRow
    feedback_memories (memory id, ordinal)  -> b""            what goes with a memory
    feedback_days     (day,)                -> DayRow         day: days since 1970 (UTC), or WHOLE
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AfterValidator, Field, StrictBool

from plugins.feedback.limits import FEEDBACK_DAYS_SHOWN_MAX, RANK_ITEMS_MAX
from plugins.memories import CONTENT_CHARS_MAX, MemoryId, get_row
from plugins.search import QUERY_CHARS_MAX
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import (
    Body,
    Event,
    Idempotency,
    Operation,
    Read,
    Reply,
    View,
    Write,
    not_blank,
)
from runtime.timestamps import DAY_MS, iso
from storage.store import Key, Table

WHOLE = -1
RELEVANCE, RANKING, MISSING = "relevance", "ranking", "missing"

Rank = Annotated[int, Field(strict=True, ge=1, le=RANK_ITEMS_MAX)]
KindOfFeedback = Literal["relevance", "ranking", "missing"]

# --- requests and responses -----------------------------------------------------------------------


class _AboutAQuery(Body):
    query: Annotated[
        str,
        Field(min_length=1, max_length=QUERY_CHARS_MAX, description="What was searched for."),
        AfterValidator(not_blank),
    ]


class Relevance(_AboutAQuery):
    memory_id: MemoryId
    is_relevant: StrictBool = Field(description="Whether the memory answers the query.")


class Ranking(_AboutAQuery):
    memory_id: MemoryId
    actual_rank: Rank = Field(description="Where the memory stood, from 1.")
    expected_rank: Rank = Field(description="Where it should have stood, from 1.")


class Missing(_AboutAQuery):
    expected_content: Annotated[str, AfterValidator(not_blank)] = Field(
        min_length=1, max_length=CONTENT_CHARS_MAX, description="What should have been found."
    )


class Received(View):
    id: str = Field(description="The feedback's id.")
    kind: KindOfFeedback
    created_at: str


class RelevanceCounts(View):
    count: int
    relevant: int
    precision: float | None = Field(description="Share of the relevant ones; null without any.")


class RankingCounts(View):
    count: int
    mean_absolute_rank_error: float | None = Field(
        description="Mean distance of the actual rank from the expected; null without any."
    )


class MissingCounts(View):
    count: int


class DayCounts(View):
    date: str = Field(description="The day (UTC).")
    relevance: int
    ranking: int
    missing: int


class Stats(View):
    relevance: RelevanceCounts
    ranking: RankingCounts
    missing: MissingCounts
    by_day: list[DayCounts] = Field(
        description=f"The last {FEEDBACK_DAYS_SHOWN_MAX} days with feedback, newest first."
    )


class FeedbackReceived(View):
    id: str = Field(description="The feedback's id.")
    feedback_id: str = Field(description="The same id.")
    kind: KindOfFeedback
    memory_id: str | None = Field(default=None, description="The memory it is about.")


class FeedbackErased(View):
    """Feedback went with a memory; what was learned from it must be learned anew."""

    memory_id: str


FEEDBACK_RECEIVED = Event("user.feedback_received", FeedbackReceived)
FEEDBACK_ERASED = Event("internal.feedback_erased", FeedbackErased)

# --- tables ---------------------------------------------------------------------------------------


class FeedbackRow(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    kind: str
    query: str
    at: int
    memory_id: str | None = None
    is_relevant: bool | None = None
    actual_rank: int | None = None
    expected_rank: int | None = None
    expected_content: str | None = None

    @property
    def rank_error(self) -> int:
        """Of a ranking: how many places the memory was away from where it belongs."""
        return abs((self.actual_rank or 0) - (self.expected_rank or 0))


class DayRow(msgspec.Struct):
    relevance: int = 0
    relevant: int = 0
    ranking: int = 0
    rank_error: int = 0
    missing: int = 0

    def change(self, row: FeedbackRow, sign: int) -> None:
        if row.kind == RELEVANCE:
            self.relevance += sign
            self.relevant += sign * bool(row.is_relevant)
        elif row.kind == RANKING:
            self.ranking += sign
            self.rank_error += sign * row.rank_error
        else:
            self.missing += sign


FEEDBACK: Table[FeedbackRow] = Table(
    "feedback", key=("ordinal",), row=FeedbackRow, doc="feedback on searches, in order of arrival"
)
FEEDBACK_MEMORIES: Table[bytes] = Table(
    "feedback_memories", key=("memory_id", "ordinal"), row=bytes, doc="feedback about a memory"
)
FEEDBACK_DAYS: Table[DayRow] = Table(
    "feedback_days", key=("day",), row=DayRow, doc="counts of feedback by day, and of all under -1"
)
TABLES: tuple[Table, ...] = (FEEDBACK, FEEDBACK_MEMORIES, FEEDBACK_DAYS)

# --- handlers -------------------------------------------------------------------------------------


def relevance(ctx: WriteContext, body: Relevance) -> Reply:
    return _receive(
        ctx,
        RELEVANCE,
        body.query,
        memory_id=get_row(ctx, body.memory_id).id,
        is_relevant=body.is_relevant,
    )


def ranking(ctx: WriteContext, body: Ranking) -> Reply:
    memory_id = get_row(ctx, body.memory_id).id
    ranks = {"actual_rank": body.actual_rank, "expected_rank": body.expected_rank}
    return _receive(ctx, RANKING, body.query, memory_id=memory_id, **ranks)


def missing(ctx: WriteContext, body: Missing) -> Reply:
    return _receive(ctx, MISSING, body.query, expected_content=body.expected_content)


def _receive(ctx: WriteContext, kind: str, query: str, **fields: Any) -> Reply:
    row = FeedbackRow(ctx.new_id("fbk"), kind, query, ctx.now, **fields)
    ordinal = ctx.next_ordinal("feedback")
    ctx[FEEDBACK].put((ordinal,), row)
    if row.memory_id is not None:
        ctx[FEEDBACK_MEMORIES].put((row.memory_id, ordinal), b"")
    _count(ctx, row, 1)
    ctx.emit(
        FEEDBACK_RECEIVED,
        {"id": row.id, "feedback_id": row.id, "kind": kind, "memory_id": row.memory_id},
        row.id,
    )
    return Reply(201, {"id": row.id, "kind": kind, "created_at": iso(row.at)}, resource_id=row.id)


def _count(ctx: WriteContext, row: FeedbackRow, sign: int) -> None:
    for day in (WHOLE, row.at // DAY_MS):
        counts = ctx[FEEDBACK_DAYS].get(day) or DayRow()
        counts.change(row, sign)
        if day != WHOLE and not (counts.relevance or counts.ranking or counts.missing):
            ctx[FEEDBACK_DAYS].delete(day)
        else:
            ctx[FEEDBACK_DAYS].put((day,), counts)


def stats(ctx: ReadContext, body: None) -> dict[str, Any]:
    whole = ctx[FEEDBACK_DAYS].get(WHOLE) or DayRow()
    days = ctx[FEEDBACK_DAYS].scan(after=(WHOLE,), reverse=True, limit=FEEDBACK_DAYS_SHOWN_MAX)
    return {
        "relevance": {
            "count": whole.relevance,
            "relevant": whole.relevant,
            "precision": whole.relevant / whole.relevance if whole.relevance else None,
        },
        "ranking": {
            "count": whole.ranking,
            "mean_absolute_rank_error": whole.rank_error / whole.ranking if whole.ranking else None,
        },
        "missing": {"count": whole.missing},
        "by_day": [
            {
                "date": iso(day * DAY_MS)[:10],
                "relevance": row.relevance,
                "ranking": row.ranking,
                "missing": row.missing,
            }
            for (day,), row in days
        ],
    }


def forget(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Remove, as a subscriber, the feedback on a memory that is gone."""
    ordinals = [ordinal for _, ordinal in ctx[FEEDBACK_MEMORIES].keys(resource_id)]
    if not ordinals:
        return
    for ordinal in ordinals:
        _count(ctx, ctx[FEEDBACK].row(ordinal), -1)
        ctx[FEEDBACK].delete(ordinal)
    ctx[FEEDBACK_MEMORIES].delete_prefix(resource_id)
    ctx.emit(FEEDBACK_ERASED, {"memory_id": resource_id}, resource_id)


# --- privacy --------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all feedback. Counts of rows by table."""
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    """("feedback", record, key) for each behind a key, oldest first."""
    for key, row in ctx[FEEDBACK].scan(after=after):
        yield "feedback", {**msgspec.structs.asdict(row), "at": iso(row.at)}, key


# --- operations -----------------------------------------------------------------------------------

_MEMORY = "mem_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_QUERY = "Where is the spare key?"
_RECEIVED = {
    "id": "fbk_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
    "kind": "relevance",
    "created_at": "2026-05-08T13:56:00.000Z",
}


def _operation(
    kind: str, body: type[Body], handler: Any, summary: str, example: dict[str, Any]
) -> Operation:
    return Write(
        name=f"feedback.{kind}",
        method="POST",
        path=f"/v1/feedback/{kind}",
        handler=handler,
        body=body,
        response=Received,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        summary=summary,
        example={"query": _QUERY, **example},
        example_reply={**_RECEIVED, "kind": kind},
    )


OPERATIONS = (
    _operation(
        RELEVANCE,
        Relevance,
        relevance,
        "Say whether a memory answers a query",
        {"memory_id": _MEMORY, "is_relevant": True},
    ),
    _operation(
        RANKING,
        Ranking,
        ranking,
        "Say where a memory should have stood",
        {"memory_id": _MEMORY, "actual_rank": 7, "expected_rank": 1},
    ),
    _operation(
        MISSING,
        Missing,
        missing,
        "Say what should have been found",
        {"expected_content": "The key is in the shed."},
    ),
    Read(
        name="feedback.stats",
        method="GET",
        path="/v1/feedback/stats",
        handler=stats,
        response=Stats,
        summary="What the feedback adds up to",
        example_reply={
            "relevance": {"count": 4, "relevant": 3, "precision": 0.75},
            "ranking": {"count": 2, "mean_absolute_rank_error": 3.5},
            "missing": {"count": 1},
            "by_day": [{"date": "2026-05-08", "relevance": 4, "ranking": 2, "missing": 1}],
        },
    ),
)
