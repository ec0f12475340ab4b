"""Filters of a store: what they mean, and which part of them the service can judge.

    {"status": "active"}                        equal, as JSON: 1 is 1.0, and true is not 1
    {"meta": {"lang": "en"}}                    an object that has these, and may have more
    {"tags": ["a", "b"]}                        a list of these, in this order
    {"score": {"$gt": 4.99, "$lte": 8}}         $eq $ne $gt $gte $lt $lte, all of them

A comparison holds between two numbers or two texts; nothing else has an order. What is absent is
None.

The service narrows by what it knows at least as widely, so that a page is rarely read in vain;
`matches` then decides on each item.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

Filter = Mapping[str, Any]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDER)


def check(conditions: Filter) -> None:
    """Raises ValueError for an operator that does not exist."""
    for wanted in conditions.values():
        if isinstance(wanted, Mapping):
            for name, inner in wanted.items():
                if name.startswith("$") and name not in OPERATORS:
                    raise ValueError(f"Unsupported operator: {name}")
                check({name: inner})


def matches(value: Mapping[str, Any], conditions: Filter) -> bool:
    """Whether an item's value meets all conditions."""
    return all(_meets(value.get(name), wanted) for name, wanted in conditions.items())


def narrowing(conditions: Filter, path: str) -> list[dict[str, Any]]:
    """Conditions in the service's filter language that every value meets which matches. path: where
    the values lie in a memory.
    """
    found: list[dict[str, Any]] = []
    for name, wanted in conditions.items():
        if not name.isidentifier():
            continue  # dots and other signs mean something in a path of the service
        operands = wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
        for sign, operand in operands.items():
            if sign == "$eq" and isinstance(operand, str | bool | int | float):
                found.append({f"{path}.{name}": {"eq": operand}})
            elif sign in _ORDER and _is_number(operand):
                found.append({f"{path}.{name}": {sign.removeprefix("$"): operand}})
    return found


def _meets(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(found, sign, operand) for sign, operand in wanted.items())
        return isinstance(found, Mapping) and matches(found, wanted)
    return _is_equal(found, wanted)


def _compares(found: Any, sign: str, operand: Any) -> bool:
    if sign in ("$eq", "$ne"):
        return _is_equal(found, operand) is (sign == "$eq")
    if not (_is_number(found) and _is_number(operand)) and not (
        isinstance(found, str) and isinstance(operand, str)
    ):
        return False
    return _ORDER[sign](found, operand)


def _is_equal(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_meets(*pair) for pair in zip(found, wanted, strict=True))
        )
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
