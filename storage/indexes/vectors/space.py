"""The resident vectors of one space of a tenant: eight-bit codes, where each ordinal's row is, and
perhaps a graph over them.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.ordinals import Ordinals, ordinals_of
from storage.indexes.row_map import ABSENT, RowMap
from storage.indexes.vectors.hnsw import CheckpointPlace, Graph, read_checkpoint
from storage.indexes.vectors.quantised import Codes, Vectors, quantised, undecided
from storage.indexes.vectors.scan import Found, Scan, View, present_in

GATHERED_MAX = 4_000  # a filter that leaves no more than this is always scanned exactly
# neighbours asked of the graph for one query; a filter that would need more is scanned exactly
FETCH_MAX = 1_024
PENDING_MAX = 1_000  # a graph with more vectors still to take up is not used
GRAPH_STEP = 32  # of those, how many are taken up at once: about 15 ms, for which a search may wait
SAMPLE = 16
ROWS_SPARE = 64  # of a few vectors, so many deleted ones may keep their rows


class Space:
    """Vectors of one space: codes whose rows are written once, the stamp of each row, the row of
    each ordinal, perhaps a graph.

    floor  the stamp of every ordinal without a vector, except those in `_gone`: see `settle`
    """

    def __init__(self, width: int, exact_max: int, lock: threading.RLock, floor: int):
        self.width = width
        self._exact_max = exact_max
        self._lock = lock
        self._building = threading.Lock()  # held by the one who lets the graph take up vectors
        self._floor = floor
        self._gone: dict[int, int] = {}  # ordinal -> when it was deleted
        self._hold(Codes.empty(0, width), RowMap(), np.empty(0, np.uint64), 0)
        self.graph: Graph | None = None

    @property
    def nbytes(self) -> int:
        graph = 0 if self.graph is None else self.graph.nbytes
        return self._codes.nbytes + self._rows.nbytes + self._stamps.nbytes + graph

    # --- changes, all under the tenant's lock -----------------------------------------------------

    def put_one(self, ordinal: int, sequence: int, vector: Vectors) -> None:
        """A change from a commit: of several in one commit, the last counts."""
        if self._stamp(ordinal) <= sequence:
            self._store(np.array([ordinal]), np.array([sequence], np.uint64), vector[np.newaxis])

    def put_newer(
        self, ordinals: NDArray[np.int64], sequences: NDArray[np.uint64], vectors: Vectors
    ) -> None:
        """Rows of a snapshot: distinct ordinals, of which only those newer than known count."""
        newer = self._stamps_of(ordinals) < sequences
        self._store(ordinals[newer], sequences[newer], vectors[newer])

    def delete(self, ordinal: int, sequence: int) -> None:
        if self._stamp(ordinal) > sequence:
            return
        self._gone[ordinal] = sequence
        if self._rows.get(ordinal) != ABSENT:
            self._own_rows().put_one(ordinal, ABSENT)
            self._live -= 1
            if self.graph is not None:
                self.graph.drop(ordinal)
            if self._used > 2 * self._live + ROWS_SPARE:
                self._make_room(0)

    def clear(self, sequence: int) -> None:
        """Forget everything, what is still to be read from older snapshots included."""
        self.settle(sequence)
        self._hold(Codes.empty(0, self.width), RowMap(), np.empty(0, np.uint64), 0)
        self.graph = None

    def settle(self, sequence: int) -> None:
        """Take note that whatever comes from now on of an older commit came before."""
        self._floor = max(self._floor, sequence)
        self._gone = {}

    def retain(self, ordinals: NDArray[np.int64], sequence: int) -> None:
        """Delete what a snapshot of `sequence` no longer has, unless it changed later."""
        known, rows = self._rows.entries()
        older = known[self._stamps[rows] <= sequence]
        for ordinal in np.setdiff1d(older, ordinals, assume_unique=True).tolist():
            self.delete(ordinal, sequence)

    def _store(
        self, ordinals: NDArray[np.int64], sequences: NDArray[np.uint64], vectors: Vectors
    ) -> None:
        if not len(ordinals):
            return
        if self._used + len(ordinals) > len(self._stamps):
            self._make_room(len(ordinals))
        start, self._used = self._used, self._used + len(ordinals)
        self._codes.put(start, quantised(vectors))
        self._stamps[start : self._used] = sequences
        self._live += int(np.count_nonzero(self._rows.find(ordinals) == ABSENT))
        self._own_rows().put(ordinals, np.arange(start, self._used, dtype=np.int32))
        if self.graph is not None:
            self.graph.pending.update(ordinals.tolist())

    def _make_room(self, count: int) -> None:
        """New arrays of the live rows with room for half as many more; searches under way keep the
        old ones.
        """
        ordinals, rows = self._rows.entries()
        size = (len(ordinals) + count) * 3 // 2 + 8
        codes, stamps = Codes.empty(size, self.width), np.empty(size, np.uint64)
        codes.put(0, self._codes.take(rows))
        stamps[: len(rows)] = self._stamps[rows]
        self._hold(codes, RowMap.of(ordinals), stamps, len(ordinals))

    def _hold(self, codes: Codes, rows: RowMap, stamps: NDArray[np.uint64], used: int) -> None:
        self._codes, self._rows, self._stamps = codes, rows, stamps
        self._used = self._live = used
        self._is_shown = False  # whether a search looks at the map

    def _own_rows(self) -> RowMap:
        """The map, to be changed: another one than what searches look at."""
        if self._is_shown:
            self._rows, self._is_shown = self._rows.copy(), False
        return self._rows

    def _stamp(self, ordinal: int) -> int:
        row = self._rows.get(ordinal)
        return self._gone.get(ordinal, self._floor) if row == ABSENT else int(self._stamps[row])

    def _stamps_of(self, ordinals: NDArray[np.int64]) -> NDArray[np.uint64]:
        """(n,) the stamps of these ordinals."""
        rows = self._rows.find(ordinals)
        stamps = np.full(len(rows), self._floor, np.uint64)
        present = rows != ABSENT
        stamps[present] = self._stamps[rows[present]]
        if self._gone:
            for place in np.flatnonzero(~present).tolist():
                stamps[place] = self._gone.get(int(ordinals[place]), self._floor)
        return stamps

    # --- answers ----------------------------------------------------------------------------------

    def scan(self, queries: Vectors) -> list[Scan]:
        view, graphed = self._view()
        scores = [None] * len(queries) if graphed else view.codes.products(queries, view.used)
        return [Scan(self, query, view, row) for query, row in zip(queries, scores, strict=True)]

    def near(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]:
        """For each query candidates among which the k best are: (ordinals, cosines by the codes),
        in no order.
        """
        found = self._through_graph(queries, k, allowed)
        return self._scanned(queries, k, allowed) if found is None else found

    def _view(self) -> tuple[View, bool]:
        """The space now, and whether a search should go through the graph."""
        with self._lock:
            self._is_shown = True
            graphed = self.graph is not None and len(self.graph.pending) <= PENDING_MAX
            return View(self._codes, self._used, self._rows), graphed

    def _scanned(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]:
        view, _ = self._view()
        ordinals, rows = present_in(view.rows, allowed)
        if (
            len(rows) * 4 > view.used
        ):  # reading a row that is not wanted costs less than jumping to one that is
            scores = view.codes.products(queries, view.used)[:, rows]
        else:
            scores = np.stack([view.codes.products_at(rows, query) for query in queries])
        residuals = view.codes.residuals[rows]
        kept = [undecided(row, residuals, k) for row in scores]
        return [(ordinals[places], row[places]) for row, places in zip(scores, kept, strict=True)]

    def _through_graph(
        self, queries: Vectors, k: int, allowed: BitMap | None
    ) -> list[Found] | None:
        """Search the graph; None when an exact scan is due: no graph or too little of one, few
        candidates, or a filter that leaves too few neighbours.
        """
        with self._lock:
            graph = self.graph
            if (
                graph is None
                or len(graph.pending) > PENDING_MAX
                or (allowed is not None and len(allowed) <= GATHERED_MAX)
            ):
                return None
            share = 1.0 if allowed is None else max(1.0, self._live / len(allowed))
            fetch = int(1.3 * k * share) + 10
            if fetch > min(FETCH_MAX, len(graph.members)):
                return None
        neighbours = graph.near(queries, fetch)
        if neighbours is None:
            return None
        with self._lock:
            if self.graph is not graph:
                return None
            codes = self._codes
            answers: list[tuple[Ordinals, NDArray[np.int32]]] = []
            for row in neighbours:
                candidates = BitMap(row.astype(np.uint32)) & graph.members
                if allowed is not None:
                    candidates &= allowed
                if len(candidates) < k:
                    return None
                candidates |= graph.pending if allowed is None else graph.pending & allowed
                ordinals = ordinals_of(candidates)
                answers.append((ordinals, self._rows.find(ordinals)))
        found = []
        for query, (ordinals, rows) in zip(queries, answers, strict=True):
            scores = codes.products_at(rows, query)
            places = undecided(scores, codes.residuals[rows], k)
            found.append((ordinals[places], scores[places]))
        return found

    # --- graph ------------------------------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        """Whether `advance` has anything to do."""
        with self._lock:
            if self.graph is None:
                return self._live > self._exact_max
            return self.graph.is_behind or self._live <= self._exact_max // 2

    def advance(self) -> bool:
        """Start or drop the graph as the number of vectors asks; let it take up GRAPH_STEP pending
        ones. -> whether more are pending. No commit waits for it.
        """
        with self._building:
            with self._lock:
                if self._live <= self._exact_max // 2 or (
                    self.graph is None and self._live <= self._exact_max
                ):
                    self.graph = None
                    return False
                if self.graph is None:
                    self.graph = Graph(self.width)
                    self.graph.pending = BitMap(self._rows.entries()[0])
                graph = self.graph
                ordinals = np.array(graph.pending[:GRAPH_STEP].to_array(), np.int64)
                stamps = self._stamps_of(ordinals)
                vectors = self._codes.decoded(self._rows.find(ordinals))
                gone = graph.handed_over()
            graph.take(ordinals, vectors, gone)
            with self._lock:
                # What changed meanwhile is in the graph as it was, and stays pending or dropped.
                is_same = self._stamps_of(ordinals) == stamps
                unchanged = ordinals[is_same & (self._rows.find(ordinals) != ABSENT)]
                graph.took(BitMap(unchanged.astype(np.uint32)))
                return self.graph is graph and graph.is_behind

    def save(self, place: CheckpointPlace) -> bool:
        """Finish the graph, rebuilding it when it is mostly deleted vectors, and write its
        checkpoint. -> whether it was written.
        """
        with self._lock:
            if self.graph is not None and self.graph.is_wasteful:
                self.graph = None
        while self.advance():
            pass  # others get the lock between two steps
        with self._building, self._lock:
            if self.graph is None:
                place.delete()
                return False
            newest = int(self._stamps[: self._used].max(initial=0))
            return self.graph.save(place, max(newest, self._floor, *self._gone.values()))

    def restore(self, place: CheckpointPlace, sequence_max: int) -> None:
        """Use the checkpoint of a large space, if there is a good one; what differs from it becomes
        pending.
        """
        if self.graph is not None or self._live <= self._exact_max:
            return
        stored = read_checkpoint(place, self.width, sequence_max)
        if stored is None:
            return
        graph, sequence = stored
        ordinals, rows = self._rows.entries()
        live = BitMap(ordinals)
        agreed = graph.members & BitMap(ordinals[self._stamps[rows] <= sequence])
        sample = np.array(agreed[:: max(1, len(agreed) // SAMPLE)].to_array(), np.int64)
        if not np.array_equal(graph.vectors(sample), self._codes.decoded(self._rows.find(sample))):
            return  # the checkpoint belongs to another history of this store
        for ordinal in graph.members - live:
            graph.drop(ordinal)
        graph.pending = live - agreed
        self.graph = graph
