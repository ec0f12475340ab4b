"""Invoices that nobody pays: once one is open for longer than `billing.grace_days`, the account is
suspended until none is.

Suspended, an account keeps all it has, and its tier: whatever costs credits and is no read is
refused (403), and everything else goes on, reads, searches, exports, erasure and paying too. It is
looked at when an invoice's days are over, when a month is closed, and when an invoice is paid or
taken back. The invoice of an upgrade that waits for it owes nothing yet.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from plugins.billing import ledger
from plugins.billing.ledger import INVOICE_STATES, INVOICES, OPEN, InvoiceRow
from plugins.billing.settings import BillingSettings
from plugins.billing.upgrades import AWAITED_UPGRADES
from runtime.api import tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Event, View
from runtime.api.plugin import Job
from runtime.timestamps import DAY_MS


class Standing(View):
    """What the events billing.suspended and billing.resumed say."""

    id: str = Field(description="The invoice that was open for too long.")
    number: str = Field(description="Its number.")
    status: Literal["suspended", "active"] = Field(description="The subscription's status now.")


SUSPENDED = Event("billing.suspended", Standing)
RESUMED = Event("billing.resumed", Standing)
EVENTS = (SUSPENDED, RESUMED)


def review(ctx: WriteContext) -> None:
    """Suspend the account where an invoice is overdue, and take that back where none is."""
    late, held = overdue(ctx), tenants.suspension(ctx)
    if late is not None and held is None:
        reason = (
            f"Invoice {late.number} is overdue, so nothing that costs credits is written until it "
            "is paid: GET /v1/billing/invoices says where. Reading, exporting and erasing go on."
        )
        tenants.suspend(ctx, reason, late.id)
        ctx.emit(SUSPENDED, _standing(late, "suspended"), late.id)
    elif late is None and held is not None:
        tenants.resume(ctx)
        invoice = ctx[INVOICES].row(ledger.find(ctx, held.cause))
        ctx.emit(RESUMED, _standing(invoice, "active"), invoice.id)


def overdue(ctx: ReadContext) -> InvoiceRow | None:
    """The oldest invoice that is open for longer than it may be."""
    days = BillingSettings.of(ctx.settings).grace_days
    if days is None:
        return None
    for (ordinal,), state in ctx[INVOICE_STATES].scan():
        if state.status == OPEN and not ctx[AWAITED_UPGRADES].has(ordinal):
            row = ctx[INVOICES].row(ordinal)
            return row if row.issued_at + days * DAY_MS <= ctx.now else None
    return None


def review_job(ctx: WriteContext, payload: dict[str, Any]) -> dict[str, Any]:
    """The job `billing.review`, when the days of an invoice are over."""
    review(ctx)
    return {"suspended": tenants.suspension(ctx) is not None}


def _standing(invoice: InvoiceRow, status: str) -> dict[str, str]:
    return {"id": invoice.id, "number": invoice.number, "status": status}


REVIEW = Job(ledger.REVIEW_JOB, review_job)
