"""Memories by their times: a bitmap per hour or day decides most, each memory's own time the edges
of the range; and as of an instant.
"""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap

from plugins.memories.rows import (
    MEMORY_EXPIRY,
    MEMORY_FEATURES,
    MEMORY_FIELDS,
    MEMORY_HISTORY,
    MemoryRow,
)
from plugins.memories.store import rows_at
from runtime.api.context import ReadContext
from runtime.timestamps import DAY_MS, HOUR_MS
from storage.indexes import ordinals_of

ORDINAL_MAX = 0xFFFF_FFFF
SUPERSEDING = ("SUPERSEDE", "DELETE")  # changes that take a memory out of ordinary reads


def within_times(
    ctx: ReadContext, universe: BitMap, name: str, low: int | None, high: int | None
) -> BitMap:
    """Those of `universe` whose time `name` lies in [low, high], Unix milliseconds, both inclusive,
    None for no bound.

    name  "created_at", "occurred_at", "updated_at" (of a memory never updated, its creation), or
          "expires_at" (of those that have one)
    """
    if name == "expires_at":
        after, before = (
            None if low is None else (low - 1, ORDINAL_MAX),
            None if high is None else (high + 1,),
        )
        return universe & BitMap(
            ordinal for _, ordinal in ctx[MEMORY_EXPIRY].keys(after=after, before=before)
        )
    if name == "updated_at":
        updated = universe & ctx.index(MEMORY_FIELDS).range("updated_hour")
        return within_times(ctx, universe - updated, "created_at", low, high) | _in_steps(
            ctx, updated, name, low, high
        )
    return _in_steps(ctx, universe, name, low, high)


def known_at(
    ctx: ReadContext, universe: BitMap, at: int, *, include_superseded: bool = False
) -> BitMap:
    """Those of `universe` that were known at the instant `at`, Unix milliseconds: stored by then,
    and not superseded until later.

    With include_superseded, those that had been superseded by then too. Only memories superseded
    now and changed since are read.
    """
    found = within_times(ctx, universe, "created_at", None, at)
    if include_superseded:
        return found
    superseded = found & ctx.index(MEMORY_FIELDS).of("superseded", 1)
    changed = within_times(ctx, superseded, "updated_at", at + 1, None)
    rows = rows_at(ctx, changed)
    return (found - superseded) | BitMap(
        row.ordinal for row in rows if superseded_at(ctx, row) > at
    )


def superseded_at(ctx: ReadContext, row: MemoryRow) -> int:
    """When this memory, superseded now, became so, Unix milliseconds; later changes of other fields
    do not count.
    """
    if row.change in SUPERSEDING:
        return row.updated_at
    past = [
        version.at
        for _, version in ctx[MEMORY_HISTORY].scan(row.id)
        if version.change in SUPERSEDING
    ]
    return (
        past[-1] if past else row.created_at
    )  # it may have been stored as superseded: an old fact that arrived late


def _in_steps(
    ctx: ReadContext, universe: BitMap, name: str, low: int | None, high: int | None
) -> BitMap:
    field, step = (
        ("occurred_day", DAY_MS)
        if name == "occurred_at"
        else (name.replace("_at", "_hour"), HOUR_MS)
    )
    first, last = (None if bound is None else bound // step for bound in (low, high))
    fields = ctx.index(MEMORY_FIELDS)
    found = universe & fields.range(field, first, last)
    edges = found & fields.any_of(field, [at for at in (first, last) if at is not None])
    if edges:
        ordinals = ordinals_of(edges)
        at = _times(ctx, name, ordinals)
        outside = np.zeros(len(at), bool)
        if low is not None:
            outside |= at < low
        if high is not None:
            outside |= at > high
        found -= BitMap(ordinals[outside])
    return found


def _times(ctx: ReadContext, name: str, ordinals: np.ndarray) -> np.ndarray:
    if name == "updated_at":
        return np.array([row.updated_at for row in rows_at(ctx, ordinals.tolist())])
    return ctx.index(MEMORY_FEATURES).field(name, ordinals)
