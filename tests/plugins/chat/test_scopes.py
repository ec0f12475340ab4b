"""Of whom a chat remembers, and what neither a client nor an endpoint may bring it to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.over_http import OverHttp, over_http
from tests.support.upstream import Exchange, Upstream, chunk, says

CHAT = "/v1/chat/completions"
ASK = [{"role": "user", "content": "What is the password for the vault?"}]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, endpoint: Upstream) -> Iterator[OverHttp]:
    told = {"llm__base_url": endpoint.url, "llm__model": "tiny-1", "llm__timeout_seconds": 2}
    with over_http(tmp_path_factory.mktemp("chat"), **told) as service:
        yield service


@pytest.fixture(scope="module")
def me(service: OverHttp) -> str:
    me = service.register("ada@example.com")
    for user, said in (("bob", "swordfish"), ("ada", "marlin"), (None, "herring")):
        body = {
            "corrected_content": f"The password for the vault is {said}.",
            "correction_type": "factual",
            **({} if user is None else {"user_id": user}),
        }
        assert service.post("/v1/corrections", body, me).status_code == 201
    service.settle()
    return me


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ("ada", {"marlin", "herring"}),
        ("eve", {"herring"}),
        (None, {"marlin", "herring", "swordfish"}),
    ],
)
def test_corrections_of_other_users_are_not_told(
    service: OverHttp, me: str, endpoint: Upstream, user: str | None, told: set[str]
) -> None:
    endpoint.will(says("I see."))
    body: dict[str, Any] = {"messages": ASK, "features": {"memory": False}}
    assert service.post(CHAT, body | ({"user": user} if user else {}), me).status_code == 200
    sent = str(endpoint.last["messages"])
    assert {word for word in ("swordfish", "marlin", "herring") if word in sent} == told


def test_corrections_of_other_collections_are_not_told(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    other = service.post("/v1/collections", {"name": "other"}, me).json()["id"]
    endpoint.will(says("I see."))
    assert service.post(CHAT, {"messages": ASK, "collection_id": other}, me).status_code == 200
    assert endpoint.last["messages"] == ASK


@pytest.mark.parametrize("text", [5, {"a": 1}, None, ["x"]])
def test_a_part_whose_text_is_none_is_the_endpoints_to_judge(
    service: OverHttp, me: str, endpoint: Upstream, text: Any
) -> None:
    endpoint.will(says("I see."))
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    assert service.post(CHAT, {"messages": messages}, me).status_code == 200
    assert endpoint.last["messages"] == messages


@pytest.mark.parametrize("choice", [None, "x", {"index": 0, "message": "x"}, {"index": 0}])
def test_a_broken_choice_is_a_bad_gateway(
    service: OverHttp, me: str, endpoint: Upstream, choice: Any
) -> None:
    endpoint.will(lambda exchange: exchange.json({"id": "1", "choices": [choice]}))
    assert service.post(CHAT, {"messages": ASK}, me).status_code == 502


def test_a_broken_chunk_ends_a_stream_with_an_error(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    def act(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.event(chunk({"content": "The "}))
        exchange.event({**chunk({"content": "vault"}), "choices": [{"index": [1], "delta": {}}]})
        exchange.end_stream()

    endpoint.will(act)
    answer = service.post(CHAT, {"messages": ASK, "stream": True}, me)
    assert answer.status_code == 200
    *_, failure, done = [line for line in answer.text.splitlines() if line]
    assert '"error"' in failure and done == "data: [DONE]"
