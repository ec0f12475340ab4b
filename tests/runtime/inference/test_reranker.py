"""The reranker's client against real servers: its answer, its patience and what it makes of
nonsense.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from runtime.inference import RerankingFailed, load_reranker
from runtime.inference.reranker import HttpReranker
from runtime.limits import RERANKED_DOCUMENT_CHARS_MAX, RERANKER_ATTEMPTS_MAX
from runtime.settings import Settings, SettingsError
from tests.support.rerankers import RerankerEndpoint, judge

DOCUMENTS = ["a rose", "rose rose rose", "nothing"]


def scores(
    url: str,
    documents: list[str] = DOCUMENTS,
    *,
    key: str | None = "secret",
    timeout_seconds: float = 60.0,
) -> list[float]:
    async def ask() -> list[float]:
        reranker = HttpReranker(url, key, "judge-1", timeout_seconds=timeout_seconds)
        try:
            return await reranker.scores("a rose?", documents)
        finally:
            await reranker.close()
            await reranker.close()

    return asyncio.run(ask())


def failure(there: RerankerEndpoint | str, **fields: Any) -> str:
    with pytest.raises(RerankingFailed) as failed:
        scores(there if isinstance(there, str) else there.url, **fields)
    assert "rose" not in str(failed.value) and "secret" not in str(failed.value)
    return str(failed.value)


def test_scores_come_in_the_order_of_the_documents() -> None:
    with judge("rose") as there:
        assert scores(there.url + "/", [*DOCUMENTS, "x" * 10_000]) == [-4.5, -2.5, -5.5, -5.5]
        asked = there.asked[0]
        assert (asked["path"], asked["model"], asked["query"], asked["top_n"]) == (
            "/v1/rerank",
            "judge-1",
            "a rose?",
            4,
        )
        assert [len(text) for text in asked["documents"]] == [6, 14, 7, RERANKED_DOCUMENT_CHARS_MAX]
        assert there.headers[0]["authorization"] == "Bearer secret"
        scores(there.url, key=None)
        assert "authorization" not in there.headers[1]


@pytest.mark.parametrize("trouble", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(trouble: int) -> None:
    with judge("rose", trouble, trouble) as there:
        assert scores(there.url) == [-4.5, -2.5, -5.5]
        assert len(there.asked) == 3


def test_patience_ends() -> None:
    with judge("rose", *[500] * 9) as there:
        assert "500" in failure(there)
        assert len(there.asked) == RERANKER_ATTEMPTS_MAX
    with judge("rose", hangs=True) as there:
        assert "longer than 0.2 seconds" in failure(there, timeout_seconds=0.2)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert "ConnectError" in failure(f"http://127.0.0.1:{nobody.getsockname()[1]}")
    assert failure("no url")


@pytest.mark.parametrize("refused", [301, 400, 401, 404, 422])
def test_a_refusal_is_final(refused: int) -> None:
    with judge("rose", refused) as there:
        assert str(refused) in failure(there)
        assert len(there.asked) == 1


def _results(*pairs: tuple[Any, Any]) -> bytes:
    return json.dumps(
        {"results": [{"index": index, "relevance_score": score} for index, score in pairs]}
    ).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"\xff",
        b'{"results": 5}',
        _results((0, 1.0), (1, 1.0)),
        _results((0, 1.0), (1, 1.0), (1, 1.0)),
        _results((0, 1.0), (1, 1.0), (3, 1.0)),
        _results((0, 1.0), (1, "high"), (2, 1.0)),
        b'{"results": [{"index": 0, "relevance_score": 1e999}, {"index": 1, "relevance_score": 1}, '
        b'{"index": 2, "relevance_score": 1}]}',
        b"x" * (2 * 1024 * 1024),
    ],
)
def test_an_answer_that_makes_no_sense_is_a_failure(body: bytes) -> None:
    with judge("rose", body=body) as there:
        assert failure(there)


def test_settings_name_it_whole_or_not_at_all() -> None:
    assert load_reranker(Settings()) is None
    for name, value in (("base_url", "http://127.0.0.1:9"), ("model", "judge-1")):
        with pytest.raises(SettingsError, match="reranker"):
            Settings.load({"reranker": {name: value}})
    made = load_reranker(
        Settings.load(
            {
                "reranker": {
                    "base_url": "http://127.0.0.1:9",
                    "model": "judge-1",
                    "api_key": "secret",
                }
            }
        )
    )
    assert made is not None
    asyncio.run(made.close())
