"""BM25 over postings that live in ordinary tables, so they commit together with the rows they
describe.

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
    x.stats     ()                         -> how many documents, how many terms in all of them

A term key is 8 bytes of BLAKE2b over the term, keyed with the tenant's secret (`scope.key`):
whoever reads the file learns neither words nor whether two tenants share one. All numbers are
little-endian.

Invariants
- A document's rows are functions of its terms alone: adding it, removing it and adding it again
  leaves the same bytes.
- Adding touches one small value per term; many documents added at once touch each value once.
- A search reads the blocks of its own terms and the lengths of all documents, nothing else of the
  tenant.

Ordinals may lie anywhere, but are meant to be counted up: a search takes three KiB of memory for
each stored block of lengths, which holds 512 numbers in a row.

Limits of the layout: occurrences count up to 64 when scoring (BM25 is saturated long before), a
document's length up to 65,535.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.index import Index
from storage.indexes.kernels import (
    BOOL,
    FLOAT32,
    INT64,
    UINT16,
    UINT32,
    in_array,
    inline,
    kernel,
    out_array,
)
from storage.indexes.ordinals import Ordinals, look_up_each, ordinals_of, place_among
from storage.indexes.top_k import Scores, best
from storage.store import Reader, Scope, Table, decode_count

TERM_KEY_BYTES = 8
POSTINGS_SHIFT, LENGTHS_SHIFT = 10, 9
OCCURRENCE_BITS = 6
OCCURRENCES_SCORED_MAX = 1 << OCCURRENCE_BITS
OCCURRENCES_MAX = LENGTH_MAX = 0xFFFF

_LOW_MASK = (1 << POSTINGS_SHIFT) - 1
_LENGTHS_PER_BLOCK = 1 << LENGTHS_SHIFT
_LENGTHS_MASK = _LENGTHS_PER_BLOCK - 1
_NOWHERE = 1 << 40  # further from every ordinal than a block is long
_FORWARD_BYTES = TERM_KEY_BYTES + 2

Terms = Sequence[str] | Mapping[str, int]


class LexicalStats(msgspec.Struct):
    """documents indexed, and the sum of their lengths in terms."""

    documents: int = 0
    total_length: int = 0


class Postings(NamedTuple):
    """Where one term occurs: ordinals ascending, and how often in each (at most
    OCCURRENCES_SCORED_MAX).
    """

    ordinals: Ordinals
    occurrences: NDArray[np.float32]


class _Lengths(NamedTuple):
    """Lengths of documents: the stored blocks, ascending, and 512 of each end to end. Where a
    document's length stands there is its *place*.
    """

    blocks: Ordinals
    each: NDArray[np.uint16]


class _EndToEnd(NamedTuple):
    """Postings of several terms, one after the other; those of each end at `ends`."""

    ordinals: Ordinals
    occurrences: NDArray[np.float32]
    ends: NDArray[np.int64]


class LexicalIndex(Index):
    """The declaration: a name and BM25's two constants. `bind` gives it a reader and a tenant."""

    def __init__(self, name: str, k1: float = 1.2, b: float = 0.75):
        self.name = name
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
            f"{name}.stats", (), LexicalStats, doc="How many documents, and their length in all."
        )
        self.tables = (self.postings, self.forward, self.lengths, self.stats)

    def bind(self, reader: Reader, scope: Scope) -> BoundLexical:
        return BoundLexical(self, reader, scope)


