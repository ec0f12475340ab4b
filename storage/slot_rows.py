"""A slot's rows on their way from one store to another: read here, written there, erased where they were.

Rows travel opened, by the name of their table, because stores give their tables codes of their own and seal under salts of their
own; the tenants' data keys travel as they are kept, wrapped by the service's key, which both stores have. So digests in keys,
which derive from a data key, stay what they are. A row that carries a commit's sequence gets that of the commit that writes it.

`Piece` is plain data. Writing the same piece twice, or a piece that repeats rows of an earlier one, does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from storage.directory import StoreError
from storage.keycode import decode as decode_key
from storage.keycode import prefix_end
from storage.schema import Scope, Table
from storage.table import BoundTable, Reader, Store, Transaction

SCOPE_BYTES, PREFIX_BYTES = 6, 8


class Carried(NamedTuple):
    """One row: whose it is (6 bytes), its table, the key inside both, and its opened bytes; None where it is gone."""

    scope: bytes
    table: str
    key: bytes
    raw: bytes | None


class Piece(NamedTuple):
    """Some rows, and the wrapped keys they are sealed with. after: where reading goes on; b"" at the end."""

    rows: list[Carried]
    keys: dict[bytes, bytes]
    after: bytes = b""


def read(reader: Reader, tables: Mapping[bytes, Table], slot: int, after: bytes, bytes_max: int) -> Piece:
    """The slot's rows behind the physical key `after` (b"": from the start), about `bytes_max` bytes of them."""
    rows, size = [], 0
    for place, raw in _items(reader, tables, slot, after):
        rows.append(_carried(tables, place, raw))
        size += len(place) + len(raw)
        if size >= bytes_max:
            return Piece(rows, _keys(reader, rows), place)
    return Piece(rows, _keys(reader, rows))


def read_changed(reader: Reader, tables: Mapping[bytes, Table], places: Iterable[bytes]) -> list[Carried]:
    """The rows at these physical keys as they are now."""
    rows = []
    for place in places:
        bound = reader.bind(_table(tables, place), _scope(place))
        rows.append(_carried(tables, place, bound.get_raw(*decode_key(place[PREFIX_BYTES:]))))
    return rows


def write(transaction: Transaction, tables: Mapping[str, Table], rows: Iterable[Carried]) -> None:
    """Put and delete rows as they are in another store, whose keys were adopted."""
    stamp = transaction.sequence.to_bytes(8, "little")
    for scope, name, key, raw in rows:
        table = tables[name]
        bound = transaction.bind(table, _scope(scope))
        if raw is None:
            bound.delete(*decode_key(key))
        else:
            bound.put_raw(decode_key(key), stamp + raw[8:] if table.stamped else raw)


def weight(reader: Reader, tables: Mapping[bytes, Table], slot: int) -> int:
    """Bytes of all rows of the slot, keys included, as they are stored."""
    total = 0
    for prefix in reader.beginnings(PREFIX_BYTES, slot.to_bytes(2, "big"), prefix_end(slot.to_bytes(2, "big"))):
        if prefix[SCOPE_BYTES:] in tables:
            bound = BoundTable(reader, _table(tables, prefix), prefix)
            total += sum(len(place) + len(raw) for place, raw in bound._items((), None, None, False, None, True))
    return total


def by_code(store: Store, tables: Iterable[Table]) -> dict[bytes, Table]:
    """The declared tables by their code in this store's keys."""
    return {store._places[table.name][0]: table for table in tables}


def _items(reader: Reader, tables: Mapping[bytes, Table], slot: int, after: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(physical key, opened bytes) of the slot, table by table."""
    low = slot.to_bytes(2, "big")
    if after:
        yield from _rest(reader, tables, after[:PREFIX_BYTES], after)
        low = prefix_end(after[:PREFIX_BYTES])
    for prefix in reader.beginnings(PREFIX_BYTES, low, prefix_end(slot.to_bytes(2, "big"))):
        yield from _rest(reader, tables, prefix, b"")


def _rest(reader: Reader, tables: Mapping[bytes, Table], prefix: bytes, after: bytes) -> Iterator[tuple[bytes, bytes]]:
    bound = reader.bind(_table(tables, prefix), _scope(prefix))
    yield from bound._items((), decode_key(after[PREFIX_BYTES:]) if after else None, None, False, None, True)


def _table(tables: Mapping[bytes, Table], place: bytes) -> Table:
    table = tables.get(place[SCOPE_BYTES:PREFIX_BYTES])
    if table is None:
        raise StoreError(f"slot {int.from_bytes(place[:2], 'big')} has rows of a plugin that is not installed; they cannot be moved.")
    return table


def _scope(place: bytes) -> Scope:
    return Scope(int.from_bytes(place[:2], "big"), int.from_bytes(place[2:SCOPE_BYTES], "big"))


def _carried(tables: Mapping[bytes, Table], place: bytes, raw: bytes | None) -> Carried:
    return Carried(place[:SCOPE_BYTES], _table(tables, place).name, place[PREFIX_BYTES:], raw)


def _keys(reader: Reader, rows: Iterable[Carried]) -> dict[bytes, bytes]:
    """The keys of every scope these rows may be sealed for: a row of the slot's own may be a tenant's."""
    keyring = reader.store.keys
    if keyring is None:
        return {}
    scopes = {row.scope for row in rows}
    known = set().union(*(keyring.scopes(slot) for slot in {int.from_bytes(scope[:2], "big") for scope in scopes}))
    return keyring.wrapped(known if any(scope.endswith(bytes(4)) for scope in scopes) else known & scopes)
