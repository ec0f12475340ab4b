"""Which ordinals carry which field value, as roaring bitmaps; and the filter algebra over them.

It owns one table per index. It does not know what an ordinal names or why a field exists; whoever writes a row adds and removes
its values in the same transaction.

Key layout of table `<index>.bitmaps`: (field, value, chunk) → serialized roaring bitmap of the ordinals in
[chunk · 65,536, (chunk + 1) · 65,536). An insert so rewrites at most 8 KiB per value, far less where ordinals are few or dense.

Invariant: a stored bitmap is never empty, so the values of a field are exactly those some ordinal carries. A value is an int
(signed 64 bits) or a str; long strings are kept in the shortened form of keycode.short, which is what `values` gives back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from pyroaring import BitMap

from storage.keycode import short
from storage.table import BoundTable, Reader, Scope, Table

Value = int | str

CHUNK_BITS = 16
RUN_OPTIMIZE_BYTES_MIN = 256
VALUE_BYTES_MAX = 200


@dataclass(frozen=True)
class BitmapIndex:
    """A declared index: its name and the fields it may hold."""

    name: str
    fields: tuple[str, ...]
    tables: tuple[Table, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        doc = f"ordinals by value of {', '.join(self.fields)}"
        object.__setattr__(self, "tables", (Table(f"{self.name}.bitmaps", key=("field", "value", "chunk"), row=bytes, doc=doc),))

    def bind(self, reader: Reader, scope: Scope) -> BoundBitmaps:
        """The index inside one reader and one tenant."""
        return BoundBitmaps(reader.bind(self.tables[0], scope), self)


class BoundBitmaps:
    """The bitmaps of one tenant. Every field given must be declared, else ValueError. Bitmaps returned are the caller's own."""

    __slots__ = ("_fields", "_index", "_table")

    def __init__(self, table: BoundTable[bytes], index: BitmapIndex):
        self._table = table
        self._index = index
        self._fields = frozenset(index.fields)

    def add(self, ordinal: int, field: str, value: Value) -> None:
        """Ordinal (uint32) carries value. Adding it twice changes nothing."""
        key = self._key(ordinal, field, value)
        raw = self._table.get_raw(*key)
        bitmap = BitMap() if raw is None else BitMap.deserialize(raw)
        bitmap.add(ordinal)
        if raw is not None and len(raw) > RUN_OPTIMIZE_BYTES_MIN:
            bitmap.run_optimize()
        self._table.put_raw(key, bitmap.serialize())

    def remove(self, ordinal: int, field: str, value: Value) -> None:
        """Ordinal no longer carries value; nothing happens when it did not."""
        key = self._key(ordinal, field, value)
        raw = self._table.get_raw(*key)
        if raw is None:
            return
        bitmap = BitMap.deserialize(raw)
        bitmap.discard(ordinal)
        if bitmap:
            self._table.put_raw(key, bitmap.serialize())
        else:
            self._table.delete(*key)

    def of(self, field: str, value: Value) -> BitMap:
        """The ordinals that carry this value; empty when there are none."""
        return _union(raw for _, raw in self._table.raw_under(self._checked(field), _stored(value)))

    def any_of(self, field: str, values: Iterable[Value]) -> BitMap:
        """The ordinals that carry at least one of the values."""
        return BitMap().union(*[self.of(field, value) for value in values])

    def range(self, field: str, low: Value | None = None, high: Value | None = None) -> BitMap:
        """The ordinals with a value in [low, high], both inclusive; None is unbounded. Only values of the bounds' kind count.

        Costs one read per distinct value in the range.
        """
        self._checked(field)
        bounds = [_stored(bound) for bound in (low, high) if bound is not None]
        found = self.any_of(field, {bound for bound in bounds if bounds[0] <= bound <= bounds[-1]})
        after = (field, _stored(low)) if low is not None else None
        before = (field, _stored(high)) if high is not None else None
        kinds = tuple({type(bound) for bound in bounds}) or (int, str)
        found |= _union(raw for key, raw in self._table.scan(field, after=after, before=before) if isinstance(key[1], kinds))
        return found

    def where(self, field: str, low: Value | None, high: Value | None, test: Callable[[Value], bool]) -> BitMap:
        """The ordinals with a value between low and high, both exclusive, None unbounded, that passes the test.

        Costs one read and one call per distinct value in the range.
        """
        after = (field, _stored(low)) if low is not None else None
        before = (field, _stored(high)) if high is not None else None
        found = self._table.scan(self._checked(field), after=after, before=before)
        return _union([raw for (_, value, _), raw in found if test(value)])

    def values(
        self, field: str, limit: int, within: BitMap | None = None, low: Value | None = None, high: Value | None = None
    ) -> list[tuple[Value, int]]:
        """Up to `limit` values and how many ordinals (of `within`, when given) carry each: most first, then in value order.

        low, high: only values between them count, both exclusive; None is unbounded. Costs one read per distinct value there.
        """
        after = (field, _stored(low)) if low is not None else None
        before = (field, _stored(high)) if high is not None else None
        counts: dict[Value, int] = {}
        for (_, value, _), raw in self._table.scan(self._checked(field), after=after, before=before):
            bitmap = BitMap.deserialize(raw)
            counts[value] = counts.get(value, 0) + (len(bitmap) if within is None else bitmap.intersection_cardinality(within))
        present = ((value, count) for value, count in counts.items() if count)
        return heapq.nsmallest(limit, present, key=lambda entry: -entry[1])

    def count(self, field: str, value: Value) -> int:
        """How many ordinals carry the value."""
        return sum(len(BitMap.deserialize(raw)) for _, raw in self._table.scan(self._checked(field), _stored(value)))

    def _key(self, ordinal: int, field: str, value: Value) -> tuple[str, Value, int]:
        return (self._checked(field), _stored(value), ordinal >> CHUNK_BITS)

    def _checked(self, field: str) -> str:
        if field not in self._fields:
            raise ValueError(f"index {self._index.name!r} has no field {field!r}")
        return field


