"""Filters as mem0's clients write them -> conditions of our own filter language
(plugins/memories/filters.py), which judges them.

The two agree on AND, OR, NOT, the comparisons, lists, and "*" for "has any". What differs is put
into our words:

    categories                 tags
    keywords                   content
    memory_ids                 id
    timestamp                  occurred_at
    {"metadata": {key: test}}  metadata.key
    times as Unix numbers      ISO 8601
    names as numbers           text

Everything else goes on as it is, so that a wrong field or operator is refused where it stands, and
nothing is ever widened. One difference is of substance: a memory here has all the names it was
stored with, so {"AND": [{"user_id": …}, {"agent_id": …}]} finds what was stored under both.
"""

from __future__ import annotations

from typing import Any

from plugins.mem0.limits import FILTER_NODES_MAX
from runtime.errors import ValidationFailed
from runtime.limits import JSON_DEPTH_MAX
from runtime.timestamps import MS_MAX, MS_MIN, iso

NAMES = ("user_id", "agent_id", "app_id", "run_id")
RENAMED = {
    "categories": "tags",
    "keywords": "content",
    "memory_ids": "id",
    "timestamp": "occurred_at",
}
TIMES = ("created_at", "updated_at", "occurred_at", "expires_at")
SECONDS_MAX = 100_000_000_000  # a larger number counts milliseconds


def translated(condition: Any) -> Any:
    """The condition in our words. Raises ValidationFailed where it is too large to be looked at."""
    return _Translation().condition(condition, 0)


def instant(value: Any) -> Any:
    """A time: Unix seconds or milliseconds as ISO 8601 text; anything else as it is, to be judged
    where it goes.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    ms = value if abs(value) > SECONDS_MAX else value * 1000
    return iso(int(ms)) if MS_MIN <= ms <= MS_MAX else value


def as_text(name: Any) -> Any:
    """A name that is a number, as those of database rows are, as the text that it was stored under;
    anything else as it is.
    """
    return str(name) if isinstance(name, int) and not isinstance(name, bool) else name


def _named(test: Any) -> Any:
    """The test of a name: one, several, or an operator with one or several."""
    if isinstance(test, dict):
        return {
            operator: [as_text(one) for one in operand]
            if isinstance(operand, list)
            else as_text(operand)
            for operator, operand in test.items()
        }
    return [as_text(one) for one in test] if isinstance(test, list) else as_text(test)


class _Translation:
    def __init__(self) -> None:
        self._nodes = 0

    def condition(self, condition: Any, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > FILTER_NODES_MAX or depth > JSON_DEPTH_MAX:
            raise ValidationFailed.at(
                ("body", "filters"),
                f"a filter may have at most {FILTER_NODES_MAX} conditions",
                "too_long",
            )
        if not isinstance(condition, dict):
            return condition
        entries = [
            entry
            for name, value in condition.items()
            for entry in self._entries(name, value, depth + 1)
        ]
        if len({name for name, _ in entries}) == len(entries):
            return dict(entries)
        return {"AND": [{name: value} for name, value in entries]}  # two names for one field

    def _entries(self, name: str, value: Any, depth: int) -> list[tuple[str, Any]]:
        if name in ("AND", "OR", "NOT"):
            inner = (
                [self.condition(item, depth) for item in value]
                if isinstance(value, list)
                else self.condition(value, depth)
            )
            return [(name, inner)]
        if name == "metadata" and isinstance(value, dict):
            return [(f"metadata.{key}", test) for key, test in value.items()]
        name = RENAMED.get(name, name)
        if name in TIMES:
            value = (
                {operator: instant(operand) for operator, operand in value.items()}
                if isinstance(value, dict)
                else instant(value)
            )
        if name in NAMES:
            value = _named(value)
        if name == "content" and isinstance(value, str):
            value = {"icontains": value}
        return [(name, value)]
