"""The service's address while the service starts: it is taken at once, and whoever asks meanwhile
is told to come back in a moment, instead of finding nobody. The very first start compiles, up to a
minute.

Whoever listens afterwards gets the socket (hand_over), with those that wait in its queue; or has
one of its own beside it, as HAProxy does, and this one goes as soon as that is there: what HAProxy
says while it has no gateway is the same, and what it says later nobody may contradict.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

from runtime.serve.listening import StartError
from runtime.serve.unavailable import unavailable_response
from runtime.settings import Settings

_BACKLOG = 128
_LOOK_SECONDS = 0.05
_SOCKETS = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENING = "0A"  # in their column of states
_CLIENT_SECONDS = 0.5  # for a client to say what it wants: one after the other is served here
_REQUEST_BYTES = 65_536


@contextlib.contextmanager
def starting(settings: Settings, port: int, *, shared: bool = False) -> Iterator[Starting | None]:
    """Answer there until the block ends, unless the answer would have to be encrypted: a client of
    HTTPS can be told nothing before the certificate's owner is there. shared: as Starting.
    """
    if settings.http.tls_certfile:
        yield None
        return
    meanwhile = Starting(settings.http.host, port, shared=shared)
    try:
        yield meanwhile
    finally:
        meanwhile.close()


class Starting:
    """Answers 503 on an address until it is handed over or closed."""

    def __init__(self, host: str, port: int, *, shared: bool):
        """shared: whether another process of this user may listen there at the same time. Raises
        StartError.
        """
        self._port, self._shared = port, shared
        self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            self._listener.bind((host, port))
            self._listener.listen(_BACKLOG)
        except OSError as refused:
            self._listener.close()
            raise StartError(
                f"Port {port} on {host} is not available: {refused.strerror}."
            ) from None
        self._listener.settimeout(_LOOK_SECONDS)
        self._answer = unavailable_response("Connection: close")
        self._over = False
        self._thread = Thread(target=self._serve, name="mneme-starting", daemon=True)
        self._thread.start()

    @property
    def listens(self) -> bool:
        """Whether it still answers there."""
        return self._listener.fileno() >= 0

    def hand_over(self) -> socket.socket:
        """The listening socket, which is nobody else's from now on."""
        self._end()
        listener = self._listener
        self._listener = socket.socket()  # closed by close() in its place
        return listener

    def close(self) -> None:
        """Answer whoever waits, and leave the address. May be called twice."""
        self._end()
        self._leave()

    def _leave(self) -> None:
        with contextlib.suppress(OSError):  # nobody waits any more, or it is closed
            self._listener.settimeout(0)
            while True:
                self._tell(self._listener.accept()[0])
        self._listener.close()

    def _end(self) -> None:
        self._over = True
        self._thread.join()

    def _serve(self) -> None:
        while not self._over:
            if self._shared and _listeners(self._port) > 1:
                self._leave()
                return
            with contextlib.suppress(OSError):  # TimeoutError among them
                self._tell(self._listener.accept()[0])

    def _tell(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(_CLIENT_SECONDS)
            # A connection that is closed with something unread loses what it was told.
            client.recv(_REQUEST_BYTES)
            client.sendall(self._answer)


def _listeners(port: int) -> int:
    """How many sockets of this machine listen on a port, of any address; 0 where nobody tells."""
    found = 0
    for path in _SOCKETS:
        with contextlib.suppress(OSError):
            for line in Path(path).read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                found += state == _LISTENING and int(local.rpartition(":")[2], 16) == port
    return found
