"""An HTTP proxy that lets through what it is told to: forwards plain requests, and tunnels for
others (CONNECT). It alone knows where names lead.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import BinaryIO
from urllib.parse import urlsplit

ANSWER_SECONDS_MAX = 60
_FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 11\r\nConnection: close\r\n\r\nnot allowed"


class FilteringProxy:
    """allowed: host name -> (address, port), where requests for it go, whatever port they name.
    asked: each (method, host) that came.
    """

    def __init__(self, allowed: Mapping[str, tuple[str, int]]):
        self.asked: list[tuple[str, str]] = []
        proxy = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                line = self.rfile.readline()
                head = b"".join(iter(self.rfile.readline, b"\r\n"))
                method, target, version = line.decode("ascii").split()
                url = urlsplit(f"//{target}" if method == "CONNECT" else target)
                host = url.hostname or ""
                proxy.asked.append((method, host))
                if host not in allowed:
                    # What is unread at the end would reset the connection, answer and all.
                    _sent_body(self.rfile, head)
                    self.wfile.write(_FORBIDDEN)
                    return
                with socket.create_connection(allowed[host], ANSWER_SECONDS_MAX) as there:
                    if method == "CONNECT":
                        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                        back = threading.Thread(target=_pass_on, args=(there, self.connection))
                        back.start()
                        _pass_on(self.connection, there)
                        back.join(ANSWER_SECONDS_MAX)
                        return
                    path = url.path + (f"?{url.query}" if url.query else "")
                    there.sendall(f"{method} {path} {version}\r\n".encode() + head + b"\r\n")
                    there.sendall(_sent_body(self.rfile, head))
                    _pass_on(there, self.connection)

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def _sent_body(stream: BinaryIO, head: bytes) -> bytes:
    for field in head.split(b"\r\n"):
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            return stream.read(int(value))
    return b""


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while part := one.recv(65_536):
            other.sendall(part)
        other.shutdown(socket.SHUT_WR)


@contextmanager
def filtering_proxy(allowed: Mapping[str, tuple[str, int]]) -> Iterator[FilteringProxy]:
    made = FilteringProxy(allowed)
    try:
        yield made
    finally:
        made.close()
