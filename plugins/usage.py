"""Usage: what an account has used of its month, and used before.

Shows what runtime/api/metering.py and runtime/api/latencies.py count, and owns no table of its own:
the figures are written in the transactions of the effects they stand for, whatever the feature.

Choices where the interface leaves room:
- `credits.used` includes what is reserved for work under way, so that `remaining` is what can still
  be asked for.
- `requests.used` counts authenticated requests, failed ones included; those a limit refused are in
  `requests.refused` alone.
- History has the hours of the last two months, the days of two years and every month; times without
  usage have no item.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from runtime.api import latencies, metering, tenants
from runtime.api.checks import Finding
from runtime.api.context import ReadContext, WriteContext
from runtime.api.figures import figures
from runtime.api.load import LOAD_EXAMPLE, Load
from runtime.api.metering import (
    RollupRow,
)
from runtime.api.operation import Body, Call, Query, Read, View, not_earlier
from runtime.api.pagination import Page, PageQuery, envelope, example_page, position
from runtime.api.plugin import Job, Plugin
from runtime.api.slot_context import OperatorReadContext
from runtime.api.tiers import credits_limit
from runtime.errors import NotFound
from runtime.limits import USAGE_LATENCIES_KEPT_SECONDS
from runtime.tenancy import slot_of_email
from runtime.timestamps import DAY_MS, HOUR_MS, ExclusiveEndTimestamp, Timestamp, iso

# --- requests and responses -----------------------------------------------------------------------


class HistoryQuery(PageQuery):
    from_: Timestamp | None = Field(
        default=None,
        alias="from",
        description="Leave out what ended by then; the beginning, when absent.",
    )
    to: ExclusiveEndTimestamp | None = Field(
        default=None,
        description="Leave out what began then or later; of a date without a time, what began "
        "after that day; now, when absent.",
    )
    granularity: Literal["hour", "day", "month"] = Field(
        default="day", description="Length of an item."
    )

    @model_validator(mode="after")
    def _runs_forwards(self) -> HistoryQuery:
        not_earlier(("query", "to"), self.to, "from", self.from_, exclusive=True)
        return self


class LatencyQuery(Query):
    hours: int = Field(
        default=24,
        ge=1,
        le=USAGE_LATENCIES_KEPT_SECONDS // 3600,
        description="Of so many hours, the running one included.",
    )


class AuditQuery(Body):
    email: str = Field(max_length=254, description="The account's e-mail address.")


class Credits(View):
    used: int = Field(description="Credits used or reserved since the period began.")
    limit: int = Field(description="Credits of the period; -1 is unlimited.")
    remaining: int = Field(description="Credits left; -1 is unlimited.")
    percentage: float = Field(
        description="Share of the limit that is used, 0 to 100; 0 when unlimited."
    )


class Requests(View):
    used: int = Field(description="Authenticated requests since the period began.")
    refused: int = Field(
        description="Requests that a limit refused; they cost nothing and count nowhere else."
    )


class OperationShare(View):
    operation: str = Field(description="Name of the operation, such as `memories.create`.")
    count: int = Field(description="Requests.")
    credits: int = Field(description="Credits they cost.")


class KeyShare(View):
    api_key_id: str | None = Field(
        description="The API key; null: access tokens, and work in the background."
    )
    requests: int = Field(description="Requests made with it.")
    credits: int = Field(description="Credits they cost.")


class Room(View):
    memories: int = Field(description="Memories; -1 is unlimited.")
    documents: int = Field(description="Documents; -1 is unlimited.")
    entities: int = Field(description="Entities; -1 is unlimited.")
    collections: int = Field(description="Collections; -1 is unlimited.")
    profiles: int = Field(description="Profiles of end users; -1 is unlimited.")
    file_bytes: int = Field(
        description="Bytes of the documents' files and of their texts; -1 is unlimited."
    )
    text_bytes: int = Field(
        description="Bytes of the memories' texts and of their earlier versions; -1 is unlimited."
    )


class Stored(View):
    memories: int = Field(description="Memories.")
    documents: int = Field(description="Documents.")
    entities: int = Field(description="Entities of the knowledge graph.")
    collections: int = Field(description="Collections, without the default one.")
    profiles: int = Field(
        description=(
            "Profiles of end users, those that were derived included; one that was deleted counts "
            "while there are memories of its user."
        )
    )
    file_bytes: int = Field(
        description=(
            "Bytes of the documents' files, each content once, and of the texts read out of them."
        )
    )
    text_bytes: int = Field(
        description=(
            "Bytes of the memories' texts, tags and metadata, and of their earlier versions, until "
            "what was deleted is removed."
        )
    )
    bytes: int = Field(
        description=(
            "Bytes of the memories, without indexes, and of the documents' files; estimated where "
            "there are very many."
        )
    )
    limits: Room = Field(
        description="What the tier has room for; a write beyond it is refused, and reads go on."
    )


class Usage(View):
    period_start: str = Field(
        description="First instant of the period, a calendar month (ISO 8601, UTC)."
    )
    period_end: str = Field(description="First instant of the next one.")
    tier: str = Field(description="The tier of the account's plan.")
    credits: Credits
    requests: Requests
    rate_limit_per_minute: int = Field(description="Requests per minute; -1 is unlimited.")
    by_operation: list[OperationShare] = Field(description="By operation, the costliest first.")
    by_api_key: list[KeyShare] = Field(description="By API key, the costliest first.")
    storage: Stored


class HistoryItem(View):
    period_start: str = Field(
        description="First instant of the hour, day or month (ISO 8601, UTC)."
    )
    requests: int
    credits: int


class Latency(View):
    requests: int = Field(description="Requests that were let in.")
    client_errors: int = Field(description="Of these, those answered with 4xx.")
    server_errors: int = Field(description="Of these, those answered with 5xx, or not at all.")
    error_share: float = Field(description="Share of both among the requests, 0 to 1.")
    mean_ms: float = Field(description="Mean milliseconds.")
    p50_ms: float = Field(description="Half were answered within so many milliseconds.")
    p95_ms: float = Field(description="95 of 100 were answered within so many milliseconds.")
    p99_ms: float = Field(description="99 of 100 were answered within so many milliseconds.")


class OperationLatency(Latency):
    operation: str = Field(description="Name of the operation, such as `memories.create`.")


class HourLatency(Latency):
    period_start: str = Field(description="First instant of the hour (ISO 8601, UTC).")


class Latencies(View):
    since: str = Field(description="First instant of the first hour (ISO 8601, UTC).")
    total: Latency = Field(description="Of all operations.")
    by_operation: list[OperationLatency] = Field(description="By operation, the most asked first.")
    by_hour: list[HourLatency] = Field(description="By hour, oldest first; those with requests.")


class PeriodAudit(View):
    period_start: str
    counter: int = Field(description="What the period's counter says.")
    events: int = Field(description="Sum of the usage events, those folded away included.")
    by_operation: int = Field(description="Sum of the shares of operations.")
    by_key: int = Field(description="Sum of the shares of API keys.")
    by_time: int = Field(description="Sum of the hours and days.")
    reserved: int = Field(description="Set aside for work under way; part of none of the others.")
    closed: bool = Field(description="Whether the period was closed; its figures are final then.")
    consistent: bool = Field(description="Whether all of them agree.")


class Audit(View):
    email: str
    periods: list[PeriodAudit] = Field(description="Every period with usage, oldest first.")
    consistent: bool


# --- handlers -------------------------------------------------------------------------------------


async def aside(call: Call, loaded: None, models: Any) -> None:
    """Prepare nothing: an operation that prepares runs beside the event loop, and this one walks
    over many rows.
    """


def get(ctx: ReadContext, body: None) -> Usage:
    tier, period = ctx.principal.tier, metering.period_of(ctx.now)
    row = ctx[metering.USAGE_PERIODS].get(period) or metering.PeriodRow()
    override = ctx.settings.limits.requests_per_minute
    per_minute = (
        ctx.settings.tiers.terms(tier)["requests_per_minute"] if override is None else override
    )
    return Usage(
        period_start=iso(period),
        period_end=iso(metering.period_end(period)),
        tier=tier,
        credits=_credits(row.credits + row.reserved, credits_limit(ctx.settings, tier)),
        requests=Requests(used=row.requests, refused=row.refused),
        rate_limit_per_minute=per_minute or -1,
        by_operation=[
            OperationShare(operation=name, count=share.requests, credits=share.credits)
            for name, share in _shares(ctx, period, "operation")
        ],
        by_api_key=[
            KeyShare(api_key_id=name or None, requests=share.requests, credits=share.credits)
            for name, share in _shares(ctx, period, "key")
        ],
        storage=_stored(ctx),
    )


def _credits(used: int, limit: int | None) -> Credits:
    if limit is None:
        return Credits(used=used, limit=-1, remaining=-1, percentage=0)
    return Credits(
        used=used,
        limit=limit,
        remaining=max(0, limit - used),
        percentage=min(100.0, round(100 * used / limit, 2)) if limit else 100.0,
    )


def _shares(ctx: ReadContext, period: int, kind: str) -> list[tuple[str, RollupRow]]:
    found = [(name, share) for (_, _, name), share in ctx[metering.USAGE_SHARES].scan(period, kind)]
    return sorted(found, key=lambda named: (-named[1].credits, -named[1].requests, named[0]))


def _stored(ctx: ReadContext) -> Stored:
    kept, terms = figures(ctx), ctx.settings.tiers.terms(ctx.principal.tier)
    return Stored(
        **{name: kept[name] for name in ("bytes", *Room.model_fields)},
        limits=Room(**{name: terms[name] for name in Room.model_fields}),
    )


def history(ctx: ReadContext, body: None) -> dict[str, Any]:
    query = ctx.query
    start = position(ctx)
    to = ctx.now + 1 if query.to is None else query.to
    matching = [
        item
        for item in _items(ctx, query.granularity)
        if (query.from_ is None or _end(query.granularity, item[0]) > query.from_) and item[0] < to
    ]
    page = [item for item in matching if start is None or item[0] > start[0]][: query.limit]
    following = (page[-1][0],) if page and page[-1] != matching[-1] else None
    items = [
        {"period_start": iso(at), "requests": requests, "credits": credits}
        for at, requests, credits in page
    ]
    return envelope(ctx, items, following, len(matching))


def load(ctx: ReadContext, body: None) -> Load:
    """What the caller's account took of late."""
    return Load.of(*ctx.work(), ctx.resident_bytes)


