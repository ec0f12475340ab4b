"""The filter algebra over a bitmap index: conditions as values, evaluated on a tenant's bitmaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyroaring import BitMap

from storage.indexes.bitmap import BoundBitmaps, Value


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
class AllOf:
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
class AnyOf:
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
