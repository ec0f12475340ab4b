"""Conditions on texts: what they select together, each memory read once, and what they may cost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.memories import is_wide, text_conditions
from plugins.memories.limits import FILTER_NODES_LIGHT_MAX, FILTER_VALUES_LIGHT_MAX
from plugins.memories.rows import MEMORIES
from tests.support.search_harness import SearchHarness

WORDS = ("red", "GREEN", "blue", "Straße", "tea")
USERS = ("ann", "bob")


class ConditionHarness(SearchHarness):
    """Thirty memories of two users, and a plain reading of conditions to compare with."""

    def __init__(self, directory: Path):
        super().__init__(directory)
        draw = random.Random(7)
        self.kept: dict[str, dict[str, Any]] = {}
        for number in range(30):
            fields: dict[str, Any] = {
                "user_id": draw.choice(USERS),
                "metadata": {"mood": draw.choice(WORDS), "all": draw.sample(WORDS, 2)},
            }
            if draw.random() < 0.5:
                fields["title"] = draw.choice(WORDS)
            content = f"{number} " + " ".join(draw.sample(WORDS, 2))
            self.kept[self.add(content, **fields)] = {"content": content, **fields}

    def pick(self, filters: Any) -> set[str]:
        answer = self("memories.query", {"filters": filters, "limit": 100}, who=self.me)
        assert answer.status == 200, answer
        return {item["id"] for item in answer.body["items"]}

    def expected(self, condition: Any) -> set[str]:
        return {name for name, fields in self.kept.items() if holds(condition, fields)}

    def refused(self, filters: Any) -> dict[str, Any]:
        answer = self("memories.query", {"filters": filters}, who=self.me)
        assert answer.status == 422, answer
        return answer.body["details"][0]


def holds(condition: Any, fields: dict[str, Any]) -> bool:
    """What a condition means for one memory."""
    (name, value) = next(iter(condition.items()))
    if name in ("AND", "OR"):
        parts = [holds(part, fields) for part in value]
        return all(parts) if name == "AND" else any(parts)
    if name == "NOT":
        return not holds(value, fields)
    found = fields
    for part in name.split("."):
        found = found.get(part)
    texts = found if isinstance(found, list) else [] if found is None else [found]
    (operator, operand) = next(iter(value.items())) if isinstance(value, dict) else ("eq", value)
    meant = {
        "eq": lambda text: text == operand,
        "contains": lambda text: operand in text,
        "icontains": lambda text: operand.casefold() in text.casefold(),
        "gte": lambda text: text >= operand,
        "lt": lambda text: text < operand,
    }[operator]
    return any(meant(text) for text in texts)


def drawn(draw: random.Random, depth: int) -> dict[str, Any]:
    kind = draw.choice(("AND", "OR", "NOT", "leaf", "leaf")) if depth else "leaf"
    if kind == "NOT":
        return {"NOT": drawn(draw, depth - 1)}
    if kind != "leaf":
        return {kind: [drawn(draw, depth - 1) for _ in range(draw.randint(1, 3))]}
    return draw.choice(
        (
            {"user_id": draw.choice(USERS)},
            {"content": {"icontains": draw.choice(("re", "GR", "STRASSE", "1"))}},
            {"title": {draw.choice(("contains", "gte", "lt")): draw.choice(WORDS)}},
            {"metadata.mood": {draw.choice(("icontains", "lt")): draw.choice(WORDS)}},
            {"metadata.all": {"contains": draw.choice(WORDS)}},
        )
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConditionHarness]:
    harness = ConditionHarness(tmp_path_factory.mktemp("library"))
    yield harness
    harness.close()


@pytest.mark.parametrize("seed", range(40))
def test_any_nesting_selects_what_it_means(library: ConditionHarness, seed: int) -> None:
    condition = drawn(random.Random(seed), 4)
    assert library.pick(condition) == library.expected(condition), condition


def test_each_memory_is_read_once_however_many_conditions_there_are(
    library: ConditionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    decode = MEMORIES.decode

    def noting(raw: bytes) -> Any:
        read.append(1)
        return decode(raw)

    monkeypatch.setitem(MEMORIES.__dict__, "decode", noting)
    many = [{"content": {"icontains": f"nothing like {number}"}} for number in range(200)]
    assert library.pick({"OR": many}) == set()
    assert len(read) == len(library.kept)
    read.clear()
    assert library.pick({"AND": [*many, {"user_id": "nobody"}]}) == set()
    assert not read, "what bitmaps know is not read"


@pytest.mark.parametrize(
    ("bound", "value", "said"),
    [
        ("TEXTS_READ_MAX", 29, "read more than 29 memories"),
        ("TEXTS_COMPARED_MAX", 30 * 20 - 1, "compare texts more than 599 times"),
        ("TEXT_CHARS_COMPARED_MAX", 4_000, "compare more than 4000 characters"),
    ],
)
def test_what_would_cost_too_much_is_refused_and_says_what_to_do(
    library: ConditionHarness, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, said: str
) -> None:
    many = {"OR": [{"content": {"icontains": f"none {number}"}} for number in range(20)]}
    assert library.pick(many) == set()
    monkeypatch.setattr(text_conditions, bound, value)
    finding = library.refused(many)
    assert said in finding["msg"] and "narrow it by other fields" in finding["msg"]
    assert finding["loc"] == ["body", "filters", "OR", 0, "content", "icontains"]
    assert library.pick({"AND": [many, {"user_id": "nobody"}]}) == set()


@pytest.mark.parametrize(
    ("condition", "wide"),
    [
        (None, False),
        ({}, False),
        ({"user_id": "ann"}, False),
        ({"AND": [{"user_id": ["ann", "bob"]}, {"created_at": {"gte": "2026-01-01"}}]}, False),
        ({"NOT": {"tags": {"ne": "x"}}}, False),
        ({"content": {"icontains": "x"}}, True),
        ({"OR": [{"user_id": "ann"}, {"NOT": [{"title": {"gt": "x"}}]}]}, True),
        ({"metadata.size": {"gt": 5}}, True),
        ({"speaker": "*"}, True),
        ({"speaker": ["*"]}, True),
        ({"speaker": {"eq": "*"}}, False),
        ({"user_id": {"exists": True}}, True),
        ({"user_id": ["x"] * (FILTER_VALUES_LIGHT_MAX + 1)}, True),
        ({"OR": [{"user_id": "x"}] * FILTER_NODES_LIGHT_MAX}, True),
        ({"OR": {"AND": [[[["x"]]]]}}, False),
        ("no condition", False),
    ],
)
def test_what_is_wide(condition: Any, wide: bool) -> None:
    assert is_wide(condition) is wide
