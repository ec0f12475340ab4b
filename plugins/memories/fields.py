"""Values of a memory that can be filtered by, as entries of its bitmap index.

A metadata value is known by its path: the keys that lead to it, joined by dots; what stands in a
list has the list's path.

    metadata         path ‖ NUL ‖ kind ‖ value, for equality; kinds are n number (1 and 1.0 are one
                     value), s text, b true or false, z null
    metadata_path    the path, and each path that leads to it, for whether there is a value
    metadata_number  hash of the path ‖ 16 hexadecimal digits that sort as the numbers do, for
                     ranges; 4 more tell integers apart that share a float
    importance       such digits
    source, source_reference, title
    source_directory  every directory that a memory is in, where the plugin that made it says so

The index keeps texts as keyed digests, so texts have no order there: filters that compare them read
the memories themselves. Only so many values of one memory are indexed
(METADATA_VALUES_INDEXED_MAX), in the order of its keys; the rest is stored, and not found by
filters.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Any

from plugins.memories.features import keyed_hash
from plugins.memories.limits import METADATA_VALUES_INDEXED_MAX

FACET_FIELDS = (
    "metadata",
    "metadata_path",
    "metadata_number",
    "importance",
    "source",
    "source_reference",
    "source_directory",
    "title",
)
FACETS_IN_ORDER = ("metadata_number", "importance")
_PATH_END = "\0"
_DIGITS_END = "g"  # sorts after every hexadecimal digit

Scalar = str | float | bool | None


def facet_entries(
    secret: bytes,
    metadata: dict[str, Any],
    importance: float,
    source: str | None,
    source_reference: str | None,
    title: str | None,
) -> set[tuple[str, str]]:
    """Every (field, value) of FACET_FIELDS that a memory carries by itself. secret: the tenant's,
    so that paths cannot be guessed.
    """
    entries = {("importance", number_text(importance))}
    for path, value in islice(metadata_values(metadata), METADATA_VALUES_INDEXED_MAX):
        entries |= {
            ("metadata", metadata_value(path, value)),
            *(("metadata_path", part) for part in accumulate(path.split("."), "{}.{}".format)),
        }
        if isinstance(value, int | float) and not isinstance(value, bool):
            entries.add(("metadata_number", metadata_number(secret, path, value)))
    given = (("source", source), ("source_reference", source_reference), ("title", title))
    return entries | {(name, value) for name, value in given if value is not None}


def metadata_values(metadata: Any, path: str = "") -> Iterator[tuple[str, Scalar]]:
    """(path, value) of everything in it that is no object and no list."""
    if isinstance(metadata, dict):
        for key, inner in metadata.items():
            yield from metadata_values(inner, f"{path}.{key}" if path else key)
    elif isinstance(metadata, list):
        for inner in metadata:
            yield from metadata_values(inner, path)
    elif path:
        yield path, metadata


def metadata_value(path: str, value: Scalar) -> str:
    """The text that stands for one value under one path."""
    return f"{path}{_PATH_END}{_kind(value)}"


def metadata_number(secret: bytes, path: str, number: float) -> str:
    """The text that stands for one number under one path; those of a path lie together and sort as
    the numbers do.
    """
    return _path_hash(secret, path) + number_text(number)


def metadata_numbers(secret: bytes, path: str) -> tuple[str, str]:
    """(low, high) around every number under the path."""
    start = _path_hash(secret, path)
    return start, start + _DIGITS_END


def number_text(number: float) -> str:
    """A text for each number, in the order of the numbers: 16 hexadecimal digits of the float64 or
    the one below, then what is missing.

    What no float64 holds counts as infinite.
    """
    try:
        base = float(number)
    except OverflowError:
        return _digits(math.inf if number > 0 else -math.inf)
    if base > number:
        base = math.nextafter(base, -math.inf)
    return _digits(base) if base == number else f"{_digits(base)}{number - int(base):04x}"


def _digits(number: float) -> str:
    bits = int.from_bytes(struct.pack(">d", number + 0.0), "big")
    return f"{bits ^ ((1 << 64) - 1 if bits >> 63 else 1 << 63):016x}"


def _path_hash(secret: bytes, path: str) -> str:
    return f"{keyed_hash(secret, 'metadata', path):016x}"


def _kind(value: Scalar) -> str:
    if value is None:
        return "z"
    if isinstance(value, bool):
        return "btrue" if value else "bfalse"
    return f"n{number_text(value)}" if isinstance(value, int | float) else f"s{value}"
