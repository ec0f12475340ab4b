"""Bringing a store up to what is declared: codes of new tables, versions of rows, seals, the layout of keys, the store's format.

Tables that derive from others are made again, by whoever knows how, when their version was raised.

All of it is one transaction of Store.open. Where rows had to be sealed, the data file is then replaced by a compacted copy, since
freed pages would keep what was there before; until that copy is in place, each start begins with it.

The database `meta` holds one entry `table:<name>` for each table, the store's `identity`, and `rewrite` while a copy is due.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from storage.directory import DATA_FILE, StoreMismatch, copy_data, publish
from storage.environment import IDENTITY, open_environment
from storage.keycode import decode as decode_key
from storage.schema import Migration, Rebuild, StoredTable, Table, assign_codes, upgrade

if TYPE_CHECKING:
    from storage.table import Store, Transaction

_REWRITE, _TABLE_PREFIX = b"rewrite", b"table:"
_PREFIX_BYTES = 8


def stored_tables(store: Store) -> dict[str, StoredTable]:
    """What the store remembers of its tables, by name."""
    with store._env.begin(db=store._meta) as transaction, transaction.cursor() as cursor:
        rows = cursor.iternext() if cursor.set_range(_TABLE_PREFIX) else ()  # no other meta key sorts above these
        return {key.removeprefix(_TABLE_PREFIX).decode(): msgspec.msgpack.decode(raw, type=StoredTable) for key, raw in rows}


def declare(
    store: Store,
    stored: Mapping[str, StoredTable],
    tables: tuple[Table, ...],
    migrations: Mapping[tuple[str, int], Migration],
    rebuild: Mapping[str, Rebuild],
    format_version: int,
) -> None:
    """Give each new table a code, and bring each older one and the store itself to what is declared, all in one transaction."""
    changed = assign_codes(store.directory, stored, tables, has_keys=store.keys is not None)
    identity = replace(store.identity, format_version=format_version)

    def work(transaction: Transaction) -> None:
        for table, entry in changed:
            before = stored.get(table.name)
            if before is not None:
                _migrate(transaction, table, before, entry, migrations)
                if entry.sealed and not before.sealed:
                    transaction._lmdb.put(_REWRITE, b"", db=store._meta)
            transaction._lmdb.put(_TABLE_PREFIX + table.name.encode(), msgspec.msgpack.encode(entry), db=store._meta)
            transaction.dirty = True
        store._places |= {table.name: _place(entry) for table, entry in changed}
        for table, entry in changed:
            if table.name in rebuild and table.name in stored and stored[table.name].version < entry.version:
                rebuild[table.name](transaction)
        if identity != store.identity:
            transaction._lmdb.put(IDENTITY, msgspec.json.encode(identity), db=store._meta)
            transaction.dirty = True

    store._places = {name: _place(entry) for name, entry in stored.items()}
    store.write(work)
    store.identity = identity


def read_as_declared(store: Store, stored: Mapping[str, StoredTable], tables: tuple[Table, ...], format_version: int) -> None:
    """Read a store that is what is declared; a table that is not there yet has no rows. StoreMismatch when it is older."""
    entries = dict(stored)
    for table, entry in assign_codes(store.directory, stored, tables, has_keys=store.keys is not None):
        if table.name in stored:
            raise StoreMismatch(f"{store.directory}: table {table.name!r} is of an older release; a start of the service migrates it.")
        entries[table.name] = entry
    if store.identity.format_version < format_version:
        raise StoreMismatch(f"{store.directory} is of an older release; a start of the service migrates it.")
    store._places = {name: _place(entry) for name, entry in entries.items()}


def rewrite_if_asked(store: Store) -> None:
    """Put a compacted copy in the data file's place where an upgrade left rows in freed pages that must not stay there."""
    with store._env.begin(db=store._meta) as transaction:
        if transaction.get(_REWRITE) is None:
            return
    copy, map_bytes = store.directory / ".rewritten", store._env.info()["map_size"]
    shutil.rmtree(copy, ignore_errors=True)
    copy_data(store.directory, copy, map_bytes)
    store._env.close()
    publish(copy / DATA_FILE, store.data_file)
    shutil.rmtree(copy)
    store._env = open_environment(store.directory, map_bytes)
    store._main, store._meta = store._env.open_db(b"main"), store._env.open_db(b"meta")
    with store._env.begin(db=store._meta, write=True) as transaction:
        transaction.delete(_REWRITE)


def _place(entry: StoredTable) -> tuple[bytes, bool]:
    return entry.code.to_bytes(2, "big"), entry.sealed


def _migrate(
    transaction: Transaction, table: Table, before: StoredTable, after: StoredTable, migrations: Mapping[tuple[str, int], Migration]
) -> None:
    """Bring every row of the table, in every scope, from how it is stored to how it is declared."""
    rewrite = upgrade(table, before.version, migrations)
    reshapes = [table.reshape[version] for version in range(before.version, after.version) if version in table.reshape]
    places = transaction.store._places
    for scope in [scope for scope in transaction.scopes() if table.level == "tenant" or scope.tenant == 0]:
        places[table.name] = _place(before)
        old = transaction.bind(table, scope)
        places[table.name] = _place(after)
        new = transaction.bind(table, scope)
        for physical, raw in old._items((), None, None, False, None, True):
            new.put_raw(decode_key(physical[_PREFIX_BYTES:]), rewrite(raw))
        for reshape in reshapes:
            reshape(new, transaction.secret(scope))
