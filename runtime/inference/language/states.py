"""The embedding model's inner layers, word by word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from storage.indexes import FLOAT32, INT64, in_array, kernel, out_array


def word_states(
    layers: np.ndarray, offsets: Sequence[tuple[int, int]], words: Sequence[tuple[int, int]]
) -> np.ndarray:
    """One text's words -> (w, 768) float32: the mean of a word's tokens in the second and in the
    fourth layer; zeros for a word that the model did not read.

    layers   (3, tokens, 384) float32, [CLS] and [SEP] left out
    offsets  code points (start, end) of each token, ascending
    words    the same of each word, ascending
    """
    found = np.zeros((len(words), 2 * layers.shape[2]), np.float32)
    if words and offsets:
        _average(
            np.ascontiguousarray(layers),
            np.array(offsets, np.int64),
            np.array(words, np.int64),
            found,
        )
    return found


@kernel(in_array(FLOAT32, 3), in_array(INT64, 2), in_array(INT64, 2), out_array(FLOAT32, 2))
def _average(layers, offsets, words, found):
    first, width = 0, layers.shape[2]
    for word in range(words.shape[0]):
        while first < offsets.shape[0] and offsets[first, 1] <= words[word, 0]:
            first += 1
        token = first
        while token < offsets.shape[0] and offsets[token, 0] < words[word, 1]:
            for number in range(width):
                found[word, number] += layers[0, token, number]
                found[word, width + number] += layers[1, token, number]
            token += 1
        if token > first:
            share = np.float32(1) / np.float32(token - first)
            for number in range(2 * width):
                found[word, number] *= share
