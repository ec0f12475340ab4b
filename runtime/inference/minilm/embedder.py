"""The embedded model as an embedder: what it knows of words, languages and scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import regex

from runtime import limits
from runtime.inference import language
from runtime.inference.embedding import Asked, Embedding, Spans
from runtime.inference.language import Reading, Sentence
from runtime.inference.language.segmentation import Segment
from runtime.inference.language.windows import to_read, windows
from runtime.inference.local_embedder import LocalEmbedder, ModelWorker, Worker
from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.weights import Device
from runtime.inference.minilm.word_pieces import WordPieces
from runtime.long_work import aside
from storage.indexes import load_kernels
from storage.text import Speller

# Of other scripts the vocabulary has letters, or nothing, and no words.
_FOREIGN = regex.compile(r"[\p{L}--\p{Latin}]\p{M}*", regex.V1)


def latin(text: str) -> str:
    """The text without words of other scripts; "" when neither letter nor digit is left."""
    return text if text.isascii() else without(_FOREIGN, text)


def without(unread: regex.Pattern[str], text: str) -> str:
    """The text without what a model cannot read; "" when neither letter nor digit is left."""
    return what_is_left(unread.sub(" ", text)) if unread.search(text) else text


def what_is_left(text: str) -> str:
    """A text that something was taken out of, one space between words; "" when neither letter nor
    digit is left.
    """
    return " ".join(text.split()) if any(char.isalnum() for char in text) else ""


class _Cut(NamedTuple):
    """A text on its way to its reading: what is to be read of it, and what the model is asked of
    each window; the sentences so far. is_embedded: whether the one window is the whole text, and
    its embedding is the text's.
    """

    windows: list[list[Segment]]
    asked: list[Asked]
    sentences: list[Sentence]
    is_embedded: bool = False


def _load_assembly() -> Callable[..., list[list[Sentence]]]:
    """Load the heads, and give what makes sentences of parses: (texts, (row, window) of some, their
    embeddings) -> each window's sentences.
    """
    from runtime.inference.language.assembly import assemble
    from runtime.inference.language.heads import heads

    loaded = heads()
    load_kernels()  # here, and not in the worker that others wait for

    def sentences(
        texts: Sequence[str],
        part: Sequence[tuple[int, Sequence[Segment]]],
        embeddings: Sequence[Embedding],
    ) -> list[list[Sentence]]:
        return [
            [
                assemble(loaded, texts[row], segment, parse)
                for segment, parse in zip(window, embedding.parses, strict=True)
            ]
            for (row, window), embedding in zip(part, embeddings, strict=True)
        ]

    return sentences


class MiniLmEmbedder(LocalEmbedder):
    """all-MiniLM-L6-v2, on a worker of this process unless another one is given."""

    model: type[MiniLm] = MiniLm

    def __init__(
        self,
        model_directory: Path,
        model_path: Path | None = None,
        *,
        threads: int = 1,
        threads_max: int = 0,
        device: Device = "cpu",
        worker: Worker | None = None,
        timeout_seconds: float = 10.0,
        queue_max: int = 4_096,
        cache_entries: int = 4_096,
    ):
        """Blocks while the model loads, or is built into `model_directory` the first time. Raises
        ModelUnusable.
        """
        if worker is None:
            model = self.model.load(
                model_directory,
                model_path,
                threads=threads,
                threads_max=threads_max,
                device=device,
            )
            self._pieces: WordPieces = model
            worker = ModelWorker(model)
        else:
            self._pieces = WordPieces.open(model_path)
        self._vocabulary = self._pieces.vocabulary()
        self._speller = Speller(self._vocabulary.keys())
        self._assemble: Callable[..., list[list[Sentence]]] | None = None
        super().__init__(
            worker,
            space=self.model.space,
            width=self.model.width,
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

    def slips_undone(self, word: str) -> dict[str, float]:
        return self._speller.undone(word)

    async def read_language(self, texts: Sequence[str]) -> list[Reading]:
        return (await self._read(texts, [None] * len(texts)))[0]

    async def embed_read(
        self, texts: Sequence[str], words: Sequence[Spans]
    ) -> list[tuple[Embedding, Reading]]:
        readings, embeddings = await self._read(texts, words)
        left = [row for row in range(len(texts)) if row not in embeddings]
        alone = await self.embed_words([texts[row] for row in left], [words[row] for row in left])
        embeddings |= dict(zip(left, alone, strict=True))
        return [(embeddings[row], reading) for row, reading in enumerate(readings)]

    async def _read(
        self, texts: Sequence[str], words: Sequence[Spans | None]
    ) -> tuple[list[Reading], dict[int, Embedding]]:
        """What each text says; and, by the text's place, the embeddings of those that the model
        reads as a whole, where words are given.
        """
        # Outside the time limit, since the loops may have to be compiled.
        assemble = self._assemble = self._assemble or await asyncio.to_thread(_load_assembly)
        # Half a surrogate pair has no UTF-8; a question mark takes its place.
        cleaned = [text.encode("utf-8", "replace").decode() for text in texts]
        is_long = sum(map(len, cleaned)) > limits.EMBEDDER_SMALL_REQUEST_CHARS_MAX
        # Long texts are read in turns, and short ones need not wait for them.
        beside = aside if is_long else asyncio.to_thread
        found = await beside(lambda: list(map(self._cut_up, cleaned, words)))
        windows = [(row, at) for row, cut in enumerate(found) for at in range(len(cut.windows))]
        embedded: dict[int, Embedding] = {}
        for first in range(0, len(windows), limits.EMBEDDER_ROUND_TEXTS_MAX):
            part = windows[first : first + limits.EMBEDDER_ROUND_TEXTS_MAX]
            embeddings = await self._embed([found[row].asked[at] for row, at in part])
            cut = [(row, found[row].windows[at]) for row, at in part]
            read = await beside(assemble, cleaned, cut, embeddings)
            for (row, _), sentences, embedding in zip(part, read, embeddings, strict=True):
                found[row].sentences.extend(sentences)
                if found[row].is_embedded:
                    embedded[row] = embedding
        return [Reading(tuple(cut.sentences)) for cut in found], embedded

    def _cut_up(self, text: str, words: Spans | None) -> _Cut:
        if not language.readable(text):
            return _Cut([], [], list(language.unread(text).sentences))
        segments = language.read_sentences(text)
        pieces_max = limits.EMBEDDED_TOKENS_MAX - 2
        cut = windows(text, segments, self._pieces.pieces, pieces_max)
        asked = [to_read(text, window) for window in cut]
        is_whole = len(cut) == 1 and len(asked[0][0]) == len(text) <= limits.EMBEDDED_CHARS_MAX
        if words is None or not is_whole:
            return _Cut(cut, [*asked], [])
        whole, wanted = asked[0]
        return _Cut(cut, [(whole, wanted._replace(embedded=tuple(words)))], [], is_embedded=True)

    def readable(self, text: str) -> str:
        return latin(text)

    def taught(self, language: str) -> bool:
        return language == "english"
