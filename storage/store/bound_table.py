"""A declared table inside one reader and one scope: rows under keys, plain or sealed.

It owns how a key becomes a physical one and a row becomes bytes. It knows of a reader no more than
`Source` says: an LMDB transaction, and where changes are noted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol

import lmdb

import storage.store.cursor as walk
from storage.store.directory import StoreError
from storage.store.keycode import decode as decode_key
from storage.store.keycode import encode as encode_key
from storage.store.keycode import encode_bytes, range_end
from storage.store.keyring import Keyring
from storage.store.schema import Changes, Row, Scope, Table

SCOPE_BYTES, PREFIX_BYTES = 6, 8

Key = tuple[Any, ...]


def code_in(physical: bytes) -> bytes:
    """The table's code in a physical key."""
    return physical[SCOPE_BYTES:PREFIX_BYTES]


def placed(physical: bytes) -> tuple[Scope, Key]:
    """Whose row a physical key is, and its key in the table."""
    scope = Scope(int.from_bytes(physical[:2], "big"), int.from_bytes(physical[2:6], "big"))
    return scope, decode_key(physical[PREFIX_BYTES:])


class Source(Protocol):
    """What a table needs of the reader it is bound to.

    inner     the LMDB transaction, on the database of rows
    writable  whether rows may change under a scan
    dirty     set by what stores something
    stored_bytes  of rows that were put
    changes   where changes are noted, if anybody wants to know them
    """

    inner: lmdb.Transaction[bytes]
    writable: bool
    dirty: bool
    stored_bytes: int
    changes: Changes | None

    def fault(self, error: lmdb.Error) -> StoreError:
        """LMDB's error as one of ours."""
        ...


