"""Whether a text is of the language that is read."""

from __future__ import annotations

import regex

from storage.text import is_english

JUDGED_CHARS_MAX = 8_192
_LETTERS = regex.compile(r"\p{L}+")
_LATIN = regex.compile(r"\p{Latin}+")


def readable(text: str) -> bool:
    """Whether the text is English: most of its letters are Latin, and its function words do not
    speak another language. A text is judged by its beginning.
    """
    judged = text[:JUDGED_CHARS_MAX]
    if judged.isascii():
        has_letters = _LATIN.search(judged) is not None
    else:
        letters = sum(map(len, _LETTERS.findall(judged)))
        has_letters = 2 * sum(map(len, _LATIN.findall(judged))) > letters
    return has_letters and is_english(judged)
