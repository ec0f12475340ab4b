"""Bitmaps against plain sets: what is added and removed is what every question answers from."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from storage.bitmap_index import All, Any, Between, BitmapIndex, Equals, Not
from storage.table import Identity, Scope, Store

INDEX = BitmapIndex("memories", fields=("tag", "day"))
ALICE, BOB = Scope(5, 1), Scope(5, 2)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store.open(tmp_path_factory.mktemp("store"), INDEX.tables, identity=Identity("", 0, 1, 4096, 1), create=True)
    yield store
    store.close()


@pytest.fixture
def bound(store):
    """The index in a transaction that is undone after the test."""
    with Undo(store) as transaction:
        yield INDEX.bind(transaction, ALICE)


class Undo:
    """A write transaction driven from outside `work`, then rolled back: tests leave the store empty."""

    def __init__(self, store: Store):
        self.store = store

    def __enter__(self):
        self._nested = Transaction_of(self.store)
        return self._nested.__enter__()

    def __exit__(self, *error):
        return self._nested.__exit__(*error)
