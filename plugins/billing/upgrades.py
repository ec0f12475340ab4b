"""Upgrades that wait for their invoice to be paid, as they do where a payment provider collects.

There is one at most. It is forgone when another change takes its place, and at the end of the month
whose days its invoice charges: the invoice is taken back then, and nothing is owed.

    awaited_upgrades  (ordinal of the invoice,)  -> AwaitedRow
"""

from __future__ import annotations

import msgspec

from plugins.billing import ledger
from plugins.billing.ledger import INVOICE_STATES, OPEN
from plugins.billing.settings import BillingSettings
from runtime.api.context import ReadContext, WriteContext
from storage.store import Table


class AwaitedRow(msgspec.Struct):
    """tier: what the account has from the payment on."""

    tier: str


AWAITED_UPGRADES: Table[AwaitedRow] = Table(
    "awaited_upgrades", key=("ordinal",), row=AwaitedRow, doc="upgrades whose invoice is not paid"
)


def must_be_paid_first(ctx: ReadContext, ordinal: int) -> bool:
    """Whether an upgrade waits for the payment of this invoice, its own."""
    collected = BillingSettings.of(ctx.settings).provider != "manual"
    return collected and ctx[INVOICE_STATES].row(ordinal).status == OPEN


def put_off(ctx: WriteContext, ordinal: int, tier: str) -> None:
    """Have the upgrade to this tier wait for the payment of its invoice."""
    ctx[AWAITED_UPGRADES].put((ordinal,), AwaitedRow(tier))


def awaited(ctx: ReadContext) -> tuple[int, str] | None:
    """(ordinal of the invoice, tier) of the upgrade that waits."""
    found = ctx[AWAITED_UPGRADES].first()
    return None if found is None else (found[0][0], found[1].tier)


def take(ctx: WriteContext, ordinal: int) -> str | None:
    """The tier that was waiting for the payment of this invoice; from now on it waits no more."""
    row = ctx[AWAITED_UPGRADES].get(ordinal)
    ctx[AWAITED_UPGRADES].delete(ordinal)
    return None if row is None else row.tier


def forgo(ctx: WriteContext) -> None:
    """Give up the upgrade that waits, and take its invoice back."""
    found = awaited(ctx)
    if found is None:
        return
    ordinal, _ = found
    ctx[AWAITED_UPGRADES].delete(ordinal)
    if ctx[INVOICE_STATES].row(ordinal).status == OPEN:
        ledger.credit(ctx, ordinal, None, "the upgrade was not paid for and is forgone")
