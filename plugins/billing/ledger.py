"""Invoices, credit notes and the ledger they are posted to.

An issued document never changes: a mistake is mended by a credit note, and whether a document is
paid stands beside it. Each one is posted to an append-only double-entry ledger in the transaction
that issues it. The entries of a posting sum to zero (a debit is positive), so at any time

    what documents say is owed = the balance of `receivable`          what was charged = − Σ of the
                                                                      revenue accounts

A document's id follows from the account and from what it is for, a month's close or the change to a
tier in a month, and from nothing else. So where a take-over lost a close that a payment provider
had heard of, the close that makes up for it bears the same id, which is the provider's idempotency
key.

Money is integer cents. A line is rounded once, half a cent up. Numbers run without a gap, for each
account and kind: INV-<tag>-000001, CN-<tag>-000001.

    invoices        (ordinal,)   -> InvoiceRow      invoices and credit notes, in the order of issue
    invoice_ids     (id,)        -> ordinal, 4 bytes big endian
    invoice_states  (ordinal,)   -> InvoiceState
    ledger          (sequence,)  -> PostingRow
"""

from __future__ import annotations

import hmac
import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from pydantic import Field

from plugins.billing.settings import BillingSettings
from runtime import ids
from runtime.api import tenants
from runtime.api.checks import Counter as Numbered
from runtime.api.checks import Derived, Finding, last_ordinal
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import View
from runtime.errors import Conflict, NotFound
from runtime.timestamps import DAY_MS, iso
from storage.store import Table

log = logging.getLogger("mneme.billing")

INVOICE, CREDIT_NOTE = "invoice", "credit_note"
OPEN, PAID, VOID, ISSUED = "open", "paid", "void", "issued"
RECEIVABLE, REFUNDS = "receivable", "refunds_payable"
COLLECT_JOB, REVIEW_JOB = "billing.collect", "billing.review"
CREDIT_JOB, VOID_JOB = "billing.credit", "billing.void"
_NUMBERS = {INVOICE: "INV", CREDIT_NOTE: "CN"}

# --- responses ------------------------------------------------------------------------------------


class Line(View):
    description: str = Field(description="What is charged.")
    quantity: float = Field(
        description=(
            "How much of it: credits, thousands of credits where one costs a fraction of a cent, "
            "or months (a share of one, when prorated)."
        )
    )
    unit_cents: int = Field(description="Price of one, in cents.")
    amount_cents: int = Field(description="Quantity times price, rounded once.")
    period_start: str = Field(description="First instant of the time it is for (ISO 8601).")
    period_end: str = Field(description="First instant after it.")


class Invoice(View):
    id: str = Field(description="The document's id.")
    number: str = Field(description="Its number; numbers have no gaps.")
    kind: Literal["invoice", "credit_note"] = Field(
        description="A credit note takes back what an invoice charged; its amounts are negative."
    )
    status: Literal["open", "paid", "void", "issued"] = Field(
        description=(
            "Of an invoice: open, paid, or void when credit notes took all of it back. Of a credit "
            "note: issued."
        )
    )
    currency: str = Field(description="ISO 4217 code.")
    billed_to: dict[str, str] = Field(
        description="Name and e-mail address of the account when it was issued."
    )
    lines: list[Line]
    subtotal_cents: int = Field(description="Sum of the lines.")
    total_cents: int = Field(description="What it charges; no tax is added.")
    credited_cents: int = Field(description="What credit notes took back of it.")
    period_start: str = Field(
        description="First instant of the period it closes or changes (ISO 8601)."
    )
    period_end: str = Field(description="First instant after it.")
    issued_at: str = Field(description="When it was issued.")
    paid_at: str | None = Field(description="When it was paid; null: not yet.")
    credited_invoice_id: str | None = Field(
        description="Of a credit note: the invoice it corrects."
    )
    html_url: str = Field(description="The same as a page to print.")
    payment_url: str | None = Field(
        description="Where to pay it, when a payment provider collects it."
    )


# --- tables ---------------------------------------------------------------------------------------


class LineRow(msgspec.Struct):
    """account: the ledger account its amount is posted to. Quantities may be fractions, and so may
    the price of a metered credit, in thousandths of a cent; amounts never are.
    """

    description: str
    quantity: float
    unit_cents: float
    amount_cents: int
    period_start: int
    period_end: int
    account: str