class BoundTable(Generic[Row]):
    """A table inside one reader and one scope. Keys are tuples, without the scope; a prefix is the
    first parts of a key.
    """

    __slots__ = ("_decode", "_encode", "_get", "_lmdb", "_prefix", "_put", "_source", "table")

    def __init__(self, source: Source, table: Table[Row], prefix: bytes):
        self.table = table
        self._source = source
        self._prefix = prefix
        self._lmdb = source.inner
        self._get = source.inner.get
        self._put = source.inner.put
        self._encode = table.encode
        self._decode = table.decode

    def get(self, *key: Any) -> Row | None:
        """The row, or None."""
        try:
            raw = self._get(self._prefix + encode_key(key))
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return None if raw is None else self._decode(raw)

    def get_raw(self, *key: Any) -> bytes | None:
        """The row's stored bytes, or None."""
        try:
            return self._get(self._prefix + encode_key(key))
        except lmdb.Error as error:
            raise self._source.fault(error) from error

    def get_many(self, keys: Sequence[Key], prefix: Key = ()) -> list[Row | None]:
        """One entry per key, in the keys' order; read in key order with one cursor. prefix: parts
        that all keys begin with.
        """
        head = self._prefix + encode_key(prefix)
        wanted = [head + encode_key(key) for key in keys]
        try:
            with self._lmdb.cursor() as cursor:
                found = dict(cursor.getmulti(sorted(wanted)))
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        decode = self._decode
        return [decode(found[key]) if key in found else None for key in wanted]

    def row(self, *key: Any) -> Row:
        """The row, where another row says that there is one. LookupError when it is missing."""
        row = self.get(*key)
        if row is None:
            raise LookupError(f"table {self.table.name!r} lacks the row {key!r}")
        return row

    def rows(self, keys: Sequence[Key]) -> list[Row]:
        """One row per key, in the keys' order. LookupError when one is missing."""
        rows = self.get_many(keys)
        found = [row for row in rows if row is not None]
        if len(found) < len(rows):
            raise LookupError(f"table {self.table.name!r} lacks {len(rows) - len(found)} rows")
        return found

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
            raise ValueError(
                f"a key of table {self.table.name!r} takes {len(physical)} bytes, which is too long"
            ) from error
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        self._source.dirty = True
        self._source.stored_bytes += len(raw)
        if self._source.changes is not None:
            self._source.changes[physical] = raw

    def delete(self, *key: Any) -> bool:
        """Delete a row; -> whether there was one."""
        physical = self._prefix + encode_key(key)
        try:
            deleted = self._lmdb.delete(physical)
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        if deleted:
            self._source.dirty = True
            if self._source.changes is not None:
                self._source.changes[physical] = None
        return deleted

    def delete_prefix(self, *prefix: Any) -> int:
        """Delete every row whose key starts with `prefix`; -> how many."""
        start = self._prefix + encode_key(prefix)
        deleted, changes = 0, self._source.changes
        try:
            with self._lmdb.cursor() as cursor:
                cursor.set_range(start)
                while cursor.key().startswith(start):
                    if changes is not None:
                        changes[cursor.key()] = None
                    deleted += cursor.delete()
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        if deleted:
            self._source.dirty = True
        return deleted

    def scan(
        self,
        *prefix: Any,
        after: Key | None = None,
        before: Key | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[Key, Row]]:
        """(key, row) in key order, or backwards.

        after, before   whole key tuples (prefix included), both exclusive; a shorter tuple stands
                        for every key it begins

        In a transaction each step looks for its place again, so the loop may put and delete rows of
        this table: a deleted row is never yielded, and a row put further along is.
        """
        decode = self._decode
        for physical, raw in self._items(prefix, after, before, reverse, limit, True):
            yield decode_key(physical[PREFIX_BYTES:]), decode(raw)

    def raw_under(self, *prefix: Any) -> list[tuple[bytes, bytes]]:
        """(what follows `prefix` in the key, encoded; stored bytes) of every row under it, in key
        order: what a query reads of an index.
        """
        return self.raw_under_each([prefix])[0]

    def raw_under_each(self, prefixes: Sequence[Key]) -> list[list[tuple[bytes, bytes]]]:
        """As raw_under, of several prefixes, aligned with them: sooner than one after the other."""
        every = []
        try:
            with self._lmdb.cursor() as cursor:
                for prefix in prefixes:
                    start = self._prefix + encode_key(prefix)
                    size, found = len(start), []
                    # Most of what is looked up is not there, which the key alone tells.
                    if cursor.set_range(start) and cursor.key().startswith(start):
                        for physical, raw in cursor.iternext(True, True):
                            if not physical.startswith(start):
                                break
                            found.append((physical[size:], raw))
                    every.append(found)
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return every

    def raw_between_each(
        self, ranges: Sequence[tuple[Key, int, int]]
    ) -> list[list[tuple[bytes, bytes]]]:
        """As raw_under_each, of each (prefix, low, high) those rows whose next part is a number
        from `low` to below `high`.
        """
        every = []
        try:
            with self._lmdb.cursor() as cursor:
                for prefix, low, high in ranges:
                    start = self._prefix + encode_key(prefix)
                    size, end, found = len(start), start + encode_key((high,)), []
                    if cursor.set_range(start + encode_key((low,))):
                        for physical, raw in cursor.iternext(True, True):
                            if physical >= end:
                                break
                            found.append((physical[size:], raw))
                    every.append(found)
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return every

    def is_empty(self) -> bool:
        """Whether there is no row; reads a key alone."""
        return not self.have_any([()])[0]

    def have_any(self, prefixes: Sequence[Key]) -> list[bool]:
        """Whether there is a row under each of the prefixes; reads keys alone."""
        found = []
        try:
            with self._lmdb.cursor() as cursor:
                for prefix in prefixes:
                    start = self._prefix + encode_key(prefix)
                    found.append(cursor.set_range(start) and cursor.key().startswith(start))
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return found

    def have_each(self, prefix: Key, digests: Iterable[bytes]) -> list[bool]:
        """As have_any, of prefixes that differ in their last part alone, which is bytes: sooner,
        where hundreds are looked up.
        """
        found, beginning = [], self._prefix + encode_key(prefix)
        try:
            with self._lmdb.cursor() as cursor:
                seek, key = cursor.set_range, cursor.key
                for digest in digests:
                    start = beginning + encode_bytes(digest)
                    found.append(seek(start) and key().startswith(start))
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return found

    def first_parts(self) -> list[Any]:
        """The distinct first parts of the keys, in order: one look each, however many keys share
        it.
        """
        found: list[Any] = []
        low, high = self._prefix, range_end(self._prefix)
        try:
            with self._lmdb.cursor() as cursor:
                while cursor.set_range(low) and cursor.key() < high:
                    found.append(decode_key(cursor.key()[PREFIX_BYTES:])[0])
                    low = range_end(self._prefix + encode_key((found[-1],)))
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return found

    def keys(
        self,
        *prefix: Any,
        after: Key | None = None,
        before: Key | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Key]:
        """The keys scan would yield, without decoding rows."""
        for physical, _ in self._items(prefix, after, before, reverse, limit, False):
            yield decode_key(physical[PREFIX_BYTES:])

    def first(self, *prefix: Any) -> tuple[Key, Row] | None:
        """The lowest (key, row) under `prefix`, or None."""
        return next(self.scan(*prefix, limit=1), None)

    def last(self, *prefix: Any) -> tuple[Key, Row] | None:
        """The highest (key, row) under `prefix`, or None."""
        return next(self.scan(*prefix, reverse=True, limit=1), None)

    def beginnings(self, size: int, *prefix: Any) -> tuple[list[int], bytes]:
        """Of the rows whose keys are `prefix` and a number of 0 or more, in key order: the numbers,
        and the first bytes of each row as stored, `size` of each, one after another. In a snapshot.

        A sealed row begins with what it was sealed by, which no other row has or had.
        """
        low = self._prefix + encode_key(prefix)
        numbers, stored, start = list[int](), list[bytes](), len(low) + 1
        try:
            with self._lmdb.cursor() as cursor:
                for key, value in walk.items(cursor, low, range_end(low)):
                    numbers.append(int.from_bytes(key[start:], "big"))
                    stored.append(value[:size])
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return numbers, b"".join(stored)

    def count(self, *prefix: Any) -> int:
        """How many keys start with `prefix`; it walks them."""
        return sum(1 for _ in self._items(prefix, None, None, False, None, False))

    def sizes(self, *prefix: Any, limit: int) -> list[int]:
        """Bytes of each of the last `limit` rows under `prefix`, their keys included."""
        return [
            len(key) + len(raw) for key, raw in self._items(prefix, None, None, True, limit, True)
        ]

    def items(self, after: Key | None = None) -> Iterator[tuple[bytes, bytes]]:
        """(physical key, bytes of the row, opened) of every row behind `after`, in key order."""
        return self._items((), after, None, False, None, True)

    def _items(
        self,
        prefix: Key,
        after: Key | None,
        before: Key | None,
        reverse: bool,
        limit: int | None,
        values: bool,
    ) -> Iterator[tuple[bytes, bytes]]:
        """(physical key, stored bytes); the bytes are empty unless `values`."""
        low = self._prefix + encode_key(prefix)
        high = range_end(low)
        if after is not None:
            low = max(low, range_end(self._prefix + encode_key(after)))
        if before is not None:
            high = min(high, self._prefix + encode_key(before))
        try:
            with self._lmdb.cursor() as cursor:
                if values and not reverse and not self._source.writable:
                    yield from itertools.islice(walk.items(cursor, low, high), limit)
                    return
                found = walk.keys(cursor, low, high, reverse=reverse, live=self._source.writable)
                for key in found if limit is None else itertools.islice(found, limit):
                    yield key, cursor.value() if values else b""
        except lmdb.Error as error:
            raise self._source.fault(error) from error


