"""Where the sentences of a text begin and end. A memory is made of whole ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import regex as re

_TEXT = """
    dr mr mrs ms mx st prof rev jr sr lt col gen capt sgt mt vs approx no nr inc ltd co e.g i.e z.b
    bzw ca hr fr sra sta mme mlle p.ej dott sig
"""
_ABBREVIATIONS = frozenset(_TEXT.split())
# What may end a sentence: marks with what closes after them, before white space; marks that stand
# without space; a line's end.
_END = re.compile(
    r"(?<![.!?…؟।])[.!?…؟।]+[\"'”’»)\]]*(?=\s|$)|(?<![。！？])[。！？]+[”’」』）]*|\n", re.VERSION1
)
_WORD_CHARS_MAX = 8  # an abbreviation is no longer


def sentences(text: str) -> list[tuple[int, int]]:
    """(start, end) code points of every sentence, without the white space around it; end
    exclusive.
    """
    return list(_sentences(text))


def first_sentence(text: str) -> tuple[int, int] | None:
    """(start, end) code points of the first of the sentences; None where there is none."""
    return next(_sentences(text), None)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = read = 0  # nothing from start to read is a letter or a digit
    ends = (match.end() for match in _END.finditer(text) if not _is_abbreviated(text, match))
    for end in chain(ends, [len(text)]):
        has_words, read = any(char.isalnum() for char in text[read:end]), end
        if has_words:
            stripped = text[start:end].strip()
            first = start + text[start:end].index(stripped)
            yield first, first + len(stripped)
            start = end


def is_quoted_line(text: str, start: int, end: int) -> bool:
    """Whether these code points touch a line that begins with ">", as another's mail is quoted."""
    first = text.rfind("\n", 0, start) + 1
    return _QUOTED_LINE.search(text[first:end]) is not None


_QUOTED_LINE = re.compile(r"^[ \t]*>", re.MULTILINE)


def _is_abbreviated(text: str, end: re.Match[str]) -> bool:
    """Whether it is the dot after an abbreviation or an initial."""
    if end[0] != ".":
        return False
    before = text[max(0, end.start() - _WORD_CHARS_MAX) : end.start()].split()
    word = before[-1].lstrip("(\"'“„«[") if before else ""
    return word.casefold() in _ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")


def around(spans: list[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """The sentences that hold these code points, from the start of the first to the end of the
    last; the code points themselves where no sentence does.
    """
    held = [span for span in spans if span[0] < end and start < span[1]]
    return (min(held[0][0], start), max(held[-1][1], end)) if held else (start, end)
