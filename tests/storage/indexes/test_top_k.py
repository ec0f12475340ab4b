"""The best of many scores, ties included, against sorting all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.indexes.top_k import best

SCORED = st.lists(
    st.tuples(st.integers(0, 500), st.sampled_from([-0.5, 0.0, 0.25, 0.5, 0.75])),
    max_size=80,
    unique_by=lambda each: each[0],
)


@given(SCORED, st.integers(1, 100))
def test_the_best_are_those_that_sorting_finds(scored: list[tuple[int, float]], k: int) -> None:
    ordinals, scores = best(
        np.array([o for o, _ in scored], np.uint32), np.array([s for _, s in scored], np.float32), k
    )
    assert (
        list(zip(scores.tolist(), ordinals.tolist(), strict=True))
        == sorted(((s, o) for o, s in scored), reverse=True)[:k]
    )


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("k", [1, 60, 9_999, 10_000, 20_000])
def test_scores_in_order_are_no_special_case(order: int, k: int) -> None:
    ordinals = np.arange(10_000, dtype=np.uint32)[::order]
    found, scores = best(ordinals, ordinals.astype(np.float32), k)
    assert found.tolist() == list(range(9_999, -1, -1))[:k] and scores.tolist() == found.tolist()
