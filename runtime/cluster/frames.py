"""Messages between a process and one that it has started, over a pair of connected sockets: each is
its length and a pickle.

Both ends are of one release and trust each other; nobody else has the sockets.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

_LENGTH = struct.Struct("<I")
_PROTOCOL = 5


class Frames(asyncio.Protocol):
    """One end. received is called with each message, lost once when the other end is gone."""

    def __init__(self, received: Callable[[Any], None], lost: Callable[[], None]):
        self._received, self._lost = received, lost
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    async def connect(self, connected: socket.socket) -> None:
        """Begin to hear the other end; what it says may come before this returns."""
        connected.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, sock=connected)

    @property
    def unsent(self) -> int:
        """Bytes that the other end has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def send(self, message: Any) -> None:
        self.send_packed(packed(message))

    def send_packed(self, message: bytes) -> None:
        """Send what `packed` made; nothing where the other end is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(message)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, at)
            end = at + _LENGTH.size + length
            if len(buffer) < end:
                break
            self._received(pickle.loads(memoryview(buffer)[at + _LENGTH.size : end]))
            at = end
        del buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost()


def packed(message: Any) -> bytes:
    """A message as it travels."""
    content = pickle.dumps(message, _PROTOCOL)
    return _LENGTH.pack(len(content)) + content
