"""Ordinals looked up in one another, against sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from storage.indexes.ordinals import among, look_up, ordinals_of

ORDINALS = st.lists(st.integers(0, 40) | st.just(2**32 - 1), max_size=30)


@given(ORDINALS, ORDINALS)
def test_looking_up_finds_what_a_set_holds(held: list[int], asked: list[int]) -> None:
    members, wanted = ordinals_of(BitMap(held)), np.array(asked, np.uint32)
    assert members.tolist() == sorted(set(held))
    assert among(members, wanted).tolist() == [ordinal in set(held) for ordinal in asked]
    found = np.full(len(asked), -1, np.float32)
    look_up(members, np.arange(len(members), dtype=np.float32), wanted, found)
    assert found.tolist() == [
        members.tolist().index(ordinal) if ordinal in set(held) else -1 for ordinal in asked
    ]
