"""Fixed-size records by ordinal, held in memory as one structured NumPy array per tenant.

It owns records of one layout (a NumPy dtype) and where they are; it does not know what their fields
mean. The record is an ordinary row, written in the transaction of what it describes:

    x.records   (ordinal,)  -> one record of the dtype, raw

Reading the records of a few hundred ordinals is then one `take` instead of a few hundred look-ups.
The array is derived state, filled and fed as storage/indexes/resident_index.py says. Ordinals
without a record read as `absent`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.indexes.resident_index import ResidentIndex
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
        return _Records(self.dtype, self.layout, self.absent)

    def _changes(self, reader: Reader, scope: Scope) -> Iterator[RecordChange]:
        return (
            RecordChange(ordinal, raw)
            for (ordinal,), raw in reader.bind(self.records, scope).scan()
        )


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

    def resident(self) -> np.ndarray:
        """(m,) the records of the ordinals below m in the index's `layout`, as they are in memory
        and not to be written; from m on each is `absent`.
        """
        return self._records().seen

    def take(self, ordinals: NDArray[np.integer]) -> np.ndarray:
        """Read records; -> (n,) aligned with `ordinals`, `absent` where there is none."""
        return self._records().take(np.asarray(ordinals, np.int64))

    def field(self, name: str, ordinals: NDArray[np.integer]) -> np.ndarray:
        """(n,) one field of the records, aligned with `ordinals`; of `absent` where there is
        none.
        """
        return self._records().field(name, np.asarray(ordinals, np.int64))

    def _records(self) -> _Records:
        """The resident array; a snapshot's binding keeps hold of the one it has found."""
        if self._held is not None:
            return self._held
        records = self._index.resident(self._reader.store, self._scope)
        if not self._reader.writable:
            self._held = records
        return records


class _Records:
    """The resident array; a longer one takes its place when it is full.

    seen  the same numbers in another layout, for whoever reads all of them
    """

    def __init__(self, dtype: np.dtype, layout: np.dtype, absent: np.void):
        self._absent, self._layout = absent, layout
        self._hold(self._empty(dtype, RECORDS_MIN))

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    def apply(self, change: RecordChange) -> None:
        if change.ordinal is None:
            self._hold(self._empty(self._array.dtype, RECORDS_MIN))
        elif change.raw is None:
            if change.ordinal < len(self._array):
                self._array[change.ordinal] = self._absent
        else:
            if change.ordinal >= len(self._array):
                grown = self._empty(
                    self._array.dtype, max(int(len(self._array) * GROWTH), change.ordinal + 1)
                )
                grown[: len(self._array)] = self._array
                self._hold(grown)
            self._array[change.ordinal] = np.frombuffer(change.raw, self._array.dtype)[0]

    def take(self, ordinals: NDArray[np.int64]) -> np.ndarray:
        # As opaque bytes: NumPy would copy a record field by field.
        records = self._array.view(f"V{self._array.dtype.itemsize}")
        found = records[np.minimum(ordinals, len(records) - 1)].view(self._array.dtype)
        found[ordinals >= len(records)] = self._absent
        return found

    def field(self, name: str, ordinals: NDArray[np.int64]) -> np.ndarray:
        column = self._array[name]
        found = column[np.minimum(ordinals, len(column) - 1)]
        found[ordinals >= len(column)] = self._absent[name]
        return found

    def _hold(self, array: np.ndarray) -> None:
        self._array, self.seen = array, array.view(self._layout)

    def _empty(self, dtype: np.dtype, size: int) -> np.ndarray:
        return np.full(size, self._absent, dtype)
