"""The memories beside others in their sessions.

Pure functions over arrays; `features` are records of MEMORY_FEATURES as BoundColumns.laid_out gives
them. They are compiled loops, since over the some hundred candidates of a search each step of NumPy
costs more than what it does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plugins.memories import MEMORY_FEATURES, TextFeatures
from storage.indexes import (
    INT32,
    INT64,
    UINT32,
    ascending,
    in_array,
    kernel,
    out_array,
    place_among,
)

NOBODY = int(MEMORY_FEATURES.absent["previous"])  # where there is no neighbour
STORED = MEMORY_FEATURES.layout
_QUESTION = TextFeatures.QUESTION


class Surroundings(NamedTuple):
    """n candidates and what is beside them: p ≥ n memories, the candidates first, then those of
    their neighbours that are none.

    ordinals   (p,) uint32, each once
    features   (n,) of MEMORY_FEATURES
    previous, following   (n,) int32, the places of each one's neighbours among the ordinals; −1
                          where there is no neighbour
    answers    (n,) bool, whether the memory before is a question
    """

    ordinals: np.ndarray
    features: np.ndarray
    previous: np.ndarray
    following: np.ndarray
    answers: np.ndarray


def with_neighbours(
    candidates: np.ndarray, features: np.ndarray, members: np.ndarray
) -> np.ndarray:
    """The candidates, in any order, and those of the members beside them, as ascending ordinals."""
    joined = np.empty(3 * len(candidates), np.uint32)
    count = _joined(candidates, features, members, joined)
    return ascending(joined[:count])


def surroundings(
    candidates: np.ndarray, features: np.ndarray, flags_before: np.ndarray
) -> Surroundings:
    """What is beside the candidates, (n,) uint32, each once.

    flags_before  (n,) uint8, flags of what each follows
    """
    count = len(candidates)
    ordinals = np.empty(3 * count, np.uint32)
    places = np.empty((2, count), np.int32)
    size = _surroundings(candidates, features, ordinals, places)
    answers = flags_before & _QUESTION > 0
    return Surroundings(ordinals[:size], features, places[0], places[1], answers)


def turns_of_facts(
    candidates: np.ndarray, previous: np.ndarray, following: np.ndarray
) -> np.ndarray | None:
    """(n,) int32: of each of the ascending candidates that is a fact the place of its turn among
    them; −1 for the others and where the turn is none of them. None where all are −1.

    A fact follows its turn, after which another memory comes.

    previous   (n,) uint32, the ordinals that the candidates follow
    following  (n,) uint32, those that follow these
    """
    turns = np.empty(len(candidates), np.int32)
    given = np.ascontiguousarray(previous), np.ascontiguousarray(following)
    return turns if _turns(candidates, *given, turns) else None


@kernel(
    in_array(UINT32),
    in_array(STORED),
    in_array(UINT32),
    out_array(UINT32),
    result=INT64,
    brief=True,
)
def _joined(candidates, features, members, joined):
    """Fill the last; -> how many they are."""
    count = 0
    for i in range(candidates.shape[0]):
        joined[count] = candidates[i]
        count += 1
        record = features[i]
        if record.previous != NOBODY and place_among(members, record.previous) >= 0:
            joined[count] = record.previous
            count += 1
        if record.following != NOBODY and place_among(members, record.following) >= 0:
            joined[count] = record.following
            count += 1
    return count


@kernel(
    in_array(UINT32),
    in_array(STORED),
    out_array(UINT32),
    out_array(INT32, 2),
    result=INT64,
    brief=True,
)
def _surroundings(candidates, features, ordinals, places):
    """Fill the last two; -> how many ordinals there are. A hash table of twice as many slots holds
    their places + 1.
    """
    size = 2
    while size < 6 * candidates.shape[0]:
        size *= 2
    table = np.zeros(size, np.int32)
    count = 0
    for side in range(3):
        for i in range(candidates.shape[0]):
            if side == 0:
                ordinal = candidates[i]
            else:
                ordinal = features[i].previous if side == 1 else features[i].following
            if ordinal == NOBODY:
                places[side - 1, i] = -1
                continue
            slot = np.int64((ordinal * np.uint64(2_654_435_761)) & np.uint64(size - 1))
            while table[slot] != 0 and ordinals[table[slot] - 1] != ordinal:
                slot = (slot + 1) & (size - 1)
            if table[slot] == 0:
                ordinals[count] = ordinal
                count += 1
                table[slot] = count
            if side > 0:
                places[side - 1, i] = table[slot] - 1
    return count


@kernel(
    in_array(UINT32), in_array(UINT32), in_array(UINT32), out_array(INT32), result=INT64, brief=True
)
def _turns(candidates, previous, following, turns):
    """Fill the last; -> how many facts there are."""
    found = 0
    for i in range(candidates.shape[0]):
        turns[i] = -1 if following[i] == candidates[i] else place_among(candidates, previous[i])
        found += turns[i] >= 0
    return found
