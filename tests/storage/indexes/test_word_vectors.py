"""Word vectors in a store, against cosines computed plainly."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from storage.indexes.word_vectors import RESIDENT_DOCUMENTS_MAX, WordVectors
from storage.store import Committed, Identity, Scope, Store

WORDS = WordVectors("words_of")
SCOPE, OTHER = Scope(3, 1), Scope(3, 2)
SPACE = "model/16"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(
        tmp_path / "shard", WORDS.tables, identity=Identity("", 0, 1, 4096, 1), create=True
    )
    yield store
    store.close()


def units(count: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(count, 16))
    return np.rint(127 * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.int8)


def change(store: Store, work) -> Committed:
    """A write, and what the writer does after each: feed what is resident."""
    committed = store.write(work)
    WORDS.apply(store, committed.notes.get(WORDS.name, []))
    return committed


def nearest(store: Store, ordinals: list[int]) -> np.ndarray:
    with store.snapshot() as snapshot:
        return WORDS.bind(snapshot, SCOPE).nearest(SPACE, np.array(ordinals), units(2, 2))


def test_nearest_is_the_best_cosine_of_each_documents_words(store: Store) -> None:
    documents = {1: units(5, 1), 4: units(1, 2), 9: units(30, 3)}
    change(
        store,
        lambda writer: [
            WORDS.bind(writer, SCOPE).put(SPACE, ordinal, words)
            for ordinal, words in documents.items()
        ],
    )
    query = units(3, 7)
    with store.snapshot() as snapshot:
        found = WORDS.bind(snapshot, SCOPE).nearest(SPACE, np.array([9, 2, 1, 4]), query)
        elsewhere = WORDS.bind(snapshot, OTHER).nearest(SPACE, np.array([9, 1]), query)
        in_another_space = WORDS.bind(snapshot, SCOPE).nearest("model/32", np.array([9]), query)
    for row, ordinal in zip(found, (9, 2, 1, 4), strict=True):
        plain = (
            (documents[ordinal].astype(float) @ query.T.astype(float) / 127**2).max(axis=0)
            if ordinal in documents
            else np.zeros(3)
        )
        assert row.tolist() == pytest.approx(np.maximum(plain, 0).tolist(), abs=1e-5)
    assert not elsewhere.any() and not in_another_space.any()


def test_what_is_read_from_rows_is_what_is_resident(store: Store) -> None:
    many = {ordinal: units(1 + ordinal % 7, ordinal) for ordinal in range(0, 400, 3)}

    def put(writer) -> None:
        for ordinal, words in many.items():
            WORDS.bind(writer, SCOPE).put(SPACE, ordinal, words)

    change(store, put)
    chance, query = np.random.default_rng(5), units(3, 7)
    ordinals = np.sort(chance.choice(400, 90, replace=False)).astype(np.uint32)
    places = chance.integers(-1, 90, 200, dtype=np.int32)
    with store.snapshot() as snapshot:
        bound = WORDS.bind(snapshot, SCOPE)
        for some in (places, None):
            held = bound.nearest(SPACE, ordinals, query, some)
            assert held.any() and store.residents.bytes_of(SCOPE)
            read = bound.nearest(SPACE, ordinals, query, some, RESIDENT_DOCUMENTS_MAX + 1)
            assert not store.residents.bytes_of(SCOPE)
            np.testing.assert_array_equal(held, read)
        nobody = np.full(5, -1, np.int32)
        assert not bound.nearest(SPACE, ordinals, query, nobody, RESIDENT_DOCUMENTS_MAX + 1).any()

    change(store, lambda writer: WORDS.bind(writer, SCOPE).put(SPACE, 3, units(2, 99)))
    change(store, lambda writer: WORDS.bind(writer, SCOPE).delete(SPACE, 6))
    with store.snapshot() as snapshot:
        bound, changed = WORDS.bind(snapshot, SCOPE), np.array([3, 6, 9])
        read = bound.nearest(SPACE, changed, query, documents=RESIDENT_DOCUMENTS_MAX + 1)
        np.testing.assert_array_equal(bound.nearest(SPACE, changed, query), read)
        assert not read[1].any()


def test_documents_may_be_meant_by_their_places_several_times_or_not_at_all(store: Store) -> None:
    def put(writer) -> None:
        WORDS.bind(writer, SCOPE).put(SPACE, 1, units(5, 1))
        WORDS.bind(writer, SCOPE).put(SPACE, 9, units(3, 2))

    change(store, put)
    query = units(2, 7)
    with store.snapshot() as snapshot:
        bound = WORDS.bind(snapshot, SCOPE)
        one, none, nine = bound.nearest(SPACE, np.array([1, 2, 9]), query).tolist()
        places = np.array([2, -1, 0, 2, 1, 0], np.int32)
        found = bound.nearest(SPACE, np.array([1, 2, 9]), query, places).tolist()
    assert any(one) and any(nine) and not any(none)
    assert found == [nine, none, one, nine, none, one]


def test_what_was_put_is_replaced_and_deleted(store: Store) -> None:
    def replace(writer) -> tuple[bool, bool]:
        bound = WORDS.bind(writer, SCOPE)
        bound.put(SPACE, 1, units(4, 1))
        bound.put(SPACE, 1, units(2, 2))
        bound.put(SPACE, 2, units(2, 3))
        bound.put(SPACE, 3, units(0, 4))
        return bound.delete(SPACE, 2), bound.delete(SPACE, 3)

    assert change(store, replace).result == (True, False)
    with store.snapshot() as snapshot:
        bound = WORDS.bind(snapshot, SCOPE)
        found = bound.nearest(SPACE, np.array([1, 2]), units(2, 2))
        assert found[0].tolist() == pytest.approx([1, 1], abs=0.02) and not found[1].any()
        assert bound.nearest(SPACE, np.array([1]), units(0, 1)).shape == (1, 0)
    assert change(store, lambda writer: WORDS.bind(writer, SCOPE).clear()).result == 1
    assert not nearest(store, [1]).any()


def test_what_is_resident_follows_every_commit(store: Store) -> None:
    """Thousands of documents that come, change and go, so that the arrays grow and are swept: as
    what is read anew.
    """
    chance = random.Random(4)
    documents: dict[int, int] = {}
    nearest(store, [0])
    for _ in range(60):
        changed = {chance.randrange(3_000): chance.randrange(40) for _ in range(200)}
        change(
            store,
            lambda writer, changed=changed: [
                WORDS.bind(writer, SCOPE).put(SPACE, *each) for each in drawn(changed)
            ],
        )
        documents |= changed
    ordinals = list(range(3_100))
    fed = nearest(store, ordinals)
    store.residents.clear()
    assert (fed == nearest(store, ordinals)).all()
    assert [bool(row.any()) for row in fed[:50]] == [
        documents.get(ordinal, 0) > 0 for ordinal in range(50)
    ]
    resident = store.residents.stats()["bytes"]
    change(store, lambda writer: WORDS.bind(writer, SCOPE).clear())
    assert not nearest(store, ordinals).any() and store.residents.stats()["bytes"] < resident


def drawn(changed: dict[int, int]) -> list[tuple[int, np.ndarray]]:
    return [(ordinal, units(words, ordinal * 100 + words)) for ordinal, words in changed.items()]
