"""Long texts in passages, and about how many tokens a text is. Pure functions; no model and no
storage.

Models read a few hundred tokens of a text and no more, so what stands further down needs a vector
of its own. A passage ends after a sentence where one ends in its last third, else between two
words, else anywhere; passages follow each other without gap or overlap. Tokenizers differ and the
one in use may be remote, so tokens are estimated: four ASCII characters, or one other character,
are a token. Ordinary text in Latin script has fewer, so what is cut by the estimate fits.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

ASCII_PER_TOKEN = 4
_ASCII_MAX = 0x7F
# A run of marks is tried once, from its beginning: where that is no end, no later mark of the run
# is one.
SENTENCE_END = re.compile(r"(?:(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s|[。！？।؟]|\n)\s*")
_WORD_END = re.compile(r"\s+")


def estimated_tokens(text: str) -> int:
    """0 for "", else at least 1."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return -(-ascii_chars // ASCII_PER_TOKEN) + len(text) - ascii_chars


def passages(text: str, tokens_max: int, count_max: int) -> list[tuple[int, int]]:
    """Code point ranges (start, end) of at most `tokens_max` (≥ 1) estimated tokens; those after
    the first `count_max` are left out.
    """
    if estimated_tokens(text) <= tokens_max:
        return [(0, len(text))]
    quarters = _quarters_before(text)
    sentences, words = (
        np.array([found.end() for found in pattern.finditer(text)], np.int64)
        for pattern in (SENTENCE_END, _WORD_END)
    )
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(text) and len(found) < count_max:
        end = (
            int(
                np.searchsorted(
                    quarters, quarters[start] + ASCII_PER_TOKEN * tokens_max, side="right"
                )
            )
            - 1
        )
        if end < len(text):
            least = start + 2 * (end - start) // 3
            end = _last(sentences, least, end) or _last(words, least, end) or end
        found.append((start, end))
        start = end
    return found


def _quarters_before(text: str) -> NDArray[np.int64]:
    """(n + 1,) quarter tokens before each code point, and of the whole text."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return np.concatenate(
        ([0], np.cumsum(np.where(codes > _ASCII_MAX, ASCII_PER_TOKEN, 1), dtype=np.int64))
    )


def _last(places: NDArray[np.int64], least: int, most: int) -> int | None:
    """The last of the ascending places in (least, most]."""
    at = int(np.searchsorted(places, most, side="right")) - 1
    return int(places[at]) if at >= 0 and places[at] > least else None
