from __future__ import annotations

import pytest

from tests.simulation.history import run

SEEDS, FAST_SEEDS = 15, 5


@pytest.mark.parametrize("seed", [pytest.param(n, marks=() if n <= FAST_SEEDS else pytest.mark.slow) for n in range(1, SEEDS + 1)])
def test_the_service_and_its_model_agree_through_crashes(seed: int) -> None:
    run(seed)


def test_a_seed_is_the_same_history_each_time() -> None:
    first, second = run(SEEDS + 1), run(SEEDS + 1)
    assert first.crashes == second.crashes > 0
    assert first.digest == second.digest
