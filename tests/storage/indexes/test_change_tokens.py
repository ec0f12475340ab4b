"""Tokens of ranges: each transaction that changes something in one leaves another there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from storage.indexes.change_tokens import (
    RANGE_SHIFT,
    WHOLE,
    BoundTokens,
    ChangeTokens,
    Tokens,
    are_in,
    changed_ranges,
)
from storage.store import Identity, Scope, Store

TOKENS = ChangeTokens("things")
ONE, OTHER = Scope(1, 1), Scope(1, 2)
LONG = 1 << RANGE_SHIFT


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path, [TOKENS.table], identity=Identity("", 0, 1, 4096, 1), create=True)
    yield opened
    opened.close()


def change(store: Store, work: Callable[[BoundTokens], object], scope: Scope = ONE) -> None:
    store.write(lambda transaction: work(TOKENS.bind(transaction, scope)))


def tokens(store: Store, scope: Scope = ONE) -> Tokens:
    with store.snapshot() as snapshot:
        return TOKENS.bind(snapshot, scope).all()


def differing(before: Tokens | None, now: Tokens) -> list[int] | None:
    found = changed_ranges(before, now)
    return None if found is None else found.tolist()


def test_each_change_draws_a_token_for_its_range_alone(store: Store) -> None:
    change(store, lambda bound: [bound.changed(each) for each in (0, 5, 3 * LONG - 1, 2**32 - 1)])
    before = tokens(store)
    last = (2**32 - 1) >> RANGE_SHIFT
    assert sorted(before) == [0, 2, last, WHOLE]
    assert differing(before, before) == []
    for ordinal, number in ((7, 0), (LONG, 1), (2**32 - 2, last)):
        change(store, lambda bound, ordinal=ordinal: bound.changed(ordinal))
        now = tokens(store)
        assert differing(before, now) == differing(now, before) == [number]
        before = now
    assert tokens(store, OTHER) == {}


def test_a_transaction_that_is_undone_draws_none(store: Store) -> None:
    change(store, lambda bound: bound.changed(1))
    before = tokens(store)

    def work(transaction) -> None:
        with pytest.raises(ZeroDivisionError), transaction.child() as child:
            TOKENS.bind(child, ONE).changed(2)
            TOKENS.bind(child, ONE).changed(LONG)
            raise ZeroDivisionError
        TOKENS.bind(transaction, ONE).changed(3 * LONG)

    store.write(work)
    assert differing(before, tokens(store)) == [3]


def test_nothing_is_known_of_what_was_deleted_and_came_again(store: Store) -> None:
    change(store, lambda bound: [bound.changed(0), bound.changed(LONG)])
    before = tokens(store)
    change(store, lambda bound: bound.clear())
    assert tokens(store) == {} and differing(before, {}) is None
    change(store, lambda bound: bound.changed(LONG))
    assert differing(before, tokens(store)) is None


def test_nothing_is_known_without_a_token_for_the_whole() -> None:
    assert differing(None, {WHOLE: b"a"}) is None
    assert differing({}, {}) is None
    assert differing({}, {WHOLE: b"a", 1: b"a"}) is None
    assert differing({WHOLE: b"a"}, {WHOLE: b"a", 1: b"a"}) == [1]


def test_ordinals_in_ranges() -> None:
    ordinals = np.array([0, LONG - 1, LONG, 5 * LONG, 2**32 - 1], np.uint32)
    assert are_in(ordinals, np.array([1, 5])).tolist() == [False, False, True, True, False]
    assert not are_in(ordinals, np.zeros(0, np.int64)).any()
