"""Fixed-size records by ordinal, held in memory as one structured NumPy array per tenant, a row for
each record that there is (storage/indexes/row_map.py).

It owns records of one layout (a NumPy dtype) and where they are; it does not know what their fields
mean. The record is an ordinary row, written in the transaction of what it describes:

    x.records   (ordinal,)  -> one record of the dtype, raw

Reading the records of a few hundred ordinals is then one `take` instead of a few hundred look-ups.
The array is derived state, filled and fed as storage/indexes/resident_index.py says. Ordinals
without a record read as `absent`. That of many records leaves a file for the next load
(storage/indexes/kept.py).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.applied import Applied
from storage.indexes.builder import Builder
from storage.indexes.change_tokens import (
    WHOLE,
    ChangeTokens,
    Tokens,
    are_in,
    changed_ranges,
    rows_in,
)
from storage.indexes.kept import KeptPlace, Kind, erase, sweep, unkept
from storage.indexes.ordinals import Ordinals
from storage.indexes.resident_index import ResidentIndex
from storage.indexes.row_map import ABSENT, RowMap
from storage.store import OpenStore, Reader, Scope, Store, StoreError, Table

GROWTH = 1.5
RECORDS_MIN = 256
KEPT_MIN = 20_000  # fewer records are read from their rows in some hundredths of a second


class RecordChange(NamedTuple):
    """raw None: the record is gone; ordinal None: all of them are."""

    sequence: int
    ordinal: int | None
    raw: bytes | None


class ColumnIndex(ResidentIndex["_Records"]):
    """The declaration: a name, the layout, and what an ordinal without a record reads as (one
    record's bytes).

    changes   what tells of changes among its ordinals, where other indexes have the same
    kept_min  records of a tenant whose file is written
    """

    def __init__(
        self,
        name: str,
        dtype: np.dtype,
        absent: bytes,
        changes: ChangeTokens | None = None,
        kept_min: int = KEPT_MIN,
    ):
        super().__init__(name)
        self.dtype = dtype
        # As compiled loops see it: what is unused has no kind.
        self.layout = dtype[[each for each in dtype.names or () if dtype[each].kind != "V"]]
        self.absent = np.frombuffer(absent, dtype)[0]
        self.changes = changes or ChangeTokens(name)
        self.records: Table[bytes] = Table(
            f"{name}.records", ("ordinal",), bytes, doc=f"records of {dtype.itemsize} bytes"
        )
        self.tables = (self.records, self.changes.table)
        self.kept_min = kept_min
        self._applied = Applied(name)
        self._keeping = threading.Lock()  # held by the one who writes a file
        self._builder = Builder[tuple[weakref.ref[Store], Scope]](self._keep)

    def bind(self, reader: Reader, scope: Scope) -> BoundColumns:
        return BoundColumns(self, reader, scope)

    def apply(self, store: Store, changes: Sequence[tuple[Scope, RecordChange]]) -> None:
        super().apply(store, changes)
        self._applied.note(store, max((change.sequence for _, change in changes), default=0))
        for scope in {scope for scope, _ in changes}:
            self._want(store, scope)
        if store.is_owned:
            for scope in {scope for scope, change in changes if change.ordinal is None}:
                erase(store.directory, self.name, scope.slot, scope.tenant)

    def resident(self, store: OpenStore, scope: Scope) -> _Records:
        known = self.loaded(store, scope)
        state = super().resident(store, scope)
        if state is not known:
            self._want(store, scope)
        return state

    def checkpoint(self, store: Store) -> int:
        """Write the files of resident tenants that have changed much; -> how many. Those of tenants
        without records are deleted.
        """
        written = sum(self._write(store, scope) for scope in self.scopes_loaded(store))
        with store.snapshot() as snapshot:

            def is_alive(place: KeptPlace) -> bool:
                rows = snapshot.bind(self.records, Scope(place.slot, place.tenant))
                return not rows.is_empty()

            with self._keeping:
                sweep(store.directory, self.name, is_alive)
        return written

    def forget(self, store: OpenStore, scope: Scope, *, files: bool) -> None:
        super().forget(store, scope, files=files)
        if files:
            erase(store.directory, self.name, scope.slot, scope.tenant)

    def _empty(self) -> _Records:
        return _Records(self.dtype, self.absent)

    def _fill(self, state: _Records, reader: Reader, scope: Scope) -> None:
        rows, tokens = reader.bind(self.records, scope), self.changes.bind(reader, scope).all()
        kept = self._place(reader.store, scope).read(state.kinds, _with_room)
        changed = None if kept is None else changed_ranges(kept.tokens, tokens)
        if kept is not None and changed is not None:
            state.adopt(kept.arrays[0], kept.arrays[1], kept.count, changed)
            for ordinals, raws in rows_in(rows, changed):
                state.fill(np.array(ordinals, np.int64), b"".join(raws))
            return
        numbers, raw = rows.beginnings(self.dtype.itemsize)
        state.fill(np.array(numbers, np.int64), raw)

    def _place(self, store: OpenStore, scope: Scope) -> KeptPlace:
        layout = f"{self.records.version} {self.dtype.descr}"
        return KeptPlace(
            store.directory, self.name, scope.slot, scope.tenant, "", layout, store.keys
        )

    def _want(self, store: OpenStore, scope: Scope) -> None:
        """Have the file written soon where much has changed. Who reads beside the owner writes
        none.
        """
        state = self.loaded(store, scope)
        if state is None or not isinstance(store, Store) or not store.is_owned:
            return
        if state.unkept(self.kept_min):
            self._builder.want((weakref.ref(store), scope))

    def _keep(self, due: tuple[weakref.ref[Store], Scope]) -> bool:
        """Write a file that is due; -> whether another step is."""
        reference, scope = due
        if (store := reference()) is not None:
            try:
                self._write(store, scope)
            except (StoreError, OSError):  # its keys may be closed
                if not store.environment.is_closed:
                    raise
        return False

    def _write(self, store: Store, scope: Scope) -> int:
        """Write a tenant's file where it is due; -> how many were written."""
        state, key = self.loaded(store, scope), (self.name, scope)

        def tokens_now() -> Tokens:
            with store.snapshot() as snapshot:
                return self.changes.bind(snapshot, scope).all()

        def is_fed() -> bool:
            return self.loaded(store, scope) is state is store.residents.peek(key)

        with self._keeping:
            if state is None or not is_fed() or not (changes := state.unkept(self.kept_min)):
                return 0
            tokens = tokens_now()
            # A state that has left memory meanwhile may miss what that snapshot has.
            if WHOLE not in tokens or not self._applied.is_through(store) or not is_fed():
                return 0
            place = self._place(store, scope)
            if not state.keep(place, tokens, tokens_now, changes) or not is_fed():
                place.delete()  # who erased the files meanwhile has not met this one
            return 1


class BoundColumns:
    """The records of one tenant in one reader. changes: what is told of their changes."""

    def __init__(self, index: ColumnIndex, reader: Reader, scope: Scope):
        self._index, self._reader, self._scope = index, reader, scope
        self._rows = reader.bind(index.records, scope)
        self.changes = index.changes.bind(reader, scope)
        self._held: _Records | None = None

    def put(self, ordinal: int, raw: bytes) -> None:
        """Insert or replace one record. ValueError unless it has the layout's size."""
        if len(raw) != self._index.dtype.itemsize:
            raise ValueError(
                f"a record of {self._index.name!r} has {self._index.dtype.itemsize} bytes, not "
                f"{len(raw)}"
            )
        self._rows.put_raw((ordinal,), raw)
        self.changes.changed(ordinal)
        self._note(ordinal, raw)

    def get(self, ordinal: int) -> bytes | None:
        """One stored record, from this reader."""
        return self._rows.get_raw(ordinal)

    def delete(self, ordinal: int) -> bool:
        """Delete one record; -> whether there was one."""
        deleted = self._rows.delete(ordinal)
        if deleted:
            self.changes.changed(ordinal)
            self._note(ordinal, None)
        return deleted

    def clear(self) -> int:
        """Delete all records of the tenant; -> how many."""
        deleted = self._rows.delete_prefix()
        self.changes.clear()
        self._note(None, None)
        return deleted

    def take(self, ordinals: NDArray[np.integer]) -> np.ndarray:
        """Read records; -> (n,) aligned with `ordinals`, `absent` where there is none."""
        return self._records().opaque(ordinals).view(self._index.dtype)

    def laid_out(self, ordinals: NDArray[np.integer]) -> np.ndarray:
        """As take, in the index's `layout`."""
        return self._records().opaque(ordinals).view(self._index.layout)

    def field(self, name: str, ordinals: NDArray[np.integer]) -> np.ndarray:
        """(n,) one field of the records, aligned with `ordinals`; of `absent` where there is
        none.
        """
        return self._records().field(name, ordinals)

    def _note(self, ordinal: int | None, raw: bytes | None) -> None:
        change = RecordChange(self._reader.sequence, ordinal, raw)
        self._reader.note(self._index.name, self._scope, change)

    def _records(self) -> _Records:
        """The resident array; a snapshot's binding keeps hold of the one it has found."""
        if self._held is not None:
            return self._held
        records = self._index.resident(self._reader.store, self._scope)
        if not self._reader.writable:
            self._held = records
        return records


class _Held(NamedTuple):
    """Each ordinal's row, and the records; the last of those is what ABSENT is the row of. opaque:
    the same as bytes.
    """

    rows: RowMap
    records: np.ndarray
    opaque: np.ndarray


class _Records:
    """The resident records. What is deleted keeps its row until the array is full, or most of it is
    deleted; then another one takes its place, which so holds no more than is there.
    """

    def __init__(self, dtype: np.dtype, absent: np.void):
        self._dtype, self._absent = dtype, absent
        # A record as bytes without fields, which NumPy would copy one by one.
        self._bytes = np.dtype(f"V{dtype.itemsize}")
        self._changes = 0  # since the file was written or read
        self._cleared = 0  # how often
        self._hold(RowMap(), np.empty(0, self._bytes))

    @property
    def nbytes(self) -> int:
        return self._held.rows.nbytes + self._held.records.nbytes

    def apply(self, change: RecordChange) -> None:
        self._changes += 1
        if change.ordinal is None:
            self._cleared += 1
            self._hold(RowMap(), np.empty(0, self._bytes))
            return
        row = self._held.rows.get(change.ordinal)
        if change.raw is None:
            if row != ABSENT:
                self._held.rows.put_one(change.ordinal, ABSENT)
                self._live -= 1
                if self._used > 2 * self._live + RECORDS_MIN:
                    self._gather(0)
            return
        if row == ABSENT and self._used == len(self._held.records) - 1:
            self._gather(1)
        rows, records, _ = self._held
        records[self._used if row == ABSENT else row] = np.frombuffer(change.raw, self._dtype)[0]
        if row == ABSENT:
            rows.put_one(change.ordinal, self._used)
            self._used, self._live = self._used + 1, self._live + 1

    def fill(self, ordinals: NDArray[np.int64], raw: bytes) -> None:
        """Take over records, one after another, of which none is there."""
        if not len(ordinals):
            return
        count = len(ordinals)
        if self._used + count >= len(self._held.records):
            self._gather(count)
        # Behind what is there now: rows of changed ranges that a file had are gone.
        start, (rows, _, opaque) = self._used, self._held
        opaque[start : start + count] = np.frombuffer(raw, opaque.dtype)
        rows.put(ordinals, np.arange(start, start + count, dtype=np.int32))
        self._used, self._live = start + count, self._live + count
        self._changes += count

    @property
    def kinds(self) -> list[Kind]:
        """Of the arrays in a file: ordinals, and records as bytes."""
        return [Kind("<u4"), Kind(self._bytes.str)]

    def adopt(
        self, ordinals: Ordinals, opaque: np.ndarray, count: int, changed: NDArray[np.int64]
    ) -> None:
        """Take over the first `count` records of a file, less those in changed ranges, where none
        is there. The array is the state's own from now on.
        """
        same = np.flatnonzero(~are_in(ordinals[:count], changed)).astype(np.int32)
        rows = RowMap.of(ordinals[same], same)
        records = opaque.view(self._dtype)
        records[-1] = self._absent
        self._held = _Held(rows, records, opaque)
        self._used, self._live = count, len(same)

    def unkept(self, kept_min: int) -> int:
        """How much has changed since the file was written, once it is to be written; else 0."""
        return unkept(self._live, self._changes, kept_min)

    def keep(
        self, place: KeptPlace, tokens: Tokens, tokens_now: Callable[[], Tokens], changes: int
    ) -> bool:
        """Write the file; -> whether it is still right: false where all was cleared meanwhile.

        tokens   of a snapshot that nothing is missing of here; what came later is in ranges that
                 have others since, which `tokens_now` gives
        changes  `unkept`, before that snapshot was taken
        """
        cleared, held = self._cleared, self._held
        ordinals, rows = held.rows.entries()
        by_row = np.empty(len(held.records), np.uint32)
        by_row[rows] = ordinals
        place.write(tokens, tokens_now, [by_row, held.opaque], rows, np.zeros((0, 0), np.float32))
        self._changes -= changes
        return self._cleared == cleared

    def opaque(self, ordinals: NDArray[np.integer]) -> np.ndarray:
        """(n,) records as bytes."""
        held = self._held
        return held.opaque[held.rows.find(ordinals)]

    def field(self, name: str, ordinals: NDArray[np.integer]) -> np.ndarray:
        held = self._held
        return held.records[name][held.rows.find(ordinals)]

    def _gather(self, room: int) -> None:
        """Another array of what is there, with room for so many more and for growth. Readers go on
        with the old one.
        """
        ordinals, rows = self._held.rows.entries()
        self._hold(RowMap.of(ordinals), self._held.opaque[rows], room)

    def _hold(self, rows: RowMap, opaque: np.ndarray, room: int = 0) -> None:
        self._used = self._live = len(opaque)
        records = np.empty(_with_room(len(opaque) + room), self._dtype)
        records[-1] = self._absent
        held = _Held(rows, records, records.view(self._bytes))
        held.opaque[: len(opaque)] = opaque
        self._held = held


def _with_room(needed: int) -> int:
    """How many rows an array gets for so many records, with room for growth, and for the last."""
    return max(int(GROWTH * needed), RECORDS_MIN) + 1
