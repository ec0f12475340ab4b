from __future__ import annotations

import pytest

from tests.simulation.history import run

SEEDS, LONG_SEEDS = 2, 40


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(n, marks=() if n <= SEEDS else pytest.mark.long)
        for n in range(1, LONG_SEEDS + 1)
    ],
)
def test_the_service_and_its_model_agree_through_crashes(seed: int) -> None:
    run(seed)


def test_a_seed_is_the_same_history_each_time() -> None:
    first, second = run(LONG_SEEDS + 1), run(LONG_SEEDS + 1)
    assert first.crashes == second.crashes > 0
    assert first.digest == second.digest
