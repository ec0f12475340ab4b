"""Ordinals looked up in one another, against sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from storage.indexes.ordinals import among, ascending, look_up_each, ordinals_of

ORDINALS = st.lists(st.integers(0, 40) | st.just(2**32 - 1), max_size=30)


@given(ORDINALS, ORDINALS)
def test_looking_up_finds_what_a_set_holds(held: list[int], asked: list[int]) -> None:
    members, wanted = ordinals_of(BitMap(held)), np.array(asked, np.uint32)
    assert members.tolist() == sorted(set(held))
    assert among(members, wanted).tolist() == [ordinal in set(held) for ordinal in asked]


@given(st.lists(ORDINALS, max_size=4), ORDINALS)
def test_each_list_is_looked_up_by_itself(lists: list[list[int]], asked: list[int]) -> None:
    each = [ordinals_of(BitMap(held)) for held in lists]
    members = np.concatenate([np.zeros(0, np.uint32), *each])
    ends = np.cumsum([len(some) for some in each], dtype=np.int64)
    found = np.full((len(lists), len(asked)), -1, np.float32)
    values = np.arange(len(members), dtype=np.float32)
    look_up_each(members, values, ends, np.array(asked, np.uint32), found)
    for row, some, end in zip(found.tolist(), each, ends.tolist(), strict=True):
        places = {ordinal: end - len(some) + i for i, ordinal in enumerate(some.tolist())}
        assert row == [places.get(ordinal, -1) for ordinal in asked]


@given(ORDINALS, ORDINALS)
def test_ascending_is_their_union_in_order(one: list[int], other: list[int]) -> None:
    found = ascending(np.array(one, np.uint32), np.array(other, np.uint32))
    assert found.tolist() == sorted({*one, *other})
