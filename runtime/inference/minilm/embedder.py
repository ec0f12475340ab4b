"""The embedded model as an embedder: what it knows of words, languages and scripts."""

from __future__ import annotations

from pathlib import Path

import regex

from runtime.inference.local_embedder import LocalEmbedder
from runtime.inference.minilm import MiniLm
from storage.text import Speller

# Of other scripts the vocabulary has letters, or nothing, and no words.
_FOREIGN = regex.compile(r"[\p{L}--\p{Latin}]\p{M}*", regex.V1)


def latin(text: str) -> str:
    """The text without words of other scripts; "" when neither letter nor digit is left."""
    if text.isascii() or not _FOREIGN.search(text):
        return text
    left = " ".join(_FOREIGN.sub(" ", text).split())
    return left if any(char.isalnum() for char in left) else ""


class MiniLmEmbedder(LocalEmbedder):
    """all-MiniLM-L6-v2 on a worker thread of this process."""

    def __init__(
        self,
        model_directory: Path,
        model_path: Path | None = None,
        *,
        threads: int = 1,
        timeout_seconds: float = 10.0,
        queue_max: int = 4_096,
        cache_entries: int = 4_096,
    ):
        """Blocks while the model loads, or is built into `model_directory` the first time. Raises
        ModelUnusable.
        """
        model = MiniLm.load(model_directory, model_path, threads=threads)
        self._vocabulary = model.vocabulary()
        self._speller = Speller(self._vocabulary.keys())
        super().__init__(
            model,
            threads=threads,
            timeout_seconds=timeout_seconds,
            queue_max=queue_max,
            cache_entries=cache_entries,
        )

    def knows(self, word: str) -> bool:
        return word.lower() in self._vocabulary

    def spellings(self, word: str) -> list[str]:
        if self.knows(word):
            return []
        likely = self._speller.meant(word)
        # The commoner a word is, the sooner it got into the vocabulary: about as Zipf has it.
        return sorted(
            likely,
            key=lambda meant: self._vocabulary[meant] / likely[meant],
        )

    def readable(self, text: str) -> str:
        return latin(text)

    def taught(self, language: str) -> bool:
        return language == "english"