class InvoiceRow(msgspec.Struct):
    id: str
    number: str
    kind: str
    currency: str
    lines: list[LineRow]
    total_cents: int
    period_start: int
    period_end: int
    issued_at: int
    name: str
    email: str
    credited_invoice_id: str | None = None


class InvoiceState(msgspec.Struct):
    """What happens to an issued document. provider_id: its id at the payment provider."""

    status: str
    paid_at: int | None = None
    reference: str = ""
    credited_cents: int = 0
    provider_id: str = ""
    payment_url: str | None = None


class PostingRow(msgspec.Struct):
    """entries: account -> cents, debits positive; they sum to 0."""

    at: int
    document: str
    entries: dict[str, int]


INVOICES: Table[InvoiceRow] = Table(
    "invoices",
    key=("ordinal",),
    row=InvoiceRow,
    doc="issued invoices and credit notes; they never change",
)
INVOICE_IDS: Table[bytes] = Table(
    "invoice_ids", key=("id",), row=bytes, doc="document id to ordinal, 4 bytes big endian"
)
INVOICE_STATES: Table[InvoiceState] = Table(
    "invoice_states", key=("ordinal",), row=InvoiceState, doc="whether documents are paid"
)
LEDGER: Table[PostingRow] = Table(
    "ledger", key=("sequence",), row=PostingRow, doc="double-entry postings, append-only"
)
TABLES: tuple[Table, ...] = (INVOICES, INVOICE_IDS, INVOICE_STATES, LEDGER)

# --- issuing --------------------------------------------------------------------------------------


def issue(
    ctx: WriteContext,
    lines: Sequence[LineRow],
    period_start: int,
    period_end: int,
    *,
    about: str,
    at: int,
) -> tuple[int, InvoiceRow]:
    """Issue an invoice and post it; -> (ordinal, row). One that charges nothing is paid at once,
    others are the provider's to collect.

    about, at  what it is for, and the beginning of the month that it belongs to: its id follows
               from them
    """
    total = sum(line.amount_cents for line in lines)
    made = _make_id(ctx, at, about)
    ordinal, row = _store(ctx, made, INVOICE, lines, total, period_start, period_end, None)
    ctx[INVOICE_STATES].put(
        (ordinal,), InvoiceState(OPEN) if total > 0 else InvoiceState(PAID, paid_at=ctx.now)
    )
    revenue: Counter[str] = Counter()
    for line in lines:
        revenue[line.account] -= line.amount_cents
    _post(ctx, row, {RECEIVABLE: total, **revenue})
    chosen = BillingSettings.of(ctx.settings)
    if total and chosen.provider != "manual":
        ctx.enqueue(COLLECT_JOB, {"ordinal": ordinal})
    if total and chosen.grace_days is not None:
        ctx.enqueue(REVIEW_JOB, {}, delay_ms=chosen.grace_days * DAY_MS)
    return ordinal, row


def credit(
    ctx: WriteContext, ordinal: int, cents: int | None, reason: str
) -> tuple[int, InvoiceRow]:
    """Take back `cents` of an invoice, or all that is left of it, by a credit note; -> (ordinal,
    row) of the note.

    Of an open invoice less is owed then; of a paid one the amount is owed to the customer. Raises
    Conflict beyond what is left.
    """
    invoice, state = ctx[INVOICES].row(ordinal), ctx[INVOICE_STATES].row(ordinal)
    left = invoice.total_cents - state.credited_cents
    cents = left if cents is None else cents
    if invoice.kind != INVOICE or not 0 < cents <= left:
        raise Conflict(
            f"{invoice.number} has {left} cents left that a credit note could take back.",
            param="amount_cents",
        )
    line = LineRow(
        f"{invoice.number}: {reason}",
        1,
        -cents,
        -cents,
        invoice.period_start,
        invoice.period_end,
        "revenue:credited",
    )
    note_ordinal, note = _store(
        ctx,
        _make_id(ctx, invoice.period_start, f"credit of {invoice.id}"),
        CREDIT_NOTE,
        [line],
        -cents,
        invoice.period_start,
        invoice.period_end,
        invoice.id,
    )
    ctx[INVOICE_STATES].put((note_ordinal,), InvoiceState(ISSUED))
    state.credited_cents += cents
    owed_by = RECEIVABLE if state.status == OPEN else REFUNDS
    if state.status == OPEN and state.credited_cents == invoice.total_cents:
        state.status = VOID
        if state.provider_id:
            ctx.enqueue(VOID_JOB, {"ordinal": ordinal})
    elif state.status == OPEN and state.provider_id:
        ask_for_less(ctx, ordinal, cents, state.credited_cents)
    ctx[INVOICE_STATES].put((ordinal,), state)
    _post(ctx, note, {owed_by: -cents, line.account: cents})
    return note_ordinal, note


