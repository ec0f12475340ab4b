"""What the heads say of a sentence, in numbers, and what they are asked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class ToRead(NamedTuple):
    """A text's words, for the heads: those of each sentence, and where each stands in it (code
    points).

    embedded  where the text is embedded in the same run, the words whose vectors are wanted; None
              where it is read alone
    """

    sentences: tuple[tuple[str, ...], ...]
    spans: tuple[tuple[int, int], ...]
    embedded: tuple[tuple[int, int], ...] | None = None


class Parse(NamedTuple):
    """What the heads say of a sentence's words: a row a word, classes by their numbers."""

    tags: np.ndarray
    detailed: np.ndarray
    edits: np.ndarray
    nominal: np.ndarray
    spans: np.ndarray
    span_certainties: np.ndarray
    tree: np.ndarray
    relations: np.ndarray
    certainties: np.ndarray
    kind: int
