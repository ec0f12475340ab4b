"""The filter language: a JSON condition -> the filter algebra over bitmaps.

    {"AND" | "OR": [condition, …]}    {"NOT": condition or [condition, …]}    a list: none of them
    {field: value}                    {field: {operator: operand, …}}         one object: ANDed

Fields are a memory's own, and `metadata.<path>` with the keys of nested objects joined by dots.
What each takes:

    id                                       eq ne in nin
    collection_id, the scopes, session_id,   eq ne in nin exists
    speaker, role, tier, source_type,
    conflict_status, kind
    tags                                     the same, and contains
    source, source_reference, title          the same, gt gte lt lte, and contains, icontains on the
                                             text
    metadata.<path>                          the same, for texts, numbers, true and false; contains
                                             also means membership in a list
    importance                               eq ne in nin gt gte lt lte
    created_at, occurred_at, updated_at, expires_at     gt gte lt lte eq with an ISO 8601 time,
                                                        exists; a date alone is 00:00, to lte the
                                                        end of its day, and to eq all of it
    content                                  contains, icontains

`null` matches what a memory does not have. Without an operator a list stands for "one of" and "*"
for "has any", which an object under the path counts for as well; to an operator, "*" is a text like
any other: {"tags": {"eq": "*"}}. A list in the metadata matches by each of its values. Texts
compare by code points, numbers only with numbers; for a speaker and for icontains an accent is the
same as a code point of its own and as part of its letter's.

Bitmaps answer all but comparisons of texts (gt, contains and the like), which read the memories
that the other conditions leave (plugins/memories/text_conditions.py).

A field, an operator or an operand that does not fit is a 422 at its own `loc`, so that a typing
error never widens a search.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, ClassVar
from unicodedata import normalize

from pyroaring import BitMap

from plugins.collections import require_collection
from plugins.memories.fields import (
    metadata_number,
    metadata_numbers,
    metadata_value,
    metadata_values,
    number_text,
)
from plugins.memories.limits import (
    FILTER_NODES_LIGHT_MAX,
    FILTER_NODES_MAX,
    FILTER_VALUES_LIGHT_MAX,
    FILTER_VALUES_MAX,
)
from plugins.memories.rows import EPISODIC, KINDS, NOTE, MemoryRow
from plugins.memories.store import find_ordinal
from plugins.memories.text_conditions import (
    METADATA,
    Loc,
    Reading,
    TextPasses,
    text_conditions,
    without_case,
)
from plugins.memories.times import within_times
from runtime.api.context import ReadContext
from runtime.errors import ValidationFailed
from runtime.timestamps import parse, parse_end
from storage.indexes import AllOf, AnyOf, Between, BoundBitmaps, Equals, Filter, Not

# Field of a memory -> field of its bitmap index.
NAMES = {
    "collection_id": "collection",
    "user_id": "user_id",
    "agent_id": "agent_id",
    "run_id": "run_id",
    "app_id": "app_id",
    "session_id": "session_id",
    "speaker": "speaker",
    "role": "role",
    "tier": "tier",
    "tags": "tag",
    "source_type": "source_type",
}
TEXTS = ("source", "source_reference", "title")
TIMES = ("created_at", "occurred_at", "updated_at", "expires_at")
FIELDS = (
    "id",
    *NAMES,
    *TEXTS,
    *TIMES,
    "importance",
    "conflict_status",
    "kind",
    "content",
    "metadata.<path>",
)
COMPARISONS = ("gt", "gte", "lt", "lte")
ANY = "*"  # a value without an operator
NAME_CHARS_SHOWN_MAX = 64
NUMBER_MAX = sys.float_info.max

_COMPARE = {"gt": gt, "gte": ge, "lt": lt, "lte": le}

Span = tuple[Any, Any]  # the lowest and the highest value of a field that count


@dataclass(frozen=True, slots=True)
class Facet:
    """A field of memories whose values can be counted."""

    ALL: ClassVar[tuple[str, ...]] = (*NAMES, *TEXTS, "conflict_status", "kind", "metadata.<path>")

    name: str

    @classmethod
    def exists(cls, name: str) -> bool:
        """Whether values of a field of this name can be counted."""
        return name in cls.ALL[:-1] or (name.startswith(METADATA) and len(name) > len(METADATA))

    def values(self, row: MemoryRow) -> Iterable[Any]:
        """The values that a memory has in it."""
        if self.name.startswith(METADATA):
            path = self.name[len(METADATA) :]
            return [value for at, value in metadata_values(row.metadata) if at == path]
        if self.name == "conflict_status":
            return ["superseded" if row.superseded else "none"]
        if self.name == "tags":
            return row.tags
        value = getattr(row, self.name)
        return [] if value is None else [value]

    def counted(self, rows: Iterable[MemoryRow]) -> list[tuple[Any, int]]:
        """(value, how many memories hold it), in the order in which values first come."""
        counts = Counter(
            value for row in rows for value in dict.fromkeys(map(_kinded, self.values(row)))
        )
        return [(value, count) for (_, value), count in counts.items()]


def _kinded(value: Any) -> tuple[str, Any]:
    """The value with its kind, which tells true from 1; 1 and 1.0 are one value."""
    if value is None:
        return "null", value
    return (
        "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
    ), value


def compile_filter(ctx: ReadContext, condition: Any, loc: Loc) -> Filter:
    """The condition as a Filter. Raises ValidationFailed with the offending loc; {} holds for
    everything.
    """
    compiled = _Compiler(ctx).condition(condition, loc)
    return compiled if next(text_conditions(compiled), None) is None else Reading(ctx, compiled)


def is_wide(
    condition: Any,
    nodes_max: int = FILTER_NODES_LIGHT_MAX,
    values_max: int = FILTER_VALUES_LIGHT_MAX,
) -> bool:
    """Whether a condition, which need not be valid, may read many rows: it compares texts or
    ranges, or has more conditions or listed values than this.
    """
    waiting, nodes, values = [condition], 0, 0
    while waiting:
        found = waiting.pop()
        nodes += 1
        if isinstance(found, list):
            waiting += found
        elif isinstance(found, dict):
            for name, value in found.items():
                if name in ("AND", "OR", "NOT"):
                    waiting.append(value)
                    continue
                nodes += 1
                given = value if isinstance(value, dict) else {"eq": value}
                values += sum(len(each) for each in given.values() if isinstance(each, list))
                if _has_any(value) or (
                    name not in TIMES and not given.keys() <= {"eq", "ne", "in", "nin"}
                ):
                    return True
        if nodes > nodes_max or values > values_max:
            return True
    return False


def holds_whatever(condition: Filter) -> bool | None:
    """Whether a condition holds for every memory (True) or for none (False) by its shape alone, as
    where a list of conditions is empty; None where it depends on the memory.
    """
    if isinstance(condition, Not):
        inner = holds_whatever(condition.condition)
        return None if inner is None else not inner
    if isinstance(condition, AllOf | AnyOf):
        decisive = isinstance(condition, AnyOf)  # one part of this kind settles it
        parts = {holds_whatever(part) for part in condition.filters}
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    return None


@dataclass(frozen=True)
class Told:
    """A time of the memory lies in [low, high], Unix milliseconds, None for no bound."""

    ctx: ReadContext
    name: str
    low: int | None
    high: int | None

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        return within_times(self.ctx, universe, self.name, self.low, self.high)


@dataclass(frozen=True)
class Only:
    """Exactly this memory; none, for None."""

    ordinal: int | None

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        return BitMap() if self.ordinal is None else universe & BitMap((self.ordinal,))


class _Compiler:
    def __init__(self, ctx: ReadContext):
        self._ctx = ctx
        self._nodes = 0
        self._values = 0

    def condition(self, condition: Any, loc: Loc) -> Filter:
        self._nodes += 1
        if self._nodes > FILTER_NODES_MAX:
            raise ValidationFailed.at(
                loc, f"a filter may have at most {FILTER_NODES_MAX} conditions", "too_long"
            )
        if not isinstance(condition, dict):
            raise ValidationFailed.at(loc, "must be an object", "dict_type")
        entries = [self._entry(name, value, (*loc, name)) for name, value in condition.items()]
        return AllOf(*entries)

    def _entry(self, name: str, value: Any, loc: Loc) -> Filter:
        if name in ("AND", "OR"):
            parts = self._list(value, loc)
            return AllOf(*parts) if name == "AND" else AnyOf(*parts)
        if name == "NOT":
            return Not(
                AnyOf(*self._list(value, loc))
                if isinstance(value, list)
                else self.condition(value, loc)
            )
        known = name in FIELDS or (name.startswith(METADATA) and len(name) > len(METADATA))
        if not known or name == FIELDS[-1]:
            raise ValidationFailed.at(
                _shortened(loc),
                f"there is no such filter field; use {', '.join(FIELDS)}, AND, OR or NOT",
                "unknown_field",
            )
        if not isinstance(value, dict):
            one = self._operator(name, "in" if isinstance(value, list) else "eq", value, loc)
            has_any = _has_any(value) and "exists" in _operators_of(name)
            return AnyOf(self._exists(name), one) if has_any else one
        operators = [
            self._operator(name, operator, operand, (*loc, operator))
            for operator, operand in value.items()
        ]
        return operators[0] if len(operators) == 1 else AllOf(*operators)

    def _operator(self, name: str, operator: str, operand: Any, loc: Loc) -> Filter:
        operators = _operators_of(name)
        if operator not in operators:
            raise ValidationFailed.at(
                _shortened(loc),
                f"this field has no such operator; use {', '.join(operators)}",
                "unknown_operator",
            )
        if operator in ("ne", "nin"):
            return Not(self._operator(name, "eq" if operator == "ne" else "in", operand, loc))
        if operator == "in":
            return AnyOf(
                *(
                    self._equals(name, item, (*loc, i))
                    for i, item in enumerate(self._listed(operand, loc))
                )
            )
        if operator == "exists":
            if not isinstance(operand, bool):
                raise ValidationFailed.at(loc, "must be true or false", "bool_type")
            return self._exists(name) if operand else Not(self._exists(name))
        if operator in ("contains", "icontains"):
            return self._contains(name, operand, operator == "icontains", loc)
        return (
            self._equals(name, operand, loc)
            if operator == "eq"
            else self._compared(name, operator, operand, loc)
        )

    def _equals(self, name: str, value: Any, loc: Loc) -> Filter:
        if value is None and "exists" in _operators_of(name):
            missing = Not(self._exists(name))
            return (
                AnyOf(missing, Equals("metadata", metadata_value(_path(name), None)))
                if name.startswith(METADATA)
                else missing
            )
        if name.startswith(METADATA):
            return Equals("metadata", metadata_value(_path(name), _scalar(value, loc)))
        if name == "importance":
            return Equals("importance", number_text(_number(value, loc)))
        if name in TIMES:
            return Told(self._ctx, name, _instant(value, loc), _instant(value, loc, parse_end))
        text = _text(value, loc)
        if name == "id":
            return Only(find_ordinal(self._ctx, text))
        if name == "collection_id":
            return Equals("collection", require_collection(self._ctx, text).number)
        if name == "conflict_status":
            superseded = Equals("superseded", 1)
            return (
                superseded
                if text == "superseded"
                else Not(superseded)
                if text == "none"
                else AnyOf()
            )
        if name == "kind":
            return _of_kind(text)
        if name == "speaker":  # a name is typed, and some keyboards make two code points of "ë"
            forms = dict.fromkeys((text, normalize("NFC", text), normalize("NFD", text)))
            return AnyOf(*(Equals("speaker", form) for form in forms))
        return Equals(NAMES.get(name, name), text)

    def _exists(self, name: str) -> Filter:
        if name.startswith(METADATA):
            return Equals("metadata_path", _path(name))
        if name == "expires_at":
            return Told(self._ctx, name, None, None)
        if name in (*TIMES, "conflict_status", "kind"):
            return AllOf()
        return Between(NAMES.get(name, name))

    def _compared(self, name: str, operator: str, operand: Any, loc: Loc) -> Filter:
        if name in TIMES:
            at = _instant(operand, loc, parse_end if operator == "lte" else parse)
            low, high = {
                "gt": (at + 1, None),
                "gte": (at, None),
                "lt": (None, at - 1),
                "lte": (None, at),
            }[operator]
            return Told(self._ctx, name, low, high)
        if name == "importance":
            return _beyond("importance", operator, number_text(_number(operand, loc)), (None, None))
        if name.startswith(METADATA) and not isinstance(operand, str):
            secret, path = self._ctx.scope.key, _path(name)
            return _beyond(
                "metadata_number",
                operator,
                metadata_number(secret, path, _number(operand, loc)),
                metadata_numbers(secret, path),
            )
        text, compare = _text(operand, loc), _COMPARE[operator]
        return TextPasses(name, lambda stored: compare(stored, text), False, loc)

    def _contains(self, name: str, operand: Any, folded: bool, loc: Loc) -> Filter:
        if name == "tags" or (name.startswith(METADATA) and not isinstance(operand, str)):
            return self._equals(name, operand, loc)
        wanted = without_case(_text(operand, loc)) if folded else _text(operand, loc)
        return TextPasses(name, lambda stored: wanted in stored, folded, loc)

    def _list(self, value: Any, loc: Loc) -> list[Filter]:
        if not isinstance(value, list):
            raise ValidationFailed.at(loc, "must be a list of conditions", "list_type")
        return [self.condition(item, (*loc, i)) for i, item in enumerate(value)]

    def _listed(self, operand: Any, loc: Loc) -> list[Any]:
        if not isinstance(operand, list):
            raise ValidationFailed.at(loc, "must be a list", "list_type")
        self._values += len(operand)
        if self._values > FILTER_VALUES_MAX:
            raise ValidationFailed.at(
                loc, f"a filter may list at most {FILTER_VALUES_MAX} values", "too_long"
            )
        return operand


def _of_kind(kind: str) -> Filter:
    """The memories of MemoryRow.kind."""
    own = AnyOf(*(Equals("source_type", source) for source, of in KINDS.items() if of == kind))
    if kind not in (EPISODIC, NOTE):
        return own
    has_role = Between("role")
    other = Not(AnyOf(*(Equals("source_type", source) for source in KINDS)))
    return AnyOf(own, AllOf(other, has_role if kind == EPISODIC else Not(has_role)))


def _has_any(value: Any) -> bool:
    """Whether a condition without an operator holds for any value."""
    return ANY in value if isinstance(value, list) else value == ANY


def _beyond(field: str, operator: str, value: str, span: Span) -> Filter:
    """The field's values on one side of this one, inside the span."""
    between = (
        Between(field, value, span[1])
        if operator in ("gt", "gte")
        else Between(field, span[0], value)
    )
    return AllOf(between, Not(Equals(field, value))) if operator in ("gt", "lt") else between


