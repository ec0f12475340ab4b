"""The operator's list of accounts: whom `mneme admin` goes through when it is told "all".

Owns no table. A shard lists the accounts of all its slots, so one call for each shard, page by
page, finds everybody.
"""

from __future__ import annotations

from pydantic import Field

from plugins.operator.limits import ACCOUNTS_LISTED_MAX
from runtime.api import tenants
from runtime.api.operation import Body, Read, View
from runtime.api.slot_context import OperatorReadContext
from runtime.limits import SLOTS
from runtime.timestamps import iso


class AccountsOf(Body):
    slot: int = Field(ge=0, lt=SLOTS, description="Any slot of the shard.")
    after: tuple[int, int] | None = Field(default=None, description="`next` of the page before.")


class ListedAccount(View):
    user_id: str
    email: str
    tier: str
    created_at: str


class Accounts(View):
    accounts: list[ListedAccount]
    next: tuple[int, int] | None = Field(
        description="Where the next page starts; null on the last one."
    )


def list_accounts(ctx: OperatorReadContext, body: AccountsOf) -> Accounts:
    """List accounts by slot and number; a page at a time."""
    first_slot, number = body.after or (0, 0)
    found: list[ListedAccount] = []
    for slot, within in ctx.slots():
        if slot < first_slot:
            continue
        after = (number,) if slot == first_slot else None
        for (last,), row in within[tenants.TENANTS].scan(after=after):
            found.append(
                ListedAccount(
                    user_id=row.tenant_id,
                    email=row.email,
                    tier=row.tier,
                    created_at=iso(row.created_at),
                )
            )
            if len(found) == ACCOUNTS_LISTED_MAX:
                return Accounts(accounts=found, next=(slot, last))
    return Accounts(accounts=found, next=None)


OPERATIONS = (
    Read(
        name="internal.accounts.list",
        method="POST",
        path="/v1/internal/accounts",
        handler=list_accounts,
        body=AccountsOf,
        response=Accounts,
        scope="admin",
        internal=True,
        slot_of=lambda body: body.slot,
        summary="List the accounts of a shard",
        example={"slot": 0},
        example_reply={
            "accounts": [
                {
                    "user_id": "usr_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
                    "email": "ada@example.com",
                    "tier": "free",
                    "created_at": "2026-05-08T13:56:00.000Z",
                }
            ],
            "next": None,
        },
    ),
)
