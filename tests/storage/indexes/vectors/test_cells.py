"""Cells of large spaces, and the files that let these survive a restart: what they recall, whom
they keep waiting, and what is made of damaged, old and foreign files.
"""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from storage.indexes import applied, kept
from storage.indexes.builder import Builder
from storage.indexes.kept import DIRECTORY, KeptPlace
from storage.indexes.vectors import BoundVectors, cells
from storage.indexes.vectors import space as vectors_space
from storage.indexes.vectors.cells import Cells, Centres
from storage.indexes.vectors.space import Space
from storage.store import Store
from tests.support.vectors import (
    ALICE,
    CELLED,
    IDENTITY,
    SPACE,
    change,
    clustered,
    found,
    kept_files,
    open_store,
    put_all,
    recall,
)

pytestmark = pytest.mark.usefixtures("low_thresholds")
COPIES = itertools.count(1)
WAIT_SECONDS_MAX = 60


@pytest.fixture
def large(store: Store) -> dict[int, np.ndarray]:
    """2,000 clustered vectors of Alice in the index with cells, half of them learned by apply."""
    vectors = clustered(2_000)
    change(store, CELLED, put_all(vectors[:1_000]))
    found(store, CELLED, vectors[0])
    for first in range(1_000, 2_000, 100):
        change(store, CELLED, put_all(vectors[first : first + 100], first=first))
    caught_up(store)
    return dict(enumerate(vectors))


