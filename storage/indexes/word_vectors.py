"""Small vectors of a document's words, and how near a document comes to each word of a query: the
storage side of late interaction.

It owns rows of eight-bit unit vectors, by space and ordinal; it knows neither the words nor the
model that made the vectors.

    x.words  (space, ordinal)  -> w · width int8 numbers, unit vectors times 127, in the order of
                                  the words

The words can be told from their vectors, so rows are sealed like the text itself.

A search looks at some hundred documents. To fetch as many rows costs more than to compare them, so
the vectors of a tenant that is searched are resident, one after another in one array per space,
filled and fed as storage/indexes/resident_index.py says. Which of them are a document's is told by
its *place*, and storage/indexes/row_map.py tells where the place of each ordinal is.

They are the largest part of what an account has resident. Of one with many documents they stay on
the disk, and a search reads the rows of those that it looks at.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.fetching import LINE_BYTES, fetch
from storage.indexes.kernels import (
    FLOAT32,
    INT8,
    INT32,
    INT64,
    in_array,
    inline,
    kernel,
    out_array,
)
from storage.indexes.resident_index import ResidentIndex
from storage.indexes.row_map import ABSENT, RowMap
from storage.indexes.vectors.quantised import product_of_codes
from storage.store import Reader, Scope, Table

STEPS = 127
DOCUMENTS_AHEAD = 2  # that are asked for before they are compared
# Above it a search reads rows, which takes it about a millisecond (loadtests/fleet.py).
RESIDENT_DOCUMENTS_MAX = 80_000
GROWTH = 1.5
LOAD_CHUNK = 1_024  # rows taken over at once
BYTES_MIN, DOCUMENTS_MIN = 1 << 14, 64
SIZE_BITS = 24  # of a place; the others are where it starts
_SIZE_MASK = (1 << SIZE_BITS) - 1


class WordsChange(NamedTuple):
    """raw empty: the document has no words any more; space None: nothing of the tenant is left."""

    space: str | None
    ordinal: int = 0
    raw: bytes = b""


class WordVectors(ResidentIndex["_Spaces"]):
    """The declaration: a name. `bind` gives it a reader and a tenant."""

    def __init__(self, name: str):
        super().__init__(name)
        self.words: Table[bytes] = Table(
            f"{name}.words",
            ("space", "ordinal"),
            bytes,
            version=2,
            doc="Vectors of a document's words, int8.",
            sealed=True,
            sealed_from=2,
        )
        self.tables = (self.words,)

    def bind(self, reader: Reader, scope: Scope) -> BoundWords:
        return BoundWords(self, reader, scope)

    def _empty(self) -> _Spaces:
        return _Spaces()

    def _fill(self, state: _Spaces, reader: Reader, scope: Scope) -> None:
        rows = (
            WordsChange(space, ordinal, raw)
            for (space, ordinal), raw in reader.bind(self.words, scope).scan()
        )
        while chunk := list(itertools.islice(rows, LOAD_CHUNK)):
            state.load(chunk)


class BoundWords:
    """The rows of one tenant in one reader."""

    def __init__(self, index: WordVectors, reader: Reader, scope: Scope):
        self._index, self._reader, self._scope = index, reader, scope
        self._rows = reader.bind(index.words, scope)

    def put(self, space: str, ordinal: int, words: NDArray[np.int8]) -> None:
        """Insert or replace; words (w, width) int8. A document without words has no row."""
        if not len(words):
            self.delete(space, ordinal)
            return
        raw = np.ascontiguousarray(words, np.int8).tobytes()
        self._rows.put_raw((space, ordinal), raw)
        self._note(WordsChange(space, ordinal, raw))

    def delete(self, space: str, ordinal: int) -> bool:
        """Delete a document's row; -> whether there was one."""
        deleted = self._rows.delete(space, ordinal)
        if deleted:
            self._note(WordsChange(space, ordinal))
        return deleted

    def clear(self) -> int:
        """Delete all rows of the tenant; -> how many."""
        self._note(WordsChange(None))
        return self._rows.delete_prefix()

    def nearest(
        self,
        space: str,
        ordinals: NDArray[np.uint32],
        query: NDArray[np.int8],
        places: NDArray[np.int32] | None = None,
        documents: int = 0,
    ) -> NDArray[np.float32]:
        """(n, q): for each document and each word of the query (q, width) the highest cosine among
        the document's words, at least 0.

        places     (n,) which of the ordinals are meant, −1 for none; without, all of them. What is
                   meant several times is compared once
        documents  how many the space has, about; of more than RESIDENT_DOCUMENTS_MAX none stays
                   resident
        """
        if places is None:
            places = np.arange(len(ordinals), dtype=np.int32)
        found = np.zeros((len(places), len(query)), np.float32)
        if not len(query):
            return found
        if documents > RESIDENT_DOCUMENTS_MAX:
            self._reader.store.residents.drop((self._index.name, self._scope))
            vectors, held, rows = self._read(space, ordinals, places)
        else:
            resident = self._index.resident(self._reader.store, self._scope).space(space)
            if resident is None:
                return found
            vectors, held, rows = resident.vectors, resident.places, resident.rows.find(ordinals)
        places, query = np.ascontiguousarray(places, np.int32), np.ascontiguousarray(query)
        _nearest(vectors, held, rows, places, query, found)
        return found

    def _read(
        self, space: str, ordinals: NDArray[np.uint32], places: NDArray[np.int32]
    ) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int32]]:
        """The stored vectors of the documents that are meant: end to end, the place of each in
        them, and which of those places is each ordinal's.
        """
        meant = np.unique(places[places >= 0])
        keys = [(ordinal,) for ordinal in ordinals[meant].tolist()]
        raws = [raw or b"" for raw in self._rows.get_many(keys, (space,))]
        rows = np.full(len(ordinals), ABSENT, np.int32)
        rows[meant] = np.arange(len(meant), dtype=np.int32)
        return np.frombuffer(b"".join(raws), np.int8), _end_to_end(raws), rows

    def _note(self, change: WordsChange) -> None:
        self._reader.note(self._index.name, self._scope, change)


