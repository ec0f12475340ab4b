"""The bodies of requests as they come in: whole or piece by piece, in bounded size and time.

Owns what is wrong with the transfer of a body. Knows nothing of what is in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from runtime.errors import ApiError, BadRequest, PayloadTooLarge, Unavailable
from runtime.limits import BODIES_ARRIVING_BYTES_MAX, BODY_BYTES_MAX, BODY_READ_SECONDS_MAX

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientLeft(Exception):
    """The client closed the connection before its body was whole; there is nobody to answer."""


class Bodies:
    """Bodies that are read whole; what is arriving is bounded for all requests together."""

    def __init__(self) -> None:
        self._arriving_bytes = 0

    async def whole(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """A body, refused as soon as it is known to be too large. Raises BadRequest, PayloadTooLarge, Unavailable, ClientLeft."""
        chunks: list[bytes] = []
        size = 0
        try:
            async for chunk in arriving(headers, receive, BODY_BYTES_MAX, BODY_READ_SECONDS_MAX, _too_large):
                chunks.append(chunk)
                size += len(chunk)
                self._arriving_bytes += len(chunk)
                if self._arriving_bytes > BODIES_ARRIVING_BYTES_MAX:
                    raise Unavailable("More is being sent at once than the service can hold. Retry in a moment.")
        finally:
            self._arriving_bytes -= size
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def arriving(
    headers: Mapping[bytes, bytes], receive: Receive, bytes_max: int, seconds_max: float, too_large: Callable[[], ApiError]
) -> AsyncIterator[bytes]:
    """A body as it arrives; each piece within BODY_READ_SECONDS_MAX, all within `seconds_max`.

    Raises BadRequest, what `too_large` makes, and ClientLeft.
    """
    if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
        raise BadRequest("The only Transfer-Encoding understood is chunked.", param="Transfer-Encoding")
    announced = headers.get(b"content-length")
    if announced is not None and (not announced.isdigit() or len(announced) > 18):
        raise BadRequest("The Content-Length is not a number.", param="Content-Length")
    if announced is not None and int(announced) > bytes_max:
        raise too_large()
    loop = asyncio.get_running_loop()
    deadline, size, more = loop.time() + seconds_max, 0, True
    while more:
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + BODY_READ_SECONDS_MAX)):
                message = await receive()
        except TimeoutError:
            raise BadRequest(f"The body did not arrive within {min(seconds_max, BODY_READ_SECONDS_MAX)} seconds.") from None
        if message["type"] == "http.disconnect":
            raise ClientLeft
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > bytes_max:
            raise too_large()
        yield chunk
        more = message.get("more_body", False)


def _too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is larger than {BODY_BYTES_MAX} bytes.")
