"""What of an erased account's bills its operator has to keep: documents and postings, without the
person.

An erasure copies them into tables of the slot before it removes the account's own. Numbers,
amounts, times and the payment provider's ids stay; name, e-mail address, descriptions, reasons and
references go. The account is the tag that its numbers have had from the start, which tells nobody
whose it was.

    retained_documents  (number of the account, ordinal)   -> RetainedDocument   of the slot
    retained_postings   (number of the account, sequence)  -> RetainedPosting    of the slot
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from pydantic import Field

from plugins.billing.ledger import INVOICE_STATES, INVOICES, LEDGER, LineRow
from plugins.billing.limits import RETAINED_PER_PAGE_RECORDS_MAX
from runtime.api.context import ReadContext
from runtime.api.operation import Body, Read, View
from runtime.api.slot_context import OperatorReadContext, SlotReadContext, SlotWriteContext
from runtime.limits import SLOTS
from runtime.timestamps import iso
from storage.store import Table


class RetainedLine(msgspec.Struct):
    """account: the ledger account that its amount was posted to."""

    account: str
    quantity: float
    unit_cents: float
    amount_cents: int
    period_start: int
    period_end: int


class RetainedDocument(msgspec.Struct):
    """account: the tag of the erased account, in hex. Times in Unix milliseconds."""

    account: str
    id: str
    number: str
    kind: str
    status: str
    currency: str
    lines: list[RetainedLine]
    total_cents: int
    credited_cents: int
    period_start: int
    period_end: int
    issued_at: int
    paid_at: int | None
    credited_invoice_id: str | None
    provider_id: str
    erased_at: int


class RetainedPosting(msgspec.Struct):
    """entries: ledger account -> cents, debits positive."""

    account: str
    at: int
    document: str
    entries: dict[str, int]


DOCUMENTS: Table[RetainedDocument] = Table(
    "retained_documents",
    key=("number", "ordinal"),
    row=RetainedDocument,
    level="slot",
    doc="invoices and credit notes of erased accounts, without names and texts",
)
POSTINGS: Table[RetainedPosting] = Table(
    "retained_postings",
    key=("number", "sequence"),
    row=RetainedPosting,
    level="slot",
    doc="ledger postings of erased accounts",
)
TABLES: tuple[Table, ...] = (DOCUMENTS, POSTINGS)


def retain(of_slot: SlotWriteContext, of_account: ReadContext) -> None:
    """Copy what is kept of an account that is being erased."""
    number, tag = of_account.scope.tenant, of_account.principal.tag.hex()
    for (ordinal,), row in of_account[INVOICES].scan():
        state = of_account[INVOICE_STATES].row(ordinal)
        of_slot[DOCUMENTS].put(
            (number, ordinal),
            RetainedDocument(
                account=tag,
                id=row.id,
                number=row.number,
                kind=row.kind,
                status=state.status,
                currency=row.currency,
                lines=[_line(line) for line in row.lines],
                total_cents=row.total_cents,
                credited_cents=state.credited_cents,
                period_start=row.period_start,
                period_end=row.period_end,
                issued_at=row.issued_at,
                paid_at=state.paid_at,
                credited_invoice_id=row.credited_invoice_id,
                provider_id=state.provider_id,
                erased_at=of_slot.now,
            ),
        )
    for (sequence,), posting in of_account[LEDGER].scan():
        kept = RetainedPosting(tag, posting.at, posting.document, posting.entries)
        of_slot[POSTINGS].put((number, sequence), kept)


def _line(line: LineRow) -> RetainedLine:
    return RetainedLine(
        line.account,
        line.quantity,
        line.unit_cents,
        line.amount_cents,
        line.period_start,
        line.period_end,
    )


# --- reading them, as the operator ----------------------------------------------------------------


class RetainedOf(Body):
    slot: int = Field(ge=0, lt=SLOTS, description="Any slot of the shard.")
    after: tuple[int, int, int, int] | None = Field(
        default=None, description="`next` of the page before."
    )


class RetainedRecords(View):
    records: list[dict[str, Any]] = Field(
        description="Documents (`record` is `document`) and postings (`posting`)."
    )
    next: tuple[int, int, int, int] | None = Field(
        description="Where the next page starts; null on the last one."
    )


def list_retained(ctx: OperatorReadContext, body: RetainedOf) -> RetainedRecords:
    """List by slot, then documents before postings, by account; a page at a time."""
    found: list[dict[str, Any]] = []
    for slot, within in ctx.slots():
        for place, record in _of_slot(slot, within, body.after or (0, 0, -1, 0)):
            found.append(record)
            if len(found) == RETAINED_PER_PAGE_RECORDS_MAX:
                return RetainedRecords(records=found, next=place)
    return RetainedRecords(records=found, next=None)


def _of_slot(
    slot: int, ctx: SlotReadContext, last: tuple[int, int, int, int]
) -> Iterator[tuple[tuple[int, int, int, int], dict[str, Any]]]:
    """What comes behind a place (slot, kind, number, ordinal), each with its own."""
    if slot < last[0]:
        return
    for kind, (table, view) in enumerate(_KINDS):
        if (slot, kind) >= last[:2]:
            after = last[2:] if (slot, kind) == last[:2] and last[2] >= 0 else None
            for (number, ordinal), row in ctx[table].scan(after=after):
                yield (slot, kind, number, ordinal), view(row)


def _document(row: RetainedDocument) -> dict[str, Any]:
    times = {
        name: None if (at := getattr(row, name)) is None else iso(at)
        for name in ("period_start", "period_end", "issued_at", "paid_at", "erased_at")
    }
    lines = [
        {
            **msgspec.structs.asdict(line),
            "period_start": iso(line.period_start),
            "period_end": iso(line.period_end),
        }
        for line in row.lines
    ]
    return {"record": "document", **msgspec.structs.asdict(row), **times, "lines": lines}


def _posting(row: RetainedPosting) -> dict[str, Any]:
    return {"record": "posting", **msgspec.structs.asdict(row), "at": iso(row.at)}


_KINDS: tuple[tuple[Table[Any], Callable[[Any], dict[str, Any]]], ...] = (
    (DOCUMENTS, _document),
    (POSTINGS, _posting),
)
OPERATIONS = (
    Read(
        name="internal.billing.retained",
        method="POST",
        path="/v1/internal/billing/retained",
        handler=list_retained,
        body=RetainedOf,
        response=RetainedRecords,
        scope="admin",
        internal=True,
        slot_of=lambda body: body.slot,
        summary="List the financial records of a shard's erased accounts",
        example={"slot": 0},
        example_reply={
            "records": [
                {
                    "record": "posting",
                    "account": "3fa0c81d",
                    "at": "2026-05-12T09:30:00.000Z",
                    "document": "INV-3FA0C81D-000001",
                    "entries": {"receivable": 6387, "revenue:tiers": -6387},
                }
            ],
            "next": None,
        },
    ),
)