def latency(ctx: ReadContext, body: None) -> Latencies:
    first = ctx.now // HOUR_MS * HOUR_MS - (ctx.query.hours - 1) * HOUR_MS
    found = latencies.since(ctx, first)
    by_operation: dict[str, list[latencies.LatencyRow]] = {}
    by_hour: dict[int, list[latencies.LatencyRow]] = {}
    for hour, operation, row in found:
        by_operation.setdefault(operation, []).append(row)
        by_hour.setdefault(hour, []).append(row)
    operations = [
        OperationLatency(operation=name, **_figures_of(latencies.merged(rows)))
        for name, rows in by_operation.items()
    ]
    return Latencies(
        since=iso(first),
        total=Latency(**_figures_of(latencies.merged(row for _, _, row in found))),
        by_operation=sorted(operations, key=lambda one: (-one.requests, one.operation)),
        by_hour=[
            HourLatency(period_start=iso(hour), **_figures_of(latencies.merged(rows)))
            for hour, rows in by_hour.items()
        ],
    )


def _figures_of(row: latencies.LatencyRow) -> dict[str, Any]:
    requests = row.requests
    errors = row.client_errors + row.server_errors
    p50, p95, p99 = row.quantiles_ms((0.5, 0.95, 0.99))
    return {
        "requests": requests,
        "client_errors": row.client_errors,
        "server_errors": row.server_errors,
        "error_share": round(errors / requests, 4) if requests else 0.0,
        "mean_ms": round(row.total_ms / requests, 2) if requests else 0.0,
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
    }


