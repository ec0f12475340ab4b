"""Fixed-size records by ordinal, held in memory as one structured NumPy array per tenant, a row for
each record that there is (storage/indexes/row_map.py).

It owns records of one layout (a NumPy dtype) and where they are; it does not know what their fields
mean. The record is an ordinary row, written in the transaction of what it describes:

    x.records   (ordinal,)  -> one record of the dtype, raw

Reading the records of a few hundred ordinals is then one `take` instead of a few hundred look-ups.
The array is derived state, filled and fed as storage/indexes/resident_index.py says. Ordinals
without a record read as `absent`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.resident_index import ResidentIndex
from storage.indexes.row_map import ABSENT, RowMap
from storage.store import Reader, Scope, Table

GROWTH = 1.5
RECORDS_MIN = 256


class RecordChange(NamedTuple):
    """raw None: the record is gone; ordinal None: all of them are."""

    ordinal: int | None
    raw: bytes | None


class ColumnIndex(ResidentIndex["_Records"]):
    """The declaration: a name, the layout, and what an ordinal without a record reads as (one
    record's bytes).
    """

    def __init__(self, name: str, dtype: np.dtype, absent: bytes):
        super().__init__(name)
        self.dtype = dtype
        # As compiled loops see it: what is unused has no kind.
        self.layout = dtype[[each for each in dtype.names or () if dtype[each].kind != "V"]]
        self.absent = np.frombuffer(absent, dtype)[0]
        self.records: Table[bytes] = Table(
            f"{name}.records", ("ordinal",), bytes, doc=f"records of {dtype.itemsize} bytes"
        )
        self.tables = (self.records,)

    def bind(self, reader: Reader, scope: Scope) -> BoundColumns:
        return BoundColumns(self, reader, scope)

    def _empty(self) -> _Records:
        return _Records(self.dtype, self.absent)

    def _fill(self, state: _Records, reader: Reader, scope: Scope) -> None:
        ordinals, raw = reader.bind(self.records, scope).beginnings(self.dtype.itemsize)
        state.fill(np.array(ordinals, np.int64), raw)


class BoundColumns:
    """The records of one tenant in one reader."""

    def __init__(self, index: ColumnIndex, reader: Reader, scope: Scope):
        self._index, self._reader, self._scope = index, reader, scope
        self._rows = reader.bind(index.records, scope)
        self._held: _Records | None = None

    def put(self, ordinal: int, raw: bytes) -> None:
        """Insert or replace one record. ValueError unless it has the layout's size."""
        if len(raw) != self._index.dtype.itemsize:
            raise ValueError(
                f"a record of {self._index.name!r} has {self._index.dtype.itemsize} bytes, not "
                f"{len(raw)}"
            )
        self._rows.put_raw((ordinal,), raw)
        self._reader.note(self._index.name, self._scope, RecordChange(ordinal, raw))

    def get(self, ordinal: int) -> bytes | None:
        """One stored record, from this reader."""
        return self._rows.get_raw(ordinal)

    def delete(self, ordinal: int) -> bool:
        """Delete one record; -> whether there was one."""
        deleted = self._rows.delete(ordinal)
        if deleted:
            self._reader.note(self._index.name, self._scope, RecordChange(ordinal, None))
        return deleted

    def clear(self) -> int:
        """Delete all records of the tenant; -> how many."""
        deleted = self._rows.delete_prefix()
        self._reader.note(self._index.name, self._scope, RecordChange(None, None))
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
        self._hold(RowMap(), np.empty(0, self._bytes))

    @property
    def nbytes(self) -> int:
        return self._held.rows.nbytes + self._held.records.nbytes

    def apply(self, change: RecordChange) -> None:
        if change.ordinal is None:
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
        start, count = self._used, len(ordinals)
        if start + count >= len(self._held.records):
            self._gather(count)
        rows, _, opaque = self._held
        opaque[start : start + count] = np.frombuffer(raw, opaque.dtype)
        rows.put(ordinals, np.arange(start, start + count, dtype=np.int32))
        self._used, self._live = start + count, self._live + count

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
        size = max(int(GROWTH * (len(opaque) + room)), RECORDS_MIN)
        records = np.empty(size + 1, self._dtype)
        records[-1] = self._absent
        held = _Held(rows, records, records.view(self._bytes))
        held.opaque[: len(opaque)] = opaque
        self._held = held
