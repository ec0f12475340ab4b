"""How many tokens a text is taken for."""

from __future__ import annotations

import pytest

from runtime.inference import count_tokens, token_count


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The spare key is under the blue flowerpot.", 8, 14),
        ("word " * 1_000, 1_000, 1_100),
        ("😀" * 100, 80, 400),
        ("鍵は青い植木鉢の下にあります。", 9, 45),
        ("\ud800", 1, 3),
    ],
)
def test_a_text_is_about_so_many_tokens(text: str, least: int, most: int) -> None:
    assert least <= count_tokens(text) <= most


def test_long_texts_are_counted_whole() -> None:
    """The embedded model reads 256 tokens; a budget must not."""
    assert count_tokens("key " * 5_000) >= 5_000


def test_without_the_tokenizer_bytes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_count, "shipped_tokenizer", lambda: None)
    assert (
        count_tokens(""),
        count_tokens("abcd"),
        count_tokens("abcde"),
        count_tokens("é" * 4),
    ) == (0, 1, 2, 2)