def _operators_of(name: str) -> tuple[str, ...]:
    equality = ("eq", "ne", "in", "nin")
    if name == "content":
        return ("contains", "icontains")
    if name == "id":
        return equality
    if name == "importance":
        return (*equality, *COMPARISONS)
    if name in TIMES:
        return ("eq", *COMPARISONS, "exists")
    if name == "tags":
        return (*equality, "exists", "contains")
    if name in NAMES or name in ("conflict_status", "kind"):
        return (*equality, "exists")
    return (*equality, *COMPARISONS, "exists", "contains", "icontains")


def _path(name: str) -> str:
    return name[len(METADATA) :]


def _text(value: Any, loc: Loc) -> str:
    if not isinstance(value, str):
        raise ValidationFailed.at(loc, "must be a text", "string_type")
    return value


def _number(value: Any, loc: Loc) -> float:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not abs(value) <= NUMBER_MAX
    ):
        raise ValidationFailed.at(loc, "must be a number", "float_type")
    return value


def _scalar(value: Any, loc: Loc) -> str | float | bool:
    if isinstance(value, str | bool) or (
        isinstance(value, int | float) and abs(value) <= NUMBER_MAX
    ):
        return value
    raise ValidationFailed.at(loc, "must be a text, a number, true or false", "value_error")


def _instant(value: Any, loc: Loc, read: Callable[[str], int] = parse) -> int:
    try:
        return read(_text(value, loc))
    except ValueError as error:
        raise ValidationFailed.at(loc, "must be an ISO 8601 time", "datetime_parsing") from error


def _shortened(loc: Loc) -> Loc:
    """A place whose last name came from the caller: kept short, so that a finding never carries a
    text back.
    """
    return (*loc[:-1], str(loc[-1])[:NAME_CHARS_SHOWN_MAX])
