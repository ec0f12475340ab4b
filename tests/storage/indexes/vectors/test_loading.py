"""What comes while vectors are read into memory, out of their rows or out of a file, while a file
is written, and while a slot arrives from another store.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from storage.indexes import applied, build_for_slot, forget_tenants, kept
from storage.indexes.builder import Builder
from storage.indexes.kept import DIRECTORY
from storage.indexes.vectors import BoundVectors
from storage.indexes.vectors.space import KeptVectors
from storage.store import BoundTable, Store, slot_rows
from tests.support.vectors import (
    ALICE,
    CELLED,
    EXACT,
    IDENTITY,
    SPACE,
    change,
    clustered,
    found,
    open_store,
    put_all,
)

pytestmark = pytest.mark.usefixtures("low_thresholds", "without_builder")
PIECE_BYTES = 16_000


@pytest.fixture
def without_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written when a test asks for it."""
    monkeypatch.setattr(Builder, "want", lambda *_: None)
    monkeypatch.setattr(kept, "KEPT_SHARE", 0)


@pytest.fixture
def vectors(store: Store) -> np.ndarray:
    """2,000 of Alice, with their file, and none of them in memory."""
    made = clustered(2_000)
    change(store, CELLED, put_all(made))
    found(store, CELLED, made[0])
    assert CELLED.checkpoint(store) == 1
    store.residents.clear()
    return made


def known(store: Store) -> set[int]:
    """The ordinals that are in memory: a scan asks no row."""
    with store.snapshot() as snapshot:
        (scan,) = CELLED.bind(snapshot, ALICE).scan(SPACE, clustered(1))
        return set(scan.best(10_000, None)[0].tolist())


def once_read(
    monkeypatch: pytest.MonkeyPatch, store: Store, *works: Callable[[BoundVectors], object]
) -> None:
    """Have this be done, each in a commit of its own, when the file was read and nothing else."""
    read, left = KeptVectors.read, list(works)

    def read_first(*given) -> KeptVectors | None:
        found = read(*given)
        assert found is not None
        while left:
            change(store, CELLED, left.pop(0))
        return found

    monkeypatch.setattr(KeptVectors, "read", read_first)


def delete(ordinals: Iterable[int]) -> Callable[[BoundVectors], None]:
    return lambda bound: [bound.delete(SPACE, ordinal) for ordinal in ordinals] and None


