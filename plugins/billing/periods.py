"""Subscriptions: which tier an account has, what changing it costs, and how a month is closed.

A period is a calendar month, UTC. A month's fee is due in advance: closing a month issues one
invoice with what was used in it and the fee of the next. Closing is one transaction, which a job
runs at the month's end; running it again changes nothing.

    upgrade    at once, or, where a payment provider collects, as soon as its invoice is paid:
               (new price − old price) × days left, today included, ÷ days of the month
    downgrade  at the period's end; an upgrade cancels it

Choices where the interface leaves room:
- The month of registration is free of the monthly fee, whatever the installation's default tier.
- The operator's `set-tier` changes the tier at once and charges nothing; the agreed price, if one
  is given, counts from the next fee on. A tier whose price is by agreement costs nothing until one
  is given.
- A month without any usage and without a fee leaves no invoice.

    subscriptions  (0,) -> SubscriptionRow  made when it first differs from what the account implies
"""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from typing import Any

import msgspec

from plugins.billing import arrears, ledger, upgrades
from plugins.billing.ledger import LineRow
from plugins.billing.limits import PERIODS_CLOSED_PER_STEP
from plugins.billing.settings import BillingSettings
from runtime import ids
from runtime.api import metering, tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.errors import BadRequest
from runtime.limits import TIERS
from runtime.timestamps import iso
from storage.store import Table

CLOSE_JOB = "billing.close"
RANK = {name: rank for rank, name in enumerate(TIERS)}
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


class SubscriptionRow(msgspec.Struct):
    """first_open: the first month that is not closed. close_queued: the month whose end a job waits
    for. price_cents: as agreed.
    """

    id: str
    first_open: int
    pending_tier: str | None = None
    price_cents: int | None = None
    close_queued: int = 0
    customer: str = ""


SUBSCRIPTIONS: Table[SubscriptionRow] = Table(
    "subscriptions", key=("ordinal",), row=SubscriptionRow, doc="an account's subscription"
)


def subscription(ctx: ReadContext) -> SubscriptionRow:
    """The account's subscription; until something happens to it, it follows from the account."""
    row = ctx[SUBSCRIPTIONS].get(0)
    if row is not None:
        return row
    since = ctx.principal.created_at
    random = hmac.digest(ctx.scope.key, b"subscription", "sha256")[:10]
    return SubscriptionRow(
        ids.make_id("sub", since, ctx.principal.tag, random), metering.period_of(since)
    )


def tier_of(ctx: ReadContext) -> str:
    """The tier in force, as this transaction sees it."""
    return tenants.own_account(ctx).tier


# --- calendar and proration -----------------------------------------------------------------------


def days_of(start: int, end: int) -> int:
    """Whole days between two midnights, UTC."""
    return (end - start) // metering.DAY_MS


def days_left(now: int) -> int:
    """Days of the month of this instant that are left, today included."""
    return days_of(
        now // metering.DAY_MS * metering.DAY_MS, metering.period_end(metering.period_of(now))
    )


