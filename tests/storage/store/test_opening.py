"""A store opened: one opener at a time, its identity, damage, upgrades, backups, crashes."""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys

import msgspec
import pytest

import storage.store.directory as store_directory
from storage.store import Identity, Table
from storage.store.directory import (
    StoreDamaged,
    StoreError,
    StoreInUse,
    StoreMismatch,
    StoreMissing,
    StoreTooNew,
)
from tests.support.stores import (
    A1,
    ALICE,
    B2,
    BLOBS,
    BOB,
    IDENTITY,
    NOTES,
    blobs,
    open_store,
    put_blobs,
)

# --- opening --------------------------------------------------------------------------------------


def test_what_was_written_is_there_after_reopening(tmp_path):
    store = open_store(tmp_path / "shard")
    identity = store.identity
    sequence = put_blobs(store, {1: b"x"}).sequence
    store.close()
    store.close()
    store = open_store(tmp_path / "shard", create=False, identity=identity)
    assert (store.sequence, store.identity, blobs(store)) == (sequence, identity, {1: b"x"})
    assert len(identity.cluster_id) == 32
    store.close()


def test_a_missing_store_is_created_only_when_asked(tmp_path):
    with pytest.raises(StoreMissing, match="shard"):
        open_store(tmp_path / "shard", create=False)
    assert not (tmp_path / "shard").exists()


def test_one_opener_at_a_time(store, tmp_path):
    with pytest.raises(StoreInUse, match=f"is in use by process {os.getpid()}"):
        open_store(store.directory)
    code = (
        "import sys; from pathlib import Path; from tests.support.stores import open_store; "
        "open_store(Path(sys.argv[1]))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, store.directory], capture_output=True, text=True, timeout=60
    )
    assert f"is in use by process {os.getpid()}" in other.stderr
    put_blobs(store, {1: b"still mine"})


def test_nobody_has_a_directory_whose_lock_could_not_be_written(tmp_path):
    code = (
        "import resource, sys; from pathlib import Path; from storage.store import StoreFull; "
        "from tests.support.stores import open_store; directory = Path(sys.argv[1]); "
        "limits = resource.getrlimit(resource.RLIMIT_FSIZE); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))\n"
        "try: open_store(directory)\n"
        "except StoreFull as full: print(full)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, limits); open_store(directory).close()"
    )
    tried = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "shard"], capture_output=True, text=True, timeout=60
    )
    assert (tried.returncode, tried.stderr) == (0, "")
    assert "Free space on its device." in tried.stdout


@pytest.mark.parametrize(
    "change", [{"cluster_id": "other"}, {"shard": 1}, {"shards": 2}, {"slots": 8}]
)
def test_another_identity_is_refused(tmp_path, change):
    store = open_store(tmp_path / "shard")
    store.close()
    with pytest.raises(StoreMismatch, match=next(iter(change))):
        open_store(tmp_path / "shard", identity=replaced(change))
    open_store(tmp_path / "shard").close()


def replaced(change: dict) -> Identity:
    return Identity(**{**vars(IDENTITY), **change})


def test_a_newer_format_is_refused(tmp_path):
    open_store(tmp_path / "shard", identity=replaced({"format_version": 2})).close()
    with pytest.raises(StoreTooNew):
        open_store(tmp_path / "shard")


@pytest.fixture
def closed(tmp_path):
    """A closed store with 200 rows and a full copy of its data file."""
    store = open_store(tmp_path / "shard")
    put_blobs(store, {number: b"x" * 1000 for number in range(200)})
    store.close()
    data = tmp_path / "shard" / "data.mdb"
    shutil.copy(data, tmp_path / "copy")
    return data


@pytest.mark.parametrize(
    "keep",
    [
        lambda size: size // 2,
        lambda size: size - 1,
        lambda size: 4096,
        lambda size: 10,
        lambda size: 0,
    ],
)
def test_a_truncated_file_is_recognised_and_its_copy_restores_it(closed, keep):
    os.truncate(closed, keep(closed.stat().st_size))
    with pytest.raises(StoreDamaged, match=r"data\.mdb"):
        open_store(closed.parent)
    shutil.copy(closed.parent.parent / "copy", closed)
    store = open_store(closed.parent, create=False)
    assert len(blobs(store)) == 200
    store.close()


