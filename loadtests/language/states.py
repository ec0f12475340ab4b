"""What the embedding model makes of each word of the treebanks: layers 2 and 4, the mean of the
word's pieces.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from loadtests.language.treebanks import Gold
from runtime.inference.language.states import word_states
from runtime.inference.minilm import MiniLm

WINDOW_SENTENCES_MAX, WINDOW_WORDS_MAX = 5, 120
RUN_TEXTS = 16


def text_of(gold: Gold, start: int = 0) -> tuple[str, list[tuple[int, int]]]:
    """The sentence as a text, and where its words stand when it begins at `start`."""
    text, spans = "", []
    for word, glued in zip(gold.words, gold.glued, strict=True):
        spans.append((start + len(text), start + len(text) + len(word)))
        text += word if glued else word + " "
    return text, spans


def states_of(golds: Sequence[Gold], kept: Path | None = None) -> list[np.ndarray]:
    """(words, 768) float16 of each sentence, read with its neighbours of the same document."""
    counts = [len(gold.words) for gold in golds]
    edges = np.cumsum([0, *counts])
    if kept is not None and kept.exists():
        rows = np.load(kept, mmap_mode="r")
        if len(rows) == edges[-1]:
            return [rows[edges[i] : edges[i + 1]] for i in range(len(golds))]
    rows = np.zeros((edges[-1], 768), np.float16)
    with tempfile.TemporaryDirectory() as directory:
        model = MiniLm.load(Path(directory))
        windows = _windows(golds)
        windows.sort(key=lambda window: sum(counts[at] for at in window))
        for first in range(0, len(windows), RUN_TEXTS):
            _fill(rows, model, golds, windows[first : first + RUN_TEXTS], edges)
    if kept is not None:
        np.save(kept, rows)
    return [rows[edges[i] : edges[i + 1]] for i in range(len(golds))]


def _windows(golds: Sequence[Gold]) -> list[list[int]]:
    rng, found = random.Random(1), []
    room, words = 0, 0
    for at, gold in enumerate(golds):
        joins = room > 0 and gold.document and gold.document == golds[at - 1].document
        if joins and words + len(gold.words) <= WINDOW_WORDS_MAX:
            found[-1].append(at)
        else:
            found.append([at])
            room, words = rng.randint(1, WINDOW_SENTENCES_MAX), 0
        room, words = room - 1, words + len(gold.words)
    return found


def _fill(
    rows: np.ndarray,
    model: MiniLm,
    golds: Sequence[Gold],
    windows: list[list[int]],
    edges: np.ndarray,
) -> None:
    texts, spans = [], []
    for window in windows:
        text, inside = "", []
        for at in window:
            more, where = text_of(golds[at], len(text))
            text, inside = text + more, inside + where
        texts.append(text)
        spans.append(inside)
    tokens = model.encode(texts)
    _, layers = model.embed_with_layers(tokens)
    for window, inside, encoded, states in zip(windows, spans, tokens, layers, strict=True):
        found = word_states(states, encoded.offsets, inside)
        done = 0
        for at in window:
            count = len(golds[at].words)
            rows[edges[at] : edges[at + 1]] = found[done : done + count]
            done += count
