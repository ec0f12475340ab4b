"""The endpoints of webhooks: made, read, replaced, deleted, their secrets rotated, tried out."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from plugins.webhooks import deliveries as webhook_log
from plugins.webhooks import limits
from plugins.webhooks.models import (
    DeletedWebhook,
    NewWebhook,
    RotatedWebhook,
    Rotation,
    TestEvent,
    Webhook,
    WebhookReplacement,
    WebhookWithSecret,
)
from plugins.webhooks.store import (
    ACTIVE,
    DELIVERIES,
    DELIVERY_FIELDS,
    DISABLED,
    EVENT_KINDS,
    STATES,
    TABLES,
    WEBHOOKS,
    StateRow,
    WebhookRow,
    add_delivery,
    find_webhook,
    put_webhook,
    remove_webhook,
    seal,
    state_of,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from runtime.api.operation import Call, Idempotency, Read, Reply, Write
from runtime.api.pagination import Page, PageQuery, envelope, example_page, position
from runtime.errors import BadRequest, Conflict, ValidationFailed
from runtime.inference import Models
from runtime.outbound import DestinationRefused, OutboundOfAccount
from runtime.settings import Settings
from runtime.signatures import SECRET_PREFIX
from runtime.timestamps import iso
from storage.store import Key

SECRET_BYTES = 32
SECRET_DRAWS_MAX = 1_000
OWNERS_REASON = "Disabled by its owner."


def load_target(ctx: ReadContext, body: NewWebhook | WebhookReplacement) -> OutboundOfAccount:
    """The way out, which knows what may be asked for. A webhook that is not there is said so before
    any name is looked up.
    """
    if "id" in ctx.path:
        find_webhook(ctx, ctx.path["id"])
    require_kinds(ctx, body.events)
    return ctx.outbound


def require_kinds(ctx: ReadContext, events: Sequence[str]) -> None:
    """Raise ValidationFailed where there is no such event, or none that leaves the service."""
    public = (kind for kind in ctx.registry.events if not kind.startswith("internal."))
    *known, last = dict.fromkeys((*EVENT_KINDS, *public))
    for number, kind in enumerate(events):
        if kind not in (*known, last):
            choices = f"must be one of {', '.join(map(repr, known))} or {last!r}"
            raise ValidationFailed.at(("body", "events", number), choices, "literal_error")


async def check_target(call: Call, outbound: OutboundOfAccount, models: Models) -> None:
    """Refuse a target inside the operator's network."""
    try:
        await outbound.check(call.body.url, limits.WEBHOOK_CHECK_SECONDS_MAX)
    except DestinationRefused as refused:
        raise ValidationFailed.at(("body", "url"), str(refused)) from None


def create(ctx: WriteContext, body: NewWebhook) -> Reply:
    if ctx[WEBHOOKS].count() >= limits.WEBHOOKS_PER_TENANT_MAX:
        raise BadRequest(
            f"An account has at most {limits.WEBHOOKS_PER_TENANT_MAX} webhooks; delete one first."
        )
    webhook_id, secret = ctx.new_id("whk"), body.signing_secret or make_secret(ctx)
    row = WebhookRow(
        id=webhook_id,
        ordinal=ctx.next_ordinal("webhooks"),
        url=body.url,
        events=tuple(body.events),
        created_at=ctx.now,
        updated_at=ctx.now,
        secret=seal(ctx, webhook_id, secret),
        description=body.description,
    )
    put_webhook(ctx, row)
    return Reply(201, {**view(ctx, row), "signing_secret": secret}, resource_id=row.id)


def get(ctx: ReadContext, body: None) -> dict[str, Any]:
    return view(ctx, find_webhook(ctx, ctx.path["id"]))


def list_webhooks(ctx: ReadContext, body: None) -> dict[str, Any]:
    limit = ctx.query.limit
    found = list(ctx[WEBHOOKS].scan(before=position(ctx), reverse=True, limit=limit + 1))
    page = found[:limit]
    items = [view(ctx, row) for _, row in page]
    return envelope(ctx, items, page[-1][0] if len(found) > limit else None, ctx[WEBHOOKS].count())


