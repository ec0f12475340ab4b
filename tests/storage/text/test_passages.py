"""Texts in passages: nothing lost, nothing twice, nothing too long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.text.passages import SENTENCE_END, estimated_tokens, passages

# What ended a sentence before it was made to take time in proportion to the text.
ONCE = re.compile(r"(?:[.!?…]+[\"'”’)\]]*\s|[。！？।؟]|\n)\s*")


@given(text=st.text(max_size=600), tokens_max=st.integers(1, 60))
def test_passages_join_to_the_text_and_none_is_too_long(text: str, tokens_max: int) -> None:
    found = passages(text, tokens_max, 10_000)
    assert "".join(text[start:end] for start, end in found) == text
    assert all(estimated_tokens(text[start:end]) <= tokens_max for start, end in found)
    assert all(start < end for start, end in found) or not text


def test_a_short_text_is_one_passage() -> None:
    assert passages("", 5, 9) == [(0, 0)] and passages("four words are here", 5, 9) == [(0, 19)]


def test_a_passage_ends_after_a_sentence_or_else_a_word() -> None:
    text = (
        "One short sentence here. Another one follows it. And the third is a good deal longer than "
        "the two before it were."
    )
    found = [text[start:end] for start, end in passages(text, 13, 9)]
    assert found[:2] == [
        "One short sentence here. Another one follows it. ",
        "And the third is a good deal longer than the two ",
    ]
    assert all(part.endswith(" ") for part in found[:-1])
    assert [
        len(part) for part in (lambda t: [t[a:b] for a, b in passages(t, 10, 9)])("x" * 100)
    ] == [40, 40, 20]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本語", 3), ("дом", 3), ("a日b", 2)],
)
def test_tokens_are_estimated(text: str, expected: int) -> None:
    assert estimated_tokens(text) == expected


def test_of_too_many_passages_the_first_count() -> None:
    assert len(passages("word " * 1_000, 10, 7)) == 7


@given(text=st.text(st.sampled_from("ab中.!?…。！।\"'”’)] \n\t"), max_size=60))
def test_a_sentence_ends_where_it_always_did(text: str) -> None:
    assert [found.span() for found in SENTENCE_END.finditer(text)] == [
        found.span() for found in ONCE.finditer(text)
    ]
