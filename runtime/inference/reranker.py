"""The reranker: a cross-encoder behind HTTP that reads a query and texts together and says how well
each answers it.

It speaks the common shape (Jina, Cohere, vLLM, Infinity and others):

    POST {base_url}/rerank  {"model", "query", "documents": [text, …], "top_n"}
      -> {"results": [{"index", "relevance_score"}, …]}

What is tried again and how often is remote_endpoint.py's, within one time limit for all of it.
Whatever goes wrong is RerankingFailed, whose message holds neither text nor secret; a search then
keeps the order it has.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from runtime import limits
from runtime.inference.remote_endpoint import EndpointFailed, RemoteEndpoint

if TYPE_CHECKING:
    from runtime.settings import Settings


class RerankingFailed(Exception):
    """No usable answer."""


class Reranker(Protocol):
    """Texts in the order of how well they answer a query."""

    async def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """One finite score per document, higher for better; of no particular scale. Raises
        RerankingFailed.
        """
        ...

    async def close(self) -> None:
        """Free what is held. May be called twice."""
        ...


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Answer(msgspec.Struct):
    results: list[_Result]


_decode_answer = msgspec.json.Decoder(_Answer).decode


class HttpReranker:
    """Asks an endpoint over HTTP for the relevance of texts to a query."""

    def __init__(
        self, base_url: str, api_key: str | None, model: str, *, timeout_seconds: float = 5.0
    ):
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._endpoint = RemoteEndpoint(
            "the reranker",
            "reranker",
            base_url,
            api_key,
            attempts_max=limits.RERANKER_ATTEMPTS_MAX,
            answer_bytes_max=limits.RERANKER_ANSWER_BYTES_MAX,
        )

    async def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        asked = {
            "model": self._model,
            "query": query,
            "documents": [document[: limits.RERANKED_DOCUMENT_CHARS_MAX] for document in documents],
            "top_n": len(documents),
        }
        try:
            deadline = asyncio.get_running_loop().time() + self._timeout_seconds
            return _scores(
                await self._endpoint.post("/rerank", deadline, json=asked), len(documents)
            )
        except EndpointFailed as failed:
            raise RerankingFailed(str(failed)) from failed
        except TimeoutError as late:
            raise RerankingFailed(
                f"the reranker took longer than {self._timeout_seconds:g} seconds"
            ) from late

    async def close(self) -> None:
        await self._endpoint.close()


def load_reranker(settings: Settings) -> Reranker | None:
    """The reranker that the settings name, if they name one."""
    chosen = settings.reranker
    if chosen.base_url is None or chosen.model is None:
        return None
    api_key = chosen.api_key.get_secret_value() if chosen.api_key else None
    return HttpReranker(
        chosen.base_url, api_key, chosen.model, timeout_seconds=chosen.timeout_seconds
    )


def _scores(body: bytes, count: int) -> list[float]:
    """One score per document, once all that can be checked holds."""
    try:
        results = sorted(_decode_answer(body).results, key=lambda result: result.index)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RerankingFailed("the reranker's answer makes no sense") from error
    if [result.index for result in results] != list(range(count)):
        raise RerankingFailed(
            f"the reranker's {len(results)} scores do not match {count} texts one to one"
        )
    if not all(math.isfinite(result.relevance_score) for result in results):
        raise RerankingFailed("the reranker gave a score that is no number")
    return [result.relevance_score for result in results]
