"""What the processor can do, as Numba is told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from llvmlite import binding

# Only where there are matrices does the kernel let anybody have them.
MATRICES = "AMX" if binding.get_host_cpu_features().get("amx-int8") else "AVX-512 VNNI"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"NUMBA_CPU_NAME": "generic"}, "None"),
        ({"NUMBA_CPU_FEATURES": "+avx,+fma"}, "None"),
        ({"NUMBA_CPU_FEATURES": "+avx2,+fma,-avxvnni"}, "AVX2"),
        ({"NUMBA_CPU_FEATURES": "+avx2,+fma,+avxvnni"}, "AVX-VNNI"),
        ({"NUMBA_CPU_FEATURES": "+avx2,+fma,+avx512vl,+avx512vnni"}, "AVX-512 VNNI"),
        ({"NUMBA_CPU_FEATURES": "+avx512vl,+avx512vnni,+amx-tile,+amx-int8"}, MATRICES),
        ({"NUMBA_CPU_FEATURES": "+avx512vl,+avx512vnni,+amx-tile"}, "AVX-512 VNNI"),
        ({"NUMBA_CPU_FEATURES": "+neon,+dotprod"}, "DotProd"),
    ],
)
def test_numbas_own_settings_say_what_may_be_used(told: dict[str, str], expected: str) -> None:
    ask = "from storage.indexes import byte_products; print(byte_products())"
    found = subprocess.run(
        [sys.executable, "-c", ask],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert found.stdout.strip() == expected
