"""The store: rows and their order, transactions, growth, exclusive use, damage, upgrades, crashes."""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

import storage.table
from storage.directory import StoreDamaged, StoreError, StoreFull, StoreInUse, StoreMismatch, StoreMissing, StoreTooNew
from storage.table import Committed, Identity, Scope, Store, Table

IDENTITY = Identity(cluster_id="", shard=0, shards=1, slots=4096, format_version=1)
ALICE, BOB = Scope(3, 1), Scope(3, 2)
MAP_BYTES_SMALL = 1 << 18


class Note(msgspec.Struct):
    text: str
    stars: int = 0


NOTES: Table[Note] = Table("notes", key=("shelf", "number"), row=Note)
BLOBS: Table[bytes] = Table("blobs", key=("number",), row=bytes)
LOGINS: Table[bytes] = Table("logins", key=("name",), row=bytes, level="slot")
TABLES = (NOTES, BLOBS, LOGINS)


def open_store(directory: Path, tables=TABLES, *, create=True, identity=IDENTITY, **options) -> Store:
    return Store.open(directory, tables, identity=identity, create=create, **options)


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "shard")
    yield store
    store.close()


def put_blobs(store: Store, rows: dict[int, bytes], scope: Scope = ALICE) -> Committed:
    def work(transaction):
        table = transaction.bind(BLOBS, scope)
        for number, raw in rows.items():
            table.put((number,), raw)

    return store.write(work)


def blobs(store: Store, scope: Scope = ALICE) -> dict[int, bytes]:
    with store.snapshot() as snapshot:
        return {number: raw for (number,), raw in snapshot.bind(BLOBS, scope).scan()}


# --- rows and order ---------------------------------------------------------------------------------------------------


def test_rows_come_back_and_go(store):
    def work(transaction):
        notes = transaction.bind(NOTES, ALICE)
        notes.put(("home", 1), Note("milk", 2))
        notes.put(("home", 2), Note("tea"))
        assert notes.get("home", 1) == Note("milk", 2)
        assert notes.delete("home", 2) is True
        assert notes.delete("home", 2) is False

    store.write(work)
    with store.snapshot() as snapshot:
        notes = snapshot.bind(NOTES, ALICE)
        assert notes.get("home", 1) == Note("milk", 2)
        assert notes.get("home", 2) is None
        assert notes.has("home", 1) and not notes.has("home", 2)
        assert notes.get_many([("home", 2), ("home", 1), ("home", 1)]) == [None, Note("milk", 2), Note("milk", 2)]
        assert notes.get_many([]) == []
        assert notes.get_raw("home", 1) == msgspec.msgpack.encode(Note("milk", 2))


def test_unknown_fields_are_ignored_and_new_ones_take_their_default(store):
    store.write(lambda t: t.bind(NOTES, ALICE).put_raw(("a", 1), msgspec.msgpack.encode({"text": "x", "colour": "red"})))
    with store.snapshot() as snapshot:
        assert snapshot.bind(NOTES, ALICE).get("a", 1) == Note("x", 0)


@pytest.fixture
def shelves(store):
    def work(transaction):
        notes = transaction.bind(NOTES, ALICE)
        for shelf, number in [("a", 1), ("a", 2), ("a", 300), ("b", 1), ("b", 2)]:
            notes.put((shelf, number), Note(f"{shelf}{number}"))
        transaction.bind(NOTES, BOB).put(("a", 1), Note("other"))
        transaction.bind(BLOBS, ALICE).put((1,), b"other")

    store.write(work)
    return store


A1, A2, A300, B1, B2 = ("a", 1), ("a", 2), ("a", 300), ("b", 1), ("b", 2)


@pytest.mark.parametrize("where", ["snapshot", "transaction"])
@pytest.mark.parametrize(
    ("prefix", "bounds", "expected"),
    [
        ((), {}, [A1, A2, A300, B1, B2]),
        (("a",), {}, [A1, A2, A300]),
        (("a",), {"reverse": True}, [A300, A2, A1]),
        (("a", 2), {}, [A2]),
        (("c",), {}, []),
        ((), {"after": A2}, [A300, B1, B2]),
        ((), {"after": ("a",)}, [B1, B2]),
        ((), {"after": ("a", 50)}, [A300, B1, B2]),
        ((), {"before": ("b",)}, [A1, A2, A300]),
        ((), {"before": B2, "reverse": True}, [B1, A300, A2, A1]),
        (("a",), {"after": A1, "before": A300}, [A2]),
        (("a",), {"after": B1}, []),
        (("b",), {"before": A1}, []),
        ((), {"after": A300, "before": A1}, []),
        ((), {"limit": 2}, [A1, A2]),
        ((), {"limit": 0}, []),
        (("a",), {"before": A300, "reverse": True, "limit": 1}, [A2]),
    ],
)
def test_scan(shelves, where, prefix, bounds, expected):
    def check(reader):
        notes = reader.bind(NOTES, ALICE)
        assert list(notes.keys(*prefix, **bounds)) == expected
        assert list(notes.scan(*prefix, **bounds)) == [(key, Note(f"{key[0]}{key[1]}")) for key in expected]

    if where == "transaction":
        shelves.write(check)
    else:
        with shelves.snapshot() as snapshot:
            check(snapshot)