def _stored(value: Value) -> Value:
    return short(value, VALUE_BYTES_MAX) if isinstance(value, str) else int(value)


def _union(chunks: Iterable[bytes]) -> BitMap:
    found = [BitMap.deserialize(raw) for raw in chunks]
    return found[0] if len(found) == 1 else BitMap().union(*found)


class Filter(Protocol):
    """A condition on ordinals. Immutable, comparable, and independent of any store."""

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        """The ordinals of `universe` that meet the condition."""
        ...


@dataclass(frozen=True)
class Equals:
    """The field has this value."""

    field: str
    value: Value

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        return bound.of(self.field, self.value) & universe


@dataclass(frozen=True)
class Between:
    """The field has a value in [low, high]; None is unbounded."""

    field: str
    low: Value | None = None
    high: Value | None = None

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        return bound.range(self.field, self.low, self.high) & universe


@dataclass(frozen=True, init=False)
class All:
    """Every condition holds; all of the universe when there is none."""

    filters: tuple[Filter, ...]

    def __init__(self, *filters: Filter):
        object.__setattr__(self, "filters", filters)

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        found = universe.copy()
        for condition in self.filters:
            if not found:
                break
            found = condition.evaluate(bound, found)
        return found


@dataclass(frozen=True, init=False)
class Any:
    """At least one condition holds; nothing when there is none."""

    filters: tuple[Filter, ...]

    def __init__(self, *filters: Filter):
        object.__setattr__(self, "filters", filters)

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        return BitMap().union(*[condition.evaluate(bound, universe) for condition in self.filters])


@dataclass(frozen=True)
class Not:
    """The condition does not hold."""

    condition: Filter

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        return universe - self.condition.evaluate(bound, universe)
