"""Connections that owe a request: the clock they run against, with a limit that a test can wait
for.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn

from runtime.serve import connection
from runtime.serve.connection import Connection

ANSWER_SECONDS_MAX = 60


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Where a server of such connections listens, which waits a fifth of a second for a head."""
    monkeypatch.setattr(connection, "HEAD_READ_SECONDS_MAX", 0.2)

    async def application(scope: object, receive: object, send: object) -> None:
        raise AssertionError("no request was sent whole")

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(application, http=Connection, lifespan="off", log_config=None)
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    yield listening.getsockname()
    server.should_exit = True
    thread.join()


def test_a_head_that_never_ends_is_not_waited_for(address: tuple[str, int]) -> None:
    """Neither is a connection on which nothing comes, nor one that keeps sending empty lines."""

    def connect() -> socket.socket:
        return socket.create_connection(address, ANSWER_SECONDS_MAX)

    def said_to(begun: bytes) -> bytes:
        with connect() as client, contextlib.suppress(ConnectionError):
            if begun:
                client.sendall(begun)
            return client.recv(65_536)
        return b""

    assert (said_to(b""), said_to(b"\r\n\r\n")) == (b"", b"")
    # What is not sent in time, as on a busy machine, was never begun.
    while not (said := said_to(b"GET /v1/memories HTTP/1.1\r\nHost: x\r\nX-A: ")):
        continue
    assert said.startswith(b"HTTP/1.1 400 ")
