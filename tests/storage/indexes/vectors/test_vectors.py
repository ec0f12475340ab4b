"""The vector index against plain matrices: changes, spaces, the graph and its checkpoints, crashes,
and states loaded late.
"""

from __future__ import annotations

import itertools
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from storage.indexes.vectors import BoundVectors, VectorIndex
from storage.indexes.vectors import space as vectors_space
from storage.indexes.vectors.hnsw import DIRECTORY, Graph
from storage.store import Identity, Scope, Store

SPACE, WIDTH = "model:16", 16
EXACT = VectorIndex("exact")
GRAPHED = VectorIndex("graphed", exact_max=200)
IDENTITY = Identity("", 0, 1, 4096, 1)
ALICE = Scope(2, 1)
TENANTS = itertools.count(10)
WAIT_SECONDS_MAX = 60
CODED = 0.01  # how far a cosine by eight-bit codes of such narrow vectors may be off


def open_store(directory: Path) -> Store:
    return Store.open(directory, [*EXACT.tables, *GRAPHED.tables], identity=IDENTITY, create=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "shard")
    yield store
    store.close()


@pytest.fixture(autouse=True)
def low_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters that leave more than 50 vectors may go through the graph."""
    monkeypatch.setattr(vectors_space, "GATHERED_MAX", 50)


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


def checkpoint_files(store: Store) -> list[Path]:
    return sorted((store.directory / DIRECTORY).glob("*"))


# --- exact scans ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index", [EXACT, VectorIndex("graphed", exact_max=30)], ids=["exact", "graph"]
)
@pytest.mark.parametrize("seed", range(3))
def test_random_changes_answer_like_a_plain_scan(
    store: Store, index: VectorIndex, seed: int
) -> None:
    rng = random.Random(seed)
    vectors = clustered(4_000, seed)
    fresh = iter(vectors)
    model: dict[int, np.ndarray] = {}
    missed = 0
    for step in range(60):

        def work(bound: BoundVectors) -> None:
            for _ in range(rng.randrange(1, 15)):
                ordinal = rng.randrange(150)
                if rng.random() < 0.7:
                    model[ordinal] = next(fresh)
                    bound.put(SPACE, ordinal, model[ordinal])
                else:
                    assert bound.delete(SPACE, ordinal) == (model.pop(ordinal, None) is not None)

        change(store, index, work)
        if step % 17 == 5:
            store.residents.clear()
        if step % 13 == 7:
            index.checkpoint(store)
        query = vectors[-1 - step]
        allowed = rng.choice([None, BitMap(model), BitMap(rng.sample(range(200), 80))])
        answer = found(store, index, query, 5, allowed)
        due = expected(model, query, 5, allowed)
        assert (
            answer == due
            if index is EXACT
            else answer == expected(model, query, 5, BitMap(answer)) and len(answer) == len(due)
        )
        assert set(answer) <= (set(model) if allowed is None else set(model) & set(allowed))
        missed += len(set(due) - set(answer))
    assert missed <= 3, (
        "of 300; a walk through a graph may miss a neighbour, since threads that build it race"
    )


@pytest.mark.parametrize("index", [EXACT, GRAPHED], ids=["exact", "graph"])
def test_a_scan_answers_like_a_search_and_tells_single_cosines(
    store: Store, index: VectorIndex
) -> None:
    vectors = clustered(400)
    change(store, index, put_all(vectors))
    change(store, index, lambda bound: bound.delete(SPACE, 7))
    index.checkpoint(store)
    allowed = BitMap(range(0, 400, 3)) | BitMap([100_000])
    with store.snapshot() as snapshot:
        bound = index.bind(snapshot, ALICE)
        for query, scan in zip(vectors[:5], bound.scan(SPACE, vectors[:5]), strict=True):
            for within in (None, allowed):
                ordinals, scores = scan.best(4, within)
                assert ordinals.tolist() == bound.search(SPACE, query, 4, within)[0][0].tolist()
                if within is not None:
                    members = np.array(within, np.uint32)
                    assert scan.best(4, within, members)[0].tolist() == ordinals.tolist()
                assert scores.tolist() == pytest.approx(
                    (vectors[ordinals] @ query).tolist(), abs=CODED
                )
            assert scan.at(np.array([3, 7, 399, 100_000])).tolist() == pytest.approx(
                [vectors[3] @ query, 0, vectors[399] @ query, 0], abs=CODED
            )


def test_a_scan_of_a_space_without_vectors_finds_nothing(store: Store) -> None:
    with store.snapshot() as snapshot:
        (scan,) = EXACT.bind(snapshot, ALICE).scan(SPACE, np.ones(WIDTH, np.float32))
    assert len(scan.best(5, None)[0]) == 0 and scan.at(np.array([1, 2])).tolist() == [0, 0]


def test_a_scan_keeps_what_it_saw_while_changes_go_on(store: Store) -> None:
    vectors = clustered(50)
    change(store, EXACT, put_all(vectors))
    with store.snapshot() as snapshot:
        (scan,) = EXACT.bind(snapshot, ALICE).scan(SPACE, vectors[0])
    change(store, EXACT, put_all(clustered(500, 5), first=50))
    change(store, EXACT, lambda bound: bound.put(SPACE, 0, -vectors[0]))
    assert scan.best(1, None)[0].tolist() == [0] and scan.at(np.array([0]))[0] == pytest.approx(
        1, abs=CODED
    )


def test_scores_are_dot_products_and_many_queries_are_one_call(store: Store) -> None:
    vectors = clustered(100)
    change(store, EXACT, put_all(vectors))
    with store.snapshot() as snapshot:
        bound = EXACT.bind(snapshot, ALICE)
        answers = bound.search(SPACE, vectors[:7], 3)
        assert [answer[0][0] for answer in answers] == list(range(7))
        for query, (ordinals, scores) in zip(vectors, answers, strict=False):
            assert scores.tolist() == pytest.approx((vectors[ordinals] @ query).tolist(), abs=1e-6)
            assert scores.dtype == np.float32 and ordinals.dtype == np.uint32
        assert (bound.get(SPACE, 5) == vectors[5]).all() and bound.get(SPACE, 1_000) is None
        assert bound.count(SPACE) == 100


def test_equal_scores_come_newest_first(store: Store) -> None:
    change(store, EXACT, put_all(np.tile(clustered(1), (20, 1))))
    assert found(store, EXACT, clustered(1)[0], 3) == [19, 18, 17]


def test_a_removed_or_updated_vector_is_gone_from_the_next_search(store: Store) -> None:
    vectors = clustered(300)
    for index in (EXACT, GRAPHED):
        change(store, index, put_all(vectors))
        index.checkpoint(store)
        query = vectors[7]
        assert found(store, index, query, 1) == [7]
        change(store, index, lambda bound, query=query: bound.put(SPACE, 7, -query))
        assert 7 not in found(store, index, query, 100)
        change(store, index, lambda bound, query=query: bound.put(SPACE, 7, query))
        assert found(store, index, query, 1) == [7]
        change(store, index, lambda bound: bound.delete(SPACE, 7))
        assert 7 not in found(store, index, query, 299)
        change(store, index, lambda bound, query=query: bound.put(SPACE, 7, query))
        assert found(store, index, query, 1) == [7]


def test_spaces_and_tenants_never_mix(store: Store) -> None:
    bob = Scope(2, 2)
    vectors = clustered(30)
    wide = clustered(30, width=24)

    def work(bound: BoundVectors) -> None:
        put_all(vectors[:10])(bound)
        put_all(wide, first=100, space="wide:24")(bound)

    change(store, EXACT, work)
    change(store, EXACT, put_all(vectors[10:], first=50), bob)
    for _ in range(2):  # fed by apply, then loaded
        assert set(found(store, EXACT, vectors[0], 99)) == set(range(10))
        assert set(found(store, EXACT, vectors[0], 99, scope=bob)) == set(range(50, 70))
        with store.snapshot() as snapshot:
            bound = EXACT.bind(snapshot, ALICE)
            assert bound.spaces() == [SPACE, "wide:24"]
            assert set(bound.search("wide:24", wide[0], 99)[0][0].tolist()) == set(range(100, 130))
            assert bound.search("other", wide[:2], 5)[1][0].tolist() == []
            with pytest.raises(ValueError, match="16 numbers, not 24"):
                bound.search(SPACE, wide[0], 5)
        store.residents.clear()


def test_what_cannot_be_compared_is_refused(store: Store) -> None:
    def work(bound: BoundVectors) -> None:
        bound.put(SPACE, 1, clustered(1)[0])
        for bad in (clustered(1, width=8)[0], clustered(2), [], [np.nan] * WIDTH):
            with pytest.raises(ValueError, match="space"):
                bound.put(SPACE, 2, bad)

    change(store, EXACT, work)
    with store.snapshot() as snapshot:
        assert EXACT.bind(snapshot, ALICE).count(SPACE) == 1


def test_deleting_and_rebuilding_gives_identical_answers(store: Store) -> None:
    vectors = clustered(150)
    change(store, EXACT, put_all(vectors))

    def answers() -> list[tuple[list[int], list[float]]]:
        with store.snapshot() as snapshot:
            return [
                (o.tolist(), s.tolist())
                for o, s in EXACT.bind(snapshot, ALICE).search(SPACE, vectors[:5], 20)
            ]

    before = answers()
    assert change(store, EXACT, lambda bound: bound.clear()) == 150
    assert found(store, EXACT, vectors[0]) == []
    change(store, EXACT, put_all(vectors))
    assert answers() == before
    store.residents.clear()
    assert answers() == before


def test_a_search_in_a_transaction_answers_from_what_is_committed(store: Store) -> None:
    vectors = clustered(4)
    change(store, EXACT, put_all(vectors[:2]))

    def work(bound: BoundVectors) -> None:
        bound.put(SPACE, 3, vectors[3])
        assert (bound.get(SPACE, 3) == vectors[3]).all()
        assert set(bound.search(SPACE, vectors[3], 9)[0][0].tolist()) == {0, 1}

    change(store, EXACT, work)
    assert found(store, EXACT, vectors[3], 1) == [3]


def test_a_failed_child_teaches_nothing(store: Store) -> None:
    vectors = clustered(3)
    change(store, EXACT, put_all(vectors[:1]))
    assert found(store, EXACT, vectors[0]) == [0]

    def work(transaction) -> None:
        EXACT.bind(transaction, ALICE).put(SPACE, 1, vectors[1])
        with pytest.raises(ZeroDivisionError), transaction.child() as child:
            EXACT.bind(child, ALICE).put(SPACE, 2, vectors[2])
            raise ZeroDivisionError

    EXACT.apply(store, store.write(work).notes["exact"])
    assert set(found(store, EXACT, vectors[0])) == {0, 1}


# --- changes that arrive late, twice, or while a state is loaded ----------------------------------


def test_a_state_loaded_from_an_old_snapshot_catches_up(store: Store) -> None:
    vectors = clustered(40)
    change(store, EXACT, put_all(vectors[:20]))
    with store.snapshot() as old:
        change(
            store,
            EXACT,
            lambda bound: (
                put_all(vectors[20:], first=20)(bound),
                bound.delete(SPACE, 3),
                bound.put(SPACE, 4, vectors[39]),
            ),
        )
        EXACT.bind(old, ALICE).search(
            SPACE, vectors[0], 1
        )  # loads what this snapshot knows; the commit above is long applied
    assert set(found(store, EXACT, vectors[0], 99)) == set(range(40)) - {3}
    assert set(found(store, EXACT, vectors[39], 2)) == {39, 4}


def test_changes_count_by_their_commit_not_by_their_arrival(store: Store) -> None:
    vectors = clustered(3)
    change(store, EXACT, put_all(vectors[:1]))
    assert found(store, EXACT, vectors[0]) == [0]
    notes = []
    for work in (
        put_all(vectors[1:2]),
        lambda bound: bound.put(SPACE, 0, vectors[2]),
        lambda bound: bound.delete(SPACE, 0),
    ):
        notes.append(
            store.write(lambda transaction, work=work: work(EXACT.bind(transaction, ALICE))).notes[
                "exact"
            ]
        )
    for late in (notes[2], notes[0], notes[1], notes[2]):
        EXACT.apply(store, late)
        assert found(store, EXACT, vectors[0]) == []


@pytest.mark.parametrize("index", [EXACT, GRAPHED], ids=["exact", "graph"])
def test_acknowledged_writes_are_found_while_states_come_and_go(
    store: Store, index: VectorIndex
) -> None:
    vectors = clustered(600)
    acknowledged = 0
    stop = threading.Event()
    missed: list[int] = []

    def search() -> None:
        rng = random.Random(1)
        while not stop.is_set():
            if (known := acknowledged) > 0:
                ordinal = rng.choice([known - 1, rng.randrange(known)])
                if ordinal not in found(store, index, vectors[ordinal], 3):
                    missed.append(ordinal)

    def evict() -> None:
        while not stop.wait(0.001):
            store.residents.clear()

    threads = [threading.Thread(target=target) for target in (search, search, evict)]
    for thread in threads:
        thread.start()
    for ordinal, vector in enumerate(vectors):
        change(
            store,
            index,
            lambda bound, ordinal=ordinal, vector=vector: bound.put(SPACE, ordinal, vector),
        )
        acknowledged = ordinal + 1
    stop.set()
    for thread in threads:
        thread.join()
    assert missed == []


def test_resident_bytes_are_counted_and_evicted_states_come_back(store: Store) -> None:
    vectors = clustered(50)
    scopes = [Scope(2, next(TENANTS)) for _ in range(4)]
    for scope in scopes:
        change(store, EXACT, put_all(vectors), scope)
    store.residents.bytes_max = 8_000
    for scope in scopes * 2:
        assert found(store, EXACT, vectors[9], 1, scope=scope) == [9]
        assert store.residents.stats()["bytes"] <= 8_000
    assert store.residents.stats()["evictions"] > 0


# --- the graph ------------------------------------------------------------------------------------


@pytest.fixture
def large(store: Store) -> dict[int, np.ndarray]:
    """2,000 clustered vectors of Alice in the graphed index, half of them learned by apply."""
    vectors = clustered(2_000)
    change(store, GRAPHED, put_all(vectors[:1_000]))
    found(store, GRAPHED, vectors[0])
    for first in range(1_000, 2_000, 100):
        change(store, GRAPHED, put_all(vectors[first : first + 100], first=first))
    caught_up(store)
    return dict(enumerate(vectors))


def caught_up(store: Store) -> None:
    """Wait until the graph holds what the commits brought."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while store.residents.peek(("graphed", ALICE)).space(SPACE).is_behind:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def graph_of(store: Store) -> object:
    return store.residents.peek(("graphed", ALICE)).space(SPACE).graph


