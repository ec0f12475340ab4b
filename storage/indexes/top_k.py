"""The best of many scores, in the one order every index answers in: by score, then by ordinal, both
descending.

Ties go to the higher ordinal, the newer record, also at the edge of the cut; so an answer depends
on the scores alone and not on the order in which candidates were found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from storage.indexes.kernels import FLOAT32, INT64, UINT32, in_array, inline, kernel, out_array
from storage.indexes.ordinals import Ordinals

Scores = NDArray[np.float32]


def best(candidates: Ordinals, scores: Scores, k: int) -> tuple[Ordinals, Scores]:
    """The k highest scores (k ≥ 1) with their ordinals."""
    k = min(k, len(scores))
    ordinals, highest = np.empty(k, np.uint32), np.empty(k, np.float32)
    _best(
        np.ascontiguousarray(candidates, np.uint32),
        np.ascontiguousarray(scores, np.float32),
        k,
        ordinals,
        highest,
    )
    return ordinals, highest


@inline
def _sink(highest, ordinals, size, score, ordinal):
    """Put these in the place of a heap's top, and whatever is then due there."""
    hole = 0
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        other = child + 1
        if other < size and (
            highest[other] < highest[child]
            or (highest[other] == highest[child] and ordinals[other] < ordinals[child])
        ):
            child = other
        if score < highest[child] or (score == highest[child] and ordinal < ordinals[child]):
            break
        highest[hole], ordinals[hole] = highest[child], ordinals[child]
        hole = child
    highest[hole], ordinals[hole] = score, ordinal


@inline
def offer(highest, ordinals, count, k, score, ordinal):
    """Put these into a heap of the k best so far, the least of them on top, of which there are
    `count`, if they belong there; -> how many there are then.
    """
    if count < k:
        child = count
        while child > 0:
            parent = (child - 1) // 2
            if highest[parent] < score or (highest[parent] == score and ordinals[parent] < ordinal):
                break
            highest[child], ordinals[child] = highest[parent], ordinals[parent]
            child = parent
        highest[child], ordinals[child] = score, ordinal
        return count + 1
    if highest[0] < score or (highest[0] == score and ordinals[0] < ordinal):
        _sink(highest, ordinals, k, score, ordinal)
    return count


@inline
def in_order(highest, ordinals, count):
    """Take such a heap apart from its top, so that the best comes first."""
    for left in range(count - 1, 0, -1):
        score, ordinal = highest[left], ordinals[left]
        highest[left], ordinals[left] = highest[0], ordinals[0]
        _sink(highest, ordinals, left, score, ordinal)


@kernel(in_array(UINT32), in_array(FLOAT32), INT64, out_array(UINT32), out_array(FLOAT32))
def _best(candidates, scores, k, ordinals, highest):
    count = 0
    for place in range(scores.shape[0]):
        count = offer(highest, ordinals, count, k, scores[place], candidates[place])
    in_order(highest, ordinals, count)
