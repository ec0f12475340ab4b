"""What the spelling of a word says of it: hashed parts and a few marks, beside what the embedding
model makes of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from storage.text import is_remembered

WORD_BUCKETS, AFFIX_BUCKETS = 8_192, 2_048
PARTS = 3  # the whole word, its last three letters, its first three
FLAGS = 12
INSIDE, FIRST, IN_CAPITALS = 1, 10, 11  # marks that its place in the sentence decides
WORDS_KEPT = 8_192


def spell(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """A sentence's words -> (w, PARTS) int64 buckets, (w, FLAGS) float32 marks."""
    spelt = [_spelt(word) if is_remembered(word) else _spelt.__wrapped__(word) for word in words]
    buckets = np.array([parts for parts, _ in spelt], np.int64).reshape(-1, PARTS)
    marks = np.array([own for _, own in spelt], np.float32).reshape(-1, FLAGS)
    marks[0, INSIDE] = 0
    marks[0, FIRST] = 1
    marks[:, IN_CAPITALS] = any(word[0].isupper() for word in words[1:])
    return buckets, marks


@lru_cache(WORDS_KEPT)
def _spelt(word: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """A word's buckets, and its marks inside a sentence."""
    small = word.lower()
    buckets = (
        _bucket(small, WORD_BUCKETS),
        _bucket("$" + small[-3:], AFFIX_BUCKETS),
        _bucket("^" + small[:3], AFFIX_BUCKETS),
    )
    capital = word[0].isupper()
    marks = (
        capital,
        capital,
        len(word) > 1 and word.isupper(),
        capital and not word[1:].islower(),
        not capital and not word.islower(),
        any(char.isdigit() for char in word),
        word.isdigit(),
        not word[0].isalnum(),
        "-" in word or "." in word,
        word[0] in "@#" or "://" in word,
        False,
        False,
    )
    return buckets, marks


def _bucket(part: str, buckets: int) -> int:
    return zlib.crc32(part.encode("utf-8", "replace")) % buckets
