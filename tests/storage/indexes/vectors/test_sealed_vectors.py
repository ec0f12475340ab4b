"""Nothing that a vector could be read from lies open beside a store that has keys: neither rows nor
the files of spaces.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from storage.indexes.kept import DIRECTORY
from storage.indexes.vectors import VectorIndex
from storage.indexes.vectors import space as vectors_space
from storage.indexes.vectors.quantised import quantised
from storage.indexes.vectors.tenant import TenantVectors
from storage.store import Identity, Scope, Store, sealed_file

INDEX = VectorIndex("celled", exact_max=50)
ALICE = Scope(2, 1)
COUNT, WIDTH = 80, 24
WAIT_SECONDS_MAX = 60


@pytest.fixture(autouse=True)
def files_of_small_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_space, "KEPT_MIN", 1)


def opened(directory: Path, key: bytes | None = b"s" * 32) -> Store:
    return Store.open(
        directory, INDEX.tables, identity=Identity("", 0, 1, 4096, 1), create=True, service_key=key
    )


def filled(store: Store) -> np.ndarray:
    vectors = np.random.default_rng(4).normal(size=(COUNT, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def work(transaction) -> None:
        for ordinal, vector in enumerate(vectors):
            INDEX.bind(transaction, ALICE).put("space", ordinal, vector)

    INDEX.apply(store, store.write(work).notes[INDEX.name])
    return vectors


def nearest(store: Store, query: np.ndarray) -> list[int]:
    with store.snapshot() as snapshot:
        return INDEX.bind(snapshot, ALICE).search("space", query, 3)[0][0].tolist()


def held_open(store: Store, vectors: np.ndarray) -> int:
    """How many vectors some file has, as they came or as they are resident."""
    kept = quantised(vectors).codes
    files = b"\0".join(path.read_bytes() for path in store.directory.rglob("*") if path.is_file())
    return sum(row.tobytes() in files for row in (*vectors, *kept))


def state(store: Store) -> TenantVectors:
    found = store.residents.peek((INDEX.name, ALICE))
    assert isinstance(found, TenantVectors)
    return found


def written(store: Store) -> list[Path]:
    """Wait for the file."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while state(store).is_behind:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (found,) = (store.directory / DIRECTORY).glob("*.rows")
    return [found]


@pytest.mark.parametrize("frame_bytes", [1 << 20, 1_000])
def test_neither_rows_nor_files_lie_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame_bytes: int
) -> None:
    monkeypatch.setattr(sealed_file, "FRAME_BYTES", frame_bytes)
    store = opened(tmp_path / "shard")
    vectors = filled(store)
    before = nearest(store, vectors[7])
    files = written(store)
    assert held_open(store, vectors) == 0
    store.close()
    store = opened(tmp_path / "shard")
    assert nearest(store, vectors[7]) == before
    assert written(store) == files, "the one there was used"
    assert held_open(store, vectors) == 0
    store.keys.shred(ALICE.prefix)
    store.residents.clear()
    store.close()
    store = opened(tmp_path / "shard")
    with pytest.raises(Exception, match="shredded"):
        nearest(store, vectors[7])
    store.close()


def test_a_store_without_keys_keeps_its_files_open(tmp_path: Path) -> None:
    store = opened(tmp_path / "shard", None)
    vectors = filled(store)
    nearest(store, vectors[7])
    written(store)
    assert held_open(store, vectors) == 2 * COUNT, "what the other test looks for can be found"
    store.close()


def test_a_damaged_frame_is_told(tmp_path: Path) -> None:
    store = opened(tmp_path / "shard")
    path, back = tmp_path / "file", tmp_path / "back"
    back.write_bytes(bytes(range(256)) * 8)
    keys, scope = store.keys, ALICE.prefix
    assert keys is not None
    with back.open("rb") as source:
        sealed_file.seal_file(keys, scope, "name", source, path)
    whole = path.read_bytes()
    with back.open("wb") as target:
        sealed_file.unseal_file(keys, scope, "name", path, target)
    assert back.read_bytes() == bytes(range(256)) * 8
    for content, name in ((whole[:-1], "name"), (whole[:5], "name"), (whole, "another")):
        path.write_bytes(content)
        with back.open("wb") as target, pytest.raises(sealed_file.StoreDamaged):
            sealed_file.unseal_file(keys, scope, name, path, target)
    store.close()
