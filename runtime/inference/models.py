"""Every model that a process was given, as one value; which they are, the settings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from runtime.extras import LLM
from runtime.inference.embedding import Embedding, Prefixes, Spans
from runtime.inference.language import Reading
from runtime.inference.language_model import LanguageModel
from runtime.inference.local_embedder import ModelWorker, Worker
from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.embedder import MiniLmEmbedder
from runtime.inference.minilm.weights import ModelUnusable, is_embedded_model
from runtime.inference.multilingual import MultilingualEmbedder, MultilingualMiniLm
from runtime.inference.openai_embedder import OpenAiEmbedder
from runtime.inference.reranker import Reranker, load_reranker
from runtime.inference.transcription_and_ocr import (
    Recogniser,
    Transcriber,
    load_recogniser,
    load_transcriber,
)
from runtime.machine import usable_cores

if TYPE_CHECKING:
    from runtime.inference.checkpoint import Checkpoint
    from runtime.settings import EmbedderSettings, Settings


class Embedder(Protocol):
    """Text to unit vectors of one space.

    space  the model and its width, such as "all-MiniLM-L6-v2/384"
    width  numbers per vector

    A remote embedder learns both from its first answer; before that, asking raises
    InferenceUnavailable.
    """

    @property
    def space(self) -> str: ...

    @property
    def width(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        """n texts -> (n, width) float32 unit rows; none -> (0, width). is_query: they ask for what
        others say, which some models read in another way. Raises InferenceUnavailable.
        """
        ...

    async def embed_words(
        self, texts: Sequence[str], words: Sequence[Spans], *, is_query: bool = False
    ) -> list[Embedding]:
        """As embed, and for each text the vectors of some of its words, given by their code points
        (start, end).

        An embedder whose model shows no tokens gives None for the words. Raises
        InferenceUnavailable.
        """
        ...

    async def read_language(self, texts: Sequence[str]) -> list[Reading]:
        """What each text says; sentences without tokens where it is not English, or where the model
        is not the one that the heads were taught on. Raises InferenceUnavailable.
        """
        ...

    async def embed_read(
        self, texts: Sequence[str], words: Sequence[Spans]
    ) -> list[tuple[Embedding, Reading]]:
        """As embed_words and read_language, of one run of the model where that reads a text as a
        whole. Raises InferenceUnavailable.
        """
        ...

    @property
    def words_of_one_language(self) -> bool:
        """Whether the vectors of words say something of one language alone, though texts in others
        are read.
        """
        ...

    def makes(self, space: str) -> bool:
        """Whether its vectors belong to this space."""
        ...

    def knows(self, word: str) -> bool:
        """Whether the model has met this word as one; of a remote model nobody can tell, and it
        counts as known.
        """
        ...

    def spellings(self, word: str) -> list[str]:
        """Words that the model has met, one slip of the fingers away from one that it has not; the
        likeliest first. Of a remote model nobody can tell, and there are none.
        """
        ...

    def slips_undone(self, word: str) -> dict[str, float]:
        """The texts that one slip may have made this word of, spelled as words are that the model
        has met, and how likely. Of a remote model nobody can tell, and there are none.
        """
        ...

    def readable(self, text: str) -> str:
        """The text without words of scripts that the model was not taught, whose vectors say
        nothing; "" when none is left. Of a remote model nobody can tell, and all is readable.
        """
        ...

    def taught(self, language: str) -> bool:
        """Whether the model was taught a language, by its English name in small letters; of a
        remote model nobody can tell, and it counts as taught.
        """
        ...

    def yield_to_reads(self, reads_wait: bool) -> None:
        """Take note, from any thread, whether reads that are ready wait for their turn: what is
        embedded meanwhile would only wait beside them, so a model of this machine may rather gather
        texts for a fuller run.
        """
        ...

    def stats(self) -> dict[str, float]:
        """Figures for metrics; counters end in `_total`."""
        ...

    async def close(self) -> None:
        """Give up what still waits and free what is held. May be called twice."""
        ...


@dataclass(slots=True)
class Models:
    """Every model this process was given. A gateway has no embedder: what needs one is asked of a
    shard.

    of_plugins  models that plugins declare, by name; a gateway has none of them either
    previous     the embedder that is being replaced, while it is
    accepts_any  whether accounts may have vectors that none of the embedders makes
    """

    shard_embedder: Embedder | None
    language_model: LanguageModel | None = None
    transcriber: Transcriber | None = None
    recogniser: Recogniser | None = None
    reranker: Reranker | None = None
    of_plugins: Mapping[str, Any] = field(default_factory=dict)
    previous: Embedder | None = None
    accepts_any: bool = False

    def of(self, name: str) -> Any:
        """A plugin's model, in a shard. LookupError in a gateway."""
        if name not in self.of_plugins:
            raise LookupError(f"this process has no model {name!r}")
        return self.of_plugins[name]

    def embedder_of(self, space: str | None) -> Embedder:
        """The embedder that makes this space: the current one unless it is the previous one's."""
        if self.previous is not None and space is not None and self.previous.makes(space):
            return self.previous
        return self.embedder

    def makes(self, space: str) -> bool:
        """Whether one of the embedders makes this space, or none has to."""
        embedders = (self.embedder, self.previous)
        return self.accepts_any or any(each is not None and each.makes(space) for each in embedders)

    @property
    def embedder(self) -> Embedder:
        """The embedder, in a shard. LookupError in a gateway."""
        if self.shard_embedder is None:
            raise LookupError("this process has no embedder")
        return self.shard_embedder

    async def read_language(self, texts: Sequence[str]) -> list[Reading]:
        """As Embedder.read_language. LookupError in a gateway."""
        return await self.embedder.read_language(texts)

    async def close(self) -> None:
        for model in (
            self.shard_embedder,
            self.previous,
            self.language_model,
            self.transcriber,
            self.recogniser,
            self.reranker,
        ):
            if model is not None:
                await model.close()


