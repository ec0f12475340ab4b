"""Whether the holder of an account's e-mail address proved to be it: by a ticket that was mailed.

What counts as a proof recovery.py and invitations.py say.

    verified_addresses  (keyed digest of the address,)  -> VerifiedRow
"""

from __future__ import annotations

import msgspec

from runtime.api import tenants
from runtime.api.context import ReadContext, WriteContext
from storage.store import Table


class VerifiedRow(msgspec.Struct):
    """at: Unix milliseconds."""

    at: int


VERIFIED: Table[VerifiedRow] = Table(
    "verified_addresses",
    key=("email_digest",),
    row=VerifiedRow,
    doc="when the holder of an account's e-mail address proved to be it",
)


def is_verified(ctx: ReadContext) -> bool:
    """Whether the holder of the account's address proved to be it."""
    return ctx[VERIFIED].has(_key(ctx))


def prove(ctx: WriteContext) -> bool:
    """Remember that it was proved; -> whether it is news."""
    if is_verified(ctx):
        return False
    ctx[VERIFIED].put((_key(ctx),), VerifiedRow(ctx.now))
    return True


def _key(ctx: ReadContext) -> bytes:
    return ctx.digest("email", tenants.own_account(ctx).email)
