"""A receiver of webhooks on a port of its own: real HTTP, answers as told, and a book of what
came.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER_SECONDS_MAX = 60


@dataclass(frozen=True)
class Received:
    """One request: its headers by lower-case name, its body as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.body)


class Receiver:
    """answers: statuses to give, in turn, then 200. hangs: take requests and answer none until
    `let_go`.
    """

    def __init__(
        self,
        answers: tuple[int, ...] = (),
        *,
        hangs: bool = False,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"ok",
    ):
        self.answers, self.headers, self.body = list(answers), headers or {}, body
        self.received: list[Received] = []
        self.let_go = threading.Event()
        if not hangs:
            self.let_go.set()
        receiver, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(length := int(self.headers["Content-Length"]))
                if len(body) < length:
                    return  # The sender was killed in the middle: nothing was delivered.
                with lock:
                    receiver.received.append(
                        Received(
                            self.path,
                            {name.lower(): value for name, value in self.headers.items()},
                            body,
                        )
                    )
                    status = receiver.answers.pop(0) if receiver.answers else 200
                receiver.let_go.wait(ANSWER_SECONDS_MAX)
                self.send_response(status)
                for name, value in {
                    **receiver.headers,
                    "Content-Length": str(len(receiver.body)),
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(receiver.body)

            def log_message(self, *_: object) -> None:
                return

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.address = ("127.0.0.1", self._server.server_port)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def kinds(self) -> list[str]:
        return [received.event["event_type"] for received in self.received]

    def close(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that goes away in the middle is what some tests are about."""


@contextmanager
def receiver(*answers: int, **fields: Any) -> Iterator[Receiver]:
    made = Receiver(answers, **fields)
    try:
        yield made
    finally:
        made.close()
