"""One line for each answered request in logs/ of the data directory, by which its X-Request-ID is
found: when it was answered, what was asked, with which status, and how long it took.

Nothing of it waits for a disk: lines are collected, and written aside at most WRITE_DELAY_SECONDS
later, so a process that is killed loses the last ones. A file that has grown to LOG_FILE_BYTES_MAX
gives way to a new one, and the one before it stays. A line names the operation, never a path, an
account or what was sent.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import orjson

from runtime.limits import LOG_FILE_BYTES_MAX, REQUEST_LINES_WAITING_MAX
from runtime.log_lines import mask_secrets
from runtime.settings import Settings

LOGGER = "mneme.requests"
WRITE_DELAY_SECONDS = 0.2
_OWN_REQUEST_ID = re.compile("req_[0-9a-f]{32}")
# Unix time in seconds, request id, operation, method, status, seconds.
_Line = tuple[float, str, str, str, int, float]

log = logging.getLogger("mneme.gateway")


class RequestLog:
    """The lines of one gateway; used on one event loop.

    path     such as logs/requests-gateway-0.log; nobody else writes there
    as_json  one object a line, else text for people
    """

    def __init__(self, path: Path, as_json: bool, bytes_max: int = LOG_FILE_BYTES_MAX):
        self._path, self._as_json, self._bytes_max = path, as_json, bytes_max
        self._waiting: list[_Line] = []
        self._dropped = 0
        self._writing: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, settings: Settings, gateway: str) -> RequestLog | None:
        """Make the log of a gateway of this name; None where the settings want none."""
        if not settings.log.requests or settings.log.level not in ("debug", "info"):
            return None
        path = settings.data_dir / "logs" / f"requests-{gateway}.log"
        return cls(path, settings.log.format == "json")

    def note(
        self, request_id: str, operation: str, method: str, status: int, seconds: float
    ) -> None:
        """A request was answered."""
        if len(self._waiting) >= REQUEST_LINES_WAITING_MAX:
            self._dropped += 1
            return
        self._waiting.append((time.time(), request_id, operation, method, status, seconds))
        if self._timer is None and self._writing is None:
            self._later()

    def close(self) -> None:
        """Write what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._write(*self._taken())

    def _later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WRITE_DELAY_SECONDS, self._begin)

    def _begin(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(None, self._write, *self._taken())
        self._writing.add_done_callback(self._written)

    def _written(self, _: asyncio.Future[None]) -> None:
        self._writing = None
        if self._waiting:
            self._later()

    def _taken(self) -> tuple[list[_Line], int]:
        taken = self._waiting, self._dropped
        self._waiting, self._dropped = [], 0
        return taken

    def _write(self, lines: list[_Line], dropped: int) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size > self._bytes_max:
                self._path.replace(self._path.with_suffix(".log.1"))
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(map(self._formatted, lines))
        except OSError as failed:
            log.warning("%d requests have no line in %s: %s", len(lines), self._path, failed)
        if dropped:
            log.warning("%d requests have no line in %s: too many waited", dropped, self._path)

    def _formatted(self, line: _Line) -> str:
        when, request_id, operation, method, status, seconds = line
        second, milliseconds = divmod(int(when * 1000), 1000)
        at = f"{_second(second)}.{milliseconds:03}Z"
        if not _OWN_REQUEST_ID.fullmatch(
            request_id
        ):  # a client has chosen it, and may choose badly
            request_id = mask_secrets(request_id)
        ms = round(seconds * 1000, 1)
        if not self._as_json:
            return (
                f"{at} INFO    {LOGGER} [{request_id}] {method} {operation} {status} took_ms={ms}\n"
            )
        said = {"at": at, "level": "info", "logger": LOGGER, "message": f"{operation} {status}"}
        said |= {"request_id": request_id, "operation": operation, "method": method}
        return orjson.dumps({**said, "status": status, "took_ms": ms}).decode() + "\n"


@lru_cache(maxsize=4)
def _second(unix: int) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S")
