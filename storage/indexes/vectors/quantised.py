"""Unit vectors in eight bits a number: a quarter of the memory, and as much less to read for a
scan, which is what a scan costs.

A row is quantised by itself, e ≈ scale · code with scale = max|e| / 127, so a row's code depends on
nothing beside it. Queries stay float32, and every product is summed up in float32. A cosine of a
384-wide row is off by about 0.0005; it is never off by more than the row's *residual* ‖e − scale ·
code‖, which is kept, so that who needs exact answers knows which rows to look at again.

The loops are compiled by Numba when this module is first imported, and cached beside it. They hold
no lock of the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.fetching import LINE_BYTES, fetch
from storage.indexes.kernels import FLOAT32, INT8, INT32, INT64, in_array, kernel, out_array
from storage.indexes.row_map import Rows

STEPS = 127
ROWS_AHEAD = 6  # that a scan asks for before it compares them
ROUNDING = np.float32(1e-5)  # of float32 sums, far above what they lose

Vectors = NDArray[np.float32]


class Codes(NamedTuple):
    """n rows of one width: codes (n, w) int8, scales (n,) and residuals (n,) float32."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    residuals: NDArray[np.float32]

    @classmethod
    def empty(cls, count: int, width: int) -> Codes:
        return cls(
            np.empty((count, width), np.int8),
            np.empty(count, np.float32),
            np.empty(count, np.float32),
        )

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.scales.nbytes + self.residuals.nbytes

    def take(self, rows: NDArray[np.integer]) -> Codes:
        return Codes(self.codes[rows], self.scales[rows], self.residuals[rows])

    def put(self, start: int, rows: Codes) -> None:
        """Overwrite from row `start` on."""
        end = start + len(rows.scales)
        self.codes[start:end], self.scales[start:end], self.residuals[start:end] = rows

    def decoded(self, rows: NDArray[np.integer]) -> Vectors:
        """(n, w) float32, scale · code."""
        return self.codes[rows] * self.scales[rows, np.newaxis]

    def products(self, queries: Vectors, used: int) -> Vectors:
        """(q, w) queries -> (q, used) dot products with the first `used` rows."""
        found = np.empty((len(queries), used), np.float32)
        _products(self.codes, self.scales, np.ascontiguousarray(queries, np.float32), found)
        return found

    def products_at(self, rows: Rows, query: Vectors) -> NDArray[np.float32]:
        """(n,) dot products aligned with `rows`; 0 where a row is ABSENT."""
        found = np.empty(len(rows), np.float32)
        _products_at(self.codes, self.scales, rows, np.ascontiguousarray(query, np.float32), found)
        return found

    def blended(
        self, rows: Sequence[Rows], products: Sequence[Vectors], share: float
    ) -> NDArray[np.float32]:
        """(n,) cosines of a query with row + share · (first + second), where `rows` are these
        three, each ABSENT or a row of unit length.

        products  their dot products with the query
        """
        found = np.empty(len(rows[0]), np.float32)
        _blended(self.codes, self.scales, *rows, *products, np.float32(share), found)
        return found


def quantised(vectors: Vectors) -> Codes:
    """(n, w) float32 -> their codes."""
    scales = np.maximum(np.abs(vectors).max(axis=1) / STEPS, np.finfo(np.float32).tiny).astype(
        np.float32
    )
    codes = np.rint(vectors / scales[:, np.newaxis]).astype(np.int8)
    return Codes(
        codes,
        scales,
        np.linalg.norm(vectors - codes * scales[:, np.newaxis], axis=1).astype(np.float32),
    )


def undecided(
    scores: NDArray[np.float32], residuals: NDArray[np.float32], k: int
) -> NDArray[np.intp]:
    """Places of the rows that may be among the k best: a score is at most off by its row's
    residual.
    """
    if len(scores) <= k:
        return np.arange(len(scores))
    places, highest = np.empty(len(scores), np.int64), np.empty(k, np.float32)
    return places[: _undecided(np.ascontiguousarray(scores), residuals, highest, places)]


_CODES, _FLOATS, _ROWS = in_array(INT8, 2), in_array(FLOAT32), in_array(INT32)