class BoundLexical:
    """The index inside one snapshot or transaction and one tenant.

    On a snapshot each term's postings, the lengths and the counts are read once and kept for the
    binding's lifetime, so that search, score and ceiling of the same query share them.
    """

    def __init__(self, index: LexicalIndex, reader: Reader, scope: Scope):
        self._k1, self._b = index.k1, index.b
        self._keyed = blake2b(digest_size=TERM_KEY_BYTES, key=scope.key)
        self._postings = reader.bind(index.postings, scope)
        self._forward = reader.bind(index.forward, scope)
        self._lengths = reader.bind(index.lengths, scope)
        self._stats = reader.bind(index.stats, scope)
        self._read: dict[str, Postings] | None = None if reader.writable else {}
        self._joined: tuple[tuple[str, ...], _EndToEnd] | None = None
        self._lengths_read: _Lengths | None = None
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
        stats = self.stats()
        known = 0
        for ordinal, terms in documents:
            block, low = ordinal >> POSTINGS_SHIFT, ordinal & _LOW_MASK
            stored = self._forward.get(ordinal)
            old = {} if stored is None else _unpack_forward(stored)
            new = {} if terms is None else self._counted(terms)
            if stored is not None:
                known += 1
                stats.documents -= 1
                stats.total_length -= _length(old)
            for key, count in new.items():
                if old.pop(key, 0) != count:
                    edits.setdefault((key, block), {})[low] = count
            for key in old:
                edits.setdefault((key, block), {})[low] = 0
            if terms is not None:
                stats.documents += 1
                stats.total_length += _length(new)
                self._forward.put((ordinal,), _pack_forward(new))
                lengths[ordinal] = _length(new)
            elif stored is not None:
                self._forward.delete(ordinal)
                lengths[ordinal] = 0
        if lengths:
            self._write_postings(edits)
            self._write_lengths(lengths)
            self._stats.put((), stats)
        return known

    def _write_postings(self, edits: dict[tuple[bytes, int], dict[int, int]]) -> None:
        table = self._postings
        for place in sorted(edits):
            block = _edit_block(table.get_raw(*place) or b"", edits[place])
            if block:
                table.put_raw(place, block)
            else:
                table.delete(*place)

    def _write_lengths(self, lengths: dict[int, int]) -> None:
        blocks: dict[int, bytearray] = {}
        for ordinal, length in lengths.items():
            number, place = ordinal >> LENGTHS_SHIFT, 2 * (ordinal % _LENGTHS_PER_BLOCK)
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
            known.update(zip(missing, self._load(missing), strict=True))
        return [known[term] for term in wanted]

    def lengths(self, ordinals: NDArray[np.integer]) -> NDArray[np.uint16]:
        """The documents' lengths in terms, aligned with `ordinals`; 0 for one that is not
        indexed.
        """
        found = np.empty(len(ordinals), np.uint16)
        _lengths_at(*self._length_table(), np.ascontiguousarray(ordinals, np.uint32), found)
        return found

    def _length_table(self) -> _Lengths:
        """All lengths: two bytes each, so that all of them are read sooner than the blocks of some
        are picked.
        """
        if self._lengths_read is not None:
            return self._lengths_read
        blocks = [(decode_count(rest), raw) for rest, raw in self._lengths.raw_under()]
        table = _Lengths(
            np.array([number for number, _ in blocks], np.uint32),
            np.frombuffer(
                b"".join([raw.ljust(2 * _LENGTHS_PER_BLOCK, b"\0") for _, raw in blocks]), "<u2"
            ),
        )
        if self._read is not None:
            self._lengths_read = table
        return table

    def document_frequencies(self, terms: Iterable[str], members: Ordinals) -> NDArray[np.int64]:
        """(terms,) how many of the members, which ascend, have each term."""
        postings = self.postings_of(terms)
        found = np.zeros(len(postings), np.int64)
        if postings:
            ordinals, _, ends = _end_to_end(postings)
            blocks, lengths = self._length_table()
            _count_members(blocks, members, np.zeros(len(lengths), np.bool_), ordinals, ends, found)
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

    def end_to_end(self, terms: Sequence[str]) -> _EndToEnd:
        """The postings of at least one term, end to end; on a snapshot the last terms' are kept."""
        key = tuple(terms)
        if self._joined is not None and self._joined[0] == key:
            return self._joined[1]
        found = _end_to_end(self.postings_of(terms))
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
        stats = self.stats()
        found = [
            postings
            for postings in self.postings_of(dict.fromkeys(terms))
            if len(postings.ordinals)
        ]
        if not found or k < 1:
            return np.zeros(0, np.uint32), np.zeros(0, np.float32)
        blocks, lengths = self._length_table()
        totals = np.zeros(len(lengths), np.float32)
        weights = [(self._k1 + 1) * _idf(stats.documents, len(each.ordinals)) for each in found]
        _add_scores(
            *_end_to_end(found),
            np.array(weights, np.float32),
            *self._norm(stats),
            blocks,
            lengths,
            totals,
        )
        members = _all_in(blocks) if allowed is None else ordinals_of(allowed)
        met, scores = np.empty(len(members), np.uint32), np.empty(len(members), np.float32)
        count = _met(blocks, totals, members, met, scores)
        return best(met[:count], scores[:count], k)

    def _load(self, terms: Sequence[str]) -> Iterator[Postings]:
        found = self._postings.raw_under_each([(self._key(term),) for term in terms])
        blocks = [block for each in found for block in each]
        packed = np.frombuffer(b"".join([raw for _, raw in blocks]), "<u2")
        sizes = np.array([len(raw) >> 1 for _, raw in blocks], np.int64)
        ordinals, occurrences = np.empty(len(packed), np.uint32), np.empty(len(packed), np.float32)
        _unpack(
            packed,
            np.array([decode_count(rest) for rest, _ in blocks], np.uint32),
            sizes,
            ordinals,
            occurrences,
        )
        ends = np.concatenate(([0], np.cumsum(sizes)))[np.cumsum([0, *map(len, found)])].tolist()
        return (
            Postings(ordinals[start:end], occurrences[start:end])
            for start, end in itertools.pairwise(ends)
        )

    def _norm(self, stats: LexicalStats) -> tuple[np.float32, np.float32]:
        """(base, slope): a document of length l has the norm base + slope · l."""
        average = stats.total_length / stats.documents if stats.total_length else 1.0
        return np.float32(self._k1 * (1 - self._b)), np.float32(self._k1 * self._b / average)


