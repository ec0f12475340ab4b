"""Bringing a store up to what is declared: codes of new tables, versions of rows, seals, the layout
of keys, the store's format.

Tables that derive from others are made again, by whoever knows how, when their version was raised.

All of it is one transaction of Store.open, but for three kinds of tables, whose rows are taken over
some megabytes at a time; a start that is broken off goes on where it was, and no other release
opens what is half taken over.

    sealing     rows only get sealed: after that transaction, when the store is of the new format
                and the table still of the old version
    migrating   rows are rewritten, and are too many for one transaction: before it, so that what is
                made again from them reads them as they are declared. The store is of the old format
                and the table of the new version; `migrating:<name>` has what it was before. All
                rows are tried first, so that a migration that fails changes nothing. Where other
                rows take their place (`Table.reshape`), each such version takes one more pass;
                `reshaped:<name>` has its number, and the last row
    rebuilding  rows are made again from others, and are many: after it. `rebuilding:<name>` has the
                last tenant all of whose rows are; of the next one only what is wrong is made again

Where rows had to be sealed, the data file is then replaced by a compacted copy, since freed pages
would keep what was there before; until that copy is in place, each start begins with it.

The database `meta` holds one entry `table:<name>` for each table, the store's `identity`,
`sealing:<name>` and `migrated:<name>` with the physical key of the last row that was taken over
while a table's rows are, and `rewrite` while a copy is due.
"""

from __future__ import annotations

import logging
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from storage.store.bound_table import PREFIX_BYTES, SCOPE_BYTES
from storage.store.directory import DATA_FILE, StoreMismatch, StoreOlder, StoreTooNew, publish
from storage.store.environment import IDENTITY, Environment
from storage.store.keycode import ALL_KEYS_END
from storage.store.keycode import decode as decode_key
from storage.store.schema import (
    Identity,
    Migration,
    Part,
    Place,
    Rebuild,
    Reshape,
    Scope,
    StoredTable,
    Table,
    upgrade,
)
from storage.store.transaction import Transaction

_decode_table = msgspec.msgpack.Decoder(StoredTable).decode

log = logging.getLogger("mneme.store")

SEALED_STEP_BYTES = MIGRATED_STEP_BYTES = 8 << 20  # of rows, in one transaction

_REWRITE, _SEALING, _TABLE_PREFIX = b"rewrite", b"sealing:", b"table:"
_MIGRATING, _MIGRATED, _RESHAPED = b"migrating:", b"migrated:", b"reshaped:"
_REBUILDING = b"rebuilding:"


def stored_tables(
    environment: Environment, declared: Iterable[Table] = ()
) -> dict[str, StoredTable]:
    """What the store remembers of its tables, by name; of one that is half migrated, what it was
    before. Raises StoreTooNew, StoreMismatch where that is for another release to end.
    """
    versions = {table.name: table.version for table in declared}
    with (
        environment.reading() as transaction,
        transaction.cursor(db=environment.meta) as cursor,
    ):
        # No other key of `meta` sorts above these.
        rows = list(cursor.iternext()) if cursor.set_range(_TABLE_PREFIX) else []
        found = {key.removeprefix(_TABLE_PREFIX).decode(): _decode_table(raw) for key, raw in rows}
        for name, entry in found.items():
            before = transaction.get(_MIGRATING + name.encode(), db=environment.meta)
            if before is not None:
                _check_ends(environment.directory, name, entry, versions.get(name))
                found[name] = _decode_table(before)
        return found


def _check_ends(directory: Path, name: str, entry: StoredTable, declared: int | None) -> None:
    """Whether this release can end the migration of a table to what it is to be."""
    if declared is not None and declared != entry.version:
        kind = StoreTooNew if declared < entry.version else StoreMismatch
        raise kind(
            f"{directory}: table {name!r} is half way to version {entry.version}, and this release "
            f"knows {declared}; start the release that began it once more."
        )


