"""A real OpenAI-compatible chat endpoint on a port of its own, which answers, stalls and misbehaves
as a test says.

Each request takes the next act of the queue, or the last one again when it is the only one left. An
act writes to the connection itself, so that whatever a real endpoint can do wrong, down to half a
line, can be done.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_SECONDS_MAX = 60
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


class Upstream:
    """requests: bodies in the order they came. headers: of the last one. abandoned: set once a
    client left an endless stream.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.abandoned = threading.Event()
        self.go_on = threading.Event()
        self.acts: deque[Act] = deque([says("Hello.")])
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.requests.append(body)
                owner.headers = {name.lower(): value for name, value in self.headers.items()}
                act = owner.acts[0] if len(owner.acts) == 1 else owner.acts.popleft()
                try:
                    act(Exchange(self, owner, body))
                except OSError:
                    self.close_connection = True
                    owner.abandoned.set()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def last(self) -> dict[str, Any]:
        return self.requests[-1]

    def will(self, *acts: Act) -> None:
        """Forget what was planned and do these, the last one from then on."""
        self.acts = deque(acts)

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Exchange:
    """One request being answered."""

    def __init__(self, handler: BaseHTTPRequestHandler, owner: Upstream, body: dict[str, Any]):
        self.handler, self.owner, self.body = handler, owner, body

    def json(self, value: Any, status: int = 200, **headers: str) -> None:
        self.send(json.dumps(value).encode(), status, "application/json", **headers)

    def send(
        self,
        content: bytes,
        status: int = 200,
        content_type: str = "application/json",
        **headers: str,
    ) -> None:
        self.handler.send_response(status)
        for name, value in {
            "Content-Type": content_type,
            "Content-Length": str(len(content)),
            **headers,
        }.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def begin_stream(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/event-stream")
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def raw(self, text: str) -> None:
        content = text.encode()
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.handler.wfile.flush()

    def event(self, value: Any) -> None:
        self.raw(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n")

    def end_stream(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")
        self.handler.wfile.flush()

    def drop(self) -> None:
        """End the connection in the middle of whatever was said."""
        self.handler.close_connection = True


Act = Callable[[Exchange], None]


def completion(
    message: dict[str, Any], finish: str = "stop", model: str = "tiny-1"
) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": finish,
        "logprobs": None,
    }
    return {
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 1_750_000_000,
        "model": model,
        "choices": [choice],
        "usage": USAGE,
    }


def chunk(
    delta: dict[str, Any] | None,
    finish: str | None = None,
    usage: Any = None,
    model: str = "tiny-1",
) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    made = {
        "id": "chatcmpl-7",
        "object": "chat.completion.chunk",
        "created": 1_750_000_000,
        "model": model,
        "choices": choices,
    }
    return made if usage is None else {**made, "usage": usage}


def _deltas(text: str, tool_calls: list[dict[str, Any]] | None) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if tool_calls is None else None}
    for word in text.split(" ") if text else ():
        yield {"content": word + " "}
    for index, call in enumerate(tool_calls or ()):
        yield {"tool_calls": [{**call, "index": index}]}


def says(text: str = "", tool_calls: list[dict[str, Any]] | None = None) -> Act:
    """A proper answer, in one piece or streamed, as the request asks."""
    finish = "stop" if tool_calls is None else "tool_calls"

    def act(exchange: Exchange) -> None:
        model = exchange.body.get("model", "tiny-1")
        if not exchange.body.get("stream"):
            message = {"content": text or None} | (
                {} if tool_calls is None else {"tool_calls": tool_calls}
            )
            exchange.json(completion(message, finish, model))
            return
        exchange.begin_stream()
        for delta in _deltas(text, tool_calls):
            exchange.event(chunk(delta, model=model))
        exchange.event(chunk({}, finish, model=model))
        if (exchange.body.get("stream_options") or {}).get("include_usage"):
            exchange.event(chunk(None, usage=USAGE, model=model))
        exchange.event("[DONE]")
        exchange.end_stream()

    return act


def answers_with(answer: Callable[[dict[str, Any]], str]) -> Act:
    """What the function makes of the request's body."""
    return lambda exchange: says(answer(exchange.body))(exchange)


def refuses(status: int, message: str = "No.", **headers: str) -> Act:
    return lambda exchange: exchange.json(
        {"error": {"message": message, "type": "upstream", "param": None, "code": None}},
        status,
        **headers,
    )


def sends(content: bytes, content_type: str = "application/json") -> Act:
    return lambda exchange: exchange.send(content, 200, content_type)


def hangs_up(exchange: Exchange) -> None:
    """Not a byte."""
    exchange.drop()


def waits(exchange: Exchange) -> None:
    """Until `go_on` is set; then a proper answer, if anybody still listens."""
    exchange.owner.go_on.wait(WAIT_SECONDS_MAX)
    says("Late.")(exchange)


def breaks_off(after: int, end: str = "drop") -> Act:
    """A stream of `after` words and then: "drop" (the connection ends), "end" (an orderly end
    without a finish), "malformed" (a line that is no JSON), "error" (the endpoint's own error),
    "silence" (nothing until `go_on`)."""

    def act(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.event(chunk({"role": "assistant", "content": ""}))
        for number in range(after):
            exchange.event(chunk({"content": f"word{number} "}))
        if end == "malformed":
            exchange.event('{"id": "chatcmpl-7", "choices": [')
        if end == "error":
            exchange.event(
                {"error": {"message": "The model ran out of memory.", "type": "server_error"}}
            )
        if end == "silence":
            exchange.owner.go_on.wait(WAIT_SECONDS_MAX)
        if end != "drop":
            exchange.end_stream()
        exchange.drop()

    return act


def pours(exchange: Exchange) -> None:
    """A word, then 13 megabytes of an event that does not end, then nothing more."""
    exchange.begin_stream()
    exchange.event(chunk({"role": "assistant", "content": "word "}))
    exchange.raw("data: ")
    for _ in range(200):
        exchange.raw("a" * 65_536)
    exchange.drop()


def streams_on(pause_seconds: float = 0.01) -> Act:
    """Words without end, until the client leaves."""

    def act(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.event(chunk({"role": "assistant", "content": ""}))
        while not exchange.owner.go_on.wait(pause_seconds):
            exchange.event(chunk({"content": "word "}))

    return act


@contextmanager
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    try:
        yield server
    finally:
        server.close()
