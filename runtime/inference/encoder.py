"""What an encoder does wherever it runs: portions of a run, between which others may go, and the
last layer alone for who wants no other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np


class Encoder(ABC):
    """A BERT-like model from token ids on. Calls block; it serves one caller at a time best.

    tokens_at_once  of a portion, padding included
    """

    tokens_at_once: int

    def run(
        self, texts: Sequence[Sequence[int]], pause: Callable[[], object] | None = None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """n ≥ 1 texts' token ids -> (n, width) float32 unit rows, and for each text its (tokens,
        width) float32 last layer. pause: called between portions of them.
        """
        vectors, layers = self.run_layers(texts, (), pause)
        return vectors, [each[0] for each in layers]

    def run_layers(
        self,
        texts: Sequence[Sequence[int]],
        inner: Sequence[int],
        pause: Callable[[], object] | None = None,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """As run, and for each text (layers, tokens, width): those of `inner`, from 1, and the
        last.

        Pads to the longest, so texts of like length are cheapest.
        """
        at_once = max(1, self.tokens_at_once // max(map(len, texts)))
        if pause is None or len(texts) <= at_once:
            return self._run(texts, inner)
        vectors, layers = self._run(texts[:at_once], inner)
        pause()
        others, more = self.run_layers(texts[at_once:], inner, pause)
        return np.concatenate([vectors, others]), [*layers, *more]

    @abstractmethod
    def _run(
        self, texts: Sequence[Sequence[int]], inner: Sequence[int]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """As run_layers, all of them at once."""