def test_the_graph_recalls_what_the_scan_finds(store: Store, large: dict[int, np.ndarray]) -> None:
    queries = clustered(60, seed=5)
    assert len(graph_of(store).members) > 1_000
    assert recall(store, GRAPHED, large, queries) >= 0.98
    assert GRAPHED.checkpoint(store) == 1
    assert len(graph_of(store).members) == 2_000
    for allowed in (
        None,
        BitMap(large),
        BitMap(range(0, 2_000, 3)),
        BitMap(range(0, 2_000, 25)),
        BitMap(range(0, 2_000, 100)),
    ):
        assert recall(store, GRAPHED, large, queries, allowed) >= 0.98
    for query in queries[:5]:
        assert len(found(store, GRAPHED, query, 1_500)) == 1_500
        assert len(found(store, GRAPHED, query, 5_000)) == 2_000


def test_no_commit_waits_for_the_graph(
    store: Store, large: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    take = Graph.take

    def held_up(self: Graph, *given: object) -> None:
        began.set()
        assert go_on.wait(WAIT_SECONDS_MAX)
        take(self, *given)

    monkeypatch.setattr(Graph, "take", held_up)
    vectors = clustered(40, seed=21)
    change(store, GRAPHED, put_all(vectors, first=2_000))
    assert began.wait(WAIT_SECONDS_MAX)

    def meanwhile(bound: BoundVectors) -> None:
        for number in range(0, 20):
            assert bound.delete(SPACE, 2_000 + number)
        for number in range(20, 40):
            bound.put(SPACE, 2_000 + number, vectors[39 - number])

    change(store, GRAPHED, meanwhile)
    after = large | {2_000 + number: vectors[39 - number] for number in range(20, 40)}
    for _ in range(2):
        assert recall(store, GRAPHED, after, vectors) >= 0.98
        for vector in vectors:
            assert not set(found(store, GRAPHED, vector, 500)) & set(range(2_000, 2_020))
        go_on.set()
        caught_up(store)
    assert len(graph_of(store).members) == 2_020


def test_the_graph_forgets_and_relearns(store: Store, large: dict[int, np.ndarray]) -> None:
    GRAPHED.checkpoint(store)
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

    change(store, GRAPHED, work)
    queries = clustered(40, seed=6)
    assert recall(store, GRAPHED, large, queries) >= 0.98, "before the graph knows of it"
    caught_up(store)
    assert recall(store, GRAPHED, large, queries) >= 0.98
    GRAPHED.checkpoint(store)
    assert recall(store, GRAPHED, large, queries) >= 0.98
    change(
        store,
        GRAPHED,
        lambda bound: [bound.delete(SPACE, ordinal) for ordinal in list(large)[:1_300]],
    )
    assert graph_of(store) is None or not graph_of(store).pending
    assert recall(store, GRAPHED, dict(list(large.items())[1_300:]), queries[:5]) == 1.0


def reopened(store: Store, prepare: Callable[[Path], None] = lambda directory: None) -> Store:
    """What a crash leaves: the files as they are, without a word to the indexes. GRAPHED's own
    memory of the store is not used.
    """
    copy = store.directory.with_name(f"copy{next(TENANTS)}")
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
        (missing("*.hnsw"), False),
        (damage("*.hnsw"), False),
        (damage("*.head"), False),
        (cut("*.hnsw"), False),
        (cut("*.head"), False),
    ],
    ids=["kept", "no-files", "no-graph", "damaged-graph", "damaged-head", "cut-graph", "cut-head"],
)
def test_a_crash_loses_nothing_whatever_became_of_the_checkpoint(
    store: Store, large: dict[int, np.ndarray], prepare: Callable[[Path], None], usable: bool
) -> None:
    GRAPHED.checkpoint(store)
    other = clustered(200, seed=8)

    def after_the_checkpoint(bound: BoundVectors) -> None:
        put_all(other[:100], first=2_000)(bound)
        for number in range(100):
            bound.put(SPACE, number, other[100 + number])
            bound.delete(SPACE, 500 + number)

    change(store, GRAPHED, after_the_checkpoint, apply=False)
    for number in range(100):
        large[2_000 + number] = other[number]
        large[number] = other[100 + number]
        del large[500 + number]
    again = reopened(store, prepare)
    try:
        queries = np.concatenate([clustered(20, seed=9), other[::20]])
        assert recall(again, GRAPHED, large, queries) >= 0.98
        assert (graph_of(again) is not None) == usable
        assert not set(found(again, GRAPHED, clustered(1)[0], 2_000)) & set(range(500, 600))
        assert GRAPHED.checkpoint(again) == 1
        assert len(graph_of(again).members) == len(large)
        assert recall(again, GRAPHED, large, queries) >= 0.98
    finally:
        again.close()


