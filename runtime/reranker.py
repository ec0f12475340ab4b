"""The reranker: a cross-encoder behind HTTP that reads a query and texts together and says how well each answers it.

It speaks the common shape (Jina, Cohere, vLLM, Infinity and others):

    POST {base_url}/rerank  {"model", "query", "documents": [text, …], "top_n"}
      -> {"results": [{"index", "relevance_score"}, …]}

Owns waiting and failing: 408, 429, 5xx and broken connections are tried again, RERANKER_ATTEMPTS_MAX in all, with jittered pauses,
within one time limit for all of it. Whatever goes wrong is RerankingFailed, whose message holds neither text nor secret; a search
then keeps the order it has. Only the settings say where texts go: no redirects, no proxies of the environment.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import httpx
import msgspec

from runtime import limits

if TYPE_CHECKING:
    from runtime.settings import Settings


class RerankingFailed(Exception):
    """No usable answer."""


class Reranker(Protocol):
    """Texts in the order of how well they answer a query."""

    async def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """One finite score per document, higher for better; of no particular scale. Raises RerankingFailed."""
        ...

    async def close(self) -> None:
        """Free what is held. May be called twice."""
        ...


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Answer(msgspec.Struct):
    results: list[_Result]


class _TryAgain(Exception):
    """An attempt failed in a way that may pass."""


_decode_answer = msgspec.json.Decoder(_Answer).decode


class HttpReranker:
    """See the module docstring."""

    def __init__(self, base_url: str, api_key: str | None, model: str, *, timeout_seconds: float = 5.0):
        self._url = base_url.rstrip("/") + "/rerank"
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=timeout_seconds,
            limits=httpx.Limits(max_connections=limits.RERANKER_CONNECTIONS_MAX),
            trust_env=False,
        )

    async def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        asked = {
            "model": self._model,
            "query": query,
            "documents": [document[: limits.RERANKED_DOCUMENT_CHARS_MAX] for document in documents],
            "top_n": len(documents),
        }
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return _scores(await self._persistently(asked), len(documents))
        except TimeoutError as late:
            raise RerankingFailed(f"the reranker took longer than {self._timeout_seconds:g} seconds") from late

    async def close(self) -> None:
        await self._client.aclose()

    async def _persistently(self, asked: dict) -> bytes:
        for attempt in range(1, limits.RERANKER_ATTEMPTS_MAX + 1):
            try:
                return await self._post(asked)
            except _TryAgain as failure:
                if attempt == limits.RERANKER_ATTEMPTS_MAX:
                    raise RerankingFailed(f"the reranker failed {attempt} times: {failure}") from failure
            full = min(limits.RERANKER_BACKOFF_SECONDS_MIN * 2 ** (attempt - 1), limits.RERANKER_BACKOFF_SECONDS_MAX)
            await asyncio.sleep(full * random.uniform(0.5, 1.0))
        raise AssertionError("the last attempt returns or raises")

    async def _post(self, asked: dict) -> bytes:
        """One attempt -> the body of a 200. Raises _TryAgain or RerankingFailed."""
        try:
            async with self._client.stream("POST", self._url, json=asked) as response:
                if response.status_code in (408, 429) or response.status_code >= 500:
                    raise _TryAgain(f"status {response.status_code}")
                if response.status_code != 200:
                    raise RerankingFailed(f"the reranker answered {response.status_code}; check reranker.base_url, model and api_key")
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > limits.RERANKER_ANSWER_BYTES_MAX:
                        raise RerankingFailed("the reranker's answer is larger than any answer should be")
                return bytes(body)
        except httpx.TransportError as error:
            raise _TryAgain(type(error).__name__) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RerankingFailed(f"the reranker cannot be used: {type(error).__name__}") from error


def load_reranker(settings: Settings) -> Reranker | None:
    """The reranker that the settings name, if they name one."""
    chosen = settings.reranker
    if chosen.base_url is None or chosen.model is None:
        return None
    api_key = chosen.api_key.get_secret_value() if chosen.api_key else None
    return HttpReranker(chosen.base_url, api_key, chosen.model, timeout_seconds=chosen.timeout_seconds)


def _scores(body: bytes, count: int) -> list[float]:
    """One score per document, once all that can be checked holds."""
    try:
        results = sorted(_decode_answer(body).results, key=lambda result: result.index)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RerankingFailed("the reranker's answer makes no sense") from error
    if [result.index for result in results] != list(range(count)):
        raise RerankingFailed(f"the reranker's {len(results)} scores do not match {count} texts one to one")
    if not all(math.isfinite(result.relevance_score) for result in results):
        raise RerankingFailed("the reranker gave a score that is no number")
    return [result.relevance_score for result in results]
