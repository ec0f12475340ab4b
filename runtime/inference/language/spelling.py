"""What the spelling of a word says of it: hashed parts and a few marks, beside what the embedding
model makes of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

WORD_BUCKETS, AFFIX_BUCKETS = 8_192, 2_048
PARTS = 3  # the whole word, its last three letters, its first three
FLAGS = 12


def spell(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """A sentence's words -> (w, PARTS) int64 buckets, (w, FLAGS) float32 marks."""
    buckets = np.empty((len(words), PARTS), np.int64)
    marks = np.zeros((len(words), FLAGS), np.float32)
    has_capitals = any(word[0].isupper() for word in words[1:])
    for row, word in enumerate(words):
        small = word.lower()
        buckets[row] = (
            _bucket(small, WORD_BUCKETS),
            _bucket("$" + small[-3:], AFFIX_BUCKETS),
            _bucket("^" + small[:3], AFFIX_BUCKETS),
        )
        capital = word[0].isupper()
        marks[row] = (
            capital,
            capital and row > 0,
            len(word) > 1 and word.isupper(),
            capital and not word[1:].islower(),
            not capital and not word.islower(),
            any(char.isdigit() for char in word),
            word.isdigit(),
            not word[0].isalnum(),
            "-" in word or "." in word,
            word[0] in "@#" or "://" in word,
            row == 0,
            has_capitals,
        )
    return buckets, marks


def _bucket(part: str, buckets: int) -> int:
    return zlib.crc32(part.encode("utf-8", "replace")) % buckets
