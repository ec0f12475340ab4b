"""Billing: the subscription of an account, its invoices, and what the operator does with both.

    plugins/billing_ledger.py    documents and the double-entry ledger
    plugins/billing_periods.py   tiers, proration, the closing of months
    plugins/billing_stripe.py    Stripe as the collector; without it the operator marks invoices paid
    plugins/invoice_page.py      an invoice as a page

This file says what of that can be asked for over HTTP. Operations for the operator name an account by its e-mail address and act
inside its tenant; `mneme admin` calls them (runtime/admin.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, RootModel

from plugins import billing_ledger as ledger
from plugins import billing_periods as periods
from plugins import billing_stripe, invoice_page
from plugins.billing_ledger import CHECKS, INVOICE_STATES, INVOICES, OPEN, Invoice
from runtime import auth, metering
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.limits import EMAIL_CHARS_MAX, NAME_CHARS_MAX, PAYMENT_ATTEMPTS_MAX, PAYMENT_BACKOFF_MS_MAX, REASON_CHARS_MAX, TIERS
from runtime.operation import Body, Call, Idempotency, Kind, Operation, ReadContext, Reply, Signed, View, WriteContext
from runtime.pagination import Page, PageQuery, envelope, position
from runtime.placement import normalise_email, slot_of_email
from runtime.plugin import Job, Plugin, RetryStrategy
from runtime.settings import Settings
from runtime.timestamps import iso

TierName = Literal["free", "starter", "pro", "scale", "enterprise"]

# --- requests and responses -------------------------------------------------------------------------------------------


class Change(Body):
    tier: TierName = Field(description="The tier to change to.")


class OfAccount(Body):
    email: str = Field(min_length=3, max_length=EMAIL_CHARS_MAX, description="The account's e-mail address.")


class TierSetting(OfAccount):
    tier: TierName = Field(description="The tier from now on.")
    price_cents: int | None = Field(None, ge=0, le=10**9, description="The agreed price, in cents a month; the tier's own, when absent.")


class OfInvoice(OfAccount):
    invoice: str = Field(min_length=1, max_length=64, description="The invoice's number or id.")


class Payment(OfInvoice):
    reference: str = Field("", max_length=NAME_CHARS_MAX, description="What the payment is known by, such as a transfer's number.")


class NewCreditNote(OfInvoice):
    reason: str = Field(min_length=1, max_length=REASON_CHARS_MAX, description="Why; it stands on the note.")
    amount_cents: int | None = Field(None, ge=1, description="How much to take back; all that is left, when absent.")


class Tier(View):
    name: str = Field(description="Key of the tier.")
    display_name: str = Field(description="What it is called.")
    price: str = Field(description="Its price, in words.")
    price_cents: int | None = Field(description="Its price in cents a month; null: by agreement.")
    credits: int = Field(description="Credits a month; -1 is unlimited.")
    requests_per_minute: int = Field(description="Requests a minute; 0 is unlimited.")


class Tiers(View):
    items: list[Tier] = Field(description="All tiers, the lowest first.")


class PendingChange(View):
    tier: str = Field(description="The tier it will be.")
    effective_at: str = Field(description="When (ISO 8601).")


class Subscription(View):
    id: str = Field(description="The subscription's id.")
    tier: Tier
    status: Literal["active"]
    period_start: str = Field(description="First instant of the running month (ISO 8601, UTC).")
    period_end: str = Field(description="First instant of the next one.")
    pending_change: PendingChange | None = Field(description="A downgrade that waits for the end of the period.")
    provider: str = Field(description="Who collects the invoices: `manual` or `stripe`.")


class Upgraded(Subscription):
    invoice: Invoice = Field(description="What the rest of the month costs more.")


class InvoiceHtml(RootModel[str]):
    """An HTML document."""


class Closed(View):
    email: str
    invoices: list[Invoice] = Field(description="The invoices this call issued; none when every month that is over was closed before.")


class LedgerAudit(View):
    email: str
    receivable_cents: int = Field(description="What the ledger says is owed.")
    due_cents: int = Field(description="What the documents say is owed.")
    revenue_cents: int = Field(description="What the ledger says was charged, credit notes taken off.")
    charged_cents: int = Field(description="What the documents say.")
    metered: int = Field(description="Credits of all closed months.")
    invoiced: int = Field(description="Credits on all invoices.")
    consistent: bool = Field(description="Whether they agree, pair by pair.")


class Received(View):
    received: bool = Field(description="Always true; what the report was about is nobody else's business.")


# --- for customers ----------------------------------------------------------------------------------------------------


def list_tiers(ctx: ReadContext, body: None) -> Tiers:
    return Tiers(items=[Tier(**ctx.settings.tiers.terms(name)) for name in TIERS])


def get_subscription(ctx: ReadContext, body: None) -> dict[str, Any]:
    return periods.view(ctx)


def upgrade(ctx: WriteContext, body: Change) -> dict[str, Any]:
    ordinal = periods.upgrade(ctx, body.tier)
    return {**periods.view(ctx), "invoice": ledger.view(ctx, ordinal)}


def downgrade(ctx: WriteContext, body: Change) -> dict[str, Any]:
    periods.downgrade(ctx, body.tier)
    return periods.view(ctx)


def list_invoices(ctx: ReadContext, body: None) -> dict[str, Any]:
    limit = ctx.query.limit
    found = list(ctx[INVOICES].keys(before=position(ctx), reverse=True, limit=limit + 1))
    page = found[:limit]
    return envelope(
        ctx, [ledger.view(ctx, ordinal) for (ordinal,) in page], page[-1] if len(found) > limit else None, ctx[INVOICES].count()
    )


def get_invoice(ctx: ReadContext, body: None) -> dict[str, Any]:
    return ledger.view(ctx, ledger.find(ctx, ctx.path["id"]))


def get_invoice_page(ctx: ReadContext, body: None) -> Reply:
    page = invoice_page.page(get_invoice(ctx, None), ctx.settings.billing.issuer)
    return Reply(200, page, {"Content-Security-Policy": invoice_page.POLICY}, "text/html; charset=utf-8")


# --- for the operator -------------------------------------------------------------------------------------------------


def _inside(ctx: Any, email: str) -> Any:
    """The context of the account with this address. Raises NotFound."""
    account = auth.tenant_of_email(ctx.reader, ctx.scope.slot, normalise_email(email), ctx.secrets)
    if account is None:
        raise NotFound("There is no account with this e-mail address.", param="email")
    return ctx.as_tenant(auth.principal_of(ctx.scope.slot, account, auth.SCOPES, ""), auth.scope_of(ctx.scope.slot, account))


def set_tier(ctx: WriteContext, body: TierSetting) -> dict[str, Any]:
    theirs = _inside(ctx, body.email)
    periods.set_tier(theirs, body.tier, body.price_cents)
    return periods.view(theirs)


def close_months(ctx: WriteContext, body: OfAccount) -> dict[str, Any]:
    theirs = _inside(ctx, body.email)
    return {"email": body.email, "invoices": [ledger.view(theirs, ordinal) for ordinal in periods.close_over(theirs)]}


def mark_paid(ctx: WriteContext, body: Payment) -> dict[str, Any]:
    theirs = _inside(ctx, body.email)
    ordinal = ledger.find_by_number(theirs, body.invoice)
    ledger.pay(theirs, ordinal, "manual", body.reference)
    return ledger.view(theirs, ordinal)


def credit_note(ctx: WriteContext, body: NewCreditNote) -> dict[str, Any]:
    theirs = _inside(ctx, body.email)
    ordinal, _ = ledger.credit(theirs, ledger.find_by_number(theirs, body.invoice), body.amount_cents, body.reason)
    return ledger.view(theirs, ordinal)


def audit(ctx: ReadContext, body: OfAccount) -> LedgerAudit:
    """Documents against the ledger, and credits on invoices against those that were metered."""
    theirs = _inside(ctx, body.email)
    due = charged = invoiced = 0
    for (ordinal,), invoice in theirs[INVOICES].scan():
        state = theirs[INVOICE_STATES].get(ordinal)
        charged += invoice.total_cents
        due += invoice.total_cents - state.credited_cents if state.status == OPEN else 0
        invoiced += sum(int(line.quantity) for line in invoice.lines if line.account == "revenue:usage")
    balances = ledger.balances(theirs)
    receivable = balances.get(ledger.RECEIVABLE, 0)
    revenue = -sum(cents for account, cents in balances.items() if account.startswith("revenue:"))
    metered = sum(row.credits for _, row in theirs[metering.USAGE_PERIODS].scan() if row.closed)
    return LedgerAudit(
        email=body.email,
        receivable_cents=receivable,
        due_cents=due,
        revenue_cents=revenue,
        charged_cents=charged,
        metered=metered,
        invoiced=invoiced,
        consistent=(receivable, revenue, metered) == (due, charged, invoiced),
    )


# --- collecting -------------------------------------------------------------------------------------------------------


def load_demand(ctx: ReadContext, payload: dict[str, Any]) -> billing_stripe.Demand | None:
    """What is to be collected; None when it is paid, void or made at the provider already."""
    settings, row = ctx.settings.billing, ctx[INVOICES].get(payload["ordinal"])
    state = ctx[INVOICE_STATES].get(payload["ordinal"])
    if state.status != OPEN or state.provider_id or settings.stripe_api_key is None:
        return None
    return billing_stripe.Demand(
        api_key=settings.stripe_api_key.get_secret_value(),
        api_base=settings.stripe_api_base,
        invoice_id=row.id,
        number=row.number,
        currency=row.currency,
        lines=tuple((line.description, line.amount_cents) for line in row.lines if line.amount_cents),
        tenant_id=ctx.principal.tenant_id,
        name=row.name,
        email=row.email,
        customer=periods.subscription(ctx).customer,
        slot=ctx.scope.slot,
    )


async def ask_for_money(demand: billing_stripe.Demand | None, payload: dict[str, Any], models: Models) -> billing_stripe.Collected | None:
    return None if demand is None else await billing_stripe.collect(demand)


def collected(ctx: WriteContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Note under which id the provider has the invoice."""
    made: billing_stripe.Collected | None = ctx.prepared
    if made is None:
        return {}
    state = ctx[INVOICE_STATES].get(payload["ordinal"])
    state.provider_id, state.payment_url = made.provider_id, made.payment_url
    ctx[INVOICE_STATES].put((payload["ordinal"],), state)
    periods.remember_customer(ctx, made.customer)
    return {"provider_id": made.provider_id}


