"""The operator's list of the accounts that take most of a shard at the moment, behind
`mneme admin load`.
"""

from __future__ import annotations

from pydantic import Field

from plugins.operator.limits import BUSIEST_ITEMS_MAX
from runtime.api import tenants
from runtime.api.load import LOAD_EXAMPLE, Load
from runtime.api.operation import Body, Read, View
from runtime.api.slot_context import OperatorReadContext
from runtime.limits import SLOTS


class BusiestOf(Body):
    slot: int = Field(ge=0, lt=SLOTS, description="Any slot of the shard.")
    count: int = Field(
        default=20, strict=True, ge=1, le=BUSIEST_ITEMS_MAX, description="At most so many accounts."
    )


class AccountLoad(Load):
    user_id: str
    email: str
    tier: str
    slot: int = Field(description="Where it lives, and may be moved.")


class Busiest(View):
    accounts: list[AccountLoad] = Field(description="Those that took most come first.")


def busiest(ctx: OperatorReadContext, body: BusiestOf) -> Busiest:
    """One that was erased meanwhile is left out."""
    found = []
    for account in ctx.busiest(body.count):
        row = account.within[tenants.TENANTS].get(account.number)
        if row is not None:
            found.append(
                AccountLoad.of(
                    account.work,
                    account.seconds,
                    account.resident_bytes,
                    user_id=row.tenant_id,
                    email=row.email,
                    tier=row.tier,
                    slot=account.within.scope.slot,
                )
            )
    return Busiest(accounts=found)


OPERATIONS = (
    Read(
        name="internal.accounts.busiest",
        method="POST",
        path="/v1/internal/accounts/busiest",
        handler=busiest,
        body=BusiestOf,
        response=Busiest,
        scope="admin",
        internal=True,
        slot_of=lambda body: body.slot,
        summary="The accounts that take most of a shard at the moment",
        example={"slot": 0, "count": 20},
        example_reply={
            "accounts": [
                {
                    **LOAD_EXAMPLE,
                    "user_id": "usr_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
                    "email": "ada@example.com",
                    "tier": "free",
                    "slot": 2911,
                }
            ]
        },
    ),
)
