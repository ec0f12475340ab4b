"""What the statistics of outcome memory promise, simulated: python loadtests/policy_simulation.py
[--runs 2000] [--json FILE]

false passes   `sufficient` at any of 40 looks where target and baseline are worth the same, in six
               settings, against alpha; beside it what a t-interval would have done that looks as
               often
power          share of runs that pass within 2,000 decisions where the target is better, and the
               median look at which they do
coverage       share of runs whose bounds hold the truth at each of ten looks
propensities   the service's own draws against the probabilities it logged, by chi-square
closed forms   estimators on numbers that can be checked by hand
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from plugins.learning.statistics import (
    Weighted,
    difference_bounds,
    doubly_robust,
    log_capital,
    paired_difference,
)
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.learning_harness import PLUGINS
from tests.support.shard_harness import ShardHarness

DECISIONS, LOOKS, ALPHA = 2_000, 40, 0.05
EVERY = DECISIONS // LOOKS


@dataclass(frozen=True)
class Run:
    """Decisions of one simulated history: rewards, weights of target and baseline, and the declared
    range.
    """

    rewards: np.ndarray
    target: np.ndarray
    baseline: np.ndarray
    low: float
    high: float


def two_actions(
    rng: np.random.Generator,
    chance: float | np.ndarray,
    draw: Callable[[np.ndarray], np.ndarray],
    *,
    logged: bool,
) -> Run:
    """Action 1 (the target) is taken with probability `chance`; draw(actions) -> rewards in [0,
    1].
    """
    p = np.broadcast_to(np.asarray(chance, float), DECISIONS)
    taken = (rng.random(DECISIONS) < p).astype(int)
    target = np.where(taken == 1, 1 / p, 0.0)
    baseline = np.ones(DECISIONS) if logged else np.where(taken == 0, 1 / (1 - p), 0.0)
    return Run(draw(taken), target, baseline, 0.0, 1.0)


def coin(rng: np.random.Generator, rate: np.ndarray | float) -> np.ndarray:
    return (rng.random(DECISIONS) < rate).astype(float)


def shifted(rng: np.random.Generator, effect: float, taken: np.ndarray) -> np.ndarray:
    """Coins of .4, and of .4 + effect for the target."""
    return coin(rng, 0.4 + effect * taken)


def thompson(rng: np.random.Generator) -> Run:
    """The logging policy learns as it goes: Thompson sampling of two equal coins with a floor of
    0.05 each.
    """
    won, lost = np.ones(2), np.ones(2)
    rewards, target = np.zeros(DECISIONS), np.zeros(DECISIONS)
    flips, chances = rng.random(DECISIONS), rng.random(DECISIONS)
    for i in range(DECISIONS):
        if i % 25 == 0:
            best = (rng.beta(won[1], lost[1], 200) > rng.beta(won[0], lost[0], 200)).mean()
            p = 0.05 + 0.9 * best
        taken = int(chances[i] < p)
        rewards[i] = float(flips[i] < 0.5)
        won[taken] += rewards[i]
        lost[taken] += 1 - rewards[i]
        target[i] = taken / p
    return Run(rewards, target, np.ones(DECISIONS), 0.0, 1.0)


NULLS: dict[str, Callable[[np.random.Generator], Run]] = {
    "even coin, even logging": lambda rng: two_actions(
        rng, 0.5, lambda a: coin(rng, 0.5), logged=False
    ),
    "heavy weights (target logged at 2 %)": lambda rng: two_actions(
        rng, 0.02, lambda a: coin(rng, 0.5), logged=True
    ),
    "all rewards 0": lambda rng: two_actions(rng, 0.3, lambda a: np.zeros(DECISIONS), logged=True),
    "all rewards 1": lambda rng: two_actions(rng, 0.3, lambda a: np.ones(DECISIONS), logged=True),
    "drift of both from .2 to .8": lambda rng: two_actions(
        rng, 0.5, lambda a: coin(rng, np.linspace(0.2, 0.8, DECISIONS)), logged=False
    ),
    "adaptive logging (Thompson)": thompson,
}


def passes(values: np.ndarray, width: float) -> int:
    """The first look (1 to LOOKS) at which the lower bound is above 0; 0 for none."""
    needed = math.log(2 / ALPHA)
    return next(
        (
            look
            for look in range(1, LOOKS + 1)
            if log_capital(values[: look * EVERY], width, 0.0) >= needed
        ),
        0,
    )


def passes_by_t(values: np.ndarray) -> bool:
    """Whether a 95 % t-interval at any look lies above 0."""
    n = np.arange(EVERY, DECISIONS + 1, EVERY)
    sums, squares = np.cumsum(values)[n - 1], np.cumsum(values**2)[n - 1]
    mean = sums / n
    error = np.sqrt(np.maximum(squares / n - mean**2, 0) / (n - 1))
    return bool((mean > stats.t.ppf(0.975, n - 1) * error + 1e-12).any())


def gains(run: Run) -> np.ndarray:
    return paired_difference(run.rewards, run.target, run.baseline, run.low, run.high)


def false_passes(runs: int) -> dict[str, dict[str, float]]:
    found = {}
    for name, make in NULLS.items():
        rng = np.random.default_rng(20)
        betting = by_t = 0
        for _ in range(runs):
            values = gains(make(rng))
            betting += passes(values, 1.0) > 0
            by_t += passes_by_t(values)
        found[name] = {"betting": betting / runs, "t": by_t / runs, "runs": runs}
        print(f"{name:40s} betting {betting / runs:.4f}   t-interval {by_t / runs:.4f}", flush=True)
    return found


def power(runs: int) -> dict[str, dict[str, float]]:
    found = {}
    for effect in (0.05, 0.1, 0.15, 0.2, 0.3):
        rng = np.random.default_rng(21)
        looks = [
            passes(gains(two_actions(rng, 0.5, partial(shifted, rng, effect), logged=False)), 1.0)
            for _ in range(runs)
        ]
        passed = [look for look in looks if look]
        median = float(np.median(passed)) * EVERY if passed else math.nan
        found[f"{effect}"] = {"share": len(passed) / runs, "median_decisions": median}
        print(
            f"effect {effect:4.2f}: {len(passed) / runs:.3f} pass within {DECISIONS}, median after "
            f"{median:.0f}",
            flush=True,
        )
    return found


def coverage(runs: int) -> dict[str, float]:
    found = {}
    settings = {
        "even, effect .1": (0.5, 0.1),
        "target logged at 10 %, effect .1": (0.1, 0.1),
        "even, effect −.2": (0.5, -0.2),
    }
    for name, (chance, effect) in settings.items():
        rng, held = np.random.default_rng(22), 0
        for _ in range(runs):
            run = two_actions(rng, chance, partial(shifted, rng, effect), logged=False)
            bounds = [
                difference_bounds(
                    run.rewards[:n], run.target[:n], run.baseline[:n], 0.0, 1.0, ALPHA
                )
                for n in range(DECISIONS // 10, DECISIONS + 1, DECISIONS // 10)
            ]
            held += all(each.lower <= effect <= each.upper for each in bounds)
        found[name] = held / runs
        print(f"{name:36s} all ten looks hold the truth in {held / runs:.4f} of runs", flush=True)
    return found


def propensities(decisions: int) -> dict[str, float]:
    """The service's choices, with outcomes coming in, against the probabilities it logged for
    action "a".
    """
    with tempfile.TemporaryDirectory() as directory:
        harness = ShardHarness(Path(directory), PLUGINS, Models(WordEmbedder()))
        try:
            me = harness.register()
            rng = np.random.default_rng(23)
            pairs = [_decided(harness, me, rng, number) for number in range(decisions)]
        finally:
            harness.close()
    chance, taken = (np.array(column, float) for column in zip(*pairs, strict=True))
    bins = np.minimum((chance * 10).astype(int), 9)
    total, freedom = 0.0, 0
    for each in range(10):
        inside = bins == each
        spread = (chance[inside] * (1 - chance[inside])).sum()
        if spread > 5:
            total += (taken[inside].sum() - chance[inside].sum()) ** 2 / spread
            freedom += 1
    found = {
        "chi_square": total,
        "degrees": freedom,
        "p": float(stats.chi2.sf(total, freedom)),
        "decisions": decisions,
    }
    print(
        f"propensities: chi-square {total:.2f} on {freedom} degrees, p = {found['p']:.3f}",
        flush=True,
    )
    return found


def _decided(
    harness: ShardHarness, me: str, rng: np.random.Generator, number: int
) -> tuple[float, bool]:
    policy = f"policy-{number % 60}"  # each sees all stages of its evidence
    body = {
        "policy_key": policy,
        "candidates": [{"action_key": key} for key in ("a", "b", "c")],
        "mode": ("auto", "explore")[number % 2],
        "baseline_action_key": "a" if number % 3 else None,
    }
    receipt = harness("learning.decide", body, who=me).body
    success = bool(rng.random() < {"a": 0.5, "b": 0.4, "c": 0.6}[receipt["chosen_action_key"]])
    harness("learning.report", {"success": success}, who=me, id=receipt["decision_id"])
    return receipt["distribution"]["a"], receipt["chosen_action_key"] == "a"


def closed_forms() -> dict[str, float]:
    """Reference values: each by hand."""
    weights, rewards = [0.6 / 0.3] * 4, [1.0] * 4
    same = Weighted.of(weights, rewards, 10.0)
    mixed = Weighted.of([2.0, 0.0, 4.0, 0.0], [1.0, 0.0, 0.5, 1.0], 3.0)
    folds = [Weighted.of([2.0, 0.0], [1.0, 0.0], 10.0), Weighted.of([2.0, 0.0], [0.0, 1.0], 10.0)]
    found = {
        "SNIPS(p .3, r 1, target .6) = 1": same.snips or 0.0,
        "IPS of the same = 2": same.ips or 0.0,
        "IPS = (2·1 + 4·.5) / 4 = 1": mixed.ips or 0.0,
        "clipped at 3: (2 + 1.5) / 4 = .875": mixed.clipped_ips or 0.0,
        "SNIPS = 4 / 6 = .667": mixed.snips or 0.0,
        "ESS = 6² / 20 = 1.8": mixed.effective_sample_size,
        "DR, two folds: (2·0 + 2 − 0 + 2·1 + 0 − 2) / 4 = .5": doubly_robust(folds) or 0.0,
    }
    for name, value in found.items():
        print(f"{name:54s} {value:.4f}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    begun = time.perf_counter()
    found = {
        "closed forms": closed_forms(),
        "propensities": propensities(6_000),
        "false passes": false_passes(chosen.runs),
        "power": power(max(chosen.runs // 4, 1)),
        "coverage": coverage(max(chosen.runs // 8, 1)),
    }
    print(f"{time.perf_counter() - begun:.0f} s")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
