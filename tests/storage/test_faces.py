"""The faces of storage's packages: every name is there, and nothing is loaded before it is asked
for.
"""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from tests.support import ROOT


@pytest.mark.parametrize("package", ["store", "indexes", "text", "replication", "blobs"])
def test_a_face_has_every_name_that_it_offers(package: str) -> None:
    face = importlib.import_module(f"storage.{package}")
    assert len(set(face.__all__)) == len(face.__all__)
    for name in face.__all__:
        assert getattr(face, name) is not None


def test_the_face_of_the_indexes_loads_neither_compiler_nor_graphs() -> None:
    script = (
        "from storage.indexes import AllOf, BitmapIndex\n"
        "import sys; assert not sys.modules.keys() & {'numba', 'hnswlib'}"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=ROOT)
