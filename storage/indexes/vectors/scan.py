"""One query's cosines with the vectors of a space, as they were when the query was asked.

Ranking looks at a query's cosines several times: which are the best, how near are these, how near
are these with their neighbours. A Scan answers from one pass over all vectors where the space is
small, and from the vectors asked for where it is large.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.kernels import FLOAT32, INT32, in_array, kernel, out_array
from storage.indexes.ordinals import Ordinals, ordinals_of
from storage.indexes.row_map import ABSENT, RowMap, Rows
from storage.indexes.top_k import Scores, best
from storage.indexes.vectors.quantised import Codes, Vectors

Found = tuple[Ordinals, Scores]


class Space(Protocol):
    """What a scan asks of a large space."""

    def near(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]: ...


class View(NamedTuple):
    """A space at one moment: its matrix, of which `used` rows are written, and each ordinal's
    row.
    """

    codes: Codes
    used: int
    rows: RowMap


def present_in(rows: RowMap, allowed: BitMap | None) -> tuple[Ordinals, Rows]:
    """Those of `allowed` (None: all) that have a row, and their rows."""
    if allowed is None:
        return rows.entries()
    ordinals = ordinals_of(allowed)
    found = rows.find(ordinals)
    present = found != ABSENT
    return ordinals[present], found[present]


@kernel(in_array(FLOAT32), in_array(INT32), out_array(FLOAT32))
def _scores_of(scores, rows, found):
    for place in range(rows.shape[0]):
        found[place] = scores[rows[place]] if rows[place] != ABSENT else np.float32(0)


class Scan:
    """One query's cosines with a space's vectors: all of them where the space is small, else found
    through the graph as needed.

    It shows the vectors as they were when it was made; callers bring `allowed` and ordinals from
    their snapshot.
    """

    __slots__ = ("_query", "_scores", "_space", "_view")

    def __init__(
        self, space: Space | None, query: Vectors, view: View | None, scores: Scores | None
    ):
        self._space, self._query, self._view, self._scores = space, query, view, scores

    @classmethod
    def of_nothing(cls) -> Scan:
        """A scan that finds nothing, for a search without a vector."""
        return cls(None, np.zeros(0, np.float32), None, None)

    @property
    def size(self) -> int:
        """How many vectors the space has, about."""
        return 0 if self._view is None else self._view.used

    def best(self, k: int, allowed: BitMap | None, members: Ordinals | None = None) -> Found:
        """The k nearest of `allowed` (None: all): (ordinals, scores), by score, then ordinal, both
        descending. members: the allowed ascending, for whoever has them at hand.
        """
        if self._space is None or k < 1:
            return np.zeros(0, np.uint32), np.zeros(0, np.float32)
        if self._scores is None:
            ordinals, scores = self._space.near(self._query[np.newaxis], k, allowed)[0]
            return best(ordinals, scores, k)
        held = self._existing_view().rows
        if allowed is not None:
            some = ordinals_of(allowed) if members is None else members
            return best(*held.values_of(some, self._scores), k)
        ordinals, rows = held.entries()
        return best(ordinals, self._scores[rows], k)

    def at(self, ordinals: NDArray[np.integer]) -> Scores:
        """(n,) cosines aligned with `ordinals`; 0 where there is no vector."""
        if self._space is None:
            return np.zeros(len(ordinals), np.float32)
        return self._products(self._existing_view().rows.find(ordinals))

    def blended(
        self, ordinals: Ordinals, first: Ordinals, second: Ordinals, share: float
    ) -> Scores:
        """(n,) cosines with vector + share · (first's + second's), all aligned; an ordinal without
        a vector adds nothing.
        """
        if self._space is None:
            return np.zeros(len(ordinals), np.float32)
        rows = [self._existing_view().rows.find(each) for each in (ordinals, first, second)]
        return self._existing_view().codes.blended(
            rows, [self._products(each) for each in rows], share
        )

    def _existing_view(self) -> View:
        assert self._view is not None, "a scan of nothing has no vectors"
        return self._view

    def _products(self, rows: Rows) -> Scores:
        """(n,) cosines of the rows with the query; 0 where a row is ABSENT."""
        if self._scores is None:
            return self._existing_view().codes.products_at(rows, self._query)
        found = np.empty(len(rows), np.float32)
        _scores_of(self._scores, rows, found)
        return found
