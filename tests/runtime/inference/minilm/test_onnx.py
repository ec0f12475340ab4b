"""The graph where sums of products are 16 bits wide: weights of seven bits."""

from __future__ import annotations

from pathlib import Path

from runtime.inference import packaged_files
from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.onnx import GraphMiniLm

TEXTS = [
    "Mara went hiking up the ridge last weekend with her cousin.",
    "ok",
    "Invoice 2024-0193 was paid on 3 May.",
]


def test_seven_bit_weights_are_close_to_eight(tmp_path: Path) -> None:
    texts = [text.ids for text in MiniLm.load(tmp_path).encode(TEXTS)]
    seven, eight = (
        GraphMiniLm.load(tmp_path, packaged_files(), 1, weight_bits=bits).run(texts)[0]
        for bits in (7, 8)
    )
    assert 0.96 < (seven * eight).sum(axis=1).min() < 0.9999
