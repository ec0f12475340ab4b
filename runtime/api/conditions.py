"""Conditions on fields, as filters are written (AND, OR, NOT, eq, ne, in, nin), judged by what is
known of something before all of it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def holds_for(condition: dict[str, Any], has: Mapping[str, str | None]) -> bool | None:
    """Whether a condition that was checked holds for what has these values of fields; None where
    that depends on fields that are not among them.
    """
    parts = [_entry_holds(name, value, has) for name, value in condition.items()]
    return _all(parts)


def _entry_holds(name: str, value: Any, has: Mapping[str, str | None]) -> bool | None:
    if name == "AND":
        return _all([holds_for(part, has) for part in value])
    if name == "OR" or (name == "NOT" and isinstance(value, list)):
        none = _all([_negated(holds_for(part, has)) for part in value])
        return none if name == "NOT" else _negated(none)
    if name == "NOT":
        return _negated(holds_for(value, has))
    if name not in has:
        return None
    given = value if isinstance(value, dict) else {("eq", "in")[isinstance(value, list)]: value}
    told = {
        "eq": lambda operand: has[name] == operand,
        "ne": lambda operand: has[name] != operand,
        "in": lambda operand: has[name] in operand,
        "nin": lambda operand: has[name] not in operand,
    }
    return _all([told[each](of) if each in told else None for each, of in given.items()])


def _all(parts: Sequence[bool | None]) -> bool | None:
    return False if False in parts else None if None in parts else True


def _negated(holds: bool | None) -> bool | None:
    return None if holds is None else not holds
