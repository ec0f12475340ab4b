"""Asking for memory ahead changes nothing that a loop finds, and nothing that it may read."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

from storage.indexes.fetching import fetch
from storage.indexes.kernels import INT64, in_array, kernel


@kernel(in_array(INT64), INT64, result=INT64)
def _sum(numbers, ahead):
    total = 0
    for place in range(numbers.shape[0]):
        fetch(numbers, place + ahead)
        total += numbers[place]
    return total


@pytest.mark.parametrize("ahead", [0, 8, -8, 1 << 40, -(1 << 40), (1 << 60) - 1])
def test_what_lies_beyond_an_array_may_be_asked_for(ahead: int) -> None:
    numbers = np.arange(1_000)
    assert _sum(numbers, ahead) == numbers.sum()


def test_what_lies_behind_a_mapping_may_be_asked_for() -> None:
    """The weights are the last of a mapped file: nothing is mapped behind them."""
    with mmap.mmap(-1, mmap.PAGESIZE) as mapped:
        mapped.write(np.ones(mmap.PAGESIZE // 8, np.int64).tobytes())
        numbers = np.frombuffer(mapped, np.int64)
        assert _sum(numbers, len(numbers)) == len(numbers)
        del numbers


@pytest.mark.parametrize(
    ("processor", "asked"), [("znver4", 1), ("sapphirerapids", 0), ("generic", 0)]
)
def test_memory_is_asked_for_past_the_second_cache_only_where_the_third_keeps_it(
    processor: str, asked: int, tmp_path
) -> None:
    compiled = (
        "from tests.storage.indexes.test_fetching import _sum;"
        "print(next(iter(_sum.compiled().inspect_asm().values())).count('prefetchnta'))"
    )
    found = subprocess.run(
        [sys.executable, "-c", compiled],
        env={
            **os.environ,
            "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": "+sse2",
            "NUMBA_CACHE_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert min(int(found.stdout), 1) == asked
