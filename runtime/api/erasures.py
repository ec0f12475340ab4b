"""The end of an account, as the runtime keeps it: who asked has a receipt, and the slot has a job.

The account cannot own either, since nobody gets in any more and its rows go. So both are the
slot's. How an account is swept is the job's business (plugins/accounts/erasure.py).

    erasures  (keyed digest of the receipt's text,)  -> ErasureRow     of the slot
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import msgspec

from runtime.api import tenants
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.limits import SLOTS
from storage.store import Table

if TYPE_CHECKING:
    from runtime.api.context import WriteContext
    from runtime.installation import Secrets

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
TABLES = (ERASURES,)


def begin(ctx: WriteContext) -> str:
    """Close the context's account and have the slot erase it; -> the text of the receipt."""
    secrets, scope = ctx._environment.secrets, ctx.scope
    random = ctx.random(RECEIPT_RANDOM_BYTES)
    receipt = RECEIPT_PREFIX + (scope.slot.to_bytes(2, "big") + random).hex()
    digest = _digest(secrets, receipt)
    tenants.close_account(ctx)
    of_slot = ctx._seen_as(SlotWriteContext, *tenants.slot_itself(scope.slot, secrets))
    of_slot[ERASURES].put((digest,), ErasureRow(ctx.now))
    of_slot.enqueue(
        JOB, {"tenant": scope.tenant, "receipt": digest.hex(), "step": "rows", "erased": {}}
    )
    return receipt


def find(ctx: SlotReadContext, receipt: str) -> ErasureRow | None:
    """What became of the erasure with this receipt."""
    return ctx[ERASURES].get(_digest(ctx.secrets, receipt))


def slot_of(receipt: str) -> int:
    """The slot in a receipt's text; 0 for what is none, where nothing is found."""
    try:
        slot = int.from_bytes(bytes.fromhex(receipt.removeprefix(RECEIPT_PREFIX))[:2], "big")
    except ValueError:
        return 0
    return slot if slot < SLOTS else 0


def _digest(secrets: Secrets, receipt: str) -> bytes:
    return hmac.digest(secrets.pepper, b"receipt:" + receipt.encode(), "sha256")
