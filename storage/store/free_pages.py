"""Which pages of an LMDB data file hold nothing, read from the file itself.

LMDB writes only pages that hold something. A page that a transaction took at the end of the file
and gave back before its commit is counted in the meta page, noted in the list of free pages, and
never written: the file of a sound store may end before its last page. To tell that from a file cut
short, the pages beyond its end are looked up in the free list of the newest commit.

The free list is a B-tree of LMDB's own (database 0): leaves hold, by transaction, a count and that
many page numbers, eight bytes each, in an overflow page when they are many. Layout of LMDB 0.9, in
the machine's byte order: a page begins with its number (8), padding (2), flags (2), and two bounds
(2 + 2) of which the first tells how many node pointers of 2 bytes follow.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

NO_PAGE = 2**64 - 1

_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_HEADER_BYTES = 16
_NODE = struct.Struct(
    "=HHHH"
)  # low and high half of a size or page number, flags (or its top), size of the key
_BIG_DATA = 1


class Unreadable(ValueError):
    """The free list does not lie inside the file, or is none."""


def free_from(file: BinaryIO, page_bytes: int, root: int, first: int) -> set[int]:
    """Numbers of the free pages from `first` on. root: the free list's root page, NO_PAGE when it
    is empty. Raises Unreadable.
    """
    try:
        return _walk(file, page_bytes, root, first)
    except (
        struct.error,
        OSError,
        OverflowError,
    ) as senseless:  # a page that ends too early, or a place no file has
        raise Unreadable(f"the free list makes no sense: {senseless}") from senseless


def _walk(file: BinaryIO, page_bytes: int, root: int, first: int) -> set[int]:
    found: set[int] = set()
    waiting = [] if root == NO_PAGE else [root]
    seen: set[int] = set()
    while waiting:
        number = waiting.pop()
        page = _page(file, page_bytes, number)
        flags, lower = struct.unpack_from("=HH", page, 10)
        if (
            number in seen
            or not flags & (_BRANCH | _LEAF)
            or not _HEADER_BYTES <= lower <= page_bytes
        ):
            raise Unreadable(f"page {number} is no page of the free list")
        seen.add(number)
        for place in struct.unpack_from(f"={(lower - _HEADER_BYTES) // 2}H", page, _HEADER_BYTES):
            if place + _NODE.size > page_bytes:
                raise Unreadable(f"page {number} is no page of the free list")
            low, high, top, key_bytes = _NODE.unpack_from(page, place)
            if flags & _BRANCH:
                waiting.append(low | high << 16 | top << 32)
            else:
                data = page[place + _NODE.size + key_bytes :]
                found.update(
                    page
                    for page in _numbers(file, page_bytes, data, top, low | high << 16)
                    if page >= first
                )
    return found


def _numbers(
    file: BinaryIO, page_bytes: int, data: bytes, flags: int, size: int
) -> tuple[int, ...]:
    """The page numbers of one entry; `data` begins with them, or with the number of the overflow
    page that holds them.
    """
    if flags & _BIG_DATA:
        (number,) = struct.unpack_from("=Q", data)
        if not struct.unpack_from("=H", _page(file, page_bytes, number), 10)[0] & _OVERFLOW:
            raise Unreadable(f"page {number} is no overflow page")
        data = _read(file, number * page_bytes + _HEADER_BYTES, size)
    (count,) = struct.unpack_from("=Q", data)
    if 8 * (count + 1) > min(size, len(data)):
        raise Unreadable("an entry of the free list is longer than it is")
    return struct.unpack_from(f"={count}Q", data, 8)


def _page(file: BinaryIO, page_bytes: int, number: int) -> bytes:
    return _read(file, number * page_bytes, page_bytes)


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    content = file.read(size)
    if len(content) < size:
        raise Unreadable("the free list lies beyond the end")
    return content
