"""all-MiniLM-L6-v2 as one int8 ONNX graph (runtime/inference/bert_graph.py), for onnxruntime: any
processor can run it. Or as whatever else shows its layers.

File: `<directory>/all-MiniLM-L6-v2-<7|8>bit-v<GRAPH_VERSION>.graph`, ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runtime.inference.bert_graph import Architecture, Session, build_graph, weight_bits_here
from runtime.inference.encoder import Encoder
from runtime.inference.local_embedder import Pause
from runtime.inference.minilm.weights import (
    HEADER_BYTES,
    HEADS,
    INNER_LAYERS,
    LAYERS,
    NAME,
    NORM_EPSILON,
    WIDTH,
    kept,
)
from runtime.limits import EMBEDDED_TOKENS_MAX

GRAPH_VERSION = 3
ARCHITECTURE = Architecture(LAYERS, HEADS, WIDTH, EMBEDDED_TOKENS_MAX, NORM_EPSILON)


class GraphMiniLm:
    """The graph in a session. Calls block; a session serves one caller at a time best."""

    threads_max = 1  # the session's own share every run

    def __init__(self, session: Encoder):
        self._session = session

    @classmethod
    def load(
        cls, directory: Path, source: Path, threads: int, *, weight_bits: int | None = None
    ) -> GraphMiniLm:
        """Load the file in `directory`, made of the weights in `source` where it is missing or
        damaged. Raises ModelUnusable.
        """
        bits = weight_bits or weight_bits_here()
        path = directory / f"{NAME}-{bits}bit-v{GRAPH_VERSION}.graph"
        kept(path, source, lambda weights: build_graph(ARCHITECTURE, weights, bits, INNER_LAYERS))
        return cls(Session(path.read_bytes()[HEADER_BYTES:], threads))

    def run(
        self,
        texts: Sequence[Sequence[int]],
        *,
        inner: bool = False,
        last: bool = True,
        pause: Pause | None = None,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """As Network.run."""
        vectors, layers = self._session.run_layers(texts, INNER_LAYERS if inner else (), pause)
        return (vectors, layers) if last else (vectors[:, :0], [each[:-1] for each in layers])