@kernel(_CODES, INT64, _FLOATS, result=FLOAT32)
def _product(codes, row, query):
    total = np.float32(0)
    for i in range(query.shape[0]):
        total += np.float32(codes[row, i]) * query[i]
    return total


@kernel(in_array(INT8), in_array(INT8), result=INT32)
def product_of_codes(row, other):
    # Numba makes 64 bits of a sum of 32, which would cost the processor's vectors; so does indexing
    # a row inside its matrix.
    total = np.int32(0)
    for i in range(row.shape[0]):
        total = np.int32(total + np.int32(np.int32(row[i]) * np.int32(other[i])))
    return total


@kernel(_CODES, _FLOATS, in_array(FLOAT32, 2), out_array(FLOAT32, 2))
def _products(codes, scales, queries, found):
    numbers, ahead = codes.reshape(-1), ROWS_AHEAD * codes.shape[1]
    for row in range(found.shape[1]):
        for at in range(0, codes.shape[1], LINE_BYTES):
            fetch(numbers, row * codes.shape[1] + ahead + at)
        for number in range(queries.shape[0]):
            found[number, row] = scales[row] * _product(codes, row, queries[number])


@kernel(_CODES, _FLOATS, _ROWS, _FLOATS, out_array(FLOAT32))
def _products_at(codes, scales, rows, query, found):
    numbers, width = codes.reshape(-1), codes.shape[1]
    for place in range(rows.shape[0]):
        row, ahead = rows[place], place + ROWS_AHEAD
        # Rows that follow each other the processor fetches by itself.
        if ahead < rows.shape[0] and rows[ahead] != row + ROWS_AHEAD:
            for at in range(0, width, LINE_BYTES):
                fetch(numbers, np.int64(rows[ahead]) * width + at)
        found[place] = scales[row] * _product(codes, row, query) if row >= 0 else np.float32(0)


@kernel(_CODES, _FLOATS, _ROWS, _ROWS, INT64, result=FLOAT32)
def _cosine(codes, scales, rows, others, place):
    row, other = rows[place], others[place]
    return (
        scales[row] * scales[other] * product_of_codes(codes[row], codes[other])
        if row >= 0 and other >= 0
        else np.float32(0)
    )


@kernel(
    _CODES, _FLOATS, _ROWS, _ROWS, _ROWS, _FLOATS, _FLOATS, _FLOATS, FLOAT32, out_array(FLOAT32)
)
def _blended(
    codes, scales, rows, first, second, product, first_product, second_product, share, found
):
    for place in range(rows.shape[0]):
        between = _cosine(codes, scales, rows, first, place) + _cosine(
            codes, scales, rows, second, place
        )
        square = (
            np.float32(2) * share * (between + share * _cosine(codes, scales, first, second, place))
        )
        for row, weight in (
            (rows[place], np.float32(1)),
            (first[place], share),
            (second[place], share),
        ):
            if row >= 0:
                square += weight * weight
        total = product[place] + share * (first_product[place] + second_product[place])
        found[place] = total / np.sqrt(square) if square > 0 else np.float32(0)


@kernel(in_array(FLOAT32), in_array(FLOAT32), out_array(FLOAT32), out_array(INT64), result=INT64)
def _undecided(scores, residuals, highest, places):
    """Fill the last; -> how many there are. highest: room for the k best of what each is at least,
    a heap with the least of them on top.
    """
    k = highest.shape[0]
    highest[:] = -np.inf
    for row in range(scores.shape[0]):
        least = scores[row] - residuals[row]
        if least <= highest[0]:
            continue
        hole = 0
        while 2 * hole + 1 < k:
            child = 2 * hole + 1
            if child + 1 < k and highest[child + 1] < highest[child]:
                child += 1
            if least <= highest[child]:
                break
            highest[hole] = highest[child]
            hole = child
        highest[hole] = least
    surely, count = highest[0] - ROUNDING, 0
    for row in range(scores.shape[0]):
        if scores[row] + residuals[row] >= surely:
            places[count] = row
            count += 1
    return count
