"""What the retrievers of other plugins bring to a search: candidates, and scores that count as
features of their names.

A retriever that raises is a channel that is missing: the search goes on without it, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

from plugins.search.models import CHANNELS, SearchBody
from runtime.api.context import ReadContext
from runtime.api.plugin import Retriever
from runtime.errors import PLUGIN_RAISES, ApiError, ValidationFailed
from storage.store import StoreError

log = logging.getLogger("mneme.search")


def require_channel(ctx: ReadContext, body: SearchBody) -> None:
    """Raise ValidationFailed where a search is of a type that there is not."""
    known = [*CHANNELS, *(retriever.name for retriever in ctx.registry.retrievers)]
    if body.search_type not in known:
        choices = ", ".join(map(repr, known[:-1]))
        raise ValidationFailed.at(
            ("body", "search_type"), f"must be one of {choices} or {known[-1]!r}", "literal_error"
        )


@dataclass(slots=True)
class Retrieved:
    """weights and scores: of the retrievers that give scores, by name; a score is from 0 to 1.
    failed: what to say of those that raised.
    """

    proposed: list[BitMap] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)
    scores: dict[str, Mapping[int, float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, ctx: ReadContext, body: SearchBody) -> Retrieved:
        """Ask every retriever that this search asks."""
        found = cls()
        for retriever in ctx.registry.retrievers:
            if not body.asks(retriever):
                continue
            try:
                found._ask(retriever, ctx, body.query)
            except (ApiError, StoreError):
                raise
            except PLUGIN_RAISES:  # whatever another package's code raises costs its own candidates
                log.exception("retriever %s failed", retriever.name)
                found.failed.append(f"{retriever.name}_unavailable")
        return found

    def _ask(self, retriever: Retriever, ctx: ReadContext, query: str) -> None:
        """Take what it proposes as a whole, or raise."""
        candidates = retriever.candidates(ctx, query)
        proposed = BitMap(candidates)
        if retriever.weight is not None and isinstance(candidates, Mapping):
            scores = np.fromiter(candidates.values(), np.float32, len(candidates))
            if np.isnan(scores).any():
                raise ValueError("a score is no number")
            self.weights[retriever.name] = float(retriever.weight(ctx.settings))
            self.scores[retriever.name] = candidates
        self.proposed.append(proposed)

    def contributions(self, candidates: np.ndarray) -> dict[str, np.ndarray]:
        """Retriever -> (n,) float32, what it adds to the score of each candidate."""
        if not self.scores:
            return {}
        ordinals = candidates.tolist()
        return {
            name: np.float32(self.weights[name])
            * np.clip(np.array([scores.get(each, 0) for each in ordinals], np.float32), 0, 1)
            for name, scores in self.scores.items()
        }