def code_of(name: str, transaction: Any, meta: Any) -> bytes:
    """(LMDB's transaction, its database `meta`) -> what the table's keys have for it; b"" where
    there is no such table.
    """
    raw = transaction.get(_TABLE_PREFIX + name.encode(), db=meta)
    return b"" if raw is None else _place(_decode_table(raw))[0]


def places(
    stored: Mapping[str, StoredTable], changed: Iterable[tuple[Table, StoredTable]]
) -> dict[str, Place]:
    """Where the rows of each table are once what changes has changed."""
    entries = {**stored, **{table.name: entry for table, entry in changed}}
    return {name: _place(entry) for name, entry in entries.items()}


def bring_up(
    transaction: Transaction,
    stored: Mapping[str, StoredTable],
    changed: Sequence[tuple[Table, StoredTable]],
    migrations: Mapping[tuple[str, int], Migration],
    rebuild: Mapping[str, Rebuild],
    identity: Identity,
) -> None:
    """Give each new table its code, and bring each older one and the store itself to what is
    declared. The store has the places of the tables as they will be.
    """
    for table, entry in changed:
        before = stored.get(table.name)
        if before is not None:
            _migrate(transaction, table, before, entry, migrations)
            if entry.sealed and not before.sealed:
                transaction.put_meta(_REWRITE, b"")
        transaction.put_meta(_TABLE_PREFIX + table.name.encode(), msgspec.msgpack.encode(entry))
    for table, entry in changed:
        before = stored.get(table.name)
        if before is not None and before.version < entry.version and table.name in rebuild:
            for scope in [scope for scope in transaction.scopes() if scope.tenant]:
                for part in list(rebuild[table.name](transaction, scope)):
                    part(transaction)
    if identity != transaction.store.identity:
        transaction.put_meta(IDENTITY, msgspec.json.encode(identity))


def check_upgraded(
    directory: Path,
    stored: Mapping[str, StoredTable],
    changed: Iterable[tuple[Table, StoredTable]],
    identity: Identity,
    format_version: int,
) -> None:
    """Raise StoreOlder unless the store is what is declared; a table that is not there yet has
    no rows.
    """
    for table, _ in changed:
        if table.name in stored:
            raise StoreOlder(
                f"{directory}: table {table.name!r} is of an older release; a start of the "
                "service migrates it."
            )
    if identity.format_version < format_version:
        raise StoreOlder(f"{directory} is of an older release; a start of the service migrates it.")


def seal_some(transaction: Transaction, table: Table, before: StoredTable) -> bool:
    """Seal the next SEALED_STEP_BYTES of a table's rows; -> whether there may be more of them.

    before  the table as it is stored; the store has its place so until the last step
    """
    mark, code = _SEALING + table.name.encode(), _place(before)[0]
    if transaction.get_meta(mark) is None:
        log.info("sealing what is stored in %s", table.name)
    steps = ((code, False), (code, True))
    return _rewrite_some(transaction, table, mark, steps, lambda raw: raw, SEALED_STEP_BYTES)


def end_sealing(transaction: Transaction, table: Table, after: StoredTable) -> None:
    """All rows of the table are sealed: from now on it is what is declared."""
    transaction.delete_meta(_SEALING + table.name.encode())
    transaction.put_meta(_REWRITE, b"")
    transaction.put_meta(_TABLE_PREFIX + table.name.encode(), msgspec.msgpack.encode(after))


def goes_in_steps(
    transaction: Transaction,
    table: Table,
    before: StoredTable | None,
    after: StoredTable,
    migrations: Mapping[tuple[str, int], Migration],
) -> bool:
    """Whether the rows of a table that is older are too many to be rewritten in one transaction,
    or are being rewritten in several. Tries them all, so that none fails later; changes nothing.
    """
    if before is None or before.version == after.version:
        return False
    if transaction.get_meta(_MIGRATING + table.name.encode()) is not None:
        return True
    rewrite, size = upgrade(table, before.version, migrations), 0
    for scope in _scopes(transaction, table, b"\0"):
        if not transaction.is_shredded(scope):
            for _, raw in transaction.bind_at(table, scope, _place(before)).items():
                size += len(rewrite(raw))
    return size > MIGRATED_STEP_BYTES


