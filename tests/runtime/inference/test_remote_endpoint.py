"""Remote endpoints against a real one that fails, stalls and misbehaves."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from runtime.inference.remote_endpoint import (
    EndpointFailed,
    EndpointRefused,
    RemoteEndpoint,
    backoff_seconds,
)
from runtime.limits import REMOTE_BACKOFF_SECONDS_MAX, REMOTE_BACKOFF_SECONDS_MIN
from tests.support import sounds
from tests.support.endpoints import endpoint
from tests.support.loops import run_hastily
from tests.support.upstream import (
    Act,
    Exchange,
    Upstream,
    hangs_up,
    refuses,
    sends,
    streams_on,
    upstream,
    waits,
)

WAIT_SECONDS_MAX = 60
ASKED = {"model": "m", "text": "a private text"}
ANSWER = b'{"well": true}'
WELL = sends(ANSWER)
SECRET = "sk-secret"


@pytest.fixture
def there() -> Iterator[Upstream]:
    with upstream() as server:
        yield server


def asking(
    there: Upstream,
    body: Callable[[RemoteEndpoint], Awaitable[Any]],
    key: str | None = SECRET,
    **fields: int,
) -> Any:
    """What `body` makes of an endpoint there."""
    return timed(there, body, key, **fields)[0]


def timed(
    there: Upstream,
    body: Callable[[RemoteEndpoint], Awaitable[Any]],
    key: str | None = SECRET,
    **fields: int,
) -> tuple[Any, list[float]]:
    """(what `body` makes of an endpoint there, the seconds that were slept, each of which ended at
    once)
    """

    async def ask() -> Any:
        bounds = {"attempts_max": 3, "answer_bytes_max": 10_000} | fields
        endpoint = RemoteEndpoint("the oracle", "oracle", there.url + "/", key, **bounds)
        try:
            return await body(endpoint)
        finally:
            await endpoint.close()
            await endpoint.close()

    return run_hastily(ask())


async def post(endpoint: RemoteEndpoint, seconds: float = WAIT_SECONDS_MAX) -> bytes:
    return await endpoint.post("/ask", asyncio.get_running_loop().time() + seconds, json=ASKED)


def failure(
    there: Upstream,
    kind: type[Exception] = EndpointFailed,
    key: str = SECRET,
    seconds: float = WAIT_SECONDS_MAX,
) -> str:
    """What is said of it, which holds neither text nor key, wherever one looks."""
    with pytest.raises(kind) as failed:
        asking(there, lambda endpoint: post(endpoint, seconds), key)
    told = "".join(traceback.format_exception(failed.value))
    assert SECRET not in told and "a private text" not in told
    return str(failed.value)


def garbles(exchange: Exchange) -> None:
    """What is no HTTP."""
    exchange.handler.wfile.write(b"\x16\x03\x01 no status line\r\n\r\n")
    exchange.drop()


def breaks_off(exchange: Exchange) -> None:
    """Less than was promised."""
    exchange.send(ANSWER[:5], Content_Length=str(len(ANSWER)))
    exchange.drop()


# --- what is tried again --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [refuses(408), refuses(429), refuses(500), refuses(503), hangs_up, garbles, breaks_off],
    ids=["408", "429", "500", "503", "hangs up", "garbles", "breaks off"],
)
def test_what_may_pass_is_tried_again(there: Upstream, trouble: Act) -> None:
    there.will(trouble, trouble, WELL)
    assert asking(there, post) == ANSWER
    assert there.requests == [ASKED] * 3 and there.headers["authorization"] == f"Bearer {SECRET}"


def test_attempts_are_bounded(there: Upstream) -> None:
    there.will(refuses(500))
    assert failure(there) == "the oracle failed 3 times: status 500"
    assert len(there.requests) == 3


@pytest.mark.parametrize("status", [204, 302, 400, 401, 404, 422])
def test_another_status_is_final(there: Upstream, status: int) -> None:
    there.will(refuses(status, Location="/elsewhere"), WELL)
    assert (
        failure(there, EndpointRefused)
        == f"the oracle answered {status}; check oracle.base_url, model and api_key"
    )
    assert len(there.requests) == 1


def test_retry_after_is_waited_for(there: Upstream) -> None:
    there.will(refuses(429, Retry_After="7"), WELL)
    assert timed(there, post) == (ANSWER, [7])


@pytest.mark.parametrize("wait", ["3600", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_past_the_deadline_fails_at_once(there: Upstream, wait: str) -> None:
    there.will(refuses(503, Retry_After=wait), WELL)
    assert "status 503; its next attempt" in failure(there)
    assert len(there.requests) == 1


def test_pauses_grow_and_differ() -> None:
    for attempt in range(1, 12):
        full = min(REMOTE_BACKOFF_SECONDS_MIN * 2 ** (attempt - 1), REMOTE_BACKOFF_SECONDS_MAX)
        pauses = {backoff_seconds(attempt) for _ in range(50)}
        assert len(pauses) > 1 and full / 2 <= min(pauses) and max(pauses) <= full


# --- the deadline, and answers without end --------------------------------------------------------


def test_nobody_waits_past_the_deadline_and_the_next_question_is_answered(there: Upstream) -> None:
    async def body(endpoint: RemoteEndpoint) -> bytes:
        with pytest.raises(TimeoutError):
            await post(endpoint, 0.1)
        there.will(WELL)
        there.go_on.set()
        return await post(endpoint)

    there.will(waits)
    assert asking(there, body) == ANSWER


def test_an_answer_that_trickles_without_end_ends_at_the_deadline(there: Upstream) -> None:
    there.will(streams_on())
    failure(there, TimeoutError, seconds=0.2)
    assert there.abandoned.wait(WAIT_SECONDS_MAX)


def test_an_answer_that_pours_without_end_is_read_up_to_a_limit(there: Upstream) -> None:
    there.will(streams_on(pause_seconds=0))
    assert failure(there) == "the oracle's answer is larger than any answer should be"
    assert there.abandoned.wait(WAIT_SECONDS_MAX) and len(there.requests) == 1


def test_a_question_that_is_cancelled_leaves_nothing_behind(there: Upstream) -> None:
    async def body(endpoint: RemoteEndpoint) -> bytes:
        asked = asyncio.create_task(post(endpoint))
        while not there.requests:
            await asyncio.sleep(0.001)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await asyncio.to_thread(there.abandoned.wait, WAIT_SECONDS_MAX)
        return await post(endpoint)

    there.will(streams_on(), WELL)
    assert asking(there, body, answer_bytes_max=10**9) == ANSWER


# --- where texts and keys go ----------------------------------------------------------------------


def test_questions_share_connections_and_none_after_the_end(there: Upstream) -> None:
    ports = []

    def notes(exchange: Exchange) -> None:
        ports.append(exchange.handler.client_address)
        WELL(exchange)

    async def body(endpoint: RemoteEndpoint) -> None:
        for _ in range(3):
            await post(endpoint)
        await endpoint.close()
        with pytest.raises(EndpointFailed, match="the oracle is closed"):
            await post(endpoint)

    there.will(notes)
    asking(there, body)
    assert len(ports) == 3 and len(set(ports)) == 1


def test_proxies_of_the_environment_are_not_asked(
    there: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    there.will(WELL)
    assert asking(there, post) == ANSWER


def test_the_key_is_in_no_log(there: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    there.will(refuses(500), hangs_up, WELL)
    assert asking(there, post) == ANSWER
    assert caplog.records and SECRET not in caplog.text and "a private text" not in caplog.text


def test_what_cannot_be_sent_or_read_is_final(there: Upstream) -> None:
    assert "LocalProtocolError" in failure(there, key=SECRET + "\nHost: b"), (
        "a key that is no header is not quoted either"
    )
    assert there.requests == []
    there.will(lambda exchange: exchange.send(b"no gzip", Content_Encoding="gzip"))
    assert "DecodingError" in failure(there)
    assert len(there.requests) == 1


def test_forms_are_sent_whole_each_time() -> None:
    """A file goes with every attempt, as it went with the first."""

    async def ask(url: str) -> bytes:
        asked = RemoteEndpoint(
            "the oracle", "oracle", url, None, attempts_max=3, answer_bytes_max=10_000
        )
        try:
            deadline = asyncio.get_running_loop().time() + WAIT_SECONDS_MAX
            file = ("piece.wav", sounds.wav(sounds.silence(2)), "audio/wav")
            fields = {"model": "m", "response_format": "verbose_json"}
            return await asked.post(
                "/audio/transcriptions", deadline, files={"file": file}, data=fields
            )
        finally:
            await asked.close()

    with endpoint() as served:
        served.failures, served.text = [500, 503], "One."
        assert json.loads(asyncio.run(ask(served.url)))["text"] == "One."
        assert served.seconds == [2.0]


def test_an_address_that_is_none_cannot_be_used() -> None:
    async def ask(url: str) -> None:
        endpoint = RemoteEndpoint(
            "the oracle", "oracle", url, None, attempts_max=3, answer_bytes_max=10_000
        )
        with pytest.raises(EndpointFailed, match="cannot be used"):
            await post(endpoint)
        await endpoint.close()

    for url in ("no url", "ftp://127.0.0.1", "http://127.0.0.1:port"):
        asyncio.run(ask(url))