def ask_for_less(ctx: WriteContext, ordinal: int, cents: int, credited_cents: int) -> None:
    """Have the provider, which has the invoice, ask for so much less. credited_cents: taken back in
    all by then, which tells this change from others.
    """
    ctx.enqueue(CREDIT_JOB, {"ordinal": ordinal, "cents": cents, "credited_cents": credited_cents})


def pay(
    ctx: WriteContext, ordinal: int, method: str, reference: str, cents: int | None = None
) -> None:
    """Record that what is left of an invoice was paid; a paid one stays as it is. Raises Conflict
    for what cannot be paid.

    cents  what came, where that is known. What is more than was left is the customer's: it may be
           paid before a provider was told what was taken back
    """
    invoice, state = ctx[INVOICES].row(ordinal), ctx[INVOICE_STATES].row(ordinal)
    if state.status == PAID:
        return
    if state.status != OPEN:
        raise Conflict(f"{invoice.number} cannot be paid: it is {state.status}.")
    due = invoice.total_cents - state.credited_cents
    state.status, state.paid_at, state.reference = PAID, ctx.now, reference
    ctx[INVOICE_STATES].put((ordinal,), state)
    more = max(0, (cents or 0) - due)
    _post(ctx, invoice, {f"cash:{method}": due + more, RECEIVABLE: -due, REFUNDS: -more})
    if more:
        log.warning(
            "%s was paid with %d cents more than were left: refund them", invoice.number, more
        )


def owe_back(
    ctx: WriteContext, ordinal: int, method: str, reference: str, cents: int | None = None
) -> None:
    """Record once that a void invoice was paid all the same: what came is the customer's.

    cents  what came; None where that is not known: all that the invoice charged
    """
    invoice, state = ctx[INVOICES].row(ordinal), ctx[INVOICE_STATES].row(ordinal)
    if state.paid_at is not None:
        return
    state.paid_at, state.reference = ctx.now, reference
    ctx[INVOICE_STATES].put((ordinal,), state)
    came = invoice.total_cents if cents is None else cents
    _post(ctx, invoice, {f"cash:{method}": came, REFUNDS: -came})
    log.warning("%s was paid after it had been taken back: refund it", invoice.number)


def _make_id(ctx: ReadContext, at: int, about: str) -> str:
    """The id of the account's next document about this: of a second one, such as for a tier that
    was left and taken again within a month, another.
    """
    for number in itertools.count():
        said = f"invoice:{at}:{about}:{number}".encode()
        random = hmac.digest(ctx.scope.key, said, "sha256")[:10]
        made = ids.make_id("inv", at, ctx.principal.tag, random)
        if ctx[INVOICE_IDS].get(made) is None:
            return made
    raise AssertionError("there is always a next number")


def _store(
    ctx: WriteContext,
    document_id: str,
    kind: str,
    lines: Sequence[LineRow],
    total: int,
    period_start: int,
    period_end: int,
    credited: str | None,
) -> tuple[int, InvoiceRow]:
    account = tenants.own_account(ctx)
    number = f"{_NUMBERS[kind]}-{account.tag.hex().upper()}-{ctx.next_ordinal(kind) + 1:06}"
    row = InvoiceRow(
        id=document_id,
        number=number,
        kind=kind,
        currency=BillingSettings.of(ctx.settings).currency,
        lines=list(lines),
        total_cents=total,
        period_start=period_start,
        period_end=period_end,
        issued_at=ctx.now,
        name=account.full_name,
        email=account.email,
        credited_invoice_id=credited,
    )
    ordinal = ctx.next_ordinal("invoices")
    ctx[INVOICES].put((ordinal,), row)
    ctx[INVOICE_IDS].put((row.id,), ordinal.to_bytes(4, "big"))
    return ordinal, row


