"""Which row each ordinal has, for arrays with a row for every ordinal that is there and none for
those that are not.

An ordinal is never given out twice, so those of a tenant may lie anywhere below 2³², in a run or
one by one. A RowMap is a page table: ordinals are mapped PAGE_SIZE at a time, and a hash table
tells where the page of each number lies. It takes memory for the pages that hold an ordinal, and
what is stored in order is read in order.

One thread writes a map. Whoever reads it meanwhile meets each ordinal with its row or without, so a
row is written before it is put in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.kernels import (
    FLOAT32,
    INT32,
    INT64,
    UINT32,
    in_array,
    inline,
    kernel,
    out_array,
)
from storage.indexes.ordinals import Ordinals

ABSENT = -1
PAGE_BITS = 6
PAGES_MIN = 4
NO_PAGE = 0xFFFF_FFFF
_PAGE_SIZE, _LOW_MASK = 1 << PAGE_BITS, (1 << PAGE_BITS) - 1
_NOWHERE = 1 << 40  # further from every ordinal than a page is long
_GOLDEN = 2_654_435_769  # 2³² over the golden ratio, which spreads numbers in a row

Rows = NDArray[np.int32]


class _Pages(NamedTuple):
    """numbers, places: the hash table, a page's number or NO_PAGE, and which of the pages in `rows`
    it is. The first of those is every page that there is not.
    """

    numbers: Ordinals
    places: Rows
    rows: Rows

    @classmethod
    def empty(cls, count: int) -> _Pages:
        """With room for so many pages. At least half of the hash table stays free."""
        slots = 1 << (2 * count - 1).bit_length()
        return cls(
            np.full(slots, NO_PAGE, np.uint32),
            np.zeros(slots, np.int32),
            np.full(count << PAGE_BITS, ABSENT, np.int32),
        )


class RowMap:
    """Ordinals below 2³² and their rows, from 0 on; `pages` is how many there is room for."""

    def __init__(self, pages: int = PAGES_MIN):
        self._pages = _Pages.empty(pages)
        self._used = 1
        self._last = (NO_PAGE, 0)  # the number of the page that was written last, and its place

    @classmethod
    def of(cls, ordinals: Ordinals, rows: Rows | None = None) -> RowMap:
        """A map of distinct ordinals to these rows; without, to 0, 1, 2, …"""
        pages = len(np.unique(ordinals >> PAGE_BITS)) + 1
        made = cls(max(PAGES_MIN, pages * 5 // 4))
        made.put(ordinals, np.arange(len(ordinals), dtype=np.int32) if rows is None else rows)
        return made

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self._pages)

    def find(self, ordinals: NDArray[np.integer]) -> Rows:
        """(n,) each ordinal's row, ABSENT without one."""
        rows = np.empty(len(ordinals), np.int32)
        _find(*self._pages, np.ascontiguousarray(ordinals, np.uint32), rows)
        return rows

    def values_of(
        self, ordinals: Ordinals, values: NDArray[np.float32]
    ) -> tuple[Ordinals, NDArray[np.float32]]:
        """Those of the ordinals that have a row, and the values of these rows."""
        present, found = np.empty(len(ordinals), np.uint32), np.empty(len(ordinals), np.float32)
        count = _values_of(*self._pages, ordinals, values, present, found)
        return present[:count], found[:count]

    def get(self, ordinal: int) -> int:
        """One ordinal's row, ABSENT without one."""
        place = self._place(ordinal >> PAGE_BITS)
        return int(self._pages.rows[(place << PAGE_BITS) + (ordinal & _LOW_MASK)])

    def entries(self) -> tuple[Ordinals, Rows]:
        """All ordinals that have a row, ascending, and their rows."""
        numbers, places, rows = self._pages
        held = np.sort(numbers[numbers != NO_PAGE])
        ordinals = np.empty(len(held) << PAGE_BITS, np.uint32)
        found = np.empty(len(ordinals), np.int32)
        count = _entries(numbers, places, rows, held, ordinals, found)
        return ordinals[:count], found[:count]

    def put(self, ordinals: NDArray[np.integer], rows: Rows) -> None:
        """Give distinct ordinals these rows, or others than they had."""
        for number in np.unique(ordinals >> PAGE_BITS).tolist():
            self._made(number)
        _put(*self._pages, np.ascontiguousarray(ordinals, np.uint32), rows)

    def put_one(self, ordinal: int, row: int) -> None:
        """As put. With ABSENT the ordinal has no row any more; its page stays."""
        place = self._made(ordinal >> PAGE_BITS)
        self._pages.rows[(place << PAGE_BITS) + (ordinal & _LOW_MASK)] = row

    def copy(self) -> RowMap:
        """The map as it is, which no change of this one reaches."""
        copied = RowMap(0)
        numbers, places, rows = self._pages
        copied._pages = _Pages(numbers.copy(), places.copy(), rows.copy())
        copied._used, copied._last = self._used, self._last
        return copied

    def _place(self, number: int) -> int:
        """Which page has this number; 0 when there is none."""
        known, place = self._last
        if number != known:
            place = int(self._pages.places[_slot(self._pages.numbers, number)])
        return place

    def _made(self, number: int) -> int:
        """As _place; a page that was not there is made."""
        place = self._place(number)
        if not place:
            if self._used << PAGE_BITS == len(self._pages.rows):
                self._grow()
            place, slot = self._used, _slot(self._pages.numbers, number)
            self._pages.places[slot] = place  # before it is found
            self._pages.numbers[slot] = number
            self._used += 1
        self._last = (number, place)
        return place

    def _grow(self) -> None:
        """Room for half as many pages more; who reads the arrays there are goes on with them."""
        numbers, places, rows = self._pages
        grown = _Pages.empty(self._used * 3 // 2)
        grown.rows[: len(rows)] = rows
        _enter(grown.numbers, grown.places, numbers, places)
        self._pages = grown


@kernel(in_array(UINT32), INT64, result=INT64)
def _slot(numbers, number):
    """Where in the hash table the page is, or would be."""
    size = np.uint64(numbers.shape[0])
    spread = (np.uint64(number) * np.uint64(_GOLDEN)) & np.uint64(0xFFFF_FFFF)
    slot = np.int64((spread * size) >> np.uint64(32))
    while numbers[slot] != number and numbers[slot] != NO_PAGE:
        slot = (slot + 1) & (numbers.shape[0] - 1)
    return slot


@kernel(out_array(UINT32), out_array(INT32), in_array(UINT32), in_array(INT32))
def _enter(numbers, places, held, held_places):
    for slot in range(held.shape[0]):
        if held[slot] != NO_PAGE:
            place = _slot(numbers, held[slot])
            numbers[place], places[place] = held[slot], held_places[slot]


# Unsigned, an ordinal below a page is as far from its first as one behind it; and what cannot be
# negative is looked up sooner.
@inline
def _page_of(numbers, places, ordinal):
    """(the first ordinal of its page, the place where the page begins)."""
    number = np.int64(ordinal) >> PAGE_BITS
    place = np.int64(places[_slot(numbers, number)])
    return np.uint64(number << PAGE_BITS), np.uint64(place << PAGE_BITS)


@kernel(in_array(UINT32), in_array(INT32), in_array(INT32), in_array(UINT32), out_array(INT32))
def _find(numbers, places, rows, ordinals, found):
    first, start = np.uint64(_NOWHERE), np.uint64(0)
    for i in range(ordinals.shape[0]):
        low = np.uint64(ordinals[i]) - first
        if low >= np.uint64(_PAGE_SIZE):
            first, start = _page_of(numbers, places, ordinals[i])
            low = np.uint64(ordinals[i]) - first
        found[i] = rows[start + low]


@kernel(
    in_array(UINT32), in_array(INT32), in_array(INT32), in_array(UINT32), in_array(FLOAT32),
    out_array(UINT32), out_array(FLOAT32), result=INT64,
)  # fmt: skip
def _values_of(numbers, places, rows, ordinals, values, present, found):
    """Fill the last two with the ordinals that have a row and its value; -> how many."""
    first, start, count = np.uint64(_NOWHERE), np.uint64(0), np.uint64(0)
    for i in range(ordinals.shape[0]):
        low = np.uint64(ordinals[i]) - first
        if low >= np.uint64(_PAGE_SIZE):
            first, start = _page_of(numbers, places, ordinals[i])
            low = np.uint64(ordinals[i]) - first
        row = rows[start + low]
        if row != ABSENT:
            present[count], found[count] = ordinals[i], values[np.uint64(row)]
            count += np.uint64(1)
    return count


@kernel(in_array(UINT32), in_array(INT32), out_array(INT32), in_array(UINT32), in_array(INT32))
def _put(numbers, places, rows, ordinals, given):
    for i in range(ordinals.shape[0]):
        slot = _slot(numbers, np.int64(ordinals[i] >> PAGE_BITS))
        start = np.int64(places[slot]) << PAGE_BITS
        rows[start + np.int64(ordinals[i] & _LOW_MASK)] = given[i]


@kernel(
    in_array(UINT32), in_array(INT32), in_array(INT32), in_array(UINT32), out_array(UINT32),
    out_array(INT32), result=INT64,
)  # fmt: skip
def _entries(numbers, places, rows, held, ordinals, found):
    """Fill the last two from these pages; -> how many there are."""
    count = 0
    for page in range(held.shape[0]):
        start = np.int64(places[_slot(numbers, np.int64(held[page]))]) << PAGE_BITS
        for low in range(_PAGE_SIZE):
            if rows[start + low] != ABSENT:
                ordinals[count] = (held[page] << np.uint32(PAGE_BITS)) + np.uint32(low)
                found[count] = rows[start + low]
                count += 1
    return count
