"""Values of a memory that can be filtered by, as texts whose order is theirs, so that a bitmap index answers equality and ranges.

A metadata value is known by its path: the keys that lead to it, joined by dots; what stands in a list has the list's path. Each
becomes one text, path ‖ NUL ‖ kind ‖ value:

    n  number   16 hexadecimal digits that sort as the numbers do; 1 and 1.0 are one value
    s  text     itself; beyond 200 bytes the index keeps its beginning and a digest
    b  true, false          z  null

Only so many values of one memory are indexed (METADATA_VALUES_INDEXED_MAX), in the order of its keys; the rest is stored, and not
found by filters. The importance is a number too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

from runtime.limits import METADATA_VALUES_INDEXED_MAX

FACET_FIELDS = ("metadata", "importance", "source", "source_reference", "title")
_PATH_END = "\0"
_LAST = "\x7f"  # sorts after every kind


def facet_marks(
    metadata: dict[str, Any], importance: float, source: str | None, source_reference: str | None, title: str | None
) -> set[tuple[str, int | str]]:
    """Every (field, value) of FACET_FIELDS that a memory carries."""
    marks: set[tuple[str, int | str]] = {("importance", number_text(importance))}
    marks.update(("metadata", value) for value in islice(_values(metadata, ""), METADATA_VALUES_INDEXED_MAX))
    given = (("source", source), ("source_reference", source_reference), ("title", title))
    return marks | {(name, value) for name, value in given if value is not None}


def metadata_value(path: str, value: str | float | bool | None) -> str:
    """The text that stands for one value under one path."""
    return _path(path) + _kind(value)


def metadata_span(path: str, kind: str = "") -> tuple[str, str]:
    """(low, high) around every value under the path; of one kind ("n", "s") when given."""
    start = _path(path) + kind
    return start, start + _LAST


def metadata_text(stored: str, path: str) -> str | None:
    """The text that a stored value under this path stands for, cut as the index cuts it; None for a value of another kind."""
    kind, text = stored[len(_path(path)) :][:1], stored[len(_path(path)) + 1 :]
    return text if kind == "s" else None


def number_text(number: float) -> str:
    """16 hexadecimal digits, in the order of the numbers."""
    bits = int.from_bytes(struct.pack(">d", number + 0.0), "big")
    return f"{bits ^ ((1 << 64) - 1 if bits >> 63 else 1 << 63):016x}"


def _path(path: str) -> str:
    return path.replace(_PATH_END, " ") + _PATH_END


def _kind(value: str | float | bool | None) -> str:
    if value is None:
        return "z"
    if isinstance(value, bool):
        return "btrue" if value else "bfalse"
    return f"n{number_text(value)}" if isinstance(value, int | float) else f"s{value}"


def _values(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner, path)
    elif path and not (isinstance(value, int) and abs(value) >= 1 << 1023):
        yield metadata_value(path, value)
