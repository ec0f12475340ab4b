"""Learning ranking weights from feedback: pure functions over aligned arrays, no storage.

Feedback says of two results of one query which is the better one. A pairwise logistic model (Burges
et al., "Learning to rank using gradient descent", ICML 2005) finds what to add to each weight so
that the better one scores higher; a normal prior at zero keeps what the feedback does not speak of
where it was. Whether that helps is judged on queries that had no part in it, by NDCG@10 (Järvelin
and Kekäläinen, 2002) query by query against the ranking in use.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

DEPTH = 10
# a difference of 1 / SHARPNESS in score makes one result e times as likely to be the better one
SHARPNESS = 5.0
PRIOR_DEVIATION = 0.25
ADJUSTMENT_MAX = 1.0
UNLABELLED = 0.25  # weight of a pair of which one result was shown and not judged
PROMOTION_ALPHA = 0.01
STEPS_MAX = 200

Numbers = NDArray[np.float64]


@dataclass(slots=True)
class Judged:
    """One query's results, best first by the defaults.

    features   (n, f) unweighted;  base (n,) scores by the defaults
    gains      (n,) what each is worth at the top: 0 where nobody said
    pairs      (better, worse, weight), places in the results
    """

    query: str
    features: Numbers
    base: Numbers
    gains: Numbers
    pairs: list[tuple[int, int, float]] = field(default_factory=list)


def pairs_of(
    n: int, relevant: dict[int, bool], expected: dict[int, int]
) -> list[tuple[int, int, float]]:
    """What feedback says of n results, by place: judged relevant or not, and ranks (from 1) that
    were expected.

    Relevant ones are better than irrelevant ones, and than what was not judged among the first
    DEPTH; irrelevant ones are worse than those. A memory expected higher is better than what stands
    between, one expected lower is worse. The weights of a query sum to 1.
    """
    judged = set(relevant) | set(expected)
    silent = [place for place in range(min(n, DEPTH)) if place not in judged]
    good = [place for place, is_relevant in relevant.items() if is_relevant]
    bad = [place for place, is_relevant in relevant.items() if not is_relevant]
    found = [(better, worse, 1.0) for better in good for worse in bad]
    found += [(better, other, UNLABELLED) for better in good for other in silent]
    found += [(other, worse, UNLABELLED) for other in silent for worse in bad]
    for place, rank in expected.items():
        wanted = min(rank, n) - 1
        found += [(place, other, 1.0) for other in range(wanted, place)]
        found += [(other, place, 1.0) for other in range(place + 1, wanted + 1)]
    total = sum(weight for _, _, weight in found)
    return [(better, worse, weight / total) for better, worse, weight in found]


def gains_of(n: int, relevant: dict[int, bool], expected: dict[int, int]) -> Numbers:
    """(n,) what each result is worth: 1 for relevant and for an expected first place, 1 / log2(1 +
    rank) for others.
    """
    gains = np.zeros(n)
    for place, rank in expected.items():
        gains[place] = 1 / math.log2(1 + rank)
    for place, is_relevant in relevant.items():
        gains[place] = float(is_relevant)
    return gains


def fitted(queries: Sequence[Judged], width: int) -> Numbers:
    """(width,) what to add to each weight: the most probable adjustments under pairs and prior."""
    chosen = [query for query in queries if query.pairs]
    if not chosen:
        return np.zeros(width)
    differences, margins, weights = [], [], []
    for query in chosen:
        better, worse, weight = (np.array(column) for column in zip(*query.pairs, strict=True))
        differences.append(query.features[better] - query.features[worse])
        margins.append(query.base[better] - query.base[worse])
        weights.append(weight)
    x, margin, share = np.concatenate(differences), np.concatenate(margins), np.concatenate(weights)

    def loss(adjustments: Numbers) -> tuple[float, Numbers]:
        z = SHARPNESS * (margin + x @ adjustments)
        value = float(share @ np.logaddexp(0, -z)) + float(adjustments @ adjustments) / (
            2 * PRIOR_DEVIATION**2
        )
        slope = (
            -SHARPNESS * (share / (1 + np.exp(np.clip(z, -500, 500)))) @ x
            + adjustments / PRIOR_DEVIATION**2
        )
        return value, slope

    bounds = [(-ADJUSTMENT_MAX, ADJUSTMENT_MAX)] * width
    from scipy import optimize  # an extra, needed by whoever trains alone

    found = optimize.minimize(
        loss,
        np.zeros(width),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": STEPS_MAX},
    )
    return found.x


def ndcg(query: Judged, adjustments: Numbers) -> float:
    """NDCG@10 of the query's results, ranked with these adjustments; 0 when no result is worth
    anything.
    """
    order = np.argsort(-(query.base + query.features @ adjustments), kind="stable")[:DEPTH]
    discounts = 1 / np.log2(2 + np.arange(DEPTH))
    ideal = np.sort(query.gains)[::-1][:DEPTH]
    best = float(ideal @ discounts[: len(ideal)])
    return float(query.gains[order] @ discounts[: len(order)]) / best if best > 0 else 0.0


def halves(queries: Sequence[Judged], seed: int) -> tuple[list[Judged], list[Judged]]:
    """(to fit on, to judge by): an even split that the seed and the queries' own words decide."""
    ordered = sorted(
        queries, key=lambda query: hashlib.sha256(f"{seed}:{query.query}".encode()).digest()
    )
    return ordered[::2], ordered[1::2]


def lower_bound(differences: Sequence[float], alpha: float = PROMOTION_ALPHA) -> float:
    """The lower (1 − alpha) bound of the mean of paired differences, by Student's t; −∞ with fewer
    than two.
    """
    if len(differences) < 2:
        return -math.inf
    from scipy import special

    values = np.asarray(differences, float)
    return float(
        values.mean()
        - special.stdtrit(len(values) - 1, 1 - alpha) * values.std(ddof=1) / math.sqrt(len(values))
    )