def replace(ctx: WriteContext, body: WebhookReplacement) -> dict[str, Any]:
    before = find_webhook(ctx, ctx.path["id"])
    after = msgspec.structs.replace(
        before,
        url=body.url,
        events=tuple(body.events),
        description=body.description,
        status=body.status,
        disabled_reason=None if body.status == ACTIVE else before.disabled_reason or OWNERS_REASON,
        updated_at=ctx.now,
    )
    is_enabled = before.status == DISABLED and after.status == ACTIVE
    if is_enabled or after.url != before.url:  # nothing is known of this receiver yet
        state = state_of(ctx, before.ordinal)
        ctx[STATES].put(
            (before.ordinal,), StateRow(state.pending, last_delivery_at=state.last_delivery_at)
        )
    put_webhook(ctx, after)
    return view(ctx, after)


def delete(ctx: WriteContext, body: None) -> DeletedWebhook:
    row = find_webhook(ctx, ctx.path["id"])
    remove_webhook(ctx, row)
    return DeletedWebhook(id=row.id, deleted=True)


def remove_all(ctx: WriteContext, event_id: str, kind: str, data: Any, resource_id: str) -> None:
    """The account went to the holder of its address: what the one before set up tells nobody of
    what is stored from now on.
    """
    for _, row in list(ctx[WEBHOOKS].scan()):
        remove_webhook(ctx, row)


def rotate(ctx: WriteContext, body: Rotation) -> dict[str, Any]:
    before = find_webhook(ctx, ctx.path["id"])
    secret = body.signing_secret or make_secret(ctx)
    until = ctx.now + body.grace_seconds * 1000
    after = msgspec.structs.replace(
        before,
        secret=seal(ctx, before.id, secret),
        previous_secret=before.secret if body.grace_seconds else b"",
        previous_until=until,
        updated_at=ctx.now,
    )
    put_webhook(ctx, after)
    return {**view(ctx, after), "signing_secret": secret, "previous_secret_expires_at": iso(until)}


def send_test(ctx: WriteContext, body: None) -> Reply:
    row = find_webhook(ctx, ctx.path["id"])
    if row.status != ACTIVE:
        raise Conflict("The webhook is disabled; enable it with PUT /v1/webhooks/{id} first.")
    delivery = add_delivery(
        ctx, row, ctx.new_id("evt"), row.events[0], {"test": True, "id": row.id}, row.id
    )
    sent = {"event_id": delivery.event_id, "delivery_id": delivery.id}
    return Reply(202, sent, webhook_log.look_again(row, delivery), resource_id=delivery.id)


def make_secret(ctx: WriteContext) -> str:
    """A new signing secret, of more than 250 random bits. It has neither "-" nor "_", so that
    base64 in either alphabet reads it.
    """
    for _ in range(SECRET_DRAWS_MAX):
        text = base64.urlsafe_b64encode(ctx.random(SECRET_BYTES)).rstrip(b"=").decode()
        if text.isalnum():
            return SECRET_PREFIX + text
    raise RuntimeError("no secret without - and _ was drawn")


def view(ctx: ReadContext, row: WebhookRow) -> dict[str, Any]:
    """What the API says of a webhook: never its secret, but how its deliveries go."""
    state = state_of(ctx, row.ordinal)
    return {
        "id": row.id,
        "url": row.url,
        "events": list(row.events),
        "description": row.description,
        "status": row.status,
        "disabled_reason": row.disabled_reason,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "last_delivery_at": None if state.last_delivery_at is None else iso(state.last_delivery_at),
        "failure_count": state.failures,
    }


