"""A checkpoint that runs: its tokenizer, and its graph on onnxruntime, or what it is on a GPU.

The graph is made once, in int8 as that of the embedded model, and kept as
`<directory>/<digest>-<7|8>bit-v<VERSION>.graph`.
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from runtime.inference.bert_graph import (
    DISTANCE_BIAS,
    TOKEN_TYPES,
    Session,
    build_graph,
    weight_bits_here,
)
from runtime.inference.checkpoint.description import (
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    WORD_VECTORS_FILE,
    Checkpoint,
    unusable,
)
from runtime.inference.embedding import Embedding, Spans
from runtime.inference.encoder import Encoder
from runtime.inference.gpu import gpu_name
from runtime.inference.language.parse import ToRead
from runtime.inference.local_embedder import Pause, Tokens, tokens_of
from runtime.inference.minilm.weights import HEADER_BYTES, Device, kept_file
from runtime.inference.minilm.word_vectors import (
    VOCABULARY_WORDS,
    WORD_WIDTH,
    learn,
    word_vectors,
)
from runtime.limits import EMBEDDER_GPU_RUN_TOKENS_MAX, EMBEDDER_RUN_TOKENS_PER_THREAD_MAX

GRAPH_VERSION = 1
WORDS_MIN = 1_000
_WRAPPERS = ("bert.", "roberta.", "mpnet.", "model.", "0.auto_model.")
_MPNET_NAMES = (
    (".attention.attn.q.", ".attention.self.query."),
    (".attention.attn.k.", ".attention.self.key."),
    (".attention.attn.v.", ".attention.self.value."),
    (".attention.attn.o.", ".attention.output.dense."),
    (".attention.LayerNorm.", ".attention.output.LayerNorm."),
)
_WORD_START = "▁"  # how SentencePiece marks the beginning of a word


class CheckpointModel:
    """The loaded model. Calls block; it serves one caller at a time best."""

    threads_max = 1  # the session's own share every run

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: Tokenizer,
        session: Encoder,
        *,
        run_tokens_max: int,
        on_processor: bool,
    ):
        self.space, self.width = checkpoint.space, checkpoint.width
        self.run_tokens_max, self.on_processor = run_tokens_max, on_processor
        self.tokenizer = tokenizer
        self.vocabulary: dict[str, int] = tokenizer.get_vocab()
        self._session = session
        self._directions = _directions(checkpoint)

    @classmethod
    def load(
        cls, checkpoint: Checkpoint, directory: Path, *, threads: int = 1, device: Device = "cpu"
    ) -> CheckpointModel:
        """Open the model; on a processor, making its graph in `directory` first where that is not
        there and sound (seconds to a minute). Raises ModelUnusable.
        """
        tokenizer = open_tokenizer(checkpoint)
        if device == "cuda":
            from runtime.inference.torch_encoder import TorchEncoder

            gpu_name()
            return cls(
                checkpoint,
                tokenizer,
                TorchEncoder(checkpoint.architecture, read_weights(checkpoint)),
                run_tokens_max=EMBEDDER_GPU_RUN_TOKENS_MAX,
                on_processor=False,
            )
        bits = weight_bits_here()
        path = directory / f"{checkpoint.digest[:24]}-{bits}bit-v{GRAPH_VERSION}.graph"
        kept_file(
            path, lambda: build_graph(checkpoint.architecture, read_weights(checkpoint), bits)
        )
        return cls(
            checkpoint,
            tokenizer,
            Session(path.read_bytes()[HEADER_BYTES:], threads),
            run_tokens_max=EMBEDDER_RUN_TOKENS_PER_THREAD_MAX * threads,
            on_processor=True,
        )

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        return [
            Tokens(found.ids, found.offsets[1:-1], text)
            for text, found in ((text, tokens_of(self.tokenizer, text)) for text in texts)
        ]

    def embed(self, texts: Sequence[Tokens], pause: Pause | None = None) -> np.ndarray:
        return self._session.run([text.ids for text in texts], pause)[0]

    def embed_with_words(
        self,
        texts: Sequence[Tokens],
        words: Sequence[Spans | ToRead | None],
        pause: Pause | None = None,
    ) -> list[Embedding]:
        vectors, states = self._session.run([text.ids for text in texts], pause)
        return [
            Embedding(
                vector,
                None
                if spans is None or isinstance(spans, ToRead) or self._directions is None
                else word_vectors(hidden[1:-1], text.offsets, spans, self._directions),
            )
            for text, vector, hidden, spans in zip(texts, vectors, states, words, strict=True)
        ]

    def learn_directions(self) -> tuple[np.ndarray, np.ndarray]:
        """(mean (width,), directions (width, 64)) of the whole words of its vocabulary. ValueError
        where it has too few, or is too narrow.
        """
        words = self.whole_words()
        if len(words) < WORDS_MIN or self.width < WORD_WIDTH:
            raise ValueError(
                f"{len(words)} whole words in {self.width} dimensions are too few to learn from"
            )

        def hidden_states(text: str) -> np.ndarray:
            return self._session.run([self.tokenizer.encode(text).ids])[1][0][1:-1]

        # Spread over the vocabulary, whose beginning is of its commonest scripts.
        return learn(words[:: max(1, len(words) // VOCABULARY_WORDS)], hidden_states)

    def whole_words(self) -> list[str]:
        """The pieces of its vocabulary that are words of two letters or more, in its order."""
        pieces = [piece for piece, _ in sorted(self.vocabulary.items(), key=lambda item: item[1])]
        marked = any(piece.startswith(_WORD_START) for piece in pieces)
        starts = (
            piece[1:] if marked else piece
            for piece in pieces
            if not marked or piece.startswith(_WORD_START)
        )
        return [word for word in starts if len(word) > 1 and word.isalpha()]


def write_word_vectors(checkpoint: Checkpoint, directory: Path, threads: int) -> Path:
    """Learn the directions of a checkpoint's words and write them into its folder; -> the file.
    Raises ModelUnusable, OSError, and ValueError where it has too few words.
    """
    model = CheckpointModel.load(checkpoint, directory, threads=threads)
    mean, directions = model.learn_directions()
    path = checkpoint.folder / WORD_VECTORS_FILE
    np.savez_compressed(
        path, mean=mean.astype(np.float32), directions=directions.astype(np.float32)
    )
    return path


def read_weights(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """The tensors that the graph is made of, float32, by BERT's names, each of the shape that
    config.json gives it. Raises ModelUnusable.
    """
    folder = checkpoint.folder
    try:
        with safe_open(folder / WEIGHTS_FILE, framework="numpy") as file:
            stored = {_named(name): name for name in file.keys()}  # noqa: SIM118  not a dict
            found = {}
            for name, shape in _shapes(checkpoint).items():
                if name not in stored:
                    raise unusable(folder, f"{WEIGHTS_FILE} lacks {name}")
                part = file.get_slice(stored[name])
                if part.get_dtype() not in ("F32", "F16"):
                    raise unusable(
                        folder,
                        f"{name} is of type {part.get_dtype()}; save it in float32 or float16",
                    )
                if tuple(part.get_shape()) != shape:
                    raise unusable(
                        folder,
                        f"{name} has the shape {tuple(part.get_shape())}, and config.json says "
                        f"{shape}",
                    )
                found[name] = file.get_tensor(stored[name]).astype(np.float32)
                if not np.isfinite(found[name]).all():
                    raise unusable(folder, f"{name} holds what is no number")
    except (SafetensorError, OSError) as error:
        raise unusable(folder, f"{WEIGHTS_FILE} cannot be read: {error}") from error
    return found


def _named(name: str) -> str:
    """A tensor's name as BERT has it, without what it was wrapped in."""
    for wrapper in itertools.chain(reversed(_WRAPPERS), _WRAPPERS):
        name = name.removeprefix(wrapper)
    for theirs, ours in _MPNET_NAMES:
        name = name.replace(theirs, ours)
    return name


