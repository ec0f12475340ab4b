"""Counts what a snapshot reads, so that a read that turns out too large can be refused while it
runs.

The count is taken where rows leave LMDB, below tables and indexes, so that whoever reads need not
know of it. A row that is only passed over by its key counts as one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol


class Meter(Protocol):
    def spend(self, rows: int, size: int) -> None:
        """Take note of rows that were read, and of their bytes; raises what ends the read."""
        ...


class MeteredTransaction:
    """A read transaction of LMDB whose reads are counted."""

    def __init__(self, inner: Any, meter: Meter):
        self._inner, self._meter = inner, meter

    def get(self, key: bytes, *given: Any, **named: Any) -> Any:
        raw = self._inner.get(key, *given, **named)
        self._meter.spend(1, 0 if raw is None else len(raw))
        return raw

    def cursor(self, *given: Any, **named: Any) -> MeteredCursor:
        return MeteredCursor(self._inner.cursor(*given, **named), self._meter)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class MeteredCursor:
    """A cursor whose steps are counted."""

    def __init__(self, inner: Any, meter: Meter):
        self._inner, self._meter = inner, meter

    def __enter__(self) -> MeteredCursor:
        return self

    def __exit__(self, *_: object) -> None:
        self._inner.close()

    def getmulti(self, keys: list[bytes]) -> list[tuple[bytes, bytes]]:
        found = self._inner.getmulti(keys)
        self._meter.spend(len(keys), sum(len(raw) for _, raw in found))
        return found

    def set_range(self, key: bytes) -> bool:
        self._meter.spend(1, 0)
        return self._inner.set_range(key)

    def iternext(self, keys: bool, values: bool) -> Iterator[Any]:
        spend = self._meter.spend
        for item in self._inner.iternext(keys, values):
            spend(1, len(item[1]) if values and keys else 0)
            yield item

    def iterprev(self, keys: bool, values: bool) -> Iterator[Any]:
        spend = self._meter.spend
        for item in self._inner.iterprev(keys, values):
            spend(1, 0)
            yield item

    def value(self) -> bytes:
        raw = self._inner.value()
        self._meter.spend(0, len(raw))
        return raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
