"""Stores that several modules open."""

import pytest

from tests.support.stores import ALICE, BLOBS, BOB, NOTES, Note, open_store


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "shard")
    yield store
    store.close()


@pytest.fixture
def shelves(store):
    def work(transaction):
        notes = transaction.bind(NOTES, ALICE)
        for shelf, number in [("a", 1), ("a", 2), ("a", 300), ("b", 1), ("b", 2)]:
            notes.put((shelf, number), Note(f"{shelf}{number}"))
        transaction.bind(NOTES, BOB).put(("a", 1), Note("other"))
        transaction.bind(BLOBS, ALICE).put((1,), b"other")

    store.write(work)
    return store
