"""What a chat may ask of the operator's endpoint, and what it costs, over a socket and in front of
a real endpoint.
"""

from __future__ import annotations

import json
import pickle
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from openai import OpenAI

from plugins.chat.bounds import credits_for
from plugins.chat.completion import ChatBody
from plugins.chat.settings import ChatSettings
from runtime.api.operation import Call, Reply
from runtime.errors import Unavailable
from tests.support import upstream
from tests.support.over_http import OverHttp, over_http
from tests.support.upstream import Exchange, Upstream, completion, says, streams_on, waits

ASK = [{"role": "user", "content": "Where does Ada keep the spare key?"}]
PRICE = 10
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, endpoint: Upstream) -> Iterator[OverHttp]:
    told = {
        "llm__base_url": endpoint.url,
        "llm__model": "tiny-1",
        "chat__models_allowed": ["tiny-2"],
        "chat__max_tokens_max": 500,
        "chat__request_bytes_max": 20_000,
    }
    with over_http(tmp_path_factory.mktemp("chat"), **told) as service:
        yield service


@pytest.fixture(scope="module")
def me(service: OverHttp) -> str:
    return service.register()


@pytest.fixture(autouse=True)
def _fresh(endpoint: Upstream) -> None:
    endpoint.requests.clear()
    endpoint.go_on.clear()
    endpoint.abandoned.clear()
    endpoint.will(says("Under the blue flowerpot."))


def test_the_models_are_listed_as_openais_clients_ask_for_them(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    with OpenAI(base_url=f"{service.http.base_url}/v1", api_key=me) as client:
        offered = [model.id for model in client.models.list()]
        assert offered == ["mneme", "tiny-1", "tiny-2"]
        for model in offered:
            said = client.chat.completions.create(model=model, messages=ASK)
            assert said.choices[0].message.content == "Under the blue flowerpot."
    assert len(endpoint.requests) == 3


def media(part: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, part]}]


def used(service: OverHttp, who: str) -> int:
    return service.get("/v1/usage", who).json()["credits"]["used"]


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"model": "tiny-1-pro-max"}, 400, "model"),
    ({"n": 2}, 422, "body.n"),
    ({"best_of": 4}, 422, "body.best_of"),
    ({"models": ["tiny-1-pro-max"]}, 422, "body.models"),
    ({"service_tier": "priority"}, 422, "body.service_tier"),
    ({"max_tokens": 501}, 422, "body.max_tokens"),
    ({"max_completion_tokens": 10**9}, 422, "body.max_completion_tokens"),
    ({"max_tokens": "all"}, 422, "body.max_tokens"),
    ({"n_predict": -1}, 422, "body.n_predict"),
    ({"fallbacks": ["tiny-1-pro-max"]}, 422, "body.fallbacks"),
    ({"extra_body": {"n": 5}}, 422, "body.extra_body"),
    ({"tools": [{"type": "web_search"}]}, 422, "body.tools.0.type"),
    ({"messages": [{"role": "user", "content": "x" * 20_000}]}, 413, "messages"),
    ({"note": "x" * 20_000}, 413, "messages"),
]
ADDRESSES = [
    {"type": "image_url", "image_url": {"url": "http://10.0.0.1/latest/meta-data"}},
    {"type": "image_url", "image_url": "https://example.com/a.png"},
    {"type": "image_url", "image_url": {"url": "/etc/passwd"}},
    {"type": "text", "text": "x", "image_url": {"url": " HTTP://127.0.0.1/"}},
    {"image_url": {"url": "file:///etc/passwd"}},
    {"type": "image", "image": "ftp://10.0.0.1/x"},
    {"type": "video_url", "video_url": {"url": "http://10.0.0.1/v.mp4"}},
    {"type": "input_audio", "input_audio": {"data": "http://10.0.0.1/a.wav", "format": "wav"}},
    {"type": "file", "file": {"file_url": "http://10.0.0.1/a.pdf"}},
]


