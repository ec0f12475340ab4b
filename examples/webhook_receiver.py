#!/usr/bin/env python3
"""Hear what happens to memories: a webhook receiver that believes nothing unsigned and takes
nothing twice.

    .venv/bin/mneme serve --set webhooks.allow_private_networks=true
    .venv/bin/python examples/webhook_receiver.py --api-key mem_sk_…

It makes a webhook for itself, prints events until Ctrl-C, and deletes the webhook. In real life the
webhook is made once, its secret kept, and `url` is an https:// address that the service can reach.
"""

from __future__ import annotations

import argparse
import queue
import signal
import threading
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mneme_client import Mneme, NotGenuine, models, verify_webhook

EVENTS = ("memory.created", "memory.updated", "memory.deleted")
SEEN_MAX = 10_000
WAITING_MAX = 1_000
BODY_BYTES_MAX = 1 << 20


class Inbox:
    """Events on their way from the request, which is answered at once, to the work they cause."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[models.WebhookEvent] = queue.Queue(WAITING_MAX)
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, event: models.WebhookEvent) -> None:
        """Keep an event unless it has come before: delivery is at least once. Raises queue.Full."""
        with self._lock:
            if event["idempotency_key"] in self._seen:
                return
            self.waiting.put_nowait(event)
            self._seen[event["idempotency_key"]] = None
            if len(self._seen) > SEEN_MAX:
                self._seen.popitem(last=False)


def handler(inbox: Inbox, secret: list[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(self.status())
            self.end_headers()

        def status(self) -> int:
            size = int(self.headers.get("Content-Length", 0))
            if size > BODY_BYTES_MAX:
                return 413
            try:
                inbox.take(verify_webhook(self.rfile.read(size), dict(self.headers), secret))
            except NotGenuine:
                return 401
            except queue.Full:
                return 503  # it is sent again
            return 204

        def log_message(self, *_: object) -> None:
            return

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url")
    parser.add_argument("--api-key", help="default: $MNEME_API_KEY")
    parser.add_argument("--port", type=int, default=9000)
    options = parser.parse_args()
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())

    inbox, secret = Inbox(), []
    server = ThreadingHTTPServer(("127.0.0.1", options.port), handler(inbox, secret))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Mneme(base_url=options.base_url, api_key=options.api_key) as client:
        webhook = client.webhooks.create(
            url=f"http://127.0.0.1:{server.server_port}/", events=EVENTS
        )
        secret.append(webhook["signing_secret"])
        print(f"listening at {webhook['url']}", flush=True)
        while not stopped.is_set():
            try:
                event = inbox.waiting.get(timeout=0.1)
            except queue.Empty:
                continue
            print(event["event_type"], event["data"]["id"], flush=True)
        client.webhooks.delete(webhook["id"])
    server.shutdown()


if __name__ == "__main__":
    main()
