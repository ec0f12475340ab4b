"""The jobs that ask the payment provider to collect an invoice, to ask for less where a part of it
was taken back, and to forget one that was taken back whole.

A provider that does not answer is asked again for most of a day, as long as it knows a repeated
request for one. Who is to collect then is the operator's matter, and the log says so.
"""

from __future__ import annotations

import logging
from typing import Any

from plugins.billing import ledger, periods
from plugins.billing import stripe as billing_stripe
from plugins.billing.ledger import INVOICE_STATES, INVOICES, OPEN, VOID
from plugins.billing.limits import PAYMENT_ATTEMPTS_MAX, PAYMENT_BACKOFF_MS_MAX
from plugins.billing.settings import BillingSettings
from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.inference import Models

log = logging.getLogger("mneme.billing")


def load_demand(ctx: ReadContext, payload: dict[str, Any]) -> billing_stripe.Demand | None:
    """What is to be collected; None when it is paid, void or made at the provider already."""
    settings, row = BillingSettings.of(ctx.settings), ctx[INVOICES].row(payload["ordinal"])
    state = ctx[INVOICE_STATES].row(payload["ordinal"])
    if state.status != OPEN or state.provider_id or settings.stripe_api_key is None:
        return None
    return billing_stripe.Demand(
        api_key=settings.stripe_api_key.get_secret_value(),
        api_base=settings.stripe_api_base,
        invoice_id=row.id,
        number=row.number,
        currency=row.currency,
        lines=(
            *((line.description, line.amount_cents) for line in row.lines if line.amount_cents),
            *((("Taken back", -state.credited_cents),) if state.credited_cents else ()),
        ),
        tenant_id=ctx.principal.tenant_id,
        name=row.name,
        email=row.email,
        customer=periods.subscription(ctx).customer,
        slot=ctx.scope.slot,
        credited_cents=state.credited_cents,
    )


async def ask_for_money(
    steps: JobSteps, demand: billing_stripe.Demand | None, payload: dict[str, Any], models: Models
) -> billing_stripe.Collected | None:
    return None if demand is None else await billing_stripe.collect(demand)


def collected(ctx: WriteContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Note under which id the provider has the invoice."""
    made: billing_stripe.Collected | None = ctx.prepared
    if made is None:
        return {}
    state = ctx[INVOICE_STATES].row(payload["ordinal"])
    state.provider_id, state.payment_url = made.provider_id, made.payment_url
    ctx[INVOICE_STATES].put((payload["ordinal"],), state)
    # It may have been taken back, or a part of it, while the provider was asked.
    if state.status == VOID:
        ctx.enqueue(ledger.VOID_JOB, payload)
    elif state.status == OPEN and (less := state.credited_cents - made.credited_cents):
        ledger.ask_for_less(ctx, payload["ordinal"], less, state.credited_cents)
    periods.remember_customer(ctx, made.customer)
    return {"provider_id": made.provider_id}


def load_withdrawal(ctx: ReadContext, payload: dict[str, Any]) -> billing_stripe.AtStripe | None:
    """What is to be forgotten; None where the provider collects no more."""
    settings, state = BillingSettings.of(ctx.settings), ctx[INVOICE_STATES].row(payload["ordinal"])
    if settings.stripe_api_key is None:
        return None
    return billing_stripe.AtStripe(
        settings.stripe_api_key.get_secret_value(),
        settings.stripe_api_base,
        ctx[INVOICES].row(payload["ordinal"]).id,
        state.provider_id,
    )


async def take_back(
    steps: JobSteps,
    invoice: billing_stripe.AtStripe | None,
    payload: dict[str, Any],
    models: Models,
) -> None:
    if invoice is not None:
        await billing_stripe.withdraw(invoice)


def load_reduction(ctx: ReadContext, payload: dict[str, Any]) -> billing_stripe.AtStripe | None:
    """What less is to be asked for; None where nothing is any more."""
    if ctx[INVOICE_STATES].row(payload["ordinal"]).status != OPEN:
        return None
    return load_withdrawal(ctx, payload)


async def reduce(
    steps: JobSteps,
    invoice: billing_stripe.AtStripe | None,
    payload: dict[str, Any],
    models: Models,
) -> None:
    if invoice is not None:
        await billing_stripe.reduce(invoice, payload["cents"], payload["credited_cents"])


def given_up(ctx: WriteContext, payload: dict[str, Any], reason: str) -> None:
    """Tell the operator what the provider never took."""
    log.error(
        "invoice %s is not with the payment provider as it is here, and is not sent again: %s",
        ctx[INVOICES].row(payload["ordinal"]).number,
        reason,
    )


def taken_back(ctx: WriteContext, payload: dict[str, Any]) -> dict[str, Any]:
    return {}


_RETRY = RetryStrategy(attempts=PAYMENT_ATTEMPTS_MAX, base_ms=1_000, max_ms=PAYMENT_BACKOFF_MS_MAX)


def _job(name: str, done: Any, load: Any, prepare: Any) -> Job:
    return Job(name, done, load=load, prepare=prepare, failed=given_up, retry=_RETRY)


JOBS = (
    _job(ledger.COLLECT_JOB, collected, load_demand, ask_for_money),
    _job(ledger.CREDIT_JOB, taken_back, load_reduction, reduce),
    _job(ledger.VOID_JOB, taken_back, load_withdrawal, take_back),
)