@kernel(in_array(UINT16), in_array(UINT32), in_array(INT64), out_array(UINT32), out_array(FLOAT32))
def _unpack(packed, blocks, sizes, ordinals, occurrences):
    """Blocks end to end, `sizes` numbers each, -> ordinals, and how often the term occurs in
    each.
    """
    start = 0
    for block in range(blocks.shape[0]):
        base, end = blocks[block] << np.uint32(POSTINGS_SHIFT), start + sizes[block]
        for place in range(start, end):
            ordinals[place] = base + (packed[place] >> np.uint32(OCCURRENCE_BITS))
            occurrences[place] = np.float32(
                (packed[place] & np.uint32(OCCURRENCES_SCORED_MAX - 1)) + np.uint32(1)
            )
        start = end


@inline
def _entered(blocks, near, ordinal):
    """(which of the blocks has the ordinal, mostly the one after `near`, or −1; the first ordinal
    of such a block; how far from it this one is).
    """
    number = np.int64(ordinal) >> LENGTHS_SHIFT
    at = near + 1
    if at >= blocks.shape[0] or blocks[at] != number:
        at = place_among(blocks, number)
    return at, np.uint64(number << LENGTHS_SHIFT), np.uint64(np.int64(ordinal) & _LENGTHS_MASK)


@kernel(
    in_array(UINT32), in_array(FLOAT32), in_array(INT64), in_array(FLOAT32), FLOAT32, FLOAT32,
    in_array(UINT32), in_array(UINT16), out_array(FLOAT32),
)  # fmt: skip
def _add_scores(ordinals, occurrences, ends, weights, base, slope, blocks, lengths, totals):
    """Add the BM25 of each term to the totals, by place, of the documents that have it; postings
    end to end.
    """
    start, at, first = 0, -1, np.uint64(_NOWHERE)
    for term in range(ends.shape[0]):
        for posting in range(start, ends[term]):
            low = np.uint64(ordinals[posting]) - first
            if low >= np.uint64(_LENGTHS_PER_BLOCK):
                at, first, low = _entered(blocks, at, ordinals[posting])
            if at < 0:
                continue
            place = np.uint64(at << LENGTHS_SHIFT) + low
            totals[place] += (
                weights[term]
                * occurrences[posting]
                / (occurrences[posting] + base + slope * np.float32(lengths[place]))
            )
        start = ends[term]


