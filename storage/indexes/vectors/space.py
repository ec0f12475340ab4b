"""The resident vectors of one space of a tenant: eight-bit codes, where each ordinal's row is, and
perhaps a graph over them.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.ordinals import Ordinals, ordinals_of
from storage.indexes.vectors.hnsw import CheckpointPlace, Graph, read_checkpoint
from storage.indexes.vectors.quantised import ABSENT, Codes, Vectors, quantised, undecided
from storage.indexes.vectors.scan import Found, Scan, View, rows_in

GATHERED_MAX = 4_000  # a filter that leaves no more than this is always scanned exactly
# neighbours asked of the graph for one query; a filter that would need more is scanned exactly
FETCH_MAX = 1_024
PENDING_MAX = 1_000  # a graph with more vectors still to take up is not used
GRAPH_STEP = 32  # of those, how many are taken up at once: about 15 ms, for which a search may wait
SAMPLE = 16


class Space:
    """Vectors of one space: codes whose rows are written once, the row and the stamp of each
    ordinal, perhaps a graph.
    """

    def __init__(self, width: int, exact_max: int, lock: threading.RLock, floor: int):
        self.width = width
        self._exact_max = exact_max
        self._lock = lock
        self._building = threading.Lock()  # held by the one who lets the graph take up vectors
        self._floor = floor
        self._codes = Codes.empty(0, width)
        self._used = self._live = 0
        self._row_of = np.empty(0, np.int32)
        self._stamps = np.empty(0, np.uint64)
        self.graph: Graph | None = None

    @property
    def nbytes(self) -> int:
        graph = 0 if self.graph is None else self.graph.nbytes
        return self._codes.nbytes + self._row_of.nbytes + self._stamps.nbytes + graph

    # --- changes, all under the tenant's lock -----------------------------------------------------

    def put_one(self, ordinal: int, sequence: int, vector: Vectors) -> None:
        """A change from a commit: of several in one commit, the last counts."""
        self._reach(ordinal)
        if self._stamps[ordinal] <= sequence:
            self._store(np.array([ordinal]), np.array([sequence], np.uint64), vector[np.newaxis])

    def put_newer(
        self, ordinals: NDArray[np.int64], sequences: NDArray[np.uint64], vectors: Vectors
    ) -> None:
        """Rows of a snapshot: distinct ordinals, of which only those newer than known count."""
        self._reach(int(ordinals.max()))
        newer = self._stamps[ordinals] < sequences
        self._store(ordinals[newer], sequences[newer], vectors[newer])

    def delete(self, ordinal: int, sequence: int) -> None:
        self._reach(ordinal)
        if self._stamps[ordinal] <= sequence:
            self._stamps[ordinal] = sequence
            if self._row_of[ordinal] != ABSENT:
                self._row_of[ordinal] = ABSENT
                self._live -= 1
                if self.graph is not None:
                    self.graph.drop(ordinal)

    def clear(self, sequence: int) -> None:
        """Forget everything, what is still to be read from older snapshots included."""
        self._floor = sequence
        self._stamps[:] = sequence
        self._row_of[:] = ABSENT
        self._codes = Codes.empty(0, self.width)
        self._used = self._live = 0
        self.graph = None

    def retain(self, ordinals: NDArray[np.int64], sequence: int) -> None:
        """Delete what a snapshot of `sequence` no longer has, unless it changed later."""
        gone = self._row_of != ABSENT
        gone[ordinals] = False
        for ordinal in np.flatnonzero(gone & (self._stamps <= sequence)).tolist():
            self.delete(ordinal, sequence)

    def _store(
        self, ordinals: NDArray[np.int64], sequences: NDArray[np.uint64], vectors: Vectors
    ) -> None:
        if not len(ordinals):
            return
        if self._used + len(ordinals) > len(self._codes.scales):
            self._make_room(len(ordinals))
        start, self._used = self._used, self._used + len(ordinals)
        self._codes.put(start, quantised(vectors))
        self._live += int((self._row_of[ordinals] == ABSENT).sum())
        self._row_of[ordinals] = np.arange(start, self._used)
        self._stamps[ordinals] = sequences
        if self.graph is not None:
            self.graph.pending.update(ordinals.tolist())

    def _make_room(self, count: int) -> None:
        """A new matrix of the live rows with room for half as many more; searches under way keep
        the old one.
        """
        ordinals = np.flatnonzero(self._row_of != ABSENT)
        codes = Codes.empty((len(ordinals) + count) * 3 // 2 + 8, self.width)
        codes.put(0, self._codes.take(self._row_of[ordinals]))
        self._row_of[ordinals] = np.arange(len(ordinals))
        self._codes, self._used = codes, len(ordinals)

    def _reach(self, ordinal: int) -> None:
        missing = ordinal + 1 - len(self._row_of)
        if missing > 0:
            more = missing + len(self._row_of) // 2
            self._row_of = np.concatenate((self._row_of, np.full(more, ABSENT, np.int32)))
            self._stamps = np.concatenate((self._stamps, np.full(more, self._floor, np.uint64)))

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
            return View(
                self._codes, self._used, self._row_of.copy()
            ), self.graph is not None and len(self.graph.pending) <= PENDING_MAX

    def _scanned(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]:
        view, _ = self._view()
        ordinals = (
            np.arange(len(view.row_of), dtype=np.uint32)
            if allowed is None
            else ordinals_of(allowed)
        )
        rows = rows_in(view.row_of, ordinals)
        present = rows != ABSENT
        ordinals, rows = ordinals[present], rows[present]
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
        """None when an exact scan is due: no graph or too little of one, few candidates, or a
        filter that leaves too few neighbours.
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
                answers.append((ordinals, self._rows_of(ordinals)))
        found = []
        for query, (ordinals, rows) in zip(queries, answers, strict=True):
            scores = codes.products_at(rows, query)
            places = undecided(scores, codes.residuals[rows], k)
            found.append((ordinals[places], scores[places]))
        return found

    def _rows_of(self, ordinals: NDArray[np.integer]) -> NDArray[np.int32]:
        return rows_in(self._row_of, ordinals)

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
                    self.graph.pending = BitMap(
                        np.flatnonzero(self._row_of != ABSENT).astype(np.uint32)
                    )
                graph = self.graph
                ordinals = np.array(graph.pending[:GRAPH_STEP].to_array(), np.int64)
                stamps = self._stamps[ordinals]
                vectors = self._codes.decoded(self._row_of[ordinals])
                gone = graph.handed_over()
            graph.take(ordinals, vectors, gone)
            with self._lock:
                # What changed meanwhile is in the graph as it was, and stays pending or dropped.
                is_same = (self._stamps[ordinals] == stamps) & (self._row_of[ordinals] != ABSENT)
                unchanged = ordinals[is_same]
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
            return self.graph.save(place, int(self._stamps.max()))

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
        is_live = self._row_of != ABSENT
        live = BitMap(np.flatnonzero(is_live).astype(np.uint32))
        agreed = graph.members & BitMap(
            np.flatnonzero(is_live & (self._stamps <= sequence)).astype(np.uint32)
        )
        sample = np.array(agreed[:: max(1, len(agreed) // SAMPLE)].to_array(), np.int64)
        if not np.array_equal(graph.vectors(sample), self._codes.decoded(self._row_of[sample])):
            return  # the checkpoint belongs to another history of this store
        for ordinal in graph.members - live:
            graph.drop(ordinal)
        graph.pending = live - agreed
        self.graph = graph