class SealedTable(BoundTable[Row]):
    """A table whose rows lie sealed under their tenant's data key; keys stay as they are, since
    they must sort.

    It differs from BoundTable in nothing a caller sees. The associated data of a row is its
    physical key, so a row that is copied to another key, table or tenant does not open there. A
    table of the slot with an `owner` holds rows of many tenants: the first part of a row's key is
    the number of the tenant whose key seals it.
    """

    __slots__ = ("_keyring", "_owned", "_scope", "_unseal")

    def __init__(self, source: Source, table: Table[Row], prefix: bytes, keyring: Keyring):
        # As BoundTable does, written out: tables are bound at every request.
        self.table = table
        self._source = source
        self._prefix = prefix
        self._lmdb = source.inner
        self._get = source.inner.get
        self._put = source.inner.put
        self._encode = table.encode
        self._decode = table.decode
        self._scope = prefix[:SCOPE_BYTES]
        self._owned = bool(table.owner)
        self._keyring = keyring
        self._unseal = keyring.unseal

    def get(self, *key: Any) -> Row | None:
        physical = self._prefix + encode_key(key)
        try:
            sealed = self._get(physical)
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        if sealed is None:
            return None
        return self._decode(
            self._keyring.unseal_again(
                self._owner(key) if self._owned else self._scope, physical, sealed
            )
        )

    def get_raw(self, *key: Any) -> bytes | None:
        """The row's bytes, opened, or None."""
        physical = self._prefix + encode_key(key)
        try:
            sealed = self._get(physical)
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        return (
            None
            if sealed is None
            else self._unseal(self._owner(key) if self._owned else self._scope, physical, sealed)
        )

    def get_many(self, keys: Sequence[Key], prefix: Key = ()) -> list[Row | None]:
        head = self._prefix + encode_key(prefix)
        wanted = [head + encode_key(key) for key in keys]
        try:
            with self._lmdb.cursor() as cursor:
                found = dict(cursor.getmulti(sorted(wanted)))
        except lmdb.Error as error:
            raise self._source.fault(error) from error
        decode, unseal, scopes = self._decode, self._unseal, itertools.repeat(self._scope)
        if self._owned:
            scopes = map(self._owner, keys) if not prefix else itertools.repeat(self._owner(prefix))
        return [
            decode(unseal(scope, physical, found[physical])) if physical in found else None
            for scope, physical in zip(scopes, wanted, strict=False)
        ]

    def raw_under_each(self, prefixes: Sequence[Key]) -> list[list[tuple[bytes, bytes]]]:
        return self._opened_each(prefixes, super().raw_under_each(prefixes))

    def raw_between_each(
        self, ranges: Sequence[tuple[Key, int, int]]
    ) -> list[list[tuple[bytes, bytes]]]:
        return self._opened_each(
            [prefix for prefix, _, _ in ranges], super().raw_between_each(ranges)
        )

    def _opened_each(
        self, prefixes: Sequence[Key], found: list[list[tuple[bytes, bytes]]]
    ) -> list[list[tuple[bytes, bytes]]]:
        for prefix, each in zip(prefixes, found, strict=True):
            if each:
                start = self._prefix + encode_key(prefix)
                each[:] = [
                    (rest, self._unseal(self._owner_of(start + rest), start + rest, sealed))
                    for rest, sealed in each
                ]
        return found

    def has(self, *key: Any) -> bool:
        return super().get_raw(*key) is not None

    def put_raw(self, key: Key, raw: bytes) -> None:
        """Insert or replace a row given as its opened bytes."""
        scope = self._owner(key) if self._owned else self._scope
        physical = self._prefix + encode_key(key)
        self._store(physical, self._keyring.seal(scope, physical, raw))

    def _items(
        self,
        prefix: Key,
        after: Key | None,
        before: Key | None,
        reverse: bool,
        limit: int | None,
        values: bool,
    ) -> Iterator[tuple[bytes, bytes]]:
        found = super()._items(prefix, after, before, reverse, limit, values)
        if not values:
            yield from found
        elif self._owned:
            for physical, sealed in found:
                yield physical, self._unseal(self._owner_of(physical), physical, sealed)
        else:
            scope, unseal = self._scope, self._unseal
            for physical, sealed in found:
                yield physical, unseal(scope, physical, sealed)

    def _owner_of(self, physical: bytes) -> bytes:
        return self._owner(decode_key(physical[PREFIX_BYTES:])) if self._owned else self._scope

    def _owner(self, key: Key) -> bytes:
        return self._prefix[:2] + key[0].to_bytes(4, "big")
