"""A BERT-like encoder as one int8 ONNX graph, written node by node: embeddings → layers →
"hidden_states" (n, tokens, width) → pooling, divided by its L2 norm → "embedding" (n, width).

It knows BERT and what differs from it: positions that begin later (RoBERTa, XLM-R), and a bias of
attention by distance instead of token types (MPNet). Weights go by BERT's names.

The product adds u8·s8 pairs in 16 bits on x86 processors without VNNI; there weights are limited to
7 bits so that the sum cannot overflow.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnxruntime

from runtime.inference.encoder import Encoder
from runtime.inference.minilm.weights import QMAX, quantised
from runtime.limits import EMBEDDED_TOKENS_MAX

DISTANCE_BIAS = "encoder.relative_attention_bias.weight"
TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
DISTANCE_MAX = 128  # MPNet: all that is further off falls into the last bucket

_CONTRIB = "com.microsoft"
_ZERO_POINT = 128  # of the unsigned activations; their magnitudes use QMAX steps either way


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes of an encoder. tokens_max: the longest text it is given; first_position: the row of
    the position embeddings that the first token gets."""

    layers: int
    heads: int
    width: int
    tokens_max: int
    norm_epsilon: float
    first_position: int = 0
    pooling: Literal["mean", "cls"] = "mean"