def prorated(cents: int, days: int, days_of_month: int) -> int:
    """cents × days ÷ days_of_month, half a cent rounded away from zero. Integers throughout."""
    doubled = 2 * abs(cents) * days + days_of_month
    return (1 if cents >= 0 else -1) * (doubled // (2 * days_of_month))


def month_name(period: int) -> str:
    """ "May 2026" of the month that begins here."""
    moment = datetime.fromtimestamp(period / 1000, UTC)
    return f"{_MONTHS[moment.month - 1]} {moment.year}"


# --- changing the tier ----------------------------------------------------------------------------


def upgrade(ctx: WriteContext, tier: str) -> int:
    """Change to a higher tier, at once or when it is paid; -> the ordinal of the invoice for the
    rest of the month. It takes the place of an upgrade that waits. Raises BadRequest.
    """
    close_over(ctx)
    upgrades.forgo(ctx)
    row, current = subscription(ctx), tier_of(ctx)
    new, old = ctx.settings.tiers.terms(tier), ctx.settings.tiers.terms(current)
    if new["price_cents"] is None:
        raise BadRequest(
            f"The tier {new['display_name']} is by agreement; talk to the operator of this "
            "service.",
            param="tier",
        )
    if RANK[tier] <= RANK[current]:
        raise BadRequest(
            f"{new['display_name']} is no upgrade: this account has {old['display_name']}.",
            param="tier",
        )
    period, left = metering.period_of(ctx.now), days_left(ctx.now)
    end = metering.period_end(period)
    # What was agreed on may be dearer: nothing is given back of a month that has begun.
    days, more = days_of(period, end), max(0, new["price_cents"] - fee(ctx, row, current))
    line = LineRow(
        description=(
            f"{new['display_name']} instead of {old['display_name']}, {left} of {days} days of "
            f"{month_name(period)}"
        ),
        quantity=round(left / days, 6),
        unit_cents=more,
        amount_cents=prorated(more, left, days),
        period_start=end - left * metering.DAY_MS,
        period_end=end,
        account="revenue:subscription",
    )
    ordinal, _ = ledger.issue(
        ctx, [line], line.period_start, end, about=f"change to {tier}", at=period
    )
    if upgrades.must_be_paid_first(ctx, ordinal):
        upgrades.put_off(ctx, ordinal, tier)
        _store(ctx, row)
    else:
        _take_up(ctx, row, tier)
    return ordinal


def downgrade(ctx: WriteContext, tier: str) -> None:
    """Change to a lower tier when the period ends; to the present one where a downgrade is pending,
    which is cancelled. Raises BadRequest.
    """
    close_over(ctx)
    row, current = subscription(ctx), tier_of(ctx)
    if tier == current and row.pending_tier is not None:
        row.pending_tier = None
        return _store(ctx, row)
    if RANK[tier] >= RANK[current]:
        new, old = (ctx.settings.tiers.terms(name)["display_name"] for name in (tier, current))
        raise BadRequest(f"{new} is no downgrade: this account has {old}.", param="tier")
    upgrades.forgo(ctx)
    row.pending_tier = tier
    _store(ctx, row)


def pay(
    ctx: WriteContext, ordinal: int, method: str, reference: str, cents: int | None = None
) -> None:
    """Record that an invoice was paid, with what waited for it; cents: as ledger.pay has it. Raises
    Conflict.
    """
    ledger.pay(ctx, ordinal, method, reference, cents)
    tier = upgrades.take(ctx, ordinal)
    if tier is not None:
        _take_up(ctx, subscription(ctx), tier)
    arrears.review(ctx)


def receive(
    ctx: WriteContext, ordinal: int, method: str, reference: str, cents: int | None
) -> None:
    """Record that a provider has collected an invoice: as `pay`, and of one that was taken back
    meanwhile that its amount is owed to the customer.
    """
    if ctx[ledger.INVOICE_STATES].row(ordinal).status == ledger.VOID:
        ledger.owe_back(ctx, ordinal, method, reference, cents)
    else:
        pay(ctx, ordinal, method, reference, cents)


def set_tier(ctx: WriteContext, tier: str, price_cents: int | None) -> None:
    """The operator's word: the tier from now on, without an invoice, at an agreed monthly price or
    the tier's own.
    """
    close_over(ctx)
    upgrades.forgo(ctx)
    row = subscription(ctx)
    row.pending_tier, row.price_cents = None, price_cents
    _set_tier(ctx, row, tier)


def remember_customer(ctx: WriteContext, customer: str) -> None:
    """Keep the id under which the payment provider knows the account."""
    row = subscription(ctx)
    if row.customer != customer:
        row.customer = customer
        _store(ctx, row)


def fee(ctx: ReadContext, row: SubscriptionRow, tier: str) -> int:
    """Cents a month that the account pays for this tier."""
    listed = ctx.settings.tiers.terms(tier)["price_cents"] or 0
    return listed if row.price_cents is None else row.price_cents


def _take_up(ctx: WriteContext, row: SubscriptionRow, tier: str) -> None:
    """An upgrade takes effect, and cancels a downgrade that is pending."""
    row.pending_tier, row.price_cents = None, None
    _set_tier(ctx, row, tier)


def _set_tier(ctx: WriteContext, row: SubscriptionRow, tier: str) -> None:
    tenants.set_tier(ctx, tier)
    _store(ctx, row)


def _store(ctx: WriteContext, row: SubscriptionRow) -> None:
    """Keep the row, and see to it that a job closes the running month at its end."""
    period = metering.period_of(ctx.now)
    if row.close_queued < period:
        row.close_queued = period
        ctx.enqueue(CLOSE_JOB, {}, delay_ms=metering.period_end(period) - ctx.now)
    ctx[SUBSCRIPTIONS].put((0,), row)


# --- closing months -------------------------------------------------------------------------------


def period_started(
    ctx: WriteContext, event_id: str, kind: str, data: dict[str, Any], resource_id: str
) -> None:
    """The first usage of a month: have the month closed at its end, and those before it, should
    none of them have been.
    """
    row = subscription(ctx)
    if row.first_open < metering.period_of(ctx.now):
        ctx.enqueue(CLOSE_JOB, {})
    _store(ctx, row)


def close_over(ctx: WriteContext) -> list[int]:
    """Close every month that is over and still open; -> ordinals of the invoices. Never twice the
    same month.
    """
    row, issued = subscription(ctx), []
    for _ in range(PERIODS_CLOSED_PER_STEP):
        period, end = row.first_open, metering.period_end(row.first_open)
        if end > ctx.now:
            break
        ordinal = _close(ctx, row, period, end)
        if ordinal is not None:
            issued.append(ordinal)
    return issued


def close_job(ctx: WriteContext, payload: dict[str, Any]) -> Again | dict[str, Any]:
    """The job at a month's end; years that nobody closed take several steps."""
    numbers = [
        *payload.get("invoices", ()),
        *(ctx[ledger.INVOICES].row(ordinal).number for ordinal in close_over(ctx)),
    ]
    if metering.period_end(subscription(ctx).first_open) <= ctx.now:
        return Again({"invoices": numbers})
    arrears.review(ctx)
    return {"invoices": numbers}


def _close(ctx: WriteContext, row: SubscriptionRow, period: int, end: int) -> int | None:
    """Close one month: its usage, a pending change, the next month's fee; -> the invoice's ordinal,
    if there is anything on it.
    """
    upgrades.forgo(ctx)
    credits, tier = metering.close(ctx, period).credits, tier_of(ctx)
    lines = [_usage_line(ctx, tier, credits, period, end)]
    row.first_open = end
    if row.pending_tier is not None:
        tier, row.pending_tier, row.price_cents = row.pending_tier, None, None
        _set_tier(ctx, row, tier)
    next_fee = fee(ctx, row, tier)
    if next_fee:
        name = f"{ctx.settings.tiers.terms(tier)['display_name']}, {month_name(end)}"
        lines.append(
            LineRow(
                name, 1, next_fee, next_fee, end, metering.period_end(end), "revenue:subscription"
            )
        )
    _store(ctx, row)
    if not credits and not next_fee:
        return None
    return ledger.issue(ctx, lines, period, end, about="close", at=end)[0]


def _usage_line(ctx: ReadContext, tier: str, credits: int, period: int, end: int) -> LineRow:
    """The month's credits. They are part of the fee, except on a tier without a limit, where each
    may have its price.
    """
    metered = ctx.settings.tiers.terms(tier)["credits"] < 0
    millicents = BillingSettings.of(ctx.settings).metered_millicents if metered else 0
    return LineRow(
        description=f"Credits used in {month_name(period)}{'' if millicents else ', included'}",
        quantity=credits,
        unit_cents=millicents / 1000,
        amount_cents=prorated(credits * millicents, 1, 1000),
        period_start=period,
        period_end=end,
        account="revenue:usage",
    )


def view(ctx: ReadContext) -> dict[str, Any]:
    """The tier with its terms, the running period, and the tier that follows if another does."""
    row, period = subscription(ctx), metering.period_of(ctx.now)
    held = tenants.suspension(ctx)
    end = iso(metering.period_end(period))
    return {
        "id": row.id,
        "tier": ctx.settings.tiers.terms(tier_of(ctx)),
        "status": "active" if held is None else "suspended",
        "suspension": None
        if held is None
        else {"since": iso(held.since), "invoice_id": held.cause, "reason": held.reason},
        "period_start": iso(period),
        "period_end": end,
        "pending_change": _pending(ctx, row, end),
        "provider": BillingSettings.of(ctx.settings).provider,
    }


def _pending(ctx: ReadContext, row: SubscriptionRow, end: str) -> dict[str, Any] | None:
    """What the tier will be: the upgrade that waits for its payment, else the downgrade."""
    upgrade_awaited = upgrades.awaited(ctx)
    if upgrade_awaited is not None:
        ordinal, tier = upgrade_awaited
        invoice_id = ctx[ledger.INVOICES].row(ordinal).id
        return {"tier": tier, "effective_at": None, "invoice_id": invoice_id}
    if row.pending_tier is None:
        return None
    return {"tier": row.pending_tier, "effective_at": end, "invoice_id": None}
