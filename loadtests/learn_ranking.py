"""Learn ranking weights from questions with known evidence: python loadtests/learn_ranking.py [PATH
…] [--profile ranking]

PATH is a file or directory in the format of loadtests/evidence.py; without one, the conversations
that are shipped. Give your own: a few hundred questions about memories like those you will have. It
prints settings of one profile:

    ranking         conversations          ranking_fast   the same, searched with `fast`
    ranking_notes   the same texts without speakers and sessions

Each question is searched once; `explain` tells every feature of the best hundred results. The loss
is listwise: each piece of evidence competes with all results that are none, in a softmax of
TEMPERATURE times the score. A question with g pieces weighs √g, so a list counts more than a fact
and less than its length. The squared distance to the present weights is added, since they were
learned on far more questions; more `--pull` keeps them nearer. The loss is convex, and L-BFGS finds
its minimum.

Figures come in four lines: the present weights, the learned ones on the questions they come from,
the learned ones on conversations they have not seen (twofold: each half of the set is judged by
what the other half taught), and the rounded ones that are printed. Only the third says whether
learning helped. Features that a profile leaves at 0 may be learned too, except those without input
there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.asking import Answer, Installation
from loadtests.evidence import SET, Conversation, figures, mean, read_set
from loadtests.retrieval import PROFILES, ranking_of, shown
from plugins.search import SEARCH_ITEMS_MAX
from plugins.search.ranking import FEATURES

TEMPERATURE = 10.0
PULL = 1e-2
STEPS_MAX = 200
FAINT = (
    0.001  # instead of a weight of 0, which would hide the feature; explanations have six digits
)


@dataclass(frozen=True)
class Example:
    """One question. features: (n, f) of its n results; gold: (n,) which of them are evidence;
    found: their ids.
    """

    conversation: str
    features: np.ndarray
    gold: np.ndarray
    found: list[str]
    evidence: tuple[str, ...]

    def judged(self, weights: np.ndarray) -> dict[str, float]:
        """Figures of its results in the order that these weights give."""
        order = np.argsort(-(self.features @ weights), kind="stable")
        return figures(self.evidence, [self.found[place] for place in order])


def present(profile: str) -> np.ndarray:
    """(f,) weights that are set."""
    weights = ranking_of(profile).weights
    return np.array([weights[name] for name in FEATURES])


def examples(conversations: list[Conversation], profile: str) -> list[Example]:
    """Every question that has an answer, with what the service tells about its results."""
    visible = np.where(present(profile) == 0, FAINT, present(profile))
    settings = {
        f"{profile}.{name}": float(weight) for name, weight in zip(FEATURES, visible, strict=True)
    }
    request = {
        "fast": profile == "ranking_fast",
        "explain": True,
        "include_low_confidence": True,
        "limit": SEARCH_ITEMS_MAX,
    }
    with Installation(**settings) as service:
        collections = service.fill(conversations, withheld=profile == "ranking_notes")
        answers = service.ask(conversations, collections, **request)
    return [
        _example(answer, visible)
        for answer in answers
        if answer.question.answerable and answer.hits
    ]


def _example(answer: Answer, visible: np.ndarray) -> Example:
    contributions = np.array(
        [[hit["explanation"][name] for name in FEATURES] for hit in answer.hits]
    )
    evidence = answer.question.evidence
    return Example(
        answer.conversation,
        contributions / visible,
        np.isin(answer.found, evidence),
        answer.found,
        evidence,
    )


def learned(examples: Iterable[Example], prior: np.ndarray, pull: float) -> np.ndarray:
    """(f,) weights with the least loss."""
    useful = [example for example in examples if example.gold.any() and not example.gold.all()]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        away = weights - prior
        total, slope = 0.0, np.zeros_like(weights)
        for example in useful:
            part, direction = competition(example, weights)
            total, slope = total + part, slope + direction
        share = 1 / max(len(useful), 1)
        return (
            share * total + pull * TEMPERATURE * away @ away,
            share * slope + 2 * pull * TEMPERATURE * away,
        )

    return minimize(loss, prior, jac=True, method="L-BFGS-B", options={"maxiter": STEPS_MAX}).x


def competition(example: Example, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Loss of one question and its gradient: Σ over the evidence of −ln(its share in a softmax with
    all that is none) / √g.
    """
    scores = TEMPERATURE * (example.features @ weights)
    others, gold = scores[~example.gold], scores[example.gold]
    top = others.max()
    odds = np.exp(others - top)
    rival = top + np.log(odds.sum())
    missed = np.exp(-np.logaddexp(0, gold - rival))
    mean_rival = (odds / odds.sum()) @ example.features[~example.gold]
    scale = len(gold) ** -0.5
    gradient = TEMPERATURE * (missed.sum() * mean_rival - missed @ example.features[example.gold])
    return scale * float(np.logaddexp(0, rival - gold).sum()), scale * gradient


def twofold(examples: list[Example], prior: np.ndarray, pull: float) -> dict[str, float]:
    """Figures of each half of the conversations under the weights that the other half taught."""
    names = sorted({example.conversation for example in examples})
    rows = []
    for half in (set(names[::2]), set(names[1::2])):
        weights = learned(
            [example for example in examples if example.conversation not in half], prior, pull
        )
        rows += [example.judged(weights) for example in examples if example.conversation in half]
    return mean(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "paths",
        type=Path,
        nargs="*",
        default=[SET],
        metavar="PATH",
        help="conversations with questions",
    )
    parser.add_argument(
        "--profile", choices=PROFILES, default=PROFILES[0], help="whose weights to learn"
    )
    parser.add_argument(
        "--pull", type=float, default=PULL, help="how strongly the present weights hold"
    )
    options = parser.parse_args()
    conversations = [conversation for path in options.paths for conversation in read_set(path)]
    if options.profile != "ranking_notes":
        conversations = [conversation for conversation in conversations if conversation.told]
    asked = examples(conversations, options.profile)
    prior = present(options.profile)
    weights = learned(asked, prior, options.pull)
    rounded = np.round(weights, 2) + 0.0  # without negative zeros
    rows = {
        name: mean(example.judged(by) for example in asked)
        for name, by in (("present", prior), ("learned", weights))
    }
    rows |= {
        "twofold": twofold(asked, prior, options.pull),
        "rounded": mean(example.judged(rounded) for example in asked),
    }
    print(shown(f"{len(asked)} questions", rows, ("R@5", "R@10", "R@20", "MRR")), end="\n\n")
    for name, weight in zip(FEATURES, rounded, strict=True):
        print(f"{options.profile}.{name}: {weight:g}")


if __name__ == "__main__":
    main()
