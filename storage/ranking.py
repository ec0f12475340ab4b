"""The best of many scores, in the one order every index answers in: by score, then by ordinal, both descending.

Ties go to the higher ordinal, the newer record, also at the edge of the cut; so an answer depends on the scores alone and not on
the order in which candidates were found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ordinals = NDArray[np.uint32]
Scores = NDArray[np.float32]


def best(candidates: Ordinals, scores: Scores, k: int) -> tuple[Ordinals, Scores]:
    """The k highest scores (k ≥ 1) with their ordinals."""
    if len(scores) > k:
        edge = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= edge)
        candidates, scores = candidates[kept], scores[kept]
    order = np.lexsort((candidates, scores))[::-1][:k]
    return candidates[order], scores[order]