def test_what_is_deleted_while_the_file_is_read_is_gone_for_good(
    store: Store, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    once_read(monkeypatch, store, delete(range(40)))
    assert known(store) == set(range(40, 2_000))
    change(store, CELLED, put_all(vectors[:1], first=2_000))
    assert CELLED.checkpoint(store) == 1
    store.residents.clear()
    assert known(store) == set(range(40, 2_001))


def test_what_is_deleted_while_rows_are_read_is_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, scan, begun = clustered(60), BoundTable.scan, []

    def scan_first(table: BoundTable, *given, **also):
        rows = list(scan(table, *given, **also))
        if table.table.name == "celled.vectors" and not begun:
            begun.append(table)
            change(store, CELLED, delete([7]))
        return iter(rows)

    change(store, CELLED, put_all(made))
    monkeypatch.setattr(BoundTable, "scan", scan_first)
    assert known(store) == set(range(60)) - {7} and begun


@pytest.mark.parametrize("first", [None, 7_000])
def test_what_is_cleared_while_the_file_is_read_is_gone(
    store: Store, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch, first: int | None
) -> None:
    """Whether or not a change came before it that the space was made for."""
    before = [] if first is None else [put_all(vectors[:1], first=first)]
    once_read(monkeypatch, store, *before, lambda bound: bound.clear())
    assert known(store) == set()
    change(store, CELLED, put_all(vectors[:10], first=5_000))
    assert known(store) == set(range(5_000, 5_010))


def test_who_is_told_late_that_all_was_cleared_keeps_what_came_after_it(tmp_path: Path) -> None:
    owner, made, told = open_store(tmp_path / "shard"), clustered(30), []
    change(owner, EXACT, put_all(made[:10]))
    for work in (
        lambda bound: bound.clear() and None,
        put_all(made[10:15], first=10),
        put_all(made[15:20], first=15),
    ):
        committed = owner.write(lambda write, work=work: work(EXACT.bind(write, ALICE)))
        told.append((committed.sequence, committed.notes["exact"]))
    owner.close()
    reader = Store.open_to_read(
        tmp_path / "shard", [*EXACT.tables, *CELLED.tables], identity=IDENTITY
    )
    try:
        for sequence, own in ((0, []), *told):
            reader.saw(sequence)
            EXACT.apply(reader, own)
            assert set(found(reader, EXACT, made[10], 99)) == set(range(10, 20))
    finally:
        reader.close()


def test_a_copy_of_before_a_commit_does_not_believe_a_file_that_has_it(
    store: Store, vectors: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a backup that has the rows of one moment, and the file that was being written then."""
    through, copy = applied.Applied.is_through, tmp_path / "copy"

    def copied_first(self: applied.Applied, of: Store) -> bool:
        if not copy.exists():
            store.backup(copy)
            change(store, CELLED, put_all(-vectors[3:4], first=3))
            change(store, CELLED, delete([4]))
        return through(self, of)

    monkeypatch.setattr(applied.Applied, "is_through", copied_first)
    change(store, CELLED, put_all(vectors[:1], first=2_000))
    found(store, CELLED, vectors[0])
    assert CELLED.checkpoint(store) == 1
    shutil.copytree(store.directory / DIRECTORY, copy / DIRECTORY, dirs_exist_ok=True)
    again = Store.open(copy, CELLED.tables, identity=IDENTITY, create=False)
    try:
        assert found(again, CELLED, vectors[3], 1) == [3] and known(again) == set(range(2_001))
    finally:
        again.close()


def test_a_file_that_was_built_while_a_slot_arrived_tells_no_more_than_it_has(
    store: Store, vectors: np.ndarray, tmp_path: Path
) -> None:
    """Row by row, while what was copied already is changed; then what had changed."""
    target = open_store(tmp_path / "target")
    here, there = (
        slot_rows.by_code(store, CELLED.tables),
        {table.name: table for table in CELLED.tables},
    )
    after, pieces, hold = b"", 0, store.log.hold()
    while after or not pieces:
        with store.snapshot() as snapshot:
            piece = slot_rows.read(snapshot, here, ALICE.slot, after, PIECE_BYTES)
        target.write(lambda write, piece=piece: slot_rows.write(write, there, piece.rows))
        after, pieces = piece.after, pieces + 1
        if pieces == 8:
            assert {row.table for row in piece.rows} == {"celled.vectors"}
            change(store, CELLED, put_all(-vectors[3:4], first=3))
            change(store, CELLED, delete([4]))
    assert build_for_slot(target, [CELLED], ALICE.slot) == 1
    changed = {place for record in store.log.read(hold.after) for place, _ in record.changes}
    with store.snapshot() as snapshot:
        rows = slot_rows.read_changed(snapshot, here, sorted(changed))
    target.write(lambda write: slot_rows.write(write, there, rows))
    forget_tenants(target, [CELLED], [ALICE], files=False)
    try:
        assert found(target, CELLED, -vectors[3], 1) == [3]
        assert known(target) == set(range(2_000)) - {4}
    finally:
        hold.release()
        target.close()


@pytest.mark.parametrize("by", ["checkpoint", "erasure"])
def test_what_a_crash_left_before_its_head_was_written_goes(
    store: Store, vectors: np.ndarray, by: str
) -> None:
    folder = store.directory / DIRECTORY
    whole = set(folder.glob("*"))
    of_alice = f"celled-{ALICE.slot:04x}-{ALICE.tenant:08x}-{'0' * 16}"
    for name in (f"{of_alice}-{'1' * 16}.rows", f"{of_alice}.partial"):
        (folder / name).write_bytes(b"sealed")
    if by == "checkpoint":
        CELLED.checkpoint(store)
        assert set(folder.glob("*")) == whole
    else:
        CELLED.forget(store, ALICE, files=True)
        assert not list(folder.glob("*"))
