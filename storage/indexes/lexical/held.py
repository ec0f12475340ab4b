"""What searches of a large account keep of its lexical index, so that the next one does not read
and join a thousand blocks for each common word again.

It owns which terms are held and whether what is held of a range is still what is stored. It does
not read rows itself. Everything here is checked against the tokens of the snapshot that asks
(LexicalStats.tokens), range by range, and read anew where they differ: so it is right for each
snapshot by itself, whatever other processes write, and nobody has to tell it of changes. What is
appended changes the last range alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.lexical.stored import (
    LENGTHS_SHIFT,
    POSTINGS_SHIFT,
    RANGE_SHIFT,
    WHOLE,
    Blocks,
    Lengths,
    LexicalStats,
    Tokens,
)

# A smaller account's rows are read in less time than is worth the memory.
HELD_DOCUMENTS_MIN = 20_000
# Of memory for postings, which take two bytes each. Least recently asked terms leave first.
HELD_BYTES_PER_DOCUMENT = 12

# Which of the terms wanted, and numbers of blocks, from one to below another, -> what is stored
# there.
ReadBlocks = Callable[[Sequence[tuple[bytes, int, int]]], Sequence[Blocks]]
ReadLengths = Callable[[int, int], Lengths]


class _Held(NamedTuple):
    tokens: Tokens
    blocks: Blocks


class HeldLexical:
    """What is in memory of one tenant's postings and lengths, for threads that read snapshots."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._terms: OrderedDict[bytes, _Held] = OrderedDict()
        self._lengths: tuple[Tokens, Lengths] | None = None
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        lengths = self._lengths
        return self._bytes + (0 if lengths is None else lengths[1].nbytes)

    def blocks_of(
        self, keys: Sequence[bytes], stats: LexicalStats, read: ReadBlocks
    ) -> list[Blocks]:
        """The blocks of each of the terms in a snapshot with these stats; `read` brings what is not
        held from that snapshot.
        """
        with self._lock:
            held = [self._terms.get(key) for key in keys]
        wanted: list[tuple[bytes, int, int]] = []
        stale: list[tuple[int, int, int]] = []  # which of the keys, and from where to where
        for place, (key, each) in enumerate(zip(keys, held, strict=True)):
            for low, high in _changed(None if each is None else each.tokens, stats.tokens):
                first, end = _blocks_in(low, high, POSTINGS_SHIFT)
                wanted.append((key, first, end))
                stale.append((place, first, end))
        found = [_NOTHING if each is None else each.blocks for each in held]
        for (place, first, end), blocks in zip(stale, read(wanted) if wanted else (), strict=True):
            found[place] = _spliced(found[place], first, end, blocks)
        self._keep(keys, stats, found)
        return found

    def lengths(self, stats: LexicalStats, read: ReadLengths) -> Lengths:
        """As blocks_of, of all lengths."""
        held = self._lengths
        tokens, lengths = (None, _NO_LENGTHS) if held is None else held
        for low, high in _changed(tokens, stats.tokens):
            first, end = _blocks_in(low, high, LENGTHS_SHIFT)
            numbers, each = read(first, end)
            at, to = np.searchsorted(lengths.blocks, [first, end])
            lengths = Lengths(
                np.concatenate((lengths.blocks[:at], numbers, lengths.blocks[to:])),
                np.concatenate(
                    (lengths.each[: at << LENGTHS_SHIFT], each, lengths.each[to << LENGTHS_SHIFT :])
                ),
            )
        if tokens is not stats.tokens:
            self._lengths = stats.tokens, lengths
        return lengths

    def _keep(self, keys: Sequence[bytes], stats: LexicalStats, found: Iterable[Blocks]) -> None:
        most = HELD_BYTES_PER_DOCUMENT * stats.documents
        with self._lock:
            for key, blocks in zip(keys, found, strict=True):
                before = self._terms.pop(key, None)
                self._bytes += blocks.nbytes - (0 if before is None else before.blocks.nbytes)
                self._terms[key] = _Held(stats.tokens, blocks)
            while self._bytes > most and len(self._terms) > 1:
                _, left = self._terms.popitem(last=False)
                self._bytes -= left.blocks.nbytes


_NOTHING = Blocks.of([], [])
_NO_LENGTHS = Lengths.of([], [])


def _changed(known: Tokens | None, tokens: Tokens) -> list[tuple[int, int]]:
    """Runs of ranges, from one to below another, of which something else is stored now; all, in
    one run, where nothing is known.
    """
    if known == tokens:
        return []
    if known is None or known.get(WHOLE) != tokens.get(WHOLE):
        return [(0, WHOLE)]
    runs: list[tuple[int, int]] = []
    for number in sorted(known.keys() | tokens.keys()):
        if known.get(number) == tokens.get(number):
            continue
        if runs and runs[-1][1] == number:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


def _blocks_in(low: int, high: int, shift: int) -> tuple[int, int]:
    """The blocks of 2^shift ordinals in the ranges from `low` to below `high`."""
    return low << RANGE_SHIFT - shift, high << RANGE_SHIFT - shift


def _spliced(known: Blocks, first: int, end: int, blocks: Blocks) -> Blocks:
    """With these blocks in the place of those from `first` to below `end`."""
    if not len(known.numbers):
        return blocks
    at, to = np.searchsorted(known.numbers, [first, end])
    before = int(known.sizes[:at].sum())
    behind = before + int(known.sizes[at:to].sum())

    def joined(held: NDArray, start: int, stop: int, new: NDArray) -> NDArray:
        return np.concatenate((held[:start], new, held[stop:]))

    return Blocks(
        joined(known.numbers, at, to, blocks.numbers),
        joined(known.sizes, at, to, blocks.sizes),
        joined(known.packed, before, behind, blocks.packed),
    )
