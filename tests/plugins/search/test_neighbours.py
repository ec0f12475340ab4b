"""What stands beside memories in their sessions, on records made by hand."""

from __future__ import annotations

import numpy as np

from plugins.memories import MEMORY_FEATURES, TextFeatures
from plugins.search.neighbours import NOBODY, surroundings, turns_of_facts, with_neighbours


def stored(count: int, **sides: dict[int, int]) -> np.ndarray:
    """Records of `count` ordinals, and as the last of all others; of each side ordinal -> value."""
    made = np.full(count + 1, MEMORY_FEATURES.absent, MEMORY_FEATURES.dtype)
    for name, values in sides.items():
        for ordinal, value in values.items():
            made[name][ordinal] = value
    return made.view(MEMORY_FEATURES.layout)


def at(records: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
    """The records of these ordinals, as an index gives them."""
    return records[np.minimum(ordinals, len(records) - 1)]


def test_surroundings_have_the_candidates_first_and_every_neighbour_once() -> None:
    records = stored(
        41,
        previous={3: 2, 4: 3, 40: 9},
        following={3: 4, 4: 5, 9: 40, 40: 2},
        flags={2: TextFeatures.QUESTION | TextFeatures.NUMBER, 9: TextFeatures.NUMBER},
        session={9: 77},
    )
    candidates = np.array([3, 4, 9, 40, 50], np.uint32)
    features = at(records, candidates)
    around = surroundings(candidates, features, at(records, features["previous"])["flags"])
    assert around.ordinals[:5].tolist() == candidates.tolist()
    assert sorted(around.ordinals.tolist()) == [2, 3, 4, 5, 9, 40, 50]

    def beside(places: np.ndarray) -> list[int | None]:
        return [None if place < 0 else int(around.ordinals[place]) for place in places]

    assert beside(around.previous) == [2, 3, None, 9, None]
    assert beside(around.following) == [4, 5, 40, 2, None]
    assert around.answers.tolist() == [True, False, False, False, False]
    assert around.features["session"].tolist() == [0, 0, 77, 0, 0]
    assert around.features["previous"].tolist() == [2, 3, NOBODY, 9, NOBODY]


def test_neighbours_join_where_they_are_members() -> None:
    records = stored(10, previous={2: 1, 5: 4}, following={2: 3, 5: NOBODY})
    members = np.array([1, 2, 4, 5, 7], np.uint32)
    candidates = np.array([5, 2, 5, 20], np.uint32)
    found = with_neighbours(candidates, at(records, candidates), members)
    assert found.tolist() == [1, 2, 4, 5, 20]


def test_a_fact_is_what_follows_a_turn_that_another_one_follows() -> None:
    # 1 and 3 are turns in a row, 2 rests on 1, 8 on 7, which is no candidate.
    records = stored(9, previous={2: 1, 3: 1, 8: 7}, following={1: 3})

    def turns(*candidates: int) -> list[int] | None:
        chosen = np.array(candidates, np.uint32)
        previous = at(records, chosen)["previous"]
        found = turns_of_facts(chosen, previous, at(records, previous)["following"])
        return None if found is None else found.tolist()

    assert turns(1, 2, 3, 8) == [-1, 0, -1, -1]
    assert turns(2, 3, 8) is None