def kept_elsewhere(settings: Settings, erased: Mapping[str, int]) -> dict[str, str]:
    """Who may still have what was delivered."""
    if not (erased.get(WEBHOOKS.name) or erased.get(DELIVERIES.name)):
        return {}
    return {"webhook receivers": "What was delivered is with those who received it."}


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all webhooks and deliveries. Counts of rows by table."""
    return {table.name: ctx[table].delete_prefix() for table in (*TABLES, *DELIVERY_FIELDS.tables)}


def export(ctx: ReadContext) -> Iterator[Exported]:
    """The webhooks, without secrets, and their deliveries: ("webhook" | "webhook_delivery",
    record, place).

    An import takes neither in: without its secret a webhook could sign nothing that its receiver
    accepts.
    """
    return sections(ctx, _webhooks, webhook_log.export)


def _webhooks(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for key, row in ctx[WEBHOOKS].scan(after=after):
        yield "webhook", view(ctx, row), key


_ID = "whk_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_NEW = {"url": "https://hooks.example.com/mneme", "events": ["memory.created", "memory.deleted"]}
_EXAMPLE = {
    "id": _ID, **_NEW, "description": None, "status": "active", "disabled_reason": None,
    "created_at": "2026-05-08T13:56:00.000Z", "updated_at": "2026-05-08T13:56:00.000Z",
    "last_delivery_at": None, "failure_count": 0,
}  # fmt: skip
_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYq"

OPERATIONS = (
    Write(
        name="webhooks.create",
        method="POST",
        path="/v1/webhooks",
        handler=create,
        load=load_target,
        prepare=check_target,
        remote=lambda call: True,  # a name is looked up
        body=NewWebhook,
        response=WebhookWithSecret,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Create a webhook",
        description=(
            "The signing secret is in this answer only. An address in a private or reserved "
            "network is 422."
        ),
        example=_NEW,
        example_reply={**_EXAMPLE, "signing_secret": _SECRET},
    ),
    Read(
        name="webhooks.list",
        method="GET",
        path="/v1/webhooks",
        handler=list_webhooks,
        query=PageQuery,
        response=Page[Webhook],
        summary="List webhooks",
        example_reply=example_page(_EXAMPLE),
    ),
    Read(
        name="webhooks.get",
        method="GET",
        path="/v1/webhooks/{id}",
        handler=get,
        response=Webhook,
        summary="Get a webhook",
        example_reply=_EXAMPLE,
    ),
    Write(
        name="webhooks.update",
        method="PUT",
        path="/v1/webhooks/{id}",
        handler=replace,
        load=load_target,
        prepare=check_target,
        remote=lambda call: True,  # a name is looked up
        body=WebhookReplacement,
        response=Webhook,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Replace a webhook's url, events, description and status",
        description=(
            "What is still to be delivered goes to the new url. Enabling a disabled webhook "
            "forgets its failures; what was skipped meanwhile can be replayed."
        ),
        example={**_NEW, "status": "active"},
        example_reply=_EXAMPLE,
    ),
    Write(
        name="webhooks.delete",
        method="DELETE",
        path="/v1/webhooks/{id}",
        handler=delete,
        response=DeletedWebhook,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Delete a webhook",
        description="With its deliveries, those under way included. Again is 404.",
        example_reply={"id": _ID, "deleted": True},
    ),
    Write(
        name="webhooks.test",
        method="POST",
        path="/v1/webhooks/{id}/test",
        handler=send_test,
        response=TestEvent,
        statuses=(202,),
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Send a test event",
        description=(
            "Of the first kind the webhook takes, with the data `{test: true, id: <webhook id>}`. "
            "A disabled webhook is 409."
        ),
        example_reply={
            "event_id": "evt_06a1kz0c9j3s5d7p9f1w3y5a7c9e2g4h",
            "delivery_id": "dlv_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j",
        },
    ),
    Write(
        name="webhooks.rotate_secret",
        method="POST",
        path="/v1/webhooks/{id}/rotate-secret",
        handler=rotate,
        body=Rotation,
        response=RotatedWebhook,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Rotate the signing secret",
        description=(
            "The new secret signs X-Webhook-Signature-256 at once; until the grace is over the old "
            "one signs the header X-Webhook-Signature-256-Previous beside it."
        ),
        example={"grace_seconds": 86_400},
        example_reply={
            **_EXAMPLE,
            "signing_secret": _SECRET,
            "previous_secret_expires_at": "2026-05-09T13:56:00.000Z",
        },
    ),
    *webhook_log.OPERATIONS,
)
