"""Asking again until something is done, failed, or too late.

The wait between two questions grows from WAIT_SECONDS_FIRST to WAIT_SECONDS_MAX, a random part
shorter each time.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from typing import Any

from .errors import DeadlineExceeded, ProcessingFailed
from .request import Request, segment
from .transport import AsyncTransport, Transport

WAIT_SECONDS_FIRST, WAIT_SECONDS_MAX, WAIT_GROWTH = 0.05, 1.0, 1.5
DONE, FAILED = "completed", "failed"


def address(thing: str | Mapping[str, Any], path: str) -> str:
    """Where to ask after a thing: its own status_url, or `path` with its id."""
    if not isinstance(thing, str) and thing.get("status_url"):
        url = str(thing["status_url"])
        if not url.startswith("/v1/"):
            raise ValueError(f"{url} is no path of the service.")
        return url
    found = thing if isinstance(thing, str) else thing.get("id") or thing.get("job_id")
    if not found:
        raise ValueError("It has neither a status_url nor an id to ask after.")
    return path + segment(found)


class Patience:
    """The questions of one wait: how long until the next, and what the answer means."""

    def __init__(self, path: str, seconds: float):
        self._path, self._seconds = path, seconds
        self._until = time.monotonic() + seconds
        self._wait = WAIT_SECONDS_FIRST
        self._last: Mapping[str, Any] | None = None

    def request(self) -> Request:
        left = max(self._until - time.monotonic(), WAIT_SECONDS_FIRST)
        return Request("GET", self._path, timeout=left, until=self._until)

    def is_done(self, answer: Mapping[str, Any]) -> bool:
        """Raises ProcessingFailed where it never will be."""
        self._last = answer
        state = answer.get("processing_status") or answer.get("status")
        if state == FAILED:
            error = answer.get("error")
            reason = error.get("message") if isinstance(error, Mapping) else error
            raise ProcessingFailed(
                f"{self._path} has failed: {reason or 'no reason given'}", answer
            )
        return bool(state == DONE)

    def pause(self) -> float:
        """Seconds until the next question. Raises DeadlineExceeded."""
        seconds, self._wait = (
            self._wait * random.uniform(0.5, 1.0),
            min(WAIT_SECONDS_MAX, self._wait * WAIT_GROWTH),
        )
        if time.monotonic() + seconds > self._until:
            raise DeadlineExceeded(
                f"{self._path} was not done within {self._seconds:g} seconds.", self._last
            )
        return seconds


def wait(transport: Transport, path: str, seconds: float) -> Any:
    """What the path answers once it is completed."""
    patience = Patience(path, seconds)
    while True:
        answer = transport.json(patience.request())
        if patience.is_done(answer):
            return answer
        time.sleep(patience.pause())


async def wait_async(transport: AsyncTransport, path: str, seconds: float) -> Any:
    """What the path answers once it is completed."""
    patience = Patience(path, seconds)
    while True:
        answer = await transport.json(patience.request())
        if patience.is_done(answer):
            return answer
        await asyncio.sleep(patience.pause())
