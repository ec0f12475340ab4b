"""The resident vectors of one tenant: its spaces, filled from a snapshot and fed after commits."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.vectors.hnsw import CheckpointPlace
from storage.indexes.vectors.space import Space
from storage.store import OpenStore, Reader, Scope, Table

LOAD_CHUNK = 4_096
SEQUENCE_BYTES = 8


class Change(NamedTuple):
    """One put (vector bytes) or delete (None) of an ordinal; without a space, everything of the
    tenant is gone.
    """

    sequence: int
    space: str | None = None
    ordinal: int = 0
    vector: bytes | None = None


class TenantVectors:
    """The resident state of one tenant: its spaces, and up to which commit it is complete.

    covered  the newest snapshot read from
    owed     changes up to this commit may have been missed by apply; a reader that sees more than
             `covered` reads them in
    """

    def __init__(
        self, name: str, table: Table[bytes], exact_max: int, store: OpenStore, scope: Scope
    ):
        self.store = weakref.ref(store)
        self.scope = scope
        self.covered = self.owed = 0
        self._name = name
        self._table = table
        self._exact_max = exact_max
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        self._spaces: dict[str, Space] = {}
        self._applied = 0  # the newest commit that apply brought
        self._floor = 0  # what is older than this commit is known or gone

    @property
    def nbytes(self) -> int:
        # Without the lock: the keeper of all residents asks, and must not wait for a search or a
        # file of this one.
        return sum(space.nbytes for space in list(self._spaces.values()))

    def space(self, name: str) -> Space | None:
        with self._lock:
            return self._spaces.get(name)

    def place(self, store: OpenStore, space: str) -> CheckpointPlace:
        """Where the checkpoint of a space lies."""
        return CheckpointPlace(
            store.directory, self._name, self.scope.slot, self.scope.tenant, space, store.keys
        )

    def save(self, store: OpenStore) -> int:
        """Write the checkpoints of the graphs that changed; -> how many."""
        return sum(space.save(self.place(store, name)) for name, space in self.each_space())

    def each_space(self) -> list[tuple[str, Space]]:
        with self._lock:
            return list(self._spaces.items())

    def apply(self, changes: Sequence[Change]) -> bool:
        """Take over committed changes, in their order. -> whether some graph is behind them."""
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
                    self._made(change.space, len(vector)).put_one(
                        change.ordinal, change.sequence, vector
                    )
                self._applied = max(self._applied, change.sequence)
            self._settle()
            return any(space.is_behind for space in self._spaces.values())

    def advance(self) -> bool:
        """Let each graph that is behind take a step. -> whether one still is."""
        behind = [space for _, space in self.each_space() if space.is_behind]
        return any([space.advance() for space in behind])

    def settle(self, reader: Reader) -> None:
        """Read in what apply may have missed, as far as this reader sees it."""
        if self.covered < self.owed and self.covered < reader.sequence:
            self.read(reader)

    def read(self, reader: Reader) -> None:
        """Bring the state to at least what the snapshot holds; newer changes learned meanwhile
        stay.
        """
        with self._reading:
            sequence = reader.sequence
            if self.covered >= sequence > 0:
                return
            seen: dict[str, list[NDArray[np.int64]]] = {}
            for name, ordinals, rows in _chunks(reader, self._table, self.scope):
                table = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
                stamps = table[:, :SEQUENCE_BYTES].copy().view("<u8")[:, 0]
                seen.setdefault(name, []).append(np.array(ordinals, np.int64))
                with self._lock:
                    vectors = table[:, SEQUENCE_BYTES:].copy().view("<f4")
                    self._made(name, vectors.shape[1]).put_newer(seen[name][-1], stamps, vectors)
            with self._lock:
                for name, space in self._spaces.items():
                    space.retain(np.concatenate(seen.get(name, [np.zeros(0, np.int64)])), sequence)
                    space.restore(self.place(reader.store, name), reader.store.sequence)
                self.covered = sequence
                self._settle()

    def _settle(self) -> None:
        """Where nothing is owed, what comes of a commit before the newest one came before, since
        commits are applied in their order: no stamp of what is deleted is needed.
        """
        if self.covered >= self.owed:
            self._floor = max(self._floor, self.covered, self._applied)
            for space in self._spaces.values():
                space.settle(self._floor)

    def _made(self, name: str, width: int) -> Space:
        space = self._spaces.get(name)
        if space is None:
            space = self._spaces[name] = Space(width, self._exact_max, self._lock, self._floor)
        return space


def _chunks(
    reader: Reader, table: Table[bytes], scope: Scope
) -> Iterator[tuple[str, list[int], list[bytes]]]:
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
