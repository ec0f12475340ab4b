"""The filter language: a JSON condition -> the filter algebra over bitmaps (specification part 4, /v1/search/advanced).

    {"AND" | "OR": [condition, …]}    {"NOT": condition or [condition, …]}    none of them, for a list
    {field: value}                    {field: {operator: operand, …}}         fields and operators of one object are ANDed

Fields are those a memory is indexed by; `FIELDS` names them. A field, an operator or an operand that does not fit is a 422 at
its own `loc`, so that a typing error never widens a search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as Anything

from plugins.collections import require_collection
from runtime.errors import ValidationFailed
from runtime.limits import FILTER_NODES_MAX
from runtime.operation import ReadContext
from storage.bitmap_index import All, Any, Equals, Filter, Not

# Field of a memory -> field of its bitmap index.
FIELDS = {
    "collection_id": "collection",
    "user_id": "user_id",
    "agent_id": "agent_id",
    "run_id": "run_id",
    "app_id": "app_id",
    "session_id": "session_id",
    "speaker": "speaker",
    "tier": "tier",
    "tags": "tag",
    "source_type": "source_type",
}
LIST_FIELDS = ("tags",)
NAME_CHARS_SHOWN_MAX = 64

Loc = tuple[str | int, ...]


def compile_filter(ctx: ReadContext, condition: Anything, loc: Loc) -> Filter:
    """The condition as a Filter. Raises ValidationFailed with the offending loc; {} holds for everything."""
    return _Compiler(ctx).condition(condition, loc)


class _Compiler:
    def __init__(self, ctx: ReadContext):
        self._ctx = ctx
        self._nodes = 0

    def condition(self, condition: Anything, loc: Loc) -> Filter:
        self._nodes += 1
        if self._nodes > FILTER_NODES_MAX:
            raise ValidationFailed.at(loc, f"a filter may have at most {FILTER_NODES_MAX} conditions", "too_long")
        if not isinstance(condition, dict):
            raise ValidationFailed.at(loc, "must be an object", "dict_type")
        return All(*(self._entry(name, value, (*loc, name)) for name, value in condition.items()))

    def _entry(self, name: str, value: Anything, loc: Loc) -> Filter:
        if name in ("AND", "OR"):
            return (All if name == "AND" else Any)(*self._list(value, loc))
        if name == "NOT":
            return Not(Any(*self._list(value, loc)) if isinstance(value, list) else self.condition(value, loc))
        if name not in FIELDS:
            raise ValidationFailed.at(
                _shown(loc), f"there is no such filter field; use {', '.join(FIELDS)}, AND, OR or NOT", "unknown_field"
            )
        if not isinstance(value, dict):
            return self._any_of(name, value, loc)
        return All(*(self._operator(name, operator, operand, (*loc, operator)) for operator, operand in value.items()))

    def _operator(self, name: str, operator: str, operand: Anything, loc: Loc) -> Filter:
        operators: dict[str, Callable[[], Filter]] = {
            "eq": lambda: self._equals(name, operand, loc),
            "ne": lambda: Not(self._equals(name, operand, loc)),
            "in": lambda: self._any_of(name, self._operands(operand, loc), loc),
            "nin": lambda: Not(self._any_of(name, self._operands(operand, loc), loc)),
        }
        if name in LIST_FIELDS:
            operators["contains"] = operators["eq"]
        if operator not in operators:
            raise ValidationFailed.at(_shown(loc), f"this field has no such operator; use {', '.join(operators)}", "unknown_operator")
        return operators[operator]()

    def _any_of(self, name: str, value: Anything, loc: Loc) -> Filter:
        """A bare value, or a list of which one must match."""
        values = value if isinstance(value, list) else [value]
        return Any(*(self._equals(name, item, (*loc, i) if isinstance(value, list) else loc) for i, item in enumerate(values)))

    def _equals(self, name: str, value: Anything, loc: Loc) -> Filter:
        if not isinstance(value, str):
            raise ValidationFailed.at(loc, "must be a text", "string_type")
        if name == "collection_id":
            return Equals("collection", require_collection(self._ctx, value).number)
        return Equals(FIELDS[name], value)

    def _operands(self, operand: Anything, loc: Loc) -> list[Anything]:
        if not isinstance(operand, list):
            raise ValidationFailed.at(loc, "must be a list", "list_type")
        return operand

    def _list(self, value: Anything, loc: Loc) -> list[Filter]:
        if not isinstance(value, list):
            raise ValidationFailed.at(loc, "must be a list of conditions", "list_type")
        return [self.condition(item, (*loc, i)) for i, item in enumerate(value)]


def _shown(loc: Loc) -> Loc:
    """A place whose last name came from the caller: kept short, so that a finding never carries a text back."""
    return (*loc[:-1], str(loc[-1])[:NAME_CHARS_SHOWN_MAX])
