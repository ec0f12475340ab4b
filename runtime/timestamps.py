"""Instants: integer milliseconds since the Unix epoch inside, ISO 8601 text outside.

Everything stored and computed is an int of milliseconds, UTC; text exists only on the wire. `iso`
writes the one form every answer uses, 2026-05-08T13:56:00.000Z. `Timestamp` is the type of a
request field: a pydantic int that accepts

    2026-05-08                      midnight, UTC
    2026-05-08T13:56[:00[.123456]]  UTC, since it names no offset; a space may stand for the T
    …Z, …+02:00, …-0530, …+02       with an offset; the + may have become a space, as it does in an
                                    unescaped query string

Digits beyond the millisecond are cut off. Numbers, other text and instants outside the years 1 to
9999 (UTC) are refused. `EndTimestamp` is the same for what a question reaches up to, the end
included: there a date alone is the last millisecond of its day. `ExclusiveEndTimestamp` is the one
for an end that is not included: there it is the next midnight.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)
MS_MIN = (datetime.min - _EPOCH) // _MILLISECOND
MS_MAX = (datetime.max - _EPOCH) // _MILLISECOND
TEXT_CHARS_MAX = 64
DATE_CHARS = 10  # the shortest text that is read; every other has a time
TEXTS_CACHED_MAX = 16_384

_SHAPE = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:[Tt ](?P<clock>\d\d:\d\d(?::\d\d)?)(?:[.,](?P<fraction>\d+))?"
    r"(?:[Zz]|(?P<sign>[+\- ])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?)?)?",
    re.ASCII,
)


@lru_cache(maxsize=TEXTS_CACHED_MAX)
def iso(ms: int) -> str:
    """Unix milliseconds -> "2026-05-08T13:56:00.000Z". OverflowError outside the years 1 to
    9999.
    """
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") + "Z"


def parse(text: str) -> int:
    """ISO 8601 text, as the module docstring lists it -> Unix milliseconds. ValueError for anything
    else.
    """
    match = _SHAPE.fullmatch(text) if len(text) <= TEXT_CHARS_MAX else None
    if match is None or (match["fraction"] and match["clock"].count(":") < 2):
        raise ValueError("not an ISO 8601 date and time")
    moment = datetime.fromisoformat(f"{match['date']}T{match['clock'] or '00:00'}")
    ms = (
        (moment - _EPOCH) // _MILLISECOND
        + int((match["fraction"] or "0").ljust(3, "0")[:3])
        - _offset_ms(match)
    )
    if not MS_MIN <= ms <= MS_MAX:
        raise ValueError("outside the years 1 to 9999")
    return ms


def parse_end(text: str) -> int:
    """As `parse`; of a date without a time the last millisecond of that day."""
    return parse(text) + (DAY_MS - 1 if len(text) == DATE_CHARS else 0)


def parse_exclusive_end(text: str) -> int:
    """As `parse`; of a date without a time the next midnight."""
    return parse(text) + (DAY_MS if len(text) == DATE_CHARS else 0)


def _offset_ms(match: re.Match[str]) -> int:
    if match["sign"] is None:
        return 0
    hours, minutes = int(match["hours"]), int(match["minutes"] or "0")
    if hours > 23 or minutes > 59:
        raise ValueError("not an offset from UTC")
    offset = (hours * 60 + minutes) * 60_000
    return -offset if match["sign"] == "-" else offset


def _read_by(read: Callable[[str], int]) -> PlainValidator:
    def validated(value: Any) -> int:
        try:
            if isinstance(value, str):
                return read(value)
        except ValueError:
            pass  # refused below, in words that do not repeat the value
        raise PydanticCustomError(
            "datetime_parsing",
            "Input should be an ISO 8601 date and time such as 2026-05-08T13:56:00Z",
        )

    return PlainValidator(validated)


_SCHEMA = WithJsonSchema({"type": "string", "format": "date-time"})

Timestamp = Annotated[int, _read_by(parse), _SCHEMA]
EndTimestamp = Annotated[int, _read_by(parse_end), _SCHEMA]
ExclusiveEndTimestamp = Annotated[int, _read_by(parse_exclusive_end), _SCHEMA]
