"""all-MiniLM-L6-v2: text in, unit vector out, without torch.

Owns the choice of how the model runs; its tokenizer is that of word_pieces.py. Knows nothing of
queues, event loops or settings; every call here blocks.

Matrix products run in int8. Weights carry one scale per output column. Activations carry one scale
per *token*, taken from the token's own largest magnitude; the usual dynamic quantisation takes one
scale from the whole batch, so that a text's vector would depend on the texts it happens to be
batched with (cosine between the two down to 0.98). Here a text has the same vector in any company,
and lies nearer to the float model (mean cosine 0.997 instead of 0.993).

Two ways to run it on a processor, whose vectors agree as well as two roundings can (mean cosine
0.9996): compiled loops where it has the instructions for them (kernels.py), the same vectors to the
bit on each that has; the graph on onnxruntime elsewhere (onnx.py). On a GPU it runs in half
precision (../torch_encoder.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from runtime.inference.embedding import Embedding, Spans
from runtime.inference.language.parse import Parse, ToRead
from runtime.inference.language.states import word_states
from runtime.inference.local_embedder import Pause, Tokens
from runtime.inference.minilm.weights import (
    NAME,
    WIDTH,
    Device,
    checked_weights,
    kept,
    packaged_files,
)
from runtime.inference.minilm.word_pieces import WordPieces, open_tokenizer
from runtime.inference.minilm.word_vectors import word_vectors as vectors_of
from runtime.limits import (
    EMBEDDER_GPU_RUN_TOKENS_MAX,
    EMBEDDER_RUN_TOKENS_PER_THREAD_MAX,
)
from storage.indexes import byte_products


class Network(Protocol):
    """The model from token ids on."""

    @property
    def threads_max(self) -> int:
        """How many threads a run's pause may allow; 1 where it is not asked."""
        ...

    def run(
        self,
        texts: Sequence[Sequence[int]],
        *,
        inner: bool = False,
        last: bool = True,
        pause: Pause | None = None,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """n ≥ 1 texts' token ids -> (n, 384) float32 unit rows, and for each text its layers,
        (1, tokens, 384) float32, the last alone; with `inner` (3, tokens, 384), INNER_LAYERS first.
        Without `last`, which goes with `inner` alone, the rows are empty, (n, 0), and the layers
        (2, tokens, 384). pause: called between parts of the run.
        """
        ...


class MiniLm(WordPieces):
    """The loaded model. Calls block and may come from any thread; it serves one caller at a time
    best.
    """

    space = f"{NAME}/{WIDTH}"
    width = WIDTH

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        *,
        run_tokens_max: int = EMBEDDER_RUN_TOKENS_PER_THREAD_MAX,
        on_processor: bool = True,
    ):
        super().__init__(tokenizer)
        self.network = network
        self.threads_max = network.threads_max
        self.run_tokens_max = run_tokens_max
        self.on_processor = on_processor

    @classmethod
    def load(
        cls,
        directory: Path,
        model_path: Path | None = None,
        *,
        threads: int = 1,
        threads_max: int = 0,
        device: Device = "cpu",
    ) -> MiniLm:
        """Open the model, making what it runs from in `directory` first where that is not there and
        sound (seconds).

        model_path   a directory with model.safetensors and tokenizer.json; None takes the installed
                     package
        threads      how many may work on a run of a processor
        threads_max  how many on a long run, where its pause says so; as many, unless it is more
        device       what it runs on

        Raises ModelUnusable.
        """
        source = model_path or packaged_files()
        tokenizer = open_tokenizer(source / "tokenizer.json")
        if device == "cuda":
            network, tokens_max = _load_on_gpu(source), EMBEDDER_GPU_RUN_TOKENS_MAX
        else:
            network = _load_network(directory, source, threads, threads_max)
            tokens_max = EMBEDDER_RUN_TOKENS_PER_THREAD_MAX * threads
        return cls(network, tokenizer, run_tokens_max=tokens_max, on_processor=device == "cpu")

    def embed(self, texts: Sequence[Tokens], pause: Pause | None = None) -> np.ndarray:
        """n ≥ 1 texts -> (n, 384) float32 unit rows."""
        return self.network.run([text.ids for text in texts], pause=pause)[0]

    def embed_with_states(
        self, texts: Sequence[Tokens], pause: Pause | None = None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """As embed, and for each text (tokens, 384) float32: the last layer's vector of each token
        but [CLS] and [SEP].
        """
        vectors, layers = self.network.run([text.ids for text in texts], pause=pause)
        return vectors, [each[-1, 1:-1] for each in layers]

    def embed_with_layers(
        self, texts: Sequence[Tokens], *, last: bool = True, pause: Pause | None = None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """As embed, and for each text (3, tokens, 384) float32: the vectors of each token but [CLS]
        and [SEP] in the INNER_LAYERS and in the last one. Without `last` as Network.run.
        """
        ids = [text.ids for text in texts]
        vectors, layers = self.network.run(ids, inner=True, last=last, pause=pause)
        return vectors, [each[:, 1:-1] for each in layers]

    def embed_with_words(
        self,
        texts: Sequence[Tokens],
        words: Sequence[Spans | ToRead | None],
        pause: Pause | None = None,
    ) -> list[Embedding]:
        """As embed, with the vectors of these words of each text, or what is read of them."""
        wanted = [each.embedded if isinstance(each, ToRead) else each for each in words]
        if not any(isinstance(each, ToRead) for each in words):
            vectors, states = self.embed_with_states(texts, pause)
            parses: list[list[Parse]] = [[] for _ in texts]
        else:
            # Who wants no vector waits for no layer behind those that are read.
            last = not all(isinstance(each, ToRead) and each.embedded is None for each in words)
            vectors, layers = self.embed_with_layers(texts, last=last, pause=pause)
            states = [each[-1] for each in layers]
            if pause is not None:
                pause()
            parses = _read(texts, layers, words)
        return [
            Embedding(
                vector, None if spans is None else vectors_of(hidden, text.offsets, spans), parsed
            )
            for text, vector, hidden, spans, parsed in zip(
                texts, vectors, states, wanted, parses, strict=True
            )
        ]


def _read(
    texts: Sequence[Tokens],
    layers: Sequence[np.ndarray],
    words: Sequence[Spans | ToRead | None],
) -> list[list[Parse]]:
    """The parses of each text that is to be read; of all their sentences at once."""
    # Loaded by whoever reads first: a service that reads nothing pays nothing for it.
    from runtime.inference.language.heads import heads

    sentences: list[Sequence[str]] = []
    states = []
    for text, each, wanted in zip(texts, layers, words, strict=True):
        if isinstance(wanted, ToRead):
            sentences += wanted.sentences
            states.append(word_states(each, text.offsets, wanted.spans))
    found = iter(heads().parse(sentences, np.concatenate(states)))
    return [
        [next(found) for _ in each.sentences] if isinstance(each, ToRead) else [] for each in words
    ]


def _load_network(directory: Path, source: Path, threads: int, threads_max: int) -> Network:
    # Each is imported where it is used: the one cannot be compiled without the instructions, the
    # other costs memory.
    if byte_products() is not None:
        from runtime.inference.minilm.kernels import PACKED_VERSION, CompiledMiniLm, packed

        return CompiledMiniLm.open(
            kept(directory / f"{NAME}-packed-v{PACKED_VERSION}", source, packed),
            threads,
            threads_max,
        )
    from runtime.inference.minilm.onnx import GraphMiniLm

    return GraphMiniLm.load(directory, source, threads)


def _load_on_gpu(source: Path) -> Network:
    from runtime.inference.gpu import gpu_name
    from runtime.inference.minilm.onnx import ARCHITECTURE, GraphMiniLm
    from runtime.inference.torch_encoder import TorchEncoder

    gpu_name()
    weights = checked_weights(source / "model.safetensors")
    return GraphMiniLm(TorchEncoder(ARCHITECTURE, weights))
