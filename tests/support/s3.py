"""S3 as moto plays it; and one like it that ignores the condition of a put."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

_NOT_PASSED_ON = {"host", "if-none-match", "connection"}
_NOT_PASSED_BACK = {"connection", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def s3() -> Iterator[str]:
    """-> a URL below an empty bucket, for a process with the environment of this one."""
    with _moto() as (endpoint, bucket), _reached_at(endpoint):
        yield f"s3://{bucket}/prefix"


@contextmanager
def s3_without_conditions() -> Iterator[str]:
    """As s3, in front of it a server that leaves `If-None-Match` out."""

    class Forgetful(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _NOT_PASSED_ON
            }
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = httpx.request(
                self.command, endpoint + self.path, headers=headers, content=body, trust_env=False
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

    with _moto() as (endpoint, bucket), ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as server:
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
