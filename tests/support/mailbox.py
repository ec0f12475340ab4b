"""An SMTP server on this machine that keeps what it is sent, or refuses it as it is told to."""

from __future__ import annotations

import re
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TICKET = re.compile(r"mem_tk_[0-9a-f]{68}")


class Mailbox(socketserver.ThreadingTCPServer):
    """letters: (recipient, message) of what was taken. refusals: what is said to the next
    recipients instead of taking their mail. tried: how many recipients were named. in_clear: what
    was said before the connection was encrypted. certificate: (file, its key); STARTTLS is offered
    where it is set.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.letters: list[tuple[str, str]] = []
        self.refusals: list[str] = []
        self.tried = 0
        self.in_clear: list[str] = []
        self.certificate: tuple[Path, Path] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What makes a service send its mails here."""
        host, port = self.server_address[:2]
        return {"mail__host": host, "mail__port": port, "mail__security": "none"}

    def tickets(self, address: str, path: str = "password-reset") -> list[str]:
        """The tickets for this path that an address was sent, in order."""
        texts = [text for to, text in self.letters if to == address and path in text]
        return [found[0] for text in texts if (found := TICKET.search(text))]


class _Conversation(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        recipient = ""
        self._say("220 mailbox")
        while line := self.rfile.readline():
            said = line.decode().strip()
            verb = said.split(" ")[0].upper()
            if not isinstance(self.connection, ssl.SSLSocket):
                self.server.in_clear.append(said)
            if verb == "QUIT":
                self._say("221 bye")
                return
            if verb == "EHLO":
                encrypted = isinstance(self.connection, ssl.SSLSocket)
                offered = "STARTTLS" if self.server.certificate and not encrypted else "AUTH PLAIN"
                self._say("250-mailbox")
                self._say(f"250 {offered}")
            elif verb == "STARTTLS" and self.server.certificate:
                self._say("220 go on")
                if not self._encrypt(*self.server.certificate):
                    return
            elif verb == "AUTH":
                self._say("235 welcome")
            elif verb == "RCPT":
                self.server.tried += 1
                recipient = said.partition("<")[2].partition(">")[0]
                refusals = self.server.refusals
                self._say(refusals.pop(0) if refusals else "250 ok")
            elif verb == "DATA":
                self._say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.letters.append((recipient, b"".join(lines).decode()))
                self._say("250 taken")
            else:
                self._say("250 ok")

    def _encrypt(self, certificate: Path, key: Path) -> bool:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        try:
            self.connection = context.wrap_socket(self.connection, server_side=True)
        except OSError:  # whoever speaks does not trust the certificate
            return False
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        return True

    def _say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    server = Mailbox()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
