"""How events reach webhooks: heard in the write that made them, sent by a background job, at least
once.

`hear` runs inside the transaction of every event and adds a delivery for each webhook that listens
to its kind. The job `webhooks.deliver` makes the attempts, in a concurrency group of the webhook's
own, so that a receiver that hangs delays no other. A crash may repeat an attempt and loses none.
Deliveries are not ordered; `data.version` tells which of two is newer.

An attempt succeeds with a 2xx. After any other answer, or none, another one follows: at most
WEBHOOK_ATTEMPTS_MAX, with waits of 4, 8, 16 and 32 seconds, up to a tenth longer so that many do
not come at once. A Retry-After may prolong a wait to twice itself.

A webhook is disabled when the receiver answers 410, at once, or when nothing but failures came of
all attempts for 120 hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from plugins.webhooks.limits import (
    DELIVERIES_ERASED_PER_STEP,
    WEBHOOK_ATTEMPTS_MAX,
    WEBHOOK_BACKOFF_JITTER_SHARE,
    WEBHOOK_BACKOFF_SECONDS_MAX,
)
from plugins.webhooks.settings import WebhooksSettings
from plugins.webhooks.store import (
    ACTIVE,
    BODIES,
    DELETIONS,
    DELIVERED,
    DELIVERIES,
    DELIVERY_FIELDS,
    DISABLED,
    FAILED,
    RETRYING,
    SKIPPED,
    STATES,
    SUBSCRIPTIONS,
    UNDER_WAY,
    WEBHOOKS,
    AttemptRow,
    DeliveryRow,
    StateRow,
    WebhookRow,
    add_delivery,
    finish,
    forget_resource,
    put_attempt,
    put_delivery,
    put_webhook,
    remove_delivery,
    secrets_of,
    state_of,
)
from runtime import signatures
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.plugin import Job
from runtime.api.steps import JobSteps
from runtime.inference import Models
from runtime.outbound import OutboundAnswer, OutboundOfAccount
from runtime.retry_after import seconds_asked

GONE = 410
USER_AGENT = "Mneme-Webhooks/1"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request, ready to be made."""

    outbound: OutboundOfAccount
    url: str
    headers: Mapping[str, str]
    body: bytes
    seconds: float


class Answered(NamedTuple):
    """What came of a request, and where it was sent."""

    url: str
    answer: OutboundAnswer


# --- hearing of events ----------------------------------------------------------------------------


def is_awaited(ctx: ReadContext, kind: str) -> bool:
    """Whether a webhook of this account listens to events of this kind."""
    return ctx[SUBSCRIPTIONS].have_any([(kind,)])[0]


