"""From what size on cells pay: python loadtests/vectors.py [--sizes 10000 60000 100000 200000]

One account's vectors are searched exactly, by reading all their eight-bit codes, and by cells, for
the K best of all and of what filters leave. Vectors are embeddings of this directory's own texts
with noise, so that they lie in the clusters that texts make. Printed are milliseconds of processor
time a search (medians, the two ways in turns), the recall by cells of the ten best against the
exact ones, bytes in memory a vector, and the seconds of processor time that learning the cells,
putting all vectors into them and writing the file takes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests import conversations
from runtime.inference import MiniLmEmbedder
from storage.indexes import BoundVectors, Ordinals, Scores, VectorIndex
from storage.store import Identity, Scope, Store, Transaction

WIDTH = 384
SPACE = "model:384"
ACCOUNT = Scope(1, 1)
IDENTITY = Identity("", 0, 1, 4096, 1)
EXACT, CELLED = VectorIndex("exact", exact_max=1 << 40), VectorIndex("celled", exact_max=0)
TEXTS, NOISE = 2_000, 0.5
K, TOP = 200, 10  # what ranking asks for, and what recall is counted of
SHARES = (1.0, 0.5, 0.05, 0.005)
QUERIES = 40
BUILT_LOOK_SECONDS = 0.1

Result = TypeVar("Result")


def embeddings(count: int) -> NDArray[np.float32]:
    """(count, WIDTH) unit vectors, as near to each other as texts are."""
    rng = np.random.default_rng(0)
    texts = [memory["content"] for memory in conversations.memories(TEXTS)]
    with tempfile.TemporaryDirectory(prefix="mneme-vectors-") as models:
        made = asyncio.run(MiniLmEmbedder(Path(models), timeout_seconds=600).embed(texts))
    drawn = made[rng.integers(0, TEXTS, count)]
    noise = rng.normal(size=(count, WIDTH)).astype(np.float32) / np.sqrt(WIDTH)
    drawn = drawn + NOISE * noise
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def fill(store: Store, index: VectorIndex, vectors: NDArray[np.float32]) -> None:
    for first in range(0, len(vectors), 4_096):

        def put(transaction: Transaction, first: int = first) -> None:
            bound = index.bind(transaction, ACCOUNT)
            for number, vector in enumerate(vectors[first : first + 4_096], first):
                bound.put(SPACE, number, vector)

        store.write(put)


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What it returns, and milliseconds of processor time."""
    begun = time.process_time()
    result = work()
    return result, (time.process_time() - begun) * 1000


def until_built(store: Store) -> None:
    while store.residents.peek((CELLED.name, ACCOUNT)).is_behind:
        time.sleep(BUILT_LOOK_SECONDS)


def compared(store: Store, vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> None:
    indexes = {"exact": EXACT, "cells": CELLED}
    for index in indexes.values():
        fill(store, index, vectors)
    with store.snapshot() as snapshot:
        bound = {way: index.bind(snapshot, ACCOUNT) for way, index in indexes.items()}
        for each in bound.values():
            each.scan(SPACE, queries[:1])
        _, built = timed(partial(until_built, store))
        bytes_each = {
            way: store.residents.peek((index.name, ACCOUNT)).nbytes / len(vectors)
            for way, index in indexes.items()
        }
        rng = np.random.default_rng(1)
        for share in SHARES:
            chosen = rng.choice(len(vectors), int(share * len(vectors)), replace=False)
            allowed = None if share == 1 else BitMap(np.sort(chosen).astype(np.uint32))
            times: dict[str, list[float]] = {way: [] for way in indexes}
            kept_of_best = 0
            for query in queries:
                best: dict[str, set[int]] = {}
                for way, each in bound.items():
                    (ordinals, _), cost = timed(partial(searched, each, query, allowed))
                    times[way].append(cost)
                    best[way] = set(ordinals[:TOP].tolist())
                kept_of_best += len(best["exact"] & best["cells"])
            print(
                f"{len(vectors):>8} {share:>7.1%} {statistics.median(times['exact']):>9.2f}"
                f" {statistics.median(times['cells']):>9.2f}"
                f" {kept_of_best / TOP / len(queries):>8.3f}"
                f" {bytes_each['exact']:>9.0f} {bytes_each['cells']:>9.0f} {built / 1000:>8.0f}",
                flush=True,
            )


def searched(
    bound: BoundVectors, query: NDArray[np.float32], allowed: BitMap | None
) -> tuple[Ordinals, Scores]:
    (scan,) = bound.scan(SPACE, query)
    return scan.best(K, allowed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 60_000, 100_000, 200_000])
    sizes = sorted(parser.parse_args().sizes)
    vectors = embeddings(sizes[-1] + QUERIES)
    print(
        f"{'vectors':>8} {'allowed':>7} {'exact ms':>9} {'cells ms':>9} {'recall':>8}"
        f" {'exact B':>9} {'cells B':>9} {'build s':>8}"
    )
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="mneme-vectors-") as directory:
            tables = [*EXACT.tables, *CELLED.tables]
            store = Store.open(Path(directory), tables, identity=IDENTITY, create=True)
            try:
                store.residents.bytes_max = 1 << 40
                compared(store, vectors[:size], vectors[-QUERIES:])
            finally:
                store.close()


if __name__ == "__main__":
    main()
