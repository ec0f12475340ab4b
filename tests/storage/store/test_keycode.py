"""Keys keep the order of the tuples, round-trip, and never let a prefix catch a neighbour."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.store.keycode import decode, encode, prefix_end, short

KINDS = [type(None), bool, int, float, bytes, str]

part = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-300, 300),
    st.floats(allow_nan=False),
    st.binary(max_size=6),
    st.text(max_size=6),
    st.text(alphabet="\x00\x01\x02a", max_size=4),
)
key = st.lists(part, max_size=4).map(tuple)
quick = settings(deadline=None, max_examples=300)


def rank(parts: tuple) -> list:
    """What the order of keys means, spelt out: kind first, then value (text by its UTF-8 bytes)."""
    return [
        (KINDS.index(type(p)), 0 if p is None else p.encode() if isinstance(p, str) else p)
        for p in parts
    ]


@quick
@given(key)
def test_round_trip(parts):
    back = decode(encode(parts))
    assert back == parts
    assert [type(p) for p in back] == [type(p) for p in parts]


@quick
@given(key, key)
def test_bytes_sort_as_tuples_do(left, right):
    assert (encode(left) < encode(right)) == (rank(left) < rank(right))
    assert (encode(left) == encode(right)) == (rank(left) == rank(right))


@quick
@given(key, key)
def test_a_prefix_matches_whole_parts_only(prefix, other):
    assert encode(other).startswith(encode(prefix)) == (rank(other)[: len(prefix)] == rank(prefix))


@quick
@given(key.filter(len), st.lists(part, max_size=2).map(tuple))
def test_prefix_end_closes_the_range(prefix, rest):
    raw = encode(prefix)
    assert raw <= encode(prefix + rest) < prefix_end(raw)


def test_prefix_end_at_the_top():
    assert prefix_end(b"a\xff\xff") == b"b"
    assert prefix_end(b"\xff\xff") is None
    assert prefix_end(b"") is None


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, math.nan])
def test_values_without_a_place_are_refused(value):
    with pytest.raises(ValueError):
        encode((value,))


def test_other_kinds_are_refused():
    with pytest.raises(TypeError, match="list"):
        encode(([],))


def test_negative_zero_is_zero():
    assert encode((-0.0,)) == encode((0.0,))


@pytest.mark.parametrize("raw", [b"\xfe", b"\x18\x01", b"\x41abc", b"\x21\x00"])
def test_bytes_that_are_no_key_are_refused(raw):
    with pytest.raises(ValueError):
        decode(raw)


@given(st.text(max_size=300), st.text(max_size=300))
@quick
def test_short_is_bounded_and_injective(left, right):
    assert len(short(left, 100).encode()) <= 100
    assert (short(left, 100) == short(right, 100)) == (left == right)


def test_short_leaves_short_text_alone_and_cannot_be_forged():
    assert short("naïve") == "naïve"
    long = "x" * 1000
    assert short(long).startswith("x" * 100)
    assert short(long) != short("x" * 1001)
    assert short(short(long)) != short(long)
