"""Learn the directions of words anew and write word_vectors.npz: python -m
runtime.inference.minilm.learn_words
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.word_vectors import FILE, learn


def plain_words(vocabulary: dict[str, int]) -> list[str]:
    """The plain English words of the model's vocabulary, in its order."""
    return [
        word
        for word, _ in sorted(vocabulary.items(), key=lambda item: item[1])
        if word.isascii() and word.isalpha() and len(word) > 2
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        model = MiniLm.load(Path(directory))
        mean, directions = learn(
            plain_words(model.vocabulary()),
            lambda text: model.embed_with_states(model.encode([text]))[1][0],
        )
    np.savez_compressed(
        FILE, mean=mean.astype(np.float32), directions=directions.astype(np.float32)
    )
    print(f"{FILE}: {FILE.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
