"""Webhooks and their deliveries as they are stored.

Owns the rows, and every change of state that a delivery goes through. It does not know requests,
nor how an attempt is made: plugins/webhooks/__init__.py and plugins/webhooks/deliveries.py answer
the former, plugins/webhooks/delivery.py does the latter.

    pending → delivered
            ↘ retrying ↺ → delivered
                         ↘ failed        the dead letters
    skipped                              the webhook was disabled, or had too much waiting
    failed, skipped, delivered → pending by a replay: the same event id, body and idempotency_key

A delivery's body is stored once, as the bytes that every attempt sends. It is a copy of what the
event tells, so it goes with the resource: when a memory or document is deleted, bodies that tell of
it are erased. One that is still to be delivered goes out without what it told (an empty `content`
or `filename`) and is erased after that. What remains is when something was sent and how it was
answered.

Invariants
- a delivery has a job exactly while it is pending or retrying, and a body exactly while it can
  still be sent;
- `webhook_subscriptions` holds (kind, ordinal) exactly for the events of the webhooks that exist;
- signing secrets are sealed with the account's key.

    webhooks               (ordinal,)               -> WebhookRow
    webhook_ids            (webhook id,)            -> ordinal, 4 bytes big endian
    webhook_subscriptions  (event kind, ordinal)    -> b""
    webhook_states         (ordinal,)               -> StateRow          how it has gone lately
    deliveries             (ordinal,)               -> DeliveryRow
    delivery_ids           (delivery id,)           -> ordinal, 4 bytes big endian
    delivery_bodies        (ordinal,)               -> BodyRow           the request's body
    delivery_attempts      (ordinal, number)        -> AttemptRow        number counts from 1
    delivery_resources     (resource id, ordinal)   -> b""         deliveries whose body tells of it
    delivery_fields        bitmaps of ordinals: webhook, status
"""

from __future__ import annotations

import hmac
import uuid
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import orjson
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import Field

from plugins.webhooks.limits import (
    DELIVERED_RETENTION_SECONDS,
    UNDELIVERED_RETENTION_SECONDS,
    WEBHOOK_ATTEMPTS_KEPT_MAX,
    WEBHOOK_DELIVERIES_PENDING_MAX,
)
from runtime.api.checks import Counter, Derived, IndexEntries, last_ordinal
from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import EVENTS_TOO
from runtime.errors import NotFound
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE
from storage.indexes import BitmapIndex
from storage.store import Table

# A webhook may name a kind whose feature is not enabled: it will just not
# hear of it. Plugins of other packages add to them.
EVENT_KINDS = (
    "memory.created", "memory.updated", "memory.deleted", "memory.tier_changed",
    "document.created", "document.processed", "document.failed", "document.deleted",
    "collection.created", "collection.updated",
    "search.completed", "user.feedback_received",
    "rl.training_started", "rl.training_completed", "rl.training_failed",
    "billing.suspended", "billing.resumed",
)  # fmt: skip
EventKind = Annotated[str, Field(json_schema_extra={"enum": [*EVENT_KINDS], EVENTS_TOO: True})]
DELETIONS = ("memory.deleted", "document.deleted")
TELLING = tuple(
    kind
    for kind in EVENT_KINDS
    if kind.startswith(("memory.", "document.")) and kind not in DELETIONS
)

# What of an event's data is somebody's own words.
TOLD = ("content", "filename")

ACTIVE, DISABLED = "active", "disabled"
PENDING, RETRYING, DELIVERED, FAILED, SKIPPED = (
    "pending",
    "retrying",
    "delivered",
    "failed",
    "skipped",
)
UNDER_WAY = (PENDING, RETRYING)
_NONCE_BYTES = 12

# --- rows -----------------------------------------------------------------------------------------


class WebhookRow(msgspec.Struct, frozen=True):
    """Times in Unix milliseconds. secret, previous_secret: sealed; the previous one counts until
    previous_until.
    """

    id: str
    ordinal: int
    url: str
    events: tuple[str, ...]
    created_at: int
    updated_at: int
    secret: bytes
    description: str | None = None
    status: str = ACTIVE
    disabled_reason: str | None = None
    previous_secret: bytes = b""
    previous_until: int = 0


class StateRow(msgspec.Struct):
    """pending: deliveries under way; failures: failed attempts since the last success, the first of
    them at failing_since.
    """

    pending: int = 0
    failures: int = 0
    failing_since: int | None = None
    last_delivery_at: int | None = None


class DeliveryRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in Unix milliseconds.

    webhook   its ordinal
    tries     attempts since it was last pending; `made` counts all attempts ever
    next_at   when the next attempt is due, while there is one
    is_gone   its resource was deleted: the body and the answers go when the delivery ends
    """

    id: str
    ordinal: int
    webhook: int
    event_id: str
    kind: str
    resource_id: str
    idempotency_key: str
    created_at: int
    status: str = PENDING
    tries: int = 0
    made: int = 0
    next_at: int | None = None
    finished_at: int | None = None
    is_gone: bool = False


class BodyRow(msgspec.Struct):
    """The bytes that every attempt sends."""

    body: bytes


class AttemptRow(msgspec.Struct):
    """status_code is None, and error says why, when there was no answer. response_body: its first
    bytes.
    """

    at: int
    duration_ms: int
    status_code: int | None = None
    error: str | None = None
    response_body: bytes = b""


WEBHOOKS: Table[WebhookRow] = Table(
    "webhooks", key=("ordinal",), row=WebhookRow, doc="webhooks of an account, secrets sealed"
)
WEBHOOK_IDS: Table[bytes] = Table(
    "webhook_ids", key=("webhook_id",), row=bytes, doc="webhook id to ordinal, 4 bytes big endian"
)
SUBSCRIPTIONS: Table[bytes] = Table(
    "webhook_subscriptions",
    key=("kind", "ordinal"),
    row=bytes,
    doc="webhooks by the events they take",
)
STATES: Table[StateRow] = Table(
    "webhook_states",
    key=("ordinal",),
    row=StateRow,
    doc="how a webhook's deliveries have gone lately",
)
DELIVERIES: Table[DeliveryRow] = Table(
    "deliveries",
    key=("ordinal",),
    row=DeliveryRow,
    doc="events sent to webhooks: delivered ones for a week, others for 30 days",
)
DELIVERY_IDS: Table[bytes] = Table(
    "delivery_ids",
    key=("delivery_id",),
    row=bytes,
    doc="delivery id to ordinal, 4 bytes big endian",
)
BODIES: Table[BodyRow] = Table(
    "delivery_bodies",
    key=("ordinal",),
    row=BodyRow,
    doc="what a delivery sends; erased with what it tells of",
)
ATTEMPTS: Table[AttemptRow] = Table(
    "delivery_attempts", key=("ordinal", "number"), row=AttemptRow, doc="attempts of a delivery"
)
RESOURCES: Table[bytes] = Table(
    "delivery_resources",
    key=("resource_id", "ordinal"),
    row=bytes,
    doc="deliveries that tell of a resource",
)
DELIVERY_FIELDS = BitmapIndex("delivery_fields", fields=("webhook", "status"))

TABLES: tuple[Table, ...] = (
    WEBHOOKS,
    WEBHOOK_IDS,
    SUBSCRIPTIONS,
    STATES,
    DELIVERIES,
    DELIVERY_IDS,
    BODIES,
    ATTEMPTS,
    RESOURCES,
)

# --- webhooks -------------------------------------------------------------------------------------


def find_webhook(ctx: ReadContext, webhook_id: str) -> WebhookRow:
    """The webhook with this id. NotFound when there is none, PermissionDenied for another
    account's.
    """
    missing = NotFound("There is no webhook with this id; list yours with GET /v1/webhooks.")
    number = ctx[WEBHOOK_IDS].get(ctx.check_id("whk", webhook_id, missing))
    if number is None:
        raise missing
    return ctx[WEBHOOKS].row(int.from_bytes(number, "big"))


def put_webhook(ctx: WriteContext, row: WebhookRow) -> None:
    """Store a new or changed webhook, and what it listens to."""
    before = ctx[WEBHOOKS].get(row.ordinal)
    for kind in () if before is None else before.events:
        ctx[SUBSCRIPTIONS].delete(kind, row.ordinal)
    for kind in row.events:
        ctx[SUBSCRIPTIONS].put((kind, row.ordinal), b"")
    ctx[WEBHOOKS].put((row.ordinal,), row)
    ctx[WEBHOOK_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))


def remove_webhook(ctx: WriteContext, row: WebhookRow) -> None:
    """Remove a webhook at once; the job `webhooks.cleanup` removes its deliveries."""
    for kind in row.events:
        ctx[SUBSCRIPTIONS].delete(kind, row.ordinal)
    ctx[STATES].delete(row.ordinal)
    ctx[WEBHOOK_IDS].delete(row.id)
    ctx[WEBHOOKS].delete(row.ordinal)
    ctx.enqueue("webhooks.cleanup", {"webhook": row.ordinal})


def state_of(ctx: ReadContext, ordinal: int) -> StateRow:
    return ctx[STATES].get(ordinal) or StateRow()


def seal(ctx: WriteContext, webhook_id: str, secret: str) -> bytes:
    nonce = ctx.random(_NONCE_BYTES)
    return nonce + _cipher(ctx).encrypt(nonce, secret.encode(), webhook_id.encode())


def secrets_of(ctx: ReadContext, row: WebhookRow) -> list[str]:
    """The secret in force, then the previous one while its grace lasts."""
    sealed = [row.secret, row.previous_secret] if row.previous_until > ctx.now else [row.secret]
    return [
        _cipher(ctx).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], row.id.encode()).decode()
        for raw in sealed
    ]


def _cipher(ctx: ReadContext) -> AESGCM:
    return AESGCM(hmac.digest(ctx.scope.key, b"webhook-secret", "sha256"))


# --- deliveries -----------------------------------------------------------------------------------


def add_delivery(
    ctx: WriteContext,
    webhook: WebhookRow,
    event_id: str,
    kind: str,
    data: Mapping[str, Any],
    resource_id: str,
) -> DeliveryRow:
    """Write down that this webhook is to hear of this event, in the transaction of the event
    itself.
    """
    state = state_of(ctx, webhook.ordinal)
    row = DeliveryRow(
        id=ctx.new_id("dlv"),
        ordinal=ctx.next_ordinal("deliveries"),
        webhook=webhook.ordinal,
        event_id=event_id,
        kind=kind,
        resource_id=resource_id,
        idempotency_key=":".join(
            (kind, resource_id, str(uuid.UUID(bytes=ctx.random(16), version=4)), webhook.id)
        ),
        created_at=ctx.now,
        status=PENDING
        if webhook.status == ACTIVE and state.pending < WEBHOOK_DELIVERIES_PENDING_MAX
        else SKIPPED,
    )
    envelope = {
        "id": event_id,
        "event_type": kind,
        "timestamp": ctx.now // 1000,
        "data": data,
        "idempotency_key": row.idempotency_key,
    }
    ctx[BODIES].put((row.ordinal,), BodyRow(orjson.dumps(envelope)))
    ctx[DELIVERY_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))
    ctx.index(DELIVERY_FIELDS).add(row.ordinal, "webhook", webhook.ordinal)
    if kind in TELLING:
        ctx[RESOURCES].put((resource_id, row.ordinal), b"")
    if row.status == SKIPPED:
        row = msgspec.structs.replace(row, finished_at=ctx.now)
    else:
        _enqueue(ctx, webhook, row, state)
    put_delivery(ctx, row, None)
    return row


def send_again(ctx: WriteContext, webhook: WebhookRow, row: DeliveryRow) -> DeliveryRow:
    """Begin anew with a delivery that has ended and still has its body."""
    again = msgspec.structs.replace(row, status=PENDING, tries=0, next_at=None, finished_at=None)
    _enqueue(ctx, webhook, again, state_of(ctx, webhook.ordinal))
    put_delivery(ctx, again, row)
    return again


def _enqueue(ctx: WriteContext, webhook: WebhookRow, row: DeliveryRow, state: StateRow) -> None:
    state.pending += 1
    ctx[STATES].put((webhook.ordinal,), state)
    ctx.enqueue("webhooks.deliver", {"delivery": row.ordinal}, group=webhook.id)


def finish(ctx: WriteContext, row: DeliveryRow, status: str) -> DeliveryRow:
    """The delivery ends, well or not. Its webhook's count of those under way is the caller's
    business.
    """
    after = msgspec.structs.replace(row, status=status, next_at=None, finished_at=ctx.now)
    put_delivery(ctx, after, row)
    if row.is_gone:
        _forget_contents(ctx, row.ordinal)
    _sweep(ctx)
    return after


def put_delivery(ctx: WriteContext, row: DeliveryRow, before: DeliveryRow | None) -> None:
    """Write the row and keep its status bitmap."""
    if before is None or before.status != row.status:
        fields = ctx.index(DELIVERY_FIELDS)
        if before is not None:
            fields.remove(row.ordinal, "status", before.status)
        fields.add(row.ordinal, "status", row.status)
    ctx[DELIVERIES].put((row.ordinal,), row)


def put_attempt(ctx: WriteContext, row: DeliveryRow, attempt: AttemptRow) -> None:
    """Log attempt number `row.made`; of a delivery that is replayed over and over the oldest are
    forgotten.
    """
    ctx[ATTEMPTS].put((row.ordinal, row.made), attempt)
    if row.made > WEBHOOK_ATTEMPTS_KEPT_MAX:
        ctx[ATTEMPTS].delete(row.ordinal, row.made - WEBHOOK_ATTEMPTS_KEPT_MAX)


def forget_resource(ctx: WriteContext, resource_id: str) -> None:
    """Forget a deleted memory or document: no body tells of it any more, and those of deliveries
    that are under way stay as long as these need them.
    """
    for _, ordinal in list(ctx[RESOURCES].keys(resource_id)):
        ctx[RESOURCES].delete(resource_id, ordinal)
        row = ctx[DELIVERIES].row(ordinal)
        if row.status in UNDER_WAY:
            ctx[DELIVERIES].put((ordinal,), msgspec.structs.replace(row, is_gone=True))
            _blank(ctx, ordinal)
        else:
            _forget_contents(ctx, ordinal)


def _blank(ctx: WriteContext, ordinal: int) -> None:
    """Take out of a body that is still to be sent what it tells of its resource."""
    envelope = orjson.loads(ctx[BODIES].row(ordinal).body)
    data = envelope["data"]
    data |= {name: "" for name in TOLD if isinstance(data.get(name), str)}
    ctx[BODIES].put((ordinal,), BodyRow(orjson.dumps(envelope)))


def _forget_contents(ctx: WriteContext, ordinal: int) -> None:
    """Forget what a delivery sent, and what was answered, which may repeat it."""
    ctx[BODIES].delete(ordinal)
    for key, attempt in list(ctx[ATTEMPTS].scan(ordinal)):
        ctx[ATTEMPTS].put(key, msgspec.structs.replace(attempt, response_body=b""))


def remove_delivery(ctx: WriteContext, row: DeliveryRow) -> None:
    """Remove a delivery with its attempts and index entries."""
    fields = ctx.index(DELIVERY_FIELDS)
    fields.remove(row.ordinal, "webhook", row.webhook)
    fields.remove(row.ordinal, "status", row.status)
    ctx[RESOURCES].delete(row.resource_id, row.ordinal)
    ctx[ATTEMPTS].delete_prefix(row.ordinal)
    ctx[BODIES].delete(row.ordinal)
    ctx[DELIVERY_IDS].delete(row.id)
    ctx[DELIVERIES].delete(row.ordinal)


def _sweep(ctx: WriteContext) -> None:
    """Forget a few deliveries that ended long ago."""
    fields = ctx.index(DELIVERY_FIELDS)
    for status, seconds in (
        (DELIVERED, DELIVERED_RETENTION_SECONDS),
        *((s, UNDELIVERED_RETENTION_SECONDS) for s in (FAILED, SKIPPED)),
    ):
        for ordinal in fields.of("status", status)[:EXPIRED_ROWS_SWEPT_PER_WRITE]:
            row = ctx[DELIVERIES].row(ordinal)
            if row.finished_at is not None and row.finished_at < ctx.now - seconds * 1000:
                remove_delivery(ctx, row)


# --- what must agree ------------------------------------------------------------------------------

CHECKS = (
    Derived(WEBHOOK_IDS, WEBHOOKS, lambda ctx, key, row: [((row.id,), key[0].to_bytes(4, "big"))]),
    Derived(
        SUBSCRIPTIONS,
        WEBHOOKS,
        lambda ctx, key, row: [((kind, key[0]), b"") for kind in row.events],
    ),
    Counter("webhooks", last_ordinal(WEBHOOKS)),
    Derived(
        DELIVERY_IDS, DELIVERIES, lambda ctx, key, row: [((row.id,), key[0].to_bytes(4, "big"))]
    ),
    IndexEntries(
        DELIVERY_FIELDS,
        DELIVERIES,
        lambda ctx, row: (("webhook", row.webhook), ("status", row.status)),
    ),
    Counter("deliveries", last_ordinal(DELIVERIES)),
)
