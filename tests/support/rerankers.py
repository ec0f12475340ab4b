"""A reranker on a port of its own: real HTTP, judging texts by how often they hold a word."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER_SECONDS_MAX = 30


class RerankerEndpoint:
    """answers: statuses to give, in turn, then 200. body: an answer to give instead of judging.
    hangs: answer none until `let_go`.
    """

    def __init__(
        self,
        word: str,
        answers: tuple[int, ...] = (),
        *,
        body: bytes | None = None,
        hangs: bool = False,
    ):
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.let_go = threading.Event()
        if not hangs:
            self.let_go.set()
        judge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                judge.asked.append({"path": self.path, **asked})
                judge.headers.append({name.lower(): value for name, value in self.headers.items()})
                status = judge.answers.pop(0) if judge.answers else 200
                judge.let_go.wait(ANSWER_SECONDS_MAX)
                results = [
                    {"index": i, "relevance_score": text.count(word) - 5.5}
                    for i, text in enumerate(asked["documents"])
                ]
                # In an order of their own, as such services do.
                told = (
                    json.dumps({"results": results[::-1], "usage": {"total_tokens": 1}}).encode()
                    if body is None
                    else body
                )
                self.send_response(status)
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_: object) -> None:
                return

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def close(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is what some tests are about."""


@contextmanager
def judge(word: str, *answers: int, **fields: Any) -> Iterator[RerankerEndpoint]:
    made = RerankerEndpoint(word, answers, **fields)
    try:
        yield made
    finally:
        made.close()
