"""A slot's rows on their way from one store to another: read here, written there, compared, erased
where they were.

Rows travel opened, by the name of their table, because stores give their tables codes of their own
and seal under salts of their own; the tenants' data keys travel as they are kept, wrapped by the
service's key, which both stores have. So digests in keys, which derive from a data key, stay what
they are. A row that carries a commit's sequence gets that of the commit that writes it.

`Piece` is plain data. Writing the same piece twice, or a piece that repeats rows of an earlier one,
does no harm.

Two stores have the same rows when their digests are equal, span by span: a span is a bounded part
of one table in one scope. What counts in one store only, its table codes, seals and sequences, is
left out. A `Comparison` keeps which spans changed since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from storage.store.bound_table import PREFIX_BYTES, SCOPE_BYTES, BoundTable
from storage.store.directory import StoreError
from storage.store.keycode import decode as decode_key
from storage.store.keycode import range_end
from storage.store.schema import Scope, Table
from storage.store.transaction import OpenStore, Reader, Transaction

_LEADING, _OTHERS = b"l", b"o"  # before the key that a piece ends with
_TABLE_ENDED = b"\xff"  # behind every key of a table; a key may end with it, and none begins so


class Carried(NamedTuple):
    """One row: whose it is (6 bytes), its table, the key inside both, and its opened bytes; None
    where it is gone.
    """

    scope: bytes
    table: str
    key: bytes
    raw: bytes | None


class Piece(NamedTuple):
    """Some rows, and the wrapped keys they are sealed with. after: where reading goes on; b"" at
    the end.
    """

    rows: list[Carried]
    keys: dict[bytes, bytes]
    after: bytes = b""


class Span(NamedTuple):
    """The rows of a table in a scope that lie behind the key `after`, up to and with `until`; None:
    to the last.
    """

    scope: bytes
    table: str
    after: bytes = b""
    until: bytes | None = None


class Digest(NamedTuple):
    """How many rows a span has, and a digest of their keys and opened bytes in order."""

    span: Span
    rows: int
    value: bytes


class Comparison:
    """Which spans two stores disagree about, or may: those that differed, and those that changed
    since they were compared.

    doubts  those spans. Of what was compared only the ends of spans are kept, and none for a table
            that is one span
    """

    def __init__(self) -> None:
        self.doubts: set[Span] = set()
        self._ends: dict[tuple[bytes, str], list[bytes]] = {}
        self._seen: set[tuple[bytes, str]] = set()  # tables of the slot that is being compared

    def begin(self, slot: int) -> None:
        """Compare all spans of the slot from here on, as they are from now on."""
        start = slot.to_bytes(2, "big")
        self.doubts = {span for span in self.doubts if not span.scope.startswith(start)}

    def add_span(self, span: Span) -> None:
        """A span that is compared; those of a table in order."""
        self._seen.add((span.scope, span.table))
        if span.until is not None:
            ends = self._ends.setdefault((span.scope, span.table), [])
            if not ends or ends[-1] < span.until:
                ends.append(span.until)

    def end(self, reader: Reader, tables: Mapping[bytes, Table], slot: int) -> None:
        """End, once all spans of the slot at the other store were learned: what is here besides is
        in doubt.
        """
        low = slot.to_bytes(2, "big")
        here = (
            (prefix[:SCOPE_BYTES], _table(tables, prefix).name)
            for prefix in reader.beginnings(PREFIX_BYTES, low, range_end(low))
        )
        self.doubts.update(Span(*each) for each in here if each not in self._seen)
        self._seen.clear()

    def changed(self, tables: Mapping[bytes, Table], place: bytes) -> None:
        """The row at this physical key changed."""
        scope, name, key = place[:SCOPE_BYTES], _table(tables, place).name, place[PREFIX_BYTES:]
        ends = self._ends.get((scope, name), [])
        number = bisect_left(ends, key)
        self.doubts.add(
            Span(
                scope,
                name,
                ends[number - 1] if number else b"",
                ends[number] if number < len(ends) else None,
            )
        )


def read(
    reader: Reader, tables: Mapping[bytes, Table], slot: int, after: bytes, bytes_max: int
) -> Piece:
    """The slot's rows, first those of tables that lead, behind where a piece ended (b"": from
    the start), about `bytes_max` bytes of them.
    """
    rows, size = [], 0
    for leads in (True, False) if after[:1] != _OTHERS else (False,):
        passed = _LEADING if leads else _OTHERS
        begun = after[1:] if after[:1] == passed else b""
        for place, raw in _items(reader, tables, slot, begun, leads=leads):
            rows.append(_carried(tables, place, raw))
            size += len(place) + len(raw)
            if size >= bytes_max:
                return Piece(rows, _keys(reader, rows), passed + place)
    return Piece(rows, _keys(reader, rows))


def read_changed(
    reader: Reader, tables: Mapping[bytes, Table], places: Iterable[bytes]
) -> list[Carried]:
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
    for prefix in reader.beginnings(
        PREFIX_BYTES, slot.to_bytes(2, "big"), range_end(slot.to_bytes(2, "big"))
    ):
        if prefix[SCOPE_BYTES:] in tables:
            bound = BoundTable(reader, _table(tables, prefix), prefix)
            total += sum(len(place) + len(raw) for place, raw in bound.items())
    return total


def digests(
    reader: Reader,
    tables: Mapping[bytes, Table],
    slot: int,
    after: bytes,
    bytes_max: int,
    span_bytes: int,
) -> tuple[list[Digest], bytes]:
    """Of the slot's rows behind `after` (b"": from the start), about `bytes_max` bytes of them; ->
    and where to go on, b"" at the end.
    """
    found, size = [], 0
    low = slot.to_bytes(2, "big")
    rest = reader.beginnings(
        PREFIX_BYTES, range_end(after[:PREFIX_BYTES]) if after else low, range_end(low)
    )
    begun = [after[:PREFIX_BYTES]] if after and after[PREFIX_BYTES:] != _TABLE_ENDED else []
    for prefix in (*begun, *rest) if begun else rest:
        start = after[PREFIX_BYTES:] if begun and prefix == begun[0] else b""
        table = _table(tables, prefix)
        while True:
            part, weighed = _digest(
                reader, table, Span(prefix[:SCOPE_BYTES], table.name, start), span_bytes
            )
            found.append(part)
            size += weighed
            if size >= bytes_max:
                return found, prefix + (
                    _TABLE_ENDED if part.span.until is None else part.span.until
                )
            if part.span.until is None:
                break
            start = part.span.until
    return found, b""


def digest(reader: Reader, tables: Mapping[str, Table], span: Span) -> Digest:
    """Of the rows of a span as they are here."""
    return _digest(reader, tables[span.table], span, None)[0]


def _digest(reader: Reader, table: Table, span: Span, bytes_max: int | None) -> tuple[Digest, int]:
    """-> and how many bytes they take. With `bytes_max` the span ends there."""
    value, rows, size = blake2b(digest_size=16), 0, 0
    bound = reader.bind(table, _scope(span.scope))
    for place, raw in bound.items(decode_key(span.after) if span.after else None):
        key, row = place[PREFIX_BYTES:], raw[8:] if table.stamped else raw
        if span.until is not None and key > span.until:
            break
        value.update(b"%d %d " % (len(key), len(row)) + key + row)
        rows, size = rows + 1, size + len(place) + len(row)
        if bytes_max is not None and size >= bytes_max:
            return Digest(span._replace(until=key), rows, value.digest()), size
    return Digest(span, rows, value.digest()), size


def by_code(store: OpenStore, tables: Iterable[Table]) -> dict[bytes, Table]:
    """The declared tables by their code in this store's keys."""
    return {store.places[table.name][0]: table for table in tables}


