"""The fence around memories in a prompt, and its budget."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plugins.answers.prompt import SHORTENED_CHARS_MAX, fenced
from runtime.inference import count_tokens

SEED = bytes(range(32))


def memory(content: str, number: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"mem_{number}",
        "content": content,
        "occurred_at": "2026-05-08T13:56:00.000Z",
        "speaker": None,
        **fields,
    }


def inside(text: str) -> list[dict[str, Any]]:
    """What stands between the marker lines, which have to be there exactly once."""
    lines = text.split("\n")
    places = [
        place
        for place, line in enumerate(lines)
        if line.startswith(("[memories ", "[end of memories "))
    ]
    assert len(places) == 2 and places[1] == len(lines) - 1
    return [json.loads(line) for line in lines[places[0] + 1 : places[1]]]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_whatever_memories_say_stays_in_its_line(contents: list[str]) -> None:
    block = fenced(
        [memory(content, number) for number, content in enumerate(contents)], SEED, 100_000
    )
    assert (block.text == "") == (not contents)
    if contents:
        assert [line["text"] for line in inside(block.text)] == contents
        assert len(block.text.splitlines()) == len(block.text.split("\n")), (
            "no other line break splits a line"
        )


def test_a_memory_cannot_know_the_marker() -> None:
    first, second = (fenced([memory("x")], seed, 1_000).text for seed in (SEED, SEED[::-1]))
    assert first.splitlines()[1] != second.splitlines()[1]


def test_a_line_says_who_and_when() -> None:
    block = fenced(
        [memory("Under the pot.", speaker="Ada")],
        SEED,
        1_000,
        notes=[{"profile": "diet", "value": "vegan"}],
        numbered=True,
    )
    assert inside(block.text) == [
        {"profile": "diet", "value": "vegan"},
        {"number": 1, "date": "2026-05-08", "speaker": "Ada", "text": "Under the pot."},
    ]


def test_the_budget_is_kept_and_what_does_not_fit_is_passed_over() -> None:
    memories = [memory("word " * length, number) for number, length in enumerate((50, 600, 40))]
    block = fenced(memories, SEED, 400)
    assert (
        block.ids == ["mem_0", "mem_2"] and block.tokens <= 400 and count_tokens(block.text) <= 400
    )
    assert fenced(memories, SEED, 10).text == ""
    long = fenced([memory("x" * 100_000)], SEED, 10**6)
    assert len(inside(long.text)[0]["text"]) == SHORTENED_CHARS_MAX
