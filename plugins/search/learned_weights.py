"""What a tenant's feedback has taught about ranking: adjustments of weights, and how they enter a
score.

A search ranks by a weighted sum of features (plugins/search/ranking.py) whose weights are settings.
Whoever trains the ranking (plugins/feedback) learns what to add to these weights, and weights of
two *priors*, which ranking does not have by itself, since not everybody wants them:

    recency      1 / (1 + days since the memory occurred / 30)
    importance   the memory's importance, 0 to 1

Adjustments are kept apart from the settings, so that a change of the settings still counts. Without
a promoted version nothing is added.

    ranking_weights   ()   -> ActiveRow     the version in use
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from plugins.memories import MEMORY_FEATURES, rows_at
from runtime.api.context import ReadContext, WriteContext
from runtime.timestamps import DAY_MS
from storage.store import Table

RECENCY_DAYS = 30.0
RECENCY, IMPORTANCE = "recency", "importance"


class ActiveRow(msgspec.Struct, frozen=True):
    """adjustments: feature or prior → what is added to its weight."""

    version: int
    adjustments: dict[str, float]


RANKING_WEIGHTS: Table[ActiveRow] = Table(
    "ranking_weights", key=(), row=ActiveRow, doc="ranking adjustments in use, and their version"
)


TABLES = (RANKING_WEIGHTS,)


def version_in_use(ctx: ReadContext) -> int:
    """The number under which the adjustments in use were learned; 0 for none."""
    row = ctx[RANKING_WEIGHTS].get()
    return 0 if row is None else row.version


def use_weights(ctx: WriteContext, version: int, adjustments: Mapping[str, float]) -> None:
    """Rank by these adjustments from now on."""
    ctx[RANKING_WEIGHTS].put((), ActiveRow(version, dict(adjustments)))


def use_defaults(ctx: WriteContext) -> None:
    """Rank by the settings alone from now on."""
    ctx[RANKING_WEIGHTS].delete()


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove what was learned about ranking. Counts of rows by table."""
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """Export nothing: whoever trained the adjustments exports them, with the version they belong
    to.
    """
    yield from ()


def weights_of(ctx: ReadContext) -> Mapping[str, float] | None:
    """Feature or prior → what feedback added to its weight; None when nothing was learned or
    promoted.
    """
    row = ctx[RANKING_WEIGHTS].get()
    return None if row is None or not row.adjustments else row.adjustments


def learned_scores(
    ctx: ReadContext, ordinals: np.ndarray, found: Mapping[str, np.ndarray]
) -> np.ndarray | float:
    """What feedback adds to the scores of these candidates, aligned with `ordinals`; 0 while
    nothing was learned.

    found: feature → (n,) unweighted, as plugins/search/ranking.py makes them
    """
    adjustments = weights_of(ctx)
    if adjustments is None or not len(ordinals):
        return 0.0
    total = np.zeros(len(ordinals), np.float32)
    for name, values in found.items():
        total += np.float32(adjustments.get(name, 0.0)) * values
    if RECENCY in adjustments:
        total += np.float32(adjustments[RECENCY]) * recency(
            ctx.now, ctx.index(MEMORY_FEATURES).take(ordinals)["occurred_at"]
        )
    if IMPORTANCE in adjustments:
        rows = rows_at(ctx, ordinals)
        importance = np.array([row.importance for row in rows], np.float32)
        total += np.float32(adjustments[IMPORTANCE]) * importance
    return total


def recency(now: int, occurred_at: np.ndarray) -> np.ndarray:
    """(n,) Unix milliseconds -> (n,) 1 for now or later, one half after RECENCY_DAYS, towards 0."""
    days = np.maximum(now - np.asarray(occurred_at, np.float64), 0) / DAY_MS
    return (1 / (1 + days / RECENCY_DAYS)).astype(np.float32)
