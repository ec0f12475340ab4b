"""Tables of typed rows in one LMDB environment per shard; with storage/environment.py the only module that knows LMDB.

It owns keys, rows, transactions and their durability. It does not know what a row means, who a tenant is or when to index: it
hands `notes` of a committed transaction back to whoever keeps derived state.

One database holds all tables. A physical key is

    2 bytes slot ‖ 4 bytes tenant number ‖ 2 bytes table code ‖ keycode.encode(key)

so a slot is one contiguous range of keys and a tenant one range inside it. Tenant number 0 holds the slot's own rows (tables
of level "slot"). A second, small database `meta` holds the store's identity, each table's code and version, and the sequence.

Invariants:
- a write is one transaction with an fsync before it returns; what was returned survives a crash, what raised left nothing;
- `sequence` grows by one with each transaction that stored something, and is stored in that same transaction;
- one process has the directory open, through one Store; reads run on any thread, writes one at a time.

`Store.write(work)` may run `work` more than once (the memory map has to grow while no transaction is open, so a transaction
that meets its end is aborted and repeated). `work` must therefore have no effect outside its Transaction.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

import lmdb

from storage import walk
from storage.commit_log import Changes, CommitLog
from storage.directory import (
    DATA_FILE,
    DirectoryLock,
    StoreError,
    StoreFull,
    StoreMissing,
    check_data_file,
    copy_data,
)
from storage.directory import StoreDamaged as StoreDamaged
from storage.directory import StoreInUse as StoreInUse
from storage.directory import StoreMismatch as StoreMismatch
from storage.directory import StoreTooNew as StoreTooNew
from storage.envelope import KEYS_FILE, Keyring
from storage.environment import SEQUENCE, MapFull, fault, open_as
from storage.environment import create as create_environment
from storage.gate import ReaderGate
from storage.keycode import decode as decode_key
from storage.keycode import encode as encode_key
from storage.keycode import prefix_end
from storage.resident import Residents
from storage.schema import Committed, Identity, Migration, Rebuild, Row, Scope, T, Table

MAP_BYTES_DEFAULT = 1 << 30
MAP_GROWTHS_PER_WRITE_MAX = 24
READ_MAP_FACTOR = 16  # how far a store may grow while another process reads it
DRAIN_SECONDS_MAX = 10
ABORT_SECONDS_MAX = 1
RESIDENT_BYTES_MAX_DEFAULT = 1 << 30

_SCOPE_BYTES, _PREFIX_BYTES = 6, 8
_NO_TENANT = bytes(4)
_ALL_KEYS_END = b"\xff" * (_PREFIX_BYTES + 1)

Key = tuple[Any, ...]


class BoundTable(Generic[Row]):
    """A table inside one reader and one scope. Keys are tuples, without the scope; a prefix is the first parts of a key."""

    __slots__ = ("_decode", "_encode", "_get", "_lmdb", "_prefix", "_put", "_reader", "table")

    def __init__(self, reader: Reader, table: Table[Row], prefix: bytes):
        self.table = table
        self._reader = reader
        self._prefix = prefix
        self._lmdb = reader._lmdb
        self._get = reader._lmdb.get
        self._put = reader._lmdb.put
        self._encode = table.encode
        self._decode = table.decode

    def get(self, *key: Any) -> Row | None:
        """The row, or None."""
        try:
            raw = self._get(self._prefix + encode_key(key))
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        return None if raw is None else self._decode(raw)

    def get_raw(self, *key: Any) -> bytes | None:
        """The row's stored bytes, or None."""
        try:
            return self._get(self._prefix + encode_key(key))
        except lmdb.Error as error:
            raise self._reader._fault(error) from error

    def get_many(self, keys: Sequence[Key], prefix: Key = ()) -> list[Row | None]:
        """One entry per key, in the keys' order; read in key order with one cursor. prefix: parts that all keys begin with."""
        head = self._prefix + encode_key(prefix)
        wanted = [head + encode_key(key) for key in keys]
        try:
            with self._lmdb.cursor() as cursor:
                found = dict(cursor.getmulti(sorted(wanted)))
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        decode = self._decode
        return [decode(found[key]) if key in found else None for key in wanted]

    def has(self, *key: Any) -> bool:
        return self.get_raw(*key) is not None

    def put(self, key: Key, row: Row) -> None:
        """Insert or replace. ValueError when the key is too long to store."""
        self.put_raw(key, self._encode(row))

    def put_raw(self, key: Key, raw: bytes) -> None:
        """Insert or replace a row given as its stored bytes."""
        self._store(self._prefix + encode_key(key), raw)

    def _store(self, physical: bytes, raw: bytes) -> None:
        try:
            self._put(physical, raw)
        except lmdb.BadValsizeError as error:
            raise ValueError(f"a key of table {self.table.name!r} takes {len(physical)} bytes, which is too long") from error
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        self._reader.dirty = True
        if self._reader.changes is not None:
            self._reader.changes[physical] = raw

    def delete(self, *key: Any) -> bool:
        """Whether there was such a row."""
        physical = self._prefix + encode_key(key)
        try:
            deleted = self._lmdb.delete(physical)
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        if deleted:
            self._reader.dirty = True
            if self._reader.changes is not None:
                self._reader.changes[physical] = None
        return deleted

    def delete_prefix(self, *prefix: Any) -> int:
        """Delete every row whose key starts with `prefix`; -> how many."""
        start = self._prefix + encode_key(prefix)
        deleted, changes = 0, self._reader.changes
        try:
            with self._lmdb.cursor() as cursor:
                cursor.set_range(start)
                while cursor.key().startswith(start):
                    if changes is not None:
                        changes[cursor.key()] = None
                    deleted += cursor.delete()
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        if deleted:
            self._reader.dirty = True
        return deleted

    def scan(
        self, *prefix: Any, after: Key | None = None, before: Key | None = None, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[Key, Row]]:
        """(key, row) in key order, or backwards.

        after, before   whole key tuples (prefix included), both exclusive; a shorter tuple stands for every key it begins

        In a transaction each step looks for its place again, so the loop may put and delete rows of this table: a deleted row is
        never yielded, and a row put further along is.
        """
        decode = self._decode
        for physical, raw in self._items(prefix, after, before, reverse, limit, True):
            yield decode_key(physical[_PREFIX_BYTES:]), decode(raw)

    def raw_under(self, *prefix: Any) -> list[tuple[bytes, bytes]]:
        """(what follows `prefix` in the key, encoded; stored bytes) of every row under it, in key order: what a query reads of an index."""
        start = self._prefix + encode_key(prefix)
        size, found = len(start), []
        try:
            with self._lmdb.cursor() as cursor:
                if cursor.set_range(start):
                    for physical, raw in cursor.iternext(True, True):
                        if not physical.startswith(start):
                            break
                        found.append((physical[size:], raw))
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        return found

    def keys(
        self, *prefix: Any, after: Key | None = None, before: Key | None = None, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Key]:
        """The keys scan would yield, without decoding rows."""
        for physical, _ in self._items(prefix, after, before, reverse, limit, False):
            yield decode_key(physical[_PREFIX_BYTES:])

    def first(self, *prefix: Any) -> tuple[Key, Row] | None:
        """The lowest (key, row) under `prefix`, or None."""
        return next(self.scan(*prefix, limit=1), None)

    def last(self, *prefix: Any) -> tuple[Key, Row] | None:
        """The highest (key, row) under `prefix`, or None."""
        return next(self.scan(*prefix, reverse=True, limit=1), None)

    def count(self, *prefix: Any) -> int:
        """How many keys start with `prefix`; it walks them."""
        return sum(1 for _ in self._items(prefix, None, None, False, None, False))

    def sizes(self, *prefix: Any, limit: int) -> list[int]:
        """Bytes of each of the last `limit` rows under `prefix`, their keys included."""
        return [len(key) + len(raw) for key, raw in self._items(prefix, None, None, True, limit, True)]

    def _items(
        self, prefix: Key, after: Key | None, before: Key | None, reverse: bool, limit: int | None, values: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """(physical key, stored bytes); the bytes are empty unless `values`."""
        low = self._prefix + encode_key(prefix)
        high = prefix_end(low)
        if after is not None:
            low = max(low, prefix_end(self._prefix + encode_key(after)))
        if before is not None:
            high = min(high, self._prefix + encode_key(before))
        try:
            with self._lmdb.cursor() as cursor:
                found = walk.keys(cursor, low, high, reverse=reverse, live=self._reader.writable)
                for key in found if limit is None else itertools.islice(found, limit):
                    yield key, cursor.value() if values else b""
        except lmdb.Error as error:
            raise self._reader._fault(error) from error


class Reader:
    """What snapshots and transactions have in common."""

    writable = False
    dirty = False
    changes: Changes | None = None  # what a transaction has changed so far, where the log wants to know

    def __init__(self, store: Store, transaction: lmdb.Transaction):
        self.store = store
        self._lmdb = transaction

    @property
    def sequence(self) -> int:
        """The sequence of the commit this reader sees."""
        return int.from_bytes(self._lmdb.get(SEQUENCE, b"", db=self.store._meta), "big")

    def bind(self, table: Table[Row], scope: Scope) -> BoundTable[Row]:
        """The table inside a tenant's scope, or inside its slot when the table is of level "slot"."""
        found = self.store._places.get(table.name)
        if found is None:
            raise StoreError(f"table {table.name!r} was not declared when {self.store.directory} was opened")
        code, is_sealed = found
        prefix = (scope.prefix if table.level == "tenant" else scope.prefix[:2] + _NO_TENANT) + code
        return self._sealed(table, prefix) if is_sealed else BoundTable(self, table, prefix)

    def _sealed(self, table: Table[Row], prefix: bytes) -> BoundTable[Row]:
        if self.store.keys is None:
            raise StoreError(f"table {table.name!r} of {self.store.directory} is sealed; open the store with the service key.")
        return SealedTable(self, table, prefix, self.store.keys)

    def secret(self, scope: Scope) -> bytes:
        """What to key digests with that stand in this tenant's keys; it is shredded with the tenant's data key."""
        return scope.key if self.store.keys is None else self.store.keys.secret(scope.prefix)

    def scopes(self, slot: int | None = None) -> Iterator[Scope]:
        """Every scope that has rows, in order (of one slot when given; its own rows count as tenant 0). Scopes carry no key."""
        low, high = (b"\x00", _ALL_KEYS_END) if slot is None else (slot.to_bytes(2, "big"), slot.to_bytes(2, "big") + _ALL_KEYS_END)
        for prefix in self.beginnings(_SCOPE_BYTES, low, high):
            yield Scope(int.from_bytes(prefix[:2], "big"), int.from_bytes(prefix[2:], "big"))

    def slots(self) -> Iterator[int]:
        """Every slot that has rows, in order."""
        for prefix in self.beginnings(2, b"\x00", _ALL_KEYS_END):
            yield int.from_bytes(prefix, "big")

    def beginnings(self, size: int, low: bytes, high: bytes) -> Iterator[bytes]:
        """The distinct first `size` bytes of the physical keys in [low, high), in order."""
        try:
            with self._lmdb.cursor() as cursor:
                yield from walk.beginnings(cursor, size, low, high)
        except lmdb.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: lmdb.Error) -> StoreError:
        return fault(error, self.store.data_file)