def migrate_some(
    transaction: Transaction,
    table: Table,
    before: StoredTable,
    after: StoredTable,
    migrations: Mapping[tuple[str, int], Migration],
    is_rebuilt: bool,
) -> bool:
    """Rewrite the next MIGRATED_STEP_BYTES of a table's rows; -> whether there may be more of them.
    With the first of them the table is of its new version.

    is_rebuilt  its rows are made again later (rebuild_some)
    """
    name = table.name.encode()
    if transaction.get_meta(_MIGRATING + name) is None:
        log.info("migrating what is stored in %s", table.name)
        transaction.put_meta(_MIGRATING + name, msgspec.msgpack.encode(before))
        transaction.put_meta(_TABLE_PREFIX + name, msgspec.msgpack.encode(after))
        if is_rebuilt:
            transaction.put_meta(_REBUILDING + name, b"")
    reshapes, reshaped = _reshapes(table, before, after), transaction.get_meta(_RESHAPED + name)
    if reshaped is not None:
        return _reshape_some(transaction, table, _place(after), reshapes, reshaped)
    rewrite, steps = upgrade(table, before.version, migrations), (_place(before), _place(after))
    if _rewrite_some(
        transaction, table, _MIGRATED + name, steps, rewrite, MIGRATED_STEP_BYTES
    ):  # fmt: skip
        return True
    if reshapes:
        transaction.put_meta(_RESHAPED + name, bytes(1))
    return bool(reshapes)


def end_migrating(
    transaction: Transaction, table: Table, before: StoredTable, after: StoredTable
) -> None:
    """All rows of the table are rewritten: it is what is declared."""
    for mark in (_MIGRATING, _MIGRATED, _RESHAPED):
        transaction.delete_meta(mark + table.name.encode())
    if after.sealed and not before.sealed:
        transaction.put_meta(_REWRITE, b"")


def is_rebuilding(environment: Environment, tables: Iterable[Table]) -> list[Table]:
    """Those of the tables whose rows are being made again."""
    with environment.reading() as transaction:
        return [
            table
            for table in tables
            if transaction.get(_REBUILDING + table.name.encode(), db=environment.meta) is not None
        ]


def rebuild_some(
    transaction: Transaction, table: Table, rebuild: Rebuild, left: deque[Part]
) -> bool:
    """Make the next MIGRATED_STEP_BYTES of a table's rows again; -> whether there may be more.

    left  what is still to be done to the rows of one tenant, for the next call; empty at first
    """
    mark = _REBUILDING + table.name.encode()
    for scope in _scopes(transaction, table, _behind(transaction.get_meta(mark))):
        if not left and scope.tenant:
            left.extend(rebuild(transaction, scope))
        while left:
            if transaction.stored_bytes >= MIGRATED_STEP_BYTES:
                return True
            left.popleft()(transaction)
        transaction.put_meta(mark, scope.prefix)
    transaction.delete_meta(mark)
    return False


def _behind(done: bytes | None) -> bytes:
    """Where the keys begin of whoever comes after the tenant that is done."""
    return (int.from_bytes(done, "big") + 1).to_bytes(SCOPE_BYTES, "big") if done else b"\0"


def rewrite_if_asked(environment: Environment) -> None:
    """Put a compacted copy in the data file's place where an upgrade left rows in freed pages that
    must not stay there.
    """
    with environment.reading() as transaction:
        if transaction.get(_REWRITE, db=environment.meta) is None:
            return
    copy = environment.directory / ".rewritten"
    shutil.rmtree(copy, ignore_errors=True)
    environment.copy(copy)
    environment.reopen_after(lambda: publish(copy / DATA_FILE, environment.data_file))
    shutil.rmtree(copy)
    environment.write(lambda inner: inner.delete(_REWRITE, db=environment.meta))


def _place(entry: StoredTable) -> Place:
    return entry.code.to_bytes(2, "big"), entry.sealed


