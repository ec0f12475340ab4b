"""How the rows of a lexical index are laid out; storage/indexes/lexical/index.py names their keys.

Pure functions over bytes and arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from storage.indexes.ordinals import Ordinals

TERM_KEY_BYTES = 8
POSTINGS_SHIFT, LENGTHS_SHIFT, RANGE_SHIFT = 10, 9, 16
OCCURRENCE_BITS = 6
OCCURRENCES_SCORED_MAX = 1 << OCCURRENCE_BITS
OCCURRENCES_MAX = LENGTH_MAX = 0xFFFF
WHOLE = 1 << 32 - RANGE_SHIFT  # behind every range
LENGTHS_PER_BLOCK = 1 << LENGTHS_SHIFT

_LOW_MASK = (1 << POSTINGS_SHIFT) - 1
_FORWARD_BYTES = TERM_KEY_BYTES + 2

Tokens = dict[int, bytes]


class LexicalStats(msgspec.Struct):
    """documents indexed, and the sum of their lengths in terms.

    tokens  by range, 65,536 ordinals in a row: what the last change of anything in it drew, which
            no other change has or had. A range that nobody changed since there are tokens has
            none. Under WHOLE stands what the first change drew, since all was deleted
    """

    documents: int = 0
    total_length: int = 0
    tokens: Tokens = {}


class Blocks(NamedTuple):
    """A term's postings as stored: the numbers of its blocks, ascending, how many postings each
    has, and these end to end.
    """

    numbers: Ordinals
    sizes: NDArray[np.int64]
    packed: NDArray[np.uint16]

    @classmethod
    def of(cls, numbers: list[int], stored: list[bytes]) -> Blocks:
        return cls(
            np.array(numbers, np.uint32),
            np.array([len(raw) >> 1 for raw in stored], np.int64),
            np.frombuffer(b"".join(stored), "<u2"),
        )

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self)


class Lengths(NamedTuple):
    """Lengths of documents: the stored blocks, ascending, and 512 of each end to end. Where a
    document's length stands there is its *place*.
    """

    blocks: Ordinals
    each: NDArray[np.uint16]

    @classmethod
    def of(cls, numbers: list[int], stored: list[bytes]) -> Lengths:
        whole = [raw.ljust(2 * LENGTHS_PER_BLOCK, b"\0") for raw in stored]
        return cls(np.array(numbers, np.uint32), np.frombuffer(b"".join(whole), "<u2"))

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes + self.each.nbytes


def length_of(counts: Mapping[bytes, int]) -> int:
    """A document's length in terms."""
    return min(sum(counts.values()), LENGTH_MAX)


def packed_forward(counts: Mapping[bytes, int]) -> bytes:
    """A document's terms, by their keys."""
    return b"".join(counts) + struct.pack(f"<{len(counts)}H", *counts.values())


def unpacked_forward(raw: bytes) -> dict[bytes, int]:
    """What packed_forward was given."""
    size = len(raw) // _FORWARD_BYTES
    keys = [raw[at : at + TERM_KEY_BYTES] for at in range(0, size * TERM_KEY_BYTES, TERM_KEY_BYTES)]
    return dict(zip(keys, struct.unpack_from(f"<{size}H", raw, size * TERM_KEY_BYTES), strict=True))


def place_in_block(ordinal: int) -> tuple[int, int]:
    """(the block of postings that an ordinal is in, its low bits there)."""
    return ordinal >> POSTINGS_SHIFT, ordinal & _LOW_MASK


def edited_block(raw: bytes, changes: Mapping[int, int]) -> bytes:
    """A block of postings with {low bits of an ordinal: occurrences, 0 removes} applied. Appending,
    the usual case, unpacks nothing.
    """
    additions = sorted(
        (low << OCCURRENCE_BITS) | (min(count, OCCURRENCES_SCORED_MAX) - 1)
        for low, count in changes.items()
        if count
    )
    last = int.from_bytes(raw[-2:], "little") >> OCCURRENCE_BITS if raw else -1
    if last < min(changes):
        return raw + struct.pack(f"<{len(additions)}H", *additions)
    kept = [
        value
        for value in struct.unpack(f"<{len(raw) >> 1}H", raw)
        if value >> OCCURRENCE_BITS not in changes
    ]
    values = sorted(kept + additions)
    return struct.pack(f"<{len(values)}H", *values)
