"""The resident vectors of one tenant: its spaces, filled from a snapshot and fed after commits."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.vectors.kept import MARK, MARK_BYTES, Kept, KeptPlace, Marks
from storage.indexes.vectors.space import Space
from storage.store import OpenStore, Reader, Scope, Store, Table

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

    def place(self, store: OpenStore, space: str) -> KeptPlace:
        """Where the file of a space lies."""
        return KeptPlace(
            store.directory, self._name, self.scope.slot, self.scope.tenant, space, store.keys
        )

    def keep(self, store: Store, is_applied: Callable[[], bool]) -> int:
        """Write the files of spaces that have changed much; -> how many. One caller at a time.

        is_applied  whether every commit that can be seen was applied. Where one was not, its rows
                    would be taken for what is resident; its changes, once applied, lead here again
        """
        written = 0
        for name, space in self.each_space():
            if not (changes := space.unkept):
                continue
            place = self.place(store, name)
            with store.snapshot() as snapshot:
                self.settle(snapshot)
                ordinals, marks = _marks(snapshot, self._table, self.scope, name)
                sequence = snapshot.sequence
            if not is_applied():
                break
            is_right = space.keep(place, ordinals, marks, sequence, changes)
            if not is_right or store.residents.peek((self._name, self.scope)) is not self:
                place.delete()  # who erased the files meanwhile has not met this one
            written += 1
        return written

    def each_space(self) -> list[tuple[str, Space]]:
        with self._lock:
            return list(self._spaces.items())

    def apply(self, changes: Sequence[Change]) -> bool:
        """Take over committed changes, in their order. -> whether something is to be built."""
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
            return self.is_behind

    @property
    def is_behind(self) -> bool:
        """Whether something is to be built or written of some space."""
        return any(space.is_behind or space.unkept for _, space in self.each_space())

    def advance(self) -> bool:
        """Let each space that is behind take a step of building. -> whether one still is."""
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
            names = reader.bind(self._table, self.scope).first_parts()
            seen = {name: self._read_space(reader, name) for name in names}
            with self._lock:
                for name, space in self._spaces.items():
                    space.retain(seen.get(name, np.zeros(0, np.int64)), sequence)
                self.covered = sequence
                self._settle()

    def _read_space(self, reader: Reader, name: str) -> NDArray[np.int64]:
        """Take over a space's rows, from its file where they are still the same; -> their
        ordinals.
        """
        rows = reader.bind(self._table, self.scope)
        kept = self.place(reader.store, name).read()
        if kept is None:
            ordinals = []
            for chunk in _chunks(rows.scan(name)):
                ordinals += [ordinal for ordinal, _ in chunk]
                self._put(name, chunk)
            return np.array(ordinals, np.int64)
        stored, marks = _marks(reader, self._table, self.scope, name)
        same, places = _still(kept, stored, marks)
        self._adopt(name, kept if len(places) == len(kept.ordinals) else kept.take(places))
        others = stored[~same].tolist()
        for start in range(0, len(others), LOAD_CHUNK):
            some = others[start : start + LOAD_CHUNK]
            raws = rows.get_many([(ordinal,) for ordinal in some], (name,))
            self._put(
                name, [(ordinal, raw) for ordinal, raw in zip(some, raws, strict=True) if raw]
            )
        return stored

    def _put(self, name: str, rows: Sequence[tuple[int, bytes]]) -> None:
        """Take over rows as they are stored, each by its ordinal."""
        table = np.frombuffer(b"".join(raw for _, raw in rows), np.uint8).reshape(len(rows), -1)
        stamps = table[:, :SEQUENCE_BYTES].copy().view("<u8")[:, 0]
        vectors = table[:, SEQUENCE_BYTES:].copy().view("<f4")
        ordinals = np.array([ordinal for ordinal, _ in rows], np.int64)
        with self._lock:
            self._made(name, vectors.shape[1]).put_newer(ordinals, stamps, vectors)

    def _adopt(self, name: str, kept: Kept) -> None:
        """Take over what a file has. It takes long for the writer to wait, so a space of its own is
        filled, and counts unless changes have come meanwhile.
        """
        width = kept.codes.codes.shape[1]
        with self._lock:
            made = Space(width, self._exact_max, self._lock, self._floor)
        if name not in self._spaces:
            made.adopt(kept)
        with self._lock:
            if name in self._spaces:
                self._spaces[name].adopt(kept)
            else:
                self._spaces[name] = made

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
    rows: Iterator[tuple[tuple[Any, ...], bytes]],
) -> Iterator[list[tuple[int, bytes]]]:
    """(ordinal, row) of rows of one space, at most LOAD_CHUNK at a time."""
    while chunk := list(itertools.islice(rows, LOAD_CHUNK)):
        yield [(ordinal, raw) for (_, ordinal), raw in chunk]


def _marks(
    reader: Reader, table: Table[bytes], scope: Scope, space: str
) -> tuple[NDArray[np.int64], Marks]:
    """The ordinals of a space's rows in the order of their keys, and the marks of the rows."""
    ordinals, marks = reader.bind(table, scope).beginnings(MARK_BYTES, space)
    return np.array(ordinals, np.int64), np.frombuffer(marks, MARK)


def _still(
    kept: Kept, ordinals: NDArray[np.int64], marks: Marks
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which of the stored rows are what they were when the file was written; and where these are
    in it.
    """
    if not len(kept.ordinals):
        return np.zeros(len(ordinals), np.bool_), np.zeros(0, np.intp)
    order = np.argsort(kept.ordinals, kind="stable")
    places = np.searchsorted(kept.ordinals, ordinals, sorter=order)
    places = order[np.minimum(places, len(order) - 1)]
    alike = _words(marks) == _words(kept.marks[places])
    same = (kept.ordinals[places] == ordinals) & alike.all(axis=1)
    return same, places[same]


def _words(marks: Marks) -> NDArray[np.uint32]:
    return marks.view(np.uint32).reshape(-1, MARK_BYTES // 4)
