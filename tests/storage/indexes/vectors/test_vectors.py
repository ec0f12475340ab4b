"""The vector index against plain matrices: changes, spaces, and states loaded late."""

from __future__ import annotations

import itertools
import random
import threading

import numpy as np
import pytest
from pyroaring import BitMap

from storage.indexes.vectors import BoundVectors, VectorIndex, cells
from storage.store import Scope, Store
from tests.support.vectors import (
    ALICE,
    CELLED,
    EXACT,
    SPACE,
    WIDTH,
    change,
    clustered,
    expected,
    found,
    put_all,
)

pytestmark = pytest.mark.usefixtures("low_thresholds")
TENANTS = itertools.count(10)
CODED = 0.01  # how far a cosine by eight-bit codes of such narrow vectors may be off


# --- exact scans ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index", [EXACT, VectorIndex("celled", exact_max=30)], ids=["exact", "cells"]
)
@pytest.mark.parametrize("seed", range(3))
def test_random_changes_answer_like_a_plain_scan(
    store: Store, index: VectorIndex, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "PROBED", 5.5)  # a cell of one vector tells little of its neighbours
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
        "of 300; a search by cells may miss a neighbour, and threads that make them race"
    )


@pytest.mark.parametrize("index", [EXACT, CELLED], ids=["exact", "cells"])
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
    for index in (EXACT, CELLED):
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


@pytest.mark.parametrize("index", [EXACT, CELLED], ids=["exact", "cells"])
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
