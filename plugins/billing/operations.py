"""The endpoints of billing, for customers and for the operator, and the provider's notice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import SecretStr

from plugins.billing import arrears, invoice_page, ledger, periods, upgrades
from plugins.billing import stripe as billing_stripe
from plugins.billing.ledger import INVOICE_STATES, INVOICES, OPEN, Invoice
from plugins.billing.models import (
    Change,
    Closed,
    InvoiceHtml,
    LedgerAudit,
    NewCreditNote,
    OfAccount,
    Payment,
    Received,
    Subscription,
    Tier,
    TierSetting,
    Upgraded,
)
from plugins.billing.settings import BillingSettings
from runtime.api import metering, tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from runtime.api.operation import Call, Idempotency, Principal, Read, Reply, Signed, Write
from runtime.api.pagination import Page, PageQuery, envelope, example_page, position
from runtime.api.slot_context import (
    OperatorReadContext,
    OperatorWriteContext,
    SlotReadContext,
    SlotWriteContext,
)
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.limits import TIERS
from runtime.tenancy import normalise_email, slot_of_email
from runtime.timestamps import iso
from storage.store import Key, Scope, Table


def list_tiers(ctx: ReadContext, body: None) -> dict[str, Any]:
    return envelope(ctx, [ctx.settings.tiers.terms(name) for name in TIERS], None, len(TIERS))


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
        ctx,
        [ledger.view(ctx, ordinal) for (ordinal,) in page],
        page[-1] if len(found) > limit else None,
        ctx[INVOICES].count(),
    )


def get_invoice(ctx: ReadContext, body: None) -> dict[str, Any]:
    return ledger.view(ctx, ledger.find(ctx, ctx.path["id"]))


def get_invoice_page(ctx: ReadContext, body: None) -> Reply:
    page = invoice_page.page(get_invoice(ctx, None), BillingSettings.of(ctx.settings).issuer)
    return Reply(
        200, page, {"Content-Security-Policy": invoice_page.POLICY}, "text/html; charset=utf-8"
    )


def _account(ctx: SlotReadContext, email: str) -> tuple[Principal, Scope]:
    """Whose address this is. Raises NotFound."""
    account = tenants.by_email(ctx, normalise_email(email))
    if account is None:
        raise NotFound("There is no account with this e-mail address.", param="email")
    return tenants.identity(ctx.scope.slot, account)


def set_tier(ctx: OperatorWriteContext, body: TierSetting) -> dict[str, Any]:
    theirs = ctx.within(*_account(ctx, body.email))
    periods.set_tier(theirs, body.tier, body.price_cents)
    return periods.view(theirs)


def close_months(ctx: OperatorWriteContext, body: OfAccount) -> dict[str, Any]:
    theirs = ctx.within(*_account(ctx, body.email))
    issued = periods.close_over(theirs)
    arrears.review(theirs)
    return {
        "email": body.email,
        "invoices": [ledger.view(theirs, ordinal) for ordinal in issued],
    }


def mark_paid(ctx: OperatorWriteContext, body: Payment) -> dict[str, Any]:
    theirs = ctx.within(*_account(ctx, body.email))
    ordinal = ledger.find_by_number(theirs, body.invoice)
    periods.pay(theirs, ordinal, "manual", body.reference)
    return ledger.view(theirs, ordinal)


def credit_note(ctx: OperatorWriteContext, body: NewCreditNote) -> dict[str, Any]:
    theirs = ctx.within(*_account(ctx, body.email))
    credited = ledger.find_by_number(theirs, body.invoice)
    ordinal, _ = ledger.credit(theirs, credited, body.amount_cents, body.reason)
    if theirs[INVOICE_STATES].row(credited).status == ledger.VOID:
        upgrades.take(theirs, credited)  # nobody will pay for it any more
    arrears.review(theirs)
    return ledger.view(theirs, ordinal)


def audit(ctx: OperatorReadContext, body: OfAccount) -> LedgerAudit:
    """Documents against the ledger, and credits on invoices against those that were metered."""
    theirs = ctx.within(*_account(ctx, body.email))
    due = charged = invoiced = 0
    for (ordinal,), invoice in theirs[INVOICES].scan():
        state = theirs[INVOICE_STATES].row(ordinal)
        charged += invoice.total_cents
        due += invoice.total_cents - state.credited_cents if state.status == OPEN else 0
        invoiced += sum(
            int(line.quantity) for line in invoice.lines if line.account == "revenue:usage"
        )
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


def load_notice(ctx: SlotReadContext, body: Signed) -> SecretStr:
    """What the report must be signed with."""
    chosen = BillingSettings.of(ctx.settings)
    if chosen.provider != "stripe" or chosen.stripe_signing_secret is None:
        raise billing_stripe.not_enabled()
    return chosen.stripe_signing_secret


async def verify_notice(call: Call, secret: SecretStr, models: Models) -> billing_stripe.Notice:
    return billing_stripe.verified(call.body, secret.get_secret_value())


def receive_notice(ctx: SlotWriteContext, body: Signed) -> Received:
    """A verified report: a paid invoice of ours is paid here too. Reports about anything else are
    none of our business.
    """
    notice: billing_stripe.Notice = ctx.prepared
    if notice.kind == billing_stripe.PAID_EVENT and notice.invoice_id:
        theirs = ctx.within(*_account(ctx, notice.email))
        ordinal = ledger.find(theirs, notice.invoice_id)
        periods.receive(theirs, ordinal, "stripe", notice.provider_id, notice.cents)
    return Received(received=True)


TABLES: tuple[Table, ...] = (*ledger.TABLES, periods.SUBSCRIPTIONS, upgrades.AWAITED_UPGRADES)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove subscription, documents and ledger. Counts of rows by table."""
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext) -> Iterator[Exported]:
    """("subscription" | "invoice" | "posting", record). An import takes none of them in: they are
    between this server and its customer.
    """
    return sections(ctx, _subscription, _invoices, _postings)


