"""Removing what carries a dropped number, in bounded steps, and what verification compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from plugins.collections import limits
from plugins.collections.store import (
    COLLECTION_COUNTS,
    COLLECTION_IDS,
    COLLECTION_INDEX,
    COLLECTIONS,
    DROPPED_COLLECTIONS,
    CountsRow,
    is_dropped,
    numbers_in_use,
)
from runtime.api.checks import Counter, Derived, Finding, IndexEntries, Pursued, last_ordinal
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.operation import Event, View


class Sweep(View):
    """One step of removing what carries a dropped number.

    A subscriber removes at most `rows_left` rows and reports them with `erased`; the step that
    leaves some was the last.
    """

    number: int
    rows_left: int
    receipts: dict[str, int]

    def erased(self, store: str, rows: int) -> None:
        """Count `rows` rows erased from `store`, and take them off the step's allowance."""
        self.receipts[store] = self.receipts.get(store, 0) + rows
        self.rows_left -= rows


COLLECTION_CLEANUP = Event("internal.collection_cleanup", Sweep)


def cleanup(ctx: WriteContext, payload: dict[str, Any]) -> Again | dict[str, Any]:
    """One step of sweeping the dropped numbers in [first, last]; the job's result counts the rows
    erased, by store.
    """
    dropped = ctx[DROPPED_COLLECTIONS]
    receipts = dict(payload["receipts"])
    rows_left = limits.CLEANUP_ROWS_PER_STEP
    while rows_left > 0:
        number = next(
            (key[0] for key in dropped.keys(after=(payload["first"] - 1,), limit=1)), None
        )
        if number is None or number > payload["last"]:
            return {"erased": receipts}
        sweep = Sweep(number=number, rows_left=rows_left, receipts=receipts)
        ctx.emit(COLLECTION_CLEANUP, sweep, "")
        # A number costs at least one row, so that many empty collections are a bounded step too.
        rows_left, receipts = sweep.rows_left - 1, sweep.receipts
        if sweep.rows_left > 0:
            dropped.delete(number)
    return Again({**payload, "receipts": receipts})


def _highest_number(ctx: ReadContext) -> int:  # numbers count from 1, their counter from 0
    return (
        max(
            (
                0,
                *(row.number for _, row in ctx[COLLECTIONS].scan()),
                *(key[0] for key, _ in ctx[DROPPED_COLLECTIONS].scan()),
            )
        )
        - 1
    )


def numbers(ctx: ReadContext) -> Iterator[Finding]:
    """A number belongs to one collection, or to none once it is dropped."""
    seen: set[int] = set()
    for _, row in ctx[COLLECTIONS].scan():
        if row.number in seen or is_dropped(ctx, row.number):
            yield Finding(
                COLLECTIONS.name, f"the number of collection {row.id} is dropped, or another's"
            )
        seen.add(row.number)


def miscounted(ctx: ReadContext, memories: Mapping[int, int]) -> Iterator[Finding]:
    """The collections that count other memories than there are: number -> how many there are."""
    for number in numbers_in_use(ctx):
        counts = ctx[COLLECTION_COUNTS].get(number) or CountsRow()
        found = memories.get(number, 0)
        if counts.memories != found:
            what = (
                f"{counts.memories} memories are counted in collection number {number}, which has "
                f"{found}"
            )
            yield Finding(COLLECTION_COUNTS.name, what, partial(_recount, number, found))


def _recount(number: int, memories: int, ctx: WriteContext) -> None:
    counts = ctx[COLLECTION_COUNTS].get(number) or CountsRow()
    ctx[COLLECTION_COUNTS].put((number,), msgspec.structs.replace(counts, memories=memories))


CHECKS = (
    Derived(
        COLLECTION_IDS,
        COLLECTIONS,
        lambda ctx, key, row: [((row.id,), row.ordinal.to_bytes(4, "big"))],
    ),
    IndexEntries(COLLECTION_INDEX, COLLECTIONS, lambda ctx, row: (("all", 1), ("name", row.name))),
    Counter("collections", lambda ctx: (last_ordinal(COLLECTIONS)(ctx) or 0) - 1),
    Counter("collection_numbers", _highest_number),
    numbers,
    Pursued(
        "collections.cleanup",
        DROPPED_COLLECTIONS,
        waiting=lambda ctx: (
            (key[0], f"number {key[0]}") for key, _ in ctx[DROPPED_COLLECTIONS].scan()
        ),
        covers=lambda payload: range(payload["first"], payload["last"] + 1),
        enqueue=lambda ctx, numbers: ctx.enqueue(
            "collections.cleanup", {"first": min(numbers), "last": max(numbers), "receipts": {}}
        ),
    ),
)
