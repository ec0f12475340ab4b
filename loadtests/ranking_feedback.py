"""What feedback does to ranking, on a made-up tenant: python loadtests/ranking_feedback.py [--seeds
20]

Forty topics of five notes each that say the same in the same words, differing in age and
importance. First feedback that likes the recent and important ones, then feedback at random, with
many seeds; each is trained on through the service. Prints held-out NDCG@10 before and after, the
paired lower bound, and how often random feedback was promoted.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.training_harness import TOPICS, TrainingHarness


def trained(seed: int | None) -> dict[str, Any]:
    """The result of one training: on a liking (seed None), or on feedback at random."""
    with tempfile.TemporaryDirectory() as directory:
        school = TrainingHarness(Path(directory))
        try:
            notes = school.furnish()
            for topic in TOPICS:
                good, bad = (
                    (notes[topic][0], notes[topic][-1])
                    if seed is None
                    else random.Random(f"{seed} {topic}").sample(notes[topic], 2)
                )
                school.tell(topic, good, True)
                school.tell(topic, bad, False)
            return school.train()
        finally:
            school.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args()
    found = trained(None)
    numbers = ", ".join(f"{name} {value:.3f}" for name, value in found["metrics"].items())
    print(f"recent and important liked: promoted {found['promoted']}, {numbers}", flush=True)
    results = [trained(seed) for seed in range(chosen.seeds)]
    bounds = sorted(result["metrics"]["lower_bound"] for result in results)
    promoted = sum(result["promoted"] for result in results)
    print(
        f"at random: {promoted} of {chosen.seeds} promoted, lower bounds from {bounds[0]:.3f} to "
        f"{bounds[-1]:.3f}"
    )


if __name__ == "__main__":
    main()