def caught_up(store: Store) -> None:
    """Wait until the cells hold what the commits brought, and the file much of it."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while store.residents.peek(("celled", ALICE)).is_behind:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def cells_of(store: Store) -> Cells | None:
    return store.residents.peek(("celled", ALICE)).space(SPACE).cells


@pytest.mark.parametrize("most", [cells.COMPARED_MAX, 100])
def test_cells_recall_what_a_scan_finds_and_are_not_all_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, most: int
) -> None:
    monkeypatch.setattr(cells, "COMPARED_MAX", most)
    large: dict[int, np.ndarray] = request.getfixturevalue("large")
    assert cells_of(store).centres.is_indexed
    looked_at: list[int] = []
    near = Cells.near

    def counted(cells: Cells, query: np.ndarray, count: int) -> np.ndarray:
        rows = near(cells, query, count)
        looked_at.append(len(rows))
        return rows

    monkeypatch.setattr(Cells, "near", counted)
    queries = clustered(60, seed=5)
    assert cells_of(store).end > 1_900
    assert recall(store, CELLED, large, queries) >= 0.98
    assert len(looked_at) == 60 and max(looked_at) < 1_000
    for allowed in (
        None,
        BitMap(large),
        BitMap(range(0, 2_000, 2)),
        BitMap(range(0, 2_000, 3)),
        BitMap(range(0, 2_000, 25)),
        BitMap(range(0, 2_000, 100)),
    ):
        assert recall(store, CELLED, large, queries, allowed) >= 0.98
    assert len(looked_at) == 240, "of a third, and of less, all are looked at"
    for query in queries[:5]:
        assert len(found(store, CELLED, query, 1_500)) == 1_500
        assert len(found(store, CELLED, query, 5_000)) == 2_000


def test_no_commit_waits_for_cells(
    store: Store, large: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    of = Centres.of

    def held_up(self: Centres, vectors: np.ndarray) -> np.ndarray:
        began.set()
        assert go_on.wait(WAIT_SECONDS_MAX)
        return of(self, vectors)

    monkeypatch.setattr(Centres, "of", held_up)
    vectors = clustered(60, seed=21)
    change(store, CELLED, put_all(vectors, first=2_000))
    assert began.wait(WAIT_SECONDS_MAX)

    def meanwhile(bound: BoundVectors) -> None:
        for number in range(0, 20):
            assert bound.delete(SPACE, 2_000 + number)
        for number in range(20, 60):
            bound.put(SPACE, 2_000 + number, vectors[79 - number])

    change(store, CELLED, meanwhile)
    after = large | {2_000 + number: vectors[79 - number] for number in range(20, 60)}
    for _ in range(2):
        assert recall(store, CELLED, after, vectors) >= 0.98
        for vector in vectors:
            assert not set(found(store, CELLED, vector, 500)) & set(range(2_000, 2_020))
        go_on.set()
        caught_up(store)
    assert cells_of(store).end > 2_000


def test_cells_forget_and_relearn(store: Store, large: dict[int, np.ndarray]) -> None:
    vectors = clustered(2_000, seed=3)
    for ordinal in range(0, 2_000, 2):
        large.pop(ordinal)
    for ordinal in range(0, 2_000, 6):
        large[ordinal] = vectors[ordinal]

    def work(bound: BoundVectors) -> None:
        for ordinal in range(0, 2_000, 2):
            assert bound.delete(SPACE, ordinal)
        for ordinal in range(0, 2_000, 6):
            bound.put(SPACE, ordinal, vectors[ordinal])

    change(store, CELLED, work)
    queries = clustered(40, seed=6)
    assert recall(store, CELLED, large, queries) >= 0.98, "before the cells know of it"
    caught_up(store)
    assert recall(store, CELLED, large, queries) >= 0.98
    change(
        store,
        CELLED,
        lambda bound: [bound.delete(SPACE, ordinal) for ordinal in list(large)[:1_100]],
    )
    few = dict(list(large.items())[1_100:])
    assert recall(store, CELLED, few, queries[:5]) == 1.0  # rows moved, and so did cells
    change(store, CELLED, lambda bound: [bound.delete(SPACE, each) for each in list(few)[:180]])
    caught_up(store)
    assert cells_of(store) is None
    assert recall(store, CELLED, dict(list(few.items())[180:]), queries[:5]) == 1.0


def test_what_has_grown_to_a_multiple_gets_other_cells(
    store: Store, large: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(cells_of(store).centres)
    monkeypatch.setattr(vectors_space, "OUTGROWN", 3)
    further = clustered(6_000, seed=31)
    change(store, CELLED, put_all(further, first=2_000))
    caught_up(store)
    assert len(cells_of(store).centres) == 2 * before
    after = large | {2_000 + number: vector for number, vector in enumerate(further)}
    assert recall(store, CELLED, after, clustered(40, seed=6)) >= 0.98


def reopened(store: Store, prepare: Callable[[Path], None] = lambda directory: None) -> Store:
    """What a crash leaves: the files as they are, without a word to the indexes. CELLED's own
    memory of the store is not used.
    """
    copy = store.directory.with_name(f"copy{next(COPIES)}")
    shutil.copytree(store.directory, copy)
    prepare(copy)
    return open_store(copy)


def damage(pattern: str) -> Callable[[Path], None]:
    def work(directory: Path) -> None:
        for path in (directory / DIRECTORY).glob(pattern):
            raw = bytearray(path.read_bytes())
            raw[len(raw) // 2] ^= 0xFF
            path.write_bytes(raw)

    return work


def cut(pattern: str) -> Callable[[Path], None]:
    return lambda directory: (
        [path.write_bytes(path.read_bytes()[:-9]) for path in (directory / DIRECTORY).glob(pattern)]
        and None
    )


def missing(pattern: str) -> Callable[[Path], None]:
    return lambda directory: (
        [path.unlink() for path in (directory / DIRECTORY).glob(pattern)] and None
    )


@pytest.mark.parametrize(
    ("prepare", "usable"),
    [
        (lambda directory: None, True),
        (missing("*"), False),
        (missing("*.rows"), False),
        (damage("*.rows"), False),
        (damage("*.head"), False),
        (cut("*.rows"), False),
        (cut("*.head"), False),
    ],
    ids=["kept", "no-files", "no-rows", "damaged-rows", "damaged-head", "cut-rows", "cut-head"],
)
def test_a_crash_loses_nothing_whatever_became_of_the_file(
    store: Store,
    large: dict[int, np.ndarray],
    prepare: Callable[[Path], None],
    usable: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = clustered(200, seed=8)
    monkeypatch.setattr(kept, "KEPT_SHARE", 0)
    CELLED.checkpoint(store)

    def after_the_file(bound: BoundVectors) -> None:
        put_all(other[:100], first=2_000)(bound)
        for number in range(100):
            bound.put(SPACE, number, other[100 + number])
            bound.delete(SPACE, 500 + number)

    change(store, CELLED, after_the_file, apply=False)
    for number in range(100):
        large[2_000 + number] = other[number]
        large[number] = other[100 + number]
        del large[500 + number]
    opened: list[int] = []
    put_newer = Space.put_newer

    def counted(space: Space, ordinals: np.ndarray, *given: object) -> None:
        opened.extend(ordinals.tolist())
        put_newer(space, ordinals, *given)

    monkeypatch.setattr(Space, "put_newer", counted)
    again = reopened(store, prepare)
    try:
        queries = np.concatenate([clustered(20, seed=9), other[::20]])
        assert recall(again, CELLED, large, queries) >= 0.98
        near = {each >> 4 for each in (*range(100), *range(500, 600), *range(2_000, 2_100))}
        changed = {ordinal for ordinal in large if ordinal >> 4 in near}
        assert set(opened) == (changed if usable else set(large))
        assert not set(found(again, CELLED, clustered(1)[0], 2_000)) & set(range(500, 600))
        caught_up(again)
        assert cells_of(again) is not None
        assert recall(again, CELLED, large, queries) >= 0.98
    finally:
        again.close()


def test_a_file_of_another_history_is_ignored(store: Store, large: dict[int, np.ndarray]) -> None:
    early = reopened(store, missing("*"))
    try:
        replaced = clustered(2_000, seed=11)
        change(early, CELLED, put_all(replaced))
        shutil.copytree(
            store.directory / DIRECTORY, early.directory / DIRECTORY, dirs_exist_ok=True
        )
        assert recall(early, CELLED, dict(enumerate(replaced)), clustered(20, seed=12)) >= 0.98
    finally:
        early.close()


def test_a_file_is_written_again_when_much_has_changed_and_the_old_one_goes(
    store: Store, large: dict[int, np.ndarray]
) -> None:
    before = kept_files(store)
    assert sorted(path.suffix for path in before) == [".head", ".rows"]
    change(store, CELLED, put_all(clustered(10, seed=4), first=2_000))
    assert CELLED.checkpoint(store) == 0 and kept_files(store) == before
    change(store, CELLED, put_all(clustered(400, seed=4), first=2_000))
    caught_up(store)
    assert len(kept_files(store)) == 2 and kept_files(store) != before


def test_a_commit_that_is_not_applied_yet_is_in_no_file(
    store: Store, large: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "KEPT_SHARE", 0)
    monkeypatch.setattr(applied, "APPLIED_SECONDS_MAX", 0.05)
    other, more = -large[7], clustered(1, seed=4)[0]
    before, late = (
        store.write(
            lambda write, row=row, vector=vector: CELLED.bind(write, ALICE).put(SPACE, row, vector)
        ).notes["celled"]
        for row, vector in ((2_000, more), (7, other))
    )
    CELLED.apply(store, before)  # there is something to keep, while the other can be seen
    for _ in range(3):
        CELLED.checkpoint(store)
    again = reopened(store)
    try:
        assert found(again, CELLED, other, 1) == [7]
    finally:
        again.close()
    CELLED.apply(store, late)
    caught_up(store)
    again = reopened(store)
    try:
        assert found(again, CELLED, other, 1) == [7]
    finally:
        again.close()


def test_a_file_has_what_was_committed_after_its_state_left_memory(
    store: Store, large: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, write, other = store.snapshot, KeptPlace.write, -large[7]
    seen: list[int] = []

    def evicted_first():
        monkeypatch.setattr(store, "snapshot", snapshot)
        store.residents.clear()
        change(store, CELLED, lambda bound: bound.put(SPACE, 7, other))
        return snapshot()

    def searched_at_once(place: KeptPlace, *given: object) -> None:
        write(place, *given)
        seen.extend(found(store, CELLED, other, 1))

    monkeypatch.setattr(Builder, "want", lambda *_: None)
    monkeypatch.setattr(kept, "KEPT_SHARE", 0)
    monkeypatch.setattr(KeptPlace, "write", searched_at_once)
    change(store, CELLED, put_all(clustered(1, seed=4), first=2_000))
    monkeypatch.setattr(store, "snapshot", evicted_first)
    for count in range(1, 3):
        CELLED.checkpoint(store)
        assert found(store, CELLED, other, 1) == [7] and set(seen) <= {7}
        change(store, CELLED, put_all(clustered(1, seed=5), first=2_000 + count))
    assert seen


@pytest.mark.parametrize("has_file", [True, False])
def test_who_reads_beside_the_owner_takes_its_cells_and_makes_none(
    store: Store, large: dict[int, np.ndarray], has_file: bool
) -> None:
    copy = reopened(store, (lambda directory: None) if has_file else missing("*"))
    copy.close()
    beside = Store.open_to_read(copy.directory, CELLED.tables, identity=IDENTITY)
    try:
        assert recall(beside, CELLED, large, clustered(20, seed=9)) >= 0.98
        assert (cells_of(beside) is not None) == has_file
        assert not any(thread.name == "builder" for thread in threading.enumerate())
        assert bool(kept_files(beside)) == has_file
    finally:
        beside.close()


def test_a_small_space_leaves_no_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_space, "KEPT_MIN", 100)
    for count in (99, 100):
        change(store, CELLED, put_all(clustered(count)))
        found(store, CELLED, clustered(1)[0])
        CELLED.checkpoint(store)
        assert len(kept_files(store)) == (0 if count == 99 else 2)


def test_clearing_a_tenant_takes_its_file_along(store: Store, large: dict[int, np.ndarray]) -> None:
    assert change(store, CELLED, lambda bound: bound.clear()) == 2_000
    assert kept_files(store) == []
    assert found(store, CELLED, large[0]) == []
    change(store, CELLED, put_all(clustered(300)))
    assert found(store, CELLED, clustered(300)[5], 1) == [5]


def test_a_file_that_is_being_written_goes_with_what_it_was_of(
    store: Store, large: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = KeptPlace.write

    began = threading.Event()

    def cleared_before(place: KeptPlace, *given: object) -> None:
        change(store, CELLED, lambda bound: bound.clear())
        write(place, *given)
        began.set()

    monkeypatch.setattr(KeptPlace, "write", cleared_before)
    monkeypatch.setattr(kept, "KEPT_SHARE", 0)
    change(store, CELLED, put_all(clustered(1, seed=4), first=2_000))
    assert began.wait(WAIT_SECONDS_MAX)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while kept_files(store):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_left_by_a_crash_after_clearing_is_swept(
    store: Store, large: dict[int, np.ndarray]
) -> None:
    change(store, CELLED, lambda bound: bound.clear(), apply=False)
    again = reopened(store)
    try:
        assert found(again, CELLED, large[0]) == [] and kept_files(again)
        assert CELLED.checkpoint(again) == 0
        assert kept_files(again) == []
    finally:
        again.close()
