"""The resident vectors of one tenant: its spaces, filled from a snapshot and fed after commits."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from storage.indexes.change_tokens import (
    WHOLE,
    ChangeTokens,
    Tokens,
    are_in,
    changed_ranges,
    rows_in,
)
from storage.indexes.kept import KeptPlace
from storage.indexes.vectors.space import KeptVectors, Space
from storage.store import BoundTable, OpenStore, Reader, Scope, Store, Table

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
        self,
        name: str,
        table: Table[bytes],
        tokens: ChangeTokens,
        exact_max: int,
        store: OpenStore,
        scope: Scope,
    ):
        self.store = weakref.ref(store)
        self.scope = scope
        self.covered = self.owed = 0
        self._name = name
        self._table = table
        self._tokens = tokens
        self._seen: Tokens | None = None  # with what was read last
        self._exact_max = exact_max
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        self._spaces: dict[str, Space] = {}
        self._applied = 0  # the newest commit that apply brought
        self._floor = 0  # what is older than this commit is known or gone
        self._gone: dict[str, dict[int, int]] = {}  # when what was deleted, of spaces to be read

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
        layout, (slot, tenant) = str(self._table.version), (self.scope.slot, self.scope.tenant)
        return KeptPlace(store.directory, self._name, slot, tenant, space, layout, store.keys)

    def keep(self, store: Store, is_applied: Callable[[], bool]) -> int:
        """Write the files of spaces that have changed much; -> how many. One caller at a time.

        is_applied  whether every commit that can be seen was applied. Where one was not, its rows
                    would be taken for what is resident; its changes, once applied, lead here again.
                    The same of a state that has left memory meanwhile, to which nothing is applied
        """

        def tokens_now() -> Tokens:
            with store.snapshot() as snapshot:
                return self._tokens.bind(snapshot, self.scope).all()

        def is_resident() -> bool:
            return store.residents.peek((self._name, self.scope)) is self

        written = 0
        for name, space in self.each_space():
            if not (changes := space.unkept):
                continue
            place = self.place(store, name)
            with store.snapshot() as snapshot:
                self.settle(snapshot)
                tokens = self._tokens.bind(snapshot, self.scope).all()
            if WHOLE not in tokens or not is_applied() or not is_resident():
                break
            is_right = space.keep(place, tokens, tokens_now, changes)
            if not is_right or not is_resident():
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
                    self._clear(change.sequence)
                elif change.vector is None:
                    if (space := self._spaces.get(change.space)) is not None:
                        space.delete(change.ordinal, change.sequence)
                    else:
                        gone = self._gone.setdefault(change.space, {})
                        gone[change.ordinal] = change.sequence
                else:
                    vector = np.frombuffer(change.vector, "<f4")
                    self._made(change.space, len(vector)).put_one(
                        change.ordinal, change.sequence, vector
                    )
                self._applied = max(self._applied, change.sequence)
            self._settle()
            return self.is_behind

    def _clear(self, sequence: int) -> None:
        """Forget everything of before a commit; what was read since is of after it."""
        if sequence <= self.covered:
            return
        self._floor = max(self._floor, sequence)
        self._gone = {
            name: {ordinal: when for ordinal, when in gone.items() if when > sequence}
            for name, gone in self._gone.items()
        }
        for space in self._spaces.values():
            space.clear(sequence)

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
            rows = reader.bind(self._table, self.scope)
            tokens = self._tokens.bind(reader, self.scope).all()
            for name in {*rows.first_parts(), *self._spaces}:
                self._read_space(reader.store, rows, name, sequence, tokens)
            with self._lock:
                self.covered, self._seen = sequence, tokens
                self._settle()

    def _read_space(
        self,
        store: OpenStore,
        rows: BoundTable[bytes],
        name: str,
        sequence: int,
        tokens: Tokens,
    ) -> None:
        """Take over what may have changed of a space's rows since it was read, or since its file
        was written.
        """
        seen = self._seen
        if seen is None:
            first = rows.first(name)
            width = 0 if first is None else (len(first[1]) - SEQUENCE_BYTES) // 4
            kept = KeptVectors.read(self.place(store, name), width)
            changed = None if kept is None else changed_ranges(kept.tokens, tokens)
            if kept is not None and changed is not None:
                ordinals = kept.held.ordinals[: kept.count]
                kept.held.stamps[: kept.count] = np.where(are_in(ordinals, changed), 0, sequence)
                self._adopt(name, kept)
                seen = kept.tokens
        changed = changed_ranges(seen, tokens)
        stored = list[int]()
        parts = _all_rows(rows, name) if changed is None else rows_in(rows, changed, name)
        for ordinals, raws in parts:
            stored += ordinals
            if ordinals:
                self._put(name, ordinals, raws)
        with self._lock:
            if (space := self._spaces.get(name)) is not None:
                space.retain(np.array(stored, np.int64), sequence, changed)

    def _put(self, name: str, ordinals: Sequence[int], raws: Sequence[bytes]) -> None:
        """Take over rows as they are stored."""
        table = np.frombuffer(b"".join(raws), np.uint8).reshape(len(raws), -1)
        stamps = table[:, :SEQUENCE_BYTES].copy().view("<u8")[:, 0]
        vectors = table[:, SEQUENCE_BYTES:].copy().view("<f4")
        with self._lock:
            made = self._made(name, vectors.shape[1])
            made.put_newer(np.array(ordinals, np.int64), stamps, vectors)

    def _adopt(self, name: str, kept: KeptVectors) -> None:
        """Take over what a file has. It takes long for the writer to wait, so a space of its own is
        filled, and counts unless changes have come meanwhile.
        """
        with self._lock:
            floor = self._floor
            made = Space(kept.width, self._exact_max, self._lock, floor)
        if name not in self._spaces:
            made.adopt(kept)
        with self._lock:
            if name in self._spaces or self._floor != floor:
                self._made(name, kept.width).adopt(kept)
            else:
                self._begin(name, made)

    def _settle(self) -> None:
        """Where nothing is owed, what comes of a commit before the newest one came before, since
        commits are applied in their order: no stamp of what is deleted is needed.
        """
        if self.covered >= self.owed:
            self._floor = max(self._floor, self.covered, self._applied)
            self._gone = {}
            for space in self._spaces.values():
                space.settle(self._floor)

    def _made(self, name: str, width: int) -> Space:
        space = self._spaces.get(name)
        if space is None:
            space = self._begin(name, Space(width, self._exact_max, self._lock, self._floor))
        return space

    def _begin(self, name: str, space: Space) -> Space:
        """Have a space, less what was deleted before it was read."""
        self._spaces[name] = space
        for ordinal, sequence in self._gone.pop(name, {}).items():
            space.delete(ordinal, sequence)
        return space


def _all_rows(rows: BoundTable[bytes], space: str) -> Iterator[tuple[list[int], list[bytes]]]:
    """(ordinals, rows) of one space, at most LOAD_CHUNK at a time."""
    every = rows.scan(space)
    while chunk := list(itertools.islice(every, LOAD_CHUNK)):
        yield [ordinal for (_, ordinal), _ in chunk], [raw for _, raw in chunk]