def _end_to_end(raws: Sequence[bytes]) -> NDArray[np.int64]:
    """The place of each in all of them, one after another."""
    sizes = np.array([len(raw) for raw in raws], np.int64)
    return (np.cumsum(sizes) - sizes) << SIZE_BITS | sizes


class _Held(NamedTuple):
    """A space at one moment: all vectors end to end; places in them, first number << SIZE_BITS |
    how many numbers; and which of the places each ordinal has.
    """

    vectors: NDArray[np.int8]
    places: NDArray[np.int64]
    rows: RowMap


class _Spaces:
    """The resident vectors of one tenant, by space."""

    def __init__(self) -> None:
        self._spaces: dict[str, _Space] = {}

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for space in list(self._spaces.values()) for each in space.held)

    def space(self, name: str) -> _Held | None:
        space = self._spaces.get(name)
        return None if space is None else space.held

    def apply(self, change: WordsChange) -> None:
        if change.space is None:
            self._spaces = {}
            return
        space = self._spaces.setdefault(change.space, _Space())
        if change.raw:
            space.put(change.ordinal, change.raw)
        else:
            space.delete(change.ordinal)

    def load(self, changes: Sequence[WordsChange]) -> None:
        """Take over rows of which none is there."""
        for name, rows in itertools.groupby(changes, lambda change: change.space or ""):
            own = list(rows)
            self._spaces.setdefault(name, _Space()).extend(
                np.array([change.ordinal for change in own], np.int64),
                [change.raw for change in own],
            )


