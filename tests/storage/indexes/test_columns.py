"""Records by ordinal: what is committed is what the array shows, whatever happened to the array
meanwhile.
"""

from __future__ import annotations

import itertools
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import numpy as np
import pytest

from storage.indexes import applied, change_tokens, kept
from storage.indexes.builder import Builder
from storage.indexes.columns import ColumnIndex
from storage.indexes.kept import DIRECTORY, KeptPlace
from storage.store import BoundTable, Identity, Scope, Store, StoreFull, sealed_file

LAYOUT = np.dtype([("a", "<u4"), ("b", "<u2")])
ABSENT = b"\xff\xff\xff\xff\x00\x00"
ONE, OTHER = Scope(1, 1), Scope(1, 2)
COPIES = itertools.count(1)
WAIT_SECONDS_MAX = 60
SERVICE_KEY = b"s" * 32


def record(a: int, b: int = 0) -> bytes:
    return a.to_bytes(4, "little") + b.to_bytes(2, "little")


@pytest.fixture
def index() -> ColumnIndex:
    return ColumnIndex("things", LAYOUT, ABSENT)


@pytest.fixture
def store(tmp_path: Path, index: ColumnIndex) -> Iterator[Store]:
    opened = Store.open(tmp_path, index.tables, identity=Identity("", 0, 1, 4096, 1), create=True)
    yield opened
    opened.close()


def change(store: Store, index: ColumnIndex, work) -> None:
    committed = store.write(lambda transaction: work(transaction))
    index.apply(store, committed.notes.get(index.name, []))


def put(store: Store, index: ColumnIndex, records: dict[int, int], scope: Scope = ONE) -> None:
    change(
        store,
        index,
        lambda t: [
            index.bind(t, scope).put(ordinal, record(value)) for ordinal, value in records.items()
        ],
    )


def shown(store: Store, index: ColumnIndex, ordinals: list[int], scope: Scope = ONE) -> list[int]:
    with store.snapshot() as snapshot:
        return index.bind(snapshot, scope).take(np.array(ordinals))["a"].tolist()


def test_records_are_taken_in_any_order_and_gaps_read_as_absent(
    store: Store, index: ColumnIndex
) -> None:
    put(store, index, {0: 10, 5: 15, 3_000: 20})
    assert shown(store, index, [3_000, 0, 4, 5, 0, 99_999]) == [
        20,
        10,
        2**32 - 1,
        15,
        10,
        2**32 - 1,
    ]


def test_a_commit_is_shown_at_once_whether_or_not_the_array_was_there(
    store: Store, index: ColumnIndex
) -> None:
    put(store, index, {1: 1})
    assert shown(store, index, [1, 2]) == [1, 2**32 - 1]
    put(store, index, {1: 7, 2: 2})
    assert shown(store, index, [1, 2]) == [7, 2]
    change(store, index, lambda t: index.bind(t, ONE).delete(1))
    assert shown(store, index, [1, 2]) == [2**32 - 1, 2]
    store.residents.clear()
    put(store, index, {3: 3})
    assert shown(store, index, [1, 2, 3]) == [2**32 - 1, 2, 3]
    change(store, index, lambda t: index.bind(t, ONE).clear())
    assert shown(store, index, [2, 3]) == [2**32 - 1] * 2


def test_tenants_do_not_see_each_other(store: Store, index: ColumnIndex) -> None:
    put(store, index, {1: 1})
    put(store, index, {1: 2}, OTHER)
    assert (shown(store, index, [1]), shown(store, index, [1], OTHER)) == ([1], [2])


def test_a_failed_transaction_leaves_no_trace(store: Store, index: ColumnIndex) -> None:
    put(store, index, {1: 1})
    shown(store, index, [1])

    def half(transaction) -> None:
        index.bind(transaction, ONE).put(1, record(9))
        raise KeyError("stop")

    with pytest.raises(KeyError):
        change(store, index, half)
    assert shown(store, index, [1]) == [1]