def _end(granularity: str, start: int) -> int:
    return (
        metering.period_end(start)
        if granularity == "month"
        else start + (HOUR_MS if granularity == "hour" else DAY_MS)
    )


def _items(ctx: ReadContext, granularity: str) -> list[tuple[int, int, int]]:
    """(start, requests, credits), oldest first; as many as the retention of runtime/limits.py
    leaves.
    """
    if granularity == "month":
        found = [
            (period, row.requests, row.credits)
            for (period,), row in ctx[metering.USAGE_PERIODS].scan()
        ]
        return [item for item in found if item[1] or item[2]]
    rollups = ctx[metering.USAGE_ROLLUPS]
    hours = [(hour, row.requests, row.credits) for (_, hour), row in rollups.scan("hour")]
    if granularity == "hour":
        return hours
    days: dict[int, list[int]] = {
        day: [row.requests, row.credits] for (_, day), row in rollups.scan("day")
    }
    for hour, requests, credits in hours:
        day = days.setdefault(hour // DAY_MS * DAY_MS, [0, 0])
        day[0] += requests
        day[1] += credits
    return [(day, requests, credits) for day, (requests, credits) in sorted(days.items())]


def audit(ctx: OperatorReadContext, body: AuditQuery) -> Audit:
    """Compare every way of counting, month by month, for one account. For the operator."""
    account = tenants.by_email(ctx, body.email)
    if account is None:
        raise NotFound("There is no account with this e-mail address.", param="email")
    theirs = ctx.within(*tenants.identity(ctx.scope.slot, account))
    periods = [
        PeriodAudit(period_start=iso(period), closed=row.closed, **metering.audit(theirs, period))
        for (period,), row in theirs[metering.USAGE_PERIODS].scan()
    ]
    return Audit(
        email=body.email, periods=periods, consistent=all(period.consistent for period in periods)
    )


# --- privacy --------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all usage. Counts of rows by table."""
    tables = (*metering.TABLES, *latencies.TABLES)
    return {table.name: ctx[table].delete_prefix() for table in tables}


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """("usage_month" | "usage_day", record), oldest first. An import takes neither in: it was used
    here.
    """
    for granularity in ("month", "day"):
        for start, requests, credits in _items(ctx, granularity):
            yield (
                f"usage_{granularity}",
                {"period_start": iso(start), "requests": requests, "credits": credits},
            )


# --- the plugin -----------------------------------------------------------------------------------

_START = "2026-05-01T00:00:00.000Z"
_LATENCY = {
    "requests": 655,
    "client_errors": 12,
    "server_errors": 1,
    "error_share": 0.0198,
    "mean_ms": 6.31,
    "p50_ms": 4.2,
    "p95_ms": 18.5,
    "p99_ms": 41.0,
}

OPERATIONS = (
    Read(
        name="usage.get",
        method="GET",
        path="/v1/usage",
        prepare=aside,
        handler=get,
        response=Usage,
        fresh_usage=True,
        summary="What was used this month",
        description=("Credits and requests since the first of the month, UTC, up to "
        "this request, by "
            "operation and by API key."),
        example_reply={
            "period_start": _START,
            "period_end": "2026-06-01T00:00:00.000Z",
            "tier": "free",
            "credits": {"used": 412, "limit": 1000, "remaining": 588, "percentage": 41.2},
            "requests": {"used": 655, "refused": 3},
            "rate_limit_per_minute": 60,
            "by_operation": [{"operation": "memories.create", "count": 412, "credits": 412}],
            "by_api_key": [{"api_key_id": None, "requests": 655, "credits": 412}],
            "storage": {
                "memories": 412,
                "documents": 0,
                "entities": 57,
                "collections": 2,
                "profiles": 1,
                "file_bytes": 0,
                "text_bytes": 104_310,
                "bytes": 181_530,
                "limits": {
                    "memories": 10_000,
                    "documents": 1_000,
                    "entities": 10_000,
                    "collections": 1_000,
                    "profiles": 1_000,
                    "file_bytes": 1_073_741_824,
                    "text_bytes": 104_857_600,
                },
            },
        },
    ),
    Read(
        name="usage.history",
        method="GET",
        path="/v1/usage/history",
        handler=history,
        query=HistoryQuery,
        response=Page[HistoryItem],
        fresh_usage=True,
        summary="Usage by hour, day or month",
        description="Oldest first. Hours are kept for two months and days for two years.",
        example_reply=example_page({"period_start": _START, "requests": 655, "credits": 412}),
    ),
    Read(
        name="usage.latency",
        method="GET",
        path="/v1/usage/latency",
        handler=latency,
        heavy=True,
        query=LatencyQuery,
        response=Latencies,
        fresh_usage=True,
        stability="beta",
        summary="How long requests took, and how many failed",
        description=(
            "By operation and by hour, up to eight days back. Times are those in the account's "
            "shard, from where a request is let in to its answer; a chat's or an answer's includes "
            "its language model's. They are estimated from histograms. Requests that a limit "
            "refused are in no figure."
        ),
        example_reply={
            "since": _START,
            "total": _LATENCY,
            "by_operation": [{"operation": "search.search", **_LATENCY}],
            "by_hour": [{"period_start": _START, **_LATENCY}],
        },
    ),
    Read(
        name="usage.load",
        method="GET",
        path="/v1/usage/load",
        handler=load,
        response=Load,
        stability="beta",
        summary="What the account takes of the service at the moment",
        description="Of the last one or two minutes, or since the service was started. What a "
        "process that reads beside the shard does counts a moment later.",
        example_reply=LOAD_EXAMPLE,
    ),
    Read(
        name="internal.usage.audit",
        method="POST",
        path="/v1/internal/usage/audit",
        prepare=aside,
        handler=audit,
        body=AuditQuery,
        response=Audit,
        internal=True,
        slot_of=lambda body: slot_of_email(body.email),
        fresh_usage=True,
        summary="Check an account's usage against itself",
        example={"email": "ada@example.com"},
        example_reply={
            "email": "ada@example.com",
            "periods": [
                {
                    "period_start": _START, "counter": 412, "events": 412, "by_operation": 412,
                    "by_key": 412, "by_time": 412, "reserved": 0, "closed": False,
                    "consistent": True,
                }
            ],
            "consistent": True,
        },
    ),
)  # fmt: skip

# --- what must agree ------------------------------------------------------------------------------


def adds_up(ctx: ReadContext) -> Iterator[Finding]:
    """Check that every way to count the credits of a month gives the same."""
    for (period,), _ in ctx[metering.USAGE_PERIODS].scan():
        counted = metering.audit(ctx, period)
        if not counted.pop("consistent"):
            yield Finding(
                metering.USAGE_PERIODS.name,
                f"credits of the month that began {iso(period)} disagree: {counted}",
            )


plugin = Plugin(
    name="usage",
    operations=OPERATIONS,
    events=(metering.PERIOD_STARTED,),
    jobs=(Job(metering.REAPER, metering.reap),),
    erase=erase,
    export=export,
    checks=(adds_up,),
)
