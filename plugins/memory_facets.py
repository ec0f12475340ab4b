"""Values of a memory that can be filtered by, as texts whose order is theirs, so that a bitmap index answers equality and ranges.

A metadata value is known by its path: the keys that lead to it, joined by dots; what stands in a list has the list's path. Each
becomes one text, path ‖ NUL ‖ kind ‖ value:

    n  number   16 hexadecimal digits that sort as the numbers do, and 4 more for an integer that no float64 is; 1 and 1.0 are one value
    s  text     itself; what is longer than the index keeps is cut, and known by its beginning and a digest
    b  true, false          z  null

A path of more than PATH_BYTES_MAX bytes is cut in the same way. Empty objects and lists hold no value. Only so many values of one
memory are indexed (METADATA_VALUES_INDEXED_MAX), in the order of its keys; the rest is stored, and not found by filters. The
importance is a number too.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

from runtime.limits import METADATA_VALUES_INDEXED_MAX
from storage.keycode import beginning

FACET_FIELDS = ("metadata", "importance", "source", "source_reference", "title")
PATH_BYTES_MAX = 96
_PATH_END = "\0"
_LAST = "\x7f"  # sorts after every kind
_INTEGER_MAX = 1 << 1023  # what is larger is no float64


def facet_marks(
    metadata: dict[str, Any], importance: float, source: str | None, source_reference: str | None, title: str | None
) -> set[tuple[str, int | str]]:
    """Every (field, value) of FACET_FIELDS that a memory carries."""
    marks: set[tuple[str, int | str]] = {("importance", number_text(importance))}
    marks.update(("metadata", value) for value in islice(_values(metadata), METADATA_VALUES_INDEXED_MAX))
    given = (("source", source), ("source_reference", source_reference), ("title", title))
    return marks | {(name, value) for name, value in given if value is not None}


def metadata_value(path: str, value: str | float | bool | None) -> str:
    """The text that stands for one value under one path."""
    return _path(path) + _kind(value)


def metadata_span(path: str, kind: str = "") -> tuple[str, str]:
    """(low, high) around every value under the path; of one kind ("n", "s") when given."""
    start = _path(path) + kind
    return start, _path(path) + (chr(ord(kind) + 1) if kind else _LAST)


def below(path: str) -> tuple[str, str]:
    """(low, high) around every value of the paths that lead on from this one."""
    return f"{path}.", f"{path}/"


def metadata_text(stored: str, path: str) -> str | None:
    """The text that a stored value under this path stands for; None for a value of another kind."""
    kind, text = stored[len(_path(path)) :][:1], stored[len(_path(path)) + 1 :]
    return text if kind == "s" else None


def metadata_texts(metadata: dict[str, Any], path: str) -> Iterator[str]:
    """The texts that a metadata object holds under the path."""
    return (value for at, value in _leaves(metadata, "") if at == path and isinstance(value, str))


def shown_value(stored: str, path: str) -> str | int | float | bool | None:
    """The value that a stored one under this path stands for, as JSON has it; of a cut text its beginning."""
    told = stored[len(_path(path)) :]
    if told[:1] == "n":
        return _number(told[1:])
    return {"btrue": True, "bfalse": False, "z": None}[told] if told[:1] in "bz" else beginning(told[1:])


def number_text(number: float) -> str:
    """A text for each number, in the order of the numbers: 16 hexadecimal digits of the float64 or the one below, then what is missing."""
    base = float(number)
    if base > number:
        base = math.nextafter(base, -math.inf)
    bits = int.from_bytes(struct.pack(">d", base + 0.0), "big")
    digits = f"{bits ^ ((1 << 64) - 1 if bits >> 63 else 1 << 63):016x}"
    return digits if base == number else f"{digits}{number - int(base):04x}"


def _number(text: str) -> int | float:
    """The number that a text of number_text stands for; whole ones as integers."""
    bits = int(text[:16], 16)
    bits ^= 1 << 63 if bits >> 63 else (1 << 64) - 1
    base = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    return int(base) + int(text[16:] or "0", 16) if base.is_integer() else base


def _path(path: str) -> str:
    """The path as values begin with it: a long one by its beginning and a digest, so that room is left for the value."""
    raw = path.encode()
    if len(raw) > PATH_BYTES_MAX:
        path = raw[: PATH_BYTES_MAX - 64].decode(errors="ignore") + hashlib.sha256(raw).hexdigest()
    return path.replace(_PATH_END, " ") + _PATH_END


def _kind(value: str | float | bool | None) -> str:
    if value is None:
        return "z"
    if isinstance(value, bool):
        return "btrue" if value else "bfalse"
    return f"n{number_text(value)}" if isinstance(value, int | float) else f"s{value}"


def _values(metadata: dict[str, Any]) -> Iterator[str]:
    for path, value in _leaves(metadata, ""):
        if path and not (isinstance(value, int) and abs(value) >= _INTEGER_MAX):
            yield metadata_value(path, value)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, value
