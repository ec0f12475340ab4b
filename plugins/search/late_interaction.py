"""Late interaction's part of ranking: which candidates are worth it, and what the words that come
near to the query's make of them.

Pure functions over the columns of ranking.py, as compiled loops: over the some hundred candidates
of a search each step of NumPy costs more than what it does.
"""

from __future__ import annotations

import numpy as np

from plugins.search.neighbours import STORED
from plugins.search.ranking import NEIGHBOUR_WORDS, Columns, Features
from storage.indexes import BOOL, FLOAT32, INT32, INT64, in_array, kernel, out_array


def promising_of(
    scores: np.ndarray, count: int, previous: np.ndarray, following: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """((k,) int32 places of the `count` best of n candidates, or of all, in order; (3k,) int32:
    these, then the places in the pool of what is before each and after each). Of equal ones the
    newer are taken.

    previous, following   (n,) as in Columns
    """
    taken = min(count, len(scores))
    places = np.empty((3, taken), np.int32)
    _promising(scores, taken, previous, following, places)
    return places[0], places.ravel()


@kernel(in_array(FLOAT32), INT64, in_array(INT32), in_array(INT32), out_array(INT32, 2), brief=True)
def _promising(scores, count, previous, following, places):
    size = scores.shape[0]
    least = np.partition(scores, size - count)[size - count] if count else np.float32(0)
    equal = count  # of the least, as many as there is room for behind the better ones
    for memory in range(size):
        equal -= scores[memory] > least
    place = count
    for memory in range(size - 1, -1, -1):
        if place == 0 or scores[memory] < least or (scores[memory] == least and equal == 0):
            continue
        equal -= scores[memory] == least
        place -= 1
        places[0, place] = memory
        places[1, place], places[2, place] = previous[memory], following[memory]


def interaction(
    found: Features,
    promising: np.ndarray,
    nearest: np.ndarray,
    rarity: np.ndarray,
    *,
    one_language: bool = False,
) -> None:
    """Fill in `words` and `nearby` of the promising candidates, (k,) places.

    nearest       (3k, q) the highest cosines of each query word in these, and in what is before and
                  after each of them
    rarity        (q,) of the query's words, which count in its proportion
    one_language  words are compared in one language alone, and the candidates may be in others:
                  each comes as near as they do on the average, at least, since how far off it
                  stays tells more of its language than of what it says
    """
    if one_language and len(promising):
        nearest = nearest.copy()
        own = nearest[: len(promising)]
        np.maximum(own, own.mean(axis=0), out=own)
    _interaction(nearest, rarity, promising, found["words"], found["nearby"])


@kernel(
    in_array(FLOAT32, 2), in_array(FLOAT32), in_array(INT32), out_array(FLOAT32),
    out_array(FLOAT32), brief=True,
)  # fmt: skip
def _interaction(nearest, rarity, promising, words, nearby):
    count = promising.shape[0]
    total = np.float32(0)
    for word in range(rarity.shape[0]):
        total += rarity[word]
    total = max(total, np.float32(1e-9))
    for place in range(count):
        near, nearer = np.float32(0), np.float32(0)
        for word in range(rarity.shape[0]):
            share, own = rarity[word] / total, nearest[place, word]
            beside = max(nearest[count + place, word], nearest[2 * count + place, word])
            near += own * share
            nearer += max(own, np.float32(NEIGHBOUR_WORDS) * beside) * share
        words[promising[place]], nearby[promising[place]] = near, nearer


def has_context(columns: Columns) -> bool:
    """Whether any candidate stands in a session or has a speaker that the query tells apart."""
    return _has_context(columns.text_features, columns.speaker)


@kernel(in_array(STORED), in_array(FLOAT32), result=BOOL, brief=True)
def _has_context(text_features, speaker):
    for memory in range(speaker.shape[0]):
        if text_features[memory].session != 0 or speaker[memory] != 0:
            return True
    return False
