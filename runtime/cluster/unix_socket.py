"""A short cut from a gateway to a shard on the same machine, or from a shard to a model that it
shares: a Unix socket instead of a call through Ray.

Carries messages, each as its length and its bytes, and knows nothing of what is in them. A
connection carries one message at a time and its answer, parts of which may come early; who asks
keeps as many as it has messages under way. The first message each way is the
sender's release (runtime/cluster/release.py); where they differ, nothing else is read.

Who may connect may have any code run, since messages are pickles: the sockets lie in a directory of
this user's with mode 0700, and one that is not so is not used. Invariant: NotConnected and
OtherRelease mean that nothing was sent; any other failure may come after the shard did its work.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from runtime.cluster.release import check_release
from runtime.limits import BATCH_BYTES_MAX

log = logging.getLogger("mneme.shard_socket")


_LENGTH = struct.Struct("<I")
_MORE = 1 << 31  # in the length of an early part
Early = Callable[[bytes], None]


class NotConnected(Exception):
    """Nobody listens on this machine; nothing was sent."""


def socket_path(namespace: str, name: str) -> Path:
    """Where the shard of that name listens. A socket's path has 107 bytes at most, which the data
    directory's own may exceed.
    """
    return Path("/tmp") / f"{namespace}-{os.getuid()}" / name


def _is_private(directory: Path) -> bool:
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and stat.S_IMODE(found.st_mode) == 0o700
    )


async def listen(
    path: Path, release: str, execute: Callable[[bytes, Early], Awaitable[bytes]]
) -> asyncio.Server | None:
    """Answer messages of this release on the socket; execute: its last argument sends a part of the
    answer early. None where there is no directory for it that is this user's alone.
    """
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(path.parent):
            raise PermissionError(f"{path.parent} is open to others")
        path.unlink(missing_ok=True)
    except OSError as refused:
        log.warning("no socket for the gateways of this machine, which is slower: %s", refused)
        return None

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def early(part: bytes) -> None:
            # The gateway leaves where all clients of a message have; its calls go on.
            if not writer.is_closing():
                _send(writer, part, _MORE)

        try:
            other = await _receive(reader)
            _send(writer, release.encode())
            await writer.drain()
            if other != release.encode():
                log.error("a gateway of another release was refused: %r", other[:100])
                return
            while True:
                message = await _receive(reader)
                _send(writer, await execute(message, early))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the gateway has gone
        finally:
            writer.close()

    return await asyncio.start_unix_server(connected, path, limit=BATCH_BYTES_MAX)


def is_listened_on(path: Path) -> bool:
    """Whether a process listens there; the file of one that was killed stays."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def remove(path: Path) -> None:
    """Take the socket away, and its directory with the last one."""
    path.unlink(missing_ok=True)
    with suppress(OSError):  # another shard's socket is in it, or it never was
        path.parent.rmdir()


class ClientSocket:
    """The end that asks: its connections to one process. Lives on one event loop. whose: at the
    other end, as a sentence begins.
    """

    def __init__(self, path: Path, release: str, whose: str = "This account's shard"):
        self._path, self._release, self._whose = path, release, whose
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, message: bytes, early: Early = lambda part: None) -> bytes:
        """The answer to the message, or what is left of it after what came early. Raises
        NotConnected, OtherRelease, ConnectionError, asyncio.IncompleteReadError.
        """
        reader, writer = await self._connection()
        try:
            _send(writer, message)
            while True:
                (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                answer = await reader.readexactly(length & ~_MORE)
                if not length & _MORE:
                    break
                early(answer)
        except BaseException:
            writer.close()  # its next answer would be that to this message
            raise
        self._idle.append((reader, writer))
        return answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        if not _is_private(self._path.parent):
            raise NotConnected
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=BATCH_BYTES_MAX)
        except OSError:
            raise NotConnected from None
        try:
            _send(writer, self._release.encode())
            other = await _receive(reader)
            check_release(self._release, other.decode(errors="replace"), self._whose)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
            raise NotConnected from None
        except BaseException:
            writer.close()
            raise
        return reader, writer


def _send(writer: asyncio.StreamWriter, message: bytes, flag: int = 0) -> None:
    if writer.is_closing():  # which not every event loop tells by a ConnectionError
        raise ConnectionResetError
    writer.write(
        _LENGTH.pack(len(message) | flag) + message
    )  # at once: two writes would wake the other side twice


async def _receive(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)
