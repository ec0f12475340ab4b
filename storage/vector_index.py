"""Nearest unit vectors by dot product: rows in a table, a matrix in memory, an HNSW graph once a tenant is large.

It owns the vectors of a tenant's ordinals, by `space`: the name of a model and its width, so that vectors of two models never
meet in one matrix. It does not know what was embedded, nor which ordinals a caller may see: that is `allowed`.

Key layout, for an index named `x`:

    x.vectors  (space, ordinal)  -> 8 bytes: sequence of the commit that put it, then float32 numbers; all little-endian

The rows are the truth. Everything else is derived from them and may be lost at any time:
- the resident state of a tenant (`Residents`): per space a matrix of eight-bit codes (storage/vector_codes.py), where each
  ordinal's row is, and a *stamp*, the sequence of the last change known of each ordinal. It is read from the first search's
  snapshot and fed by `apply` after commits;
- the graph, above `exact_max` vectors. It only proposes candidates: scores never come from it. Vectors it has not taken up yet are
  *pending* and are scanned, so an answer never depends on how far the graph has come;
- a checkpoint of the graph under `indexes/`, with the sequence it covers and digests. What changed since is replayed from the
  stamps; a checkpoint that is damaged, foreign or from the future is ignored, and the graph grows again.

Invariants
- A change takes effect on the resident state only when it is newer than the ordinal's stamp. So changes may arrive twice, late, or
  while the state is being loaded, from `apply` and from a snapshot, in any order.
- After `apply` has returned for a commit, no later search answers from the state before it.
- `search` is exact where it scans: what the codes leave undecided is scored again from the stored rows, as are all scores that it
  gives. A `Scan` is made for ranking hundreds of candidates and answers from the codes, off by about 0.0005.
- Rows of the matrix are written once; an update takes a new row. A search keeps the matrix it started with and needs no lock.
- A removed vector is out of every answer at once; its bytes leave the checkpoint when the graph is next rebuilt or cleared.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyroaring import BitMap

from storage.ordinals import Ordinals, ordinals_of
from storage.ranking import best
from storage.table import Reader, Scope, Store, Table
from storage.vector_codes import ABSENT, Codes, Vectors, quantised, undecided
from storage.vector_graph import CheckpointPlace, Graph, erase_checkpoints, read_checkpoint, sweep_checkpoints
from storage.vector_scan import Found, Scan, View, rows_in

EXACT_MAX = 10_000
GATHERED_MAX = 4_000  # a filter that leaves no more than this is always scanned exactly
FETCH_MAX = 1_024  # neighbours asked of the graph for one query; a filter that would need more is scanned exactly
PENDING_MAX = 1_000  # a graph with more vectors still to take up is not used
GRAPH_STEP = 128  # of those, how many one apply takes up beside its own, and one step of a checkpoint: about 15 ms
LOAD_CHUNK = 4_096
SEQUENCE_BYTES = 8
SAMPLE = 16


class Change(NamedTuple):
    """One put (vector bytes) or delete (None) of an ordinal; without a space, everything of the tenant is gone."""

    sequence: int
    space: str | None = None
    ordinal: int = 0
    vector: bytes | None = None


class VectorIndex:
    """The declaration. exact_max: how many vectors of one tenant are scanned exactly before a graph is built."""

    def __init__(self, name: str, exact_max: int = EXACT_MAX):
        self.name = name
        self.exact_max = exact_max
        self.vectors = Table(f"{name}.vectors", ("space", "ordinal"), bytes, doc="Commit sequence, then float32 numbers.", stamped=True)
        self.tables = (self.vectors,)
        self._handover = threading.Lock()
        self._loading: set[_Tenant] = set()
        self._tenants: weakref.WeakSet[_Tenant] = weakref.WeakSet()

    def bind(self, reader: Reader, scope: Scope) -> BoundVectors:
        return BoundVectors(self, reader, scope)

    def apply(self, store: Store, changes: Iterable[tuple[Scope, Change]]) -> None:
        """Teach the resident states what a commit changed, before the commit is acknowledged. Tenants not resident cost nothing."""
        touched: dict[Scope, list[Change]] = {}
        for scope, change in changes:
            touched.setdefault(scope, []).append(change)
        for scope, own in touched.items():
            with self._handover:
                states = {tenant for tenant in self._loading if tenant.scope == scope and tenant.store() is store}
                if (resident := store.residents.peek((self.name, scope))) is not None:
                    states.add(resident)
            for tenant in states:
                tenant.learn(own)
            if states:
                store.residents.resize((self.name, scope))
            if any(change.space is None for change in own):
                erase_checkpoints(store.directory, self.name, scope.slot, scope.tenant)

    def checkpoint(self, store: Store) -> int:
        """Let the graphs of resident tenants take up what is pending and write those that changed; -> how many were written.

        Checkpoints whose vectors are all gone are deleted. Searches and writes go on meanwhile, except that a tenant waits while
        its own graph's file is written.
        """
        with self._handover:
            known = [tenant for tenant in self._tenants if tenant.store() is store]
        tenants = [tenant for tenant in known if store.residents.peek((self.name, tenant.scope)) is tenant]
        written = 0
        for tenant in tenants:
            with store.snapshot() as snapshot:
                tenant.settle(snapshot)
            written += sum(space.save(self._place(store, tenant.scope, name)) for name, space in tenant.each_space())
            store.residents.resize((self.name, tenant.scope))
        with store.snapshot() as snapshot:

            def is_alive(place: CheckpointPlace) -> bool:
                return snapshot.bind(self.vectors, Scope(place.slot, place.tenant)).first(place.space) is not None

            sweep_checkpoints(store.directory, self.name, is_alive)
        return written

    def _place(self, store: Store, scope: Scope, space: str) -> CheckpointPlace:
        return CheckpointPlace(store.directory, self.name, scope.slot, scope.tenant, space)

    def _tenant(self, reader: Reader, scope: Scope) -> _Tenant:
        """The resident state, holding at least everything that was acknowledged before `reader` was opened."""
        store = reader.store
        if reader.writable:  # what is not committed yet must not become resident
            with store.snapshot() as committed:
                return self._tenant(committed, scope)
        loaded: list[_Tenant] = []

        def load() -> _Tenant:
            tenant = _Tenant(self, store, scope)
            loaded.append(tenant)
            with self._handover:
                self._loading.add(tenant)
                self._tenants.add(tenant)
                # Commits between the reader's and this one were applied while there was no state to apply them to.
                tenant.owed = store.sequence
            tenant.read(reader)
            return tenant

        try:
            tenant = store.residents.get((self.name, scope), load)
        finally:
            with self._handover:
                self._loading.difference_update(loaded)
        tenant.settle(reader)
        return tenant


class BoundVectors:
    """The index inside one snapshot or transaction and one tenant.

    put, delete and get act on the rows this reader sees. search and scan answer from the resident state: everything acknowledged so
    far, in a transaction without its own changes. Vectors are unit vectors; scores are dot products.
    """

    def __init__(self, index: VectorIndex, reader: Reader, scope: Scope):
        self._index, self._reader, self._scope = index, reader, scope
        self._rows = reader.bind(index.vectors, scope)
        self._row_bytes: dict[str, int] = {}

    def put(self, space: str, ordinal: int, vector: ArrayLike) -> None:
        """Insert or replace. ValueError unless the vector is one finite row of the width the space has."""
        numbers = np.ascontiguousarray(vector, "<f4")
        if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
            raise ValueError(f"a vector of space {space!r} must be one row of finite numbers")
        raw = numbers.tobytes()
        expected = self._expected_bytes(space)
        if expected is not None and expected != len(raw):
            raise ValueError(f"space {space!r} holds vectors of {expected // 4} numbers, not {len(numbers)}")
        sequence = self._reader.sequence
        self._rows.put_raw((space, ordinal), sequence.to_bytes(SEQUENCE_BYTES, "little") + raw)
        self._reader.note(self._index.name, self._scope, Change(sequence, space, ordinal, raw))

    def delete(self, space: str, ordinal: int) -> bool:
        """Whether there was such a vector."""
        deleted = self._rows.delete(space, ordinal)
        if deleted:
            self._reader.note(self._index.name, self._scope, Change(self._reader.sequence, space, ordinal))
        return deleted

    def clear(self) -> int:
        """Delete all vectors of the tenant, in every space; -> how many. Checkpoints go when this is applied."""
        deleted = self._rows.delete_prefix()
        self._reader.note(self._index.name, self._scope, Change(self._reader.sequence))
        return deleted

    def get(self, space: str, ordinal: int) -> Vectors | None:
        """The stored vector, or None."""
        raw = self._rows.get_raw(space, ordinal)
        return None if raw is None else np.frombuffer(raw, "<f4", offset=SEQUENCE_BYTES)

    def spaces(self) -> list[str]:
        """The spaces that hold vectors, in order."""
        found: list[str] = []
        entry = self._rows.first()
        while entry is not None:
            found.append(entry[0][0])
            entry = next(self._rows.scan(after=(found[-1],), limit=1), None)
        return found

    def count(self, space: str) -> int:
        """How many vectors a space holds; it walks their keys."""
        return self._rows.count(space)

    def get_many(self, space: str, ordinals: NDArray[np.integer]) -> tuple[Vectors, NDArray[np.bool_]]:
        """(n, width) stored vectors aligned with `ordinals`, zeros where there is none, and which there are; (n, 0) without any."""
        rows = self._rows.get_many([(ordinal,) for ordinal in np.asarray(ordinals).tolist()], (space,))
        present = np.array([raw is not None for raw in rows], bool)
        width = next((len(raw) - SEQUENCE_BYTES for raw in rows if raw is not None), 0)
        raws = [bytes(width) if raw is None else raw[SEQUENCE_BYTES:] for raw in rows]
        return np.frombuffer(b"".join(raws), "<f4").reshape(len(rows), width // 4), present

    def scan(self, space: str, queries: ArrayLike) -> list[Scan]:
        """One Scan per query of (q, width). Many at once cost little more than one: the vectors are read once for all."""
        matrix = np.atleast_2d(np.asarray(queries, np.float32))
        held = self._resident(space)
        if held is None:
            return [Scan.of_nothing() for _ in matrix]
        _check_width(space, matrix, held.width)
        return held.scan(matrix)

    def search(self, space: str, queries: ArrayLike, k: int, allowed: BitMap | None = None) -> list[Found]:
        """For each query, the k best of `allowed` (None: all): (ordinals, scores), by score, then ordinal, both descending.

        queries: (q, width), or one vector. Many queries at once cost little more than one.
        """
        matrix = np.atleast_2d(np.asarray(queries, np.float32))
        held = self._resident(space)
        if held is None or k < 1:
            return [(np.zeros(0, np.uint32), np.zeros(0, np.float32))] * len(matrix)
        _check_width(space, matrix, held.width)
        return [self._exact(space, query, k, near) for query, (near, _) in zip(matrix, held.near(matrix, k, allowed), strict=True)]

    def _exact(self, space: str, query: Vectors, k: int, ordinals: Ordinals) -> Found:
        """The k best of candidates by their stored rows; a candidate whose row is gone from this reader is left out."""
        if self._reader.writable:  # what is not committed yet counts neither here nor in the resident state
            with self._reader.store.snapshot() as committed:
                return self._index.bind(committed, self._scope)._exact(space, query, k, ordinals)
        rows = self._rows.get_many([(ordinal,) for ordinal in ordinals.tolist()], (space,))
        held = [(ordinal, raw[SEQUENCE_BYTES:]) for ordinal, raw in zip(ordinals.tolist(), rows, strict=True) if raw is not None]
        if not held:
            return np.zeros(0, np.uint32), np.zeros(0, np.float32)
        vectors = np.frombuffer(b"".join(raw for _, raw in held), "<f4").reshape(len(held), -1)
        return best(np.array([ordinal for ordinal, _ in held], np.uint32), vectors @ query, k)

    def _resident(self, space: str) -> _Space | None:
        return self._index._tenant(self._reader, self._scope).space(space)

    def _expected_bytes(self, space: str) -> int | None:
        size = self._row_bytes.get(space)
        if size is None and (entry := self._rows.first(space)) is not None:
            size = self._row_bytes[space] = len(entry[1]) - SEQUENCE_BYTES
        return size


def _check_width(space: str, queries: Vectors, width: int) -> None:
    if queries.shape[1] != width:
        raise ValueError(f"space {space!r} holds vectors of {width} numbers, not {queries.shape[1]}")


class _Tenant:
    """The resident state of one tenant: its spaces, and up to which commit it is complete.

    covered  the newest snapshot read from
    owed     changes up to this commit may have been missed by apply; a reader that sees more than `covered` reads them in
    """

    def __init__(self, index: VectorIndex, store: Store, scope: Scope):
        self.store = weakref.ref(store)
        self.scope = scope
        self.covered = self.owed = 0
        self._index = index
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        self._spaces: dict[str, _Space] = {}
        self._floor = 0  # sequence of the last clear: what is older is gone

    @property
    def nbytes(self) -> int:
        # Without the lock: the keeper of all residents asks, and must not wait for a search or a file of this one.
        return sum(space.nbytes for space in list(self._spaces.values()))

    def space(self, name: str) -> _Space | None:
        with self._lock:
            return self._spaces.get(name)

    def each_space(self) -> list[tuple[str, _Space]]:
        with self._lock:
            return list(self._spaces.items())

    def learn(self, changes: Sequence[Change]) -> None:
        """Take over committed changes, in their order."""
        with self._lock:
            for change in changes:
                if change.space is None:
                    self._floor = change.sequence
                    for space in self._spaces.values():
                        space.clear(change.sequence)
                elif change.vector is None:
                    if (space := self._spaces.get(change.space)) is not None:
                        space.delete(change.ordinal, change.sequence)
                else:
                    vector = np.frombuffer(change.vector, "<f4")
                    self._made(change.space, len(vector)).put_one(change.ordinal, change.sequence, vector)
            for name in {change.space for change in changes if change.space in self._spaces}:
                self._spaces[name].advance(GRAPH_STEP + len(changes))

    def settle(self, reader: Reader) -> None:
        """Read in what apply may have missed, as far as this reader sees it."""
        if self.covered < self.owed and self.covered < reader.sequence:
            self.read(reader)

    def read(self, reader: Reader) -> None:
        """Bring the state to at least what the snapshot holds; newer changes learned meanwhile stay."""
        with self._reading:
            sequence = reader.sequence
            if self.covered >= sequence > 0:
                return
            seen: dict[str, list[NDArray[np.int64]]] = {}
            for name, ordinals, rows in _chunks(reader, self._index.vectors, self.scope):
                table = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
                stamps = table[:, :SEQUENCE_BYTES].copy().view("<u8")[:, 0]
                seen.setdefault(name, []).append(np.array(ordinals, np.int64))
                with self._lock:
                    vectors = table[:, SEQUENCE_BYTES:].copy().view("<f4")
                    self._made(name, vectors.shape[1]).put_newer(seen[name][-1], stamps, vectors)
            with self._lock:
                for name, space in self._spaces.items():
                    space.retain(np.concatenate(seen.get(name, [np.zeros(0, np.int64)])), sequence)
                    space.restore(self._index._place(reader.store, self.scope, name), reader.store.sequence)
                self.covered = sequence

    def _made(self, name: str, width: int) -> _Space:
        space = self._spaces.get(name)
        if space is None:
            space = self._spaces[name] = _Space(width, self._index.exact_max, self._lock, self._floor)
        return space


def _chunks(reader: Reader, table: Table[bytes], scope: Scope) -> Iterator[tuple[str, list[int], list[bytes]]]:
    """(space, ordinals, rows) in key order, at most LOAD_CHUNK rows of one space at a time."""
    name, ordinals, rows = "", [], []
    for (space, ordinal), raw in reader.bind(table, scope).scan():
        if rows and (space != name or len(rows) == LOAD_CHUNK):
            yield name, ordinals, rows
            ordinals, rows = [], []
        name = space
        ordinals.append(ordinal)
        rows.append(raw)
    if rows:
        yield name, ordinals, rows


class _Space:
    """Vectors of one space: codes whose rows are written once, the row and the stamp of each ordinal, perhaps a graph."""

    def __init__(self, width: int, exact_max: int, lock: threading.RLock, floor: int):
        self.width = width
        self._exact_max = exact_max
        self._lock = lock
        self._floor = floor
        self._codes = Codes.empty(0, width)
        self._used = self._live = 0
        self._row_of = np.empty(0, np.int32)
        self._stamps = np.empty(0, np.uint64)
        self._graph: Graph | None = None

    @property
    def nbytes(self) -> int:
        graph = 0 if self._graph is None else self._graph.nbytes
        return self._codes.nbytes + self._row_of.nbytes + self._stamps.nbytes + graph

    # --- changes, all under the tenant's lock -------------------------------------------------------------------------

    def put_one(self, ordinal: int, sequence: int, vector: Vectors) -> None:
        """A change from a commit: of several in one commit, the last counts."""
        self._reach(ordinal)
        if self._stamps[ordinal] <= sequence:
            self._store(np.array([ordinal]), np.array([sequence], np.uint64), vector[np.newaxis])

    def put_newer(self, ordinals: NDArray[np.int64], sequences: NDArray[np.uint64], vectors: Vectors) -> None:
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
                if self._graph is not None:
                    self._graph.drop(ordinal)

    def clear(self, sequence: int) -> None:
        """Everything is gone, what is still to be read from older snapshots included."""
        self._floor = sequence
        self._stamps[:] = sequence
        self._row_of[:] = ABSENT
        self._codes = Codes.empty(0, self.width)
        self._used = self._live = 0
        self._graph = None

    def retain(self, ordinals: NDArray[np.int64], sequence: int) -> None:
        """Delete what a snapshot of `sequence` no longer has, unless it changed later."""
        gone = self._row_of != ABSENT
        gone[ordinals] = False
        for ordinal in np.flatnonzero(gone & (self._stamps <= sequence)).tolist():
            self.delete(ordinal, sequence)

    def _store(self, ordinals: NDArray[np.int64], sequences: NDArray[np.uint64], vectors: Vectors) -> None:
        if not len(ordinals):
            return
        if self._used + len(ordinals) > len(self._codes.scales):
            self._make_room(len(ordinals))
        start, self._used = self._used, self._used + len(ordinals)
        self._codes.put(start, quantised(vectors))
        self._live += int((self._row_of[ordinals] == ABSENT).sum())
        self._row_of[ordinals] = np.arange(start, self._used)
        self._stamps[ordinals] = sequences
        if self._graph is not None:
            self._graph.pending.update(ordinals.tolist())

    def _make_room(self, count: int) -> None:
        """A new matrix of the live rows with room for half as many more; searches under way keep the old one."""
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

    # --- answers ------------------------------------------------------------------------------------------------------

    def scan(self, queries: Vectors) -> list[Scan]:
        view, graphed = self._view()
        scores = [None] * len(queries) if graphed else view.codes.products(queries, view.used)
        return [Scan(self, query, view, row) for query, row in zip(queries, scores, strict=True)]

    def near(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]:
        """For each query candidates among which the k best are: (ordinals, cosines by the codes), in no order."""
        found = self._through_graph(queries, k, allowed)
        return self._scanned(queries, k, allowed) if found is None else found

    def _view(self) -> tuple[View, bool]:
        """The space now, and whether a search should go through the graph."""
        with self._lock:
            return View(self._codes, self._used, self._row_of.copy()), self._graph is not None and len(self._graph.pending) <= PENDING_MAX

    def _scanned(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]:
        view, _ = self._view()
        ordinals = np.arange(len(view.row_of), dtype=np.uint32) if allowed is None else ordinals_of(allowed)
        rows = rows_in(view.row_of, ordinals)
        present = rows != ABSENT
        ordinals, rows = ordinals[present], rows[present]
        if len(rows) * 4 > view.used:  # reading a row that is not wanted costs less than jumping to one that is
            scores = view.codes.products(queries, view.used)[:, rows]
        else:
            scores = np.stack([view.codes.products_at(rows, query) for query in queries])
        residuals = view.codes.residuals[rows]
        kept = [undecided(row, residuals, k) for row in scores]
        return [(ordinals[places], row[places]) for row, places in zip(scores, kept, strict=True)]

    def _through_graph(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found] | None:
        """None when an exact scan is due: no graph or too little of one, few candidates, or a filter that leaves too few neighbours."""
        with self._lock:
            graph = self._graph
            if graph is None or len(graph.pending) > PENDING_MAX or (allowed is not None and len(allowed) <= GATHERED_MAX):
                return None
            share = 1.0 if allowed is None else max(1.0, self._live / len(allowed))
            fetch = int(1.3 * k * share) + 10
            neighbours = graph.near(queries, fetch) if fetch <= min(FETCH_MAX, len(graph.members)) else None
            if neighbours is None:
                return None
            codes = self._codes
            answers: list[tuple[Ordinals, NDArray[np.int32]]] = []
            for row in neighbours:
                candidates = BitMap(row.astype(np.uint32))
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

    # --- graph --------------------------------------------------------------------------------------------------------

    def advance(self, limit: int = GRAPH_STEP) -> bool:
        """Start or drop the graph as the number of vectors asks; let it take up pending ones. -> whether more are pending."""
        with self._lock:
            if self._live <= self._exact_max // 2 or (self._graph is None and self._live <= self._exact_max):
                self._graph = None
                return False
            if self._graph is None:
                self._graph = Graph(self.width)
                self._graph.pending = BitMap(np.flatnonzero(self._row_of != ABSENT).astype(np.uint32))
            ordinals = np.array(self._graph.pending[:limit].to_array(), np.int64)
            if len(ordinals):
                self._graph.take(ordinals, self._codes.decoded(self._row_of[ordinals]))
            return bool(self._graph.pending)

    def save(self, place: CheckpointPlace) -> bool:
        """Finish the graph, rebuilding it when it is mostly deleted vectors, and write its checkpoint. -> whether it was written."""
        with self._lock:
            if self._graph is not None and self._graph.is_wasteful:
                self._graph = None
        while self.advance():
            pass  # others get the lock between two steps
        with self._lock:
            if self._graph is None:
                place.delete()
                return False
            return self._graph.save(place, int(self._stamps.max()))

    def restore(self, place: CheckpointPlace, sequence_max: int) -> None:
        """Use the checkpoint of a large space, if there is a good one; what differs from it becomes pending."""
        if self._graph is not None or self._live <= self._exact_max:
            return
        stored = read_checkpoint(place, self.width, sequence_max)
        if stored is None:
            return
        graph, sequence = stored
        is_live = self._row_of != ABSENT
        live = BitMap(np.flatnonzero(is_live).astype(np.uint32))
        agreed = graph.members & BitMap(np.flatnonzero(is_live & (self._stamps <= sequence)).astype(np.uint32))
        sample = np.array(agreed[:: max(1, len(agreed) // SAMPLE)].to_array(), np.int64)
        if not np.array_equal(graph.vectors(sample), self._codes.decoded(self._row_of[sample])):
            return  # the checkpoint belongs to another history of this store
        for ordinal in graph.members - live:
            graph.drop(ordinal)
        graph.pending = live - agreed
        self._graph = graph
