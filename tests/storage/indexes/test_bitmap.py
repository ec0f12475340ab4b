"""Bitmaps against plain sets: what is added and removed is what every question answers from."""

import itertools
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from storage.indexes.bitmap import BitmapIndex
from storage.indexes.filter import AllOf, AnyOf, Between, Equals, Not
from storage.store import Identity, Scope, Store

INDEX = BitmapIndex(
    "memories", fields=("tag", "day", "name", "user"), plain=("tag", "day"), prefixed=("name",)
)
TENANTS = itertools.count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store.open(
        tmp_path_factory.mktemp("store"),
        INDEX.tables,
        identity=Identity("", 0, 1, 4096, 1),
        create=True,
    )
    yield store
    store.close()


@pytest.fixture
def scope():
    """A tenant of the test's own."""
    return Scope(5, next(TENANTS))


ordinals = st.one_of(st.integers(0, 40), st.integers(65_530, 65_545), st.just(2**32 - 1))
values = st.one_of(st.integers(-3, 3), st.sampled_from(["", "a", "b", "é", "x" * 500, "x" * 501]))
some = st.one_of(ordinals.map(lambda ordinal: [ordinal]), st.lists(ordinals, max_size=6))
changes = st.lists(
    st.tuples(st.booleans(), some, st.sampled_from(["tag", "day"]), values), max_size=40
)


@settings(deadline=None, max_examples=40)
@given(changes)
def test_index_equals_plain_sets(store, steps):
    scope = Scope(6, next(TENANTS))
    plain: dict[tuple, set[int]] = defaultdict(set)

    def work(transaction):
        index = INDEX.bind(transaction, scope)
        for is_add, several, field, value in steps:
            if is_add:
                index.add_each(several, field, value)
                plain[field, value].update(several)
            else:
                index.remove_each(several, field, value)
                plain[field, value].difference_update(several)

    store.write(work)
    with store.snapshot() as snapshot:
        index = INDEX.bind(snapshot, scope)
        for (field, value), expected in plain.items():
            assert set(index.of(field, value)) == expected
            assert index.count(field, value) == len(expected)
        for field in ("tag", "day"):
            asked = ["nobody's", *(value for name, value in plain if name == field), 17]
            assert [set(found) for found in index.of_each(field, asked)] == [
                plain.get((field, value), set()) for value in asked
            ]
            sizes = sorted(
                (len(found) for (name, _), found in plain.items() if name == field and found),
                reverse=True,
            )
            assert [count for _, count in index.values(field, 100)] == sizes
            for low, high in [
                (-1, 2),
                (None, 0),
                (1, None),
                (2, 1),
                ("a", "b"),
                (None, "a"),
                ("b", None),
            ]:
                kind = type(high if low is None else low)
                expected = {
                    ordinal
                    for (name, value), found in plain.items()
                    if name == field
                    and type(value) is kind
                    and (low is None or value >= low)
                    and (high is None or value <= high)
                    for ordinal in found
                }
                assert set(index.range(field, low, high)) == expected
            assert set(index.range(field)) == {
                o for (name, _), found in plain.items() if name == field for o in found
            }


def test_dense_ordinals_take_little_room(store, scope):
    def work(transaction):
        index = INDEX.bind(transaction, scope)
        for ordinal in range(20_000):
            index.add(ordinal, "tag", "all")
        return sum(len(raw) for _, raw in transaction.bind(INDEX.tables[0], scope).scan())

    assert store.write(work).result < 400
    with store.snapshot() as snapshot:
        assert INDEX.bind(snapshot, scope).of("tag", "all") == BitMap(range(20_000))


def test_values_come_most_frequent_first_and_within_a_set(store, scope):
    def work(transaction):
        index = INDEX.bind(transaction, scope)
        for ordinal, tag in enumerate(["b", "a", "c", "c", "a", "c"]):
            index.add(ordinal, "tag", tag)
        assert index.values("tag", 2) == [("c", 3), ("a", 2)]
        assert index.values("tag", 9, within=BitMap([0, 1, 2])) == [("a", 1), ("b", 1), ("c", 1)]
        assert index.values("tag", 9, within=BitMap([5])) == [("c", 1)]

    store.write(work)


