"""A BERT-like encoder on a GPU, by PyTorch, in half precision: what bert_graph.py writes as a
graph, as a few calls.

Its vectors agree with those of the int8 models as well as these do with the float model. The texts
that a text is run with change its vector by no more than rounding does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from runtime.inference.bert_graph import (
    DISTANCE_BIAS,
    TOKEN_TYPES,
    Architecture,
    distance_buckets,
)
from runtime.inference.encoder import Encoder
from runtime.limits import EMBEDDER_GPU_RUN_TOKENS_MAX


class TorchEncoder(Encoder):
    """The model on a device."""

    tokens_at_once = EMBEDDER_GPU_RUN_TOKENS_MAX

    def __init__(
        self, architecture: Architecture, weights: Mapping[str, np.ndarray], device: str = "cuda"
    ):
        """weights: float32, by BERT's names. device: as PyTorch calls it; "cpu" computes in
        float32.
        """
        import torch  # pyright: ignore[reportMissingImports]

        self._torch = torch
        self._of = of = architecture
        self._device = torch.device(device)
        self._type = torch.float32 if self._device.type == "cpu" else torch.float16
        named = weights.__getitem__
        first = of.first_position
        positions = named("embeddings.position_embeddings.weight")[first : first + of.tokens_max]
        if TOKEN_TYPES in weights:  # single texts, never pairs: all of type 0
            positions = positions + named(TOKEN_TYPES)[0]
        self._words = self._there(named("embeddings.word_embeddings.weight"))
        self._positions = self._there(positions)
        self._first_norm = self._norm(weights, "embeddings.LayerNorm")
        self._layers = [
            self._layer(weights, f"encoder.layer.{layer}") for layer in range(of.layers)
        ]
        self._distance_bias = None
        if DISTANCE_BIAS in weights:
            bias = named(DISTANCE_BIAS)  # (buckets, heads)
            buckets = distance_buckets(of.tokens_max, len(bias))
            self._distance_bias = self._there(bias.T[:, buckets])  # (heads, tokens, tokens)

    def _run(
        self, texts: Sequence[Sequence[int]], inner: Sequence[int]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        with self._torch.inference_mode():
            vectors, states = self._run_padded(texts, inner)
        ends = np.cumsum([len(ids) for ids in texts])
        return vectors, np.split(states, ends[:-1], axis=1)

    def _run_padded(
        self, texts: Sequence[Sequence[int]], inner: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(n, width) float32 unit rows, and (layers, tokens of all texts, width) float32."""
        torch, of = self._torch, self._of
        longest = max(map(len, texts))
        ids = np.zeros((len(texts), longest), np.int64)
        mask = np.zeros((len(texts), longest), bool)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = True
        is_token = torch.from_numpy(mask).to(self._device)
        unseen = torch.zeros(is_token.shape, dtype=self._type, device=self._device)
        bias = unseen.masked_fill_(~is_token, float("-inf"))[:, None, None, :]
        if self._distance_bias is not None:
            bias = bias + self._distance_bias[:, :longest, :longest]
        x = self._words[torch.from_numpy(ids).to(self._device)] + self._positions[:longest]
        x = self._first_norm(x)
        shown = []
        for number, layer in enumerate(self._layers, 1):
            x = layer(x, bias)
            if number in inner:
                shown.append(x[is_token])
        shown.append(x[is_token])
        if of.pooling == "cls":
            pooled = x[:, 0].float()
        else:
            pooled = (x.float() * is_token[:, :, None]).sum(1)  # its direction is the mean's
        vectors = torch.nn.functional.normalize(pooled, dim=1)
        return vectors.cpu().numpy(), torch.stack(shown).float().cpu().numpy()

    def _there(self, tensor: np.ndarray) -> Any:
        made = self._torch.from_numpy(np.ascontiguousarray(tensor, np.float32))
        return made.to(self._device, self._type)

    def _norm(self, weights: Mapping[str, np.ndarray], name: str) -> Callable[[Any], Any]:
        scale, shift = (self._there(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        layer_norm = self._torch.nn.functional.layer_norm
        return lambda x: layer_norm(x, scale.shape, scale, shift, self._of.norm_epsilon)

    def _dense(
        self, weights: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> Callable[[Any], Any]:
        """x · weightᵀ + bias of several, side by side."""
        weight, bias = (
            self._there(np.concatenate([weights[f"{name}.{part}"] for name in names]))
            for part in ("weight", "bias")
        )
        linear = self._torch.nn.functional.linear
        return lambda x: linear(x, weight, bias)

    def _layer(self, weights: Mapping[str, np.ndarray], prefix: str) -> Callable[[Any, Any], Any]:
        functions = self._torch.nn.functional
        heads, width = self._of.heads, self._of.width
        parts = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
        project = self._dense(weights, parts)
        attended_out = self._dense(weights, [f"{prefix}.attention.output.dense"])
        attention_norm = self._norm(weights, f"{prefix}.attention.output.LayerNorm")
        widen = self._dense(weights, [f"{prefix}.intermediate.dense"])
        narrow = self._dense(weights, [f"{prefix}.output.dense"])
        last_norm = self._norm(weights, f"{prefix}.output.LayerNorm")

        def run(x: Any, bias: Any) -> Any:
            n, tokens, _ = x.shape
            split = project(x).view(n, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            attended = functions.scaled_dot_product_attention(*split, attn_mask=bias)
            attended = attended.transpose(1, 2).reshape(n, tokens, width)
            x = attention_norm(x + attended_out(attended))
            return last_norm(x + narrow(functions.gelu(widen(x))))

        return run
