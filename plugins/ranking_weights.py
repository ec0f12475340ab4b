"""What a tenant's feedback has taught about ranking: adjustments of weights, and how they enter a score.

A search ranks by a weighted sum of features (plugins/ranking.py) whose weights are settings. Training (plugins/training.py) learns what
to add to these weights, and weights of two *priors*, which ranking does not have by itself, since not everybody wants them:

    recency      1 / (1 + days since the memory occurred / 30)
    importance   the memory's importance, 0 to 1

Adjustments are kept apart from the settings, so that a change of the settings still counts. Without a promoted version, or where the
plugin that trains is not installed, nothing is added and nothing is read.

    ranking_weights   ()   -> ActiveRow     the version in use
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from plugins.memory_store import DAY_MS, MEMORIES, cue_columns
from runtime.operation import ReadContext
from storage.table import Table

RECENCY_DAYS = 30.0
RECENCY, IMPORTANCE = "recency", "importance"


class ActiveRow(msgspec.Struct, frozen=True):
    """adjustments: feature or prior → what is added to its weight."""

    version: int
    adjustments: dict[str, float]


RANKING_WEIGHTS: Table[ActiveRow] = Table("ranking_weights", key=(), row=ActiveRow, doc="ranking adjustments in use, and their version")


def weights_of(ctx: ReadContext) -> Mapping[str, float] | None:
    """Feature or prior → what feedback added to its weight; None when nothing was learned or promoted."""
    if RANKING_WEIGHTS.name not in ctx.registry.tables:
        return None
    row = ctx[RANKING_WEIGHTS].get()
    return None if row is None or not row.adjustments else row.adjustments


def learned_scores(ctx: ReadContext, ordinals: np.ndarray, found: Mapping[str, np.ndarray]) -> np.ndarray | float:
    """What feedback adds to the scores of these candidates, aligned with `ordinals`; 0 while nothing was learned.

    found: feature → (n,) unweighted, as plugins/ranking.py makes them
    """
    adjustments = weights_of(ctx)
    if adjustments is None or not len(ordinals):
        return 0.0
    total = np.zeros(len(ordinals), np.float32)
    for name, values in found.items():
        total += np.float32(adjustments.get(name, 0.0)) * values
    if RECENCY in adjustments:
        total += np.float32(adjustments[RECENCY]) * recency(ctx.now, cue_columns(ctx, ordinals)["occurred_at"])
    if IMPORTANCE in adjustments:
        rows = ctx[MEMORIES].get_many([(int(ordinal),) for ordinal in ordinals])
        importance = np.array([0.0 if row is None else row.importance for row in rows], np.float32)
        total += np.float32(adjustments[IMPORTANCE]) * importance
    return total


def recency(now: int, occurred_at: np.ndarray) -> np.ndarray:
    """(n,) Unix milliseconds -> (n,) 1 for now or later, one half after RECENCY_DAYS, towards 0."""
    days = np.maximum(now - np.asarray(occurred_at, np.float64), 0) / DAY_MS
    return (1 / (1 + days / RECENCY_DAYS)).astype(np.float32)
