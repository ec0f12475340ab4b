"""An answer that is not this service's is an error of the client's own, which asks whether the
address is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mneme_client import AsyncMneme, Mneme, MnemeError, Retries, UnreadableAnswer, errors

from tests.clients.endpoint import Act, Endpoint, answers, endpoint

ONCE = Retries(attempts_max=1)
MESSAGES: list[Any] = [{"role": "user", "content": "x"}]
HTML = answers(b"<html>hello</html>", content_type="text/html")
EVENTS = {"content_type": "text/event-stream"}
LINES = {"content_type": "application/x-ndjson"}


def blocking(call: Callable[[Any], Any], service: Endpoint) -> None:
    with Mneme(base_url=service.url, retries=ONCE) as client:
        answer = call(client)
        if hasattr(answer, "__iter__") and not isinstance(answer, dict):
            list(answer)


def awaited(call: Callable[[Any], Any], service: Endpoint) -> None:
    async def run() -> None:
        async with AsyncMneme(base_url=service.url, retries=ONCE) as client:
            answer = call(client)
            if hasattr(answer, "__aiter__"):
                [item async for item in answer]
            else:
                await answer

    asyncio.run(run())


@pytest.fixture(params=[blocking, awaited])
def calling(request: pytest.FixtureRequest) -> Callable[[Callable[[Any], Any], Endpoint], None]:
    return request.param


@pytest.mark.parametrize(
    "act",
    [
        HTML,
        answers(b""),
        answers([]),
        answers(b'{"a": "\xe9"}'),
        answers(b"no gzip", Content_Encoding="gzip"),
    ],
    ids=["html", "nothing", "a list", "no UTF-8", "a broken gzip"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.search("tea"),
        lambda client: client.memories.create(content="tea"),
        lambda client: client.memories.list(),
        lambda client: client.memories.list().page(),
        lambda client: client.account.export(),
        lambda client: client.chat.stream_completions(MESSAGES),
    ],
    ids=["search", "create", "list", "page", "export", "events"],
)
def test_a_success_of_another_server(calling: Any, act: Act, call: Callable[[Any], Any]) -> None:
    with endpoint(act) as other:
        with pytest.raises(UnreadableAnswer, match="is base_url right\\?") as raised:
            calling(call, other)
        assert isinstance(raised.value, MnemeError) and len(other.received) == 1


@pytest.mark.parametrize(
    ("call", "act"),
    [
        (lambda client: client.memories.list(), answers({"ok": 1})),
        (lambda client: client.account.export(), answers(b'{"kind": 1}\n<html>\n', **LINES)),
        (lambda client: client.account.export(), answers(b"[]", **LINES)),
        (lambda client: client.account.export(), answers(b"\xff\xfe\n", **LINES)),
        (
            lambda client: client.chat.stream_completions(MESSAGES),
            answers(b": ping\n\ndata: {bad\n\ndata: [DONE]\n\n", **EVENTS),
        ),
        (
            lambda client: client.chat.stream_completions(MESSAGES),
            answers(b"data: 7\n\ndata: [DONE]\n\n", **EVENTS),
        ),
        (
            lambda client: client.chat.stream_completions(MESSAGES),
            answers(b"no gzip", Content_Encoding="gzip", **EVENTS),
        ),
    ],
)
def test_pages_and_pieces_of_a_stream_that_are_none(
    calling: Any, call: Callable[[Any], Any], act: Act
) -> None:
    with endpoint(act) as other, pytest.raises(UnreadableAnswer, match="is base_url right"):
        calling(call, other)


def test_a_failure_that_cannot_be_read_is_one_of_the_client_s_too(calling: Any) -> None:
    broken = answers(b"no gzip", 502, Content_Encoding="gzip")
    with endpoint(broken) as other, pytest.raises(UnreadableAnswer):
        calling(lambda client: client.search("tea"), other)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_names_the_address(calling: Any, status: int) -> None:
    """Followed, a 301 would turn a write into a question."""
    moved = answers(b"", status, Location="https://memory.example/v1/memories?a=b")
    with endpoint(moved) as other:
        with pytest.raises(errors.ApiError, match="base_url must be corrected") as raised:
            calling(lambda client: client.memories.create(content="tea"), other)
        assert "https://memory.example/v1/memories," in str(raised.value)
        assert raised.value.status == status and len(other.received) == 1


def test_an_http_client_that_follows_redirects_does_not_follow_these() -> None:
    with (
        endpoint(answers({"results": []})) as service,
        endpoint(answers(b"", 301, Location=f"{service.url}/v1/memories")) as other,
        httpx.Client(follow_redirects=True) as http,
    ):
        with pytest.raises(errors.ApiError):
            Mneme(base_url=other.url, http=http).memories.create(content="tea")
        assert service.received == []


def test_a_stream_is_read_once() -> None:
    with endpoint(answers(b'{"kind": "manifest"}\n', **LINES)) as service:
        with Mneme(base_url=service.url) as client:
            stream = client.account.export()
            assert list(stream) == [{"kind": "manifest"}]
            with pytest.raises(RuntimeError, match="can be read once"):
                list(stream)
        assert len(service.received) == 1
