"""A real HTTP endpoint that answers a client as a test says, down to half an answer, and notes what
came.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request: its headers by lower-case name, its body as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Act = Callable[[BaseHTTPRequestHandler], None]


def answers(
    body: Any = None, status: int = 200, content_type: str = "application/json", **headers: str
) -> Act:
    """A whole answer; header names are written with underscores."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {
            "Content-Type": content_type,
            "Content-Length": str(len(content)),
            **headers,
        }.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return act


def refuses(
    status: int,
    code: str | None = None,
    message: str = "No.",
    kind: str = "server_error",
    **headers: str,
) -> Act:
    """The service's error envelope."""
    error = {
        "message": message,
        "type": kind,
        "param": None,
        "status_code": status,
        "request_id": "req_1",
    }
    return answers({"error": error | ({"code": code} if code else {})}, status, **headers)


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    """Not a byte."""
    handler.close_connection = True


def breaks_off(handler: BaseHTTPRequestHandler) -> None:
    """Half of an answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id": ')
    handler.close_connection = True


class Endpoint:
    """Each request takes the next act, or the last one again when it is the only one left."""

    def __init__(self, acts: tuple[Act, ...]):
        self.received: list[Received] = []
        self.acts = deque(acts)
        lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self._body()
                with lock:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    owner.received.append(Received(self.command, self.path, headers, body))
                    act = owner.acts[0] if len(owner.acts) == 1 else owner.acts.popleft()
                act(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pieces = []
                while size := int(self.rfile.readline(), 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)

            def log_message(self, *_: object) -> None:
                return

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is what some tests are about."""


@contextmanager
def endpoint(*acts: Act) -> Iterator[Endpoint]:
    made = Endpoint(acts)
    try:
        yield made
    finally:
        made.close()
