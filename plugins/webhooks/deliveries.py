"""What became of events on their way to webhooks, and how to send them again.

Owns the answers about deliveries: their lists, each attempt, the dead letters, replays. What
happens to a delivery is decided in plugins/webhooks/delivery.py.

A replay sends the same event id, body and idempotency_key once more, with a full set of attempts.
Replaying what is under way changes nothing, so that asking twice does no harm. It is refused while
the webhook is disabled, and when the body is gone because the memory or document that it tells of
was deleted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, model_validator
from pyroaring import BitMap

from plugins.webhooks import limits
from plugins.webhooks.store import (
    ACTIVE,
    ATTEMPTS,
    BODIES,
    DELIVERIES,
    DELIVERY_FIELDS,
    DELIVERY_IDS,
    FAILED,
    SKIPPED,
    UNDER_WAY,
    WEBHOOKS,
    DeliveryRow,
    EventKind,
    WebhookRow,
    find_webhook,
    send_again,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Idempotency, Read, Reply, View, Write, not_earlier
from runtime.api.pagination import Page, PageQuery, envelope, example_page, newest_first
from runtime.errors import Conflict, NotFound, PermissionDenied
from runtime.limits import ID_CHARS_MAX, RETRY_AFTER_SECONDS
from runtime.timestamps import ExclusiveEndTimestamp, Timestamp, iso
from storage.store import Key

DeliveryStatus = Literal["pending", "retrying", "delivered", "failed", "skipped"]
Id = Annotated[str, Field(min_length=1, max_length=ID_CHARS_MAX)]

# --- requests and responses -----------------------------------------------------------------------


class DeliveryQuery(PageQuery):
    status: DeliveryStatus | None = Field(
        default=None, description="Only deliveries in this state."
    )


class DeadLetterQuery(PageQuery):
    webhook_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=ID_CHARS_MAX,
        description="Only those of this webhook.",
    )


class ReplayMany(Body):
    ids: list[Id] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.DELIVERIES_REPLAYED_MAX,
        description="Deliveries to replay; skipped ones may be among them.",
    )
    since: Timestamp | None = Field(
        default=None, description="Instead of ids: dead letters of events from this time on."
    )
    until: ExclusiveEndTimestamp | None = Field(
        default=None,
        description="Instead of ids: dead letters of events before this time; of a date without a "
        "time, those of that day too.",
    )
    include_skipped: bool = Field(
        default=False,
        description="With since or until: also what was skipped while the webhook was disabled.",
    )

    @model_validator(mode="after")
    def _names_something(self) -> ReplayMany:
        if (self.ids is None) == (self.since is None and self.until is None):
            raise ValueError("Give either ids, or since or until.")
        not_earlier(("body", "until"), self.until, "since", self.since, exclusive=True)
        return self


class Attempt(View):
    at: str = Field(description="When its outcome was known (ISO 8601).")
    status_code: int | None = Field(
        description="The receiver's HTTP status; null without an answer."
    )
    duration_ms: int = Field(description="How long it took.")
    error: str | None = Field(description="Why it failed; null when it succeeded.")
    response_body: str = Field(description="The first 16 KiB of the answer, as text.")


class Delivery(View):
    id: str = Field(description="The delivery's id.")
    webhook_id: str = Field(description="The webhook it goes to.")
    event_id: str = Field(description="The event's id, `id` in the body that is sent.")
    event_type: EventKind = Field(description="The kind of event.")
    status: DeliveryStatus = Field(
        description=(
            "pending: not tried yet; retrying: between attempts; failed: a dead letter; skipped: "
            "the webhook was disabled."
        )
    )
    idempotency_key: str = Field(
        description="The same in every attempt and replay; receivers deduplicate by it."
    )
    attempt_count: int = Field(description="Attempts made so far.")
    created_at: str = Field(description="When the event happened (ISO 8601).")
    next_attempt_at: str | None = Field(
        description="When the next attempt is due, between attempts."
    )
    finished_at: str | None = Field(description="When it was delivered, failed or skipped.")


class DeliveryDetail(Delivery):
    attempts: list[Attempt] = Field(description="Each attempt, oldest first; the last 50.")
    payload: dict[str, Any] | None = Field(
        description="The body as it is sent; null once what it tells of was deleted."
    )


class ReplayResult(View):
    id: str = Field(description="The delivery's id.")
    status: Literal["replayed", "under_way", "refused", "not_found", "forbidden"] = Field(
        description="refused: its webhook is disabled, or what it tells of was deleted."
    )


class Replayed(View):
    replayed: int = Field(description="Deliveries that begin anew.")
    has_more: bool = Field(description="Whether more of the range is left; ask again.")
    results: list[ReplayResult] = Field(
        description="One entry for each id; for a range, for each that was replayed."
    )


# --- handlers -------------------------------------------------------------------------------------


def list_deliveries(ctx: ReadContext, body: None) -> dict[str, Any]:
    webhook = find_webhook(ctx, ctx.path["id"])
    fields = ctx.index(DELIVERY_FIELDS)
    matching = fields.of("webhook", webhook.ordinal)
    if ctx.query.status is not None:
        matching &= fields.of("status", ctx.query.status)
    return _page(ctx, matching)


def list_dead_letters(ctx: ReadContext, body: None) -> dict[str, Any]:
    only = ctx.query.webhook_id
    webhooks = (
        [row for _, row in ctx[WEBHOOKS].scan()] if only is None else [find_webhook(ctx, only)]
    )
    return _page(ctx, _letters(ctx, webhooks, [FAILED]))


def get_delivery(ctx: ReadContext, body: None) -> dict[str, Any]:
    webhook = find_webhook(ctx, ctx.path["id"])
    return detail(ctx, webhook, _of_webhook(ctx, webhook))


def replay(ctx: WriteContext, body: None) -> Reply:
    webhook = find_webhook(ctx, ctx.path["id"])
    row = _of_webhook(ctx, webhook)
    if row.status not in UNDER_WAY:
        if webhook.status != ACTIVE:
            raise Conflict("The webhook is disabled; enable it with PUT /v1/webhooks/{id} first.")
        if not ctx[BODIES].has(row.ordinal):
            raise Conflict("What this event told of was deleted, and its body with it.")
        row = send_again(ctx, webhook, row)
    return Reply(202, view(webhook, row), look_again(webhook, row))


def look_again(webhook: WebhookRow, row: DeliveryRow) -> dict[str, str]:
    """The headers of a 202: where and when to see what became of it."""
    return {
        "Location": f"/v1/webhooks/{webhook.id}/deliveries/{row.id}",
        "Retry-After": str(RETRY_AFTER_SECONDS),
    }


def replay_many(ctx: WriteContext, body: ReplayMany) -> Reply:
    headers = {
        "Location": "/v1/webhooks/dead-letters",
        "Retry-After": str(RETRY_AFTER_SECONDS),
    }
    return Reply(202, _replayed(ctx, body), headers)


def _replayed(ctx: WriteContext, body: ReplayMany) -> Replayed:
    if body.ids is not None:
        results = [_replay_id(ctx, delivery_id) for delivery_id in body.ids]
        return Replayed(
            replayed=sum(result.status == "replayed" for result in results),
            has_more=False,
            results=results,
        )
    active = {row.ordinal: row for _, row in ctx[WEBHOOKS].scan() if row.status == ACTIVE}
    letters = _letters(
        ctx, list(active.values()), [FAILED, SKIPPED] if body.include_skipped else [FAILED]
    )
    results: list[ReplayResult] = []
    found = _between(ctx, letters, body.since, body.until)
    for examined, ordinal in enumerate(found):
        if (
            len(results) == limits.DELIVERIES_REPLAYED_MAX
            or examined == limits.DELIVERIES_EXAMINED_MAX
        ):
            return Replayed(replayed=len(results), has_more=True, results=results)
        if ctx[BODIES].has(ordinal):
            row = ctx[DELIVERIES].row(ordinal)
            send_again(ctx, active[row.webhook], row)
            results.append(ReplayResult(id=row.id, status="replayed"))
    return Replayed(replayed=len(results), has_more=False, results=results)


def view(webhook: WebhookRow, row: DeliveryRow) -> dict[str, Any]:
    """What the API says of one delivery, without its attempts."""
    return {
        "id": row.id,
        "webhook_id": webhook.id,
        "event_id": row.event_id,
        "event_type": row.kind,
        "status": row.status,
        "idempotency_key": row.idempotency_key,
        "attempt_count": row.made,
        "created_at": iso(row.created_at),
        "next_attempt_at": None if row.next_at is None else iso(row.next_at),
        "finished_at": None if row.finished_at is None else iso(row.finished_at),
    }


def detail(ctx: ReadContext, webhook: WebhookRow, row: DeliveryRow) -> dict[str, Any]:
    """One delivery with its attempts and what was sent, unless that was deleted since."""
    attempts = [
        {
            "at": iso(attempt.at),
            "status_code": attempt.status_code,
            "duration_ms": attempt.duration_ms,
            "error": attempt.error,
            "response_body": attempt.response_body.decode("utf-8", "replace"),
        }
        for _, attempt in ctx[ATTEMPTS].scan(row.ordinal)
    ]
    # What was deleted is shown to nobody, even while the receiver has still to be told.
    kept = None if row.is_gone else ctx[BODIES].get(row.ordinal)
    return {
        **view(webhook, row),
        "attempts": attempts,
        "payload": None if kept is None else orjson.loads(kept.body),
    }


def _page(ctx: ReadContext, matching: BitMap) -> dict[str, Any]:
    page, following = newest_first(ctx, matching)
    rows = [ctx[DELIVERIES].row(ordinal) for ordinal in page]
    return envelope(
        ctx, [view(ctx[WEBHOOKS].row(row.webhook), row) for row in rows], following, len(matching)
    )


def _letters(ctx: ReadContext, webhooks: list[WebhookRow], states: list[str]) -> BitMap:
    """Deliveries of these webhooks in these states. Those of a deleted webhook are nobody's, even
    while they wait to be removed.
    """
    fields = ctx.index(DELIVERY_FIELDS)
    return fields.any_of("status", states) & fields.any_of(
        "webhook", [row.ordinal for row in webhooks]
    )


def _of_webhook(ctx: ReadContext, webhook: WebhookRow) -> DeliveryRow:
    missing = NotFound("This webhook has no delivery with this id.")
    row = _find(ctx, ctx.path["delivery_id"], missing)
    if row.webhook != webhook.ordinal:
        raise missing
    return row


def _find(ctx: ReadContext, delivery_id: str, missing: NotFound) -> DeliveryRow:
    number = ctx[DELIVERY_IDS].get(ctx.check_id("dlv", delivery_id, missing))
    if number is None:
        raise missing
    return ctx[DELIVERIES].row(int.from_bytes(number, "big"))


def _replay_id(ctx: WriteContext, delivery_id: str) -> ReplayResult:
    try:
        row = _find(ctx, delivery_id, NotFound("There is no delivery with this id."))
    except PermissionDenied:
        return ReplayResult(id=delivery_id, status="forbidden")
    except NotFound:
        return ReplayResult(id=delivery_id, status="not_found")
    webhook = ctx[WEBHOOKS].get(row.webhook)
    if webhook is None:
        return ReplayResult(id=delivery_id, status="not_found")
    if row.status in UNDER_WAY:
        return ReplayResult(id=delivery_id, status="under_way")
    if webhook.status != ACTIVE or not ctx[BODIES].has(row.ordinal):
        return ReplayResult(id=delivery_id, status="refused")
    send_again(ctx, webhook, row)
    return ReplayResult(id=delivery_id, status="replayed")


def _between(ctx: ReadContext, ordinals: BitMap, since: int | None, until: int | None) -> BitMap:
    """Deliveries of events in [since, until)."""
    first = 0 if since is None else _first_at(ctx, ordinals, since)
    end = len(ordinals) if until is None else _first_at(ctx, ordinals, until)
    return ordinals[first:end]


def _first_at(ctx: ReadContext, ordinals: BitMap, at: int) -> int:
    """Which is the first of an event at this time or later. They are stored in the order of time,
    so it is found by halving.
    """
    return bisect_left(
        range(len(ordinals)),
        at,
        key=lambda place: ctx[DELIVERIES].row(ordinals[place]).created_at,
    )


# --- operations -----------------------------------------------------------------------------------

_WEBHOOK_ID = "whk_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_DELIVERY_ID = "dlv_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"
_MEMORY_ID = "mem_06a1kz0c9j3s5d7p9f1w3y5a7c9e2g4h"
_EVENT_ID = "evt_06a1kz0c9j3s5d7p9f1w3y5a7c9e2g4h"
_KEY = f"memory.deleted:{_MEMORY_ID}:5f3c1c1e-8d5a-4f0e-9a51-0c6d3f1b2a77:{_WEBHOOK_ID}"
_EXAMPLE = {
    "id": _DELIVERY_ID, "webhook_id": _WEBHOOK_ID, "event_id": _EVENT_ID,
    "event_type": "memory.deleted", "status": "failed", "idempotency_key": _KEY, "attempt_count": 5,
    "created_at": "2026-05-08T13:56:00.000Z", "next_attempt_at": None,
    "finished_at": "2026-05-08T13:57:03.000Z",
}  # fmt: skip
_ATTEMPT = {
    "at": "2026-05-08T13:56:00.120Z", "status_code": 503, "duration_ms": 84,
    "error": "The receiver answered 503.", "response_body": "try later",
}  # fmt: skip
_PAYLOAD = {
    "id": _EVENT_ID, "event_type": "memory.deleted", "timestamp": 1778248560,
    "idempotency_key": _KEY,
    "data": {
        "id": _MEMORY_ID, "version": 2,
        "collection_id": "col_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
        "deleted_at": "2026-05-08T13:56:00.000Z",
    },
}  # fmt: skip

OPERATIONS = (
    Read(
        name="webhooks.dead_letters.list",
        method="GET",
        path="/v1/webhooks/dead-letters",
        handler=list_dead_letters,
        query=DeadLetterQuery,
        response=Page[Delivery],
        summary="List the dead letters",
        description=(
            "Deliveries that failed five times, of all webhooks, newest first. They are kept for "
            "30 days."
        ),
        example_reply=example_page(_EXAMPLE),
    ),
    Write(
        name="webhooks.dead_letters.replay",
        method="POST",
        path="/v1/webhooks/dead-letters/replay",
        handler=replay_many,
        body=ReplayMany,
        response=Replayed,
        statuses=(202,),
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Replay dead letters",
        description=(
            "By their ids, or all of a range of time, up to 1,000 a call. Those of disabled "
            "webhooks are left out of a range."
        ),
        example={"since": "2026-05-08T00:00:00Z", "until": "2026-05-09T00:00:00Z"},
        example_reply={
            "replayed": 1,
            "has_more": False,
            "results": [{"id": _DELIVERY_ID, "status": "replayed"}],
        },
    ),
    Read(
        name="webhooks.deliveries.list",
        method="GET",
        path="/v1/webhooks/{id}/deliveries",
        handler=list_deliveries,
        query=DeliveryQuery,
        response=Page[Delivery],
        summary="List the deliveries of a webhook",
        description="Newest first. Delivered ones are kept for a week, failed and skipped ones "
        "for 30 days.",
        example_reply=example_page(_EXAMPLE),
    ),
    Read(
        name="webhooks.deliveries.get",
        method="GET",
        path="/v1/webhooks/{id}/deliveries/{delivery_id}",
        handler=get_delivery,
        response=DeliveryDetail,
        summary="Get a delivery with its attempts",
        example_reply={**_EXAMPLE, "attempts": [_ATTEMPT], "payload": _PAYLOAD},
    ),
    Write(
        name="webhooks.deliveries.replay",
        method="POST",
        path="/v1/webhooks/{id}/deliveries/{delivery_id}/replay",
        handler=replay,
        response=Delivery,
        statuses=(202,),
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Replay a delivery",
        description=(
            "The same event id, body and idempotency_key, with five attempts more. One that is "
            "under way stays as it is."
        ),
        example_reply={**_EXAMPLE, "status": "pending", "finished_at": None},
    ),
)


def export(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    """("webhook_delivery", record, key) for each behind a key, oldest first."""
    for key, row in ctx[DELIVERIES].scan(after=after):
        webhook = ctx[WEBHOOKS].get(row.webhook)
        if webhook is not None:
            yield "webhook_delivery", detail(ctx, webhook, row), key
