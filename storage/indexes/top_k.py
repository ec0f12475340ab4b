"""The best of many scores, in the one order every index answers in: by score, then by ordinal, both
descending.

Ties go to the higher ordinal, the newer record, also at the edge of the cut; so an answer depends
on the scores alone and not on the order in which candidates were found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from storage.indexes.kernels import inline
from storage.indexes.ordinals import Ordinals

Scores = NDArray[np.float32]


def best(candidates: Ordinals, scores: Scores, k: int) -> tuple[Ordinals, Scores]:
    """The k highest scores (k ≥ 1) with their ordinals."""
    if k < len(scores):
        places = _highest(candidates, scores, k)
        candidates, scores = candidates[places], scores[places]
    order = np.lexsort((candidates, scores))[::-1]
    return candidates[order], scores[order]


def _highest(candidates: Ordinals, scores: Scores, k: int) -> NDArray[np.intp]:
    """Places of the k highest of more scores, in no order: a heap of them would take ten times as
    long.
    """
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    room = k - len(above)
    if room < len(equal):
        newest = np.argpartition(candidates[equal], len(equal) - room)[len(equal) - room :]
        equal = equal[newest]
    return np.concatenate((above, equal))


@inline
def offer(highest, ordinals, count, k, score, ordinal):
    """Put these among the candidates so far for the k best, of which there are `count`, if they may
    belong there; -> how many there are then, fewer than 2k. For kernels, whose callers give what is
    left to `best`.

    highest, ordinals  (2k + 1,): the last is what has to be exceeded, at first −inf and 0
    """
    if score < highest[2 * k] or (score == highest[2 * k] and ordinal < ordinals[2 * k]):
        return count
    highest[count], ordinals[count] = score, ordinal
    if count + 1 < 2 * k:
        return count + 1
    _part(highest, ordinals, k)
    highest[2 * k], ordinals[2 * k] = highest[k - 1], ordinals[k - 1]
    return k


@inline
def _part(highest, ordinals, k):
    """Bring the k best of 2k before the others, the least of them as the last of them."""
    low, high = 0, 2 * k - 1
    while low < high:
        score, ordinal = highest[(low + high) >> 1], ordinals[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while highest[left] > score or (highest[left] == score and ordinals[left] > ordinal):
                left += 1
            while highest[right] < score or (highest[right] == score and ordinals[right] < ordinal):
                right -= 1
            if left <= right:
                highest[left], highest[right] = highest[right], highest[left]
                ordinals[left], ordinals[right] = ordinals[right], ordinals[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            break
