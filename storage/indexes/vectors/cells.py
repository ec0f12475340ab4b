"""Vectors of a large space put together by likeness, so that a search looks at the cells nearest to
its query and not at all vectors.

It owns the centres of the cells, how they are found (hnswlib lives here alone) and how they are
learned, and which rows of a space are in each. It knows rows by their numbers, and nothing of
ordinals, commits or who may see what: storage/indexes/vectors/space.py decides what is searched and
when rows are taken up.

Invariants
- `Cells` never change, so they are read without a lock. Further rows, or rows that got other
  numbers, make others, of the same centres.
- They have all rows below `end` and none behind it.
"""

from __future__ import annotations

import math

import hnswlib
import numpy as np
from numpy.typing import NDArray

from storage.indexes.kernels import INT32, INT64, in_array, kernel, out_array
from storage.indexes.row_map import Rows
from storage.indexes.vectors.quantised import Codes, Vectors, quantised

LINKS, BUILD_BREADTH, SEARCH_BREADTH = 16, 100, 320  # hnswlib's M, ef_construction and ef
ROWS_AT_ONCE = 1_024  # compared with all centres: some 30 ms of four thousand
ROUNDS = 6  # of learning
SAMPLE_PER_CELL = 32
# What it takes to find the nearest depends on how many cells are looked at, and little on how many
# vectors are in them: so cells are small, and many. So many times their root are looked at.
PROBED = 4
CELLS_MAX = 1 << 14
# The centres of so many cells are compared with a query one by one: .13 ms of eight thousand, where
# a graph of them takes .40. Of twice as many it is .34 and .59, and grows faster than the graph's.
COMPARED_MAX = 1 << 13
NO_CELL = -1


def cells_for(vectors: int) -> int:
    """How many cells so many vectors are put into: a power of two near eight times their root."""
    return min(CELLS_MAX, 1 << max(3, round(math.log2(8 * math.sqrt(vectors)))))


def by_cell(cell_of: NDArray[np.int32]) -> NDArray[np.intp]:
    """The order in which those of a cell come one after another, and those in none last."""
    # As 16 bits, which are sorted by counting; NO_CELL is the largest of them.
    return np.argsort(cell_of.astype(np.uint16), kind="stable")


class Centres:
    """(m, w) unit vectors, their codes, and of many, once it is made, a graph in which the nearest
    are found.
    """

    def __init__(self, vectors: Vectors):
        self.vectors = vectors
        self._codes = quantised(vectors)
        self._graph: hnswlib.Index | None = None

    @property
    def is_indexed(self) -> bool:
        """Whether there is a graph, or need not be."""
        return self._graph is not None or len(self) <= COMPARED_MAX

    def index(self) -> None:
        """Make the graph, unless it is there: more than a second of sixteen thousand."""
        if not self.is_indexed:
            graph = hnswlib.Index("ip", self.vectors.shape[1])
            graph.init_index(len(self), M=LINKS, ef_construction=BUILD_BREADTH)
            graph.add_items(self.vectors, np.arange(len(self)), num_threads=1)
            graph.set_ef(min(len(self), SEARCH_BREADTH))
            self._graph = graph

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def nbytes(self) -> int:
        """Of the graph reckoned from hnswlib's layout: vector, links of the lowest level twice M,
        label and bookkeeping.
        """
        width = self.vectors.shape[1]
        graph = 0 if self._graph is None else len(self) * (4 * width + 8 * LINKS + 48)
        return self.vectors.nbytes + self._codes.nbytes + graph

    def nearest(self, query: Vectors, count: int) -> NDArray[np.intp]:
        """(count,) the cells whose centres are nearest to a vector."""
        if self._graph is None:
            products = self._codes.products(query[np.newaxis], len(self))[0]
            return np.argpartition(products, -count)[-count:]
        return self._graph.knn_query(query, k=count, num_threads=1)[0][0].astype(np.intp)

    def of(self, vectors: Vectors) -> NDArray[np.int32]:
        """(n,) the cell of each vector."""
        return np.argmax(vectors @ self.vectors.T, axis=1).astype(np.int32)


class Cells:
    """Centres, and the rows below `end` by the cell they are in."""

    def __init__(self, centres: Centres, cell_of: NDArray[np.int32]):
        """cell_of: (end,) the cell of each row."""
        self.centres, self.end = centres, len(cell_of)
        self._order = by_cell(cell_of).astype(np.int32)
        sizes = np.bincount(cell_of, minlength=len(centres))
        self._starts = np.concatenate(([0], np.cumsum(sizes)))

    @property
    def probed(self) -> int:
        """How many cells a search without a filter looks at."""
        return int(PROBED * math.sqrt(len(self.centres)))

    @property
    def nbytes(self) -> int:
        return self.centres.nbytes + self._order.nbytes + self._starts.nbytes

    def near(self, query: Vectors, count: int) -> Rows:
        """The rows of the cells nearest to a query."""
        cells = self.centres.nearest(query, count)
        sizes = self._starts[cells + 1] - self._starts[cells]
        rows = np.empty(int(sizes.sum()), np.int32)
        _rows_of(self._order, self._starts, cells, rows)
        return rows


class Learning:
    """Centres on their way: spherical k-means over a sample of a space's rows, in steps of
    ROWS_AT_ONCE.
    """

    def __init__(self, codes: Codes, rows: NDArray[np.int32], vectors: int):
        """rows: those that may be learned from; vectors: how many the cells are for."""
        chance, count = np.random.default_rng(vectors), cells_for(vectors)
        sample = chance.permutation(rows)[: SAMPLE_PER_CELL * count]
        self._codes = codes.take(sample)
        self._chance, self._count = chance, count
        self._centres = self._codes.decoded(np.arange(count) % len(sample))
        self._sums = np.zeros_like(self._centres)
        self._at = self._round = 0

    def step(self) -> Centres | None:
        """One step; -> the centres after the last one."""
        end = min(self._at + ROWS_AT_ONCE, len(self._codes.scales))
        vectors = self._codes.decoded(np.arange(self._at, end))
        nearest = np.argmax(vectors @ self._centres.T, axis=1)
        order = np.argsort(nearest, kind="stable")
        cells, starts = np.unique(nearest[order], return_index=True)
        self._sums[cells] += np.add.reduceat(vectors[order], starts, axis=0)
        self._at = end
        if end < len(self._codes.scales):
            return None
        norms = np.linalg.norm(self._sums, axis=1, keepdims=True)
        # A centre that nothing is nearest to begins anew at some vector.
        lost = np.flatnonzero(norms[:, 0] == 0)
        self._sums[lost] = self._codes.decoded(self._chance.integers(0, end, len(lost)))
        norms[lost] = np.linalg.norm(self._sums[lost], axis=1, keepdims=True)
        self._centres = (self._sums / norms).astype(np.float32)
        self._sums = np.zeros_like(self._centres)
        self._at, self._round = 0, self._round + 1
        return Centres(self._centres) if self._round == ROUNDS else None


@kernel(in_array(INT32), in_array(INT64), in_array(INT64), out_array(INT32))
def _rows_of(order, starts, cells, rows):
    at = 0
    for place in range(cells.shape[0]):
        for row in range(starts[cells[place]], starts[cells[place] + 1]):
            rows[at] = order[row]
            at += 1