class Snapshot(Reader):
    """The store as of one commit, read-only. A context manager; usable from any thread, one at a time. Keep it short: pages that it
    sees cannot be reused, and the map cannot grow."""

    def __init__(self, store: Store):
        store._enter()
        try:
            super().__init__(store, store._env.begin(db=store._main))
        except lmdb.Error as error:
            store._gate.leave()
            raise fault(error, store.data_file) from error
        self._open = True

    def close(self) -> None:
        if self._open:
            self._open = False
            self._lmdb.abort()
            self.store._gate.leave()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Transaction(Reader):
    """The one write transaction, or a child of it. `sequence` is the number this commit will have."""

    writable = True

    def __init__(self, store: Store, transaction: lmdb.Transaction, sequence: int, root: Transaction | None = None):
        super().__init__(store, transaction)
        self._sequence = sequence
        self.changes = store.log.changes() if root is None else None if root.changes is None else {}
        self._notes: list[tuple[str, Scope, Any]] = []
        self._root = root or self
        self.dirty = False  # whether anything was stored
        self.failure: StoreError | None = None  # what dooms the whole write; kept by the root

    @property
    def sequence(self) -> int:
        return self._sequence

    def delete_slot(self, slot: int, limit: int) -> int:
        """Delete at most `limit` rows of the slot, its own and its tenants'; -> how many."""
        start, deleted = slot.to_bytes(2, "big"), 0
        try:
            with self._lmdb.cursor() as cursor:
                cursor.set_range(start)
                while deleted < limit and cursor.key().startswith(start):
                    if self.changes is not None:
                        self.changes[cursor.key()] = None
                    deleted += cursor.delete()
        except lmdb.Error as error:
            raise self._fault(error) from error
        self.dirty |= deleted > 0
        return deleted

    def note(self, index_name: str, scope: Scope, change: Any) -> None:
        """Tell the keeper of a derived index what it must learn once this is committed."""
        self._notes.append((index_name, scope, change))
        self.dirty = True

    @contextlib.contextmanager
    def child(self) -> Iterator[Transaction]:
        """A nested transaction: an exception undoes it alone and is raised again; else its rows and notes join this one.

        Until it ends, this transaction and tables bound to it must not be used. A failure of the store itself (no space) dooms the
        whole write whatever `work` makes of the exception.
        """
        if self._root.failure is not None:
            raise self._root.failure
        try:
            nested = self.store._env.begin(db=self.store._main, parent=self._lmdb, write=True)
        except lmdb.Error as error:
            raise self._fault(error) from error
        child = Transaction(self.store, nested, self._sequence, self._root)
        try:
            yield child
            nested.commit()
        except BaseException as error:
            self.store._undo(nested, child.dirty or not isinstance(error, Exception))
            if isinstance(error, lmdb.Error):
                raise self._fault(error) from error
            raise
        self._notes += child._notes
        self.dirty |= child.dirty
        if self.changes is not None:
            self.changes.update(child.changes)

    def _fault(self, error: lmdb.Error) -> StoreError:
        told = super()._fault(error)
        self.dirty = True  # half a change may have been made
        if self._root.failure is None:
            self._root.failure = told
        return told