def test_first_last_and_count(shelves):
    with shelves.snapshot() as snapshot:
        notes = snapshot.bind(NOTES, ALICE)
        assert notes.first() == (A1, Note("a1")) and notes.last() == (B2, Note("b2"))
        assert notes.first("b")[0] == B1 and notes.last("a")[0] == A300
        assert notes.first("c") is None and notes.last("c") is None
        assert (notes.count(), notes.count("a"), notes.count("c")) == (5, 3, 0)


def test_sizes_are_those_of_the_last_rows(shelves):
    with shelves.snapshot() as snapshot:
        notes = snapshot.bind(NOTES, ALICE)
        sizes = notes.sizes(limit=100)
        assert len(sizes) == notes.count() and all(size > 8 for size in sizes)
        assert notes.sizes(limit=1) == sizes[:1] == notes.sizes("b", limit=1)


def test_rows_may_change_while_a_transaction_scans_them(store):
    put_blobs(store, {number: b"x" for number in range(100)})

    def work(transaction):
        table = transaction.bind(BLOBS, ALICE)
        seen = []
        for (number,), _ in table.scan():
            seen.append(number)
            table.delete(number)
            table.delete(number + 1)
            if number == 96:
                table.put((1000,), b"new")
        return seen

    assert store.write(work).result == [*range(0, 100, 2), 1000]
    assert blobs(store) == {}


def test_children_may_delete_what_their_parent_scans(store):
    put_blobs(store, {number: b"x" for number in range(10)})

    def work(transaction):
        for (number,), _ in transaction.bind(BLOBS, ALICE).scan(reverse=True):
            with transaction.child() as child:
                child.bind(BLOBS, ALICE).delete(number)

    store.write(work)
    assert blobs(store) == {}


def test_delete_prefix_takes_only_its_own(shelves):
    assert shelves.write(lambda t: t.bind(NOTES, ALICE).delete_prefix("a")).result == 3
    assert shelves.write(lambda t: t.bind(NOTES, ALICE).delete_prefix("a")).result == 0
    with shelves.snapshot() as snapshot:
        assert list(snapshot.bind(NOTES, ALICE).keys()) == [B1, B2]
        assert snapshot.bind(NOTES, BOB).count() == 1
        assert snapshot.bind(BLOBS, ALICE).count() == 1
    assert shelves.write(lambda t: t.bind(NOTES, ALICE).delete_prefix()).result == 2


def test_scopes_and_slots_are_listed(store):
    def work(transaction):
        for slot, tenant in [(0, 1), (3, 1), (3, 2), (4095, 2**32 - 1)]:
            for number in range(3):
                transaction.bind(BLOBS, Scope(slot, tenant)).put((number,), b"")
        transaction.bind(LOGINS, Scope(3, 2)).put(("ann",), b"2")

    store.write(work)
    with store.snapshot() as snapshot:
        assert list(snapshot.scopes()) == [Scope(0, 1), Scope(3, 0), Scope(3, 1), Scope(3, 2), Scope(4095, 2**32 - 1)]
        assert list(snapshot.scopes(slot=3)) == [Scope.of_slot(3), Scope(3, 1), Scope(3, 2)]
        assert list(snapshot.scopes(slot=7)) == []
        assert list(snapshot.slots()) == [0, 3, 4095]
        assert snapshot.bind(LOGINS, Scope(3, 1)).get("ann") == b"2"


def test_undeclared_tables_and_writes_to_a_snapshot_are_refused(store):
    with store.snapshot() as snapshot:
        with pytest.raises(StoreError, match="undeclared"):
            snapshot.bind(Table("undeclared", key=("id",), row=bytes), ALICE)
        with pytest.raises(StoreError):
            snapshot.bind(BLOBS, ALICE).put((1,), b"")


def test_a_key_that_is_too_long_is_refused_and_nothing_else_suffers(store):
    def work(transaction):
        table = transaction.bind(LOGINS, ALICE)
        with pytest.raises(ValueError, match="logins"):
            table.put(("x" * 600,), b"")
        table.put(("ok",), b"1")
        assert table.get("x" * 600) is None

    store.write(work)
    with store.snapshot() as snapshot:
        assert list(snapshot.bind(LOGINS, ALICE).keys()) == [("ok",)]