def _shapes(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    of, width, inner = checkpoint.architecture, checkpoint.width, checkpoint.inner_width

    def dense(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}

    def norm(name: str) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": (width,), f"{name}.bias": (width,)}

    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (checkpoint.vocabulary, width),
        "embeddings.position_embeddings.weight": (checkpoint.positions, width),
        **norm("embeddings.LayerNorm"),
    }
    if checkpoint.kind == "mpnet":
        shapes[DISTANCE_BIAS] = (checkpoint.distance_buckets, of.heads)
    else:
        shapes[TOKEN_TYPES] = (checkpoint.token_types, width)
    for layer in range(of.layers):
        prefix = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            shapes |= dense(f"{prefix}.attention.self.{part}", width, width)
        shapes |= dense(f"{prefix}.attention.output.dense", width, width)
        shapes |= norm(f"{prefix}.attention.output.LayerNorm")
        shapes |= dense(f"{prefix}.intermediate.dense", inner, width)
        shapes |= dense(f"{prefix}.output.dense", width, inner)
        shapes |= norm(f"{prefix}.output.LayerNorm")
    return shapes


def open_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """What the model takes texts apart with. Raises ModelUnusable."""
    folder, path = checkpoint.folder, checkpoint.tokenizer_file
    try:
        if path.name == TOKENIZER_FILE:
            tokenizer = Tokenizer.from_file(str(path))
        else:
            made = BertWordPieceTokenizer(str(path), lowercase=checkpoint.lowercase)
            tokenizer = Tokenizer.from_str(made.to_str())
    except Exception as error:  # tokenizers raises bare Exceptions
        raise unusable(folder, f"{path.name} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(checkpoint.architecture.tokens_max)
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= checkpoint.vocabulary:
        raise unusable(
            folder,
            f"{path.name} has tokens up to {largest}, and the weights know {checkpoint.vocabulary}",
        )
    marks = tokenizer.encode("a").special_tokens_mask
    if len(marks) < 3 or marks[0] != 1 or marks[-1] != 1 or sum(marks) != 2:
        raise unusable(folder, f"{path.name} does not put one mark before a text and one behind it")
    return tokenizer


def _directions(checkpoint: Checkpoint) -> tuple[np.ndarray, np.ndarray] | None:
    path = checkpoint.word_vectors_file
    if path is None:
        return None
    try:
        with np.load(path) as stored:
            mean = stored["mean"].astype(np.float32)
            directions = np.ascontiguousarray(stored["directions"], np.float32)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise unusable(checkpoint.folder, f"{path.name} cannot be read: {error}") from error
    if mean.shape != (checkpoint.width,) or directions.shape != (checkpoint.width, WORD_WIDTH):
        raise unusable(checkpoint.folder, f"{path.name} belongs to another model")
    return mean, directions