def test_filters_combine(store, scope):
    def work(transaction):
        index = INDEX.bind(transaction, scope)
        for ordinal in range(10):
            index.add(ordinal, "day", ordinal)
            index.add(ordinal, "tag", "even" if ordinal % 2 == 0 else "odd")
        universe = BitMap(range(9))

        def found(condition):
            return list(condition.evaluate(index, universe))

        assert found(Equals("tag", "even")) == [0, 2, 4, 6, 8]
        assert found(Not(Equals("tag", "even"))) == [1, 3, 5, 7]
        assert found(Between("day", 3, 9)) == [3, 4, 5, 6, 7, 8]
        assert found(AllOf(Equals("tag", "odd"), Between("day", low=4))) == [5, 7]
        assert found(AnyOf(Equals("day", 1), Equals("day", 2), Equals("day", 9))) == [1, 2]
        assert found(AllOf()) == list(universe)
        assert found(AnyOf()) == []
        assert list(universe) == list(range(9))
        assert AllOf(Equals("tag", 1)) == AllOf(Equals("tag", 1))

    store.write(work)


def test_tenants_do_not_meet(store, scope):
    other = Scope(scope.slot, next(TENANTS))
    store.write(lambda transaction: INDEX.bind(transaction, scope).add(1, "tag", "a"))
    with store.snapshot() as snapshot:
        assert not INDEX.bind(snapshot, other).of("tag", "a")
        assert INDEX.bind(snapshot, other).values("tag", 5) == []


def test_removed_values_leave_no_row(store, scope):
    def work(transaction):
        index = INDEX.bind(transaction, scope)
        index.add(1, "tag", "a")
        index.remove(1, "tag", "a")
        index.remove(1, "tag", "a")
        assert index.values("tag", 5) == []
        assert transaction.bind(INDEX.tables[0], scope).count() == 0

    store.write(work)


def test_an_undeclared_field_is_refused(store, scope):
    with store.snapshot() as snapshot, pytest.raises(ValueError, match="colour"):
        INDEX.bind(snapshot, scope).of("colour", "red")


def test_a_text_is_found_but_stands_in_no_key(store, scope):
    def work(transaction):
        index = INDEX.bind(transaction, scope)
        for ordinal, name in enumerate(["Lisbon", "Lisboa", "Porto", "L" * 300, "Lisbon"]):
            index.add(ordinal, "name", name)
            index.add(ordinal, "user", name)
        index.remove(4, "name", "Lisbon")

    store.write(work)
    with store.snapshot() as snapshot:
        index = INDEX.bind(snapshot, scope)
        assert list(index.of("user", "Lisbon")) == [0, 4]
        assert list(index.of("name", "Lisbon")) == [0]
        assert list(index.of("user", "L" * 300)) == [3]
        assert not index.of("user", "Lis"), "only a prefixed field knows beginnings"
        found_by_prefix = {
            "": [0, 1, 2, 3],
            "L": [0, 1, 3],
            "Lis": [0, 1],
            "Lisbon": [0],
            "Lisbon!": [],
            "L" * 200: [3],
        }
        for prefix, found in found_by_prefix.items():
            assert list(index.starting_with("name", prefix)) == found
        keys = repr(list(snapshot.bind(INDEX.tables[0], scope).keys())).encode()
        assert b"Lis" not in keys and b"Porto" not in keys
        for refused in (
            lambda: index.values("user", 5),
            lambda: index.range("user", "A", "Z"),
            lambda: index.starting_with("user", "L"),
        ):
            with pytest.raises(ValueError):
                refused()
        # The same text of another field, and of another tenant, is another digest.
        of_field = {key[1] for key in snapshot.bind(INDEX.tables[0], scope).keys("name")}
        assert not of_field & {key[1] for key in snapshot.bind(INDEX.tables[0], scope).keys("user")}
