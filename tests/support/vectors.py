"""Vector indexes of few and narrow vectors, what is done to them, and what they should answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyroaring import BitMap

from storage.indexes.kept import DIRECTORY
from storage.indexes.vectors import BoundVectors, VectorIndex
from storage.store import Identity, Scope, Store

SPACE, WIDTH = "model:16", 16
EXACT = VectorIndex("exact")
CELLED = VectorIndex("celled", exact_max=200)
IDENTITY = Identity("", 0, 1, 4096, 1)
ALICE = Scope(2, 1)


def open_store(directory: Path) -> Store:
    return Store.open(directory, [*EXACT.tables, *CELLED.tables], identity=IDENTITY, create=True)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def clustered(count: int, seed: int = 0, width: int = WIDTH) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(40, width))
    return unit(centres[rng.integers(0, 40, count)] + 0.5 * rng.normal(size=(count, width)))


def change(
    store: Store,
    index: VectorIndex,
    work: Callable[[BoundVectors], object],
    scope: Scope = ALICE,
    *,
    apply: bool = True,
) -> object:
    committed = store.write(lambda transaction: work(index.bind(transaction, scope)))
    if apply:
        index.apply(store, committed.notes.get(index.name, []))
    return committed.result


def put_all(
    vectors: np.ndarray, first: int = 0, space: str = SPACE
) -> Callable[[BoundVectors], None]:
    return lambda bound: (
        [bound.put(space, first + number, vector) for number, vector in enumerate(vectors)] and None
    )


def found(
    store: Store,
    index: VectorIndex,
    query: np.ndarray,
    k: int = 10,
    allowed: BitMap | None = None,
    scope: Scope = ALICE,
) -> list[int]:
    with store.snapshot() as snapshot:
        return index.bind(snapshot, scope).search(SPACE, query, k, allowed)[0][0].tolist()


def expected(
    model: dict[int, np.ndarray], query: np.ndarray, k: int, allowed: BitMap | None = None
) -> list[int]:
    scored = [
        (float(vector @ query), ordinal)
        for ordinal, vector in model.items()
        if allowed is None or ordinal in allowed
    ]
    return [ordinal for _, ordinal in sorted(scored, reverse=True)[:k]]


def recall(
    store: Store,
    index: VectorIndex,
    model: dict[int, np.ndarray],
    queries: np.ndarray,
    allowed: BitMap | None = None,
) -> float:
    shares = [
        len(set(found(store, index, query, 10, allowed)) & set(expected(model, query, 10, allowed)))
        / 10
        for query in queries
    ]
    return sum(shares) / len(shares)


def kept_files(store: Store) -> list[Path]:
    return sorted((store.directory / DIRECTORY).glob("*"))
