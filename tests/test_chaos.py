"""A few rounds of loadtests/chaos.py: parts of the service are killed, stopped and cut off while it
writes, and nothing acknowledged is lost or doubled.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from loadtests import network
from tests.support import ROOT

ROUNDS = 6


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("engine", ["ray", *(["nodes"] if network.is_possible() else [])])
def test_nothing_is_lost_or_doubled_whatever_fails(engine: str, seed: int) -> None:
    done = subprocess.run(
        [
            sys.executable, "loadtests/chaos.py",
            f"--engine={engine}", f"--rounds={ROUNDS}", f"--seed={seed}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{ROUNDS} rounds, " in done.stdout and " 0 lost, 0 doubled; " in done.stdout
