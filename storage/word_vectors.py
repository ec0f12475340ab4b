"""Small vectors of a document's words, and how near a document comes to each word of a query: the storage side of late interaction.

It owns rows of eight-bit unit vectors, by space and ordinal; it knows neither the words nor the model that made the vectors.

    x.words  (space, ordinal)  -> w · width int8 numbers, unit vectors times 127, in the order of the words

Nothing is resident: a search looks at a hundred documents at most, whose rows it reads from its snapshot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from storage.compiled import FLOAT32, INT8, INT64, compiled, given, made
from storage.table import Reader, Scope, Table

STEPS = 127


class WordVectors:
    """The declaration: a name. `bind` gives it a reader and a tenant."""

    def __init__(self, name: str):
        self.name = name
        self.words: Table[bytes] = Table(f"{name}.words", ("space", "ordinal"), bytes, doc="Vectors of a document's words, int8.")
        self.tables = (self.words,)

    def bind(self, reader: Reader, scope: Scope) -> BoundWords:
        return BoundWords(self, reader, scope)


class BoundWords:
    """The rows of one tenant in one reader."""

    def __init__(self, index: WordVectors, reader: Reader, scope: Scope):
        self._rows = reader.bind(index.words, scope)

    def put(self, space: str, ordinal: int, words: NDArray[np.int8]) -> None:
        """Insert or replace; words (w, width) int8. A document without words has no row."""
        if len(words):
            self._rows.put_raw((space, ordinal), np.ascontiguousarray(words, np.int8).tobytes())
        else:
            self._rows.delete(space, ordinal)

    def delete(self, space: str, ordinal: int) -> bool:
        """Whether there was such a row."""
        return self._rows.delete(space, ordinal)

    def clear(self) -> int:
        """Delete all rows of the tenant; -> how many."""
        return self._rows.delete_prefix()

    def nearest(self, space: str, ordinals: NDArray[np.integer], query: NDArray[np.int8]) -> NDArray[np.float32]:
        """(n, q): for each document and each word of the query (q, width) the highest cosine among the document's words, at least 0."""
        found = np.zeros((len(ordinals), len(query)), np.float32)
        rows = [raw or b"" for raw in self._rows.get_many([(ordinal,) for ordinal in ordinals.tolist()], (space,))]
        if len(query) and any(rows):
            ends = np.cumsum([len(raw) // query.shape[1] for raw in rows], dtype=np.int64)
            vectors = np.frombuffer(b"".join(rows), np.int8).reshape(-1, query.shape[1])
            _nearest(vectors, ends, np.ascontiguousarray(query), found)
        return found


@compiled(given(INT8, 2), given(INT64), given(INT8, 2), made(FLOAT32, 2))
def _nearest(vectors, ends, query, found):
    start = 0
    for document in range(ends.shape[0]):
        for word in range(start, ends[document]):
            for asked in range(query.shape[0]):
                total = np.int32(0)
                for i in range(query.shape[1]):
                    total += np.int32(vectors[word, i]) * np.int32(query[asked, i])
                cosine = np.float32(total) / np.float32(STEPS * STEPS)
                if cosine > found[document, asked]:
                    found[document, asked] = cosine
        start = ends[document]