SharedWorkers = Callable[[str], Worker | None]  # by the name of an embedder's section


def load_models(
    settings: Settings, data_dir: Path, shared: SharedWorkers = lambda section: None
) -> Models:
    """What the settings ask for. Blocks: seconds the first time in a data directory, a tenth of a
    second later.

    shared  where an embedder's model runs in a process that serves all shards, the worker that
            asks it; None where it runs in this one

    Raises ModelUnusable when the embedded model is not installed or not itself, or another one
    cannot be used.
    """
    return Models(
        load_embedder(settings.embedder, data_dir, shared("embedder")),
        load_language_model(settings),
        transcriber=load_transcriber(settings),
        recogniser=load_recogniser(settings),
        reranker=load_reranker(settings),
        previous=load_previous_embedder(settings, data_dir, shared("previous_embedder")),
        accepts_any=settings.previous_embedder.backend == "lost",
    )


def load_previous_embedder(
    settings: Settings, data_dir: Path, worker: Worker | None = None
) -> Embedder | None:
    """The embedder that is being replaced, if one is. Raises ModelUnusable."""
    chosen = settings.previous_embedder
    if chosen.backend in ("none", "lost"):
        return None
    return load_embedder(chosen, data_dir, worker)


def load_embedder(
    chosen: EmbedderSettings, data_dir: Path, worker: Worker | None = None
) -> Embedder:
    """The embedder that a section asks for; worker: what runs its model, where this process is not
    to. Blocks as load_models does. Raises ModelUnusable.
    """
    bounds: dict[str, Any] = {
        "timeout_seconds": chosen.timeout_seconds,
        "queue_max": chosen.queue_max,
        "cache_entries": chosen.cache_entries,
    }
    if chosen.backend == "openai":
        # The settings refuse a backend "openai" without these two.
        assert chosen.base_url and chosen.model
        return OpenAiEmbedder(
            chosen.base_url,
            chosen.api_key.get_secret_value() if chosen.api_key else None,
            chosen.model,
            prefixes=Prefixes(chosen.query_prefix or "", chosen.passage_prefix or ""),
            **bounds,
        )
    where: dict[str, Any] = {
        "threads": _threads(chosen),
        "device": chosen.device,
        "worker": worker,
    }
    checkpoint = checkpoint_of(chosen)
    if checkpoint is not None:
        # It stands on onnxruntime, which costs memory; the compiled model needs none of it.
        from runtime.inference.checkpoint import CheckpointEmbedder

        return CheckpointEmbedder(checkpoint, data_dir / "models", **where, **bounds)
    most = _threads_max(chosen)
    kind = MultilingualEmbedder if chosen.multilingual else MiniLmEmbedder
    return kind(data_dir / "models", chosen.model_path, threads_max=most, **where, **bounds)


