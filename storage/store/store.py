"""A store as its owner has it: opened and brought up to date, written, copied, closed.

What it promises stands in storage/store/__init__.py.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lmdb

from storage.store.directory import (
    DATA_FILE,
    MAP_BYTES,
    DirectoryLock,
    StoreFull,
    StoreMissing,
    check_data_file,
    make_directory,
)
from storage.store.environment import SEQUENCE, Environment, open_as, open_environment
from storage.store.environment import create as create_environment
from storage.store.keyring import KEYS_FILE, Keyring
from storage.store.schema import (
    Committed,
    Identity,
    Migration,
    Part,
    Rebuild,
    Scope,
    StoredTable,
    T,
    Table,
    assign_codes,
    only_seals,
)
from storage.store.transaction import OpenStore, Transaction
from storage.store.upgrade import (
    bring_up,
    check_upgraded,
    end_migrating,
    end_sealing,
    goes_in_steps,
    is_rebuilding,
    migrate_some,
    places,
    rebuild_some,
    rewrite_if_asked,
    seal_some,
    stored_tables,
)


def table_versions(directory: Path) -> dict[str, int]:
    """The tables that a store has, whoever declared them, and the versions of their rows, beside
    whichever process owns it; none where there is no store. Raises StoreError.
    """
    if not (directory / DATA_FILE).exists():
        return {}
    check_data_file(directory / DATA_FILE)
    inner = open_environment(directory, MAP_BYTES, readonly=True)
    environment = Environment(directory, inner)
    try:
        return {name: table.version for name, table in stored_tables(environment).items()}
    finally:
        environment.close()


class Store(OpenStore):
    """One open LMDB environment. Build it with Store.open; see storage/store/__init__.py for what
    it guarantees.

    noted  by the name of an index, the last commit that has, or will have, changes for it to apply
    """

    def __init__(
        self,
        environment: Environment,
        identity: Identity,
        lock: DirectoryLock | None,
        sequence: int,
    ):
        super().__init__(environment, identity, sequence)
        self._lock = lock
        self.noted: dict[str, int] = {}

    @property
    def is_owned(self) -> bool:
        return self._lock is not None

    @classmethod
    def open(
        cls,
        directory: Path,
        tables: Iterable[Table],
        *,
        identity: Identity,
        create: bool,
        map_bytes: int = MAP_BYTES,
        migrations: Mapping[tuple[str, int], Migration] | None = None,
        rebuild: Mapping[str, Rebuild] | None = None,
        service_key: bytes | None = None,
        earlier_keys: Sequence[bytes] = (),
    ) -> Store:
        """Open the store in `directory`, or create it there when asked to and there is none.

        map_bytes    of address space, and how large the store may become
        migrations   (table name, from version) -> function from a row's fields (dict, or bytes for
                     a raw table) to the next version's
        rebuild      by the name of a derived table: what makes a tenant's rows of it again, when
                     its version was raised
        service_key  32 bytes that wrap the tenants' data keys; without it nothing is sealed, and
                     what is sealed cannot be read
        earlier_keys service keys that data keys may still be wrapped by

        A table whose rows only have to be sealed, or are too many to be rewritten or made again at
        once, is taken over in bounded transactions; broken off, the next opening goes on. A store
        whose rows had to be sealed is then rewritten whole, so that no freed page keeps them as
        they were. Raises StoreInUse, StoreMissing, StoreMismatch, StoreTooNew, StoreDamaged;
        nothing is changed then.
        """
        tables = list(tables)
        data_file = directory / DATA_FILE
        if not create and not data_file.exists():
            raise StoreMissing(f"there is no store in {directory}; create one, or check the path.")
        make_directory(directory)
        lock = DirectoryLock(directory)
        try:
            if not data_file.exists():
                create_environment(directory, identity)
            check_data_file(data_file)
            environment, found, sequence = open_as(directory, identity, map_bytes)
            store = cls(environment, found, lock, sequence)
        except BaseException:
            lock.release()
            raise
        try:
            stored = stored_tables(environment, tables)
            if service_key is not None:
                is_new = not any(entry.sealed for entry in stored.values())
                store.keys = Keyring.open(
                    directory / KEYS_FILE, service_key, create=is_new, earlier_keys=earlier_keys
                )
            changed = assign_codes(directory, stored, tables, has_keys=store.keys is not None)
            upgraded = replace(found, format_version=identity.format_version)
            store._bring_up(stored, changed, migrations or {}, rebuild or {}, upgraded)
            store._rebuild(tables, rebuild or {})
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_to_read(
        cls,
        directory: Path,
        tables: Iterable[Table],
        *,
        identity: Identity,
        map_bytes: int = MAP_BYTES,
        service_key: bytes | None = None,
        earlier_keys: Sequence[bytes] = (),
    ) -> Store:
        """The store for snapshots alone, beside whichever process owns it; of an older release's it
        is StoreOlder.
        """
        tables = list(tables)
        if not (directory / DATA_FILE).exists():
            raise StoreMissing(f"there is no store in {directory}.")
        check_data_file(directory / DATA_FILE)
        environment, found, sequence = open_as(directory, identity, map_bytes, readonly=True)
        store = cls(environment, found, None, sequence)
        try:
            stored = stored_tables(environment, tables)
            if service_key is not None and any(entry.sealed for entry in stored.values()):
                store.keys = Keyring.open(
                    directory / KEYS_FILE,
                    service_key,
                    create=False,
                    readonly=True,
                    earlier_keys=earlier_keys,
                )
            changed = assign_codes(directory, stored, tables, has_keys=store.keys is not None)
            changed += [(table, stored[table.name]) for table in is_rebuilding(environment, tables)]
            check_upgraded(directory, stored, changed, found, identity.format_version)
            store.places = places(stored, changed)
        except BaseException:
            store.close()
            raise
        return store

    def saw(self, sequence: int) -> None:
        """Take note of a commit of the owner's, in a process that reads beside it."""
        self._sequence = max(self._sequence, sequence)

    def write(self, work: Callable[[Transaction], T]) -> Committed[T]:
        """Run `work` in one transaction, commit, fsync.

        An exception from `work` undoes everything and is raised. StoreFull when there is no space;
        nothing was stored then. DeviceFailed when the device fails: what was stored is unknown.
        When `work` stores nothing, nothing is committed and the sequence stays.
        """
        return self.environment.exclusively(lambda: self._attempt(work))

    def _bring_up(
        self,
        stored: Mapping[str, StoredTable],
        changed: Sequence[tuple[Table, StoredTable]],
        migrations: Mapping[tuple[str, int], Migration],
        rebuild: Mapping[str, Rebuild],
        upgraded: Identity,
    ) -> None:
        """Bring what is stored to what is declared: large tables, then all the rest at once, then
        what only gets sealed.
        """
        sealing = [each for each in changed if only_seals(stored.get(each[0].name), *each)]
        rest = [each for each in changed if each not in sealing]
        self.places = places(stored, ())
        large = self._migrate_in_steps(rest, stored, migrations, rebuild)
        stored = {**stored, **{table.name: entry for table, entry in large}}
        whole = [each for each in rest if each not in large]
        self.places = places(stored, whole)
        self.write(
            lambda transaction: bring_up(transaction, stored, whole, migrations, rebuild, upgraded)
        )
        self.identity = upgraded
        rewrite_if_asked(self.environment)  # texts are not left there for as long as what follows
        for table, entry in sealing:
            self._seal(table, stored[table.name], entry)
        self.places = places(stored, changed)
        rewrite_if_asked(self.environment)

    def _migrate_in_steps(
        self,
        changed: Iterable[tuple[Table, StoredTable]],
        stored: Mapping[str, StoredTable],
        migrations: Mapping[tuple[str, int], Migration],
        rebuild: Mapping[str, Rebuild],
    ) -> list[tuple[Table, StoredTable]]:
        """Rewrite the rows of large tables in bounded transactions; -> those tables. All are tried
        before the first is changed.
        """

        def chosen(transaction: Transaction) -> list[tuple[Table, StoredTable]]:
            return [
                (table, entry)
                for table, entry in changed
                if goes_in_steps(transaction, table, stored.get(table.name), entry, migrations)
            ]

        large = self.write(chosen).result
        for table, entry in large:
            one = (table, stored[table.name], entry)
            given = (*one, migrations, table.name in rebuild)
            while self.write(lambda inner, given=given: migrate_some(inner, *given)).result:
                pass
            self.write(lambda inner, one=one: end_migrating(inner, *one))
        return large

    def _rebuild(self, tables: Iterable[Table], rebuild: Mapping[str, Rebuild]) -> None:
        """Make again what large tables have that derives from others, in bounded transactions."""
        for table in is_rebuilding(self.environment, tables):
            if table.name in rebuild:
                given = (table, rebuild[table.name], deque[Part]())
                while self.write(lambda inner, given=given: rebuild_some(inner, *given)).result:
                    pass

    def _seal(self, table: Table, before: StoredTable, after: StoredTable) -> None:
        """Seal the rows of a table that were stored open, in bounded transactions."""
        while self.write(lambda transaction: seal_some(transaction, table, before)).result:
            pass
        self.write(lambda transaction: end_sealing(transaction, table, after))

    def _attempt(self, work: Callable[[Transaction], T]) -> Committed[T]:
        environment, sequence, noted = self.environment, self._sequence + 1, self.noted
        try:
            inner = environment.begin_write()
        except lmdb.Error as error:
            raise environment.fault(error) from error
        transaction = Transaction(self, inner, sequence)
        try:
            result = work(transaction)
            if transaction.failure is not None:
                raise transaction.failure
            if transaction.dirty:
                inner.put(SEQUENCE, sequence.to_bytes(8, "big"), db=environment.meta)
                if transaction.changes is not None:
                    self.log.append(inner, sequence, transaction.changes)
                # Before anybody can see the rows.
                self.noted = noted | {name: sequence for name, _, _ in transaction.notes}
            inner.commit()
        except BaseException as error:
            self.noted = noted
            environment.undo(inner, transaction.dirty or not isinstance(error, Exception))
            failure = transaction.failure or (
                environment.fault(error) if isinstance(error, lmdb.Error) else error
            )
            if isinstance(failure, StoreFull):
                environment.check_sound()
            if failure is error:
                raise
            raise failure from error
        if not transaction.dirty:
            return Committed(result, self._sequence, {})
        self._sequence = sequence
        if transaction.changes is not None:
            self.log.committed()
        notes: dict[str, list[tuple[Scope, Any]]] = {}
        for index_name, scope, change in transaction.notes:
            notes.setdefault(index_name, []).append((scope, change))
        return Committed(result, sequence, notes)

    def backup(self, directory: Path) -> None:
        """A compacted copy of the last commit and of the keys, in a new directory, while reads and
        writes go on; it opens like the original. The directory appears under its name only when the
        rows are complete and synced, and does not open without the keys.

        FileExistsError when it is there already.
        """
        if directory.exists():
            raise FileExistsError(f"{directory} exists; a backup goes into a new directory.")
        self.environment.copy(directory)
        if self.keys is not None:
            self.keys.copy(
                directory / KEYS_FILE
            )  # after the rows, so that it has every key they need

    def stat(self) -> dict[str, Any]:
        """Sizes in bytes and counts: data file, map, what is free on its disk, rows, tables, open
        snapshots of this process, sequence; by how many commits the oldest reader of any process
        is behind.
        """
        with self.snapshot() as snapshot:
            return {
                "data_bytes": self.data_file.stat().st_size,
                "disk_free_bytes": shutil.disk_usage(self.data_file.parent).free,
                "map_bytes": self.environment.map_bytes,
                "rows": snapshot.inner.stat(self.environment.main)["entries"],
                "tables": len(self.places),
                "snapshots": self.environment.readers - 1,
                "sequence": snapshot.sequence,
                "reader_lag_commits": self.environment.reader_lag(),
            }

    def close(self) -> None:
        """Wait for the running write and, up to a bound, for open snapshots; then close and let go
        of the directory.
        """
        if self.environment.close():
            if self.keys is not None:
                self.keys.close()
            if self._lock is not None:
                self._lock.release()
