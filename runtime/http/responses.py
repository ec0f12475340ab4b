"""Answers on the wire: the headers that each carries, errors in their envelope, bodies, files and
streams.

Owns the form of an answer and nothing of how it came about; gateway.py decides what is answered.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import orjson

from runtime.api.mount import Send
from runtime.api.operation import Reply
from runtime.errors import ApiError, Conflict, FeatureNotAvailable, NotFound, RateLimited
from runtime.http.bodies import ClientLeft, Headers, Receive, unless_left
from runtime.limits import REQUEST_ID_CHARS_MAX
from runtime.release import service_build, service_version
from storage.blobs import BlobMissing, BlobStore

_VISIBLE = re.compile(rb"[!-~]{1,%d}" % REQUEST_ID_CHARS_MAX)
_HEADER_SAFE = "".join(map(chr, range(32, 127)))
# Never sent: how metrics count a client that left before its body was whole.
CLIENT_LEFT_STATUS = 499


class Responses:
    """Sends the answers of one gateway.

    hsts_seconds  for how long whoever was answered over HTTPS asks over nothing else; 0: not said
    """

    def __init__(self, blobs: BlobStore, hsts_seconds: int):
        self._blobs = blobs
        plain = (
            (b"x-service-version", service_version().encode()),
            (b"x-service-build", service_build().encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        )
        strict = (b"strict-transport-security", b"max-age=%d" % hsts_seconds)
        # A browser has to disregard the header where it came in the clear.
        self._constant_headers = {False: plain, True: (*plain, strict) if hsts_seconds else plain}

    def headers(self, request_id: str, started: float, secure: bool) -> list[tuple[bytes, bytes]]:
        """Those that every answer carries. secure: it travels over HTTPS."""
        seconds = time.perf_counter() - started
        return [
            *self._constant_headers[secure],
            (b"x-request-id", request_id.encode()),
            (b"x-process-time", b"%.6f" % seconds),
        ]

    async def send(
        self,
        send: Send,
        reply: Reply,
        method: str,
        request_id: str,
        started: float,
        secure: bool,
    ) -> int:
        """Send the reply; -> its status."""
        if reply.error is None:
            status, body, further, content_type = (
                reply.status,
                reply.body,
                reply.headers,
                reply.content_type,
            )
        else:
            status, body, further = error_answer(reply.error, request_id)
            content_type = "application/json"
        headers = self.headers(request_id, started, secure)
        stored = reply.file if reply.error is None else None
        if status != 204:
            size = len(body or b"") if stored is None else stored.blob.size
            headers += ((b"content-type", content_type.encode()), (b"content-length", b"%d" % size))
        for name, value in further.items():
            headers.append((name.lower().encode(), _header_value(value)))
        if stored is None or method == "HEAD":
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send(
                {
                    "type": "http.response.body",
                    "body": b"" if method == "HEAD" or body is None else body,
                }
            )
            return status
        try:
            pieces = self._blobs.read(stored.owner, stored.blob)
        except BlobMissing:
            gone = Reply(error=_gone())
            return await self.send(send, gone, method, request_id, started, secure)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await _send_pieces(send, pieces)
        return status

    async def stream(
        self,
        send: Send,
        receive: Receive,
        reply: Reply,
        request_id: str,
        started: float,
        secure: bool,
    ) -> int:
        """Send the head, then each chunk as it comes; -> the status. The caller closes the body."""
        headers = [
            *self.headers(request_id, started, secure),
            (b"content-type", reply.content_type.encode()),
            *(
                (name.lower().encode(), _header_value(value))
                for name, value in reply.headers.items()
            ),
        ]

        async def pump() -> None:
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            async for chunk in reply.body:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        try:
            await unless_left(pump(), receive)
            return reply.status
        except ClientLeft:
            return CLIENT_LEFT_STATUS


def request_id_of(headers: Headers, random: bytes) -> str:
    """The client's own when it is 1 to 128 visible ASCII characters, else a new one."""
    given = headers.get(b"x-request-id")
    if given is not None and _VISIBLE.fullmatch(given):
        return given.decode("ascii")
    return "req_" + random.hex()


def answer_unread(error: ApiError) -> bytes:
    """The whole HTTP/1.1 answer to what never became a request, with the headers that every answer
    carries.
    """
    request_id = request_id_of({}, os.urandom(16))
    status, body, headers = error_answer(error, request_id)
    headers |= {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        "X-Request-ID": request_id,
        "X-Process-Time": "0.000000",
        "X-Service-Version": service_version(),
        "X-Service-Build": service_build(),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}\r\n".encode() + body


def error_answer(error: ApiError, request_id: str) -> tuple[int, bytes, dict[str, str]]:
    """Put an error into its envelope; -> (status, body, headers)."""
    headers = dict(error.headers)
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(error.retry_after_seconds)
    elif isinstance(error, Conflict):
        headers["X-Should-Retry"] = "false"
    if isinstance(error, FeatureNotAvailable):
        return error.status, orjson.dumps(error.body), headers
    envelope: dict[str, Any] = {} if error.code is None else {"code": error.code}
    envelope |= {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "status_code": error.status,
        "request_id": request_id,
    }
    if isinstance(error, RateLimited):
        envelope["status"] = error.status
    if error.details is not None:
        envelope["details"] = error.details
    return error.status, orjson.dumps({"error": envelope}), headers


async def _send_pieces(send: Send, pieces: Iterator[bytes]) -> None:
    """A file as the rest of an answer, as fast as the client takes it."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _gone() -> NotFound:
    return NotFound("This file is gone.")


def _header_value(text: str) -> bytes:
    """Visible ASCII as it is; anything else, line breaks above all, percent-encoded."""
    return (
        text if text.isascii() and text.isprintable() else quote(text, safe=_HEADER_SAFE)
    ).encode()
