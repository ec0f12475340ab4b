"""Stripe as the collector of invoices (setting billing.provider: stripe; the package is the extra
`stripe`).

Our ledger is the authority: an invoice is issued and posted here first, and a job then has Stripe
make the same one and ask for the money. Every call to Stripe carries an idempotency key that
derives from the invoice's id, so a job that is run again asks for nothing twice, nor does one that
runs on another machine because the first was lost. What Stripe
reports back is believed only when its signature fits; a paid invoice is then paid here too.

Nothing in here runs inside a transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from plugins.billing.limits import (
    PAYMENT_CALL_RETRIES_MAX,
    PAYMENT_CALL_SECONDS_MAX,
    SIGNATURE_AGE_SECONDS_MAX,
)
from plugins.billing.settings import BillingSettings
from runtime.api.operation import Signed
from runtime.errors import BadRequest, NotFound, Unavailable
from runtime.extras import Extra

STRIPE = Extra(
    "stripe",
    ("stripe",),
    "collecting invoices by Stripe",
    needed=lambda settings: BillingSettings.of(settings).provider == "stripe",
)
DAYS_UNTIL_DUE = 14
PAID_EVENT = "invoice.paid"


@dataclass(frozen=True, slots=True)
class Demand:
    """What Stripe is to collect. lines: (description, cents); owner: what comes back with Stripe's
    events, to find the invoice by.
    """

    api_key: str
    api_base: str
    invoice_id: str
    number: str
    currency: str
    lines: tuple[tuple[str, int], ...]
    tenant_id: str
    name: str
    email: str
    customer: str
    slot: int
    credited_cents: int = 0


@dataclass(frozen=True, slots=True)
class Collected:
    """What Stripe has. credited_cents: what had been taken back when it was asked."""

    customer: str
    provider_id: str
    payment_url: str | None
    credited_cents: int = 0


@dataclass(frozen=True, slots=True)
class AtStripe:
    """An invoice that Stripe has: how to ask for it, our invoice's id, and its own."""

    api_key: str
    api_base: str
    invoice_id: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A verified report of Stripe: the kind of event, and our invoice's owner and id, "" where it
    concerns none of ours. cents: what was paid; None where it does not say.
    """

    kind: str
    email: str
    invoice_id: str
    provider_id: str
    cents: int | None


async def collect(demand: Demand) -> Collected:
    """Make the invoice at Stripe and finalise it. Raises Unavailable when Stripe cannot be reached
    or refuses.
    """
    return await asyncio.to_thread(_collect, demand)


async def withdraw(invoice: AtStripe) -> None:
    """Have Stripe collect an invoice no more. Raises Unavailable as `collect` does."""
    await asyncio.to_thread(_withdraw, invoice)


async def reduce(invoice: AtStripe, cents: int, credited_cents: int) -> None:
    """Have Stripe collect so many cents less for an invoice. credited_cents: taken back in all by
    then. Raises Unavailable as `collect` does.
    """
    await asyncio.to_thread(_reduce, invoice, cents, credited_cents)


def _collect(demand: Demand) -> Collected:
    with _client(demand.api_key, demand.api_base) as client:
        return _in_steps(client, demand)


def _withdraw(invoice: AtStripe) -> None:
    with _client(invoice.api_key, invoice.api_base) as client:
        once = {"idempotency_key": f"{invoice.invoice_id}:void"}
        client.v1.invoices.void_invoice(invoice.provider_id, {}, once)


def _reduce(invoice: AtStripe, cents: int, credited_cents: int) -> None:
    with _client(invoice.api_key, invoice.api_base) as client:
        once = {"idempotency_key": f"{invoice.invoice_id}:credited:{credited_cents}"}
        client.v1.credit_notes.create({"invoice": invoice.provider_id, "amount": cents}, once)


@contextmanager
def _client(api_key: str, api_base: str) -> Iterator[Any]:
    """What calls Stripe. Raises Unavailable where a call in the block fails."""
    import stripe

    client = stripe.StripeClient(
        api_key,
        base_addresses={"api": api_base},
        max_network_retries=PAYMENT_CALL_RETRIES_MAX,
        http_client=stripe.RequestsClient(timeout=PAYMENT_CALL_SECONDS_MAX),
    )
    try:
        yield client
    except stripe.StripeError as failed:
        # Stripe's own text may quote what was sent; its code says enough.
        raise Unavailable(
            f"Stripe did not take the invoice: {failed.code or type(failed).__name__}."
        ) from None


def _in_steps(client: Any, demand: Demand) -> Collected:
    def once(step: str) -> Any:
        return {"idempotency_key": f"{demand.invoice_id}:{step}" if step else demand.invoice_id}

    customer = demand.customer
    if not customer:
        fields = {
            "name": demand.name,
            "email": demand.email,
            "metadata": {"tenant_id": demand.tenant_id},
        }
        customer = client.v1.customers.create(
            fields, {"idempotency_key": f"customer:{demand.tenant_id}"}
        ).id
    owner = {"invoice_id": demand.invoice_id, "number": demand.number, "email": demand.email}
    made = client.v1.invoices.create(
        {
            "customer": customer,
            "currency": demand.currency,
            "collection_method": "send_invoice",
            "days_until_due": DAYS_UNTIL_DUE,
            "auto_advance": True,
            "description": demand.number,
            "metadata": owner,
        },
        once(""),
    )
    for position, (description, cents) in enumerate(demand.lines):
        line = {
            "customer": customer, "invoice": made.id, "currency": demand.currency, "amount": cents,
            "description": description,
        }  # fmt: skip
        client.v1.invoice_items.create(line, once(f"line-{position}"))
    final = client.v1.invoices.finalize_invoice(made.id, {}, once("finalize"))
    return Collected(customer, final.id, final.hosted_invoice_url, demand.credited_cents)


def verified(signed: Signed, secret: str) -> Notice:
    """What a signed report says. Raises BadRequest unless it carries Stripe's signature over
    exactly these bytes, made just now.
    """
    import stripe

    try:
        stripe.WebhookSignature.verify_header(
            signed.content, signed.signature, secret, SIGNATURE_AGE_SECONDS_MAX
        )
    except (stripe.SignatureVerificationError, ValueError):
        raise BadRequest("The signature does not fit the body.", param="Stripe-Signature") from None
    kind, invoice = _parts(signed)
    owner, paid = invoice.get("metadata") or {}, invoice.get("amount_paid")
    return Notice(
        kind,
        str(owner.get("email", "")),
        str(owner.get("invoice_id", "")),
        str(invoice.get("id", "")),
        paid if isinstance(paid, int) else None,
    )


def email_of(signed: Signed) -> str:
    """Whose account a report concerns, before its signature was looked at: good for finding the
    shard, and for nothing else.
    """
    return str((_parts(signed)[1].get("metadata") or {}).get("email", ""))


def _parts(signed: Signed) -> tuple[str, dict[str, Any]]:
    """(kind of event, the object it is about). Raises BadRequest."""
    try:
        event = orjson.loads(signed.content)
        kind, about = event["type"], event["data"]["object"]
        if not (
            isinstance(kind, str)
            and isinstance(about, dict)
            and isinstance(about.get("metadata") or {}, dict)
        ):
            raise TypeError
        return kind, about
    except (ValueError, KeyError, TypeError):
        raise BadRequest("The body is no event of Stripe.") from None


def not_enabled() -> NotFound:
    return NotFound("This service does not collect its invoices through Stripe.")
