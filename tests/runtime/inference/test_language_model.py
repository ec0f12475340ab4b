"""The language model against a real endpoint that answers, stalls and misbehaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import BaseModel, Field

from runtime import limits
from runtime.errors import BadRequest, RateLimited, Unavailable, UpstreamFailed, UpstreamTimeout
from runtime.inference import CompletionFailed, Usage, load_language_model
from runtime.inference.openai_chat import OpenAiLanguageModel
from runtime.settings import Settings
from tests.support import upstream
from tests.support.upstream import (
    Upstream,
    breaks_off,
    hangs_up,
    pours,
    refuses,
    says,
    sends,
    streams_on,
    waits,
)

ASK = [{"role": "user", "content": "Who keeps the key?"}]


class Keeper(BaseModel):
    name: str = Field(min_length=1)
    years: int


@pytest.fixture
def endpoint() -> Iterator[Upstream]:
    with upstream.upstream() as server:
        yield server


def ask(
    endpoint: Upstream,
    body: Callable[[OpenAiLanguageModel], Awaitable[Any]],
    seconds: float = 60.0,
    key: str | None = "sk-1",
) -> Any:
    """Run the body with a model in a loop of its own."""

    async def run() -> Any:
        model = OpenAiLanguageModel(endpoint.url, key, "tiny-1", timeout_seconds=seconds)
        try:
            return await body(model)
        finally:
            await model.close()

    return asyncio.run(run())


def failure(
    endpoint: Upstream, body: Callable[[OpenAiLanguageModel], Awaitable[Any]], seconds: float = 60.0
) -> CompletionFailed:
    with pytest.raises(CompletionFailed) as failed:
        ask(endpoint, body, seconds)
    return failed.value


async def collected(model: OpenAiLanguageModel, events: list[Any]) -> None:
    stream = await model.stream({"model": "tiny-1", "messages": ASK, "stream": True})
    try:
        async for event in stream:
            events.append(event)
    finally:
        await stream.aclose()


# --- our own questions ----------------------------------------------------------------------------


def test_a_completion_is_the_text_and_what_it_cost(endpoint: Upstream) -> None:
    endpoint.will(says("Ada keeps it."))
    done = ask(endpoint, lambda model: model.complete(ASK, max_tokens=9, temperature=0))
    assert (done.text, done.parsed, done.usage, done.usage.total_tokens) == (
        "Ada keeps it.",
        None,
        Usage(11, 7),
        18,
    )
    assert endpoint.last == {"model": "tiny-1", "messages": ASK, "max_tokens": 9, "temperature": 0}
    assert endpoint.headers["authorization"] == "Bearer sk-1"


def test_nothing_of_the_environment_goes_along(
    endpoint: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    ask(endpoint, lambda model: model.complete(ASK), key=None)
    assert (
        "of-somebody-else" not in str(endpoint.headers) and "authorization" not in endpoint.headers
    )


def test_a_redirect_is_not_followed(endpoint: Upstream) -> None:
    endpoint.will(refuses(307, Location="http://127.0.0.1:9/v1/chat/completions"))
    assert isinstance(failure(endpoint, lambda model: model.complete(ASK)).answer, UpstreamFailed)


def test_an_object_comes_back_as_one(endpoint: Upstream) -> None:
    endpoint.will(says('Here it is:\n```json\n{"name": "Ada", "years": 3}\n```'))
    done = ask(endpoint, lambda model: model.complete(ASK, schema=Keeper))
    assert done.parsed == Keeper(name="Ada", years=3)
    assert endpoint.last["response_format"]["json_schema"]["schema"] == Keeper.model_json_schema()
    assert (
        '"years"' in endpoint.last["messages"][0]["content"]
        and endpoint.last["messages"][1:] == ASK
    )


def test_an_answer_that_misses_the_schema_is_sent_back_once(endpoint: Upstream) -> None:
    endpoint.will(says('{"name": "", "years": "three"}'), says('{"name": "Ada", "years": 3}'))
    done = ask(endpoint, lambda model: model.complete(ASK, schema=Keeper))
    assert (done.parsed, done.usage) == (Keeper(name="Ada", years=3), Usage(22, 14))
    said, complaint = endpoint.last["messages"][-2:]
    assert said["content"] == '{"name": "", "years": "three"}' and "years" in complaint["content"]
    endpoint.will(says("I would rather not."))
    assert "twice" in str(failure(endpoint, lambda model: model.complete(ASK, schema=Keeper)))
    assert len(endpoint.requests) == 4


def test_an_endpoint_without_schemas_is_asked_in_words(endpoint: Upstream) -> None:
    good = says('{"name": "Ada", "years": 3}')
    endpoint.will(refuses(400, "response_format is not supported"), good, good)

    async def twice(model: OpenAiLanguageModel) -> list[Any]:
        return [(await model.complete(ASK, schema=Keeper)).parsed for _ in range(2)]

    assert ask(endpoint, twice) == [Keeper(name="Ada", years=3)] * 2
    assert ["response_format" in request for request in endpoint.requests] == [True, False, False]


def test_what_may_pass_is_tried_again(endpoint: Upstream) -> None:
    endpoint.will(refuses(503, Retry_After="0.01"), hangs_up, says("Ada."))
    assert ask(endpoint, lambda model: model.complete(ASK)).text == "Ada."
    endpoint.will(refuses(500, Retry_After="0.01"))
    failed = failure(endpoint, lambda model: model.complete(ASK))
    assert (
        isinstance(failed.answer, UpstreamFailed)
        and len(endpoint.requests) == 3 + 1 + limits.COMPLETION_RETRIES_MAX
    )


@pytest.mark.parametrize("act", [waits, refuses(429, Retry_After="30")])
def test_nothing_is_waited_for_past_the_time_limit(endpoint: Upstream, act: upstream.Act) -> None:
    endpoint.will(act)
    assert isinstance(
        failure(endpoint, lambda model: model.complete(ASK), 0.2).answer, UpstreamTimeout
    )


@pytest.mark.parametrize(
    "act",
    [says(""), sends(b"not json"), sends(b'{"choices": []}'), sends(b"[1]"), says('"x"')],
    ids=range(5),
)
def test_nonsense_is_a_failure(endpoint: Upstream, act: upstream.Act) -> None:
    endpoint.will(act)
    assert isinstance(
        failure(endpoint, lambda model: model.complete(ASK, schema=Keeper)).answer, UpstreamFailed
    )


def test_an_answer_has_a_size(endpoint: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COMPLETION_BYTES_MAX", 100)
    assert "larger" in str(failure(endpoint, lambda model: model.complete(ASK)))


def test_only_so_many_are_under_way(endpoint: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COMPLETIONS_WAITING_MAX", 3)
    monkeypatch.setattr(limits, "COMPLETIONS_AT_ONCE_MAX", 2)
    endpoint.will(waits)

    async def many(model: OpenAiLanguageModel) -> list[Any]:
        running = [asyncio.create_task(model.complete(ASK)) for _ in range(3)]
        while len(endpoint.requests) < 2:
            await asyncio.sleep(0.005)
        with pytest.raises(CompletionFailed) as refused:
            await model.complete(ASK)
        assert isinstance(refused.value.answer, Unavailable) and len(endpoint.requests) == 2
        endpoint.go_on.set()
        return [(await task).text for task in running]

    assert ask(endpoint, many) == ["Late."] * 3


# --- passing through ------------------------------------------------------------------------------


def test_an_answer_passes_unchanged(endpoint: Upstream) -> None:
    odd = {
        "id": "x",
        "choices": [{"index": 0, "message": {"content": "é", "new_field": [1.5, None]}}],
        "usage": None,
        "future": {"a": 1},
    }
    endpoint.will(sends(json.dumps(odd).encode()))
    request = {
        "model": "other",
        "messages": ASK,
        "top_k": 3,
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    assert ask(endpoint, lambda model: model.answer(request)) == odd
    assert endpoint.last == request


def test_a_stream_passes_event_by_event(endpoint: Upstream) -> None:
    endpoint.will(says("one two"))
    events: list[Any] = []
    ask(endpoint, lambda model: collected(model, events))
    assert [event["choices"][0]["delta"].get("content") for event in events] == [
        "",
        "one ",
        "two ",
        None,
    ]
    assert {event["id"] for event in events} == {"chatcmpl-7"}


CLASSES = [
    (refuses(401), UpstreamFailed),
    (refuses(403), UpstreamFailed),
    (refuses(400, "max_tokens is too large"), BadRequest),
    (refuses(404, "no such model"), BadRequest),
    (refuses(429, "slow down", Retry_After="17"), RateLimited),
    (refuses(500), UpstreamFailed),
    (refuses(503), UpstreamFailed),
    (refuses(504), UpstreamTimeout),
    (hangs_up, UpstreamFailed),
    (waits, UpstreamTimeout),
    (sends(b"<html>"), UpstreamFailed),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("act", "kind"), CLASSES, ids=range(len(CLASSES)))
def test_a_failure_says_what_its_caller_is_told(
    endpoint: Upstream, act: upstream.Act, kind: type, streamed: bool
) -> None:
    endpoint.will(act)
    request = {"model": "tiny-1", "messages": ASK, "stream": streamed}
    failed = failure(
        endpoint,
        lambda model: (model.stream if streamed else model.answer)(request),
        1.0 if act is waits else 60.0,
    )
    assert type(failed.answer) is kind
    assert len(endpoint.requests) == 1, "what passes through is tried once"
    if kind is BadRequest:
        assert "max_tokens" in failed.answer.message or "no such model" in failed.answer.message
    if kind is RateLimited:
        assert failed.answer.retry_after_seconds == 17


@pytest.mark.parametrize("status", [429, 503, 504])
@pytest.mark.parametrize("streamed", [False, True])
def test_how_long_the_endpoint_asks_to_wait_is_passed_on(
    endpoint: Upstream, status: int, streamed: bool
) -> None:
    def waits_for(header: str) -> int | None:
        endpoint.will(refuses(status, Retry_After=header))
        request = {"model": "tiny-1", "messages": ASK, "stream": streamed}
        failed = failure(
            endpoint, lambda model: (model.stream if streamed else model.answer)(request), 60.0
        )
        return failed.answer.retry_after_seconds

    assert waits_for("17") == 17 and waits_for("2.5") == 3
    in_an_hour = waits_for(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True))
    assert in_an_hour is not None and 3_000 < in_an_hour <= 3_600
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    assert {waits_for(header) for header in (past, "-5", "soon", "inf", "nan")} == {1}


@pytest.mark.parametrize("end", ["drop", "end", "malformed", "error", "silence"])
def test_a_stream_that_breaks_off_is_never_taken_for_whole(endpoint: Upstream, end: str) -> None:
    endpoint.will(breaks_off(2, end))
    events: list[Any] = []
    seconds = 1.0 if end == "silence" else 60.0
    failed = failure(endpoint, lambda model: collected(model, events), seconds)
    assert [event["choices"][0]["delta"].get("content") for event in events] == [
        "",
        "word0 ",
        "word1 ",
    ]
    assert isinstance(failed.answer, UpstreamTimeout if end == "silence" else UpstreamFailed)


def test_an_event_of_a_stream_has_a_size(
    endpoint: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMPLETION_BYTES_MAX", 1_000_000)
    endpoint.will(pours)
    events: list[Any] = []
    assert "larger" in str(failure(endpoint, lambda model: collected(model, events)))
    assert [event["choices"][0]["delta"]["content"] for event in events] == ["word "]


def test_a_stream_may_be_larger_than_each_of_its_events(
    endpoint: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMPLETION_BYTES_MAX", 20_000)
    endpoint.will(says("word " * 1_000))
    events: list[Any] = []
    ask(endpoint, lambda model: collected(model, events))
    assert len(json.dumps(events)) > 20_000


def test_closing_a_stream_ends_the_call(endpoint: Upstream) -> None:
    endpoint.will(streams_on())

    async def leave(model: OpenAiLanguageModel) -> None:
        for begun in (False, True):
            endpoint.abandoned.clear()
            stream = await model.stream({"model": "tiny-1", "messages": ASK, "stream": True})
            if begun:
                await anext(stream)
            await stream.aclose()
            assert await asyncio.to_thread(endpoint.abandoned.wait, upstream.WAIT_SECONDS_MAX)

    ask(endpoint, leave)


def test_only_so_many_pass_at_once(endpoint: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PASSED_THROUGH_REQUESTS_MAX", 1)
    endpoint.will(streams_on())

    async def two(model: OpenAiLanguageModel) -> None:
        request = {"model": "tiny-1", "messages": ASK, "stream": True}
        first = await model.stream(request)
        with pytest.raises(CompletionFailed) as refused:
            await model.stream(request)
        assert isinstance(refused.value.answer, Unavailable)
        await first.aclose()
        await (await model.stream(request)).aclose()

    ask(endpoint, two)


def test_settings_say_which_model() -> None:
    assert load_language_model(Settings()) is None
    model = load_language_model(
        Settings.load(overrides=["llm.base_url=http://127.0.0.1:9/v1", "llm.model=tiny-1"])
    )
    assert model is not None and model.name == "tiny-1"
