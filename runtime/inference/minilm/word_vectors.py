"""The words of a text as small vectors: what late interaction compares (after Khattab and Zaharia,
ColBERT, 2020).

The last layer of all-MiniLM-L6-v2 has one vector per token. A word is the mean of its tokens'
vectors, less what all words have in common, turned into the 64 directions in which words differ
most, scaled to length one and kept in eight bits a number. Words of a query and of a memory then
compare by their cosine in context: "bank" beside a river is another word than beside a loan.

The common mean and the directions belong to the model alone. They are learned from words of its own
vocabulary in random company, no text of anybody's, and shipped in word_vectors.npz, because vectors
made with other directions could not be compared:

    python -m runtime.inference.minilm.learn_words        learns them anew and writes the file
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from runtime.inference.embedding import Spans
from runtime.inference.minilm.weights import QMAX
from storage.indexes import FLOAT32, INT8, INT64, in_array, kernel, out_array

WORD_WIDTH = 64
VOCABULARY_WORDS = 8_000
COMPANY_WORDS = 6
SEED = 1
FILE = Path(__file__).with_name("word_vectors.npz")


@cache
def directions() -> tuple[np.ndarray, np.ndarray]:
    """(mean (384,), directions (384, 64)), float32."""
    with np.load(FILE) as stored:
        return stored["mean"].astype(np.float32), np.ascontiguousarray(
            stored["directions"], np.float32
        )


def word_vectors(
    hidden: np.ndarray,
    offsets: Spans,
    words: Spans,
    basis: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """One text's words -> (w, 64) int8, unit vectors times 127; zeros for a word beyond what the
    model read.

    hidden   (tokens, width) float32, the last layer, [CLS] and [SEP] left out
    offsets  code points (start, end) of each token, ascending
    words    the same of each word asked for
    basis    another model's mean and directions; None for those of all-MiniLM-L6-v2
    """
    if not words:
        return np.zeros((0, WORD_WIDTH), np.int8)
    found = np.empty((len(words), WORD_WIDTH), np.int8)
    edges = np.array(offsets, np.int64).reshape(-1, 2)
    _project(
        np.ascontiguousarray(hidden),
        *(basis or directions()),
        edges,
        np.array(words, np.int64),
        found,
    )
    return found


@kernel(
    in_array(FLOAT32, 2),
    in_array(FLOAT32),
    in_array(FLOAT32, 2),
    in_array(INT64, 2),
    in_array(INT64, 2),
    out_array(INT8, 2),
)
def _project(hidden, mean, directions, edges, words, found):
    """Compiled, since it is between two runs of the model, where each step of the interpreter would
    wait for a search's.
    """
    total, turned = np.empty(hidden.shape[1], np.float32), np.empty(directions.shape[1], np.float32)
    for word in range(words.shape[0]):
        total[:] = 0
        turned[:] = 0
        for token in range(edges.shape[0]):
            if edges[token, 1] > words[word, 0] and edges[token, 0] < words[word, 1]:
                for number in range(total.shape[0]):
                    total[number] += hidden[token, number] - mean[number]
        for number in range(total.shape[0]):
            for direction in range(turned.shape[0]):
                turned[direction] += total[number] * directions[number, direction]
        square = np.float32(0)
        for direction in range(turned.shape[0]):
            square += turned[direction] * turned[direction]
        scale = np.float32(QMAX) / max(np.sqrt(square), np.float32(1e-6))
        for direction in range(turned.shape[0]):
            found[word, direction] = np.int8(np.rint(scale * turned[direction]))


def learn(
    words: list[str], hidden_states: Callable[[str], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(mean, directions) of these words of a model's vocabulary, 8,000 at most, each beside others
    drawn at random.

    hidden_states  text -> (tokens, width) without [CLS] and [SEP]
    """
    count = min(VOCABULARY_WORDS, len(words))
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, count, (VOCABULARY_WORDS // COMPANY_WORDS, COMPANY_WORDS))
    tokens = np.concatenate(
        [hidden_states(" ".join(words[number] for number in row)) for row in drawn]
    )
    mean = tokens.mean(axis=0)
    return mean, np.linalg.svd(tokens - mean, full_matrices=False)[2][:WORD_WIDTH].T
