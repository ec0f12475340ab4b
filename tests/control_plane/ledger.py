"""A plugin whose rows are numbers that only grow, and which tells somebody outside of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Idempotency, Query, Read, Write
from runtime.api.plugin import Job, Plugin, RetryStrategy
from runtime.api.steps import JobSteps
from storage.store import Table


class Entry(msgspec.Struct):
    number: int
    filling: str = ""


class Entered(Body):
    name: str
    number: int
    filling: str = ""


class Asked(Query):
    name: str


ENTRIES: Table[Entry] = Table("entries", key=("name",), row=Entry, doc="what was entered last")


class Outside:
    """told: what somebody outside is told, by account's name and number."""

    told: Callable[[str, int], None]


def enter(ctx: WriteContext, body: Entered) -> dict[str, int]:
    before = ctx[ENTRIES].get(body.name)
    if before is None or before.number < body.number:  # one that comes late changes nothing
        ctx[ENTRIES].put((body.name,), Entry(body.number, body.filling))
    ctx.enqueue("ledger.tell", {"name": body.name, "number": body.number})
    return {"number": body.number}


def read(ctx: ReadContext, body: None) -> dict[str, int]:
    found = ctx[ENTRIES].get(ctx.call.query.name)
    return {"number": 0 if found is None else found.number}


async def tell(steps: JobSteps, loaded: None, payload: dict[str, Any], models: None) -> None:
    Outside.told(payload["name"], payload["number"])


PLUGIN = Plugin(
    "ledger",
    operations=(
        Write(
            "ledger.enter", "POST", "/v1/entries", enter, "", None, Entered,
            scope="write", idempotency=Idempotency.CACHED,
        ),
        Read("ledger.read", "GET", "/v1/entries", read, "", None, query=Asked),
    ),
    tables=(ENTRIES,),
    jobs=(
        Job(
            "ledger.tell", lambda ctx, payload: None, prepare=tell,
            retry=RetryStrategy(attempts=1_000, base_ms=50),
        ),
    ),
)  # fmt: skip
