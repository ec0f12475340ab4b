"""A receiver of webhook events for development: checks the signature of each and prints it.

What a receiver in production would do, and no more: read the body as bytes, check signature and age
before believing a word of it, answer 401 or 204 at once. It listens on loopback unless told
otherwise; the service reaches it there only with webhooks.allow_private_networks.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from runtime.limits import BODY_BYTES_MAX, HEAD_READ_SECONDS_MAX
from runtime.signatures import NotGenuine, verify


class EventReceiver(ThreadingHTTPServer):
    """`serve_forever()` until `shutdown()`.

    secret  the webhook's signing secret; without one nothing is verified, and every line says so
    say     takes each line to print
    """

    daemon_threads = True

    def __init__(self, host: str, port: int, secret: str | None, say: Callable[[str], None]):
        super().__init__((host, port), _Handler)
        self.secret, self.say = secret, say

    def judged(self, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        """-> (status to answer, line to print)."""
        verdict = "not verified"
        if self.secret is not None:
            try:
                verify(body, headers, self.secret, time.time())
                verdict = "verified"
            except NotGenuine as wrong:
                return 401, f"refused: {wrong}"
        try:
            event: Any = json.loads(body)
            return 204, f"{verdict}: {event['event_type']} {json.dumps(event, ensure_ascii=False)}"
        except (ValueError, TypeError, KeyError):
            return 400, f"{verdict}, but no event: {len(body)} bytes"


class _Handler(BaseHTTPRequestHandler):
    server: EventReceiver
    protocol_version = "HTTP/1.1"
    timeout = HEAD_READ_SECONDS_MAX

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            status, line = 411, "refused: a request without a sensible Content-Length"
        else:
            status, line = self.server.judged(
                dict(self.headers.items()), self.rfile.read(int(length))
            )
        self.server.say(line)
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """The lines above say it all."""


def listen(host: str, port: int, secret: str | None) -> None:
    """Print what arrives until interrupted."""

    def say(line: str) -> None:
        # What was received is anybody's: a terminal must not take parts of it for commands.
        print("".join(letter if letter.isprintable() else "\ufffd" for letter in line), flush=True)

    with EventReceiver(host, port, secret, say) as receiver:
        named = f"[{host}]" if ":" in host else host
        print(f"Listening at http://{named}:{receiver.server_port}/", flush=True)
        if secret is None:
            print(
                "No secret given: signatures are not verified. See --secret.",
                file=sys.stderr,
                flush=True,
            )
        receiver.serve_forever()
