"""all-MiniLM-L6-v2 as one int8 ONNX graph, for onnxruntime: any processor can run it.

The graph is written node by node: embeddings → six BERT layers → "hidden_states" (n, tokens, 384) →
mean over the attention mask, divided by its L2 norm → "embedding" (n, 384). The product adds u8·s8
pairs in 16 bits on x86 processors without VNNI; there weights are limited to 7 bits so that the sum
cannot overflow.

File: `<directory>/all-MiniLM-L6-v2-<7|8>bit-v<GRAPH_VERSION>.graph`, ONNX.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from runtime.inference.minilm.weights import (
    HEADER_BYTES,
    HEADS,
    LAYERS,
    NAME,
    NORM_EPSILON,
    QMAX,
    WIDTH,
    kept,
    quantised,
)
from runtime.limits import EMBEDDED_TOKENS_MAX

GRAPH_VERSION = 2

_CONTRIB = "com.microsoft"
_ZERO_POINT = 128  # of the unsigned activations; their magnitudes use QMAX steps either way


class GraphMiniLm:
    """The graph in a session of onnxruntime. Calls block; a session serves one caller at a time
    best.
    """

    def __init__(self, session: onnxruntime.InferenceSession):
        self._session = session

    @classmethod
    def load(
        cls, directory: Path, source: Path, threads: int, *, weight_bits: int | None = None
    ) -> GraphMiniLm:
        """From the file in `directory`, made of the weights in `source` where it is missing or
        damaged. Raises ModelUnusable.
        """
        bits = weight_bits or weight_bits_here()
        path = directory / f"{NAME}-{bits}bit-v{GRAPH_VERSION}.graph"
        kept(path, source, lambda weights: build_graph(weights, bits))
        return cls(_open_session(path.read_bytes()[HEADER_BYTES:], threads))

    def run(self, texts: Sequence[Sequence[int]]) -> tuple[np.ndarray, list[np.ndarray]]:
        """n ≥ 1 texts' token ids -> (n, 384) float32 unit rows, and for each text its (tokens, 384)
        float32 last layer.

        Pads to the longest, so texts of like length are cheapest.
        """
        outputs: Any = self._session.run(["embedding", "hidden_states"], _padded(texts))
        vectors, hidden = outputs
        return vectors, [states[: len(ids)] for states, ids in zip(hidden, texts, strict=True)]


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


def build_graph(weights: Mapping[str, np.ndarray], weight_bits: int) -> bytes:
    """The model's float32 tensors -> the int8 graph as ONNX bytes. Inputs int64 (n, tokens):
    "input_ids", "attention_mask".
    """
    return _Builder(weights, weight_bits).build()


class _Builder:
    """Writes the graph. A method adds nodes for one part of the model and returns the name of the
    value they end in.

    Between the attentions everything is a flat (n · tokens, channels) matrix, so that a token is a
    row.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], weight_bits: int):
        # onnx is needed for these seconds of a data directory's life; imported at the top it would
        # stay in every process.
        import onnx

        self._onnx = onnx
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
            [
                value(name, onnx.TensorProto.INT64, ["n", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [
                value("embedding", onnx.TensorProto.FLOAT, ["n", WIDTH]),
                value("hidden_states", onnx.TensorProto.FLOAT, ["n", "tokens", WIDTH]),
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
        positions = self._weights["embeddings.position_embeddings.weight"][:EMBEDDED_TOKENS_MAX]
        positions = (
            positions + self._weights["embeddings.token_type_embeddings.weight"][0]
        )  # single texts, never pairs: all of type 0
        length = self._node("Shape", "input_ids", start=1, end=2)
        used = self._node(
            "Slice", self._constant(positions), self._first_axis, length, self._first_axis
        )
        summed = self._node("Reshape", self._node("Add", looked_up, used), self._flat)
        return self._normalised(summed, "embeddings.LayerNorm.")

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
        projected = self._node("Reshape", projected, self._shape_with(3 * WIDTH))
        split = [self._name() for _ in parts]
        self._node("Split", projected, self._thirds, outputs=split, axis=-1)
        attended = self._node(
            "MultiHeadAttention", *split, bias, self._key_mask, domain=_CONTRIB, num_heads=HEADS
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
        return self._node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=NORM_EPSILON)

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
        """The mean over unmasked tokens divided by its norm; dividing the sum by its norm is the
        same vector.
        """
        mask = self._node("Cast", "attention_mask", to=self._onnx.TensorProto.FLOAT)
        summed = self._node("MatMul", self._node("Unsqueeze", mask, self._second_axis), hidden)
        self._node(
            "LpNormalization",
            self._node("Squeeze", summed, self._second_axis),
            outputs=["embedding"],
            axis=-1,
            p=2,
        )

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
