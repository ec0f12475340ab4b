"""A small embedder for tests: words hashed into a few dimensions, and the two ways an embedder can
fail its callers.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from runtime.inference import Embedding, InferenceUnavailable, language
from runtime.inference.minilm.embedder import latin
from storage.text import Speller

LONG_CHARS_MIN = 10_000
_Made = TypeVar("_Made")


async def _of_texts(texts: Sequence[str], call: Callable[[], _Made]) -> _Made:
    """What the call answers; for long texts on a thread, as embedders that take time do."""
    return await asyncio.to_thread(call) if sum(map(len, texts)) >= LONG_CHARS_MIN else call()


def _words(text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    found = np.zeros((len(spans), 64), np.int8)
    for row, (start, end) in zip(found, spans, strict=True):
        row[zlib.crc32(text[start:end].lower().encode()) % 64] = 127
    return found


class WordEmbedder:
    """Texts that share words are near each other. `down` refuses, `late` keeps callers waiting;
    `texts` is what it embedded; all words are known but those with `known_spellings`. It reads
    every script and language, unless `reads_all` is false: then English alone.
    """

    space = "words/32"
    width = 32

    def __init__(self) -> None:
        self.down = False
        self.texts: list[str] = []
        self.known_spellings: dict[str, list[str]] = {}
        self.reads_all = True
        self._prompt = asyncio.Event()
        self._prompt.set()

    @property
    def late(self) -> bool:
        return not self._prompt.is_set()

    @late.setter
    def late(self, late: bool) -> None:
        (self._prompt.clear if late else self._prompt.set)()

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        if self.down:
            raise InferenceUnavailable("the embedder is down")
        await self._prompt.wait()
        self.texts += texts
        return await _of_texts(texts, lambda: self._vectors(texts))

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()) or [""]:
                row[zlib.crc32(word.encode()) % self.width] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def stats(self) -> dict[str, float]:
        return {"texts_total": len(self.texts)}

    def makes(self, space: str) -> bool:
        return space == self.space

    def knows(self, word: str) -> bool:
        return "qx" not in word and word not in self.known_spellings

    def spellings(self, word: str) -> list[str]:
        return [] if self.knows(word) else self.known_spellings.get(word, [])

    def slips_undone(self, word: str) -> dict[str, float]:
        """By the letters of all that it was given so far."""
        return Speller(set(re.findall(r"[a-z]+", " ".join(self.texts).lower()))).undone(word)

    def readable(self, text: str) -> str:
        return text if self.reads_all else latin(text)

    @property
    def words_of_one_language(self) -> bool:
        return False

    def taught(self, language: str) -> bool:
        return self.reads_all or language == "english"

    def yield_to_reads(self, reads_wait: bool) -> None:
        """It takes no time."""

    async def embed_words(
        self,
        texts: Sequence[str],
        words: Sequence[Sequence[tuple[int, int]]],
        *,
        is_query: bool = False,
    ) -> list[Embedding]:
        """Equal words are alike, others at right angles, unless two fall on the same place."""
        vectors = await self.embed(texts)
        return await _of_texts(
            texts,
            lambda: [
                Embedding(vector, _words(text, spans))
                for vector, text, spans in zip(vectors, texts, words, strict=True)
            ],
        )

    async def read_language(self, texts: Sequence[str]) -> list[language.Reading]:
        return await _of_texts(texts, lambda: [language.unread(text) for text in texts])

    async def embed_read(
        self, texts: Sequence[str], words: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[Embedding, language.Reading]]:
        embeddings = await self.embed_words(texts, words)
        return list(zip(embeddings, await self.read_language(texts), strict=True))

    async def close(self) -> None:
        pass
