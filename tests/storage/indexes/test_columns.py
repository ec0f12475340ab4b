"""Records by ordinal: what is committed is what the array shows, whatever happened to the array
meanwhile.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from storage.indexes.columns import ColumnIndex
from storage.store import Identity, Scope, Store

LAYOUT = np.dtype([("a", "<u4"), ("b", "<u2")])
ABSENT = b"\xff\xff\xff\xff\x00\x00"
ONE, OTHER = Scope(1, 1), Scope(1, 2)


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
