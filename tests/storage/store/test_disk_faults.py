"""What a store makes of a disk that fails, told from one that is full."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.faulty_disk import FaultyDisk
from tests.support.stores import blobs, open_store

WRITE = """
import json, sys
from pathlib import Path
from tests.support.stores import open_store, put_blobs
from storage.store import StoreError

store = open_store(Path(sys.argv[1]))
put_blobs(store, {1: b"acknowledged"})
fault = Path(sys.argv[2])
fault.write_text(sys.argv[3])
told = []
for number in (2, 3):
    try:
        put_blobs(store, {number: b"x" * 20_000})
        told.append("stored")
    except StoreError as error:
        told.append([type(error).__name__, str(error)])
    fault.unlink(missing_ok=True)
print(json.dumps(told))
"""


@pytest.mark.parametrize(
    ("kind", "number", "expected", "then"),
    [
        ("pages", errno.EIO, "DeviceFailed", "stored"),
        ("sync", errno.EIO, "DeviceFailed", "stored"),
        ("meta", errno.EIO, "DeviceFailed", "DeviceFailed"),
        ("meta", errno.ENOSPC, "DeviceFailed", "DeviceFailed"),
        ("pages", errno.ENOSPC, "StoreFull", "stored"),
        ("sync", errno.EDQUOT, "StoreFull", "stored"),
        ("pages", errno.EFBIG, "StoreFull", "stored"),
    ],
)
def test_a_disk_that_fails_is_told_from_one_that_is_full(
    tmp_path: Path, kind: str, number: int, expected: str, then: str
) -> None:
    disk = FaultyDisk(tmp_path)
    fault = disk.environment["DISK_FAULT"]
    done = subprocess.run(
        [sys.executable, "-c", WRITE, tmp_path / "shard", fault, f"{kind} {number}"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | disk.environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert first[0] == expected, first
    assert ("Free space" in first[1]) == (expected == "StoreFull")
    assert (second if second == "stored" else second[0]) == then, second
    store = open_store(tmp_path / "shard", create=False)
    rows = blobs(store)
    store.close()
    assert rows[1] == b"acknowledged"
    assert (3 in rows) == (then == "stored")
    assert expected != "StoreFull" or 2 not in rows
