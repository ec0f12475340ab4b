"""What the retrievers of other plugins bring to a search: candidates, and scores that count as
features of their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

from plugins.search.models import SearchBody
from runtime.api.context import ReadContext


@dataclass(slots=True)
class Retrieved:
    """weights and scores: of the retrievers that give scores, by name; a score is from 0 to 1."""

    proposed: list[BitMap] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)
    scores: dict[str, Mapping[int, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, ctx: ReadContext, body: SearchBody) -> Retrieved:
        """Ask every retriever that this search asks."""
        found = cls()
        for retriever in ctx.registry.retrievers:
            if not body.asks(retriever):
                continue
            candidates = retriever.candidates(ctx, body.query)
            found.proposed.append(BitMap(candidates))
            if retriever.weight is not None and isinstance(candidates, Mapping):
                found.weights[retriever.name] = retriever.weight(ctx.settings)
                found.scores[retriever.name] = candidates
        return found

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
