"""Memories by their times: a bitmap per hour or day decides most, each memory's own time the edges of the range."""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap

from plugins.memory_store import DAY_MS, HOUR_MS, MEMORIES, MEMORY_EXPIRY, MEMORY_FIELDS, cue_column
from runtime.operation import ReadContext

ORDINAL_MAX = 0xFFFF_FFFF


def told_between(ctx: ReadContext, universe: BitMap, name: str, low: int | None, high: int | None) -> BitMap:
    """Those of `universe` whose time `name` lies in [low, high], Unix milliseconds, both inclusive, None for no bound.

    name  "created_at", "occurred_at", "updated_at" (of a memory never updated, its creation), or "expires_at" (of those that have one)
    """
    if name == "expires_at":
        after, before = None if low is None else (low - 1, ORDINAL_MAX), None if high is None else (high + 1,)
        return universe & BitMap(ordinal for _, ordinal in ctx[MEMORY_EXPIRY].keys(after=after, before=before))
    if name == "updated_at":
        updated = universe & ctx.index(MEMORY_FIELDS).range("updated_hour")
        return told_between(ctx, universe - updated, "created_at", low, high) | _in_steps(ctx, updated, name, low, high)
    return _in_steps(ctx, universe, name, low, high)


def _in_steps(ctx: ReadContext, universe: BitMap, name: str, low: int | None, high: int | None) -> BitMap:
    field, step = ("occurred_day", DAY_MS) if name == "occurred_at" else (name.replace("_at", "_hour"), HOUR_MS)
    first, last = (None if bound is None else bound // step for bound in (low, high))
    fields = ctx.index(MEMORY_FIELDS)
    found = universe & fields.range(field, first, last)
    edges = found & fields.any_of(field, [at for at in (first, last) if at is not None])
    if edges:
        ordinals = np.frombuffer(edges.to_array(), np.uint32)
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
        return np.array([row.updated_at for row in ctx[MEMORIES].get_many([(ordinal,) for ordinal in ordinals.tolist()])])
    return cue_column(ctx, name, ordinals)