def test_a_file_that_lacks_more_pages_than_anybody_leaves_unwritten_was_cut_short(
    closed, monkeypatch
):
    monkeypatch.setattr(store_directory, "UNWRITTEN_PAGES_MAX", 1)
    os.truncate(closed, closed.stat().st_size // 2)
    with pytest.raises(StoreDamaged, match="cut short"):
        open_store(closed.parent)


@pytest.mark.parametrize("transactions", [1, 40])
def test_a_file_that_ends_before_pages_that_were_never_written_is_whole(tmp_path, transactions):
    """A page taken at the end of the file and given back before the commit is counted by LMDB, and
    never written.
    """
    store = open_store(tmp_path / "shard")
    for number in range(transactions):
        put_blobs(store, {number * 100 + n: b"x" * 3_000 for n in range(100)})
        store.write(lambda transaction: transaction.bind(BLOBS, ALICE).delete_prefix())

    def take_and_give_back(transaction):
        table = transaction.bind(BLOBS, ALICE)
        table.put((-1,), b"stays")
        table.put((-2,), bytes(1 << 20))
        table.delete(-2)

    store.write(take_and_give_back)
    store.close()
    data = tmp_path / "shard" / "data.mdb"
    (last_page,) = max(
        struct.unpack_from("=QQ", data.read_bytes(), at + 136)[::-1] for at in (0, 4096)
    )[1:]
    assert data.stat().st_size < (last_page + 1) * 4096, "LMDB has written them after all"
    store = open_store(tmp_path / "shard", create=False)
    assert blobs(store) == {-1: b"stays"}
    put_blobs(store, {number: b"y" * 5_000 for number in range(100)})
    store.close()
    open_store(tmp_path / "shard", create=False).close()


def test_a_file_that_is_not_lmdb_is_recognised(closed):
    closed.write_bytes(random.Random(1).randbytes(closed.stat().st_size))
    with pytest.raises(StoreDamaged, match="header"):
        open_store(closed.parent)


def test_an_interrupted_creation_leaves_no_half_store(tmp_path):
    (tmp_path / ".creating").mkdir()
    (tmp_path / ".creating" / "data.mdb").write_bytes(b"half")
    with pytest.raises(StoreMissing):
        open_store(tmp_path, create=False)
    open_store(tmp_path).close()
    assert not (tmp_path / ".creating").exists()


# --- upgrades and backups -------------------------------------------------------------------------


class NewNote(msgspec.Struct):
    words: list[str]


def test_older_rows_are_migrated_step_by_step(shelves):
    shelves.close()
    newer = Table("notes", key=NOTES.key, row=NewNote, version=3)
    newer_blobs = Table("blobs", key=BLOBS.key, row=bytes, version=2)
    steps = {
        ("notes", 1): lambda row: {"text": row["text"] + " " + str(row["stars"])},
        ("notes", 2): lambda row: {"words": row["text"].split()},
        ("blobs", 1): bytes.upper,
    }
    with pytest.raises(StoreMismatch, match="from version 2"):
        open_store(shelves.directory, [newer], migrations={("notes", 1): steps["notes", 1]})
    store = open_store(shelves.directory, [newer, newer_blobs], migrations=steps)
    with store.snapshot() as snapshot:
        assert snapshot.bind(newer, ALICE).get(*B2) == NewNote(["b2", "0"])
        assert snapshot.bind(newer, BOB).get(*A1) == NewNote(["other", "0"])
        assert snapshot.bind(newer, ALICE).count() == 5
        assert snapshot.bind(newer_blobs, ALICE).get(1) == b"OTHER"
    store.close()
    with pytest.raises(StoreTooNew, match="notes"):
        open_store(shelves.directory)
    open_store(shelves.directory, [newer]).close()


def test_a_table_keeps_its_rows_while_it_is_not_declared(store):
    put_blobs(store, {1: b"x"})
    store.close()
    open_store(store.directory, [NOTES]).close()
    again = open_store(store.directory, [Table("new", key=("id",), row=bytes), BLOBS])
    assert blobs(again) == {1: b"x"}
    again.close()


def test_two_tables_of_one_name_are_refused(tmp_path):
    with pytest.raises(StoreError, match="notes"):
        open_store(tmp_path, [NOTES, Table("notes", key=("id",), row=bytes)])


def test_a_backup_opens_like_the_original(store, tmp_path):
    put_blobs(store, {number: b"x" * 100 for number in range(100)})
    sequence = store.sequence
    store.backup(tmp_path / "copies" / "monday")
    put_blobs(store, {1: b"later"})
    with pytest.raises(FileExistsError):
        store.backup(tmp_path / "copies" / "monday")
    copy = open_store(tmp_path / "copies" / "monday", create=False, identity=store.identity)
    assert copy.sequence == sequence
    assert copy.identity == store.identity
    assert blobs(copy) == {number: b"x" * 100 for number in range(100)}
    copy.close()


# --- crashes --------------------------------------------------------------------------------------


WRITE_UNTIL_KILLED = """
import random, sys
from pathlib import Path
from tests.support.stores import open_store, put_blobs

store = open_store(Path(sys.argv[1]))
chance = random.Random(store.sequence)
while True:
    number = store.sequence + 1
    size = chance.randrange(1, 9000)
    put_blobs(store, {number * 10 + i: number.to_bytes(4, "big") * size for i in range(3)})
    print(store.sequence, flush=True)
"""


def test_everything_acknowledged_survives_kill_9(tmp_path):
    directory, chance = tmp_path / "shard", random.Random(7)
    acknowledged = 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITE_UNTIL_KILLED, directory], stdout=subprocess.PIPE, text=True
        )
        for _ in range(chance.randrange(1, 60)):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        acknowledged = max(
            [
                acknowledged,
                *(
                    int(line)
                    for line in process.stdout.read().splitlines(keepends=True)
                    if line.endswith("\n")
                ),
            ]
        )
        process.wait(10)
        store = open_store(directory, create=False)
        assert store.sequence >= acknowledged
        rows = blobs(store)
        for number in range(2, store.sequence + 1):
            for i in range(3):
                assert rows[number * 10 + i].startswith(number.to_bytes(4, "big"))
        assert len(rows) == 3 * (store.sequence - 1)
        store.close()