class Session(Encoder):
    """The graph in a session of onnxruntime."""

    tokens_at_once = EMBEDDED_TOKENS_MAX

    def __init__(self, graph: bytes, threads: int):
        self._session = _open_session(graph, threads)

    def _run(
        self, texts: Sequence[Sequence[int]], inner: Sequence[int]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """inner: layers that the graph shows."""
        names = [*map(_layer_name, inner), "hidden_states"]
        outputs: Any = self._session.run(["embedding", *names], _padded(texts))
        vectors, *layers = outputs
        return vectors, [
            np.stack([layer[text, : len(ids)] for layer in layers])
            for text, ids in enumerate(texts)
        ]


def _layer_name(number: int) -> str:
    return f"layer_{number}"


def weight_bits_here() -> int:
    """8 where int8 products cannot overflow on this processor, 7 where they can (x86 without VNNI,
    or when in doubt).
    """
    if platform.machine().lower() in ("arm64", "aarch64"):
        return 8
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return 7
    return 8 if "avx512_vnni" in flags or "avx_vnni" in flags else 7


def _open_session(graph: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # A spinning pool is a little faster alone, and starves the other processes of a small machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The fused operator costs four times as much on a CPU as the three it replaces.
    return onnxruntime.InferenceSession(
        graph,
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],
    )


def _padded(texts: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    longest = max(len(ids) for ids in texts)
    tokens = np.zeros((len(texts), longest), np.int64)
    mask = np.zeros((len(texts), longest), np.int64)
    for i, ids in enumerate(texts):
        tokens[i, : len(ids)] = ids
        mask[i, : len(ids)] = 1
    return {"input_ids": tokens, "attention_mask": mask}


def build_graph(
    architecture: Architecture,
    weights: Mapping[str, np.ndarray],
    weight_bits: int,
    inner: Sequence[int] = (),
) -> bytes:
    """The model's float32 tensors -> the int8 graph as ONNX bytes. Inputs int64 (n, tokens):
    "input_ids", "attention_mask". `inner` names layers, from 1, to be shown as "layer_<number>".
    """
    return _Builder(architecture, weights, weight_bits, inner).build()


def distance_buckets(tokens: int, buckets: int) -> np.ndarray:
    """(tokens, tokens) int64: which row of MPNet's bias holds for a token that looks at another.
    Half of the buckets are of tokens behind, half of those ahead; near distances have their own,
    further ones share one by their logarithm.
    """
    behind = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]
    half = buckets // 2
    exact = half // 2
    distance = np.abs(behind)
    shared = exact + (
        np.log(np.maximum(distance, 1) / exact) / np.log(DISTANCE_MAX / exact) * (half - exact)
    ).astype(np.int64)
    near = np.where(distance < exact, distance, np.minimum(shared, half - 1))
    return (near + half * (behind < 0)).astype(np.int64)


class _Builder:
    """Writes the graph. A method adds nodes for one part of the model and returns the name of the
    value they end in.

    Between the attentions everything is a flat (n · tokens, channels) matrix, so that a token is a
    row.
    """

    def __init__(
        self,
        architecture: Architecture,
        weights: Mapping[str, np.ndarray],
        weight_bits: int,
        inner: Sequence[int],
    ):
        # onnx is needed for these seconds of a data directory's life; imported at the top it would
        # stay in every process.
        import onnx

        self._onnx = onnx
        self._of = architecture
        self._inner = inner
        self._weights = weights
        self._weight_qmax = 2 ** (weight_bits - 1) - 1
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._names = 0

    def build(self) -> bytes:
        onnx = self._onnx
        self._first_axis = self._constant(np.array([0], np.int64))
        self._second_axis = self._constant(np.array([1], np.int64))
        self._unit = self._constant(np.array(1, np.float32))
        self._activation_step = self._constant(np.array(1 / QMAX, np.float32))
        self._zero_point = self._constant(np.array(_ZERO_POINT, np.uint8))
        self._flat = self._constant(np.array([-1, self._of.width], np.int64))
        self._thirds = self._constant(np.array([self._of.width] * 3, np.int64))
        self._batch_shape = self._node("Shape", "input_ids")
        self._key_mask = self._node("Cast", "attention_mask", to=onnx.TensorProto.INT32)

        self._length = self._node("Shape", "input_ids", start=1, end=2)
        self._distance_bias = self._bias_by_distance() if DISTANCE_BIAS in self._weights else ""

        x = self._embeddings()
        self._zero_points = self._node(
            "ConstantOfShape",
            self._node("Shape", x, end=1),
            value=onnx.helper.make_tensor("value", onnx.TensorProto.UINT8, [1], [_ZERO_POINT]),
        )
        for layer in range(self._of.layers):
            x = self._layer(x, f"encoder.layer.{layer}.")
            if layer + 1 in self._inner:
                name = _layer_name(layer + 1)
                self._node("Reshape", x, self._shape_with(self._of.width), outputs=[name])
        self._node("Reshape", x, self._shape_with(self._of.width), outputs=["hidden_states"])
        self._pooling("hidden_states")

        def value(name: str, kind: int, shape: list[str | int]) -> Any:
            return onnx.helper.make_tensor_value_info(name, kind, shape)

        graph = onnx.helper.make_graph(
            self._nodes,
            "encoder",
            [
                value(name, onnx.TensorProto.INT64, ["n", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [
                value("embedding", onnx.TensorProto.FLOAT, ["n", self._of.width]),
                *(
                    value(name, onnx.TensorProto.FLOAT, ["n", "tokens", self._of.width])
                    for name in (*map(_layer_name, self._inner), "hidden_states")
                ),
            ],
            self._constants,
        )
        domains = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid(_CONTRIB, 1)]
        return onnx.helper.make_model(
            graph, opset_imports=domains, ir_version=9
        ).SerializeToString()

    def _embeddings(self) -> str:
        """Token ids -> the sum of token, position and type embeddings, normalised. Token embeddings
        are int8 with a scale per token.
        """
        token_embeddings = self._weights["embeddings.word_embeddings.weight"]
        table, scales = quantised(token_embeddings.T, QMAX)
        codes = self._node("Gather", self._constant(table.T), "input_ids")
        token_scales = self._node("Gather", self._constant(scales[:, None]), "input_ids")
        looked_up = self._node(
            "Mul", self._node("Cast", codes, to=self._onnx.TensorProto.FLOAT), token_scales
        )
        first = self._of.first_position
        positions = self._weights["embeddings.position_embeddings.weight"][
            first : first + self._of.tokens_max
        ]
        if TOKEN_TYPES in self._weights:  # single texts, never pairs: all of type 0
            positions = positions + self._weights[TOKEN_TYPES][0]
        used = self._node(
            "Slice", self._constant(positions), self._first_axis, self._length, self._first_axis
        )
        summed = self._node("Reshape", self._node("Add", looked_up, used), self._flat)
        return self._normalised(summed, "embeddings.LayerNorm.")

    def _bias_by_distance(self) -> str:
        """(1, heads, tokens, tokens): what each head adds to its scores, the same in all layers."""
        bias = self._weights[DISTANCE_BIAS]  # (buckets, heads)
        buckets = self._constant(distance_buckets(self._of.tokens_max, len(bias)))
        for axis in (self._first_axis, self._second_axis):
            buckets = self._node("Slice", buckets, self._first_axis, self._length, axis)
        of_head = self._node("Gather", self._constant(bias.T), buckets, axis=1)
        return self._node("Unsqueeze", of_head, self._first_axis)

    def _layer(self, x: str, prefix: str) -> str:
        attended = self._attention(x, prefix + "attention.self.")
        x = self._residual(attended, x, prefix + "attention.output.")
        inner = self._product(x, self._weights[prefix + "intermediate.dense.weight"])
        inner = self._node(
            "BiasGelu",
            inner,
            self._constant(self._weights[prefix + "intermediate.dense.bias"]),
            domain=_CONTRIB,
        )
        return self._residual(inner, x, prefix + "output.")

    def _attention(self, x: str, prefix: str) -> str:
        parts = ("query", "key", "value")
        projected = self._product(
            x, np.concatenate([self._weights[f"{prefix}{part}.weight"] for part in parts])
        )
        bias = self._constant(
            np.concatenate([self._weights[f"{prefix}{part}.bias"] for part in parts])
        )
        projected = self._node("Reshape", projected, self._shape_with(3 * self._of.width))
        split = [self._name() for _ in parts]
        self._node("Split", projected, self._thirds, outputs=split, axis=-1)
        attended = self._node(
            "MultiHeadAttention",
            *split,
            bias,
            self._key_mask,
            *filter(None, [self._distance_bias]),
            domain=_CONTRIB,
            num_heads=self._of.heads,
        )
        return self._node("Reshape", attended, self._flat)

    def _residual(self, x: str, skipped: str, prefix: str) -> str:
        """LayerNorm(skipped + dense(x))."""
        dense = self._product(x, self._weights[prefix + "dense.weight"])
        biased = self._node(
            "Add",
            self._node("Add", dense, skipped),
            self._constant(self._weights[prefix + "dense.bias"]),
        )
        return self._normalised(biased, prefix + "LayerNorm.")

    def _normalised(self, x: str, prefix: str) -> str:
        gamma, beta = (self._constant(self._weights[prefix + part]) for part in ("weight", "bias"))
        return self._node(
            "LayerNormalization", x, gamma, beta, axis=-1, epsilon=self._of.norm_epsilon
        )

    def _product(self, x: str, weight: np.ndarray) -> str:
        """x · weightᵀ in int8: (rows, in) and (out, in) -> (rows, out). Each row of x has its own
        scale, a QMAX-th of its peak.
        """
        peaks = self._node("ReduceMax", self._node("Abs", x), self._second_axis, keepdims=1)
        scales = self._node("Mul", peaks, self._activation_step)
        codes = self._node(
            "QuantizeLinear",
            x,
            self._node("Squeeze", scales, self._second_axis),
            self._zero_points,
            axis=0,
        )
        table, columns = quantised(weight.T, self._weight_qmax)
        # Activations are unsigned because u8·s8 is the fast kernel: s8·s8 takes seven times as
        # long.
        product = self._node(
            "MatMulIntegerToFloat",
            codes,
            self._constant(table),
            self._unit,
            self._constant(columns),
            self._zero_point,
            domain=_CONTRIB,
        )
        return self._node("Mul", product, scales)

    def _pooling(self, hidden: str) -> None:
        """The mean over unmasked tokens, or the first token, divided by its norm; dividing the sum
        by its norm is the same vector as dividing the mean.
        """
        if self._of.pooling == "cls":
            first = self._node("Gather", hidden, self._first_axis, axis=1)
            pooled = self._node("Squeeze", first, self._second_axis)
        else:
            mask = self._node("Cast", "attention_mask", to=self._onnx.TensorProto.FLOAT)
            summed = self._node("MatMul", self._node("Unsqueeze", mask, self._second_axis), hidden)
            pooled = self._node("Squeeze", summed, self._second_axis)
        self._node("LpNormalization", pooled, outputs=["embedding"], axis=-1, p=2)

    def _shape_with(self, channels: int) -> str:
        """(n, tokens, channels) as a value, for Reshape."""
        return self._node(
            "Concat", self._batch_shape, self._constant(np.array([channels], np.int64)), axis=0
        )

    def _constant(self, array: np.ndarray) -> str:
        name = self._name()
        self._constants.append(
            self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        )
        return name

    def _node(
        self,
        operator: str,
        *inputs: str,
        outputs: list[str] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Add one node -> the name of its first output."""
        outputs = outputs or [self._name()]
        self._nodes.append(
            self._onnx.helper.make_node(
                operator, list(inputs), outputs, domain=domain, **attributes
            )
        )
        return outputs[0]

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"
