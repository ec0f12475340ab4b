"""What is sent and shown of subscriptions, invoices and the ledger."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, RootModel

from plugins.billing.ledger import Invoice
from plugins.billing.limits import REASON_CHARS_MAX
from runtime.api.operation import Body, View
from runtime.limits import EMAIL_CHARS_MAX, NAME_CHARS_MAX

TierName = Literal["free", "starter", "pro", "scale", "enterprise"]


class Change(Body):
    tier: TierName = Field(description="The tier to change to.")


class OfAccount(Body):
    email: str = Field(
        min_length=3, max_length=EMAIL_CHARS_MAX, description="The account's e-mail address."
    )


class TierSetting(OfAccount):
    tier: TierName = Field(description="The tier from now on.")
    price_cents: int | None = Field(
        default=None,
        ge=0,
        le=10**9,
        description="The agreed price, in cents a month; the tier's own, when absent.",
    )


class OfInvoice(OfAccount):
    invoice: str = Field(min_length=1, max_length=64, description="The invoice's number or id.")


class Payment(OfInvoice):
    reference: str = Field(
        default="",
        max_length=NAME_CHARS_MAX,
        description="What the payment is known by, such as a transfer's number.",
    )


class NewCreditNote(OfInvoice):
    reason: str = Field(
        min_length=1, max_length=REASON_CHARS_MAX, description="Why; it stands on the note."
    )
    amount_cents: int | None = Field(
        default=None, ge=1, description="How much to take back; all that is left, when absent."
    )


class Tier(View):
    name: str = Field(description="Key of the tier.")
    display_name: str = Field(description="What it is called.")
    price: str = Field(description="Its price, in words.")
    price_cents: int | None = Field(description="Its price in cents a month; null: by agreement.")
    credits: int = Field(description="Credits a month; -1 is unlimited.")
    requests_per_minute: int = Field(description="Requests a minute; 0 is unlimited.")
    file_bytes: int = Field(description="Bytes of files and of their texts; -1 is unlimited.")
    text_bytes: int = Field(description="Bytes of memories' texts, as kept; -1 is unlimited.")
    memories: int = Field(description="Memories that may be kept; -1 is unlimited.")
    documents: int = Field(description="Documents that may be kept; -1 is unlimited.")
    entities: int = Field(description="Entities that may be asked for; -1 is unlimited.")
    collections: int = Field(description="Collections that may be kept; -1 is unlimited.")
    profiles: int = Field(description="Profiles that may be asked for; -1 is unlimited.")


class PendingChange(View):
    tier: str = Field(description="The tier it will be.")
    effective_at: str | None = Field(
        description="When (ISO 8601); null: as soon as the invoice is paid, within this month."
    )
    invoice_id: str | None = Field(description="The invoice that an upgrade waits for.")


class Suspension(View):
    since: str = Field(description="Since when (ISO 8601).")
    invoice_id: str = Field(description="The invoice that was open for too long.")
    reason: str = Field(description="Why, and what ends it, for people.")


class Subscription(View):
    id: str = Field(description="The subscription's id.")
    tier: Tier
    status: Literal["active", "suspended"] = Field(
        description=(
            "`suspended`: an invoice is overdue, and what costs credits and is no read is 403 "
            "until it is paid."
        )
    )
    suspension: Suspension | None = Field(description="Of one that is suspended: why.")
    period_start: str = Field(description="First instant of the running month (ISO 8601, UTC).")
    period_end: str = Field(description="First instant of the next one.")
    pending_change: PendingChange | None = Field(
        description=(
            "An upgrade that waits for its payment, or a downgrade that waits for the end of the "
            "period."
        )
    )
    provider: str = Field(description="Who collects the invoices: `manual` or `stripe`.")


class Upgraded(Subscription):
    invoice: Invoice = Field(description="What the rest of the month costs more.")


class InvoiceHtml(RootModel[str]):
    """An HTML document."""


class Closed(View):
    email: str
    invoices: list[Invoice] = Field(
        description=(
            "The invoices this call issued; none when every month that is over was closed before."
        )
    )


class LedgerAudit(View):
    email: str
    receivable_cents: int = Field(description="What the ledger says is owed.")
    due_cents: int = Field(description="What the documents say is owed.")
    revenue_cents: int = Field(
        description="What the ledger says was charged, credit notes taken off."
    )
    charged_cents: int = Field(description="What the documents say.")
    metered: int = Field(description="Credits of all closed months.")
    invoiced: int = Field(description="Credits on all invoices.")
    consistent: bool = Field(description="Whether they agree, pair by pair.")


class Received(View):
    received: bool = Field(
        description="Always true; what the report was about is nobody else's business."
    )