def _post(ctx: WriteContext, document: InvoiceRow, entries: dict[str, int]) -> None:
    """Append a posting. A document without money leaves none."""
    entries = {account: cents for account, cents in entries.items() if cents}
    if sum(entries.values()):
        raise AssertionError(f"the posting of {document.number} is out of balance")
    if entries:
        ctx[LEDGER].put(
            (ctx.next_ordinal("ledger"),), PostingRow(ctx.now, document.number, entries)
        )


# --- reading --------------------------------------------------------------------------------------


def balances(ctx: ReadContext) -> dict[str, int]:
    """Ledger account -> cents, over all postings."""
    found: Counter[str] = Counter()
    for _, posting in ctx[LEDGER].scan():
        found.update(posting.entries)
    return dict(found)


def find(ctx: ReadContext, invoice_id: str) -> int:
    """The ordinal of a document of this tenant. Raises NotFound, or PermissionDenied for another
    tenant's id.
    """
    missing = NotFound(
        "There is no invoice with this id; list yours with GET /v1/billing/invoices."
    )
    number = ctx[INVOICE_IDS].get(ctx.check_id("inv", invoice_id, missing))
    if number is None:
        raise missing
    return int.from_bytes(number, "big")


def find_by_number(ctx: ReadContext, name: str) -> int:
    """The ordinal of the document with this id or number. Raises NotFound."""
    for (ordinal,), row in ctx[INVOICES].scan(reverse=True):
        if name in (row.id, row.number):
            return ordinal
    raise NotFound("This account has no invoice with this id or number.", param="invoice")


def view(ctx: ReadContext, ordinal: int) -> dict[str, Any]:
    """An invoice or credit note: its lines and sums, and what has come of it since."""
    row, state = ctx[INVOICES].row(ordinal), ctx[INVOICE_STATES].row(ordinal)
    return {
        "id": row.id,
        "number": row.number,
        "kind": row.kind,
        "status": state.status,
        "currency": row.currency,
        "billed_to": {"name": row.name, "email": row.email},
        "lines": [_line_view(line) for line in row.lines],
        "subtotal_cents": row.total_cents,
        "total_cents": row.total_cents,
        "credited_cents": state.credited_cents,
        "period_start": iso(row.period_start),
        "period_end": iso(row.period_end),
        "issued_at": iso(row.issued_at),
        "paid_at": None if state.paid_at is None else iso(state.paid_at),
        "credited_invoice_id": row.credited_invoice_id,
        "html_url": f"/v1/billing/invoices/{row.id}/html",
        "payment_url": state.payment_url,
    }


def _line_view(line: LineRow) -> dict[str, Any]:
    """A line as it is shown: where one credit costs a fraction of a cent, by the thousand."""
    description, quantity, unit_cents = line.description, line.quantity, line.unit_cents
    if unit_cents != int(unit_cents):
        description, quantity = f"{description}, in thousands", quantity / 1000
        unit_cents *= 1000
    return {
        "description": description,
        "quantity": quantity,
        "unit_cents": round(unit_cents),
        "amount_cents": line.amount_cents,
        "period_start": iso(line.period_start),
        "period_end": iso(line.period_end),
    }


# --- what must agree ------------------------------------------------------------------------------


def _states(ctx: ReadContext) -> Iterator[Finding]:
    """Check that each document has a state, and nothing else has one."""
    documents, states = set(ctx[INVOICES].keys()), set(ctx[INVOICE_STATES].keys())
    for (ordinal,) in sorted(documents ^ states):
        yield Finding(
            INVOICE_STATES.name,
            f"document {ordinal} has no state"
            if (ordinal,) in documents
            else f"{ordinal} is no document",
        )


CHECKS = (
    Derived(INVOICE_IDS, INVOICES, lambda ctx, key, row: [((row.id,), key[0].to_bytes(4, "big"))]),
    Numbered("invoices", last_ordinal(INVOICES)),
    Numbered("ledger", last_ordinal(LEDGER)),
    _states,
)