def _subscription(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    if after is None:
        yield "subscription", periods.view(ctx), ()


def _invoices(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for (ordinal,), _ in ctx[INVOICES].scan(after=after):
        yield "invoice", ledger.view(ctx, ordinal), (ordinal,)


def _postings(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for (sequence,), posting in ctx[ledger.LEDGER].scan(after=after):
        yield (
            "posting",
            {
                "sequence": sequence,
                "at": iso(posting.at),
                "document": posting.document,
                "entries": posting.entries,
            },
            (sequence,),
        )


_INTERNAL = {
    "method": "POST",
    "internal": True,
    "scope": "admin",
    "slot_of": lambda body: slot_of_email(body.email),
}
_WRITTEN = {**_INTERNAL, "idempotency": Idempotency.CACHED}
_EMAIL = {"email": "ada@example.com"}
_START, _END = "2026-05-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z"
_PRO = {
    "name": "pro", "display_name": "Pro", "price": "$99 / month", "price_cents": 9_900,
    "credits": 200_000, "requests_per_minute": 1_200, "file_bytes": 53_687_091_200,
    "text_bytes": 10_737_418_240,
    "memories": 1_000_000, "documents": 50_000, "entities": 1_000_000,
    "collections": 50_000, "profiles": 50_000,
}  # fmt: skip
_SUBSCRIPTION = {
    "id": "sub_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e", "tier": _PRO, "status": "active",
    "suspension": None, "period_start": _START, "period_end": _END, "pending_change": None,
    "provider": "manual",
}  # fmt: skip
_INVOICE_ID = "inv_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_INVOICE = {
    "id": _INVOICE_ID, "number": "INV-3FA0C81D-000001", "kind": "invoice", "status": "open",
    "currency": "usd", "billed_to": {"name": "Ada Lovelace", "email": "ada@example.com"},
    "lines": [
        {
            "description": "Pro instead of Free, 20 of 31 days of May 2026",
            "quantity": 0.645161, "unit_cents": 9900, "amount_cents": 6387,
            "period_start": "2026-05-12T00:00:00.000Z", "period_end": _END,
        }
    ],
    "subtotal_cents": 6387, "total_cents": 6387, "credited_cents": 0,
    "period_start": "2026-05-12T00:00:00.000Z", "period_end": _END,
    "issued_at": "2026-05-12T09:30:00.000Z", "paid_at": None, "credited_invoice_id": None,
    "html_url": f"/v1/billing/invoices/{_INVOICE_ID}/html", "payment_url": None,
}  # fmt: skip
_NOTE = {
    **_INVOICE, "number": "CN-3FA0C81D-000001", "kind": "credit_note", "status": "issued",
    "credited_invoice_id": _INVOICE_ID, "subtotal_cents": -6387, "total_cents": -6387,
    "lines": [{
        **_INVOICE["lines"][0], "description": "INV-3FA0C81D-000001: goodwill",
        "unit_cents": -6387, "amount_cents": -6387,
    }],
}  # fmt: skip

FOR_CUSTOMERS = (
    Read(
        name="billing.tiers",
        method="GET",
        path="/v1/billing/tiers",
        handler=list_tiers,
        response=Page[Tier],
        scope="public",
        summary="List the tiers",
        description="All of them, the lowest first, on one page.",
        example_reply=example_page(_PRO),
    ),
    Read(
        name="billing.subscription",
        method="GET",
        path="/v1/billing/subscription",
        handler=get_subscription,
        response=Subscription,
        summary="Get the subscription",
        example_reply=_SUBSCRIPTION,
    ),
    Write(
        name="billing.upgrade",
        method="POST",
        path="/v1/billing/upgrade",
        handler=upgrade,
        body=Change,
        response=Upgraded,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Upgrade the plan",
        description=(
            "At once, or, where a payment provider collects, as soon as the invoice is paid. It "
            "charges the difference for the days left, today included. The upgrade cancels a "
            "pending downgrade; one that is not paid within the month is forgone."
        ),
        example={"tier": "pro"},
        example_reply={**_SUBSCRIPTION, "invoice": _INVOICE},
    ),
    Write(
        name="billing.downgrade",
        method="POST",
        path="/v1/billing/downgrade",
        handler=downgrade,
        body=Change,
        response=Subscription,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Downgrade the plan",
        description="When the month ends; until then nothing changes. The present tier cancels a "
        "downgrade that is pending.",
        example={"tier": "starter"},
        example_reply={
            **_SUBSCRIPTION,
            "pending_change": {"tier": "starter", "effective_at": _END, "invoice_id": None},
        },
    ),
    Read(
        name="billing.invoices.list",
        method="GET",
        path="/v1/billing/invoices",
        handler=list_invoices,
        query=PageQuery,
        response=Page[Invoice],
        summary="List invoices and credit notes",
        example_reply=example_page(_INVOICE),
    ),
    Read(
        name="billing.invoices.get",
        method="GET",
        path="/v1/billing/invoices/{id}",
        handler=get_invoice,
        response=Invoice,
        summary="Get an invoice",
        example_reply=_INVOICE,
    ),
    Read(
        name="billing.invoices.page",
        method="GET",
        path="/v1/billing/invoices/{id}/html",
        handler=get_invoice_page,
        response=InvoiceHtml,
        produces="text/html; charset=utf-8",
        summary="Get an invoice as a page to print",
        example_reply="<!doctype html>",
    ),
    Write(
        name="billing.stripe_events",
        method="POST",
        path="/v1/billing/stripe/events",
        load=load_notice,
        prepare=verify_notice,
        handler=receive_notice,
        response=Received,
        scope="public",
        accounts=True,
        slot_of=lambda signed: slot_of_email(billing_stripe.email_of(signed)),
        signed_by="Stripe-Signature",
        extra=billing_stripe.STRIPE,
        idempotency=Idempotency.CACHED,
        summary="Where Stripe reports what was paid",
        description=(
            "For Stripe alone: a report is believed only with its signature. 404 where "
            "billing.provider is not stripe."
        ),
        example_reply={"received": True},
    ),
)

FOR_THE_OPERATOR = (
    Write(
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
    Write(
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
    Write(
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
    Write(
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
    Read(
        name="internal.billing.audit",
        path="/v1/internal/billing/audit",
        handler=audit,
        body=OfAccount,
        response=LedgerAudit,
        fresh_usage=True,
        summary="Check an account's documents against its ledger and its usage",
        example=_EMAIL,
        example_reply={
            **_EMAIL, "receivable_cents": 6387, "due_cents": 6387, "revenue_cents": 6387,
            "charged_cents": 6387, "metered": 412, "invoiced": 412, "consistent": True,
        },
        **_INTERNAL,
    ),
)  # fmt: skip
