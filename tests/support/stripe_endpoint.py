"""A local HTTP server that answers the few calls we make to Stripe the way Stripe does, and keeps
what it was sent.
"""

from __future__ import annotations

import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl


@dataclass(frozen=True)
class Sent:
    """One request: its path, its form fields, its Idempotency-Key and its credential."""

    path: str
    fields: dict[str, str]
    key: str
    credential: str


@dataclass
class StripeEndpoint:
    """`failures` is how many further requests are answered with 500; `made` holds the answers
    given, by Idempotency-Key.
    """

    url: str = ""
    sent: list[Sent] = field(default_factory=list)
    failures: int = 0
    made: dict[str, dict[str, Any]] = field(default_factory=dict)

    def answer(self, sent: Sent) -> tuple[int, dict[str, Any]]:
        self.sent.append(sent)
        if self.failures:
            self.failures -= 1
            return 500, {"error": {"type": "api_error", "message": "try again"}}
        if sent.key not in self.made:
            self.made[sent.key] = self._new(sent)
        return 200, self.made[sent.key]

    def _new(self, sent: Sent) -> dict[str, Any]:
        number = len(self.made) + 1
        parts = sent.path.strip("/").split("/")
        if parts[-1] == "void":
            return {"object": "invoice", "id": parts[2], "status": "void"}
        if parts[-1] == "finalize":
            page = f"https://pay.example/{parts[2]}"
            return {
                "object": "invoice",
                "id": parts[2],
                "hosted_invoice_url": page,
                "status": "open",
            }
        kind = {
            "customers": ("customer", "cus"),
            "invoices": ("invoice", "in"),
            "invoiceitems": ("invoiceitem", "ii"),
            "credit_notes": ("credit_note", "cn"),
        }[parts[1]]
        return {"object": kind[0], "id": f"{kind[1]}_{number}", **sent.fields}


@contextmanager
def stripe_endpoint() -> Iterator[StripeEndpoint]:
    """The server, on a free port of this machine, until the end of the block."""
    endpoint = StripeEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            credential, key = self.headers["Authorization"], self.headers["Idempotency-Key"]
            status, body = endpoint.answer(Sent(self.path, dict(parse_qsl(form)), key, credential))
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def report(
    kind: str, email: str, invoice_id: str, provider_id: str = "in_1", **about: object
) -> bytes:
    """An event as Stripe posts it. about: what else it says of the invoice."""
    about |= {
        "object": "invoice",
        "id": provider_id,
        "metadata": {"email": email, "invoice_id": invoice_id},
    }
    return json.dumps(
        {"id": "evt_1", "object": "event", "type": kind, "data": {"object": about}}
    ).encode()


def signature(body: bytes, secret: str, at: float | None = None) -> str:
    """The Stripe-Signature header: HMAC-SHA256 over time and body, as Stripe documents it."""
    seconds = int(time.time() if at is None else at)
    return f"t={seconds},v1={hmac.digest(secret.encode(), b'%d.' % seconds + body, 'sha256').hex()}"
