"""How loops are loaded."""

from __future__ import annotations

import subprocess
import sys


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
