"""A job's effect happens once, whatever kill −9 cuts short: counted in the store of a process that is killed while jobs run."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from runtime import jobs
from runtime.operation import COUNTERS
from storage.table import Scope, Snapshot
from tests.runtime.counting_jobs import EFFECTS, STEPS, Counting
from tests.worlds import ROOT

KILLS = 4
ASKED = (5, 60)  # before each kill, at random between these
SETTLE_SECONDS_MAX = 60


def test_effects_of_jobs_happen_once_through_kills(tmp_path: Path) -> None:
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    asked: list[int] = []
    for life in range(KILLS):
        command = [sys.executable, "-m", "tests.runtime.counting_jobs", str(tmp_path), str(life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            for _ in range(chance.randint(*ASKED)):
                last = process.stdout.readline()
            process.kill()
            asked.append(int((process.stdout.read().split() or [last])[-1]) + 1)
    desk = Counting(tmp_path)
    desk.settle()
    with desk.shard.store.snapshot() as snapshot:
        scopes = [scope for scope in snapshot.scopes() if scope.tenant]
        assert len(scopes) == KILLS
        done = [_check(snapshot, scope) for scope in scopes]
    assert all(count >= least for count, least in zip(sorted(done), sorted(asked), strict=True)), "what was acknowledged was done"
    desk.close()


def _check(snapshot: Snapshot, scope: Scope) -> int:
    """-> how many jobs ended."""
    effects = dict(snapshot.bind(EFFECTS, scope).scan())
    numbers = {number for number, _ in effects}
    assert set(effects) == {(number, step) for number in numbers for step in range(STEPS)}, "every job ended, whole"
    assert sorted(int.from_bytes(raw, "big") for raw in effects.values()) == list(range(len(effects))), "each effect was counted once"
    assert int.from_bytes(snapshot.bind(COUNTERS, scope).get("effects"), "big") == len(effects) - 1
    states = {row.status for _, row in snapshot.bind(jobs.JOBS, scope).scan()}
    assert states == {jobs.COMPLETED}
    return len(numbers)
