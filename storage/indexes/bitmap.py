"""Which ordinals carry which field value, as roaring bitmaps.

It owns one table per index. It does not know what an ordinal names or why a field exists; whoever
writes a row adds and removes its values in the same transaction.

Key layout of table `<index>.bitmaps`: (field, value, chunk) → serialized roaring bitmap of the
ordinals in [chunk · 65,536, (chunk + 1) · 65,536). An insert so rewrites at most 8 KiB per value,
far less where ordinals are few or dense.

Invariant: a stored bitmap is never empty, so the values of a field are exactly those some ordinal
carries. A value is an int (signed 64 bits) or a str. Keys cannot be sealed, and a tag or a name is
somebody's text: so a str stands in them as 16 bytes of BLAKE2b, keyed with the tenant's secret. It
is found, but neither read back nor ordered. Two declarations bend that:

    plain     fields whose texts are words of ours (a status, a tier), kept as they are, so that
              `values` and `range` know them; long ones in the shortened form of keycode.short
    prefixed  fields that are also looked up by the beginnings of their texts, up to
              PREFIX_CHARS_MAX characters: a digest each
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from pyroaring import BitMap

from storage.indexes.index import Index
from storage.store import BoundTable, Reader, Scope, Table, short

Value = int | str
StoredValue = int | str | bytes

DIGEST_BYTES = 16
PREFIX_CHARS_MAX = 32
CHUNK_BITS = 16
RUN_OPTIMIZE_BYTES_MIN = 256
VALUE_BYTES_MAX = 200


@dataclass(frozen=True)
class BitmapIndex(Index):
    """A declared index: its name and the fields it may hold. See the module docstring for `plain`
    and `prefixed`.

    version  raised when rows carry other values than before; the bitmaps are then made again by
             `rebuild` of Store.open
    """

    name: str
    fields: tuple[str, ...]
    plain: tuple[str, ...] = ()
    prefixed: tuple[str, ...] = ()
    version: int = 2
    tables: tuple[Table, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        doc = f"ordinals by value of {', '.join(self.fields)}"
        unknown = {*self.plain, *self.prefixed} - set(self.fields)
        if unknown:
            raise ValueError(f"index {self.name!r} has no field {min(unknown)!r}")
        key, kept = (
            ("field", "value", "chunk"),
            dict.fromkeys(range(2, self.version), lambda rows, key, secret: None),
        )
        reshape = {1: lambda rows, key, secret: _digest_value(self, rows, key, secret), **kept}
        object.__setattr__(
            self,
            "tables",
            (Table(f"{self.name}.bitmaps", key, bytes, self.version, doc=doc, reshape=reshape),),
        )

    def bind(self, reader: Reader, scope: Scope) -> BoundBitmaps:
        """The index inside one reader and one tenant."""
        return BoundBitmaps(reader.bind(self.tables[0], scope), self, reader.secret(scope))


class BoundBitmaps:
    """The bitmaps of one tenant. Every field given must be declared, else ValueError. Bitmaps
    returned are the caller's own.
    """

    __slots__ = ("_index", "_keyed", "_secret", "_table")

    def __init__(self, table: BoundTable[bytes], index: BitmapIndex, secret: bytes):
        self._table = table
        self._index = index
        self._secret = secret
        self._keyed = _keyed(secret)

    def add(self, ordinal: int, field: str, value: Value) -> None:
        """Ordinal (uint32) carries value. Adding it twice changes nothing."""
        self.add_each((ordinal,), field, value)

    def add_each(self, ordinals: Sequence[int], field: str, value: Value) -> None:
        """Each ordinal carries value. In ascending order they cost little more than one."""
        for chunk, members in itertools.groupby(ordinals, key=_chunk):
            added = BitMap(members, optimize=False)
            for stored in self.places(field, value):
                self._put((field, stored, chunk), added)

    def remove(self, ordinal: int, field: str, value: Value) -> None:
        """Take the value from the ordinal; nothing happens when it had none."""
        self.remove_each((ordinal,), field, value)

    def remove_each(self, ordinals: Sequence[int], field: str, value: Value) -> None:
        """Take the value from each ordinal. In ascending order they cost little more than one."""
        for chunk, members in itertools.groupby(ordinals, key=_chunk):
            removed = BitMap(members)
            for stored in self.places(field, value):
                self._take((field, stored, chunk), removed)

    def _put(self, key: tuple[str, StoredValue, int], added: BitMap) -> None:
        raw = self._table.get_raw(*key)
        bitmap = added if raw is None else BitMap.deserialize(raw) | added
        if raw is not None and len(raw) > RUN_OPTIMIZE_BYTES_MIN:
            bitmap.run_optimize()
        self._table.put_raw(key, bitmap.serialize())

    def _take(self, key: tuple[str, StoredValue, int], removed: BitMap) -> None:
        raw = self._table.get_raw(*key)
        if raw is None:
            return
        bitmap = BitMap.deserialize(raw) - removed
        if bitmap:
            self._table.put_raw(key, bitmap.serialize())
        else:
            self._table.delete(*key)

    def of(self, field: str, value: Value) -> BitMap:
        """The ordinals that carry this value; empty when there are none."""
        return self.of_each(field, [value])[0]

    def have_each(self, field: str, values: Sequence[str]) -> list[bool]:
        """Whether any ordinal carries the value, of each; reads keys alone. ValueError for a plain
        field.
        """
        if self._checked(field) in self._index.plain:
            raise ValueError(f"the field {field!r} of index {self._index.name!r} is plain")
        kept = [short(value, VALUE_BYTES_MAX) for value in values]
        return self._table.have_each((field,), _digests_by(self._keyed, field, kept))

    def of_each(self, field: str, values: Sequence[Value]) -> list[BitMap]:
        """As of, for several values, aligned with them. Reading them at once costs little more than
        reading one.
        """
        texts = [value for value in values if isinstance(value, str)]
        if self._checked(field) in self._index.plain or len(texts) < len(values):
            return self.of_pairs([(field, value) for value in values])
        kept = [short(text, VALUE_BYTES_MAX) for text in texts]
        return self._of([(field, each) for each in _digests_by(self._keyed, field, kept)])

    def of_pairs(self, pairs: Iterable[tuple[str, Value]]) -> list[BitMap]:
        """As of_each, for values of several fields."""
        return self._of(
            [(self._checked(field), self._stored(field, value)) for field, value in pairs]
        )

    def _of(self, places: Sequence[Any]) -> list[BitMap]:
        found = self._table.raw_under_each(places)
        return [_union([raw for _, raw in chunks]) if chunks else BitMap() for chunks in found]

    def starting_with(self, field: str, prefix: str) -> BitMap:
        """The ordinals whose text in a prefixed field begins with this, or with its first
        PREFIX_CHARS_MAX characters if it is longer.
        """
        if self._checked(field) not in self._index.prefixed:
            raise ValueError(
                f"the field {field!r} of index {self._index.name!r} is not declared prefixed"
            )
        if not prefix:
            return _union(raw for key, raw in self._table.scan(field) if isinstance(key[1], bytes))
        return _union(
            raw
            for _, raw in self._table.scan(
                field, _prefix_digest(self._secret, field, prefix[:PREFIX_CHARS_MAX])
            )
        )

    def any_of(self, field: str, values: Iterable[Value]) -> BitMap:
        """The ordinals that carry at least one of the values."""
        return BitMap().union(*self.of_each(field, list(values)))

    def range(self, field: str, low: Value | None = None, high: Value | None = None) -> BitMap:
        """The ordinals with a value in [low, high], both inclusive; None is unbounded. Only values
        of the bounds' kind count.

        Costs one read per distinct value in the range. Texts have an order in plain fields only.
        """
        if (
            any(isinstance(bound, str) for bound in (low, high))
            and self._checked(field) not in self._index.plain
        ):
            raise ValueError(
                f"the texts of field {field!r} of index {self._index.name!r} are kept as digests, "
                "which have no order"
            )
        bounds: list[Any] = [
            self._stored(field, bound) for bound in (low, high) if bound is not None
        ]
        found = self.any_of(
            self._checked(field), {bound for bound in bounds if bounds[0] <= bound <= bounds[-1]}
        )
        after = (field, bounds[0]) if low is not None else None
        before = (field, bounds[-1]) if high is not None else None
        kinds = tuple({type(bound) for bound in bounds}) or (int, str, bytes)
        found |= _union(
            raw
            for key, raw in self._table.scan(field, after=after, before=before)
            if isinstance(key[1], kinds)
        )
        return found

    def values(
        self, field: str, limit: int, within: BitMap | None = None
    ) -> list[tuple[Value, int]]:
        """Up to `limit` values and how many ordinals (of `within`, when given) carry each: most
        first, then in value order.

        Costs one read per distinct value of the field. ValueError for a field with texts that is
        not plain: they are not known.
        """
        counts: dict[Value, int] = {}
        for (_, value, _), raw in self._table.scan(self._checked(field)):
            if isinstance(value, bytes):
                raise ValueError(
                    f"the texts of field {field!r} of index {self._index.name!r} are kept as "
                    "digests"
                )
            bitmap = BitMap.deserialize(raw)
            counts[value] = counts.get(value, 0) + (
                len(bitmap) if within is None else bitmap.intersection_cardinality(within)
            )
        present = ((value, count) for value, count in counts.items() if count)
        return heapq.nsmallest(limit, present, key=lambda entry: -entry[1])

    def has_any(self, field: str) -> bool:
        """Whether any ordinal carries a value in this field; reads one key."""
        return next(iter(self._table.keys(self._checked(field), limit=1)), None) is not None

    def count(self, field: str, value: Value) -> int:
        """How many ordinals carry the value."""
        return sum(
            len(BitMap.deserialize(raw))
            for _, raw in self._table.scan(self._checked(field), self._stored(field, value))
        )

    def each(self, *field: str) -> Iterator[tuple[tuple[str, StoredValue], BitMap]]:
        """Every ((field, value in its stored form), its ordinals), in order; of one field, when it
        is given.
        """
        for place, chunks in itertools.groupby(
            self._table.scan(*field), key=lambda entry: entry[0][:2]
        ):
            yield place, _union(raw for _, raw in chunks)

    def assign(self, field: str, stored: StoredValue, ordinals: BitMap) -> None:
        """Have exactly these ordinals carry the value, which is given as `each` gives it."""
        self._table.delete_prefix(self._checked(field), stored)
        for chunk, members in itertools.groupby(ordinals, key=_chunk):
            bitmap = BitMap(members)
            bitmap.run_optimize()
            self._table.put_raw((field, stored, chunk), bitmap.serialize())

    def places(self, field: str, value: Value) -> list[StoredValue]:
        """Every stored form a value is found under: itself, and its beginnings in a prefixed
        field.
        """
        places = [self._stored(self._checked(field), value)]
        if field in self._index.prefixed and isinstance(value, str):
            places += _prefix_digests(self._secret, field, value)
        return places

    def _stored(self, field: str, value: Value) -> StoredValue:
        if not isinstance(value, str):
            return int(value)
        kept = short(value, VALUE_BYTES_MAX)
        return kept if field in self._index.plain else _digest_by(self._keyed, field, kept)

    def _checked(self, field: str) -> str:
        if field not in self._index.fields:
            raise ValueError(f"index {self._index.name!r} has no field {field!r}")
        return field


def _chunk(ordinal: int) -> int:
    return ordinal >> CHUNK_BITS


def _keyed(secret: bytes, what: bytes = b"text") -> blake2b:
    """What digests begin with: that of many texts copies it."""
    return blake2b(digest_size=DIGEST_BYTES, key=secret, person=what)


def _digests_by(keyed: blake2b, field: str, texts: Iterable[str]) -> list[bytes]:
    begun, digests = keyed.copy(), []
    begun.update(b"%b\0" % field.encode())
    for text in texts:
        each = begun.copy()
        each.update(text.encode())
        digests.append(each.digest())
    return digests


def _digest_by(keyed: blake2b, field: str, text: str) -> bytes:
    return _digests_by(keyed, field, [text])[0]


def _digest(secret: bytes, field: str, text: str, what: bytes = b"text") -> bytes:
    return _digest_by(_keyed(secret, what), field, text)


def _prefix_digest(secret: bytes, field: str, prefix: str) -> bytes:
    return _digest(secret, field, prefix, b"prefix")


def _prefix_digests(secret: bytes, field: str, text: str) -> list[StoredValue]:
    return [
        _prefix_digest(secret, field, text[:size])
        for size in range(1, min(len(text), PREFIX_CHARS_MAX) + 1)
    ]


def _digest_value(
    index: BitmapIndex, rows: BoundTable[bytes], key: tuple[Any, ...], secret: bytes
) -> None:
    """Bring a row of version 1, in which every text stood in its key, to version 2."""
    # Long texts were kept shortened, which is how they are digested too.
    name, value, chunk = key
    if isinstance(value, str) and name not in index.plain:
        moved = BitMap.deserialize(rows.get_raw(*key) or b"")
        rows.delete(*key)
        beginnings = _prefix_digests(secret, name, value) if name in index.prefixed else []
        for place in (_digest(secret, name, value), *beginnings):
            known = rows.get_raw(name, place, chunk)
            joined = moved if known is None else moved | BitMap.deserialize(known)
            rows.put_raw((name, place, chunk), joined.serialize())


def _union(chunks: Iterable[bytes]) -> BitMap:
    found = [BitMap.deserialize(raw) for raw in chunks]
    return found[0] if len(found) == 1 else BitMap().union(*found)
