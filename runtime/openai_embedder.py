"""Embeddings by any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec
import numpy as np

from runtime import limits
from runtime.embedding import Asked, BoundedEmbedder, InferenceUnavailable, Reading


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Embedding]


_decode_answer = msgspec.json.Decoder(_Answer).decode


class _TryAgain(Exception):
    """An attempt failed in a way that may pass; `after_seconds` is what the endpoint asked for, 0 when it did not."""

    def __init__(self, reason: str, after_seconds: float = 0.0):
        super().__init__(reason)
        self.after_seconds = after_seconds


class OpenAiEmbedder(BoundedEmbedder):
    """An OpenAI-compatible endpoint: POST {base_url}/embeddings, at most 128 texts a request.

    429, 408, 5xx and broken connections are tried again, four attempts in all, waiting 0.25 s, doubled each time, with
    jitter, or as long as Retry-After says; never past the caller's time limit: a wait that would pass it fails at once.
    Redirects, proxies of the environment and other 4xx are not followed: only the settings say where texts go.
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
    ):
        super().__init__(timeout_seconds=timeout_seconds, queue_max=queue_max, cache_entries=cache_entries)
        self._url = base_url.rstrip("/") + "/embeddings"
        self._model = model
        self._width: int | None = None
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=timeout_seconds,
            limits=httpx.Limits(max_connections=limits.REMOTE_EMBEDDING_CONNECTIONS_MAX),
            trust_env=False,
        )

    @property
    def space(self) -> str:
        return f"{self._model}/{self.width}"

    @property
    def width(self) -> int:
        if self._width is None:
            raise InferenceUnavailable(f"the width of {self._model} is known only after its endpoint's first answer")
        return self._width

    def give_way(self, reads_wait: bool) -> None:
        """It takes none of this machine's time."""

    def meanwhile(self, call: Callable[[], object]) -> None:
        call()

    async def close(self) -> None:
        self._closed = True
        await self._client.aclose()

    async def _compute(self, asked: list[Asked], deadline: float) -> list[Reading]:
        texts, size = [text for text, _ in asked], limits.REMOTE_EMBEDDING_TEXTS_MAX
        batches = [await self._batch(texts[start : start + size], deadline) for start in range(0, len(texts), size)]
        return [Reading(vector, None) for vectors in batches for vector in vectors]

    async def _batch(self, texts: list[str], deadline: float) -> np.ndarray:
        clock = asyncio.get_running_loop().time
        for attempt in range(1, limits.REMOTE_EMBEDDING_ATTEMPTS_MAX + 1):
            try:
                return self._vectors(await self._post(texts), len(texts))
            except _TryAgain as failure:
                if attempt == limits.REMOTE_EMBEDDING_ATTEMPTS_MAX:
                    raise InferenceUnavailable(f"the embedding endpoint failed {attempt} times: {failure}") from failure
                wait = max(_backoff_seconds(attempt), failure.after_seconds)
                if clock() + wait >= deadline:
                    reason = f"the embedding endpoint failed: {failure}; its next attempt, in {wait:.1f} s, would be past the time limit"
                    raise InferenceUnavailable(reason) from failure
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _post(self, texts: list[str]) -> bytes:
        """One attempt -> the body of a 200. Raises _TryAgain or InferenceUnavailable."""
        # Endpoints refuse "", and would refuse the whole batch with it.
        asked = {"model": self._model, "input": [text or " " for text in texts]}
        try:
            async with self._client.stream("POST", self._url, json=asked) as response:
                if response.status_code in (408, 429) or response.status_code >= 500:
                    raise _TryAgain(f"status {response.status_code}", _retry_after_seconds(response.headers.get("Retry-After")))
                if response.status_code != 200:
                    raise InferenceUnavailable(
                        f"the embedding endpoint answered {response.status_code}; check embedder.base_url, model and api_key"
                    )
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > limits.REMOTE_EMBEDDING_ANSWER_BYTES_MAX:
                        raise InferenceUnavailable("the embedding endpoint's answer is larger than any answer should be")
                return bytes(body)
        except httpx.TransportError as error:
            raise _TryAgain(f"{type(error).__name__} {error}".strip()) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise InferenceUnavailable(f"the embedding endpoint cannot be used: {error}") from error

    def _vectors(self, body: bytes, count: int) -> np.ndarray:
        """The answer's unit rows in the order asked, once all that can be checked holds."""
        try:
            data = sorted(_decode_answer(body).data, key=lambda item: item.index)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InferenceUnavailable(f"the embedding endpoint's answer makes no sense: {error}") from error
        if [item.index for item in data] != list(range(count)):
            raise InferenceUnavailable(f"the embedding endpoint answered {len(data)} vectors that do not match {count} texts one to one")
        widths = {len(item.embedding) for item in data}
        expected = self._width or max(widths)
        if widths != {expected} or not expected:
            raise InferenceUnavailable(f"the embedding endpoint answered vectors of width {sorted(widths)}, expected {expected}")
        rows = np.array([item.embedding for item in data], np.float64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise InferenceUnavailable("the embedding endpoint answered a vector without a direction")
        self._width = expected
        return (rows / norms).astype(np.float32)


def _backoff_seconds(attempt: int) -> float:
    """0.25 s doubled with each attempt from 1, at most 8 s, of which the upper half is left to chance."""
    full = min(limits.REMOTE_EMBEDDING_BACKOFF_SECONDS_MIN * 2 ** (attempt - 1), limits.REMOTE_EMBEDDING_BACKOFF_SECONDS_MAX)
    return full * random.uniform(0.5, 1.0)


def _retry_after_seconds(header: str | None) -> float:
    """Retry-After as seconds or as an HTTP date -> seconds from now; 0 when absent, past or malformed."""
    if header is None:
        return 0.0
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
