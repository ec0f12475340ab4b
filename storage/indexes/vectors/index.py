"""The vector index as declared and bound: rows in a table, answers from the resident state."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyroaring import BitMap

from storage.indexes.applied import Applied
from storage.indexes.builder import Builder
from storage.indexes.change_tokens import ChangeTokens
from storage.indexes.index import Index
from storage.indexes.kept import KeptPlace, erase, sweep
from storage.indexes.ordinals import Ordinals
from storage.indexes.top_k import best
from storage.indexes.vectors.quantised import Vectors
from storage.indexes.vectors.scan import Found, Scan
from storage.indexes.vectors.space import Space
from storage.indexes.vectors.tenant import SEQUENCE_BYTES, Change, TenantVectors
from storage.store import OpenStore, Reader, Scope, Store, StoreError, Table

# Up to here reading all codes takes about a millisecond more than going by cells
# (loadtests/vectors.py).
EXACT_MAX = 100_000


class VectorIndex(Index):
    """The declaration. exact_max: how many vectors of one tenant are scanned exactly before they
    are put into cells; changes: what tells of changes among its ordinals, where other indexes have
    the same.
    """

    def __init__(self, name: str, exact_max: int = EXACT_MAX, changes: ChangeTokens | None = None):
        self.name = name
        self.changes = changes or ChangeTokens(name)
        self.exact_max = exact_max
        self.vectors = Table(
            f"{name}.vectors",
            ("space", "ordinal"),
            bytes,
            version=2,
            doc="Commit sequence, then float32 numbers.",
            sealed=True,
            sealed_from=2,
            stamped=True,
        )
        self.tables = (self.vectors, self.changes.table)
        self._handover = threading.Lock()
        self._loading: set[TenantVectors] = set()
        self._tenants: weakref.WeakSet[TenantVectors] = weakref.WeakSet()
        self._builder = Builder(self._advance)
        self._keeping = threading.Lock()  # held by the one who writes a file
        self._applied = Applied(name)

    def bind(self, reader: Reader, scope: Scope) -> BoundVectors:
        return BoundVectors(self, reader, scope)

    def apply(self, store: Store, changes: Iterable[tuple[Scope, Change]]) -> None:
        """Teach the resident states what a commit changed, before the commit is acknowledged.
        Tenants not resident cost nothing.
        """
        touched: dict[Scope, list[Change]] = {}
        for scope, change in changes:
            touched.setdefault(scope, []).append(change)
        for scope, own in touched.items():
            with self._handover:
                states = {
                    tenant
                    for tenant in self._loading
                    if tenant.scope == scope and tenant.store() is store
                }
                if (resident := store.residents.peek((self.name, scope))) is not None:
                    states.add(resident)
            for tenant in states:
                if tenant.apply(own) and store.is_owned:
                    self._builder.want(tenant)
            if states:
                store.residents.resize((self.name, scope))
            if store.is_owned and any(change.space is None for change in own):
                erase(store.directory, self.name, scope.slot, scope.tenant)
        last = max((change.sequence for own in touched.values() for change in own), default=0)
        self._applied.note(store, last)

    def _advance(self, tenant: TenantVectors) -> bool:
        """Let a resident tenant's spaces take a step of building, or write the files of those that
        are through; -> whether another step is due.
        """
        store = tenant.store()
        key = (self.name, tenant.scope)
        if store is None or store.residents.peek(key) is not tenant:
            return False
        is_behind = tenant.advance()
        store.residents.resize(key)
        if not is_behind and isinstance(store, Store):
            try:
                self._keep(tenant, store)
            except (StoreError, OSError):  # its keys may be closed
                if not store.environment.is_closed:
                    raise
        return is_behind

    def _keep(self, tenant: TenantVectors, store: Store) -> int:
        """Write the files of a tenant that have changed much; -> how many."""
        with self._keeping:
            return tenant.keep(store, lambda: self._applied.is_through(store))

    def checkpoint(self, store: Store) -> int:
        """Write the files of resident tenants that have changed much; -> how many were written.

        Files of spaces whose vectors are all gone are deleted. Searches and writes go on meanwhile.
        """
        with self._handover:
            known = [tenant for tenant in self._tenants if tenant.store() is store]
        tenants = [
            tenant for tenant in known if store.residents.peek((self.name, tenant.scope)) is tenant
        ]
        written = sum(self._keep(tenant, store) for tenant in tenants)
        with store.snapshot() as snapshot:

            def is_alive(place: KeptPlace) -> bool:
                return (
                    snapshot.bind(self.vectors, Scope(place.slot, place.tenant)).first(place.part)
                    is not None
                )

            with self._keeping:
                sweep(store.directory, self.name, is_alive)
        return written

    def build(self, store: Store, scope: Scope) -> int:
        """Put a tenant's vectors into cells where it has so many that it needs some, and write its
        files; -> how many. The tenant does not stay resident.
        """
        with store.snapshot() as snapshot:
            if snapshot.bind(self.vectors, scope).count() <= self.exact_max:
                return 0
            tenant = self._tenant(snapshot, scope)
        while tenant.advance():
            pass
        written = self._keep(tenant, store)
        # What is written to the slot from now on does not reach it.
        store.residents.drop((self.name, scope))
        return written

    def forget(self, store: OpenStore, scope: Scope, *, files: bool) -> None:
        """Drop what is in memory of a tenant; `files`: its files too."""
        store.residents.drop((self.name, scope))
        if files:
            erase(store.directory, self.name, scope.slot, scope.tenant)

    def _tenant(self, reader: Reader, scope: Scope) -> TenantVectors:
        """The resident state, holding at least everything that was acknowledged before `reader` was
        opened.
        """
        store = reader.store
        if reader.writable:  # what is not committed yet must not become resident
            with store.snapshot() as committed:
                return self._tenant(committed, scope)
        loaded: list[TenantVectors] = []

        def load() -> TenantVectors:
            tenant = TenantVectors(
                self.name, self.vectors, self.changes, self.exact_max, store, scope
            )
            loaded.append(tenant)
            with self._handover:
                self._loading.add(tenant)
                self._tenants.add(tenant)
                # Commits between the reader's and this one were applied while there was no state to
                # apply them to.
                tenant.owed = store.sequence
            # Which is not older, so that it is not to be read again with the next reader.
            with store.snapshot() as committed:
                tenant.read(committed)
            return tenant

        try:
            tenant = store.residents.get((self.name, scope), load)
        finally:
            with self._handover:
                self._loading.difference_update(loaded)
        tenant.settle(reader)
        # Whoever reads beside the owner takes what that has made.
        if loaded and tenant.is_behind and store.is_owned:
            self._builder.want(tenant)
        return tenant


class BoundVectors:
    """The index inside one snapshot or transaction and one tenant.

    put, delete and get act on the rows this reader sees. search and scan answer from the resident
    state: everything acknowledged so far, in a transaction without its own changes. Vectors are
    unit vectors; scores are dot products.
    """

    def __init__(self, index: VectorIndex, reader: Reader, scope: Scope):
        self._index, self._reader, self._scope = index, reader, scope
        self._rows = reader.bind(index.vectors, scope)
        self._changes = index.changes.bind(reader, scope)
        self._row_bytes: dict[str, int] = {}

    def put(self, space: str, ordinal: int, vector: ArrayLike) -> None:
        """Insert or replace. ValueError unless the vector is one finite row of the width the space
        has.
        """
        numbers = np.ascontiguousarray(vector, "<f4")
        if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
            raise ValueError(f"a vector of space {space!r} must be one row of finite numbers")
        raw = numbers.tobytes()
        expected = self._expected_bytes(space)
        if expected is not None and expected != len(raw):
            raise ValueError(
                f"space {space!r} holds vectors of {expected // 4} numbers, not {len(numbers)}"
            )
        sequence = self._reader.sequence
        self._rows.put_raw((space, ordinal), sequence.to_bytes(SEQUENCE_BYTES, "little") + raw)
        self._changes.changed(ordinal)
        self._reader.note(self._index.name, self._scope, Change(sequence, space, ordinal, raw))

    def delete(self, space: str, ordinal: int) -> bool:
        """Delete a vector; -> whether there was one."""
        deleted = self._rows.delete(space, ordinal)
        if deleted:
            self._changes.changed(ordinal)
            self._reader.note(
                self._index.name, self._scope, Change(self._reader.sequence, space, ordinal)
            )
        return deleted

    def clear(self) -> int:
        """Delete all vectors of the tenant, in every space; -> how many. Its files go when this is
        applied.
        """
        deleted = self._rows.delete_prefix()
        self._changes.clear()
        self._reader.note(self._index.name, self._scope, Change(self._reader.sequence))
        return deleted

    def get(self, space: str, ordinal: int) -> Vectors | None:
        """The stored vector, or None."""
        raw = self._rows.get_raw(space, ordinal)
        return None if raw is None else np.frombuffer(raw, "<f4", offset=SEQUENCE_BYTES)

    def spaces(self) -> list[str]:
        """The spaces that hold vectors, in order; it reads keys alone."""
        return self._rows.first_parts()

    def count(self, space: str) -> int:
        """How many vectors a space holds; it walks their keys."""
        return self._rows.count(space)

    def get_many(
        self, space: str, ordinals: NDArray[np.integer]
    ) -> tuple[Vectors, NDArray[np.bool_]]:
        """(n, width) stored vectors aligned with `ordinals`, zeros where there is none, and which
        there are; (n, 0) without any.
        """
        rows = self._rows.get_many(
            [(ordinal,) for ordinal in np.asarray(ordinals).tolist()], (space,)
        )
        present = np.array([raw is not None for raw in rows], bool)
        width = next((len(raw) - SEQUENCE_BYTES for raw in rows if raw is not None), 0)
        raws = [bytes(width) if raw is None else raw[SEQUENCE_BYTES:] for raw in rows]
        return np.frombuffer(b"".join(raws), "<f4").reshape(len(rows), width // 4), present

    def scan(self, space: str, queries: ArrayLike) -> list[Scan]:
        """One Scan per query of (q, width). Many at once cost little more than one: the vectors are
        read once for all.
        """
        matrix = np.atleast_2d(np.asarray(queries, np.float32))
        held = self._resident(space)
        if held is None:
            return [Scan.of_nothing() for _ in matrix]
        _check_width(space, matrix, held.width)
        return held.scan(matrix)

    def search(
        self, space: str, queries: ArrayLike, k: int, allowed: BitMap | None = None
    ) -> list[Found]:
        """For each query, the k best of `allowed` (None: all): (ordinals, scores), by score, then
        ordinal, both descending.

        queries: (q, width), or one vector. Many queries at once cost little more than one.
        """
        matrix = np.atleast_2d(np.asarray(queries, np.float32))
        held = self._resident(space)
        if held is None or k < 1:
            return [(np.zeros(0, np.uint32), np.zeros(0, np.float32))] * len(matrix)
        _check_width(space, matrix, held.width)
        return [
            self._exact(space, query, k, near)
            for query, (near, _) in zip(matrix, held.near(matrix, k, allowed), strict=True)
        ]

    def _exact(self, space: str, query: Vectors, k: int, ordinals: Ordinals) -> Found:
        """The k best of candidates by their stored rows; a candidate whose row is gone from this
        reader is left out.
        """
        # What is not committed yet counts neither here nor in the resident state.
        if self._reader.writable:
            with self._reader.store.snapshot() as committed:
                return self._index.bind(committed, self._scope)._exact(space, query, k, ordinals)
        rows = self._rows.get_many([(ordinal,) for ordinal in ordinals.tolist()], (space,))
        held = [
            (ordinal, raw[SEQUENCE_BYTES:])
            for ordinal, raw in zip(ordinals.tolist(), rows, strict=True)
            if raw is not None
        ]
        if not held:
            return np.zeros(0, np.uint32), np.zeros(0, np.float32)
        vectors = np.frombuffer(b"".join(raw for _, raw in held), "<f4").reshape(len(held), -1)
        return best(np.array([ordinal for ordinal, _ in held], np.uint32), vectors @ query, k)

    def _resident(self, space: str) -> Space | None:
        return self._index._tenant(self._reader, self._scope).space(space)

    def _expected_bytes(self, space: str) -> int | None:
        size = self._row_bytes.get(space)
        if size is None and (entry := self._rows.first(space)) is not None:
            size = self._row_bytes[space] = len(entry[1]) - SEQUENCE_BYTES
        return size


def _check_width(space: str, queries: Vectors, width: int) -> None:
    if queries.shape[1] != width:
        raise ValueError(
            f"space {space!r} holds vectors of {width} numbers, not {queries.shape[1]}"
        )
