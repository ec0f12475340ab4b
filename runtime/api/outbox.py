"""Events, recorded in the transaction that caused them.

`emit` writes one outbox row and runs the event's subscribers inside the same transaction, so an
event exists exactly when its cause does. Rows are kept for a week, as the durable answer to "what
was event evt_…", and swept a few at a time by later writes. A row names what happened to which
resource and repeats nothing of it: whoever passes an event on keeps its own copy of the data for as
long as that takes, and deleting a resource leaves no text of it here.

Kinds that start with "internal." are signals between plugins: they reach their subscribers and
leave no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import BaseModel

from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, OUTBOX_RETENTION_SECONDS
from storage.store import Table

if TYPE_CHECKING:
    from runtime.api.call import Event
    from runtime.api.context import WriteContext


class OutboxRow(msgspec.Struct):
    kind: str
    resource_id: str
    at: int


OUTBOX: Table[OutboxRow] = Table(
    "outbox", key=("event_id",), row=OutboxRow, version=2, doc="events of the last week, by id"
)
TABLES = (OUTBOX,)


def _without_data(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "data"}


MIGRATIONS = {("outbox", 1): _without_data}


def emit(
    ctx: WriteContext,
    event: Event,
    data: Mapping[str, Any] | BaseModel,
    resource_id: str,
    event_id: str | None = None,
) -> str:
    """Record the event and run its subscribers; -> the event's id: the one given, or a new one."""
    event_id = event_id or ctx.new_id("evt")
    if not event.kind.startswith("internal."):
        rows = ctx[OUTBOX]
        rows.put((event_id,), OutboxRow(event.kind, resource_id, ctx.now))
        if not ctx.outbox_is_swept:
            ctx.outbox_is_swept = _sweep(ctx)
    for subscriber in ctx.registry.subscribers.get(event.kind, ()):
        subscriber(ctx, event_id, event.kind, data, resource_id)
    return event_id


def _sweep(ctx: WriteContext) -> bool:
    """Delete some of the rows that are old enough; -> whether there are no more."""
    rows, oldest = ctx[OUTBOX], ctx.now - OUTBOX_RETENTION_SECONDS * 1000
    # Ids sort by time, so the first young row ends the search; most writes look at one row.
    for key, row in rows.scan(limit=EXPIRED_ROWS_SWEPT_PER_WRITE):
        if row.at >= oldest:
            return True
        rows.delete(*key)
    return False
