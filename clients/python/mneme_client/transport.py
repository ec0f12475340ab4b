"""From a Request to a decoded answer: the one place that speaks HTTP, once for callers that wait
and once for `async`.

Both send the same bytes and decide alike about a second attempt (retries.py); only the waiting
differs. Nothing here knows an operation.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from .errors import ConnectionFailed, MnemeError, UnreadableAnswer, of_response
from .request import Request, Upload
from .retries import Retries

USER_AGENT = "mneme-client/0.1.0"
FAILURES = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError)
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class _Base:
    """What both transports know: where to, as whom, how patiently."""

    def __init__(self, base_url: str, api_key: str | None, timeout: float, retries: Retries):
        self.base_url = base_url
        self.timeout = timeout
        self.retries = retries
        self._headers = {"User-Agent": USER_AGENT} | (
            {"Authorization": f"Bearer {api_key}"} if api_key else {}
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        return {
            "method": request.method,
            "url": self.base_url + request.path,
            "params": request.parameters() or None,
            "headers": self._headers | request.headers(),
            "timeout": self.timeout if request.timeout is None else request.timeout,
            "content": request.content(),
        }

    def _until(self, request: Request) -> float:
        """When the last attempt of a call that begins may begin, by the monotonic clock."""
        until = time.monotonic() + self.retries.seconds_max
        return until if request.until is None else min(until, request.until)

    def _wait(self, request: Request, attempt: int, error: MnemeError, until: float) -> float:
        """Seconds until the next attempt; raises the error where there is none."""
        seconds = self.retries.wait(attempt, error, repeatable=request.repeatable)
        stream_is_gone = request.upload is not None and not request.upload.repeatable
        if seconds is None or stream_is_gone or time.monotonic() + seconds > until:
            raise error
        return seconds


def connection_failed(request: Request, error: Exception) -> ConnectionFailed:
    """httpx's error as ours; raise it from the original."""
    what = str(error).rstrip(".") or type(error).__name__
    return ConnectionFailed(
        f"{request.method} {request.path} got no answer: {what}.",
        sent=not isinstance(error, NOT_SENT),
    )


def unreadable(request: Request, why: str) -> UnreadableAnswer:
    """The error of a success that does not come from this service."""
    return UnreadableAnswer(
        f"{request.method} {request.path} was answered, but not as this service does ({why}): is "
        "base_url right?"
    )


def object_of(request: Request, content: bytes) -> Any:
    """The JSON object that an answer is. Raises UnreadableAnswer."""
    try:
        found = json.loads(content)
    except ValueError as error:
        raise unreadable(request, "no JSON") from error
    if not isinstance(found, dict):
        raise unreadable(request, "no JSON object")
    return found


def text_of(request: Request, content: bytes) -> str:
    """The text that an answer is. Raises UnreadableAnswer."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise unreadable(request, "no UTF-8") from error


class Transport(_Base):
    """Calls that block."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        timeout: float,
        retries: Retries,
        http: httpx.Client | None,
    ):
        super().__init__(base_url, api_key, timeout, retries)
        self._http, self._own = http or httpx.Client(), http is None

    def close(self) -> None:
        """End the connections, unless they are the caller's."""
        if self._own:
            self._http.close()

    def json(self, request: Request) -> Any:
        return object_of(request, self.send(request).content)

    def text(self, request: Request) -> str:
        return text_of(request, self.send(request).content)

    def content(self, request: Request) -> bytes:
        return self.send(request).content

    def nothing(self, request: Request) -> None:
        self.send(request)

    def send(self, request: Request, *, stream: bool = False) -> httpx.Response:
        """A success, read to its end unless it is a stream. Raises ApiError, ConnectionFailed and
        UnreadableAnswer.
        """
        attempt, until = 0, self._until(request)
        while True:
            attempt += 1
            try:
                return self._attempt(request, stream)
            except MnemeError as error:
                seconds = self._wait(request, attempt, error, until)
            time.sleep(seconds)

    def _attempt(self, request: Request, stream: bool) -> httpx.Response:
        with form_of(request.upload) as form:
            try:
                response = self._http.send(
                    self._http.build_request(**self._arguments(request), **form),
                    stream=stream,
                    follow_redirects=False,
                )
                if response.is_success:
                    return response
                response.read()
            except FAILURES as error:
                raise connection_failed(request, error) from error
            except httpx.DecodingError as error:
                raise unreadable(request, "not compressed as it says") from error
        response.close()
        raise of_response(response)


class AsyncTransport(_Base):
    """The same calls for `async` code. A file is read in pieces, on the event loop."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        timeout: float,
        retries: Retries,
        http: httpx.AsyncClient | None,
    ):
        super().__init__(base_url, api_key, timeout, retries)
        self._http, self._own = http or httpx.AsyncClient(), http is None

    async def close(self) -> None:
        """End the connections, unless they are the caller's."""
        if self._own:
            await self._http.aclose()

    async def json(self, request: Request) -> Any:
        return object_of(request, (await self.send(request)).content)

    async def text(self, request: Request) -> str:
        return text_of(request, (await self.send(request)).content)

    async def content(self, request: Request) -> bytes:
        return (await self.send(request)).content

    async def nothing(self, request: Request) -> None:
        await self.send(request)

    async def send(self, request: Request, *, stream: bool = False) -> httpx.Response:
        """A success, read to its end unless it is a stream. Raises ApiError, ConnectionFailed and
        UnreadableAnswer.
        """
        attempt, until = 0, self._until(request)
        while True:
            attempt += 1
            try:
                return await self._attempt(request, stream)
            except MnemeError as error:
                seconds = self._wait(request, attempt, error, until)
            await asyncio.sleep(seconds)

    async def _attempt(self, request: Request, stream: bool) -> httpx.Response:
        with form_of(request.upload) as form:
            try:
                response = await self._http.send(
                    self._http.build_request(**self._arguments(request), **form),
                    stream=stream,
                    follow_redirects=False,
                )
                if response.is_success:
                    return response
                await response.aread()
            except FAILURES as error:
                raise connection_failed(request, error) from error
            except httpx.DecodingError as error:
                raise unreadable(request, "not compressed as it says") from error
        await response.aclose()
        raise of_response(response)


@contextmanager
def form_of(upload: Upload | None) -> Iterator[dict[str, Any]]:
    """httpx's arguments of a form, with its file open for one attempt; none where there is no
    form.
    """
    if upload is None:
        yield {}
        return
    opened = upload.open()
    try:
        yield {"files": {"file": (upload.filename, opened)}, "data": upload.form}
    finally:
        upload.close(opened)
