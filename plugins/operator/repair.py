"""Upkeep: what an operator does to a running service's stores, through internal routes.

Reading a store needs no service: `mneme admin backup` and `mneme admin verify` read the files
beside it. Repairing one does, since a store has one writer. So the repair of an account is an
operation: one transaction of the shard that owns it, in which every check runs and what derives
from other rows is made again (runtime/shard/verification.py). Other writes of that shard wait
meanwhile.
"""

from __future__ import annotations

from pydantic import Field

from runtime import limits
from runtime.api.operation import Body, Idempotency, View, Write
from runtime.api.slot_context import OperatorWriteContext

LEFT_SHOWN_MAX = 100


class Repair(Body):
    slot: int = Field(ge=0, lt=limits.SLOTS, description="The account's slot.")
    number: int = Field(
        ge=0, lt=2**32, description="The account's number in it; 0 for the rows of the slot itself."
    )


class Disagreement(View):
    table: str = Field(description="Table or index.")
    what: str = Field(description="What is wrong.")


class Repaired(View):
    repaired: int = Field(description="Repairs that were made.")
    left: list[Disagreement] = Field(
        description=f"What cannot be repaired, at most {LEFT_SHOWN_MAX}."
    )


def repair(ctx: OperatorWriteContext, body: Repair) -> Repaired:
    repaired, left = ctx.mend(body.number)
    return Repaired(
        repaired=repaired,
        left=[Disagreement(table=each.table, what=each.what) for each in left[:LEFT_SHOWN_MAX]],
    )


OPERATIONS = (
    Write(
        name="internal.repair",
        method="POST",
        path="/v1/internal/repair",
        handler=repair,
        body=Repair,
        response=Repaired,
        scope="admin",
        internal=True,
        slot_of=lambda body: body.slot,
        idempotency=Idempotency.CACHED,
        summary="Repair what derives from an account's rows",
        example={"slot": 2911, "number": 1},
        example_reply={"repaired": 2, "left": []},
    ),
)
