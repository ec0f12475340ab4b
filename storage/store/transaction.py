"""Snapshots and transactions of an open store.

It owns what one reader sees and what one writer has changed so far. How a store is opened, written
and closed is storage/store/store.py; OpenStore is the part of it that readers lean on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import lmdb

import storage.store.cursor as walk
from storage.store.bound_table import SCOPE_BYTES, BoundTable, SealedTable
from storage.store.commit_log import CommitLog
from storage.store.directory import StoreError
from storage.store.environment import Environment
from storage.store.keycode import ALL_KEYS_END
from storage.store.keyring import Keyring, KeyShredded
from storage.store.meter import Meter, MeteredTransaction
from storage.store.resident import ResidentCache
from storage.store.schema import Changes, Identity, Place, Row, Scope, Table

RESIDENT_BYTES_MAX_DEFAULT = 1 << 30
NO_TENANT = bytes(4)
SCOPES_OPENED_MAX = 2_000  # to find a ring that was cut off; a second or so


class OpenStore:
    """An open store as its readers see it.

    keys       what sealed rows are opened with; None without the service key
    places     table name -> its code, and whether its rows are sealed
    residents  what indexes keep in memory of its rows
    log        the log of its commits
    """

    def __init__(self, environment: Environment, identity: Identity, sequence: int):
        self.environment = environment
        self.directory = environment.directory
        self.data_file = environment.data_file
        self.identity = identity
        self.keys: Keyring | None = None
        self.places: Mapping[str, Place] = {}
        self.residents = ResidentCache(RESIDENT_BYTES_MAX_DEFAULT)
        self.log = CommitLog(environment)
        self._sequence = sequence

    @property
    def sequence(self) -> int:
        """The sequence of the last commit."""
        return self._sequence

    @property
    def is_owned(self) -> bool:
        """Whether this process owns the directory, and may write beside the store; false where it
        was opened to read.
        """
        return False

    def snapshot(self, meter: Meter | None = None) -> Snapshot:
        """The store as it is now, for reading; what is read is counted, where a meter is given."""
        return Snapshot(self, meter)


class Reader:
    """What snapshots and transactions have in common."""

    writable = False
    dirty = False
    stored_bytes = 0
    changes: Changes | None = None  # of a transaction so far, where the log wants to know them

    def __init__(self, store: OpenStore, inner: lmdb.Transaction[bytes]):
        self.store = store
        self.inner = inner

    @property
    def sequence(self) -> int:
        """The sequence of the commit this reader sees."""
        return self.store.environment.sequence(self.inner)

    def bind(self, table: Table[Row], scope: Scope) -> BoundTable[Row]:
        """The table inside a tenant's scope, or inside its slot when the table is of level
        "slot".
        """
        found = self.store.places.get(table.name)
        if found is None:
            raise StoreError(
                f"table {table.name!r} was not declared when {self.store.directory} was opened"
            )
        return self.bind_at(table, scope, found)

    def bind_at(self, table: Table[Row], scope: Scope, place: Place) -> BoundTable[Row]:
        """As bind, of a table that is stored so."""
        code, is_sealed = place
        prefix = (scope.prefix if table.level == "tenant" else scope.prefix[:2] + NO_TENANT) + code
        if not is_sealed:
            return BoundTable(self, table, prefix)
        if self.store.keys is None:
            raise StoreError(
                f"table {table.name!r} of {self.store.directory} is sealed; open the store with "
                "the service key."
            )
        return SealedTable(self, table, prefix, self.store.keys)

    def secret(self, scope: Scope) -> bytes:
        """What to key digests with that stand in this tenant's keys; it is shredded with the
        tenant's data key.
        """
        return scope.key if self.store.keys is None else self.store.keys.secret(scope.prefix)

    def is_shredded(self, scope: Scope) -> bool:
        """Whether the tenant's data key was overwritten."""
        return self.store.keys is not None and self.store.keys.is_shredded(scope.prefix)

    def scopes(self, slot: int | None = None) -> Iterator[Scope]:
        """Every scope that has rows, in order (of one slot when given; its own rows count as tenant
        0). Scopes carry no key.
        """
        low, high = (
            (b"\x00", ALL_KEYS_END)
            if slot is None
            else (slot.to_bytes(2, "big"), slot.to_bytes(2, "big") + ALL_KEYS_END)
        )
        for prefix in self.beginnings(SCOPE_BYTES, low, high):
            yield Scope(int.from_bytes(prefix[:2], "big"), int.from_bytes(prefix[2:], "big"))

    def check_opens(self, tables: Iterable[Table]) -> None:
        """Open the last row of each sealed one of these tables in each scope, or in
        SCOPES_OPENED_MAX of them, evenly spread. Raises StoreDamaged where the ring lacks what it
        was sealed with, as one that was cut off does.
        """
        sealed = [table for table in tables if self.store.places[table.name][1]]
        scopes = list(self.scopes())
        for scope in scopes[:: -(-len(scopes) // SCOPES_OPENED_MAX) or 1]:
            with contextlib.suppress(KeyShredded):
                for table in sealed:
                    self.bind(table, scope).last()

    def slots(self) -> Iterator[int]:
        """Every slot that has rows, in order."""
        for prefix in self.beginnings(2, b"\x00", ALL_KEYS_END):
            yield int.from_bytes(prefix, "big")

    def beginnings(self, size: int, low: bytes, high: bytes) -> Iterator[bytes]:
        """The distinct first `size` bytes of the physical keys in [low, high), in order."""
        try:
            with self.inner.cursor() as cursor:
                yield from walk.beginnings(cursor, size, low, high)
        except lmdb.Error as error:
            raise self.fault(error) from error

    def note(self, index_name: str, scope: Scope, change: Any) -> None:
        """Tell the keeper of a derived index what changed; only a transaction changes anything."""
        raise StoreError(f"{self.store.directory}: a snapshot stores nothing.")

    def fault(self, error: lmdb.Error) -> StoreError:
        return self.store.environment.fault(error)


class Snapshot(Reader):
    """The store as of one commit, read-only. A context manager; usable from any thread, one at a
    time. Keep it short: pages that it sees cannot be reused.
    """

    def __init__(self, store: OpenStore, meter: Meter | None = None):
        self._begun = store.environment.begin()
        counted = self._begun if meter is None else MeteredTransaction(self._begun, meter)
        super().__init__(store, cast(Any, counted))
        self._open = True

    def close(self) -> None:
        if self._open:
            self._open = False
            self.store.environment.end(self._begun)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Transaction(Reader):
    """The one write transaction, or a child of it. `sequence` is the number this commit will
    have.
    """

    writable = True

    def __init__(
        self,
        store: OpenStore,
        inner: lmdb.Transaction[bytes],
        sequence: int,
        root: Transaction | None = None,
    ):
        super().__init__(store, inner)
        self._sequence = sequence
        self.changes = store.log.changes() if root is None else None if root.changes is None else {}
        self.notes: list[tuple[str, Scope, Any]] = []
        # What it is a child of. A root does not hold itself: only the garbage collector would let
        # go of such a circle, and of all that is noted.
        self._of = root
        self.dirty = False  # whether anything was stored
        self.stored_bytes = 0  # of rows, children aside
        self.failure: StoreError | None = None  # what dooms the whole write; kept by the root

    @property
    def sequence(self) -> int:
        return self._sequence

    def put_meta(self, key: bytes, value: bytes) -> None:
        """Put an entry of the database `meta`."""
        self.inner.put(key, value, db=self.store.environment.meta)
        self.dirty = True

    def get_meta(self, key: bytes) -> bytes | None:
        """An entry of the database `meta`, or None."""
        return self.inner.get(key, db=self.store.environment.meta)

    def delete_meta(self, key: bytes) -> None:
        """Delete an entry of the database `meta`, if it is there."""
        self.dirty |= self.inner.delete(key, db=self.store.environment.meta)

    def delete_slot(self, slot: int, limit: int) -> int:
        """Delete at most `limit` rows of the slot, its own and its tenants'; -> how many."""
        start, deleted = slot.to_bytes(2, "big"), 0
        try:
            with self.inner.cursor() as cursor:
                cursor.set_range(start)
                while deleted < limit and cursor.key().startswith(start):
                    if self.changes is not None:
                        self.changes[cursor.key()] = None
                    deleted += cursor.delete()
        except lmdb.Error as error:
            raise self.fault(error) from error
        self.dirty |= deleted > 0
        return deleted

    def note(self, index_name: str, scope: Scope, change: Any) -> None:
        """Tell the keeper of a derived index what it must learn once this is committed."""
        self.notes.append((index_name, scope, change))
        self.dirty = True

    @contextlib.contextmanager
    def child(self) -> Iterator[Transaction]:
        """A nested transaction: an exception undoes it alone and is raised again; else its rows and
        notes join this one.

        Until it ends, this transaction and tables bound to it must not be used. A failure of the
        store itself (no space) dooms the whole write whatever `work` makes of the exception.
        """
        root = self._of or self
        if root.failure is not None:
            raise root.failure
        try:
            nested = self.store.environment.begin_write(self.inner)
        except lmdb.Error as error:
            raise self.fault(error) from error
        child = Transaction(self.store, nested, self._sequence, root)
        try:
            yield child
            nested.commit()
        except BaseException as error:
            self.store.environment.undo(nested, child.dirty or not isinstance(error, Exception))
            if isinstance(error, lmdb.Error):
                raise self.fault(error) from error
            raise
        self.notes += child.notes
        self.dirty |= child.dirty
        if self.changes is not None and child.changes is not None:
            self.changes.update(child.changes)

    def fault(self, error: lmdb.Error) -> StoreError:
        failure = super().fault(error)
        self.dirty = True  # half a change may have been made
        root = self._of or self
        if root.failure is None:
            root.failure = failure
        return failure
