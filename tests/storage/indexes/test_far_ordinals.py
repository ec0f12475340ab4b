"""What indexes take follows the ordinals that are there, wherever they lie, and where they lie
changes no answer.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyroaring import BitMap

from storage.indexes import ColumnIndex, LexicalIndex, VectorIndex, WordVectors
from storage.indexes.row_map import ABSENT, RowMap
from storage.store import Identity, Scope, Store, Transaction

COUNT, FAR, LAST = 1_000, 50_000_000, 2**32 - 1
SPACE, WIDTH = "model:16", 16
LAYOUT = np.dtype([("a", "<u4"), ("b", "<i8"), ("unused", "V4")])
VECTORS, TEXT, WORDS = VectorIndex("vectors"), LexicalIndex("text"), WordVectors("words")
COLUMNS = ColumnIndex("columns", LAYOUT, bytes(LAYOUT.itemsize))
INDEXES = (VECTORS, TEXT, WORDS, COLUMNS)
RESIDENT = (VECTORS, WORDS, COLUMNS)
RANDOM = np.random.default_rng(5)
DRAWN = RANDOM.normal(size=(COUNT, WIDTH))
UNITS = (DRAWN / np.linalg.norm(DRAWN, axis=1, keepdims=True)).astype(np.float32)
TERMS = [[f"w{word}" for word in RANDOM.integers(0, 60, 8)] for _ in range(COUNT)]
QUERY = ["w1", "w7", "w40"]
# For an ordinal by itself: the pages of maps that stay, and what a search makes of its block of
# lengths.
PAGES_BYTES, BLOCK_BYTES = 1_024, 10_240

NEAR = np.arange(COUNT)
PLACES = {
    "far": FAR + NEAR,
    "with gaps": FAR + np.cumsum(RANDOM.integers(1, 4, COUNT)),
    "with wide gaps": np.cumsum(RANDOM.integers(1, 80_000, COUNT)),
    "the last": LAST - COUNT + NEAR,
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    tables = [table for index in INDEXES for table in index.tables]
    store = Store.open(tmp_path, tables, identity=Identity("", 0, 1, 4096, 1), create=True)
    yield store
    store.close()


def change(store: Store, work: Callable[[Transaction], object]) -> None:
    committed = store.write(work)
    for index in INDEXES:
        index.apply(store, committed.notes.get(index.name, []))


def put(scope: Scope, ordinals: np.ndarray) -> Callable[[Transaction], None]:
    """A write of the memories 0, 1, 2, … at these ordinals."""

    def work(transaction: Transaction) -> None:
        given = ordinals.tolist()
        TEXT.bind(transaction, scope).add_many(zip(given, TERMS, strict=False))
        for number, ordinal in enumerate(given):
            VECTORS.bind(transaction, scope).put(SPACE, ordinal, UNITS[number])
            codes = np.rint(127 * UNITS[number : number + 3]).astype(np.int8)
            WORDS.bind(transaction, scope).put(SPACE, ordinal, codes)
            record = np.array([(number, -number, b"")], LAYOUT)
            COLUMNS.bind(transaction, scope).put(ordinal, record.tobytes())

    return work


def remove(scope: Scope, ordinals: np.ndarray) -> Callable[[Transaction], None]:
    def work(transaction: Transaction) -> None:
        for ordinal in ordinals.tolist():
            assert TEXT.bind(transaction, scope).remove(ordinal)
            assert VECTORS.bind(transaction, scope).delete(SPACE, ordinal)
            assert WORDS.bind(transaction, scope).delete(SPACE, ordinal)
            assert COLUMNS.bind(transaction, scope).delete(ordinal)

    return work


def answers(store: Store, scope: Scope, ordinals: np.ndarray) -> list[Any]:
    """What every index answers, with the numbers of the memories for their ordinals."""
    number = {ordinal: place for place, ordinal in enumerate(ordinals.tolist())}
    among = BitMap(ordinals[::3].astype(np.uint32))
    some = ordinals[[5, 3, 900, 5, 20, 21]]
    found: list[Any] = []

    def note(answer: tuple[np.ndarray, np.ndarray]) -> None:
        found.append(([number[each] for each in answer[0].tolist()], answer[1].tolist()))

    with store.snapshot() as snapshot:
        vectors, text = VECTORS.bind(snapshot, scope), TEXT.bind(snapshot, scope)
        (scan,) = vectors.scan(SPACE, UNITS[7] + UNITS[8])
        for allowed in (None, among):
            note(vectors.search(SPACE, UNITS[7] + UNITS[8], 20, allowed)[0])
            note(scan.best(20, allowed))
            note(text.search(QUERY, 20, allowed))
        found.append(scan.at(some).tolist())
        found.append(text.score(QUERY, some).tolist())
        found.append(text.lengths(some).tolist())
        found.append(text.document_frequencies(QUERY, np.array(among.to_array())).tolist())
        query = np.rint(127 * UNITS[40:43]).astype(np.int8)
        found.append(WORDS.bind(snapshot, scope).nearest(SPACE, some, query).tolist())
        columns = COLUMNS.bind(snapshot, scope)
        found.append([columns.take(some).tolist(), columns.field("b", some).tolist()])
    return found


def resident_bytes(store: Store, scope: Scope) -> int:
    return sum(store.residents.peek((index.name, scope)).nbytes for index in RESIDENT)


def touched_bytes(store: Store, scope: Scope, ordinals: np.ndarray) -> int:
    """The most that loading and searching hold at one moment."""
    store.residents.clear()
    tracemalloc.start()
    answers(store, scope, ordinals)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("place", PLACES)
def test_where_ordinals_lie_changes_neither_answers_nor_what_they_take(
    store: Store, place: str
) -> None:
    near, far, ordinals = Scope(1, 1), Scope(1, 2), PLACES[place]
    for scope, given in ((near, NEAR), (far, ordinals)):
        change(store, put(scope, given))
        answers(store, scope, given)  # loads them
        change(store, remove(scope, given[100:200]))
        change(store, put(scope, given[:300]))
    scattered = COUNT if place == "with wide gaps" else 0
    for _ in range(2):  # fed by commits, then read anew
        assert answers(store, far, ordinals) == answers(store, near, NEAR)
        near_bytes, pages = resident_bytes(store, near), PAGES_BYTES * scattered
        assert resident_bytes(store, far) <= 1.2 * near_bytes + pages
        store.residents.clear()
    allowed = 1.5 * touched_bytes(store, near, NEAR) + BLOCK_BYTES * scattered
    assert touched_bytes(store, far, ordinals) <= allowed


def test_ordinals_that_come_and_go_leave_nothing_behind(store: Store) -> None:
    one, alive = Scope(1, 1), FAR + np.arange(200)
    change(store, put(one, alive))
    expected = None
    with store.snapshot() as snapshot:
        WORDS.bind(snapshot, one).nearest(SPACE, alive[:1], np.ones((1, WIDTH), np.int8))
        COLUMNS.bind(snapshot, one).take(alive[:1])
        VECTORS.bind(snapshot, one).scan(SPACE, UNITS[0])
    first = resident_bytes(store, one)
    for _ in range(8):
        change(store, put(one, alive + 200))
        change(store, remove(one, alive))
        alive = alive + 200
        with store.snapshot() as snapshot:
            found = VECTORS.bind(snapshot, one).search(SPACE, UNITS[3], 200)[0]
        answer = [(found[0] - alive[0]).tolist(), found[1].tolist()]
        assert expected in (None, answer) and len(answer[0]) == 200
        expected = answer
        assert resident_bytes(store, one) <= 3 * first
    change(store, put(one, alive[0] + np.arange(COUNT)))
    change(store, remove(one, alive[0] + np.arange(COUNT - 50)))
    assert resident_bytes(store, one) <= 1.5 * first


def test_a_map_is_what_was_put_in() -> None:
    chance = np.random.default_rng(1)
    rows, known, before = RowMap(), {}, {}
    frozen = rows.copy()
    for step in range(300):
        start = int(chance.choice([0, FAR, LAST - 300, chance.integers(LAST - 300)]))
        ordinals = start + np.unique(chance.integers(0, 300, 20))
        given = chance.integers(0, 1_000, len(ordinals)).astype(np.int32)
        rows.put(ordinals, given)
        known |= dict(zip(ordinals.tolist(), given.tolist(), strict=True))
        rows.put_one(int(ordinals[3]), ABSENT)
        del known[int(ordinals[3])]
        assert [rows.get(each) for each in (*ordinals[:5].tolist(), start + 299)] == [
            known.get(each, ABSENT) for each in (*ordinals[:5].tolist(), start + 299)
        ]
        if step == 200:
            frozen, before = rows.copy(), dict(known)
    for each, model in ((rows, known), (frozen, before)):
        ordinals, found = each.entries()
        assert ordinals.tolist() == sorted(model)
        assert found.tolist() == [model[ordinal] for ordinal in ordinals.tolist()]
        assert each.find(ordinals[::-1]).tolist() == found[::-1].tolist()
        asked = chance.integers(0, LAST, 500)
        assert each.find(asked).tolist() == [model.get(one, ABSENT) for one in asked.tolist()]
    numbered = RowMap.of(np.array(sorted(known), np.uint32))
    assert numbered.find(np.array(sorted(known))).tolist() == list(range(len(known)))
