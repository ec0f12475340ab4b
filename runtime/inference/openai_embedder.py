"""Embeddings by any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np

from runtime import limits
from runtime.inference.embedding import (
    NO_PREFIXES,
    Asked,
    BoundedEmbedder,
    Embedding,
    InferenceUnavailable,
    Prefixes,
)
from runtime.inference.remote_endpoint import EndpointFailed, RemoteEndpoint


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Embedding]


_decode_answer = msgspec.json.Decoder(_Answer).decode


class OpenAiEmbedder(BoundedEmbedder):
    """An OpenAI-compatible endpoint: POST {base_url}/embeddings, at most 128 texts a request.

    What is tried again, how often and until when is remote_endpoint.py's.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        model: str,
        *,
        timeout_seconds: float = 10.0,
        queue_max: int = 4_096,
        cache_entries: int = 4_096,
        prefixes: Prefixes = NO_PREFIXES,
    ):
        super().__init__(
            timeout_seconds=timeout_seconds,
            queue_max=queue_max,
            cache_entries=cache_entries,
            prefixes=prefixes,
        )
        self._model = model
        self._width: int | None = None
        self._endpoint = RemoteEndpoint(
            "the embedding endpoint",
            "embedder",
            base_url,
            api_key,
            attempts_max=limits.REMOTE_EMBEDDING_ATTEMPTS_MAX,
            answer_bytes_max=limits.REMOTE_EMBEDDING_ANSWER_BYTES_MAX,
        )

    @property
    def space(self) -> str:
        return f"{self._named}/{self.width}"

    def makes(self, space: str) -> bool:
        """By its name alone while its width is not known."""
        name, _, width = space.rpartition("/")
        return name == self._named and self._width in (None, int(width))

    @property
    def _named(self) -> str:
        if self._prefixes == NO_PREFIXES:
            return self._model
        return f"{self._model}+{hashlib.sha256(repr(self._prefixes).encode()).hexdigest()[:8]}"

    @property
    def width(self) -> int:
        if self._width is None:
            raise InferenceUnavailable(
                f"the width of {self._model} is known only after its endpoint's first answer"
            )
        return self._width

    def yield_to_reads(self, reads_wait: bool) -> None:
        """Ignore it: an endpoint takes none of this machine's time."""

    async def close(self) -> None:
        self._closed = True
        await self._endpoint.close()

    async def _compute(self, asked: list[Asked], deadline: float) -> list[Embedding]:
        texts, size = [text for text, _ in asked], limits.REMOTE_EMBEDDING_TEXTS_MAX
        batches = [
            await self._batch(texts[start : start + size], deadline)
            for start in range(0, len(texts), size)
        ]
        return [Embedding(vector, None) for vectors in batches for vector in vectors]

    async def _batch(self, texts: list[str], deadline: float) -> np.ndarray:
        # Endpoints refuse "", and would refuse the whole batch with it.
        asked = {"model": self._model, "input": [text or " " for text in texts]}
        try:
            return self._vectors(
                await self._endpoint.post("/embeddings", deadline, json=asked), len(texts)
            )
        except EndpointFailed as failed:
            raise InferenceUnavailable(str(failed)) from failed

    def _vectors(self, body: bytes, count: int) -> np.ndarray:
        """The answer's unit rows in the order asked, once all that can be checked holds."""
        try:
            data = sorted(_decode_answer(body).data, key=lambda item: item.index)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InferenceUnavailable(
                f"the embedding endpoint's answer makes no sense: {error}"
            ) from error
        if [item.index for item in data] != list(range(count)):
            raise InferenceUnavailable(
                f"the embedding endpoint answered {len(data)} vectors that do not match {count} "
                "texts one to one"
            )
        widths = {len(item.embedding) for item in data}
        expected = self._width or max(widths)
        if widths != {expected} or not expected:
            raise InferenceUnavailable(
                f"the embedding endpoint answered vectors of width {sorted(widths)}, expected "
                f"{expected}"
            )
        rows = np.array([item.embedding for item in data], np.float64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise InferenceUnavailable(
                "the embedding endpoint answered a vector without a direction"
            )
        self._width = expected
        return (rows / norms).astype(np.float32)
