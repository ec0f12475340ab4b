"""The service's address while the service starts: it is taken at once, and whoever asks meanwhile
is told to come back in a moment, instead of finding nobody; and who asks for its health, that it is
starting. The very first start compiles, up to a minute.

Whoever listens afterwards gets the socket (hand_over), with those that wait in its queue; or says
when to leave and opens one of its own (leave_when_told), as HAProxy's stand-in does: then for some
milliseconds nobody is there. Two at a time could contradict each other.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import orjson

from runtime.release import service_build, service_version
from runtime.serve.listening import HEALTH_PATH, StartError
from runtime.serve.unavailable import unavailable_response
from runtime.settings import Settings

_BACKLOG = 128
_LOOK_SECONDS = 0.05
_CLIENT_SECONDS = 0.5  # for a client to say what it wants: one after the other is served here
_REQUEST_BYTES = 65_536
_HEALTH = re.compile(rb"(GET|HEAD) " + HEALTH_PATH.encode() + rb"/?(?:\?[^ ]*)? HTTP/")
_REQUEST_ID = re.compile(rb"\r\nx-request-id:[ \t]*([!-~]{1,128})[ \t]*\r\n", re.IGNORECASE)


@contextlib.contextmanager
def starting(settings: Settings, port: int, shards: int) -> Iterator[Starting | None]:
    """Answer there until the block ends, unless the answer would have to be encrypted: a client of
    HTTPS can be told nothing before the certificate's owner is there. shards: how many there are to
    be.
    """
    if settings.http.tls_certfile:
        yield None
        return
    meanwhile = Starting(settings.http.host, port, shards)
    try:
        yield meanwhile
    finally:
        meanwhile.close()


class Starting:
    """Answers 503 on an address until it is handed over or closed."""

    def __init__(self, host: str, port: int, shards: int):
        """Raises StartError."""
        self._health = _health(shards)
        self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((host, port))
            self._listener.listen(_BACKLOG)
        except OSError as refused:
            self._listener.close()
            raise StartError(
                f"Port {port} on {host} is not available: {refused.strerror}."
            ) from None
        self._listener.settimeout(_LOOK_SECONDS)
        self._headers = (
            "Connection: close",
            "X-Process-Time: 0.000000",
            f"X-Service-Version: {service_version()}",
            f"X-Service-Build: {service_build()}",
        )
        self._over = False
        self._told: socket.socket | None = None
        self._thread = Thread(target=self._serve, name="mneme-starting", daemon=True)
        self._thread.start()

    def hand_over(self) -> socket.socket:
        """The listening socket, which is nobody else's from now on."""
        self._end()
        return socket.socket(fileno=self._listener.detach())

    def leave_when_told(self, path: Path) -> None:
        """Leave the address when somebody connects to this Unix socket, who is let go once it is
        left.
        """
        self._told = socket.socket(socket.AF_UNIX)
        self._told.bind(str(path))
        self._told.listen()
        Thread(target=self._leave, args=(self._told,), name="mneme-leaving", daemon=True).start()

    def _leave(self, told: socket.socket) -> None:
        with contextlib.suppress(OSError):  # nobody came
            caller, _ = told.accept()
            with caller:
                told.close()  # who comes after the first one finds nobody, and need not wait
                self._close()

    def close(self) -> None:
        """Answer whoever waits, and leave the address. May be called twice."""
        if self._told is not None:
            with contextlib.suppress(OSError):
                self._told.shutdown(socket.SHUT_RDWR)  # wakes who waits there
            self._told.close()
        self._close()

    def _close(self) -> None:
        self._end()
        with contextlib.suppress(OSError):  # nobody waits any more, or it is not ours any more
            self._listener.settimeout(0)
            while True:
                self._tell(self._listener.accept()[0])
        self._listener.close()

    def _end(self) -> None:
        self._over = True
        self._thread.join()

    def _serve(self) -> None:
        while not self._over:
            with contextlib.suppress(OSError):  # TimeoutError among them
                self._tell(self._listener.accept()[0])

    def _tell(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(_CLIENT_SECONDS)
            # A connection that is closed with something unread loses what it was told.
            client.sendall(self._answer(client.recv(_REQUEST_BYTES)))

    def _answer(self, request: bytes) -> bytes:
        """With the headers that every answer carries, as far as a request is there in one piece."""
        given = _REQUEST_ID.search(request.partition(b"\r\n\r\n")[0] + b"\r\n")
        request_id = given[1].decode() if given else f"req_{os.urandom(16).hex()}"
        headers = (*self._headers, f"X-Request-ID: {request_id}")
        if (asked := _HEALTH.match(request)) is not None:
            return unavailable_response(*headers, body=self._health, is_sent=asked[1] == b"GET")
        return unavailable_response(*headers, request_id=request_id)


def _health(shards: int) -> bytes:
    """What the service says of its health before anything is open, as its gateways say it later."""
    health = {
        "status": "starting",
        "version": service_version(),
        "build": service_build(),
        "shards": {"open": 0, "total": shards},
        "checks": {"shards": f"0 of {shards} are open"},
    }
    return orjson.dumps(health)
