"""The statistics of outcome memory: pure functions over NumPy arrays, no storage, no clock, no
randomness of their own.

A decision i had candidates, one of which was taken with a known probability p_i (its propensity)
and brought a reward r_i inside a declared range [low, high]. A target policy would have taken that
same action with probability π_i; its weight there is w_i = π_i/p_i.

Two kinds of answer, which must not be mixed up:

    description   posteriors, credible intervals, and the point estimates IPS, clipped IPS, SNIPS
                  and DR. They carry no guarantee under repeated looks and decide nothing.
    evidence      `difference_bounds`, a confidence sequence for the mean difference of two
                  policies. It holds at every sample size at once, so it may be looked at after each
                  decision and the looking may decide when to stop.

Why betting: reward differences weighted by 1/p have no useful upper bound, but they have a lower
one. Let

    D_i = w_i (r_i − low) + v_i (high − r_i) − (high − low)        w of the target, v of the
                                                                   baseline (1 for the logged
                                                                   policy)

Under support its mean is the target's value minus the baseline's, and D_i ≥ −(high − low) whatever
the weights are. A gambler who stakes the share λ of the fortune on "the mean is above m" has the
capital Π (1 + λ (D_i − m)) ≥ 0, a supermartingale whenever the mean is at most m, so it ever
reaches 1/α with probability α at most (Ville). Any average over λ is one too. Averaging over a
fixed grid of stakes needs no tuning, does not depend on the order in which outcomes arrive, and
falls in m, so a bisection finds the lower bound.

Sources: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS B
2024); Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences" (ICML 2021);
Swaminathan and Joachims, "The self-normalized estimator" (NeurIPS 2015); Dudík, Langford and Li,
"Doubly robust policy evaluation" (ICML 2011); Kish, "Survey sampling" (1965); Holm (1979); Manski
(1990).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from runtime.extras import Extra

LEARNING = Extra("learning", ("scipy",), "weighing the evidence of decisions")
STAKES = np.geomspace(
    0.002, 0.98, 24
)  # shares of the fortune, in units of 1 / (largest possible loss)
BISECTION_STEP_MIN = (
    1e-5  # of the largest possible loss; the bound given is the lower, safe end of the last step
)
CHUNK = 16_384  # decisions whose capital is summed at once: 3 MB of logarithms
PRIOR_SHARE = (
    0.25  # standard deviation of rewards assumed before any was seen, as a share of their range
)
PRIOR_SHAPE = 1.0
CREDIBLE = 0.90
WEIGHT_DEVIATIONS_MAX = 5.0  # standard errors by which a mean weight may miss 1
WEIGHT_SLACK = 0.05

Numbers = NDArray[np.float64]


# --- what an action is worth: posteriors ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rewards:
    """What is remembered of an action's rewards: how many, their sum and the sum of their squares;
    and the declared range.
    """

    count: int
    total: float
    squares: float
    low: float
    high: float

    @property
    def is_share(self) -> bool:
        """Rewards between 0 and 1 take a Beta posterior, others a normal one of unknown
        variance.
        """
        return self.low >= 0 and self.high <= 1


@dataclass(frozen=True, slots=True)
class Beta:
    """Posterior of a success rate under a uniform prior. A reward between 0 and 1 counts as that
    share of a success.
    """

    a: float
    b: float

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    def interval(self, level: float = CREDIBLE) -> tuple[float, float]:
        from scipy import special  # an extra, which sums and draws do without

        tails = special.betaincinv(self.a, self.b, [(1 - level) / 2, (1 + level) / 2])
        return float(tails[0]), float(tails[1])

    def draw(self, rng: np.random.Generator, count: int) -> Numbers:
        return rng.beta(self.a, self.b, count)

    def parameters(self) -> dict[str, float | str]:
        return {"family": "beta", "a": self.a, "b": self.b}


@dataclass(frozen=True, slots=True)
class Normal:
    """Posterior of a mean under a normal-inverse-gamma prior: a Student t, cut to the declared
    range.
    """

    location: float
    scale: float
    freedom: float
    low: float
    high: float

    @property
    def mean(self) -> float:
        return self.location

    def interval(self, level: float = CREDIBLE) -> tuple[float, float]:
        from scipy import special

        half = self.scale * float(special.stdtrit(self.freedom, (1 + level) / 2))
        return max(self.low, self.location - half), min(self.high, self.location + half)

    def draw(self, rng: np.random.Generator, count: int) -> Numbers:
        return self.location + self.scale * rng.standard_t(self.freedom, count)

    def parameters(self) -> dict[str, float | str]:
        return {
            "family": "student_t",
            "location": self.location,
            "scale": self.scale,
            "degrees_of_freedom": self.freedom,
            "low": self.low,
            "high": self.high,
        }


def posterior(rewards: Rewards) -> Beta | Normal:
    """The posterior of an action's mean reward.

    Normal-inverse-gamma (Murphy 2007): one pseudo-observation at the middle of the range, whose
    spread is PRIOR_SHARE of it.
    """
    n = rewards.count
    if rewards.is_share:
        return Beta(1 + rewards.total, 1 + n - rewards.total)
    width = rewards.high - rewards.low
    middle = rewards.low + width / 2
    mean = rewards.total / n if n else middle
    spread = max(rewards.squares - n * mean * mean, 0.0)
    shape = PRIOR_SHAPE + n / 2
    rate = (
        PRIOR_SHAPE * (PRIOR_SHARE * width) ** 2
        + 0.5 * spread
        + 0.5 * n / (1 + n) * (mean - middle) ** 2
    )
    location = (middle + rewards.total) / (1 + n)
    return Normal(
        location, math.sqrt(rate / (shape * (1 + n))), 2 * shape, rewards.low, rewards.high
    )


def probability_best(
    posteriors: Sequence[Beta | Normal], rng: np.random.Generator, draws: int
) -> Numbers:
    """(k,) the probability of each action to have the highest mean, by Monte Carlo; its error is
    below 0.5 / √draws.
    """
    if len(posteriors) == 1:
        return np.ones(1)
    drawn = np.stack([each.draw(rng, draws) for each in posteriors])
    return np.bincount(drawn.argmax(axis=0), minlength=len(posteriors)) / draws


def explored(distribution: ArrayLike, rate: float) -> Numbers:
    """The distribution mixed with `rate` of a uniform one: no action has less than rate / k, and
    the whole sums to 1.
    """
    given = np.asarray(distribution, float)
    mixed = (1 - rate) * given + rate / len(given)
    return mixed / mixed.sum()


def drawn_index(distribution: ArrayLike, random: bytes) -> int:
    """The place that 8 random bytes choose from this very distribution, so that its entry is the
    exact propensity.
    """
    cumulated = np.cumsum(np.asarray(distribution, float))
    point = int.from_bytes(random[:8], "big") / 2**64 * cumulated[-1]
    return int(min(np.searchsorted(cumulated, point, side="right"), len(cumulated) - 1))


# --- point estimates ------------------------------------------------------------------------------


@dataclass(slots=True)
class Weighted:
    """Sums over decisions from which every point estimate of "always this action" follows; they add
    up, so they are kept by fold.

    offered   resolved decisions of known propensity where the action was a candidate
    taken     of these, those that took it; total: the sum of their rewards
    weights, squares, largest   Σw, Σw², max w
    valued    Σ w r
    clipped, clipped_valued     Σ min(w, cap), Σ min(w, cap) r
    """

    offered: int = 0
    taken: int = 0
    total: float = 0.0
    weights: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    valued: float = 0.0
    clipped: float = 0.0
    clipped_valued: float = 0.0

    @classmethod
    def of(cls, weights: ArrayLike, rewards: ArrayLike, cap: float) -> Weighted:
        """Sum up aligned weights (0 where another action was taken) and rewards."""
        w, r = np.asarray(weights, float), np.asarray(rewards, float)
        low = np.minimum(w, cap)
        chosen = w > 0
        return cls(
            offered=len(w),
            taken=int(chosen.sum()),
            total=float(r[chosen].sum()),
            weights=float(w.sum()),
            squares=float((w * w).sum()),
            largest=float(w.max(initial=0.0)),
            valued=float((w * r).sum()),
            clipped=float(low.sum()),
            clipped_valued=float((low * r).sum()),
        )

    def __add__(self, other: Weighted) -> Weighted:
        return Weighted(
            self.offered + other.offered,
            self.taken + other.taken,
            self.total + other.total,
            self.weights + other.weights,
            self.squares + other.squares,
            max(self.largest, other.largest),
            self.valued + other.valued,
            self.clipped + other.clipped,
            self.clipped_valued + other.clipped_valued,
        )

    @property
    def effective_sample_size(self) -> float:
        """(Σw)² / Σw² (Kish): how many unweighted observations the weighted ones are worth."""
        return self.weights**2 / self.squares if self.squares > 0 else 0.0

    @property
    def ips(self) -> float | None:
        """Inverse propensity scoring; unbiased, and wild under small propensities. None without a
        decision.
        """
        return self.valued / self.offered if self.offered else None

    @property
    def clipped_ips(self) -> float | None:
        """IPS with weights cut at the cap: less variance, biased towards 0."""
        return self.clipped_valued / self.offered if self.offered else None

    @property
    def snips(self) -> float | None:
        """Self-normalised IPS. None when the action was never taken."""
        return self.valued / self.weights if self.weights > 0 else None


def doubly_robust(folds: Sequence[Weighted]) -> float | None:
    """Cross-fitted DR: each fold's model of the reward is the action's mean reward in the other
    folds.

    None when the action was taken in fewer than two folds, since some fold would then be judged by
    itself.
    """
    everything = sum(folds, Weighted())
    if sum(fold.taken > 0 for fold in folds) < 2:
        return None
    value = 0.0
    for fold in folds:
        if fold.offered:
            model = (everything.total - fold.total) / (everything.taken - fold.taken)
            value += fold.offered * model + fold.valued - model * fold.weights
    return value / everything.offered


def worst_case(
    total: float, resolved: int, censored: int, low: float, high: float
) -> tuple[float, float]:
    """Bounds of the mean reward when the missing outcomes may be anything in the range (Manski)."""
    n = resolved + censored
    if n == 0:
        return low, high
    return (total + censored * low) / n, (total + censored * high) / n


# --- evidence: betting ----------------------------------------------------------------------------


def paired_difference(
    rewards: ArrayLike, target: ArrayLike, baseline: ArrayLike, low: float, high: float
) -> Numbers:
    """The differences D_i of the module's docstring. target, baseline: weights; the logged policy's
    are all 1.
    """
    r, w, v = (np.asarray(values, float) for values in (rewards, target, baseline))
    return w * (r - low) + v * (high - r) - (high - low)


def log_capital(values: ArrayLike, loss: float, mean: float) -> float:
    """ln of the gambler's capital after betting that the mean of `values` is above `mean`.

    values   each at least −loss, of conditional mean at most `mean` under the hypothesis
    Under it, the capital exceeds 1/α at any time with probability α at most.
    """
    found = np.asarray(values, float)
    stakes = STAKES / loss
    stakes = stakes[
        stakes * (loss + mean) < 1
    ]  # others could lose more than they have; their share of the fortune stays aside, lost
    if not len(stakes):
        return -math.inf
    logs = np.zeros(len(stakes))
    for start in range(0, len(found), CHUNK):
        logs += np.log1p(np.multiply.outer(stakes, found[start : start + CHUNK] - mean)).sum(axis=1)
    top = logs.max()
    return float(top + math.log(np.exp(logs - top).sum() / len(STAKES)))


def lower_bound(values: ArrayLike, loss: float, high: float, alpha: float) -> float:
    """The lower end of a (1 − alpha) confidence sequence for the mean of `values`, which lies in
    [−loss, high].
    """
    found = np.asarray(values, float)
    needed = math.log(1 / alpha)
    if not len(found) or log_capital(found, loss, -loss) < needed:
        return -loss
    below, above = -loss, min(high, float(found.mean()))
    if log_capital(found, loss, above) >= needed:
        return above
    while above - below > BISECTION_STEP_MIN * loss:
        middle = (below + above) / 2
        if log_capital(found, loss, middle) >= needed:
            below = middle
        else:
            above = middle
    return below


@dataclass(frozen=True, slots=True)
class Bounds:
    """An anytime-valid interval of a mean difference, and its point estimate (None without
    data).
    """

    lower: float
    upper: float
    estimate: float | None


def difference_bounds(
    rewards: ArrayLike,
    target: ArrayLike,
    baseline: ArrayLike,
    low: float,
    high: float,
    alpha: float,
) -> Bounds:
    """The target's value minus the baseline's: each end errs, at any sample size, with probability
    alpha / 2 at most.
    """
    width = high - low
    gains = paired_difference(rewards, target, baseline, low, high)
    losses = paired_difference(rewards, baseline, target, low, high)
    lower = lower_bound(gains, width, width, alpha / 2)
    upper = -lower_bound(losses, width, width, alpha / 2)
    # Both estimates have the same mean; their average is the one that does not depend on where the
    # range lies.
    estimate = float((gains.mean() - losses.mean()) / 2) if len(gains) else None
    # The two ends bet on different sums, so on a history that hardly can be they may cross; what
    # lies between them is then in doubt.
    return Bounds(min(lower, upper), max(lower, upper), estimate)


def holm(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses fall when the family may err with probability alpha (Holm's step-down)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    rejected = [False] * len(p_values)
    for rank, place in enumerate(order):
        if p_values[place] > alpha / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected


def p_value(capital_log: float) -> float:
    """An anytime-valid p-value: the reciprocal of the capital, at most 1."""
    return min(1.0, math.exp(-capital_log)) if capital_log > 0 else 1.0


def weights_are_plausible(weights: ArrayLike, chances: ArrayLike) -> bool:
    """Whether a mean weight of 1 is believable. Under support every target has it; far from it, the
    propensities are wrong.

    chances   (n,) of the target's action at each decision, as logged, which tell how far the mean
              may stray (its variance is 1/p − 1); NaN where only the chosen action's is known.
              There the sample tells, and at least a spread of 1 is granted.
    """
    w, p = np.asarray(weights, float), np.asarray(chances, float)
    if not len(w):
        return True
    seen = max(float(w.var()), float(w.max()) - 1, 1.0)
    spread = np.where(np.isnan(p), seen, 1 / np.where(np.isnan(p), 1.0, p) - 1)
    return abs(float(w.mean()) - 1) <= WEIGHT_SLACK + WEIGHT_DEVIATIONS_MAX * math.sqrt(
        float(spread.sum())
    ) / len(w)


def similarity_weighted(outcomes: ArrayLike, similarities: ArrayLike) -> Beta:
    """Posterior of a success rate from (n,) outcomes in [0, 1] under a uniform prior, each counting
    as much as it is similar, 0 to 1.
    """
    won, near = np.asarray(outcomes, float), np.asarray(similarities, float)
    return Beta(1 + float((near * won).sum()), 1 + float((near * (1 - won)).sum()))
