"""A disk that loses what was not synced, and one of whose calls fails: whatever is left, the shard
opens, and has what it acknowledged.

Recorded is every write, sync and change of a name that a real shard makes which ships its log to a
directory (tests/support/disk_workload.py), and the power fails at every point of that record
(tests/support/recorded_disk.py).
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import recorded_disk
from tests.support.disk_workload import Noted, wrong, wrong_when_restored
from tests.support.recorded_disk import CREATE, NOTE, SYNC, Disk, Trial, recorded

POINTS, TRIALS = 16, 16
SHARES = (0.0, 0.3, 0.7, 1.0)  # of what was not synced, how much is there all the same
CALLS = 160  # of a trial

few_or_all = pytest.mark.parametrize(
    "is_all",
    [False, pytest.param(True, marks=[pytest.mark.long, pytest.mark.timeout(3_600)])],
    ids=["some", "all"],
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_disk.library(tmp_path_factory.mktemp("library"))


def ran(
    library: Path, directory: Path, *arguments: object, has_unnamed: bool = True
) -> Iterator[recorded_disk.Call]:
    """Run the workload in a process of its own; -> what it did to its disk, `directory`/root.
    has_unnamed: whether there are files without a name on it.
    """
    root, log = directory / "root", directory / "log"
    root.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.disk_workload", str(root), *map(str, arguments)],
        env=os.environ | recorded_disk.environment(library, root, log, has_unnamed=has_unnamed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (directory / "said").write_text(done.stdout)
    return recorded(log)


class Failures:
    """Power failures, each in a directory of its own."""

    def __init__(self, directory: Path, chance: random.Random):
        self._directory, self._chance = directory, chance
        self.count = 0

    def here(
        self, disk: Disk, notes: list[str], share: float, *checks: Callable[[Path, Noted], str]
    ) -> list[str]:
        """What is wrong after a power failure at this moment."""
        left = self._directory / "left"
        disk.fail_power(left, self._chance, share)
        found = [problem for check in checks if (problem := check(left, Noted.of(notes)))]
        shutil.rmtree(left)
        self.count += 1
        return found


@pytest.mark.parametrize(
    ("is_all", "has_unnamed"),
    [
        (False, True),
        (False, False),
        pytest.param(True, True, marks=[pytest.mark.long, pytest.mark.timeout(3_600)]),
    ],
    ids=["some", "all-named", "all"],
)
def test_what_was_acknowledged_survives_a_power_failure_anywhere(
    tmp_path: Path, library: Path, seed: int, is_all: bool, has_unnamed: bool
) -> None:
    chance = random.Random(seed)
    calls = list(ran(library, tmp_path, "power", has_unnamed=has_unnamed))
    assert has_unnamed == any(call.kind == CREATE and not call.path for call in calls)
    assert sum(call.kind == SYNC for call in calls) > 50
    assert sum(call.kind == NOTE for call in calls) > 10
    points = set(range(len(calls)) if is_all else chance.sample(range(len(calls)), POINTS))
    points |= {number for number, call in enumerate(calls) if call.kind == NOTE}
    disk, failures = Disk(tmp_path / "root"), Failures(tmp_path, chance)
    for number, call in enumerate(calls):
        disk.do(call)
        if number in points:
            for share in SHARES if is_all else (0.0, chance.random()):
                problems = failures.here(disk, disk.notes, share, wrong, wrong_when_restored)
                assert not problems, (number, share, problems)
    assert failures.count == len(points) * (len(SHARES) if is_all else 2)


@few_or_all
def test_a_call_that_fails_loses_nothing_that_was_acknowledged(
    tmp_path: Path, library: Path, seed: int, is_all: bool
) -> None:
    """EIO ends the process, which says that storage failed; where there is no room the write is
    refused, and the shard goes on. No process acknowledges anything after the call that failed with
    EIO.
    """
    chance = random.Random(seed)
    numbers = range(1, CALLS) if is_all else sorted(chance.sample(range(1, CALLS), TRIALS))
    calls = list(ran(library, tmp_path, "faults", *numbers))
    tried = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    fired = [trial for trial in tried if trial["fired"]]
    assert len(fired) >= (200 if is_all else TRIALS)
    for trial in fired:
        (judged_eio if trial["error"] == errno.EIO else judged_enospc)(trial)
    failures = Failures(tmp_path, chance)
    for trial in Trial.among(calls):
        disk = Disk(tmp_path / "root")
        for call in trial.calls:
            disk.do(call)
        for share in (0.0, 0.5):
            problems = failures.here(
                disk, trial.notes, share, lambda left, noted, of=trial: wrong(left / of.name, noted)
            )
            assert not problems, (trial.name, share, problems)
    assert failures.count == 2 * len(tried)


def judged_eio(trial: dict[str, Any]) -> None:
    assert trial["ended"], trial
    assert "Free space" not in trial["ended"], trial
    assert all(status < 300 for status in trial["statuses"]), trial


def judged_enospc(trial: dict[str, Any]) -> None:
    refused = [status for status in trial["statuses"] if status >= 300]
    assert set(refused) <= {503} and len(refused) <= 1, trial
    if trial["ended"]:  # a commit's last step, of which nobody knows what the device has
        assert "last step" in trial["ended"] or "device failed" in trial["ended"], trial
