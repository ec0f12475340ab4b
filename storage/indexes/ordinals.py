"""Ascending ordinals as arrays: out of a bitmap, and looked up in one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.kernels import BOOL, FLOAT32, UINT32, in_array, inline, kernel, out_array

Ordinals = NDArray[np.uint32]


def ordinals_of(some: BitMap) -> Ordinals:
    """All of them, ascending."""
    return np.frombuffer(some.to_array(), np.uint32)


def among(members: Ordinals, wanted: Ordinals) -> NDArray[np.bool_]:
    """(n,) whether each of the wanted is one of the members, which ascend."""
    found = np.empty(len(wanted), np.bool_)
    _among(members, np.ascontiguousarray(wanted, np.uint32), found)
    return found


@inline
def _place(members, ordinal):
    """Where the ordinal is among the members; −1 where it is not."""
    low, high = 0, members.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if members[middle] < ordinal:
            low = middle + 1
        else:
            high = middle
    return low if low < members.shape[0] and members[low] == ordinal else -1


@kernel(in_array(UINT32), in_array(UINT32), out_array(BOOL))
def _among(members, wanted, found):
    for i in range(wanted.shape[0]):
        found[i] = _place(members, wanted[i]) >= 0


@kernel(in_array(UINT32), in_array(FLOAT32), in_array(UINT32), out_array(FLOAT32))
def look_up(members, values, wanted, found):
    """found[i] = the value of the member wanted[i], and stays as it is where that is no member.
    Members ascend, values beside them.
    """
    for i in range(wanted.shape[0]):
        place = _place(members, wanted[i])
        if place >= 0:
            found[i] = values[place]
