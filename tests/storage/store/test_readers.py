"""Readers of other processes: backups and verifications that are killed while they read."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from storage.store import Store, StoreError
from tests.support.stores import put_blobs

ROWS, ROW_BYTES = 256, 1 << 18
REWRITTEN = 4  # rows of each commit
COMMITS = 30
TRIES_MAX = 20

READ_UNTIL_KILLED = """
import sys
from pathlib import Path
from storage.store import Store
from tests.support.stores import IDENTITY, TABLES

with Store.open_to_read(Path(sys.argv[1]), TABLES, identity=IDENTITY).snapshot():
    print("reads", flush=True)
    sys.stdin.read()
"""

COPY_WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
from storage.store import copy_data

resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
copy_data(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def rewrite(store: Store) -> int:
    """Overwrite the same few rows in many commits; -> by how many bytes the file grew."""
    rows = {number: bytes([number]) * ROW_BYTES for number in range(REWRITTEN)}
    for _ in range(3):  # pages of the last two commits are never used again at once
        put_blobs(store, rows)
    before = store.data_file.stat().st_size
    for _ in range(COMMITS):
        put_blobs(store, rows)
    return store.data_file.stat().st_size - before


def kill_the_copy(store: Store, target: Path) -> bool:
    """Back up, and kill the process that copies while it reads; -> whether it was met in time."""
    refused: list[StoreError] = []
    others = set(psutil.Process().children())

    def back_up() -> None:
        try:
            store.backup(target)
        except StoreError as error:
            refused.append(error)

    copying = threading.Thread(target=back_up)
    copying.start()
    killed = False
    while copying.is_alive() and not killed:
        if (target.parent / f"{target.name}.partial/data.mdb").exists():
            for process in set(psutil.Process().children()) - others:
                with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                    process.kill()
                    killed = True
    copying.join()
    return killed and bool(refused)


def test_a_killed_copy_makes_no_file_grow(tmp_path: Path, store: Store) -> None:
    for start in range(0, ROWS, 16):
        put_blobs(store, {start + n: bytes(ROW_BYTES) for n in range(16)})
    assert any(kill_the_copy(store, tmp_path / f"copy {n}") for n in range(TRIES_MAX))
    assert not list(tmp_path.glob("copy*.partial")), "nothing of it stays"
    assert rewrite(store) < ROW_BYTES
    assert store.stat()["reader_lag_commits"] == 0


def test_a_killed_reader_shows_until_it_is_forgotten(store: Store) -> None:
    put_blobs(store, {number: b"x" for number in range(10)})
    with subprocess.Popen(
        [sys.executable, "-c", READ_UNTIL_KILLED, store.directory],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as reader:
        assert reader.stdout.readline() == b"reads\n"
        assert rewrite(store) > COMMITS * ROW_BYTES, "what it sees stays"
        assert store.environment.forget_dead_readers() == 0, "it lives"
        reader.kill()
    assert store.stat()["reader_lag_commits"] > COMMITS
    assert store.environment.forget_dead_readers() == 1
    assert store.stat()["reader_lag_commits"] == 0
    assert rewrite(store) < ROW_BYTES


def test_the_backup_of_a_store_that_another_process_owns_frees_what_it_held(
    tmp_path: Path, store: Store
) -> None:
    """`mneme admin backup` copies beside the service, which hears nothing of it."""
    put_blobs(store, {1: b"x"})
    with subprocess.Popen(
        [sys.executable, "-c", READ_UNTIL_KILLED, store.directory],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as reader:
        assert reader.stdout.readline() == b"reads\n"
        put_blobs(store, {1: b"y"})
        reader.kill()
    failing = [sys.executable, "-c", COPY_WITHOUT_ROOM, store.directory, tmp_path / "copy"]
    ended = subprocess.run(failing, capture_output=True, text=True, check=False)
    assert "could not be copied" in ended.stderr, ended.stderr
    assert store.stat()["reader_lag_commits"] == 0
