"""The embedded model as an embedder: what it knows of words, languages and scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import regex

from runtime import limits
from runtime.inference import language
from runtime.inference.embedding import Embedding
from runtime.inference.language import Reading, Sentence
from runtime.inference.language.segmentation import Segment
from runtime.inference.language.windows import to_read, windows
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


def _load_assembly() -> Callable[..., list[Sentence]]:
    """Load the heads, and give what makes sentences of parses: (text, windows, embeddings) ->
    sentences.
    """
    from runtime.inference.language.assembly import assemble
    from runtime.inference.language.heads import heads

    loaded = heads()

    def sentences(
        text: str, cut: Sequence[Sequence[Segment]], embeddings: Sequence[Embedding]
    ) -> list[Sentence]:
        return [
            assemble(loaded, text, segment, parse)
            for window, embedding in zip(cut, embeddings, strict=True)
            for segment, parse in zip(window, embedding.parses, strict=True)
        ]

    return sentences


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
        self._minilm = model = MiniLm.load(model_directory, model_path, threads=threads)
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

    async def read_language(self, texts: Sequence[str]) -> list[Reading]:
        # Outside the time limit, since the loops may have to be compiled.
        assemble = await asyncio.to_thread(_load_assembly)
        return [await self._read(text, assemble) for text in texts]

    async def _read(self, text: str, assemble: Callable[..., list[Sentence]]) -> Reading:
        # Half a surrogate pair has no UTF-8; a question mark takes its place.
        text = text.encode("utf-8", "replace").decode()
        if not await asyncio.to_thread(language.readable, text):
            return await asyncio.to_thread(language.unread, text)
        cut = await asyncio.to_thread(self._windows, text)
        sentences: list[Sentence] = []
        for first in range(0, len(cut), limits.EMBEDDER_ROUND_TEXTS_MAX):
            part = cut[first : first + limits.EMBEDDER_ROUND_TEXTS_MAX]
            embeddings = await self._embed([to_read(text, window) for window in part])
            sentences += await asyncio.to_thread(assemble, text, part, embeddings)
        return Reading(tuple(sentences))

    def _windows(self, text: str) -> list[list[Segment]]:
        segments = language.read_sentences(text)
        return windows(text, segments, self._minilm.pieces, limits.EMBEDDED_TOKENS_MAX - 2)

    def readable(self, text: str) -> str:
        return latin(text)

    def taught(self, language: str) -> bool:
        return language == "english"
