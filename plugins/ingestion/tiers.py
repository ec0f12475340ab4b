"""Tiers: how close at hand a memory is kept (short_term, long_term, archived).

What decides is activation, the base-level learning of ACT-R (Anderson and Schooler, Reflections of
the environment in memory, 1991) plus importance:

    ln Σ t^−0.5 over the times t, in days, since it was stored and since each access, + 2 ·
    (importance − 0.5)

Only the number of accesses and the last one are kept, so those between are taken as spread evenly
(Petrov, Computationally efficient approximation of the base-level learning equation, 2006). Each
tier is left at another activation than it is entered at, so that a memory near a border stays where
it is. Archived memories are still found, ranked below others (plugins/search/__init__.py).

The job goes through an account's memories in bounded steps, at most every TIER_INTERVAL_MS, and is
started by the first memory stored or found after that: an account in which nothing happens needs no
new tiers.

    tiers_alarm  ()  -> when the next job may start, 8 bytes big endian
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from plugins.ingestion.limits import TIER_MEMORIES_PER_STEP
from plugins.memories import (
    MEMORY_FIELDS,
    MemoryCreated,
    MemoryRow,
    find_rows_at,
    set_tier,
    unreadable,
)
from runtime.api.context import WriteContext
from runtime.api.jobs import Again
from runtime.api.operation import Event
from runtime.api.plugin import Job
from runtime.timestamps import DAY_MS, iso
from storage.store import Table

SHORT, LONG, ARCHIVED = "short_term", "long_term", "archived"
TIER_INTERVAL_MS = 6 * 3_600_000
YOUNGEST_DAYS = 1 / 24  # what happened within the last hour counts as an hour ago
LONG_AFTER_DAYS = 1.0
PROMOTED_FROM, DEMOTED_BELOW = 0.5, -1.0
ARCHIVED_BELOW, RECALLED_FROM = -2.5, -1.5


class TierChanged(MemoryCreated):
    updated_at: str = Field(description="When it changed tier (ISO 8601).")
    tier: str = Field(description="The tier it is in now.")
    previous_tier: str = Field(description="The tier it came from.")


TIER_CHANGED = Event("memory.tier_changed", TierChanged)
ALARM: Table[bytes] = Table(
    "tiers_alarm", key=(), row=bytes, doc="when the next tier job may start, 8 bytes big endian"
)
TABLES: tuple[Table, ...] = (ALARM,)


def activation(row: MemoryRow, now: int) -> float:
    """How present a memory is at `now` (Unix milliseconds)."""
    age = max((now - row.created_at) / DAY_MS, YOUNGEST_DAYS)
    uses = age**-0.5
    if row.access_count and row.last_accessed_at is not None:
        last = min(max((now - row.last_accessed_at) / DAY_MS, YOUNGEST_DAYS), age)
        uses += last**-0.5
        if row.access_count > 1 and age > last:
            uses += (row.access_count - 1) * 2 * (math.sqrt(age) - math.sqrt(last)) / (age - last)
    return math.log(uses) + 2 * (row.importance - 0.5)


def next_tier(row: MemoryRow, now: int) -> str:
    """The tier a memory belongs in, coming from the one it is in."""
    present = activation(row, now)
    if row.tier == LONG and present >= DEMOTED_BELOW:
        return LONG
    if row.tier == ARCHIVED and present < RECALLED_FROM:
        return ARCHIVED
    if present >= PROMOTED_FROM and now - row.created_at >= LONG_AFTER_DAYS * DAY_MS:
        return LONG
    return ARCHIVED if present < ARCHIVED_BELOW else SHORT


def on_life(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: start the job when it is time again. The first memory of an account only sets the
    clock.
    """
    raw = ctx[ALARM].get()
    if raw is not None and int.from_bytes(raw, "big") > ctx.now:
        return
    ctx[ALARM].put((), (ctx.now + TIER_INTERVAL_MS).to_bytes(8, "big"))
    if raw is not None:
        ctx.enqueue("memories.tiers", {"after": -1, "changed": 0})


def step(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `memories.tiers`: look at the next memories, and move those that belong elsewhere."""
    live = ctx.index(MEMORY_FIELDS).of("live", 1)
    live.remove_range(0, payload["after"] + 1)
    portion = list(live[:TIER_MEMORIES_PER_STEP])
    changed, gone = payload["changed"], unreadable(ctx)
    for row in find_rows_at(ctx, portion):
        if row.superseded:
            continue
        tier = next_tier(row, ctx.now)
        if tier != row.tier and row.ordinal not in gone:
            _move(ctx, row, tier)
            changed += 1
    if len(portion) < TIER_MEMORIES_PER_STEP:
        return {"changed": changed}
    return Again({"after": portion[-1], "changed": changed})


def _move(ctx: WriteContext, row: MemoryRow, tier: str) -> None:
    set_tier(ctx, row, tier)
    data = {
        "id": row.id,
        "version": row.version,
        "content": row.content,
        "collection_id": row.collection_id,
        "importance": row.importance,
        "created_at": iso(row.created_at),
        "updated_at": iso(ctx.now),
        "tier": tier,
        "previous_tier": row.tier,
    }
    ctx.emit(TIER_CHANGED, data, row.id)


JOB = Job("memories.tiers", step)