# --- transactions -----------------------------------------------------------------------------------------------------


def test_an_exception_undoes_the_write(store):
    before = store.sequence

    def work(transaction):
        transaction.bind(BLOBS, ALICE).put((1,), b"x")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        store.write(work)
    assert blobs(store) == {}
    assert store.sequence == before


def test_a_child_fails_alone(store):
    def work(transaction):
        transaction.note("index", ALICE, "parent")
        with transaction.child() as child:
            child.bind(BLOBS, ALICE).put((1,), b"kept")
            child.note("index", ALICE, "kept")
            child.note("other", BOB, "kept")
        with pytest.raises(KeyError), transaction.child() as child:
            child.bind(BLOBS, ALICE).put((2,), b"lost")
            child.note("index", ALICE, "lost")
            with child.child() as grandchild:
                grandchild.note("index", ALICE, "lost too")
            raise KeyError
        return transaction.sequence

    committed = store.write(work)
    assert blobs(store) == {1: b"kept"}
    assert committed.notes == {"index": [(ALICE, "parent"), (ALICE, "kept")], "other": [(BOB, "kept")]}
    assert committed.result == committed.sequence == store.sequence


def test_snapshots_keep_their_view_and_sequence(store):
    first = put_blobs(store, {1: b"old"}).sequence
    with store.snapshot() as snapshot:
        second = put_blobs(store, {1: b"new"}).sequence
        assert second == first + 1
        assert snapshot.sequence == first
        assert snapshot.bind(BLOBS, ALICE).get(1) == b"old"
    with store.snapshot() as snapshot:
        assert snapshot.sequence == second
        assert snapshot.store is store


def test_a_write_that_stores_nothing_commits_nothing(store):
    before = store.sequence
    committed = store.write(lambda transaction: transaction.bind(BLOBS, ALICE).delete(1))
    assert (committed.result, committed.sequence, store.sequence) == (False, before, before)


def test_a_write_inside_a_write_is_refused(store):
    with pytest.raises(StoreError, match="child"):
        store.write(lambda transaction: put_blobs(store, {1: b""}))
    put_blobs(store, {1: b""})


def test_failing_children_do_not_wait_for_busy_readers(store):
    """py-lmdb delays an abort while any thread is inside a call, so without precautions this takes minutes."""
    put_blobs(store, {number: b"x" * 1000 for number in range(500)})
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with store.snapshot() as snapshot:
                assert len(list(snapshot.bind(BLOBS, ALICE).scan(limit=100))) == 100

    def work(transaction):
        for number in range(40):
            with pytest.raises(KeyError), transaction.child() as child:
                if number % 2:
                    child.bind(BLOBS, ALICE).put((number,), b"lost")
                raise KeyError
        transaction.bind(BLOBS, ALICE).put((1000,), b"kept")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    started = time.monotonic()
    try:
        store.write(work)
    finally:
        seconds = time.monotonic() - started
        stop.set()
        for reader in readers:
            reader.join(10)
    assert seconds < 3
    assert blobs(store) == {**{number: b"x" * 1000 for number in range(500)}, 1000: b"kept"}


# --- growth and space -------------------------------------------------------------------------------------------------


def test_the_map_grows_under_concurrent_readers(tmp_path):
    store = open_store(tmp_path / "shard", map_bytes=MAP_BYTES_SMALL)
    stop, faults, runs = threading.Event(), [], []

    def read() -> None:
        while not stop.is_set():
            with store.snapshot() as snapshot:
                rows = [raw for _, raw in snapshot.bind(BLOBS, ALICE).scan(limit=50)]
                if any(len(raw) != 3000 for raw in rows):
                    faults.append("torn row")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for batch in range(40):
            runs.append(put_blobs(store, {batch * 20 + i: bytes([batch]) * 3000 for i in range(20)}).sequence)
    finally:
        stop.set()
        for reader in readers:
            reader.join(10)
    assert not faults
    assert len(blobs(store)) == 800
    assert runs == list(range(runs[0], runs[0] + 40))
    assert store.stat()["map_bytes"] > MAP_BYTES_SMALL
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.snapshot()


def test_a_full_map_dooms_the_write_even_when_the_work_swallows_it(tmp_path):
    store = open_store(tmp_path / "shard", map_bytes=MAP_BYTES_SMALL)
    runs = []

    def work(transaction):
        runs.append(1)
        refused = 0
        for number in range(20):
            try:
                with transaction.child() as child:
                    child.bind(BLOBS, ALICE).put((number,), b"x" * 100_000)
            except Exception:
                refused += 1
        return refused

    assert store.write(work).result == 0
    assert len(runs) > 1
    assert len(blobs(store)) == 20
    store.close()


