"""The order of results after ranking: as a reranker judges, and with less repetition. Pure
functions over aligned NumPy columns.

Both leave the envelope's promises whole. Scores still fall from one result to the next, and none
passes below the threshold that it passed before:

    reranked     the results in the judged order; the scores stay where they are, so that the first
                 result has the highest
    diversified  by maximal marginal relevance (Carbonell and Goldstein, 1998): each time the result
                 with the greatest (1 − diversity) · relevance − diversity · greatest cosine with a
                 result before it; no score stays above the one before
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Arrangement:
    """n results in a new order.

    order   (n,) where each stood before
    scores, normalized   (n,) falling
    moved   name of the step -> (n,) by how much it changed each score
    """

    order: NDArray[np.intp]
    scores: NDArray[np.floating]
    normalized: NDArray[np.floating]
    moved: dict[str, NDArray[np.floating]] = field(default_factory=dict)

    @classmethod
    def of(cls, scores: NDArray[np.floating], normalized: NDArray[np.floating]) -> Arrangement:
        """Results in the order of their scores."""
        return cls(np.arange(len(scores)), scores, normalized)

    def reranked(self, judged: Sequence[float]) -> Arrangement:
        """Order by a judgement of each result, best first; equal ones keep their order."""
        places = np.argsort(-np.asarray(judged), kind="stable")
        return Arrangement(
            self.order[places],
            self.scores,
            self.normalized,
            {"reranker": self.scores - self.scores[places]},
        )

    def diversified(self, vectors: NDArray[np.float32], diversity: float) -> Arrangement:
        """vectors (n, width): unit vectors of the results in their present order; a row of zeros is
        like nothing else.
        """
        places = _marginal_relevance(self.normalized, vectors, diversity)
        scores = np.minimum.accumulate(self.scores[places])
        moved = {name: values[places] for name, values in self.moved.items()} | {
            "diversity": scores - self.scores[places]
        }
        return Arrangement(
            self.order[places], scores, np.minimum.accumulate(self.normalized[places]), moved
        )


def _marginal_relevance(
    relevance: NDArray[np.floating], vectors: NDArray[np.float32], diversity: float
) -> NDArray[np.intp]:
    alike = np.maximum(vectors @ vectors.T, 0)
    nearest = np.zeros(len(relevance))
    left = np.ones(len(relevance), bool)
    places = []
    for _ in range(len(relevance)):
        place = int(
            np.argmax(np.where(left, (1 - diversity) * relevance - diversity * nearest, -np.inf))
        )
        places.append(place)
        left[place] = False
        nearest = np.maximum(nearest, alike[place])
    return np.array(places, np.intp)
