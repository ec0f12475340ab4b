"""A job's effect happens once, whatever kill −9 cuts short: counted in the store of a process that
is killed while jobs run.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.api import jobs
from runtime.api.context import COUNTERS
from storage.store import Scope, Snapshot
from tests.support import ROOT
from tests.support.counting_jobs import EFFECTS, STEPS, CountingHarness

ASKED = (5, 60)  # before each kill, at random between these
SETTLE_SECONDS_MAX = 60


@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.long)])
def test_effects_of_jobs_happen_once_through_kills(tmp_path: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)
    asked: list[int] = []
    for life in range(kills):
        command = [sys.executable, "-m", "tests.support.counting_jobs", str(tmp_path), str(life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            for _ in range(chance.randint(*ASKED)):
                last = process.stdout.readline()
            process.kill()
            asked.append(int((process.stdout.read().split() or [last])[-1]) + 1)
    harness = CountingHarness(tmp_path)
    harness.settle()
    with harness.shard.store.snapshot() as snapshot:
        scopes = [scope for scope in snapshot.scopes() if scope.tenant]
        assert len(scopes) == kills
        done = [_check(snapshot, scope) for scope in scopes]
    assert all(count >= least for count, least in zip(sorted(done), sorted(asked), strict=True)), (
        "what was acknowledged was done"
    )
    harness.close()


def _check(snapshot: Snapshot, scope: Scope) -> int:
    """-> how many jobs ended."""
    effects = dict(snapshot.bind(EFFECTS, scope).scan())
    numbers = {number for number, _ in effects}
    assert set(effects) == {(number, step) for number in numbers for step in range(STEPS)}, (
        "every job ended, whole"
    )
    assert sorted(int.from_bytes(raw, "big") for raw in effects.values()) == list(
        range(len(effects))
    ), "each effect was counted once"
    assert int.from_bytes(snapshot.bind(COUNTERS, scope).get("effects"), "big") == len(effects) - 1
    states = {row.status for _, row in snapshot.bind(jobs.JOBS, scope).scan()}
    assert states == {jobs.COMPLETED}
    return len(numbers)
