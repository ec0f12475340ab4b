"""What is sent again, what is not, and that it is the same call."""

from __future__ import annotations

import asyncio
import io
import os
import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mneme_client import AsyncMneme, ConnectionFailed, Mneme, Retries, errors

from tests.clients.endpoint import Act, Endpoint, answers, breaks_off, endpoint, hangs_up, refuses

SOON = Retries(attempts_max=4, first_seconds=0.001)
MEMORY = {"id": "mem_1", "memory_ids": ["mem_1"]}
LATER = {"Retry_After": "0"}


def blocking(url: str, call: Callable[[Any], Any]) -> Any:
    with Mneme(base_url=url, api_key="k", retries=SOON) as client:
        return call(client)


def awaited(url: str, call: Callable[[Any], Any]) -> Any:
    async def run() -> Any:
        async with AsyncMneme(base_url=url, api_key="k", retries=SOON) as client:
            return await call(client)

    return asyncio.run(run())


@pytest.fixture(params=[blocking, awaited])
def calling(request: pytest.FixtureRequest) -> Callable[[str, Callable[[Any], Any]], Any]:
    return request.param


def keys(service: Endpoint) -> set[str | None]:
    return {request.headers.get("idempotency-key") for request in service.received}


@pytest.mark.parametrize(
    "trouble",
    [
        hangs_up,
        breaks_off,
        refuses(503, **LATER),
        refuses(429, "rate_limit_exceeded", kind="rate_limit_error", **LATER),
        refuses(409, kind="conflict_error", **LATER),
        answers(b"<html>bad gateway</html>", 502, "text/html"),
        answers(b"Internal Server Error", 500, "text/plain"),
    ],
    ids=[
        "hangs up",
        "half an answer",
        "503",
        "429",
        "409 still running",
        "a proxy's 502",
        "a proxy's 500",
    ],
)
def test_a_write_is_sent_again_under_the_same_key(trouble: Act, calling: Any) -> None:
    with endpoint(trouble, trouble, answers(MEMORY, 201)) as service:
        assert calling(service.url, lambda client: client.memories.create(content="tea")) == MEMORY
        assert len(service.received) == 3
        assert len(keys(service)) == 1 and None not in keys(service)
        assert len({request.body for request in service.received}) == 1


def test_each_call_has_a_key_of_its_own_unless_it_is_given_one(calling: Any) -> None:
    with endpoint(answers(MEMORY, 201)) as service:
        calling(service.url, lambda client: client.memories.create(content="tea"))
        calling(service.url, lambda client: client.memories.create(content="tea"))
        calling(
            service.url,
            lambda client: client.memories.create(content="tea", idempotency_key="mine"),
        )
        assert len(keys(service)) == 3 and "mine" in keys(service)


@pytest.mark.parametrize(
    "trouble",
    [
        refuses(400, "invalid_request"),
        refuses(500, "internal_error"),
        refuses(503),
        refuses(409, kind="conflict_error"),
        refuses(429, "quota_exceeded", Retry_After="86400"),
    ],
    ids=["400", "500", "503 for good", "409 for good", "429 until tomorrow"],
)
def test_what_would_not_pass_is_not_sent_again(trouble: Act, calling: Any) -> None:
    with endpoint(trouble) as service:
        with pytest.raises(errors.ApiError):
            calling(service.url, lambda client: client.memories.create(content="tea"))
        assert len(service.received) == 1


def test_what_has_no_key_and_may_have_happened_is_not_sent_again(calling: Any) -> None:
    def log_in(client: Any) -> Any:
        return client.auth.login(email="ada@example.com", password="secret words")

    with endpoint(hangs_up) as service:
        with pytest.raises(ConnectionFailed) as raised:
            calling(service.url, log_in)
        assert len(service.received) == 1 and raised.value.sent
    with endpoint(refuses(503, **LATER)) as service:
        with pytest.raises(errors.Unavailable):
            calling(service.url, log_in)
        assert len(service.received) == 1
    with endpoint(refuses(429, **LATER), answers({"access_token": "t"})) as service:
        assert calling(service.url, log_in) == {"access_token": "t"}


def test_nobody_there_is_an_error_after_all_attempts(calling: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionFailed, match="POST /v1/memories got no answer") as raised:
            calling(
                f"http://127.0.0.1:{unused.getsockname()[1]}",
                lambda client: client.memories.create(content="tea"),
            )
    assert not raised.value.sent


def test_the_attempts_are_counted(calling: Any) -> None:
    with endpoint(hangs_up) as service:
        with pytest.raises(ConnectionFailed):
            calling(service.url, lambda client: client.memories.get("mem_1"))
        assert len(service.received) == SOON.attempts_max


