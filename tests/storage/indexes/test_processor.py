"""What the processor can do, as Numba is told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"NUMBA_CPU_NAME": "generic"}, "False"),
        ({"NUMBA_CPU_FEATURES": "+avx2,+fma"}, "False"),
        ({"NUMBA_CPU_FEATURES": "+avx512f,+avx512vnni"}, "True"),
    ],
)
def test_numbas_own_settings_say_what_may_be_used(told: dict[str, str], expected: str) -> None:
    ask = "from storage.indexes import has_avx512_vnni; print(has_avx512_vnni())"
    found = subprocess.run(
        [sys.executable, "-c", ask],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert found.stdout.strip() == expected
