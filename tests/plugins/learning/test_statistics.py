"""The statistics of outcome memory: published and hand-made values, limits, and what must hold for
any input.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.learning.statistics import (
    Beta,
    Rewards,
    Weighted,
    difference_bounds,
    doubly_robust,
    drawn_index,
    explored,
    holm,
    log_capital,
    lower_bound,
    paired_difference,
    posterior,
    probability_best,
    similarity_weighted,
    weights_are_plausible,
    worst_case,
)

NONE = Weighted()


def test_snips_of_the_reference_case_is_one() -> None:
    """p_log .3, reward 1, p_target .6: the weights cancel; plain IPS does not."""
    sums = Weighted.of([0.6 / 0.3] * 7, [1.0] * 7, cap=10)
    assert sums.snips == pytest.approx(1.0)
    assert sums.ips == pytest.approx(2.0)


def test_estimators_by_hand() -> None:
    sums = Weighted.of([2.0, 0.0, 4.0, 0.0], [1.0, 0.0, 0.5, 1.0], cap=3)
    assert sums.ips == pytest.approx((2 * 1 + 4 * 0.5) / 4)
    assert sums.clipped_ips == pytest.approx((2 * 1 + 3 * 0.5) / 4)
    assert sums.snips == pytest.approx(4 / 6)
    assert sums.effective_sample_size == pytest.approx(36 / 20)
    assert (sums.largest, sums.taken, sums.offered) == (4.0, 2, 4)


def test_doubly_robust_is_its_definition() -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 0.9, 200)
    taken = rng.random(200) < p
    rewards, weights, fold = rng.random(200), np.where(taken, 1 / p, 0.0), rng.integers(0, 5, 200)
    expected = 0.0
    for k in range(5):
        model = rewards[taken & (fold != k)].mean()
        expected += (model + weights[fold == k] * (rewards[fold == k] - model)).sum()
    folds = [Weighted.of(weights[fold == k], rewards[fold == k], 10) for k in range(5)]
    assert doubly_robust(folds) == pytest.approx(expected / 200)
    assert sum(folds, NONE) == Weighted.of(weights, rewards, 10) or sum(
        folds, NONE
    ).ips == pytest.approx((weights * rewards).mean())


def test_doubly_robust_removes_the_noise_of_the_weights() -> None:
    """With a reward that never varies the model is right, and weights cannot matter."""
    folds = [Weighted.of([2.0, 0.0, 0.0], [0.7] * 3, 10), Weighted.of([2.0, 0.0], [0.7] * 2, 10)]
    assert doubly_robust(folds) == pytest.approx(0.7)


def test_nothing_seen_means_no_estimate() -> None:
    assert (NONE.ips, NONE.clipped_ips, NONE.snips, NONE.effective_sample_size) == (
        None,
        None,
        None,
        0.0,
    )
    assert doubly_robust([NONE] * 5) is None
    assert doubly_robust([Weighted.of([2.0], [1.0], 10), NONE]) is None, (
        "one fold cannot judge itself"
    )


def test_beta_posterior_is_the_textbook_one(stats: ModuleType) -> None:
    found = posterior(Rewards(10, 7.0, 7.0, 0.0, 1.0))
    assert found == Beta(8.0, 4.0)
    assert found.mean == pytest.approx(8 / 12)
    assert found.interval() == pytest.approx(
        (stats.beta.ppf(0.05, 8, 4), stats.beta.ppf(0.95, 8, 4))
    )


def test_normal_posterior_is_the_textbook_one(stats: ModuleType) -> None:
    """Murphy (2007), equations 85 to 89 and 95, with m0 0, kappa0 1, alpha0 1, beta0 (2 / 4)²."""
    x = np.array([0.5, -0.25, 0.75, 0.1])
    found = posterior(Rewards(4, float(x.sum()), float((x**2).sum()), -1.0, 1.0))
    mean, shape = x.sum() / 5, 1 + 2
    rate = 0.25 + 0.5 * ((x - x.mean()) ** 2).sum() + 4 * x.mean() ** 2 / (2 * 5)
    scale = math.sqrt(rate / (shape * 5))
    assert found.mean == pytest.approx(mean)
    half = stats.t.ppf(0.95, 2 * shape) * scale
    assert found.interval() == pytest.approx((mean - half, mean + half))


def test_a_posterior_without_observations_is_the_prior() -> None:
    assert posterior(Rewards(0, 0.0, 0.0, 0.0, 1.0)).interval() == pytest.approx((0.05, 0.95))
    wide = posterior(Rewards(0, 0.0, 0.0, -1.0, 1.0))
    assert wide.mean == 0.0 and wide.interval() == (-1.0, 1.0)


def test_probability_best_agrees_with_the_closed_form() -> None:
    """P(B > A) for Beta posteriors (Miller 2015), against Monte Carlo."""
    a, b = Beta(11, 11), Beta(15, 7)
    exact = sum(
        math.exp(_ln_beta(11 + i, 11 + 7) - math.log(7 + i) - _ln_beta(1 + i, 7) - _ln_beta(11, 11))
        for i in range(15)
    )
    found = probability_best([a, b], np.random.default_rng(1), 40_000)
    assert found[1] == pytest.approx(exact, abs=0.01)
    assert found.sum() == pytest.approx(1)
    assert probability_best([a], np.random.default_rng(1), 10).tolist() == [1.0]


def _ln_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50).filter(lambda v: sum(v) > 0.01),
    st.floats(0, 0.2),
)
def test_exploration_leaves_a_floor_and_sums_to_one(values: list[float], rate: float) -> None:
    given_ = np.array(values) / sum(values)
    mixed = explored(given_, rate)
    assert mixed.sum() == pytest.approx(1)
    assert (mixed >= rate / len(values) - 1e-12).all()


def test_draws_follow_the_distribution(stats: ModuleType) -> None:
    distribution = [0.05, 0.0, 0.25, 0.7]
    rng = np.random.default_rng(5)
    counts = np.bincount(
        [drawn_index(distribution, rng.bytes(8)) for _ in range(20_000)], minlength=4
    )
    assert counts[1] == 0
    expected = np.array(distribution)[[0, 2, 3]] * 20_000
    assert stats.chisquare(counts[[0, 2, 3]], expected).pvalue > 1e-4
    assert drawn_index(distribution, b"\xff" * 8) == 3 and drawn_index(distribution, b"\0" * 8) == 0


def test_worst_cases_span_what_is_missing() -> None:
    assert worst_case(3.0, 4, 4, 0.0, 1.0) == pytest.approx((3 / 8, 7 / 8))
    assert worst_case(3.0, 4, 0, 0.0, 1.0) == pytest.approx((0.75, 0.75))
    assert worst_case(0.0, 0, 0, -1.0, 1.0) == (-1.0, 1.0)


# --- evidence -------------------------------------------------------------------------------------


def test_the_paired_difference_has_the_mean_of_the_difference_and_a_floor() -> None:
    """Over all actions and their chances it averages to the difference of the values; the weights
    may be as large as they like.
    """
    p, value = np.array([0.01, 0.99]), np.array([0.9, 0.3])
    by_action = [
        paired_difference(
            [value[a]], [1 / p[0] if a == 0 else 0.0], [1 / p[1] if a == 1 else 0.0], 0.0, 1.0
        )[0]
        for a in range(2)
    ]
    assert float(p @ by_action) == pytest.approx(0.9 - 0.3)
    assert min(by_action) >= -1


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.floats(0.05, 0.95)), max_size=60),
    st.sampled_from([0.01, 0.05, 0.3]),
)
def test_bounds_are_ordered_and_inside_the_possible(
    history: list[tuple[bool, float, float]], alpha: float
) -> None:
    rewards = [reward for _, reward, _ in history]
    target = [1 / p if taken else 0.0 for taken, _, p in history]
    found = difference_bounds(rewards, target, np.ones(len(history)), 0.0, 1.0, alpha)
    assert -1 <= found.lower <= found.upper <= 1
    assert (found.estimate is None) == (not history)


def test_the_lower_bound_is_where_the_capital_reaches_what_it_must() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(0.3, 0.5, 400).clip(-1, 3)
    found = lower_bound(values, 1.0, 1.0, 0.05)
    assert -1 < found < values.mean()
    assert log_capital(values, 1.0, found) >= math.log(20) - 1e-6
    assert log_capital(values, 1.0, found + 1e-3) < math.log(20)


def test_the_capital_falls_with_the_mean_and_does_not_mind_the_order() -> None:
    rng = np.random.default_rng(4)
    values = rng.uniform(-1, 1, 300)
    capitals = [log_capital(values, 1.0, mean) for mean in np.linspace(-0.9, 0.9, 19)]
    assert capitals == sorted(capitals, reverse=True)
    assert log_capital(values[::-1], 1.0, 0.0) == pytest.approx(log_capital(values, 1.0, 0.0))


def test_the_capital_is_a_fair_game() -> None:
    """Over all histories of three fair coins the mean capital is at most the stake."""
    total = 0.0
    for history in range(8):
        values = [1.0 if history >> place & 1 else -1.0 for place in range(3)]
        total += math.exp(log_capital(values, 1.0, 0.0)) / 8
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_rewards_that_never_vary_prove_nothing(reward: float) -> None:
    rng = np.random.default_rng(6)
    target = np.where(rng.random(1_000) < 0.3, 1 / 0.3, 0.0)
    found = difference_bounds(np.full(1_000, reward), target, np.ones(1_000), 0.0, 1.0, 0.05)
    assert found.lower <= 0 <= found.upper


def test_a_real_difference_is_found_and_a_harm_too() -> None:
    rng = np.random.default_rng(7)
    taken = rng.random(2_000) < 0.5
    rewards = (rng.random(2_000) < np.where(taken, 0.7, 0.4)).astype(float)
    target, other = np.where(taken, 2.0, 0.0), np.where(taken, 0.0, 2.0)
    better = difference_bounds(rewards, target, other, 0.0, 1.0, 0.05)
    worse = difference_bounds(rewards, other, target, 0.0, 1.0, 0.05)
    assert better.lower > 0.1 and worse.upper < -0.1
    assert (worse.lower, worse.upper) == pytest.approx((-better.upper, -better.lower))


def test_one_observation_says_next_to_nothing() -> None:
    found = difference_bounds([1.0], [2.0], [1.0], 0.0, 1.0, 0.05)
    assert found.lower < 0 < found.upper


def test_false_passes_stay_below_alpha_over_forty_looks(stats: ModuleType) -> None:
    """200 null histories; a t-interval passes far more often than it says."""
    needed, failures = math.log(2 / 0.05), 0
    rng = np.random.default_rng(8)
    for _ in range(200):
        taken = rng.random(1_000) < 0.5
        values = paired_difference(
            rng.random(1_000) < 0.5, np.where(taken, 2.0, 0.0), np.ones(1_000), 0.0, 1.0
        )
        failures += any(log_capital(values[:n], 1.0, 0.0) >= needed for n in range(25, 1_001, 25))
    assert failures <= stats.binom.ppf(0.999, 200, 0.05)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03], 0.05) == [True, False, False]
    assert holm([0.01, 0.02, 0.03], 0.05) == [True, True, True]
    assert holm([], 0.05) == []
    assert holm([0.2, 0.001], 0.05) == [False, True]


def test_weights_away_from_one_are_noticed_and_heavy_ones_are_not_blamed() -> None:
    rng = np.random.default_rng(9)
    unsaid = np.full(500, np.nan)
    honest = np.where(rng.random(500) < 0.02, 50.0, 0.0)
    assert weights_are_plausible(honest, np.full(500, 0.02)) and weights_are_plausible(
        honest, unsaid
    )
    assert weights_are_plausible([], [])
    lying = np.where(
        rng.random(500) < 0.5, 10.0, 0.0
    )  # taken half of the time, said to be taken one time in ten
    assert not weights_are_plausible(lying, np.full(500, 0.1)) and not weights_are_plausible(
        lying, unsaid
    )
    assert not weights_are_plausible(np.zeros(500), unsaid), (
        "an action said to be possible that never happens"
    )
    assert weights_are_plausible(np.zeros(5), np.full(5, 0.1)), (
        "five decisions may well pass it over"
    )


def test_similar_outcomes_count_as_much_as_they_are_similar() -> None:
    assert similarity_weighted([1, 0], [1.0, 0.5]) == Beta(2.0, 1.5)
    assert similarity_weighted([], []) == Beta(1.0, 1.0)