def test_no_attempt_begins_when_the_time_is_over() -> None:
    hasty = Retries(attempts_max=100, first_seconds=0.001, seconds_max=0)

    async def awaiting(url: str) -> None:
        async with AsyncMneme(base_url=url, retries=hasty) as client:
            await client.memories.get("mem_1")

    with endpoint(hangs_up) as service, Mneme(base_url=service.url, retries=hasty) as client:
        with pytest.raises(ConnectionFailed):
            client.memories.get("mem_1")
        assert len(service.received) == 1
        with pytest.raises(ConnectionFailed):
            asyncio.run(awaiting(service.url))
        assert len(service.received) == 2


@pytest.mark.parametrize("given", ["path", "bytes", "stream"])
def test_a_file_is_sent_again_from_where_it_began(given: str, tmp_path: Path, calling: Any) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(
        b"skipped:The offsite is in Porto." if given == "stream" else b"The offsite is in Porto."
    )
    with (
        endpoint(refuses(503, **LATER), hangs_up, answers({"job_id": "job_1"}, 202)) as service,
        path.open("rb") as stream,
    ):
        stream.seek(len(b"skipped:"))
        file: Any = {"path": path, "bytes": path.read_bytes(), "stream": stream}[given]
        name = "notes.txt" if given == "bytes" else None
        calling(
            service.url,
            lambda client: client.documents.upload(
                file, filename=name, tags=["a", "b"], metadata={"year": 2026}
            ),
        )
        assert not stream.closed
        assert len(service.received) == 3 and len(keys(service)) == 1
        for request in service.received:
            assert (
                b"\r\n\r\nThe offsite is in Porto.\r\n" in request.body
                and b'filename="notes.txt"' in request.body
            )
            assert (
                b"\r\n\r\na,b\r\n" in request.body and b'\r\n\r\n{"year": 2026}\r\n' in request.body
            )


def test_a_stream_that_does_not_rewind_is_sent_once(calling: Any) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"once")
    os.close(writing)
    with endpoint(refuses(503, **LATER)) as service, os.fdopen(reading, "rb") as pipe:
        with pytest.raises(errors.Unavailable):
            calling(service.url, lambda client: client.documents.upload(pipe, filename="pipe.txt"))
        assert len(service.received) == 1 and b"once" in service.received[0].body


def test_waits_grow_spread_and_end() -> None:
    patience = Retries(
        attempts_max=20, first_seconds=0.25, wait_seconds_max=8, retry_after_seconds_max=60
    )
    lost = ConnectionFailed("gone")
    for attempt in range(1, 20):
        longest = min(8, 0.25 * 2 ** (attempt - 1))
        waits = {patience.wait(attempt, lost, repeatable=True) for _ in range(20)}
        assert len(waits) > 10 and all(longest / 2 <= wait <= longest for wait in waits)
    assert patience.wait(20, lost, repeatable=True) is None
    asked = errors.Unavailable("later", status=503, type="server_error", retry_after=30)
    assert all(30 <= patience.wait(1, asked, repeatable=True) <= 30 * 1.25 for _ in range(20))
    asked.retry_after = 61
    assert patience.wait(1, asked, repeatable=True) is None


def test_retry_after_is_a_number_or_a_date() -> None:
    assert errors.seconds_of("7") == 7
    assert errors.seconds_of("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    assert errors.seconds_of("Fri, 31 Dec 2999 23:59:59 GMT") > 1e9
    for nothing in (None, "soon", "Thu, 01 Jan 99999999999 00:00:00 GMT"):
        assert errors.seconds_of(nothing) is None


def test_a_path_parameter_stays_one_segment() -> None:
    with endpoint(answers({})) as service, Mneme(base_url=service.url) as client:
        client.graph.entities.get("a/b ?ü")
        assert service.received[0].path == "/v1/knowledge-graph/entities/a%2Fb%20%3F%C3%BC"
        for nothing in ("", ".", ".."):
            with pytest.raises(ValueError, match="names nothing"):
                client.memories.delete(nothing)
        assert len(service.received) == 1


def test_an_address_and_a_time_are_checked_before_they_are_sent() -> None:
    with pytest.raises(ValueError, match="is no address"):
        Mneme(base_url="localhost:8000")
    with Mneme() as client, pytest.raises(ValueError, match="needs a time zone"):
        client.memories.create(content="x", occurred_at=datetime(2026, 5, 8))
    with Mneme() as client, pytest.raises(ValueError, match="needs a filename"):
        client.documents.upload(io.BytesIO(b"x"))
