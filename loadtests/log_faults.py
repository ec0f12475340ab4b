"""Seeded histories of kills, take-overs and a failing object store, many of them; prints what
happened and what was broken.

    python -m loadtests.log_faults [--schedules 200] [--first 0]

The histories and what is held in them: tests/support/log_schedule.py. Exit status 1 when a promise
was broken.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from storage.replication import shipper as log_shipping
from storage.replication import snapshots as log_snapshots
from tests.support.log_accounts import Accounts
from tests.support.log_schedule import Schedule


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    (
        log_shipping.BACKOFF_SECONDS_MAX,
        log_shipping.HEARTBEAT_SECONDS,
        log_snapshots.RETRY_SECONDS_MAX,
    ) = 0.1, 0.3, 0.2
    totals: Counter[str] = Counter()
    broken, begun = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        accounts = Accounts(Path(scratch) / "accounts")
        for seed in range(asked.first, asked.first + asked.schedules):
            with tempfile.TemporaryDirectory(dir=scratch) as directory:
                try:
                    schedule = Schedule(Path(directory), seed, accounts)
                    schedule.run()
                    totals.update(schedule.told)
                except Exception:
                    broken += 1
                    print(f"seed {seed}:")
                    traceback.print_exc()
    figures = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in totals.items())
    print(
        f"{asked.schedules} schedules, {broken} broken, {time.monotonic() - begun:.0f} s: {figures}"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