def load_notice(ctx: ReadContext, body: Signed) -> Settings:
    if ctx.settings.billing.provider != "stripe" or ctx.settings.billing.stripe_signing_secret is None:
        raise billing_stripe.not_enabled()
    return ctx.settings


async def verify_notice(call: Call, settings: Settings, models: Models) -> billing_stripe.Notice:
    return billing_stripe.verified(call.body, settings.billing.stripe_signing_secret.get_secret_value())


def receive_notice(ctx: WriteContext, body: Signed) -> Received:
    """A verified report: a paid invoice of ours is paid here too. Reports about anything else are none of our business."""
    notice: billing_stripe.Notice = ctx.prepared
    if notice.kind == billing_stripe.PAID_EVENT and notice.invoice_id:
        theirs = _inside(ctx, notice.email)
        ledger.pay(theirs, ledger.find(theirs, notice.invoice_id), "stripe", notice.provider_id)
    return Received(received=True)


# --- privacy ----------------------------------------------------------------------------------------------------------

TABLES = (*ledger.TABLES, periods.SUBSCRIPTIONS)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove subscription, documents and ledger. Counts of rows by table."""
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """("subscription" | "invoice" | "posting", record). An import takes none of them in: they are between this server and its customer."""
    yield "subscription", periods.view(ctx)
    for (ordinal,), _ in ctx[INVOICES].scan():
        yield "invoice", ledger.view(ctx, ordinal)
    for (sequence,), posting in ctx[ledger.LEDGER].scan():
        yield "posting", {"sequence": sequence, "at": iso(posting.at), "document": posting.document, "entries": posting.entries}


# --- the plugin -------------------------------------------------------------------------------------------------------

_SPEC = "part 4, Usage and billing"
_INTERNAL = {
    "method": "POST",
    "internal": True,
    "scope": "admin",
    "slot_of": lambda body: slot_of_email(body.email),
    "spec": "part 1, internal routes",
}
_WRITTEN = {**_INTERNAL, "kind": Kind.WRITE, "idempotency": Idempotency.CACHED}
_EMAIL = {"email": "ada@example.com"}
_START, _END = "2026-05-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z"
_PRO = {
    "name": "pro", "display_name": "Pro", "price": "$99 / month", "price_cents": 9_900, "credits": 200_000, "requests_per_minute": 1_200,
}  # fmt: skip
_SUBSCRIPTION = {
    "id": "sub_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e", "tier": _PRO, "status": "active", "period_start": _START, "period_end": _END,
    "pending_change": None, "provider": "manual",
}  # fmt: skip
_INVOICE_ID = "inv_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_INVOICE = {
    "id": _INVOICE_ID, "number": "INV-3FA0C81D-000001", "kind": "invoice", "status": "open", "currency": "usd",
    "billed_to": {"name": "Ada Lovelace", "email": "ada@example.com"},
    "lines": [
        {
            "description": "Pro instead of Free, 20 of 31 days of May 2026",
            "quantity": 0.645161, "unit_cents": 9900.0, "amount_cents": 6387,
            "period_start": "2026-05-12T00:00:00.000Z", "period_end": _END,
        }
    ],
    "subtotal_cents": 6387, "total_cents": 6387, "credited_cents": 0, "period_start": "2026-05-12T00:00:00.000Z", "period_end": _END,
    "issued_at": "2026-05-12T09:30:00.000Z", "paid_at": None, "credited_invoice_id": None,
    "html_url": f"/v1/billing/invoices/{_INVOICE_ID}/html", "payment_url": None,
}  # fmt: skip
_NOTE = {
    **_INVOICE, "number": "CN-3FA0C81D-000001", "kind": "credit_note", "status": "issued", "credited_invoice_id": _INVOICE_ID,
    "subtotal_cents": -6387, "total_cents": -6387,
    "lines": [{**_INVOICE["lines"][0], "description": "INV-3FA0C81D-000001: goodwill", "unit_cents": -6387.0, "amount_cents": -6387}],
}  # fmt: skip

FOR_CUSTOMERS = (
    Operation(
        name="billing.tiers",
        method="GET",
        path="/v1/billing/tiers",
        kind=Kind.READ,
        handler=list_tiers,
        response=Tiers,
        scope="public",
        summary="List the tiers",
        spec="part 8, tiers",
        example_reply={"items": [_PRO]},
    ),
    Operation(
        name="billing.subscription",
        method="GET",
        path="/v1/billing/subscription",
        kind=Kind.READ,
        handler=get_subscription,
        response=Subscription,
        summary="Get the subscription",
        spec=_SPEC,
        example_reply=_SUBSCRIPTION,
    ),
    Operation(
        name="billing.upgrade",
        method="POST",
        path="/v1/billing/upgrade",
        kind=Kind.WRITE,
        handler=upgrade,
        body=Change,
        response=Upgraded,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Upgrade the plan",
        description="At once; an invoice charges the difference for the days left, today included. It cancels a pending downgrade.",
        spec=_SPEC,
        example={"tier": "pro"},
        example_reply={**_SUBSCRIPTION, "invoice": _INVOICE},
    ),
    Operation(
        name="billing.downgrade",
        method="POST",
        path="/v1/billing/downgrade",
        kind=Kind.WRITE,
        handler=downgrade,
        body=Change,
        response=Subscription,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Downgrade the plan",
        description="When the month ends; until then nothing changes.",
        spec=_SPEC,
        example={"tier": "starter"},
        example_reply={**_SUBSCRIPTION, "pending_change": {"tier": "starter", "effective_at": _END}},
    ),
    Operation(
        name="billing.invoices.list",
        method="GET",
        path="/v1/billing/invoices",
        kind=Kind.READ,
        handler=list_invoices,
        query=PageQuery,
        response=Page[Invoice],
        summary="List invoices and credit notes",
        spec=_SPEC + "; rule P",
        example_reply={"items": [_INVOICE], "next_cursor": None, "has_more": False, "total_count": 1},
    ),
    Operation(
        name="billing.invoices.get",
        method="GET",
        path="/v1/billing/invoices/{id}",
        kind=Kind.READ,
        handler=get_invoice,
        response=Invoice,
        summary="Get an invoice",
        spec=_SPEC,
        example_reply=_INVOICE,
    ),
    Operation(
        name="billing.invoices.page",
        method="GET",
        path="/v1/billing/invoices/{id}/html",
        kind=Kind.READ,
        handler=get_invoice_page,
        response=InvoiceHtml,
        produces="text/html; charset=utf-8",
        summary="Get an invoice as a page to print",
        spec=_SPEC,
        example_reply="<!doctype html>",
    ),
    Operation(
        name="billing.stripe_events",
        method="POST",
        path="/v1/billing/stripe/events",
        kind=Kind.WRITE,
        load=load_notice,
        prepare=verify_notice,
        handler=receive_notice,
        response=Received,
        scope="public",
        slot_of=lambda signed: slot_of_email(billing_stripe.email_of(signed)),
        signed_by="Stripe-Signature",
        idempotency=Idempotency.CACHED,
        summary="Where Stripe reports what was paid",
        description="For Stripe alone: a report is believed only with its signature. 404 where billing.provider is not stripe.",
        spec=_SPEC,
        example_reply={"received": True},
    ),
)

FOR_THE_OPERATOR = (
    Operation(
        name="internal.billing.set_tier",
        path="/v1/internal/billing/set-tier",
        handler=set_tier,
        body=TierSetting,
        response=Subscription,
        summary="Set an account's tier",
        example={**_EMAIL, "tier": "pro"},
        example_reply=_SUBSCRIPTION,
        **_WRITTEN,
    ),
    Operation(
        name="internal.billing.close",
        path="/v1/internal/billing/close",
        handler=close_months,
        body=OfAccount,
        response=Closed,
        summary="Close an account's months that are over",
        example=_EMAIL,
        example_reply={**_EMAIL, "invoices": [_INVOICE]},
        **_WRITTEN,
    ),
    Operation(
        name="internal.billing.mark_paid",
        path="/v1/internal/billing/mark-paid",
        handler=mark_paid,
        body=Payment,
        response=Invoice,
        summary="Record that an invoice was paid",
        example={**_EMAIL, "invoice": "INV-3FA0C81D-000001", "reference": "transfer 4711"},
        example_reply={**_INVOICE, "status": "paid", "paid_at": "2026-05-20T08:00:00.000Z"},
        **_WRITTEN,
    ),
    Operation(
        name="internal.billing.credit_note",
        path="/v1/internal/billing/credit-note",
        handler=credit_note,
        body=NewCreditNote,
        response=Invoice,
        summary="Take an invoice back, as a whole or in part",
        example={**_EMAIL, "invoice": "INV-3FA0C81D-000001", "reason": "goodwill"},
        example_reply=_NOTE,
        **_WRITTEN,
    ),
    Operation(
        name="internal.billing.audit",
        path="/v1/internal/billing/audit",
        kind=Kind.READ,
        handler=audit,
        body=OfAccount,
        response=LedgerAudit,
        fresh_usage=True,
        summary="Check an account's documents against its ledger and its usage",
        example=_EMAIL,
        example_reply={
            **_EMAIL, "receivable_cents": 6387, "due_cents": 6387, "revenue_cents": 6387, "charged_cents": 6387, "metered": 412,
            "invoiced": 412, "consistent": True,
        },
        **_INTERNAL,
    ),
)  # fmt: skip

plugin = Plugin(
    name="billing",
    requires=("usage",),
    operations=(*FOR_CUSTOMERS, *FOR_THE_OPERATOR),
    tables=TABLES,
    subscribe={metering.PERIOD_STARTED.kind: periods.period_started},
    jobs=(
        Job(periods.CLOSE_JOB, periods.close_job),
        Job(
            ledger.COLLECT_JOB,
            collected,
            load=load_demand,
            prepare=ask_for_money,
            retry=RetryStrategy(attempts=PAYMENT_ATTEMPTS_MAX, base_ms=1_000, max_ms=PAYMENT_BACKOFF_MS_MAX),
        ),
    ),
    erase=erase,
    export=export,
    checks=CHECKS,
)
