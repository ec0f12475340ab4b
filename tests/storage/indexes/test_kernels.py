"""How loops are loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT

LOOPS = """
from storage.indexes.kernels import FLOAT32, in_array, kernel

@kernel(in_array(FLOAT32, 2), in_array(FLOAT32), result=FLOAT32)
def nearest(rows, asked):
    best = asked[0] - asked[0]
    for row in range(rows.shape[0]):
        product = asked[0] - asked[0]
        for at in range(asked.size):
            product += rows[row, at] * asked[at]
        best = max(best, product)
    return best
"""
LOADED = """
import sys
import numba
from storage.indexes import kernels
kernels.compiles_apart = False
from loops import nearest
print("ready", flush=True)
sys.stdin.readline()
print(sum(nearest.compiled().stats.cache_misses.values()))
"""


def test_loading_takes_no_linear_algebra_along_and_keeps_nobody_from_it() -> None:
    asked = (
        "import sys; from storage.indexes.kernels import load_kernels;"
        "import storage.indexes.lexical; load_kernels();"
        "assert 'numba' in sys.modules; print('scipy.linalg' in sys.modules);"
        "import scipy.linalg; print(scipy.linalg.norm([3.0, 4.0]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.split() == ["False", "5.0"]


def test_of_processes_that_start_together_one_compiles(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", LOADED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(3)
    ]
    assert [each.stdout.readline() for each in started] == ["ready\n"] * 3
    for each in started:
        each.stdin.write("\n")
        each.stdin.flush()
    compiled = [int(each.communicate(timeout=60)[0]) for each in started]
    assert sorted(compiled) == [0, 0, 1]


CALLED = """
from storage.indexes.kernels import inline

@inline
def share(number):
    return number * {}
"""
BY_HAND = """
from numba import types
from numba.extending import intrinsic

@intrinsic
def written(context, number):
    def generate(target, builder, signature, values):
        return builder.add(values[0], values[0].type({}))
    return types.int64(types.int64), generate
"""
CALLING = """
from by_hand import written
from called import share
from numbers_of import MORE
from storage.indexes import kernels
from storage.indexes.kernels import INT64, kernel
kernels.compiles_apart = False

@kernel(INT64, result=INT64)
def shared(number):
    return written(share(number)) + MORE

print(shared(7), sum(shared.compiled().stats.cache_hits.values()))
"""


def test_a_change_of_what_is_compiled_into_a_loop_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text(CALLING)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    said = []
    for factor, more, by_hand in ((2, 0, 0), (2, 0, 0), (3, 0, 0), (3, 1, 0), (3, 1, 5)):
        (tmp_path / "called.py").write_text(CALLED.format(factor))
        (tmp_path / "by_hand.py").write_text(BY_HAND.format(by_hand))
        (tmp_path / "numbers_of.py").write_text(f"MORE = {more}")
        found = subprocess.run(
            [sys.executable, "-B", "-c", "import calling"],
            capture_output=True, text=True, timeout=60, check=True, env=environment,
        )  # fmt: skip
        said.append(found.stdout.split())
    assert said == [["14", "0"], ["14", "1"], ["21", "0"], ["22", "0"], ["27", "0"]]


APART = """
import resource
from loops import nearest
import numpy as np
print(nearest(np.ones((2, 3), np.float32), np.ones(3, np.float32)))
print(sum(nearest.compiled().stats.cache_misses.values()))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0)
"""


def test_a_process_that_ends_compiles_for_one_that_stays(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    said = []
    for _ in range(2):
        found = subprocess.run(
            [sys.executable, "-B", "-c", APART], capture_output=True, text=True, timeout=60,
            check=True, env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        )  # fmt: skip
        said.append(found.stdout.split())
    assert said == [["3.0", "0", "True"], ["3.0", "0", "False"]]


def test_what_no_other_process_can_compile_is_compiled_here(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS + "\nimport sys\nassert 'stays' in sys.modules\n")
    (tmp_path / "stays.py").write_text("from loops import *")
    found = subprocess.run(
        [sys.executable, "-B", "-c", "import stays" + APART],
        capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )  # fmt: skip
    assert found.stdout.split() == ["3.0", "1", "True"]
    assert "loops are compiled in this process" in found.stderr
