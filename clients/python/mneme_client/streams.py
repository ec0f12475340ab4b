"""Answers that come piece by piece: events of a completion, lines of an export.

A stream begins when it is iterated over, and can be read once. Left early, it is closed at the end
of its `with` block; a loop that reads it to its end needs none. Until the first byte a failed call
is repeated like any other, after that it is not.

Lines end at a line feed and nowhere else: JSON may hold any other separator of lines as a
character.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import httpx

from .errors import ConnectionFailed, of_event
from .request import Request
from .transport import FAILURES, AsyncTransport, Transport, connection_failed

T = TypeVar("T")
END_OF_EVENTS = "[DONE]"


class Reader(Protocol):
    """Turns bytes, in whatever pieces they come, into items."""

    def feed(self, piece: bytes) -> list[Any]:
        """The items that this piece completes."""

    def end(self) -> list[Any]:
        """What is left when the bytes have ended. Raises ConnectionFailed where they ended too
        early.
        """


class LineReader:
    """Lines of JSON."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[Any]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]

    def end(self) -> list[Any]:
        return self.feed(b"\n")


class EventReader:
    """Server-sent events whose data is JSON, up to `[DONE]`. An event that reports an error is
    raised.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []
        self._done = False

    def feed(self, piece: bytes) -> list[Any]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [item for line in lines for item in self._line(line.removesuffix(b"\r").decode())]

    def _line(self, line: str) -> list[Any]:
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").removeprefix(" "))
            return []
        if line or not self._data or self._done:
            return []
        data, self._data = "\n".join(self._data), []
        if data == END_OF_EVENTS:
            self._done = True
            return []
        if (error := of_event(data)) is not None:
            raise error
        return [json.loads(data)]

    def end(self) -> list[Any]:
        if not self._done:
            raise ConnectionFailed("The stream ended before it was complete.")
        return []


class Stream(Generic[T]):
    """The items of a streamed answer."""

    def __init__(self, transport: Transport, request: Request, reader: Callable[[], Reader]):
        self._transport, self._request, self._reader = transport, request, reader
        self._response: httpx.Response | None = None

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the service stops its work."""
        if self._response is not None:
            self._response.close()

    def __iter__(self) -> Iterator[T]:
        reader = self._reader()
        self._response = self._transport.send(self._request, stream=True)
        try:
            for piece in self._response.iter_bytes():
                yield from reader.feed(piece)
            yield from reader.end()
        except FAILURES as error:
            raise connection_failed(self._request, error) from error
        finally:
            self.close()


class AsyncStream(Generic[T]):
    """The items of a streamed answer, for `async for`."""

    def __init__(self, transport: AsyncTransport, request: Request, reader: Callable[[], Reader]):
        self._transport, self._request, self._reader = transport, request, reader
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; the service stops its work."""
        if self._response is not None:
            await self._response.aclose()

    async def __aiter__(self) -> AsyncIterator[T]:
        reader = self._reader()
        self._response = await self._transport.send(self._request, stream=True)
        try:
            async for piece in self._response.aiter_bytes():
                for item in reader.feed(piece):
                    yield item
            for item in reader.end():
                yield item
        except FAILURES as error:
            raise connection_failed(self._request, error) from error
        finally:
            await self.close()
