"""When the turn of a streamed chat is stored, as its reader sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from plugins.chat.completion import Keeper
from runtime.errors import Unavailable
from tests.support.over_http import OverHttp, over_http
from tests.support.upstream import Upstream, says

ASK = [{"role": "user", "content": "Where does Ada keep the spare key?"}]

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": "{}"},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, endpoint: Upstream) -> Iterator[OverHttp]:
    told: dict[str, Any] = {"llm__base_url": endpoint.url, "llm__model": "tiny-1"}
    with over_http(tmp_path_factory.mktemp("storing"), **told) as service:
        yield service


@pytest.fixture(scope="module")
def me(service: OverHttp) -> str:
    return service.register("ada@example.com")


@pytest.fixture(autouse=True)
def _fresh(endpoint: Upstream) -> None:
    endpoint.will(says("Under the blue flowerpot."))


def told(frames: list[str]) -> list[dict[str, Any]]:
    """The events of a stream, but for its last line."""
    assert frames.pop() == "data: [DONE]"
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": True}}])
def test_who_leaves_at_the_finish_finds_the_turn_stored(
    service: OverHttp, me: str, options: dict[str, Any]
) -> None:
    user = f"early-{len(options)}"
    body = {"messages": ASK, "user": user, "store_conversation": True, "stream": True, **options}
    headers = {"Authorization": f"Bearer {me}"}
    with service.http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
        for line in answer.iter_lines():
            if '"finish_reason":"stop"' in line:
                break
        stored = service.get(f"/v1/memories?user_id={user}", me).json()["items"]
    assert [memory["role"] for memory in stored] == ["assistant", "user"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_message_that_tools_are_called_for_is_stored_once(
    service: OverHttp, me: str, endpoint: Upstream, streamed: bool
) -> None:
    user = f"caller-{streamed}"
    body = {"user": user, "store_conversation": True, "stream": streamed}
    endpoint.will(says(tool_calls=[CALL]), says(tool_calls=[CALL]), says("In the shed."))
    messages: list[dict[str, Any]] = [*ASK]
    for _ in range(3):
        service.post("/v1/chat/completions", {**body, "messages": messages}, me)
        result = {"role": "tool", "tool_call_id": CALL["id"], "content": "Nothing there."}
        messages = [*messages, {"role": "assistant", "tool_calls": [CALL]}, result]
    asked = [*messages, {"role": "user", "content": "And the other one?"}]
    service.post("/v1/chat/completions", {**body, "messages": asked}, me)
    stored = service.get(f"/v1/memories?user_id={user}", me).json()["items"]
    assert [memory["content"].strip() for memory in reversed(stored)] == [
        ASK[0]["content"],
        "In the shed.",
        "And the other one?",
        "In the shed.",
    ]


def test_an_answer_that_cannot_be_stored_does_not_say_that_it_is_finished(
    service: OverHttp, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(keeper: Keeper, answered: Any) -> None:
        raise Unavailable("The shard is moving.")

    monkeypatch.setattr(Keeper, "keep", refused)
    body = {"messages": ASK, "store_conversation": True, "stream": True}
    said = service.post("/v1/chat/completions", body, me).text.strip().split("\n\n")
    *events, failed = told(said)
    assert {choice["finish_reason"] for event in events for choice in event["choices"]} == {None}
    words = [choice["delta"].get("content") for event in events for choice in event["choices"]]
    assert "".join(word or "" for word in words).strip() == "Under the blue flowerpot."
    assert failed["error"]["status_code"] == 503
