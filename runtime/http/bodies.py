"""Request bodies as they arrive over ASGI: whole or piece by piece, within bytes and seconds, and a
client that leaves.

Owns no route and no format; runtime/http/gateway.py decides what a body becomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

from runtime.errors import ApiError, BadRequest, PayloadTooLarge
from runtime.http.arriving import Arrival, Arriving, refused
from runtime.limits import (
    BODY_BYTES_MAX,
    BODY_BYTES_PER_SECOND_MIN,
    BODY_READ_SECONDS_MAX,
    BODY_SLOW_SECONDS_MAX,
)

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = dict[bytes, bytes]
T = TypeVar("T")


class ClientLeft(Exception):
    """The client closed the connection before its body was whole; there is nobody to answer."""


async def whole(
    headers: Headers,
    receive: Receive,
    arriving: Arriving,
    arrival: Arrival,
    bytes_max: int = BODY_BYTES_MAX,
) -> bytes:
    """The whole body, refused as soon as it is known to be too large. Raises BadRequest,
    PayloadTooLarge, Unavailable, ClientLeft.
    """
    chunks: list[bytes] = []
    arriving.begin(arrival)
    try:
        async for chunk in pieces(
            headers,
            receive,
            bytes_max,
            BODY_READ_SECONDS_MAX,
            lambda: PayloadTooLarge(f"The body is larger than {bytes_max} bytes."),
            arrival,
        ):
            chunks.append(chunk)
            arriving.grow(arrival, len(chunk))
    finally:
        arriving.end(arrival)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def pieces(
    headers: Headers,
    receive: Receive,
    bytes_max: int,
    seconds_max: float,
    too_large: Callable[[], ApiError],
    arrival: Arrival,
) -> AsyncIterator[bytes]:
    """The body as it arrives; each piece within BODY_READ_SECONDS_MAX, all within `seconds_max`,
    and after BODY_SLOW_SECONDS_MAX no slower than BODY_BYTES_PER_SECOND_MIN.

    Raises BadRequest, what `too_large` makes, Unavailable where the arrival is refused, and
    ClientLeft.
    """
    if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
        raise BadRequest(
            "The only Transfer-Encoding understood is chunked.", param="Transfer-Encoding"
        )
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise BadRequest(
            "A compressed body is not taken: send it as it is, without Content-Encoding.",
            param="Content-Encoding",
        )
    announced = headers.get(b"content-length")
    if announced is not None and (not announced.isdigit() or len(announced) > 18):
        raise BadRequest("The Content-Length is not a number.", param="Content-Length")
    if announced is not None and int(announced) > bytes_max:
        raise too_large()
    loop = asyncio.get_running_loop()
    began, size, more = loop.time(), 0, True
    while more:
        latest = min(
            began + seconds_max,
            loop.time() + BODY_READ_SECONDS_MAX,
            began + BODY_SLOW_SECONDS_MAX + size / BODY_BYTES_PER_SECOND_MIN,
        )
        try:
            async with asyncio.timeout_at(latest) as arrival.waiting:
                message = await receive()
        except TimeoutError:
            if arrival.refused:
                raise refused() from None
            raise BadRequest(
                "The body did not arrive in time: within "
                f"{min(seconds_max, BODY_READ_SECONDS_MAX)} seconds, and no slower than "
                f"{BODY_BYTES_PER_SECOND_MIN} bytes a second."
            ) from None
        finally:
            arrival.waiting = None
        if message["type"] == "http.disconnect":
            raise ClientLeft
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > bytes_max:
            raise too_large()
        yield chunk
        more = message.get("more_body", False)


async def unless_left(work: Awaitable[T], receive: Receive) -> T:
    """The result of the work, which is cancelled when the client leaves. Raises ClientLeft then.
    The body must have been read.
    """
    running, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((running, leaving), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        raise ClientLeft
    finally:
        for task in (running, leaving):
            task.cancel()
        await asyncio.wait((running, leaving))


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