@kernel(
    in_array(UINT32), in_array(FLOAT32), in_array(UINT32), out_array(UINT32), out_array(FLOAT32),
    result=INT64,
)  # fmt: skip
def _met(blocks, totals, members, met, scores):
    """The members, ascending, that have a total, and those; -> how many."""
    count, at, i, size = 0, -1, np.uint64(0), np.uint64(members.shape[0])
    while i < size:
        at, first, _ = _entered(blocks, at, members[i])
        start = np.uint64(max(at, 0) << LENGTHS_SHIFT)
        while i < size:
            low = np.uint64(members[i]) - first
            if low >= np.uint64(_LENGTHS_PER_BLOCK):
                break
            total = totals[start + low]
            if at >= 0 and total > 0:
                met[count], scores[count] = members[i], total
                count += 1
            i += np.uint64(1)
    return count


@kernel(
    in_array(UINT32), in_array(UINT32), out_array(BOOL), in_array(UINT32), in_array(INT64),
    out_array(INT64),
)  # fmt: skip
def _count_members(blocks, members, held, ordinals, ends, found):
    """How many of the members are in each of the lists, which stand end to end. held: by place,
    all false.
    """
    at, first = -1, np.uint64(_NOWHERE)
    for i in range(members.shape[0]):
        low = np.uint64(members[i]) - first
        if low >= np.uint64(_LENGTHS_PER_BLOCK):
            at, first, low = _entered(blocks, at, members[i])
        if at >= 0:
            held[np.uint64(at << LENGTHS_SHIFT) + low] = True
    start = 0
    for each in range(ends.shape[0]):
        for posting in range(start, ends[each]):
            low = np.uint64(ordinals[posting]) - first
            if low >= np.uint64(_LENGTHS_PER_BLOCK):
                at, first, low = _entered(blocks, at, ordinals[posting])
            if at >= 0:
                found[each] += held[np.uint64(at << LENGTHS_SHIFT) + low]
        start = ends[each]


@kernel(in_array(UINT32), in_array(UINT16), in_array(UINT32), out_array(UINT16))
def _lengths_at(blocks, lengths, ordinals, found):
    at, first = -1, np.uint64(_NOWHERE)
    for i in range(ordinals.shape[0]):
        low = np.uint64(ordinals[i]) - first
        if low >= np.uint64(_LENGTHS_PER_BLOCK):
            at, first, low = _entered(blocks, at, ordinals[i])
        found[i] = lengths[np.uint64(at << LENGTHS_SHIFT) + low] if at >= 0 else 0


def _all_in(blocks: Ordinals) -> Ordinals:
    """All ordinals of the blocks, ascending."""
    low = np.arange(_LENGTHS_PER_BLOCK, dtype=np.uint32)
    return ((blocks[:, np.newaxis] << np.uint32(LENGTHS_SHIFT)) + low).ravel()


def _end_to_end(postings: Sequence[Postings]) -> _EndToEnd:
    ends = list(itertools.accumulate(len(each.ordinals) for each in postings))
    return _EndToEnd(
        np.concatenate([each.ordinals for each in postings]),
        np.concatenate([each.occurrences for each in postings]),
        np.array(ends, np.int64),
    )


def _idf(documents: int, containing: int) -> float:
    if containing == 0:
        return math.log(1 + documents / 0.5)
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def _length(counts: Mapping[bytes, int]) -> int:
    return min(sum(counts.values()), LENGTH_MAX)


def _pack_forward(counts: Mapping[bytes, int]) -> bytes:
    return b"".join(counts) + struct.pack(f"<{len(counts)}H", *counts.values())


def _unpack_forward(raw: bytes) -> dict[bytes, int]:
    size = len(raw) // _FORWARD_BYTES
    keys = [raw[at : at + TERM_KEY_BYTES] for at in range(0, size * TERM_KEY_BYTES, TERM_KEY_BYTES)]
    return dict(zip(keys, struct.unpack_from(f"<{size}H", raw, size * TERM_KEY_BYTES), strict=True))


def _edit_block(raw: bytes, changes: Mapping[int, int]) -> bytes:
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
