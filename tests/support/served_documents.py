"""Documents of a running service, as far as they have come."""

from __future__ import annotations

import time
from typing import Any

from tests.support.served import Served

DONE_SECONDS_MAX = 120
POLL_SECONDS = 0.05


def auth(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def until(service: Served, token: str, url: str, reached: Any) -> dict[str, Any]:
    """The document, once `reached(document)`."""
    deadline = time.monotonic() + DONE_SECONDS_MAX
    while time.monotonic() < deadline:
        document = service.http.get(url, headers=auth(token)).json()
        if reached(document):
            return document
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"never came so far: {document}")


def done(document: dict[str, Any]) -> bool:
    return document["status"] in ("completed", "failed")