class _Space:
    """The resident vectors of one space.

    A document's vectors are written behind all others before its place points at them, and what
    they replace, or what is deleted, stays where it is until the array is full or more than half of
    it is such. Then what is there is copied. So a reader of `held` never sees a document half
    written.
    """

    def __init__(self) -> None:
        self.held = _Held(np.empty(BYTES_MIN, np.int8), np.empty(DOCUMENTS_MIN, np.int64), RowMap())
        self._used = self._live = 0  # numbers, and those that some place points at
        self._rows_used = self._rows_live = 0

    def put(self, ordinal: int, raw: bytes) -> None:
        if self.held.rows.get(ordinal) == ABSENT:
            self.extend(np.array([ordinal]), [raw])
            return
        (place,) = self._appended([raw])
        row = self.held.rows.get(ordinal)
        self._live -= int(self.held.places[row]) & _SIZE_MASK
        self.held.places[row] = place

    def extend(self, ordinals: NDArray[np.int64], raws: Sequence[bytes]) -> None:
        """Put in documents that are not there."""
        places, start = self._appended(raws), self._rows_used
        self._rows_used, self._rows_live = start + len(raws), self._rows_live + len(raws)
        if self._rows_used > len(self.held.places):
            longer = np.empty(int(GROWTH * self._rows_used), np.int64)
            longer[:start] = self.held.places[:start]
            self.held = self.held._replace(places=longer)
        self.held.places[start : self._rows_used] = places
        self.held.rows.put(ordinals, np.arange(start, self._rows_used, dtype=np.int32))

    def _appended(self, raws: Sequence[bytes]) -> NDArray[np.int64]:
        """Write vectors behind all others; -> the place of each document's."""
        places = _end_to_end(raws)
        room = int((places & _SIZE_MASK).sum())
        if self._used + room > len(self.held.vectors):
            self._gather(room)
        start, self._used = self._used, self._used + room
        self.held.vectors[start : self._used] = np.frombuffer(b"".join(raws), np.int8)
        self._live += room
        return places + (start << SIZE_BITS)

    def delete(self, ordinal: int) -> None:
        row = self.held.rows.get(ordinal)
        if row == ABSENT:
            return
        self.held.rows.put_one(ordinal, ABSENT)
        self._live -= int(self.held.places[row]) & _SIZE_MASK
        self._rows_live -= 1
        if (
            self._used > 2 * self._live + BYTES_MIN
            or self._rows_used > 2 * self._rows_live + DOCUMENTS_MIN
        ):
            self._gather(0)

    def _gather(self, room: int) -> None:
        """Copies of what is there, with `room` for further numbers and for growth."""
        ordinals, rows = self.held.rows.entries()
        places = self.held.places[rows]
        sizes = places & _SIZE_MASK
        ends = np.cumsum(sizes)
        self._used = self._live = int(sizes.sum())
        self._rows_used = self._rows_live = len(rows)
        gathered = np.empty(max(int(GROWTH * (self._used + room)), BYTES_MIN), np.int8)
        _copy(self.held.vectors, places, gathered)
        longer = np.empty(max(int(GROWTH * len(rows)), DOCUMENTS_MIN), np.int64)
        longer[: len(rows)] = (ends - sizes) << SIZE_BITS | sizes
        self.held = _Held(gathered, longer, RowMap.of(ordinals))


@kernel(in_array(INT8), in_array(INT64), out_array(INT8))
def _copy(vectors, places, gathered):
    at = 0
    for document in range(places.shape[0]):
        start = places[document] >> SIZE_BITS
        for number in range(start, start + (places[document] & _SIZE_MASK)):
            gathered[at] = vectors[number]
            at += 1


@inline
def _held_of(documents, rows, places, meant):
    """Where the vectors of one of the documents that are meant are; −1 where it has none."""
    place = places[meant] if meant < places.shape[0] else np.int32(-1)
    row = rows[place] if place >= 0 else np.int32(-1)
    # A row put in since the places were taken may lie behind them.
    return documents[row] if 0 <= row < documents.shape[0] else np.int64(-1)


@kernel(
    in_array(INT8), in_array(INT64), in_array(INT32), in_array(INT32), in_array(INT8, 2),
    out_array(FLOAT32, 2),
)  # fmt: skip
def _nearest(vectors, documents, rows, places, query, found):
    width, unit = query.shape[1], np.float32(1 / STEPS**2)
    first = np.full(rows.shape[0], -1, np.int32)  # where each was found before
    for meant in range(places.shape[0]):
        ahead = _held_of(documents, rows, places, meant + DOCUMENTS_AHEAD)
        if ahead >= 0 and first[places[meant + DOCUMENTS_AHEAD]] < 0:
            start = ahead >> SIZE_BITS
            for at in range(start, start + (ahead & _SIZE_MASK), LINE_BYTES):
                fetch(vectors, at)
        held, place = _held_of(documents, rows, places, meant), places[meant]
        if held < 0:
            continue
        if first[place] >= 0:
            found[meant] = found[first[place]]
            continue
        first[place] = meant
        start = held >> SIZE_BITS
        end = start + (held & _SIZE_MASK)
        for asked in range(query.shape[0]):
            best = np.int32(0)
            for word in range(start, end, width):
                best = max(best, product_of_codes(vectors[word : word + width], query[asked]))
            found[meant, asked] = unit * best
