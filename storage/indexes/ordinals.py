"""Ascending ordinals as arrays: out of a bitmap, and looked up in one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.kernels import (
    BOOL,
    FLOAT32,
    INT64,
    UINT32,
    in_array,
    inline,
    kernel,
    out_array,
)

Ordinals = NDArray[np.uint32]


def ordinals_of(some: BitMap | Ordinals) -> Ordinals:
    """All of them, ascending; what ascends already as it is."""
    return some if isinstance(some, np.ndarray) else np.frombuffer(some.to_array(), np.uint32)


def ascending(*ordinals: Ordinals) -> Ordinals:
    """Every ordinal of these arrays once, in order."""
    found = np.concatenate(ordinals)
    found.sort()
    return found[: _distinct(found)]


def among(members: Ordinals, wanted: Ordinals) -> NDArray[np.bool_]:
    """(n,) whether each of the wanted is one of the members, which ascend."""
    found = np.empty(len(wanted), np.bool_)
    _among(members, np.ascontiguousarray(wanted, np.uint32), found)
    return found


@inline
def lower_bound(members, start, ordinal):
    """Where among the members, which ascend, from `start` on, the first is that is no lower than
    the ordinal. For kernels.
    """
    low, high = start, members.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if members[middle] < ordinal:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def place_among(members, ordinal):
    """Where the ordinal, or number, is among the members, which ascend; −1 where it is not. For
    kernels.
    """
    low = lower_bound(members, 0, ordinal)
    return low if low < members.shape[0] and members[low] == ordinal else -1


@kernel(out_array(UINT32), result=INT64)
def _distinct(ordinals):
    """Bring each of the ascending ordinals to the front once; -> how many there are."""
    count = 0
    for i in range(ordinals.shape[0]):
        if count == 0 or ordinals[i] != ordinals[count - 1]:
            ordinals[count] = ordinals[i]
            count += 1
    return count


@kernel(in_array(UINT32), in_array(UINT32), out_array(BOOL))
def _among(members, wanted, found):
    for i in range(wanted.shape[0]):
        found[i] = place_among(members, wanted[i]) >= 0


@kernel(
    in_array(UINT32), in_array(FLOAT32), in_array(INT64), in_array(UINT32), out_array(FLOAT32, 2)
)
def look_up_each(members, values, ends, wanted, found):
    """found[k, i] = the value of the member wanted[i] of the k-th list, and stays as it is where
    that is no member. Lists stand end to end and end at `ends`; members ascend, values beside them.
    """
    start = 0
    for each in range(ends.shape[0]):
        end = ends[each]
        low = start
        for i in range(wanted.shape[0]):
            if i > 0 and wanted[i] < wanted[i - 1]:
                low = start
            # The wanted mostly ascend, so the next is not far from the one before.
            step, high = 1, low
            while high < end and members[high] < wanted[i]:
                low = high + 1
                high += step
                step *= 2
            high = min(high, end)
            while low < high:
                middle = (low + high) >> 1
                if members[middle] < wanted[i]:
                    low = middle + 1
                else:
                    high = middle
            if low < end and members[low] == wanted[i]:
                found[each, i] = values[low]
        start = end
