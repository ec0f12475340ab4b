"""Histories of the whole control plane, each in a process whose sets have one order: a seed is the
same history every time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support import ROOT

SEEDS, FIRST_SEEDS, SOME_SEEDS, LONG_SEEDS = 3, 12, 80, 600
FAULTS_MIN = 10  # kinds of them in a few seeds


def histories(first: int, seeds: int) -> str:
    """What the command says of so many seeds."""
    done = subprocess.run(
        [
            sys.executable, "-m", "loadtests.control_plane",
            f"--first={first}", f"--seeds={seeds}", "--until-broken",
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def faults(said: str) -> dict[str, int]:
    return {kind: int(count) for count, kind in re.findall(r"^ +(\d+) (.*)$", said, re.MULTILINE)}


@pytest.mark.parametrize(
    ("first", "seeds"),
    [
        (2, SEEDS),
        pytest.param(1, FIRST_SEEDS, marks=[pytest.mark.long, pytest.mark.timeout(900)]),
        pytest.param(1, SOME_SEEDS, marks=[pytest.mark.long, pytest.mark.timeout(900)]),
        pytest.param(1_000, LONG_SEEDS, marks=[pytest.mark.long, pytest.mark.timeout(3_600)]),
    ],
    ids=["few", "first", "some", "many"],
)
def test_no_promise_is_broken_whatever_fails(first: int, seeds: int) -> None:
    said = histories(first, seeds)
    assert len(faults(said)) >= FAULTS_MIN, said


def test_a_seed_is_the_same_history_each_time() -> None:
    twice = "from tests.control_plane.history import run; print(run(5).digest, run(5).digest)"
    done = subprocess.run(
        [sys.executable, "-c", twice],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.split()
    assert first == second
