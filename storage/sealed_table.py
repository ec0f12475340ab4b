"""A bound table whose rows lie sealed under their tenant's data key; keys stay as they are, since they must sort.

It differs from BoundTable in nothing a caller sees. The associated data of a row is its physical key, so a row that is copied to
another key, table or tenant does not open there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import lmdb

from storage.envelope import Keyring
from storage.keycode import decode as decode_key
from storage.keycode import encode as encode_key
from storage.schema import Row, Table
from storage.table import BoundTable, Key

if TYPE_CHECKING:
    from storage.table import Reader

_SCOPE_BYTES, _PREFIX_BYTES = 6, 8


class SealedTable(BoundTable[Row]):
    """See the module docstring. In a table of the slot with an `owner`, each row is its owner's: the first part of its key says whose."""

    __slots__ = ("_keyring", "_owned", "_scope", "_unseal")

    def __init__(self, reader: Reader, table: Table[Row], prefix: bytes, keyring: Keyring):
        # As BoundTable does, written out: tables are bound at every request.
        self.table = table
        self._reader = reader
        self._prefix = prefix
        self._lmdb = reader._lmdb
        self._get = reader._lmdb.get
        self._put = reader._lmdb.put
        self._encode = table.encode
        self._decode = table.decode
        self._scope = prefix[:_SCOPE_BYTES]
        self._owned = bool(table.owner)
        self._keyring = keyring
        self._unseal = keyring.unseal

    def get(self, *key: Any) -> Row | None:
        physical = self._prefix + encode_key(key)
        try:
            sealed = self._get(physical)
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        if sealed is None:
            return None
        return self._decode(self._keyring.unseal_again(self._owner(key) if self._owned else self._scope, physical, sealed))

    def get_raw(self, *key: Any) -> bytes | None:
        """The row's bytes, opened, or None."""
        physical = self._prefix + encode_key(key)
        try:
            sealed = self._get(physical)
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        return None if sealed is None else self._unseal(self._owner(key) if self._owned else self._scope, physical, sealed)

    def get_many(self, keys: Sequence[Key], prefix: Key = ()) -> list[Row | None]:
        head = self._prefix + encode_key(prefix)
        wanted = [head + encode_key(key) for key in keys]
        try:
            with self._lmdb.cursor() as cursor:
                found = dict(cursor.getmulti(sorted(wanted)))
        except lmdb.Error as error:
            raise self._reader._fault(error) from error
        decode, unseal, scopes = self._decode, self._unseal, itertools.repeat(self._scope)
        if self._owned:
            scopes = map(self._owner, keys) if not prefix else itertools.repeat(self._owner(prefix))
        return [
            decode(unseal(scope, physical, found[physical])) if physical in found else None
            for scope, physical in zip(scopes, wanted, strict=False)
        ]

    def has(self, *key: Any) -> bool:
        return super().get_raw(*key) is not None

    def put_raw(self, key: Key, raw: bytes) -> None:
        """Insert or replace a row given as its opened bytes."""
        scope = self._owner(key) if self._owned else self._scope
        physical = self._prefix + encode_key(key)
        self._store(physical, self._keyring.seal(scope, physical, raw))

    def _items(
        self, prefix: Key, after: Key | None, before: Key | None, reverse: bool, limit: int | None, values: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        for physical, sealed in super()._items(prefix, after, before, reverse, limit, values):
            if values:
                scope = self._owner(decode_key(physical[_PREFIX_BYTES:])) if self._owned else self._scope
                sealed = self._unseal(scope, physical, sealed)
            yield physical, sealed

    def _owner(self, key: Key) -> bytes:
        return self._prefix[:2] + key[0].to_bytes(4, "big")