def _scopes(transaction: Transaction, table: Table, low: bytes) -> Iterator[Scope]:
    """Those that may have rows of the table, from a prefix of keys on, in order."""
    for prefix in transaction.beginnings(SCOPE_BYTES, low, ALL_KEYS_END):
        scope = Scope(int.from_bytes(prefix[:2], "big"), int.from_bytes(prefix[2:], "big"))
        if table.level == "tenant" or scope.tenant == 0:
            yield scope


def _rewrite_some(
    transaction: Transaction,
    table: Table,
    mark: bytes,
    steps: tuple[Place, Place],
    rewrite: Callable[[bytes], bytes],
    bytes_max: int,
) -> bool:
    """Rewrite the next rows of a table from one place to another, behind the mark; -> whether there
    may be more of them.
    """
    done, size = transaction.get_meta(mark), 0
    for scope in _scopes(transaction, table, b"\0" if done is None else done[:SCOPE_BYTES]):
        old, new = (transaction.bind_at(table, scope, place) for place in steps)
        if transaction.is_shredded(scope):  # an erasure's rest, which nobody can want
            old.delete_prefix()
            continue
        resumes = done is not None and done.startswith(scope.prefix)
        after = decode_key(done[PREFIX_BYTES:]) if done is not None and resumes else None
        for physical, raw in old.items(after):
            new.put_raw(decode_key(physical[PREFIX_BYTES:]), rewrite(raw))
            size += len(raw)
            if size >= bytes_max:
                transaction.put_meta(mark, physical)
                return True
    return False


def _reshape_some(
    transaction: Transaction, table: Table, place: Place, reshapes: Sequence[Reshape], mark: bytes
) -> bool:
    """Reshape the next rows of a table, behind the mark; -> whether there may be more of them.

    mark  which of the passes it is, and the physical key of the last row
    """
    name, number, done, size = _RESHAPED + table.name.encode(), mark[0], mark[1:], 0
    for scope in _scopes(transaction, table, done[:SCOPE_BYTES] or b"\0"):
        if transaction.is_shredded(scope):
            continue
        rows, secret = transaction.bind_at(table, scope, place), transaction.secret(scope)
        after = decode_key(done[PREFIX_BYTES:]) if done.startswith(scope.prefix) else None
        for physical, raw in rows.items(after):
            reshapes[number](rows, decode_key(physical[PREFIX_BYTES:]), secret)
            size += len(raw)
            if size + transaction.stored_bytes >= MIGRATED_STEP_BYTES:
                transaction.put_meta(name, bytes([number]) + physical)
                return True
    if number + 1 < len(reshapes):
        transaction.put_meta(name, bytes([number + 1]))
    return number + 1 < len(reshapes)


def _reshapes(table: Table, before: StoredTable, after: StoredTable) -> list[Reshape]:
    return [
        table.reshape[version]
        for version in range(before.version, after.version)
        if version in table.reshape
    ]


def _bring_over(
    transaction: Transaction,
    table: Table,
    scope: Scope,
    before: StoredTable,
    after: StoredTable,
    migrations: Mapping[tuple[str, int], Migration],
) -> None:
    """Bring a scope's rows from how they are stored to how they are declared."""
    rewrite = upgrade(table, before.version, migrations)
    old = transaction.bind_at(table, scope, _place(before))
    new = transaction.bind_at(table, scope, _place(after))
    if transaction.is_shredded(scope):  # an erasure's rest, which nobody can want
        old.delete_prefix()
        return
    for physical, raw in old.items():
        new.put_raw(decode_key(physical[PREFIX_BYTES:]), rewrite(raw))
    for reshape in _reshapes(table, before, after):
        for physical, _ in new.items():
            reshape(new, decode_key(physical[PREFIX_BYTES:]), transaction.secret(scope))


def _migrate(
    transaction: Transaction,
    table: Table,
    before: StoredTable,
    after: StoredTable,
    migrations: Mapping[tuple[str, int], Migration],
) -> None:
    """Bring every row of the table, in every scope, from how it is stored to how it is declared."""
    for scope in [
        scope for scope in transaction.scopes() if table.level == "tenant" or scope.tenant == 0
    ]:
        _bring_over(transaction, table, scope, before, after, migrations)
