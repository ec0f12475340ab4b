"""The store: rows and their order, transactions, growth and space."""

import contextlib
import json
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from storage.store import MAP_BYTES, Scope, Table
from storage.store.directory import (
    StoreAtBound,
    StoreError,
)
from tests.support.stores import (
    A1,
    A2,
    A300,
    ALICE,
    B1,
    B2,
    BLOBS,
    BOB,
    LOGINS,
    MAP_BYTES_SMALL,
    NOTES,
    Note,
    blobs,
    open_store,
    put_blobs,
)

# --- rows and order -------------------------------------------------------------------------------


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
        assert notes.get_many([("home", 2), ("home", 1), ("home", 1)]) == [
            None,
            Note("milk", 2),
            Note("milk", 2),
        ]
        assert notes.get_many([]) == []
        assert notes.get_raw("home", 1) == msgspec.msgpack.encode(Note("milk", 2))


def test_unknown_fields_are_ignored_and_new_ones_take_their_default(store):
    store.write(
        lambda t: t.bind(NOTES, ALICE).put_raw(
            ("a", 1), msgspec.msgpack.encode({"text": "x", "colour": "red"})
        )
    )
    with store.snapshot() as snapshot:
        assert snapshot.bind(NOTES, ALICE).get("a", 1) == Note("x", 0)


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
        assert list(notes.scan(*prefix, **bounds)) == [
            (key, Note(f"{key[0]}{key[1]}")) for key in expected
        ]

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
        assert list(snapshot.scopes()) == [
            Scope(0, 1),
            Scope(3, 0),
            Scope(3, 1),
            Scope(3, 2),
            Scope(4095, 2**32 - 1),
        ]
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


# --- transactions ---------------------------------------------------------------------------------


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
    assert committed.notes == {
        "index": [(ALICE, "parent"), (ALICE, "kept")],
        "other": [(BOB, "kept")],
    }
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
    """py-lmdb delays an abort while any thread is inside a call, so without precautions this takes
    minutes.
    """
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
    assert seconds < 60
    assert blobs(store) == {**{number: b"x" * 1000 for number in range(500)}, 1000: b"kept"}


# --- growth and space -----------------------------------------------------------------------------


def test_a_snapshot_that_stays_open_holds_up_no_write(store):
    """The map is as large from the start as a store may become, so nobody has to leave it."""
    put_blobs(store, {1: b"before"})
    with store.snapshot() as snapshot:
        for number in range(2, 34):
            put_blobs(store, {number: bytes(1 << 20)})
        assert [raw for _, raw in snapshot.bind(BLOBS, ALICE).scan()] == [b"before"]
        assert len(blobs(store)) == 33
        assert store.stat()["map_bytes"] == MAP_BYTES >= 1 << 40
    assert store.data_file.stat().st_blocks * 512 < 1 << 26, "address space is no disk space"


def test_readers_see_whole_commits_while_the_file_grows(store):
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
            runs.append(
                put_blobs(
                    store, {batch * 20 + i: bytes([batch]) * 3000 for i in range(20)}
                ).sequence
            )
    finally:
        stop.set()
        for reader in readers:
            reader.join(10)
    assert not faults
    assert len(blobs(store)) == 800
    assert runs == list(range(runs[0], runs[0] + 40))
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.snapshot()


def test_a_store_as_large_as_its_map_refuses_writes_and_says_so(tmp_path):
    """A refusal dooms the whole write, whatever its work makes of it."""
    store = open_store(tmp_path / "shard", map_bytes=MAP_BYTES_SMALL)
    put_blobs(store, {1: b"x"})

    def work(transaction):
        with contextlib.suppress(StoreError), transaction.child() as child:
            child.bind(BLOBS, ALICE).put((2,), b"x" * MAP_BYTES_SMALL)
        transaction.bind(BLOBS, ALICE).put((3,), b"x")

    for _ in range(3):
        with pytest.raises(StoreAtBound, match="map_bytes_max"):
            store.write(work)
    assert blobs(store) == {1: b"x"}
    put_blobs(store, {4: b"x"})
    store.close()
    store = open_store(tmp_path / "shard", create=False)
    store.write(work)
    assert sorted(blobs(store)) == [1, 2, 3, 4]
    store.close()


LITTLE_ADDRESS_SPACE = """
import resource, sys
from pathlib import Path
from tests.support.stores import open_store, put_blobs

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))
try:
    open_store(Path(sys.argv[1]))
except Exception as refused:
    print(refused)
store = open_store(Path(sys.argv[1]), map_bytes=1 << 28)
put_blobs(store, {1: b"x"})
store.backup(Path(sys.argv[2]))
store.close()
"""


def test_where_the_address_space_is_bounded_a_smaller_map_is_asked_for(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_ADDRESS_SPACE, tmp_path / "shard", tmp_path / "copy"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "address space" in done.stdout and "storage.map_bytes_max" in done.stdout
    copy = open_store(tmp_path / "copy", create=False)
    assert blobs(copy) == {1: b"x"}
    copy.close()


FILL_DISK = """
import json, resource, signal, sys
from pathlib import Path
from tests.support.stores import blobs, open_store, put_blobs
from storage.store import StoreFull

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
    done = subprocess.run(
        [sys.executable, "-c", FILL_DISK, directory, str(limit_bytes)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["refused"] == 5 and report["stored"] > 5
    store = open_store(directory, create=False)
    assert blobs(store) == {
        **{n: bytes([n]) * 20_000 for n in range(report["stored"])},
        1000: b"room again",
    }
    store.close()