@pytest.mark.parametrize(("fields", "status", "param"), REFUSED, ids=range(len(REFUSED)))
def test_what_the_settings_do_not_allow_is_refused_before_it_is_asked(
    service: OverHttp,
    me: str,
    endpoint: Upstream,
    fields: dict[str, Any],
    status: int,
    param: str,
) -> None:
    before = used(service, me)
    for stream in (False, True):
        answer = service.post(CHAT, {"messages": ASK, "stream": stream, **fields}, me)
        assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
    assert endpoint.requests == [] and used(service, me) == before


@pytest.mark.parametrize("part", ADDRESSES, ids=range(len(ADDRESSES)))
def test_the_endpoint_is_given_no_address_to_fetch(
    service: OverHttp, me: str, endpoint: Upstream, part: dict[str, Any]
) -> None:
    answer = service.post(CHAT, {"messages": [*ASK, *media(part)]}, me)
    assert (answer.status_code, answer.json()["error"]["param"]) == (
        422,
        "body.messages.1.content",
    )
    assert endpoint.requests == []


def test_what_the_settings_allow_passes(service: OverHttp, me: str, endpoint: Upstream) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,/9j/4AAQ"}}
    sound = {"type": "input_audio", "input_audio": {"data": "/9j/4AAQ", "format": "wav"}}
    spoken_of = {"type": "text", "text": "http://10.0.0.1/ is what I mean"}
    cited = {
        "role": "assistant",
        "content": "https://example.com/ says so",
        "annotations": [{"type": "url_citation", "url_citation": {"url": "https://example.com/"}}],
    }
    address = "https://example.com/a.png"
    called = {
        "role": "assistant",
        "tool_calls": [
            {"id": "a", "type": "custom", "custom": {"name": "look", "input": address}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": address}},
            {
                "id": "c",
                "type": "function",
                "function": {"name": "f", "arguments": {"url": address}},
            },
        ],
        "function_call": {"name": "look", "arguments": {"image": address}},
    }
    for fields in (
        {"model": "tiny-1"},
        {"messages": [called, *ASK]},
        {"model": "tiny-2", "n": 1, "max_tokens": 500, "service_tier": None},
        {"model": "mneme", "messages": media(picture)},
        {"messages": media(sound)},
        {"messages": [cited, *media(spoken_of)]},
    ):
        body = {"messages": ASK, **fields}
        answer = service.post(CHAT, body, me)
        assert answer.status_code == 200, answer.text
        assert endpoint.last["messages"] == body["messages"]


def test_an_operator_may_open_every_model_and_addresses(tmp_path: Any, endpoint: Upstream) -> None:
    told = {"chat__models_allowed": ["*"], "chat__allow_remote_media": True}
    with over_http(tmp_path, llm__base_url=endpoint.url, **told) as service:
        me = service.register()
        answer = service.post(CHAT, {"model": "any", "messages": media(ADDRESSES[0])}, me)
        assert answer.status_code == 200 and endpoint.last["model"] == "any"


def test_the_endpoint_is_always_told_how_long_an_answer_may_get(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    for fields, told in (
        ({}, {"max_tokens": 500}),
        ({"max_tokens": None}, {"max_tokens": 500}),
        ({"n_predict": 7}, {"max_tokens": 500, "n_predict": 7}),
        ({"max_tokens": 20}, {"max_tokens": 20}),
        ({"max_completion_tokens": 30}, {"max_completion_tokens": 30}),
    ):
        for stream in (False, True):
            body = {"messages": ASK, "stream": stream, **fields}
            assert service.post(CHAT, body, me).status_code == 200
            asked = {"max_tokens", "max_completion_tokens", "n_predict"} & set(endpoint.last)
            assert {name: endpoint.last[name] for name in asked} == told


def test_a_request_is_measured_where_it_is_read() -> None:
    """And nowhere else: what a shard is sent knows it already."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 40_000}}
    sound = {"type": "input_audio", "input_audio": {"data": "A" * 40_000, "format": "wav"}}
    for messages, tokens in (
        (ASK, range(15, 40)),
        ([{"role": "user", "content": "x" * 4_000}], range(1_000, 1_030)),
        ([{"role": "user", "content": "海" * 4_000}], range(4_000, 4_030)),
        (media(picture), range(20, 80)),
        (media(sound), range(20, 80)),
        ([{"role": "assistant", "tool_calls": ["x" * 4_000]}], range(1_000, 1_030)),
    ):
        body = pickle.loads(pickle.dumps(ChatBody.model_validate({"messages": messages})))
        assert body.measured.tokens in tokens
    tools = [{"type": "function", "function": {"name": "f", "description": "x" * 4_000}}]
    assert ChatBody.model_validate({"messages": ASK, "tools": tools}).measured.tokens > 1_000


# --- what it costs --------------------------------------------------------------------------------


def counts(prompt: int, answered: int) -> upstream.Act:
    """A proper answer whose endpoint counted so many tokens."""
    usage = {"prompt_tokens": prompt, "completion_tokens": answered}

    def act(exchange: Exchange) -> None:
        if not exchange.body.get("stream"):
            exchange.json({**completion({"content": "Yes."}), "usage": usage})
            return
        assert exchange.body["stream_options"]["include_usage"] is True
        exchange.begin_stream()
        exchange.event(upstream.chunk({"role": "assistant", "content": "Yes."}, "stop"))
        exchange.event(upstream.chunk(None, usage=usage))
        exchange.event("[DONE]")
        exchange.end_stream()

    return act


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_costs_the_tokens_that_the_endpoint_counted(
    service: OverHttp, me: str, endpoint: Upstream, stream: bool
) -> None:
    for prompt, answered, credits in ((200, 100, PRICE), (9_000, 1_001, 11), (60_000, 0, 60)):
        before = used(service, me)
        endpoint.will(counts(prompt, answered))
        assert service.post(CHAT, {"messages": ASK, "stream": stream}, me).status_code == 200
        service.until(lambda before=before, credits=credits: used(service, me) - before == credits)


def test_credits_are_held_for_all_that_an_answer_may_cost(
    tmp_path: Any, endpoint: Upstream
) -> None:
    told = {"limits__credits_per_month": 40, "chat__max_tokens_max": 20_000}
    with over_http(tmp_path, llm__base_url=endpoint.url, **told) as service:
        me = service.register()
        long = [{"role": "user", "content": "x" * 4 * 21_000}]
        refused = service.post(CHAT, {"messages": long}, me)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "quota_exceeded")
        assert endpoint.requests == []
        endpoint.will(waits)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(service.post, CHAT, {"messages": ASK}, me)
            service.until(lambda: endpoint.requests)
            assert service.post(CHAT, {"messages": ASK}, me).status_code == 429
            endpoint.go_on.set()
            assert first.result().status_code == 200
        assert used(service, me) == PRICE
        assert service.post(CHAT, {"messages": long, "max_tokens": 5}, me).status_code == 200


def test_tokens_may_be_free_beyond_the_price() -> None:
    assert credits_for(10**9, PRICE, ChatSettings(tokens_per_credit=0)) == PRICE


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (CHAT, {"messages": ASK}),
        ("/v1/search/reason", {"query": ASK[0]["content"]}),
        ("/v1/profile/dialectic", {"user_message": ASK[0]["content"], "user_id": "ada"}),
    ],
)
def test_whoever_leaves_before_the_answer_has_paid_for_it(
    service: OverHttp, me: str, endpoint: Upstream, path: str, asked: dict[str, Any]
) -> None:
    service.remember(me, "Ada keeps the spare key under the blue flowerpot.", user_id="ada")
    endpoint.will(waits)
    before = used(service, me)
    body = json.dumps(asked).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {me}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    port = httpx.URL(service.url).port
    with socket.create_connection(("127.0.0.1", port), 20) as leaver:
        leaver.sendall(head.encode() + body)
        service.until(lambda: endpoint.requests)
    service.until(lambda: used(service, me) - before == PRICE)


def test_whoever_leaves_a_stream_has_paid_for_what_came(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    endpoint.will(streams_on())
    before = used(service, me)
    headers = {"Authorization": f"Bearer {me}"}
    body = {"messages": ASK, "stream": True}
    with service.http.stream("POST", CHAT, json=body, headers=headers) as answer:
        next(answer.iter_bytes())
    assert endpoint.abandoned.wait(upstream.WAIT_SECONDS_MAX)
    service.until(lambda: used(service, me) - before == PRICE)


@pytest.mark.parametrize("stream", [False, True])
def test_a_collection_that_is_not_there_is_refused_before_the_model_is_asked(
    service: OverHttp, me: str, endpoint: Upstream, stream: bool
) -> None:
    before = used(service, me)
    asked = {"collection_id": "col_nowhere", "features": {"memory": False}, "stream": stream}
    for kept in (False, True):
        body = {"messages": ASK, "store_conversation": kept, **asked}
        assert service.post(CHAT, body, me).status_code == 404
    assert endpoint.requests == [] and used(service, me) == before


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_cannot_be_stored_is_paid_for(
    service: OverHttp,
    me: str,
    endpoint: Upstream,
    monkeypatch: pytest.MonkeyPatch,
    stream: bool,
) -> None:
    whole, before = service.shard.execute, used(service, me)

    async def losing(call: Call) -> Reply:
        if call.operation == "memories.create_batch":
            return Reply(503, error=Unavailable("Lost."))
        return await whole(call)

    monkeypatch.setattr(service.shard, "execute", losing)
    endpoint.will(counts(11_000, 1_000))
    body = {"messages": ASK, "store_conversation": True, "stream": stream}
    answer = service.post(CHAT, body, me)
    assert answer.status_code == (200 if stream else 503) and "Lost." in answer.text
    service.until(lambda: used(service, me) - before == 12)


def test_what_came_of_an_answer_that_breaks_off_is_paid_for(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    for words, credits in ((2, PRICE), (0, 0)):
        before = used(service, me)
        endpoint.will(upstream.breaks_off(words, "malformed"))
        answer = service.post(CHAT, {"messages": ASK, "stream": True}, me)
        assert '"error"' in answer.text
        service.until(lambda before=before, credits=credits: used(service, me) - before == credits)


def test_a_call_of_a_tool_is_paid_for_before_anybody_has_counted_it(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "x" * 4 * 12_000}}

    def calls(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.event(upstream.chunk({"role": "assistant", "tool_calls": [call]}))
        exchange.drop()

    before = used(service, me)
    endpoint.will(calls)
    assert service.post(CHAT, {"messages": ASK, "stream": True}, me).status_code == 200
    service.until(lambda: used(service, me) - before == 13)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_never_came_costs_nothing(
    service: OverHttp, me: str, endpoint: Upstream, stream: bool
) -> None:
    before = used(service, me)
    endpoint.will(upstream.refuses(500))
    assert service.post(CHAT, {"messages": ASK, "stream": stream}, me).status_code == 502
    assert used(service, me) == before


@pytest.mark.parametrize("stream", [False, True])
def test_a_credential_that_is_revoked_meanwhile_makes_no_answer_free(
    service: OverHttp, me: str, endpoint: Upstream, stream: bool
) -> None:
    before = used(service, me)
    made = service.post("/v1/auth/api-keys", {"name": "k", "scopes": ["read"]}, me).json()
    endpoint.will(waits)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(service.post, CHAT, {"messages": ASK, "stream": stream}, made["key"])
        service.until(lambda: endpoint.requests)
        gone = service.http.delete(
            f"/v1/auth/api-keys/{made['id']}", headers={"Authorization": f"Bearer {me}"}
        )
        assert gone.status_code in (200, 204)
        endpoint.go_on.set()
        assert asked.result().status_code == 200
    service.until(lambda: used(service, me) - before == PRICE)
    assert service.post(CHAT, {"messages": ASK}, made["key"]).status_code == 401