def hear(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber of every event: deliveries for the webhooks that listen, in the event's own
    transaction.
    """
    if kind in DELETIONS:
        forget_resource(ctx, resource_id)
    for _, ordinal in list(ctx[SUBSCRIPTIONS].keys(kind)):
        add_delivery(ctx, ctx[WEBHOOKS].row(ordinal), event_id, kind, data, resource_id)


# --- the job --------------------------------------------------------------------------------------


def load(ctx: ReadContext, payload: Mapping[str, Any]) -> Attempt | None:
    """The request to make, signed for now; None when there is no reason to make one any more."""
    row, webhook = _delivery_and_webhook(ctx, payload)
    if row is None or webhook is None or webhook.status != ACTIVE or row.status not in UNDER_WAY:
        return None
    body = ctx[BODIES].row(row.ordinal).body
    signed = signatures.headers(row.event_id, body, secrets_of(ctx, webhook), ctx.now // 1000)
    headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **signed}
    return Attempt(
        ctx.outbound, webhook.url, headers, body, WebhooksSettings.of(ctx.settings).timeout_seconds
    )


async def attempt(
    steps: JobSteps, loaded: Attempt | None, payload: Mapping[str, Any], models: Models
) -> Answered | None:
    """Make the request; -> what came of it."""
    if loaded is None:
        return None
    sent = loaded.url, loaded.headers, loaded.body, loaded.seconds
    return Answered(loaded.url, await loaded.outbound.post(*sent))


def settle(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | None:
    """Write down what came of an attempt, and whether there will be another one."""
    row, webhook = _delivery_and_webhook(ctx, payload)
    if row is None or webhook is None or row.status not in UNDER_WAY:
        return None
    answered: Answered | None = ctx.prepared
    if answered is None and webhook.status == ACTIVE:
        return Again(payload)  # it was enabled while this looked away
    state = state_of(ctx, webhook.ordinal)
    again = (
        _skipped(ctx, row) if answered is None else _attempted(ctx, row, webhook, state, answered)
    )
    if again is None:
        state.pending -= 1
    ctx[STATES].put((webhook.ordinal,), state)
    return again


def give_up(ctx: WriteContext, payload: Mapping[str, Any], reason: str) -> None:
    """The job itself failed, over and over: the delivery is a dead letter like any other."""
    row, webhook = _delivery_and_webhook(ctx, payload)
    if row is None or webhook is None or row.status not in UNDER_WAY:
        return
    row = _logged(ctx, row, AttemptRow(ctx.now, 0, error=reason))
    finish(ctx, row, FAILED)
    state = state_of(ctx, webhook.ordinal)
    state.pending -= 1
    ctx[STATES].put((webhook.ordinal,), state)


def cleanup(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, int]:
    """One step of removing the deliveries of a deleted webhook."""
    of_webhook = ctx.index(DELIVERY_FIELDS).of("webhook", payload["webhook"])
    for ordinal in of_webhook[:DELIVERIES_ERASED_PER_STEP]:
        remove_delivery(ctx, ctx[DELIVERIES].row(ordinal))
    erased = payload.get("erased", 0) + min(len(of_webhook), DELIVERIES_ERASED_PER_STEP)
    return (
        Again({**payload, "erased": erased})
        if len(of_webhook) > DELIVERIES_ERASED_PER_STEP
        else {"deliveries": erased}
    )


JOBS = (
    Job("webhooks.deliver", settle, load=load, prepare=attempt, failed=give_up, keep=False),
    Job("webhooks.cleanup", cleanup),
)


def _delivery_and_webhook(
    ctx: ReadContext, payload: Mapping[str, Any]
) -> tuple[DeliveryRow | None, WebhookRow | None]:
    row = ctx[DELIVERIES].get(payload["delivery"])
    return row, None if row is None else ctx[WEBHOOKS].get(row.webhook)


def _skipped(ctx: WriteContext, row: DeliveryRow) -> None:
    """Note that no attempt was made, since the webhook is disabled."""
    finish(ctx, row, SKIPPED)


def _attempted(
    ctx: WriteContext,
    row: DeliveryRow,
    webhook: WebhookRow,
    state: StateRow,
    answered: Answered,
) -> Again | None:
    url, answer = answered
    error = (
        answer.error
        if answer.status is None or answer.kind == "2xx"
        else f"The receiver answered {answer.status}."
    )
    row = _logged(
        ctx, row, AttemptRow(ctx.now, answer.duration_ms, answer.status, error, answer.body)
    )
    if answer.kind == "2xx":
        state.failures, state.failing_since, state.last_delivery_at = 0, None, ctx.now
        finish(ctx, row, DELIVERED)
        return None
    is_its_own = url == webhook.url  # what another receiver said tells nothing of this one
    if is_its_own:
        state.failures += 1
        since = ctx.now if state.failing_since is None else state.failing_since
        state.failing_since = since
        _disable_if_hopeless(ctx, webhook, since, answer, error)
    if (is_its_own and answer.status == GONE) or row.tries >= WEBHOOK_ATTEMPTS_MAX:
        finish(ctx, row, FAILED)
        return None
    chance = int.from_bytes(ctx.random(4), "big") / 2**32
    wait = wait_ms(
        WebhooksSettings.of(ctx.settings).backoff_seconds_min,
        row.tries,
        chance,
        seconds_asked(answer.retry_after, ctx.now / 1000),
    )
    put_delivery(ctx, msgspec.structs.replace(row, status=RETRYING, next_at=ctx.now + wait), row)
    return Again({"delivery": row.ordinal}, delay_ms=wait)


def _logged(ctx: WriteContext, row: DeliveryRow, attempt: AttemptRow) -> DeliveryRow:
    row = msgspec.structs.replace(row, tries=row.tries + 1, made=row.made + 1)
    put_attempt(ctx, row, attempt)
    return row


def _disable_if_hopeless(
    ctx: WriteContext, webhook: WebhookRow, since: int, answer: OutboundAnswer, error: str | None
) -> None:
    failing_seconds = (ctx.now - since) // 1000
    if answer.status == GONE:
        reason = "The receiver answered 410 Gone."
    elif failing_seconds >= WebhooksSettings.of(ctx.settings).disable_after_seconds:
        reason = (
            f"Every attempt of the last {failing_seconds // 3600} hours failed. The last one: "
            f"{error}"
        )
    else:
        return
    if webhook.status == ACTIVE:
        put_webhook(
            ctx,
            msgspec.structs.replace(
                webhook, status=DISABLED, disabled_reason=reason, updated_at=ctx.now
            ),
        )


# --- waiting --------------------------------------------------------------------------------------


def wait_ms(
    base_seconds: float, tries: int, chance: float, asked_seconds: float | None = None
) -> int:
    """Milliseconds from failed attempt number `tries` (from 1) to the next one.

    base_seconds  after the first attempt; each further wait is twice as long
    chance        in [0, 1), for the jitter, which only prolongs
    asked_seconds what the receiver asked for; it counts up to twice the wait
    """
    base = min(base_seconds * 2 ** (tries - 1), WEBHOOK_BACKOFF_SECONDS_MAX) * 1000
    wait = base * (1 + WEBHOOK_BACKOFF_JITTER_SHARE * chance)
    if asked_seconds is not None:
        wait = max(wait, min(asked_seconds * 1000, 2 * base))
    return int(min(wait, WEBHOOK_BACKOFF_SECONDS_MAX * 1000))
