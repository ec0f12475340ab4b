"""The end of an account, as the runtime keeps it: who asked has a receipt, and the slot has a job.

The account cannot own either, since nobody gets in any more and its rows go. So both are the
slot's. How an account is swept is the job's business (plugins/accounts/erasure.py).

    erasures         (keyed digest of the receipt's text,)  -> ErasureRow     of the slot
    erased_accounts  (number,)                              -> ErasedRow      of the slot
    spent_credits    (period, keyed digest of the address)  -> SpentRow       of the slot

The second are for a restore of a time before: it reads in the log whose erasure was asked for since
and has each erased again, see `repeat`. The third go with their month: so an address that is
registered again has what it had left of the month's credits, and not all of them once more.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import msgspec

from runtime.api import metering, tenants
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, SLOTS
from storage.store import Table

if TYPE_CHECKING:
    from runtime.api.call import Call
    from runtime.api.context import Environment, WriteContext
    from storage.store import Transaction

JOB = "account.erase"
RECEIPT_PREFIX = "mem_rc_"
RECEIPT_RANDOM_BYTES = 30


class ErasureRow(msgspec.Struct):
    """Times in Unix milliseconds. erased: rows by store; finished_at is None until nothing is left
    to do.
    """

    requested_at: int
    finished_at: int | None = None
    erased: dict[str, int] = {}


ERASURES: Table[ErasureRow] = Table(
    "erasures",
    key=("receipt_hmac",),
    row=ErasureRow,
    level="slot",
    doc="what became of erased accounts, without their names",
)


class ErasedRow(msgspec.Struct):
    """at: when it was asked for, Unix milliseconds; receipt: the keyed digest of its text."""

    at: int
    receipt: bytes


ERASED: Table[ErasedRow] = Table(
    "erased_accounts",
    key=("number",),
    row=ErasedRow,
    level="slot",
    doc="numbers of accounts whose erasure was asked for",
)


class SpentRow(msgspec.Struct):
    credits: int


SPENT: Table[SpentRow] = Table(
    "spent_credits",
    key=("period", "email_hmac"),
    row=SpentRow,
    level="slot",
    doc="credits of the month that erased accounts had used, by keyed digests of their addresses",
)
TABLES = (ERASURES, ERASED, SPENT)


def begin(ctx: WriteContext) -> str:
    """Close the context's account and have the slot erase it; -> the text of the receipt."""
    secrets, scope = ctx._environment.secrets, ctx.scope
    random = ctx.random(RECEIPT_RANDOM_BYTES)
    receipt = RECEIPT_PREFIX + (scope.slot.to_bytes(2, "big") + random).hex()
    of_slot = ctx._seen_as(SlotWriteContext, *tenants.slot_itself(scope.slot, secrets))
    _remember_spent(of_slot, ctx)
    tenants.close_account(ctx)
    _begin(of_slot, scope.tenant, ErasedRow(ctx.now, _digest(secrets.pepper, receipt)))
    return receipt


def _remember_spent(of_slot: SlotWriteContext, ctx: WriteContext) -> None:
    """Note what the account has used this month, and forget a few notes of months that are over."""
    period, table = metering.period_of(ctx.now), of_slot[SPENT]
    for key in list(table.keys(before=(period,), limit=EXPIRED_ROWS_SWEPT_PER_WRITE)):
        table.delete(*key)
    used = ctx[metering.USAGE_PERIODS].get(period)
    if used is not None and used.credits:
        email = tenants.own_account(ctx).email
        table.put((period, tenants.email_digest(of_slot.secrets, email)), SpentRow(used.credits))


def spent_before(ctx: SlotReadContext, email: str) -> int:
    """Credits of this month that an account of this normalised address had used when it was
    erased.
    """
    period = metering.period_of(ctx.now)
    found = (ctx[SPENT].get(period, digest) for digest in tenants.email_digests(ctx.secrets, email))
    return max((row.credits for row in found if row is not None), default=0)


def repeat(
    transaction: Transaction, environment: Environment, call: Call, number: int, asked: ErasedRow
) -> bool:
    """Erase an account that is back, although its erasure was asked for: the store is one of
    before. The receipt of then tells how it goes. -> whether it was there.
    """
    principal, scope = tenants.slot_itself(call.slot, environment.secrets)
    ctx = SlotWriteContext(transaction, scope, call, environment, principal)
    account = tenants.open_account(transaction, call.slot, number)
    if account is None or account.created_at > asked.at:
        return False
    tenants.close_account(ctx.within(*tenants.identity(call.slot, account)))
    _begin(ctx, number, asked)
    return True


def _begin(of_slot: SlotWriteContext, number: int, asked: ErasedRow) -> None:
    of_slot[ERASURES].put((asked.receipt,), ErasureRow(asked.at))
    of_slot[ERASED].put((number,), asked)
    of_slot.enqueue(
        JOB, {"tenant": number, "receipt": asked.receipt.hex(), "step": "rows", "erased": {}}
    )


def find(ctx: SlotReadContext, receipt: str) -> ErasureRow | None:
    """What became of the erasure with this receipt."""
    found = (ctx[ERASURES].get(_digest(pepper, receipt)) for pepper in ctx.secrets.peppers)
    return next((row for row in found if row is not None), None)


def slot_of(receipt: str) -> int:
    """The slot in a receipt's text; 0 for what is none, where nothing is found."""
    try:
        slot = int.from_bytes(bytes.fromhex(receipt.removeprefix(RECEIPT_PREFIX))[:2], "big")
    except ValueError:
        return 0
    return slot if slot < SLOTS else 0


def _digest(pepper: bytes, receipt: str) -> bytes:
    return hmac.digest(pepper, b"receipt:" + receipt.encode(), "sha256")
