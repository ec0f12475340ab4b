"""Which language a text is written in."""

from __future__ import annotations

from storage.text.analysis import TEXT_EVIDENCE, language_of, tokens_of


def language_of_text(text: str) -> str:
    """The language of a text's Latin words, by its English name in small letters."""
    return language_of(tokens_of(text), TEXT_EVIDENCE)