def test_a_checkpoint_of_another_history_is_ignored(
    store: Store, large: dict[int, np.ndarray]
) -> None:
    early = reopened(store)
    GRAPHED.checkpoint(store)
    try:
        replaced = clustered(2_000, seed=11)
        change(early, GRAPHED, put_all(replaced))
        for _ in range(30):
            change(early, EXACT, put_all(replaced[:1]))
        shutil.copytree(
            store.directory / DIRECTORY, early.directory / DIRECTORY, dirs_exist_ok=True
        )
        early.residents.clear()
        assert recall(early, GRAPHED, dict(enumerate(replaced)), clustered(20, seed=12)) >= 0.98
    finally:
        early.close()


def test_an_unchanged_graph_is_not_written_again_and_old_files_go(
    store: Store, large: dict[int, np.ndarray]
) -> None:
    assert GRAPHED.checkpoint(store) == 1
    before = checkpoint_files(store)
    assert [path.suffix for path in before] == [".hnsw", ".head"] or [
        path.suffix for path in before
    ] == [".head", ".hnsw"]
    assert GRAPHED.checkpoint(store) == 0
    change(store, GRAPHED, put_all(clustered(1, seed=4), first=2_000))
    assert GRAPHED.checkpoint(store) == 1
    assert len(checkpoint_files(store)) == 2 and checkpoint_files(store) != before


def test_clearing_a_tenant_takes_its_checkpoint_along(
    store: Store, large: dict[int, np.ndarray]
) -> None:
    GRAPHED.checkpoint(store)
    assert change(store, GRAPHED, lambda bound: bound.clear()) == 2_000
    assert checkpoint_files(store) == []
    assert found(store, GRAPHED, large[0]) == []
    change(store, GRAPHED, put_all(clustered(300)))
    assert found(store, GRAPHED, clustered(300)[5], 1) == [5]


def test_a_checkpoint_left_by_a_crash_after_clearing_is_swept(
    store: Store, large: dict[int, np.ndarray]
) -> None:
    GRAPHED.checkpoint(store)
    change(store, GRAPHED, lambda bound: bound.clear(), apply=False)
    again = reopened(store)
    try:
        assert found(again, GRAPHED, large[0]) == []
        assert GRAPHED.checkpoint(again) == 0
        assert checkpoint_files(again) == []
    finally:
        again.close()
