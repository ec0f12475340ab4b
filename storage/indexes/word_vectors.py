"""Small vectors of a document's words, and how near a document comes to each word of a query: the
storage side of late interaction.

It owns rows of eight-bit unit vectors, by space and ordinal; it knows neither the words nor the
model that made the vectors.

    x.words  (space, ordinal)  -> w · width int8 numbers, unit vectors times 127, in the order of
                                  the words

The words can be told from their vectors, so rows are sealed like the text itself.

A search looks at some hundred documents. To fetch as many rows costs more than to compare them, so
the vectors of a tenant that is searched are resident, one after another in one array per space,
filled and fed as storage/indexes/resident_index.py says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.kernels import FLOAT32, INT8, INT32, INT64, UINT32, in_array, kernel, out_array
from storage.indexes.resident_index import ResidentIndex
from storage.indexes.vectors.quantised import product_of_codes
from storage.store import Reader, Scope, Table

STEPS = 127
GROWTH = 1.5
BYTES_MIN, DOCUMENTS_MIN = 1 << 18, 256
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

    def _changes(self, reader: Reader, scope: Scope) -> Iterator[WordsChange]:
        return (
            WordsChange(space, ordinal, raw)
            for (space, ordinal), raw in reader.bind(self.words, scope).scan()
        )


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
    ) -> NDArray[np.float32]:
        """(n, q): for each document and each word of the query (q, width) the highest cosine among
        the document's words, at least 0.

        places  (n,) which of the ordinals are meant, −1 for none; without, all of them. What is
                meant several times is compared once
        """
        if places is None:
            places = np.arange(len(ordinals), dtype=np.int32)
        found = np.zeros((len(places), len(query)), np.float32)
        held = self._index.resident(self._reader.store, self._scope).space(space)
        if held is not None and len(query):
            _nearest(
                *held,
                np.ascontiguousarray(ordinals, np.uint32),
                np.ascontiguousarray(places, np.int32),
                np.ascontiguousarray(query),
                found,
            )
        return found

    def _note(self, change: WordsChange) -> None:
        self._reader.note(self._index.name, self._scope, change)


class _Held(NamedTuple):
    """A space at one moment: all vectors end to end, and each ordinal's place in them, first number
    << SIZE_BITS | how many numbers.
    """

    vectors: NDArray[np.int8]
    places: NDArray[np.int64]


class _Spaces:
    """The resident vectors of one tenant.

    A document's vectors are written behind all others before its place, one number, points at them,
    and what they replace stays where it is until the array is full and copied. So a reader that
    took both arrays never sees a document half written.
    """

    def __init__(self) -> None:
        self._spaces: dict[str, _Held] = {}
        self._used: dict[str, int] = {}

    @property
    def nbytes(self) -> int:
        return sum(held.vectors.nbytes + held.places.nbytes for held in list(self._spaces.values()))

    def space(self, name: str) -> _Held | None:
        return self._spaces.get(name)

    def apply(self, change: WordsChange) -> None:
        if change.space is None:
            self._spaces, self._used = {}, {}
            return
        size = len(change.raw)
        held = self._with_room(change.space, change.ordinal, size)
        start = self._used[change.space]
        held.vectors[start : start + size] = np.frombuffer(change.raw, np.int8)
        held.places[change.ordinal] = start << SIZE_BITS | size
        self._used[change.space] = start + size

    def _with_room(self, space: str, ordinal: int, size: int) -> _Held:
        """The space, with room for so many further numbers and for this document."""
        held = self._spaces.get(space)
        if held is None:
            held = _Held(np.empty(BYTES_MIN, np.int8), np.zeros(DOCUMENTS_MIN, np.int64))
            self._used[space] = 0
        vectors, places = held
        if ordinal >= len(places):
            places = np.zeros(max(int(GROWTH * len(places)), ordinal + 1), np.int64)
            places[: len(held.places)] = held.places
        if self._used[space] + size > len(vectors):
            vectors, places, self._used[space] = _gathered(vectors, places, size)
        self._spaces[space] = held = _Held(vectors, places)
        return held


def _gathered(
    vectors: NDArray[np.int8], places: NDArray[np.int64], room: int
) -> tuple[NDArray[np.int8], NDArray[np.int64], int]:
    """Copies of both without waste, with `room` for further numbers and for growth; and how many
    numbers are used.
    """
    sizes = places & _SIZE_MASK
    ends = np.cumsum(sizes)
    used = int(ends[-1])
    gathered = np.empty(max(int(GROWTH * (used + room)), BYTES_MIN), np.int8)
    _copy(vectors, places, gathered)
    return gathered, (ends - sizes) << SIZE_BITS | sizes, used


@kernel(in_array(INT8), in_array(INT64), out_array(INT8))
def _copy(vectors, places, gathered):
    at = 0
    for document in range(places.shape[0]):
        start = places[document] >> SIZE_BITS
        for number in range(start, start + (places[document] & _SIZE_MASK)):
            gathered[at] = vectors[number]
            at += 1


@kernel(
    in_array(INT8), in_array(INT64), in_array(UINT32), in_array(INT32), in_array(INT8, 2),
    out_array(FLOAT32, 2),
)  # fmt: skip
def _nearest(vectors, documents, ordinals, places, query, found):
    width, unit = query.shape[1], np.float32(1 / STEPS**2)
    first = np.full(ordinals.shape[0], -1, np.int32)  # where each was found before
    for meant in range(places.shape[0]):
        place = places[meant]
        if place < 0 or ordinals[place] >= documents.shape[0]:
            continue
        if first[place] >= 0:
            found[meant] = found[first[place]]
            continue
        first[place] = meant
        start = documents[ordinals[place]] >> SIZE_BITS
        end = start + (documents[ordinals[place]] & _SIZE_MASK)
        for asked in range(query.shape[0]):
            best = np.int32(0)
            for word in range(start, end, width):
                best = max(best, product_of_codes(vectors[word : word + width], query[asked]))
            found[meant, asked] = unit * best
