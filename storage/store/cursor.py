"""Walking a range of keys with a cursor. The functions know bytes and a cursor's moves, nothing of
tables.

A range is [low, high). `keys` leaves the cursor on the key it yields, so the caller may take the
value from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol, overload

from storage.store.keycode import prefix_end


class Cursor(Protocol):
    """The moves used here; each tells whether it found a key."""

    def key(self) -> bytes: ...
    def last(self) -> bool: ...
    def prev(self) -> bool: ...
    def set_range(self, key: bytes, /) -> bool: ...
    @overload
    def iternext(self, keys: Literal[True], values: Literal[False], /) -> Iterator[bytes]: ...
    @overload
    def iternext(
        self, keys: Literal[True], values: Literal[True], /
    ) -> Iterator[tuple[bytes, bytes]]: ...
    def iterprev(self, keys: Literal[True], values: Literal[False], /) -> Iterator[bytes]: ...


def keys(cursor: Cursor, low: bytes, high: bytes, *, reverse: bool, live: bool) -> Iterator[bytes]:
    """The range's keys in order or backwards. `live`: find the place again at each step, because
    rows may come and go meanwhile.
    """
    if live:
        while low < high and _seek(cursor, low, high, reverse):
            key = cursor.key()
            yield key
            low, high = (low, key) if reverse else (key + b"\x00", high)
    elif low < high and _seek(cursor, low, high, reverse):
        for key in cursor.iterprev(True, False) if reverse else cursor.iternext(True, False):
            if not low <= key < high:
                return
            yield key


def items(cursor: Cursor, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The range's keys and values in order, where no row comes or goes meanwhile."""
    if low < high and cursor.set_range(low):
        for key, value in cursor.iternext(True, True):
            if key >= high:
                return
            yield key, value


def beginnings(cursor: Cursor, size: int, low: bytes, high: bytes) -> Iterator[bytes]:
    """The distinct first `size` bytes of the range's keys, in order: one seek each, however many
    keys share them.
    """
    while low < high and _seek(cursor, low, high, False):
        found = cursor.key()[:size]
        yield found
        low = prefix_end(found) or high


def _seek(cursor: Cursor, low: bytes, high: bytes, reverse: bool) -> bool:
    """Place the cursor on the range's first key, or its last; -> whether there is one."""
    if reverse:
        found = cursor.prev() if cursor.set_range(high) else cursor.last()
        return found and cursor.key() >= low
    return cursor.set_range(low) and cursor.key() < high
