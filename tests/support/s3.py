"""S3 as moto plays it; one that ignores the condition of a put; and one that lists nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import httpx
import pytest

_NOT_PASSED_ON = {"host", "connection", "content-length"}
_NOT_PASSED_BACK = {"connection", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def s3() -> Iterator[str]:
    """-> a URL below an empty bucket, for a process with the environment of this one."""
    with _moto() as (endpoint, bucket), _reached_at(endpoint):
        yield f"s3://{bucket}/prefix"


@contextmanager
def s3_without_conditions() -> Iterator[str]:
    """As s3, in front of it a server that leaves `If-None-Match` out."""
    with _behind({"if-none-match"}, lambda path: path) as url:
        yield url


@contextmanager
def s3_that_hides() -> Iterator[tuple[str, Event]]:
    """As s3, in front of it a server that lists nothing while the event is set."""
    hides = Event()
    with _behind(set(), lambda path: _elsewhere(path) if hides.is_set() else path) as url:
        yield url, hides


def _elsewhere(path: str) -> str:
    """A listing of what is not there."""
    return re.sub(r"(?<=[?&])prefix=[^&]*", "prefix=elsewhere", path)


@contextmanager
def _behind(left_out: set[str], asked: Callable[[str], str]) -> Iterator[str]:
    """left_out: headers. asked: of a path with its query, what is asked for in its place."""

    class Between(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _NOT_PASSED_ON | left_out
            }
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = httpx.request(
                self.command,
                endpoint + asked(self.path),
                headers=headers,
                content=body,
                trust_env=False,
            )
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in _NOT_PASSED_BACK:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with _moto() as (endpoint, bucket), ThreadingHTTPServer(("127.0.0.1", 0), Between) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with _reached_at(f"http://127.0.0.1:{server.server_port}"):
            yield f"s3://{bucket}/prefix"
        server.shutdown()


@contextmanager
def _moto() -> Iterator[tuple[str, str]]:
    """-> (endpoint, a bucket of its own: all of a process are of one moto)"""
    from moto.server import ThreadedMotoServer  # a web framework comes with it

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    bucket = f"bucket-{os.urandom(8).hex()}"
    httpx.put(f"http://{host}:{port}/{bucket}", trust_env=False).raise_for_status()
    yield f"http://{host}:{port}", bucket
    server.stop()


@contextmanager
def _reached_at(endpoint: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "AWS_ENDPOINT": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }.items():
            environment.setenv(name, value)
        yield