def load_worker(chosen: EmbedderSettings, data_dir: Path) -> ModelWorker:
    """The model of a section of the settings, at work in this process for whoever asks. Blocks as
    load_models does. Raises ModelUnusable.
    """
    checkpoint, directory, threads = checkpoint_of(chosen), data_dir / "models", _threads(chosen)
    if checkpoint is None:
        kind = MultilingualMiniLm if chosen.multilingual else MiniLm
        return ModelWorker(
            kind.load(
                directory,
                chosen.model_path,
                threads=threads,
                threads_max=_threads_max(chosen),
                device=chosen.device,
            )
        )
    from runtime.inference.checkpoint import CheckpointModel

    return ModelWorker(
        CheckpointModel.load(checkpoint, directory, threads=threads, device=chosen.device)
    )


def _threads(chosen: EmbedderSettings) -> int:
    return chosen.threads or max(1, usable_cores() // 2)


def _threads_max(chosen: EmbedderSettings) -> int:
    """Of a long run, while nobody else has work for a core."""
    return chosen.threads or usable_cores()


def checkpoint_of(chosen: EmbedderSettings) -> Checkpoint | None:
    """What embedder.model_path holds, unless it is a copy of the embedded model or nothing is set.
    Raises ModelUnusable.
    """
    folder = chosen.model_path
    if folder is None or chosen.backend != "minilm" or is_embedded_model(folder):
        return None
    if chosen.multilingual:
        raise ModelUnusable(
            f"embedder.multilingual goes with the embedded model, and {folder} holds another. "
            "Leave it out, or embedder.model_path."
        )
    from runtime.inference.checkpoint import read_checkpoint

    return read_checkpoint(
        folder, query_prefix=chosen.query_prefix, passage_prefix=chosen.passage_prefix
    )


def learn_word_directions(settings: Settings, data_dir: Path) -> Path:
    """Write word_vectors.npz into the folder of the checkpoint that the settings name; -> its path.
    Blocks for seconds to minutes. Raises ModelUnusable, ValueError, OSError.
    """
    checkpoint = checkpoint_of(settings.embedder)
    if checkpoint is None:
        raise ValueError(
            "embedder.model_path names no checkpoint, and the embedded model has its own"
        )
    from runtime.inference.checkpoint import write_word_vectors

    return write_word_vectors(checkpoint, data_dir / "models", settings.embedder.threads or 1)


def load_language_model(settings: Settings) -> LanguageModel | None:
    """Make the language model that the settings ask for; None where they name no endpoint.

    What it stands on takes nearly a second to import, so that happens here, if at all. Raises
    ModelUnusable where it is not installed.
    """
    chosen = settings.llm
    if chosen.base_url is None:
        return None
    if LLM.is_missing:
        raise ModelUnusable(
            f"llm.base_url is set, and what asks it is not installed. Run {LLM.command}, or leave "
            "the setting out."
        )
    from runtime.inference.openai_chat import OpenAiLanguageModel

    return OpenAiLanguageModel(
        chosen.base_url,
        chosen.api_key.get_secret_value() if chosen.api_key else None,
        chosen.model or "default",
        timeout_seconds=chosen.timeout_seconds,
    )
