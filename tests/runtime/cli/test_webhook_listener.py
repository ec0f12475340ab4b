"""The receiver for development, as a process of its own: it prints what is genuine and refuses the
rest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from runtime.signatures import headers
from tests.support.served import MNEME

SECRET = "whsec_" + "B" * 43
BODY = b'{"id": "evt_1", "event_type": "memory.created", "data": {"content": "\xc3\xa9"}}'
STOP_SECONDS_MAX = 60


@contextmanager
def listening(*arguments: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """`mneme webhooks listen` on a free port; -> its address and process."""
    process = subprocess.Popen(
        [MNEME, "webhooks", "listen", "--port", "0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        yield process.stdout.readline().split()[-1], process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOP_SECONDS_MAX)


def test_what_is_genuine_is_printed_and_the_rest_refused() -> None:
    with listening(WEBHOOK_SIGNING_SECRET=SECRET) as (url, process):
        signed = headers("evt_1", BODY, [SECRET], int(time.time()))
        assert httpx.post(url, content=BODY, headers=signed).status_code == 204
        assert process.stdout.readline().startswith(
            'verified: memory.created {"id": "evt_1", "event_type": "memory.created"'
        )
        assert httpx.post(url, content=BODY + b" ", headers=signed).status_code == 401
        assert process.stdout.readline() == "refused: The signature does not fit body and secret.\n"
        assert (
            httpx.post(
                url, content=BODY, headers=headers("evt_1", BODY, [SECRET], int(time.time()) - 301)
            ).status_code
            == 401
        )
        assert (
            process.stdout.readline()
            == "refused: It was signed more than 300 seconds ago, or in the future.\n"
        )
        assert (
            httpx.post(
                url, content=b"[]", headers=headers("evt_1", b"[]", [SECRET], int(time.time()))
            ).status_code
            == 400
        )


def test_without_a_secret_it_says_that_nothing_is_verified() -> None:
    with listening() as (url, process):
        assert "not verified" in process.stderr.readline()
        assert httpx.post(url, content=BODY).status_code == 204
        assert process.stdout.readline().startswith("not verified: memory.created ")
        assert (
            httpx.post(url, content=b'{"event_type": "\\u001b[2J", "data": {}}').status_code == 204
        )
        assert "\x1b" not in process.stdout.readline()
        assert httpx.post(url, content=b"").status_code == 400