def _items(
    reader: Reader, tables: Mapping[bytes, Table], slot: int, after: bytes, *, leads: bool
) -> Iterator[tuple[bytes, bytes]]:
    """(physical key, opened bytes) of the slot, of tables that lead or of all others, table by
    table.
    """
    low = slot.to_bytes(2, "big")
    if after:
        yield from _rest(reader, tables, after[:PREFIX_BYTES], after)
        low = range_end(after[:PREFIX_BYTES])
    for prefix in reader.beginnings(PREFIX_BYTES, low, range_end(slot.to_bytes(2, "big"))):
        if _table(tables, prefix).leads == leads:
            yield from _rest(reader, tables, prefix, b"")


def _rest(
    reader: Reader, tables: Mapping[bytes, Table], prefix: bytes, after: bytes
) -> Iterator[tuple[bytes, bytes]]:
    bound = reader.bind(_table(tables, prefix), _scope(prefix))
    yield from bound.items(decode_key(after[PREFIX_BYTES:]) if after else None)


def _table(tables: Mapping[bytes, Table], place: bytes) -> Table:
    table = tables.get(place[SCOPE_BYTES:PREFIX_BYTES])
    if table is None:
        raise StoreError(
            f"slot {int.from_bytes(place[:2], 'big')} has rows of a plugin that is not installed; "
            "they cannot be moved."
        )
    return table


def _scope(place: bytes) -> Scope:
    return Scope(int.from_bytes(place[:2], "big"), int.from_bytes(place[2:SCOPE_BYTES], "big"))


def _carried(tables: Mapping[bytes, Table], place: bytes, raw: bytes | None) -> Carried:
    return Carried(place[:SCOPE_BYTES], _table(tables, place).name, place[PREFIX_BYTES:], raw)


def _keys(reader: Reader, rows: Iterable[Carried]) -> dict[bytes, bytes]:
    """The keys of every scope these rows may be sealed for: a row of the slot's own may be a
    tenant's.
    """
    keyring = reader.store.keys
    if keyring is None:
        return {}
    scopes = {row.scope for row in rows}
    known = set().union(
        *(keyring.scopes(slot) for slot in {int.from_bytes(scope[:2], "big") for scope in scopes})
    )
    return keyring.wrapped(
        known if any(scope.endswith(bytes(4)) for scope in scopes) else known & scopes
    )
