"""How many processors a process may use: those of its affinity, and the time of its group."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.machine import usable_cores
from tests.support import ROOT


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that would have 64."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))


def machine(root: Path, membership: str, files: dict[str, str]) -> Path:
    """What /proc says of the process, and files of its control groups by their path."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for path, text in files.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("membership", "files", "cores"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "900000 100000\n"}, 4),
        ("0::/of/the/host\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/a\n", {"b/cpu.max": "400000 100000\n"}, 64),
        (
            "5:memory:/a\n4:cpu,cpuacct:/a\n0::/a\n",
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": "250000\n",
                "cpu,cpuacct/a/cpu.cfs_period_us": "50000\n",
                "memory/a/cpu.max": "100000 100000\n",
            },
            5,
        ),
        (
            "1:cpu:/\n",
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            64,
        ),
        ("1:cpu:/\n", {}, 64),
        ("", {}, 64),
    ],
)
@pytest.mark.usefixtures("many_cores")
def test_the_limit_of_a_container_counts(
    tmp_path: Path, membership: str, files: dict[str, str], cores: int
) -> None:
    assert usable_cores(machine(tmp_path, membership, files)) == cores


@pytest.mark.usefixtures("many_cores")
def test_a_system_without_groups_has_all_of_them(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 64


def test_what_a_process_is_bound_to_counts() -> None:
    told = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from runtime.machine import usable_cores; print(usable_cores())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert ended.stdout == "1\n"