def test_a_record_of_another_size_is_refused(store: Store, index: ColumnIndex) -> None:
    with pytest.raises(ValueError, match="6 bytes"):
        change(store, index, lambda t: index.bind(t, ONE).put(1, b"x"))


def test_readers_that_load_while_writes_go_on_miss_nothing(
    store: Store, index: ColumnIndex
) -> None:
    rng, done, wrong = random.Random(3), threading.Event(), []
    acknowledged: dict[int, int] = {}

    def read() -> None:
        while not done.is_set():
            expected = dict(acknowledged)
            store.residents.clear()
            seen = shown(store, index, list(expected))
            # A value only grows, so what is shown may be newer than what was acknowledged before,
            # never older.
            wrong.extend(
                o
                for o, value in zip(expected, seen, strict=True)
                if value < expected[o] or value == 2**32 - 1
            )

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for value in range(1, 300):
        ordinal = rng.randrange(50)
        put(store, index, {ordinal: value})
        acknowledged[ordinal] = value
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert shown(store, index, list(acknowledged)) == list(acknowledged.values())


# --- the file -------------------------------------------------------------------------------------


@pytest.fixture
def filed(monkeypatch: pytest.MonkeyPatch) -> ColumnIndex:
    """An index that writes files of any number of records, and reads sixteen ordinals anew where
    one has changed.
    """
    monkeypatch.setattr(change_tokens, "RANGE_SHIFT", 4)
    return ColumnIndex("filed", LAYOUT, ABSENT, kept_min=1)


@pytest.fixture
def large(tmp_path: Path, filed: ColumnIndex) -> Iterator[Store]:
    """1,000 records, every third ordinal, with their file."""
    opened = Store.open(
        tmp_path / "shard",
        filed.tables,
        identity=Identity("", 0, 1, 4096, 1),
        create=True,
        service_key=SERVICE_KEY,
    )
    put(opened, filed, {ordinal: ordinal for ordinal in range(0, 3_000, 3)})
    shown(opened, filed, [0])
    awaited(lambda: is_whole(opened))
    yield opened
    opened.close()


def files(store: Store) -> list[Path]:
    return sorted((store.directory / DIRECTORY).glob("*"))


def is_whole(store: Store) -> bool:
    """Whether there is a file, and none on its way."""
    return [path.suffix for path in files(store)] in ([".rows", ".head"], [".head", ".rows"])


