"""Answers that come piece by piece: events of a completion, lines of an export.

A stream begins when it is iterated over, and can be read once; a second time is a RuntimeError.
Left early, it is closed at the end of its `with` block; a loop that reads it to its end needs none.
Until the first byte a failed call is repeated like any other, after that it is not.

Lines end at a line feed and nowhere else: JSON may hold any other separator of lines as a
character.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import httpx

from .errors import ConnectionFailed, MnemeError, of_event
from .request import Request
from .transport import FAILURES, AsyncTransport, Transport, connection_failed, unreadable

T = TypeVar("T")
END_OF_EVENTS = "[DONE]"


class Reader(Protocol):
    """Turns bytes, in whatever pieces they come, into items."""

    media_type: str

    def feed(self, piece: bytes) -> list[Any]:
        """The items that this piece completes."""
        ...

    def end(self) -> list[Any]:
        """What is left when the bytes have ended. Raises ConnectionFailed where they ended too
        early.
        """
        ...


class LineReader:
    """Lines of JSON."""

    media_type = "application/x-ndjson"

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

    media_type = "text/event-stream"

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
        event = json.loads(data)
        if (error := of_event(event)) is not None:
            raise error
        return [event]

    def end(self) -> list[Any]:
        if not self._done:
            raise ConnectionFailed("The stream ended before it was complete.")
        return []


class _Reading:
    """One reading of a streamed answer, with all its failures as the package's own."""

    def __init__(self, request: Request, reader: Callable[[], Reader]):
        self._request, self._make = request, reader
        self._reader: Reader | None = None

    def begin(self) -> Request:
        """What to send. Raises RuntimeError the second time: it would be another call."""
        if self._reader is not None:
            raise RuntimeError("A stream can be read once; call the operation again.")
        self._reader = self._make()
        return self._request

    def items(self, response: httpx.Response, piece: bytes | None) -> list[Any]:
        """What the next piece completes, or what is left when it is None. Raises UnreadableAnswer,
        ConnectionFailed, and the error that an event reports.
        """
        assert self._reader is not None, "it has begun"
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind and kind != self._reader.media_type:
            raise unreadable(self._request, f"{kind} instead of a stream")
        try:
            found = self._reader.end() if piece is None else self._reader.feed(piece)
        except ValueError as error:
            raise unreadable(self._request, "a piece of it is no JSON") from error
        if not all(isinstance(item, dict) for item in found):
            raise unreadable(self._request, "a piece of it is no JSON object")
        return found

    def failure(self, error: Exception) -> MnemeError:
        """What httpx says, as the package's own."""
        if isinstance(error, httpx.DecodingError):
            return unreadable(self._request, "not compressed as it says")
        return connection_failed(self._request, error)


class Stream(Generic[T]):
    """The items of a streamed answer."""

    def __init__(self, transport: Transport, request: Request, reader: Callable[[], Reader]):
        self._transport, self._reading = transport, _Reading(request, reader)
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
        reading = self._reading
        response = self._response = self._transport.send(reading.begin(), stream=True)
        try:
            for piece in response.iter_bytes():
                yield from reading.items(response, piece)
            yield from reading.items(response, None)
        except (*FAILURES, httpx.DecodingError) as error:
            raise reading.failure(error) from error
        finally:
            self.close()


class AsyncStream(Generic[T]):
    """The items of a streamed answer, for `async for`."""

    def __init__(self, transport: AsyncTransport, request: Request, reader: Callable[[], Reader]):
        self._transport, self._reading = transport, _Reading(request, reader)
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
        reading = self._reading
        response = self._response = await self._transport.send(reading.begin(), stream=True)
        try:
            async for piece in response.aiter_bytes():
                for item in reading.items(response, piece):
                    yield item
            for item in reading.items(response, None):
                yield item
        except (*FAILURES, httpx.DecodingError) as error:
            raise reading.failure(error) from error
        finally:
            await self.close()
