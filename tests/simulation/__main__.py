"""python -m tests.simulation --seeds 200 --seed-start 1 --steps 80"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.simulation.history import STEPS, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description="Random histories against a shard and its model.",
    )
    parser.add_argument("--seeds", type=int, default=25, help="how many")
    parser.add_argument("--seed-start", type=int, default=1, help="the first")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of each history")
    options = parser.parse_args()
    logging.getLogger("mneme").addHandler(logging.NullHandler())
    logging.getLogger("mneme").propagate = False
    failed, crashes, started = 0, 0, time.monotonic()
    for seed in range(options.seed_start, options.seed_start + options.seeds):
        try:
            crashes += run(seed, options.steps).crashes
        except AssertionError as error:
            failed += 1
            print(f"seed {seed}: {error}\n", flush=True)
    print(
        f"{options.seeds} seeds, {crashes} crashes, {failed} failed, "
        f"{time.monotonic() - started:.1f} s"
    )
    return 1 if failed else 0


sys.exit(main())