def awaited(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def reopened(store: Store, filed: ColumnIndex) -> Store:
    """What a crash leaves, in a store that the index knows nothing of."""
    copy = store.directory.with_name(f"copy{next(COPIES)}")
    shutil.copytree(store.directory, copy)
    return Store.open(
        copy,
        filed.tables,
        identity=Identity("", 0, 1, 4096, 1),
        create=False,
        service_key=SERVICE_KEY,
    )


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The ordinals whose rows are read one by one or all of them."""
    found: set[int] = set()
    between, all_of = BoundTable.raw_between_each, BoundTable.beginnings

    def noted_between(table: BoundTable, ranges):
        if table.table.name == "filed.records":
            found.update(each for _, low, high in ranges for each in range(low, high))
        return between(table, ranges)

    def noted_all(table: BoundTable, size: int, *prefix):
        numbers, raw = all_of(table, size, *prefix)
        found.update(numbers)
        return numbers, raw

    monkeypatch.setattr(BoundTable, "raw_between_each", noted_between)
    monkeypatch.setattr(BoundTable, "beginnings", noted_all)
    return found


def test_what_changed_since_a_file_was_written_is_read_from_rows_and_nothing_else(
    large: Store, filed: ColumnIndex, read: set[int]
) -> None:
    def work(transaction) -> None:
        bound = filed.bind(transaction, ONE)
        bound.put(3, record(77))
        bound.put(4_000, record(88))
        bound.delete(900)

    large.write(work)  # and a crash before it was applied
    again = reopened(large, filed)
    try:
        gone = 2**32 - 1
        assert shown(again, filed, [0, 3, 4, 900, 903, 2_997, 4_000]) == [
            0, 77, gone, gone, 903, 2_997, 88,
        ]  # fmt: skip
        every = dict.fromkeys(range(0, 3_000, 3)) | {4_000: None}
        expected = {each: each for each in every} | {3: 77, 4_000: 88, 900: gone}
        assert shown(again, filed, list(every)) == list(expected.values())
        assert read == {each for at in (3, 900, 4_000) for each in range(at & ~15, (at | 15) + 1)}
        put(again, filed, {5: 5, 3: 6})
        assert shown(again, filed, [3, 5, 6]) == [6, 5, 6]
    finally:
        again.close()


@pytest.mark.parametrize("what", ["rows", "head"])
@pytest.mark.parametrize("how", ["missing", "damaged", "cut"])
def test_a_file_that_is_not_what_was_written_is_not_used(
    large: Store, filed: ColumnIndex, what: str, how: str
) -> None:
    (path,) = (each for each in files(large) if each.suffix == f".{what}")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(raw if how == "damaged" else path.read_bytes()[:-5])
    again = reopened(large, filed)
    try:
        assert shown(again, filed, [0, 1, 2_997]) == [0, 2**32 - 1, 2_997]
    finally:
        again.close()


def test_records_of_another_layout_are_read_from_their_rows(
    large: Store, filed: ColumnIndex
) -> None:
    same_size = ColumnIndex("filed", np.dtype([("b", "<u2"), ("a", "<u4")]), ABSENT, kept_min=1)
    again = reopened(large, same_size)
    try:
        with again.snapshot() as snapshot:
            assert same_size.bind(snapshot, ONE).get(3) == record(3)
            taken = same_size.bind(snapshot, ONE).take(np.array([3]))
        assert taken.tobytes() == record(3)
    finally:
        again.close()


def test_a_file_of_another_history_says_nothing(large: Store, filed: ColumnIndex) -> None:
    early = reopened(large, filed)
    try:
        for path in files(early):
            path.unlink()
        change(early, filed, lambda t: filed.bind(t, ONE).clear())
        put(early, filed, {3: 1, 6: 2})
        shutil.copytree(
            large.directory / DIRECTORY, early.directory / DIRECTORY, dirs_exist_ok=True
        )
        early.residents.clear()
        assert shown(early, filed, [0, 3, 6, 9]) == [2**32 - 1, 1, 2, 2**32 - 1]
    finally:
        early.close()


def test_a_commit_that_is_not_applied_yet_is_in_no_file_of_records(
    large: Store, filed: ColumnIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applied, "APPLIED_SECONDS_MAX", 0.05)
    early, late = (
        large.write(
            lambda t, ordinals=ordinals: [
                filed.bind(t, ONE).put(ordinal, record(9)) for ordinal in ordinals
            ]
        ).notes["filed"]
        for ordinals in (range(5_000, 5_200), [3])
    )
    filed.apply(large, early)  # there is something to keep, while the other can be seen
    for _ in range(3):
        filed.checkpoint(large)
    for _ in range(2):
        again = reopened(large, filed)
        try:
            assert shown(again, filed, [3, 6, 5_000]) == [9, 6, 9]
        finally:
            again.close()
        filed.apply(large, late)
        filed.checkpoint(large)


@pytest.mark.parametrize("apart", [1, 2, 3, 30])
def test_a_file_is_read_of_which_much_was_changed_here_and_there(
    large: Store, filed: ColumnIndex, monkeypatch: pytest.MonkeyPatch, apart: int
) -> None:
    """One record of each range, of every second one and so on: none of its others is believed."""
    monkeypatch.setattr(kept, "KEPT_SHARE", 1)  # the file stays
    changed = {ordinal: 9 for ordinal in range(0, 3_000, 15) if ordinal // 16 % apart == 0}
    put(large, filed, changed)
    again = reopened(large, filed)
    try:
        expected = dict.fromkeys(range(0, 3_000, 3)) | changed
        stored = [changed.get(ordinal, ordinal) for ordinal in expected]
        assert shown(again, filed, list(expected)) == stored
    finally:
        again.close()


def test_a_file_has_what_was_committed_after_its_state_left_memory(
    large: Store, filed: ColumnIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, write = large.snapshot, KeptPlace.write
    seen: list[int] = []

    def evicted_first():
        monkeypatch.setattr(large, "snapshot", snapshot)
        large.residents.clear()
        shown(large, filed, [3])
        put(large, filed, {3: 9})
        large.residents.clear()
        return snapshot()

    def read_at_once(place: KeptPlace, *given) -> None:
        write(place, *given)
        seen.extend(shown(large, filed, [3]))

    monkeypatch.setattr(Builder, "want", lambda *_: None)
    monkeypatch.setattr(kept, "KEPT_SHARE", 0)
    monkeypatch.setattr(KeptPlace, "write", read_at_once)
    put(large, filed, {6: 8})
    monkeypatch.setattr(large, "snapshot", evicted_first)
    for _ in range(2):
        filed.checkpoint(large)
        assert shown(large, filed, [3, 6]) == [9, 8] and set(seen) <= {9}
        put(large, filed, {9: 7})
    assert seen


def test_a_commit_that_found_no_room_keeps_no_file_from_being_written(
    large: Store, filed: ColumnIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, inner: lmdb.Transaction):
            self._inner = inner

        def __getattr__(self, name: str):
            return getattr(self._inner, name)

        def commit(self) -> None:
            raise lmdb.MapFullError("full")

    monkeypatch.setattr(Builder, "want", lambda *_: None)
    monkeypatch.setattr(kept, "KEPT_SHARE", 0)
    put(large, filed, {0: 5})
    begin = large.environment.begin_write
    with monkeypatch.context() as full:
        full.setattr(large.environment, "begin_write", lambda *given: Full(begin(*given)))
        with pytest.raises(StoreFull):
            put(large, filed, {3: 5})
    monkeypatch.setattr(applied, "APPLIED_SECONDS_MAX", 0.05)
    assert filed.checkpoint(large) == 1


def test_a_file_of_records_is_written_again_when_much_has_changed(
    large: Store, filed: ColumnIndex
) -> None:
    before = files(large)
    put(large, filed, {ordinal: 1 for ordinal in range(0, 90, 3)})
    assert filed.checkpoint(large) == 0 and files(large) == before
    put(large, filed, {ordinal: 2 for ordinal in range(0, 180, 3)})
    awaited(lambda: files(large) != before and is_whole(large))


def test_a_file_of_records_goes_with_what_it_was_of(
    large: Store, filed: ColumnIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, began = KeptPlace.write, threading.Event()

    def cleared_before(place: KeptPlace, *given) -> None:
        change(large, filed, lambda t: filed.bind(t, ONE).clear())
        write(place, *given)
        began.set()

    monkeypatch.setattr(KeptPlace, "write", cleared_before)
    put(large, filed, {ordinal: 2 for ordinal in range(0, 1_500, 3)})
    assert began.wait(WAIT_SECONDS_MAX)
    awaited(lambda: not files(large))
    assert shown(large, filed, [0, 3]) == [2**32 - 1] * 2


def test_nothing_of_records_lies_open_in_a_file(large: Store) -> None:
    some = b"".join(record(ordinal) for ordinal in range(30, 60, 3))
    assert not any(some in path.read_bytes() for path in files(large))


def test_a_file_is_read_whole_whatever_pieces_it_comes_in(
    large: Store, filed: ColumnIndex, monkeypatch: pytest.MonkeyPatch, read: set[int]
) -> None:
    put(large, filed, {ordinal: ordinal + 1 for ordinal in range(0, 3_000, 3)})
    awaited(lambda: filed.checkpoint(large) == 0 and is_whole(large))
    monkeypatch.setattr(kept, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(sealed_file, "FRAME_BYTES", 100)
    before = files(large)
    put(large, filed, {ordinal: ordinal + 2 for ordinal in range(0, 3_000, 3)})
    awaited(lambda: files(large) != before and is_whole(large))
    again = reopened(large, filed)
    try:
        read.clear()
        assert shown(again, filed, [0, 3, 2_997]) == [2, 5, 2_999]
        assert not read
    finally:
        again.close()
