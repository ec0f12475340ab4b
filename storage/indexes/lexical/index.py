"""The lexical index: its declaration, and as it is inside one reader and one tenant.

It owns which term occurs how often in which document of a tenant. It does not know texts or
languages (storage/text/analysis.py makes terms) nor what a document is: a document is an ordinal, a
number below 2³² that the caller gives and never uses for another one without removing the first.

Key layout, for an index named `x`:

    x.postings  (term key, ordinal >> 10)  -> 16-bit numbers in order: low 10 bits of the ordinal
                                              << 6 | occurrences − 1
    x.forward   (ordinal,)                 -> the document's term keys, 8 bytes each, then their
                                              occurrences, 16 bits each
    x.lengths   (ordinal >> 9,)            -> 16-bit lengths of up to 512 documents; the end of a
                                              block may be missing
    x.stats     ()                         -> how many documents, how many terms in all of them,
                                              and tokens of what changed

A term key is 8 bytes of BLAKE2b over the term, keyed with the tenant's secret (`scope.key`):
whoever reads the file learns neither words nor whether two tenants share one. All numbers are
little-endian.

Invariants
- A document's rows are functions of its terms alone: adding it, removing it and adding it again
  leaves the same bytes, but for the tokens.
- Whatever changes in a range, 65,536 ordinals in a row, gives it another token.
- Adding touches one small value per term; many documents added at once touch each value once.
- A search reads the blocks of its own terms and the lengths of all documents, nothing else of the
  tenant; of a large account what is in memory of them (storage/indexes/lexical/held.py).

Ordinals may lie anywhere, but are meant to be counted up: a search takes three KiB of memory for
each stored block of lengths, which holds 512 numbers in a row.

Limits of the layout: occurrences count up to 64 when scoring (BM25 is saturated long before), a
document's length up to 65,535.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.index import Index
from storage.indexes.lexical.held import HELD_DOCUMENTS_MIN, HeldLexical
from storage.indexes.lexical.scoring import best_scores, count_members, lengths_at, unpack
from storage.indexes.lexical.stored import (
    LENGTHS_PER_BLOCK,
    LENGTHS_SHIFT,
    OCCURRENCES_MAX,
    RANGE_SHIFT,
    TERM_KEY_BYTES,
    WHOLE,
    Blocks,
    Lengths,
    LexicalStats,
    edited_block,
    length_of,
    packed_forward,
    place_in_block,
    unpacked_forward,
)
from storage.indexes.ordinals import Ordinals, look_up_each, ordinals_of
from storage.indexes.top_k import Scores, best
from storage.store import Reader, Scope, Table, decode_count

TOKEN_BYTES = 8

Terms = Sequence[str] | Mapping[str, int]


class Postings(NamedTuple):
    """Where one term occurs: ordinals ascending, and how often in each (at most
    OCCURRENCES_SCORED_MAX).
    """

    ordinals: Ordinals
    occurrences: NDArray[np.float32]


class EndToEnd(NamedTuple):
    """Postings of several terms, one after the other; those of each end at `ends`."""

    ordinals: Ordinals
    occurrences: NDArray[np.float32]
    ends: NDArray[np.int64]

    def each(self) -> list[Postings]:
        """Of each of the terms."""
        return [
            Postings(self.ordinals[start:end], self.occurrences[start:end])
            for start, end in itertools.pairwise([0, *self.ends.tolist()])
        ]

    def counts(self) -> list[int]:
        """How many documents have each of the terms."""
        return np.diff(self.ends, prepend=0).tolist()


class LexicalIndex(Index):
    """The declaration: a name, BM25's two constants, and how many documents an account has of
    which something is held in memory. `bind` gives it a reader and a tenant.
    """

    def __init__(
        self, name: str, k1: float = 1.2, b: float = 0.75, held_min: int = HELD_DOCUMENTS_MIN
    ):
        self.name = name
        self.held_min = held_min
        self.k1 = k1
        self.b = b
        self.postings = Table(
            f"{name}.postings",
            ("term", "block"),
            bytes,
            doc="Occurrences of a term in 1,024 documents.",
        )
        self.forward = Table(f"{name}.forward", ("ordinal",), bytes, doc="Terms of a document.")
        self.lengths = Table(
            f"{name}.lengths", ("block",), bytes, doc="Lengths of 512 documents, in terms."
        )
        self.stats = Table(
            f"{name}.stats",
            (),
            LexicalStats,
            version=2,  # 2: tokens, of which there are none in a row of version 1
            doc="How many documents, their length in all, and what was drawn by changes.",
            reshape={1: lambda rows, key, secret: None},
        )
        self.tables = (self.postings, self.forward, self.lengths, self.stats)

    def bind(self, reader: Reader, scope: Scope) -> BoundLexical:
        return BoundLexical(self, reader, scope)

    def held(self, reader: Reader, scope: Scope) -> HeldLexical:
        """What is in memory of a tenant."""
        return reader.store.residents.get((self.name, scope), HeldLexical)


class BoundLexical:
    """The index inside one snapshot or transaction and one tenant.

    On a snapshot each term's postings, the lengths and the counts are read once and kept for the
    binding's lifetime, so that search, score and ceiling of the same query share them.
    """

    def __init__(self, index: LexicalIndex, reader: Reader, scope: Scope):
        self._index, self._reader, self._scope = index, reader, scope
        self._k1, self._b = index.k1, index.b
        self._keyed = blake2b(digest_size=TERM_KEY_BYTES, key=scope.key)
        self._postings = reader.bind(index.postings, scope)
        self._forward = reader.bind(index.forward, scope)
        self._lengths = reader.bind(index.lengths, scope)
        self._stats = reader.bind(index.stats, scope)
        self._read: dict[str, Postings] | None = None if reader.writable else {}
        self._joined: tuple[tuple[str, ...], EndToEnd] | None = None
        self._lengths_read: Lengths | None = None
        self._stats_read: LexicalStats | None = None

    # --- writing ----------------------------------------------------------------------------------

    def add(self, ordinal: int, terms: Terms) -> None:
        """Index a document under its terms (a sequence with repetitions, or counts). Of an older
        version, only changes are rewritten.
        """
        self._change([(ordinal, terms)])

    def add_many(self, documents: Iterable[tuple[int, Terms]]) -> None:
        """As add, for many documents: each stored block is rewritten once. Of an ordinal given
        twice, the last counts.
        """
        self._change(dict(documents).items())

    def remove(self, ordinal: int) -> bool:
        """Take a document out; -> whether it was indexed."""
        return self.remove_many([ordinal]) == 1

    def remove_many(self, ordinals: Iterable[int]) -> int:
        """Take documents out; -> how many of them were indexed."""
        return self._change([(ordinal, None) for ordinal in set(ordinals)])

    def clear(self) -> int:
        """Delete everything of the tenant in this index; -> how many documents it had."""
        documents = self.stats().documents
        for table in (self._postings, self._forward, self._lengths, self._stats):
            table.delete_prefix()
        return documents

    def _change(self, documents: Iterable[tuple[int, Terms | None]]) -> int:
        """Bring each document to its new terms (None: remove it); -> how many were indexed
        before.
        """
        # (term key, block) -> {low bits of the ordinal: occurrences, 0 removes}
        edits: dict[tuple[bytes, int], dict[int, int]] = {}
        lengths: dict[int, int] = {}
        stats, token = self.stats(), secrets.token_bytes(TOKEN_BYTES)
        if not self._stats.has():
            stats.tokens[WHOLE] = token
        known = 0
        for ordinal, terms in documents:
            block, low = place_in_block(ordinal)
            stored = self._forward.get(ordinal)
            old = {} if stored is None else unpacked_forward(stored)
            new = {} if terms is None else self._counted(terms)
            if stored is not None:
                known += 1
                stats.documents -= 1
                stats.total_length -= length_of(old)
            for key, count in new.items():
                if old.pop(key, 0) != count:
                    edits.setdefault((key, block), {})[low] = count
            for key in old:
                edits.setdefault((key, block), {})[low] = 0
            if terms is not None:
                stats.documents += 1
                stats.total_length += length_of(new)
                self._forward.put((ordinal,), packed_forward(new))
                lengths[ordinal] = length_of(new)
            elif stored is not None:
                self._forward.delete(ordinal)
                lengths[ordinal] = 0
        if lengths:
            self._write_postings(edits)
            self._write_lengths(lengths)
            stats.tokens.update((ordinal >> RANGE_SHIFT, token) for ordinal in lengths)
            self._stats.put((), stats)
        return known

    def _write_postings(self, edits: dict[tuple[bytes, int], dict[int, int]]) -> None:
        table = self._postings
        for place in sorted(edits):
            block = edited_block(table.get_raw(*place) or b"", edits[place])
            if block:
                table.put_raw(place, block)
            else:
                table.delete(*place)

    def _write_lengths(self, lengths: dict[int, int]) -> None:
        blocks: dict[int, bytearray] = {}
        for ordinal, length in lengths.items():
            number, place = ordinal >> LENGTHS_SHIFT, 2 * (ordinal % LENGTHS_PER_BLOCK)
            block = blocks.get(number)
            if block is None:
                block = blocks[number] = bytearray(self._lengths.get_raw(number) or b"")
            if len(block) < place + 2:
                block.extend(bytes(place + 2 - len(block)))
            block[place : place + 2] = length.to_bytes(2, "little")
        for number, block in blocks.items():
            while block and block[-2:] == b"\x00\x00":
                del block[-2:]
            if block:
                self._lengths.put((number,), bytes(block))
            else:
                self._lengths.delete(number)

    def _counted(self, terms: Terms) -> dict[bytes, int]:
        counts = terms if isinstance(terms, Mapping) else Counter(terms)
        return {
            self._key(term): min(count, OCCURRENCES_MAX)
            for term, count in counts.items()
            if count > 0
        }

    def _key(self, term: str) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(term.encode(errors="surrogatepass"))
        return keyed.digest()

    # --- reading ----------------------------------------------------------------------------------

    def has(self, ordinal: int) -> bool:
        """Whether the document is indexed."""
        return self._forward.has(ordinal)

    def stats(self) -> LexicalStats:
        if self._stats_read is not None:
            return self._stats_read
        stats = self._stats.get() or LexicalStats()
        if self._read is not None:
            self._stats_read = stats
        return stats

    def have_terms(self, terms: Iterable[str]) -> list[bool]:
        """Whether any document has each of the terms; reads no more than keys."""
        return self._postings.have_each((), map(self._key, terms))

    def counts_of(self, terms: Iterable[str]) -> list[int]:
        """How many documents have each of the terms, of which nothing is unpacked."""
        keys, held = [self._key(term) for term in terms], self._in_memory()
        if held is not None:
            return [int(each.sizes.sum()) for each in self._blocks_in(held, keys)]
        rows = self._postings.raw_under_each([(key,) for key in keys])
        return [sum(len(block) for _, block in each) >> 1 for each in rows]

    def postings(self, term: str) -> Postings:
        """Where the term occurs; empty arrays when nowhere."""
        return self.postings_of([term])[0]

    def postings_of(self, terms: Iterable[str]) -> list[Postings]:
        """As postings, of several terms, aligned with them. Reading them at once costs little more
        than reading one.
        """
        known = {} if self._read is None else self._read
        wanted = list(terms)
        missing = [term for term in dict.fromkeys(wanted) if term not in known]
        if missing:
            known.update(zip(missing, self._load(missing).each(), strict=True))
        return [known[term] for term in wanted]

    def lengths(self, ordinals: NDArray[np.integer]) -> NDArray[np.uint16]:
        """The documents' lengths in terms, aligned with `ordinals`; 0 for one that is not
        indexed.
        """
        found = np.empty(len(ordinals), np.uint16)
        lengths_at(*self._length_table(), np.ascontiguousarray(ordinals, np.uint32), found)
        return found

    def _length_table(self) -> Lengths:
        """All lengths: two bytes each, so that all of them are read sooner than the blocks of some
        are picked.
        """
        if self._lengths_read is not None:
            return self._lengths_read
        held = self._in_memory()
        table = (
            Lengths.of(*_numbered(self._lengths.raw_under()))
            if held is None
            else held.lengths(self.stats(), self._read_lengths)
        )
        if self._read is not None:
            self._lengths_read = table
        return table

    def document_frequencies(self, terms: Sequence[str], members: Ordinals) -> NDArray[np.int64]:
        """(terms,) how many of the members, which ascend, have each term."""
        found = np.zeros(len(terms), np.int64)
        if len(terms):
            ordinals, _, ends = self.end_to_end(terms)
            blocks, lengths = self._length_table()
            count_members(blocks, members, np.zeros(len(lengths), np.bool_), ordinals, ends, found)
        return found

    def idfs(self, terms: Iterable[str]) -> list[float]:
        """ln(1 + (N − df + ½) / (df + ½)) of each term; ln(1 + N / ½) of one that no document
        has.
        """
        documents = self.stats().documents
        return [_idf(documents, len(each.ordinals)) for each in self.postings_of(terms)]

    def ceiling(self, terms: Iterable[str]) -> float:
        """What no score exceeds: (k1 + 1)·Σ idf over the distinct terms. Dividing by it makes
        scores of different queries comparable.
        """
        return (self._k1 + 1) * math.fsum(self.idfs(dict.fromkeys(terms)))

    def frequencies(
        self, terms: Sequence[str], ordinals: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """(terms, ordinals) matrix: how often each term occurs in each document, 0 when it does
        not.
        """
        wanted = np.ascontiguousarray(ordinals, np.uint32)
        found = np.zeros((len(terms), len(wanted)), np.float32)
        if len(terms):
            look_up_each(*self.end_to_end(terms), wanted, found)
        return found

    def end_to_end(self, terms: Sequence[str]) -> EndToEnd:
        """The postings of at least one term, end to end; on a snapshot the last terms' are kept."""
        key = tuple(terms)
        if self._joined is not None and self._joined[0] == key:
            return self._joined[1]
        if self._read or len(set(key)) < len(key):
            found = _end_to_end(self.postings_of(terms))
        else:
            found = self._load(key)
            if self._read is not None:
                self._read.update(zip(key, found.each(), strict=True))
        if self._read is not None:
            self._joined = key, found
        return found

    def score(self, terms: Iterable[str], ordinals: NDArray[np.integer]) -> Scores:
        """BM25 of the given documents for the distinct terms, aligned with `ordinals`."""
        distinct = list(dict.fromkeys(terms))
        stats = self.stats()
        occurrences = self.frequencies(distinct, ordinals)
        weights = np.array(self.idfs(distinct), np.float64)
        base, slope = self._norm(stats)
        saturated = (
            occurrences * (self._k1 + 1) / (occurrences + base + slope * self.lengths(ordinals))
        )
        return (weights @ saturated).astype(np.float32)

    def search(
        self, terms: Iterable[str], k: int, allowed: BitMap | Ordinals | None = None
    ) -> tuple[Ordinals, Scores]:
        """The k best documents for the distinct terms among `allowed` (None: all), as a set or
        ascending: by score, then ordinal, both descending.
        """
        stats, wanted = self.stats(), dict.fromkeys(terms)
        if not wanted or k < 1:
            return np.zeros(0, np.uint32), np.zeros(0, np.float32)
        # Whoever asks has mostly read all of its terms, of which it searches by some.
        read = () if self._joined is None else self._joined[0]
        joined = read if wanted.keys() <= set(read) else tuple(wanted)
        found = self.end_to_end(joined)
        weights = [
            (self._k1 + 1) * _idf(stats.documents, count) if term in wanted else 0.0
            for term, count in zip(joined, found.counts(), strict=True)
        ]
        members = np.zeros(0, np.uint32) if allowed is None else ordinals_of(allowed)
        ordinals, scores = np.empty(2 * k + 1, np.uint32), np.empty(2 * k + 1, np.float32)
        count = best_scores(
            *found,
            np.array(weights, np.float32),
            *self._norm(stats),
            *self._length_table(),
            members,
            allowed is None,
            k,
            ordinals,
            scores,
        )
        return best(ordinals[:count], scores[:count], k)

    def _load(self, terms: Sequence[str]) -> EndToEnd:
        """The postings of distinct terms, from the store or from what is held of them."""
        keys, held = [self._key(term) for term in terms], self._in_memory()
        if held is None:
            rows = self._postings.raw_under_each([(key,) for key in keys])
            counts = [len(each) for each in rows]
            numbers, sizes, packed = Blocks.of(*_numbered(itertools.chain(*rows)))
        else:
            blocks = self._blocks_in(held, keys)
            counts = [len(each.numbers) for each in blocks]
            numbers, sizes, packed = map(np.concatenate, zip(*blocks, strict=True))
        ordinals, occurrences = np.empty(len(packed), np.uint32), np.empty(len(packed), np.float32)
        unpack(packed, numbers, sizes, ordinals, occurrences)
        ends = np.concatenate(([0], np.cumsum(sizes)))[np.cumsum(counts)]
        return EndToEnd(ordinals, occurrences, ends)

    def _blocks_in(self, held: HeldLexical, keys: Sequence[bytes]) -> list[Blocks]:
        blocks = held.blocks_of(keys, self.stats(), self._read_blocks)
        self._reader.store.residents.resize((self._index.name, self._scope))
        return blocks

    def _in_memory(self) -> HeldLexical | None:
        """What is in memory of a large account, for a snapshot."""
        if self._read is None or self.stats().documents < self._index.held_min:
            return None
        return self._index.held(self._reader, self._scope)

    def _read_blocks(self, ranges: Sequence[tuple[bytes, int, int]]) -> list[Blocks]:
        found = self._postings.raw_between_each(
            [((key,), first, end) for key, first, end in ranges]
        )
        return [Blocks.of(*_numbered(each)) for each in found]

    def _read_lengths(self, first: int, end: int) -> Lengths:
        return Lengths.of(*_numbered(self._lengths.raw_between_each([((), first, end)])[0]))

    def _norm(self, stats: LexicalStats) -> tuple[np.float32, np.float32]:
        """(base, slope): a document of length l has the norm base + slope · l."""
        average = stats.total_length / stats.documents if stats.total_length else 1.0
        return np.float32(self._k1 * (1 - self._b)), np.float32(self._k1 * self._b / average)


def _end_to_end(postings: Sequence[Postings]) -> EndToEnd:
    ends = list(itertools.accumulate(len(each.ordinals) for each in postings))
    return EndToEnd(
        np.concatenate([each.ordinals for each in postings]),
        np.concatenate([each.occurrences for each in postings]),
        np.array(ends, np.int64),
    )


def _idf(documents: int, containing: int) -> float:
    if containing == 0:
        return math.log(1 + documents / 0.5)
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def _numbered(rows: Iterable[tuple[bytes, bytes]]) -> tuple[list[int], list[bytes]]:
    """The numbers of stored blocks, and their bytes."""
    numbers, stored = [], []
    for rest, raw in rows:
        numbers.append(decode_count(rest))
        stored.append(raw)
    return numbers, stored
