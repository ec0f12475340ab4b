"""One client's connection on engine "local": uvicorn's, with the bounds that it lacks.

On engine "ray" HAProxy stands in front and keeps slow and endless heads away from the gateways: a
head has the same time there (front_proxy.py), and has to fit into one of its buffers. Where Ray
Serve's own proxy takes its place, on a cluster that somebody else runs or where there is no
HAProxy, that proxy sets no such time; the terminator of TLS before it has to. Here nobody else
stands in front, so a head has a time and a size, a body that nobody reads has a time, and what is
no HTTP is answered in the service's own envelope.

Invariant: a running answer is never cut off; what a client still owes is looked at again when the
answer is out.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from runtime.errors import ApiError, BadRequest, HeadersTooLarge
from runtime.http import answer_unread
from runtime.limits import (
    BODY_READ_SECONDS_MAX,
    HEAD_READ_SECONDS_MAX,
    HEADER_BYTES_MAX,
    URL_BYTES_MAX,
)

HEAD_BYTES_MAX = 2 * (
    HEADER_BYTES_MAX + URL_BYTES_MAX
)  # an unfinished one; the gateway judges those that are whole
_BODY_SECONDS_MAX = (
    BODY_READ_SECONDS_MAX + HEAD_READ_SECONDS_MAX
)  # later than the gateway, which can still answer


class Connection(HttpToolsProtocol):
    """What uvicorn makes for each connection."""

    # Until when the client owes the rest of a head or a body, by the loop's clock, and for how many
    # seconds it was given; the alarm rings then or sooner, and is set again where it is too soon.
    _due: float | None = None
    _given = 0.0
    _alarm: asyncio.TimerHandle | None = None
    _alarm_at = 0.0
    _head_bytes = 0
    _in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._owe(HEAD_READ_SECONDS_MAX)

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        if self._alarm is not None:
            self._alarm.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._due is None:
            self._owe(HEAD_READ_SECONDS_MAX)
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(
                    HeadersTooLarge(f"The headers are larger than {HEADER_BYTES_MAX} bytes.")
                )

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._owe(HEAD_READ_SECONDS_MAX)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._owe(_BODY_SECONDS_MAX)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._settle()

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest("This is not a valid HTTP/1.1 request."))

    def _owe(self, seconds: float) -> None:
        self._given, self._due = seconds, self.loop.time() + seconds
        if self._alarm is not None and self._alarm_at > self._due:
            self._alarm.cancel()
            self._alarm = None
        if self._alarm is None:
            self._set_alarm(self._due)

    def _settle(self) -> None:
        self._due = None

    def _set_alarm(self, at: float) -> None:
        self._alarm_at, self._alarm = at, self.loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._due is not None and self.loop.time() < self._due:
            self._set_alarm(self._due)
        elif self._due is not None:
            self._late(self._given)

    def _late(self, seconds: float) -> None:
        self._settle()
        if self.cycle is not None and not self.cycle.response_complete:
            self._owe(seconds)
        elif self._in_head:
            self._refuse(
                BadRequest(f"The request did not arrive within {HEAD_READ_SECONDS_MAX} seconds.")
            )
        else:
            self.transport.close()

    def _refuse(self, error: ApiError) -> None:
        self._in_head = False
        if not self.transport.is_closing():
            self.transport.write(answer_unread(error))
            self.transport.close()
