"""Seeded histories of the whole control plane, many of them; prints what happened and what was
broken.

    python -m loadtests.control_plane [--seeds 1000] [--first 1] [--until-broken]

The histories and what is held in them: tests/control_plane/. A seed is the same history each time.
Exit status 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--until-broken", action="store_true", help="end with the first that is")
    asked = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a history
        again = [sys.executable, "-m", "loadtests.control_plane", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | {"PYTHONHASHSEED": "0"})
    from tests.control_plane.history import Broken, run

    faults: Counter[str] = Counter()
    broken = acknowledged = reads = publications = 0
    begun = time.monotonic()
    done = 0
    for seed in range(asked.first, asked.first + asked.seeds):
        if broken and asked.until_broken:
            break
        done += 1
        try:
            told = run(seed)
        except Broken as promise:
            broken += 1
            print(f"seed {seed}: {promise}", flush=True)
            continue
        faults += told.faults
        acknowledged, reads = acknowledged + told.acknowledged, reads + told.reads
        publications += told.publications
    print(
        f"{done} seeds from {asked.first}, {broken} broken, "
        f"{time.monotonic() - begun:.0f} s: {acknowledged} writes acknowledged, {reads} reads, "
        f"{publications} publications"
    )
    print("\n".join(f"{count:8} {kind}" for kind, count in sorted(faults.items())))
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