def test_a_reader_that_stays_makes_growth_fail_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(storage.table, "DRAIN_SECONDS_MAX", 0.05)
    store = open_store(tmp_path / "shard", map_bytes=MAP_BYTES_SMALL)
    put_blobs(store, {1: b"x"})
    with store.snapshot() as snapshot:
        with pytest.raises(StoreFull, match="snapshots"):
            put_blobs(store, {2: b"x" * 1_000_000})
        assert snapshot.bind(BLOBS, ALICE).get(1) == b"x"
        put_blobs(store, {3: b"x"})
    put_blobs(store, {2: b"x" * 1_000_000})
    assert sorted(blobs(store)) == [1, 2, 3]
    store.close()


FILL_DISK = """
import json, resource, signal, sys
from tests.storage.test_table import blobs, open_store, put_blobs
from pathlib import Path
from storage.table import StoreFull

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = open_store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
stored, refused = 0, 0
for number in range(60):
    try:
        put_blobs(store, {number: bytes([number]) * 20_000})
        stored += 1
    except StoreFull:
        refused += 1
        assert sorted(blobs(store)) == list(range(stored)), "reads must go on"
        if refused == 5:
            break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
put_blobs(store, {1000: b"room again"})
print(json.dumps({"stored": stored, "refused": refused}))
store.close()
"""


@pytest.mark.parametrize("limit_bytes", [400_000, 409_600, 450_001])
def test_a_full_disk_refuses_writes_and_keeps_everything_else(tmp_path, limit_bytes):
    directory = tmp_path / "shard"
    done = subprocess.run([sys.executable, "-c", FILL_DISK, directory, str(limit_bytes)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["refused"] == 5 and report["stored"] > 5
    store = open_store(directory, create=False)
    assert blobs(store) == {**{n: bytes([n]) * 20_000 for n in range(report["stored"])}, 1000: b"room again"}
    store.close()


# --- opening ----------------------------------------------------------------------------------------------------------


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
    code = "import sys; from pathlib import Path; from tests.storage.test_table import open_store; open_store(Path(sys.argv[1]))"
    other = subprocess.run([sys.executable, "-c", code, store.directory], capture_output=True, text=True, timeout=60)
    assert f"is in use by process {os.getpid()}" in other.stderr
    put_blobs(store, {1: b"still mine"})


@pytest.mark.parametrize("change", [{"cluster_id": "other"}, {"shard": 1}, {"shards": 2}, {"slots": 8}])
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


@pytest.mark.parametrize("keep", [lambda size: size // 2, lambda size: size - 1, lambda size: 4096, lambda size: 10, lambda size: 0])
def test_a_truncated_file_is_recognised_and_its_copy_restores_it(closed, keep):
    os.truncate(closed, keep(closed.stat().st_size))
    with pytest.raises(StoreDamaged, match=r"data\.mdb"):
        open_store(closed.parent)
    shutil.copy(closed.parent.parent / "copy", closed)
    store = open_store(closed.parent, create=False)
    assert len(blobs(store)) == 200
    store.close()


@pytest.mark.parametrize("transactions", [1, 40])
def test_a_file_that_ends_before_pages_that_were_never_written_is_whole(tmp_path, transactions):
    """A page taken at the end of the file and given back before the commit is counted by LMDB, and never written."""
    store = open_store(tmp_path / "shard", map_bytes=1 << 26)
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
    (last_page,) = max(struct.unpack_from("=QQ", data.read_bytes(), at + 136)[::-1] for at in (0, 4096))[1:]
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


# --- upgrades and backups ---------------------------------------------------------------------------------------------


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


# --- crashes ----------------------------------------------------------------------------------------------------------

WRITE_UNTIL_KILLED = """
import random, sys
from pathlib import Path
from tests.storage.test_table import open_store, put_blobs

store = open_store(Path(sys.argv[1]), map_bytes=1 << 18)
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
        process = subprocess.Popen([sys.executable, "-c", WRITE_UNTIL_KILLED, directory], stdout=subprocess.PIPE, text=True)
        for _ in range(chance.randrange(1, 60)):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n"))])
        process.wait(10)
        store = open_store(directory, create=False)
        assert store.sequence >= acknowledged
        rows = blobs(store)
        for number in range(2, store.sequence + 1):
            for i in range(3):
                assert rows[number * 10 + i].startswith(number.to_bytes(4, "big"))
        assert len(rows) == 3 * (store.sequence - 1)
        store.close()
