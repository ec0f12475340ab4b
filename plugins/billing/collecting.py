"""The job that asks the payment provider to collect an invoice."""

from __future__ import annotations

from typing import Any

from plugins.billing import ledger, periods
from plugins.billing import stripe as billing_stripe
from plugins.billing.ledger import INVOICE_STATES, INVOICES, OPEN
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
        lines=tuple(
            (line.description, line.amount_cents) for line in row.lines if line.amount_cents
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
    periods.remember_customer(ctx, made.customer)
    return {"provider_id": made.provider_id}


COLLECT = Job(
    ledger.COLLECT_JOB,
    collected,
    load=load_demand,
    prepare=ask_for_money,
    retry=RetryStrategy(
        attempts=PAYMENT_ATTEMPTS_MAX, base_ms=1_000, max_ms=PAYMENT_BACKOFF_MS_MAX
    ),
)
