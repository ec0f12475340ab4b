"""The jobs that ask the payment provider to collect an invoice, and to forget one that was taken
back.
"""

from __future__ import annotations

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
    if state.status == VOID:  # it was taken back while the provider was asked
        ctx.enqueue(ledger.VOID_JOB, payload)
    periods.remember_customer(ctx, made.customer)
    return {"provider_id": made.provider_id}


def load_withdrawal(ctx: ReadContext, payload: dict[str, Any]) -> billing_stripe.Withdrawal | None:
    """What is to be forgotten; None where the provider collects no more."""
    settings, state = BillingSettings.of(ctx.settings), ctx[INVOICE_STATES].row(payload["ordinal"])
    if settings.stripe_api_key is None:
        return None
    return billing_stripe.Withdrawal(
        settings.stripe_api_key.get_secret_value(),
        settings.stripe_api_base,
        ctx[INVOICES].row(payload["ordinal"]).id,
        state.provider_id,
    )


async def take_back(
    steps: JobSteps,
    withdrawal: billing_stripe.Withdrawal | None,
    payload: dict[str, Any],
    models: Models,
) -> None:
    if withdrawal is not None:
        await billing_stripe.withdraw(withdrawal)


def taken_back(ctx: WriteContext, payload: dict[str, Any]) -> dict[str, Any]:
    return {}


_RETRY = RetryStrategy(attempts=PAYMENT_ATTEMPTS_MAX, base_ms=1_000, max_ms=PAYMENT_BACKOFF_MS_MAX)
JOBS = (
    Job(ledger.COLLECT_JOB, collected, load=load_demand, prepare=ask_for_money, retry=_RETRY),
    Job(ledger.VOID_JOB, taken_back, load=load_withdrawal, prepare=take_back, retry=_RETRY),
)
