"""What is wrong with what a client sent, in our words: never the value, which may be a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from runtime.errors import ValidationFailed
from runtime.limits import VALIDATION_FINDINGS_MAX

LOC_CHARS_MAX = 64
LEAVES_COMPARED_MAX = 256

_DATE = "must be a date and time in ISO 8601, such as 2026-01-31T12:00:00Z"
_SENTENCES = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_too_short": "must be a string of length {min_length} or more",
    "string_too_long": "must be a string of length {max_length} or less",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_parsing_size": "must be an integer of ordinary size",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "set_type": "must be an array",
    "too_short": "must be of length {min_length} or more",
    "too_long": "must be of length {max_length} or less",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "union_tag_not_found": "needs the field {discriminator}",
    "datetime_type": _DATE,
    "datetime_parsing": _DATE,
    "datetime_from_date_parsing": _DATE,
    "datetime_object_invalid": _DATE,
    "timezone_aware": "must name its offset from UTC",
    "date_type": "must be a date, such as 2026-01-31",
    "date_parsing": "must be a date, such as 2026-01-31",
    "date_from_datetime_parsing": "must be a date, such as 2026-01-31",
    "date_from_datetime_inexact": "must be a date, such as 2026-01-31",
    "url_type": "must be a URL",
    "url_parsing": "must be a URL",
    "url_scheme": "must be a URL whose scheme is {expected_schemes}",
    "url_too_long": "must be a URL of at most {max_length} characters",
    "extra_forbidden": "is not a known field",
    "none_required": "must be null",
}
_NOT_VALID = "is not valid"
_LIMITS = re.compile(r"{(\w+)}")
_SPOKEN = ("value_error", "assertion_error")


def failed(invalid: ValidationError, value: Any, *root: str | int) -> ValidationFailed:
    """What pydantic found in a value, in our words, one finding for each place.

    root: "body" or "query", and the way from there.
    """
    told: dict[tuple[str | int, ...], tuple[str, list[str]]] = {}
    alternatives: set[tuple[str | int, ...]] = set()
    for found in invalid.errors(include_url=False)[:VALIDATION_FINDINGS_MAX]:
        way = tuple(_way(found["loc"], value, is_missing=found["type"] == "missing"))
        if len(way) < len(found["loc"]):
            alternatives.add(way)
        sentences = told.setdefault(way, (found["type"], []))[1]
        if (sentence := _sentence(found)) not in sentences:
            sentences.append(sentence)
    for way in alternatives:
        # Where one of the alternatives was taken, what is inside it is wrong, not the whole.
        if any(other[: len(way)] == way and other != way for other in told):
            told.pop(way, None)
    return ValidationFailed(
        [
            {"loc": [*root, *map(_place, way)], "msg": ", or ".join(sentences), "type": kind}
            for way, (kind, sentences) in told.items()
        ]
    )


def _way(loc: Sequence[int | str], value: Any, *, is_missing: bool) -> Iterator[int | str]:
    """The steps of a path that the caller has written, without pydantic's names of alternatives;
    the last step of what is missing is not there, and told.
    """
    for place, step in enumerate(loc):
        if _has(value, step):
            value = value[step]
            yield step
        elif is_missing and place == len(loc) - 1:
            yield step


def _has(value: Any, step: int | str) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _sentence(finding: Mapping[str, Any]) -> str:
    context = finding.get("ctx", {})
    template = _SENTENCES.get(finding["type"])
    if template is not None and all(name in context for name in _LIMITS.findall(template)):
        return template.format_map(context)
    text = str(context["error"]) if finding["type"] in _SPOKEN else finding["msg"]
    return _NOT_VALID if not text or _repeats(text, finding["input"]) else text


def _place(part: int | str) -> int | str:
    """A step of a finding's path; a long or unprintable one is a key the caller made up, and is not
    repeated.
    """
    if isinstance(part, str) and (len(part) > LOC_CHARS_MAX or not part.isprintable()):
        return "*"
    return part


def _repeats(text: str, value: Any) -> bool:
    """Whether a part of the input that could tell something (3 characters and more) occurs in the
    text.
    """
    return any(
        seen >= LEAVES_COMPARED_MAX or (len(leaf) > 2 and leaf in text)
        for seen, leaf in enumerate(_leaves(value))
    )


def _leaves(value: Any) -> Iterator[str]:
    """Every scalar inside, as text, and the keys that cannot be names of fields."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, BaseModel):
            waiting.append(item.__dict__)
        elif isinstance(item, dict):
            waiting.extend(item.values())
            yield from (str(key) for key in item if not str(key).isidentifier())
        elif isinstance(item, list | tuple | set | frozenset):
            waiting.extend(item)
        elif item is not None and not isinstance(item, bool):
            yield str(item)