class Store:
    """One open LMDB environment. Build it with Store.open; see the module docstring for what it guarantees."""

    def __init__(self, directory: Path, identity: Identity, lock: DirectoryLock | None, environment: lmdb.Environment, sequence: int):
        self.directory = directory
        self.data_file = directory / DATA_FILE
        self.identity = identity
        self.residents = Residents(RESIDENT_BYTES_MAX_DEFAULT)
        self._lock = lock
        self._env = environment
        self._main = environment.open_db(b"main")
        self._meta = environment.open_db(b"meta")
        self.keys: Keyring | None = None
        self._places: dict[str, tuple[bytes, bool]] = {}  # table -> its code, and whether its rows are sealed
        self._write_lock = threading.RLock()
        self._writing = False
        self._gate = ReaderGate()
        self._closed = False
        self._sequence = sequence
        self.log = CommitLog(self)

    @classmethod
    def open(
        cls,
        directory: Path,
        tables: Iterable[Table],
        *,
        identity: Identity,
        create: bool,
        map_bytes: int = MAP_BYTES_DEFAULT,
        migrations: Mapping[tuple[str, int], Migration] | None = None,
        rebuild: Mapping[str, Rebuild] | None = None,
        service_key: bytes | None = None,
    ) -> Store:
        """Open the store in `directory`, or create it there when asked to and there is none.

        migrations   (table name, from version) -> function from a row's fields (dict, or bytes for a raw table) to the next version's
        rebuild      by the name of a derived table: what makes its rows again, in the same transaction, when its version was raised
        service_key  32 bytes that wrap the tenants' data keys; without it nothing is sealed, and what is sealed cannot be read

        A store whose rows had to be sealed is then rewritten whole, so that no freed page keeps them as they were.
        Raises StoreInUse, StoreMissing, StoreMismatch, StoreTooNew, StoreDamaged; nothing is changed then.
        """
        data_file = directory / DATA_FILE
        if not create and not data_file.exists():
            raise StoreMissing(f"there is no store in {directory}; create one, or check the path.")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = DirectoryLock(directory)
        try:
            if not data_file.exists():
                create_environment(directory, identity)
            check_data_file(data_file)
            environment, found, sequence = open_as(directory, identity, max(map_bytes, 2 * data_file.stat().st_size))
            store = cls(directory, found, lock, environment, sequence)
        except BaseException:
            lock.release()
            raise
        try:
            stored = stored_tables(store)
            if service_key is not None:
                is_new = not any(entry.sealed for entry in stored.values())
                store.keys = Keyring.open(directory / KEYS_FILE, service_key, create=is_new)
            declare(store, stored, tuple(tables), migrations or {}, rebuild or {}, identity.format_version)
            rewrite_if_asked(store)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_to_read(cls, directory: Path, tables: Iterable[Table], *, identity: Identity, service_key: bytes | None = None) -> Store:
        """The store for snapshots alone, beside whichever process owns it; of an older release's it is StoreMismatch."""
        if not (directory / DATA_FILE).exists():
            raise StoreMissing(f"there is no store in {directory}.")
        check_data_file(directory / DATA_FILE)
        map_bytes = READ_MAP_FACTOR * (directory / DATA_FILE).stat().st_size
        environment, found, sequence = open_as(directory, identity, map_bytes, readonly=True)
        store = cls(directory, found, None, environment, sequence)
        try:
            stored = stored_tables(store)
            if service_key is not None and any(entry.sealed for entry in stored.values()):
                store.keys = Keyring.open(directory / KEYS_FILE, service_key, create=False, readonly=True)
            read_as_declared(store, stored, tuple(tables), identity.format_version)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def sequence(self) -> int:
        """The sequence of the last commit."""
        return self._sequence

    def snapshot(self) -> Snapshot:
        """The store as it is now, for reading."""
        return Snapshot(self)

    def write(self, work: Callable[[Transaction], T]) -> Committed[T]:
        """Run `work` in one transaction, commit, fsync.

        An exception from `work` undoes everything and is raised. `work` may be run again from the start when the map has to grow.
        StoreFull when there is no space, or when readers keep the map from growing; nothing was stored then. When `work` stores
        nothing, nothing is committed and the sequence stays.
        """
        with self._write_lock:
            if self._writing:
                raise StoreError("a write inside a write: use Transaction.child")
            self._writing = True
            try:
                for _ in range(MAP_GROWTHS_PER_WRITE_MAX):
                    try:
                        return self._attempt(work)
                    except MapFull:
                        self._grow()
                raise StoreFull(f"{self.data_file}: one write needs more than a map of {self._env.info()['map_size']} bytes.")
            finally:
                self._writing = False

    def _attempt(self, work: Callable[[Transaction], T]) -> Committed[T]:
        sequence = self._sequence + 1
        try:
            inner = self._env.begin(db=self._main, write=True)
        except lmdb.Error as error:
            raise fault(error, self.data_file) from error
        transaction = Transaction(self, inner, sequence)
        try:
            result = work(transaction)
            if transaction.failure is not None:
                raise transaction.failure
            if transaction.dirty:
                inner.put(SEQUENCE, sequence.to_bytes(8, "big"), db=self._meta)
                if transaction.changes is not None:
                    self.log.append(inner, sequence, transaction.changes)
            inner.commit()
        except BaseException as error:
            self._undo(inner, transaction.dirty or not isinstance(error, Exception))
            told = transaction.failure or (fault(error, self.data_file) if isinstance(error, lmdb.Error) else error)
            if told is error:
                raise
            raise told from error
        if not transaction.dirty:
            return Committed(result, self._sequence, {})
        self._sequence = sequence
        if transaction.changes is not None:
            self.log.committed()
        notes: dict[str, list[tuple[Scope, Any]]] = {}
        for index_name, scope, change in transaction._notes:
            notes.setdefault(index_name, []).append((scope, change))
        return Committed(result, sequence, notes)

    def _grow(self) -> None:
        """Double the map. LMDB allows it only while no transaction is open in this process."""
        with self._gate.alone(DRAIN_SECONDS_MAX) as is_alone:
            if not is_alone:
                raise StoreFull(f"{self.data_file}: the map must grow, but {self._gate.readers} snapshots stay open.")
            try:
                self._env.set_mapsize(2 * self._env.info()["map_size"])
            except lmdb.Error as error:
                raise StoreFull(f"{self.data_file}: the memory map cannot grow ({error}).") from error

    def _undo(self, inner: lmdb.Transaction, is_dirty: bool) -> None:
        """End a failed write transaction or child.

        py-lmdb aborts only at an instant when no other thread is inside a call of this environment, which busy readers can put off
        for many seconds; so they are held back for it. A transaction that changed nothing is committed instead: that never waits.
        """
        if not is_dirty:
            with contextlib.suppress(lmdb.Error):  # it failed in LMDB itself; the abort below ends it
                inner.commit()
                return
        with self._gate.alone(ABORT_SECONDS_MAX):
            inner.abort()

    def _enter(self) -> None:
        """Count a reader in, or say why not."""
        if not self._gate.enter(2 * DRAIN_SECONDS_MAX):
            raise StoreError(f"{self.directory}: the memory map did not finish growing.")
        if self._closed:
            self._gate.leave()
            raise StoreError(f"{self.directory} is closed.")

    def _open_log(self, name: bytes, create: bool) -> Any:
        """The database of the commit log, or None when there is none and none is to be made."""
        with self._write_lock, contextlib.suppress(lmdb.NotFoundError):
            return self._env.open_db(name, create=create)
        return None

    def backup(self, directory: Path) -> None:
        """A compacted copy of the last commit and of the keys, in a new directory, while reads and writes go on; it opens like the
        original. The directory appears under its name only when the rows are complete and synced, and does not open without the keys.

        FileExistsError when it is there already.
        """
        if directory.exists():
            raise FileExistsError(f"{directory} exists; a backup goes into a new directory.")
        copy_data(self.directory, directory, self._env.info()["map_size"])
        if self.keys is not None:
            self.keys.copy(directory / KEYS_FILE)  # after the rows, so that it has every key they need

    def stat(self) -> dict[str, Any]:
        """Sizes in bytes and counts: data file, map, what is free on its disk, rows, tables, open snapshots, sequence."""
        with self.snapshot() as snapshot:
            return {
                "data_bytes": self.data_file.stat().st_size,
                "disk_free_bytes": shutil.disk_usage(self.data_file.parent).free,
                "map_bytes": self._env.info()["map_size"],
                "rows": snapshot._lmdb.stat(self._main)["entries"],
                "tables": len(self._places),
                "snapshots": self._gate.readers - 1,
                "sequence": snapshot.sequence,
            }

    def close(self) -> None:
        """Wait for the running write and, up to a bound, for open snapshots; then close and let go of the directory."""
        with self._write_lock, self._gate.alone(DRAIN_SECONDS_MAX):
            if not self._closed:
                self._closed = True
                self._env.close()
                if self.keys is not None:
                    self.keys.close()
                if self._lock is not None:
                    self._lock.release()


# They build on the classes above and are reached through them.
from storage.sealed_table import SealedTable  # noqa: E402
from storage.store_upgrade import declare, read_as_declared, rewrite_if_asked, stored_tables  # noqa: E402
