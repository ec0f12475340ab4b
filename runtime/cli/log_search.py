"""`mneme logs`: the lines that the processes of a service have written to logs/ of the data
directory, in the order of time, all of them or those of one request.

Reads both formats, and takes the lines of a traceback for part of the entry that they follow. Files
are read as streams; entries of several files are merged by their time.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error", "critical")
ENTRY_LINES_MAX = 500
_TEXT = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\dT[\d:.]+Z) (?P<level>[A-Z]+) +\S+(?: \[(?P<request>[^\]]*)\])?"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a log: its text, and what it is found by."""

    at: str
    level: str
    request_id: str
    file: str
    text: str


def entries(path: Path) -> Iterator[Entry]:
    """The entries of a file, in its order."""
    head: tuple[str, str, str] | None = None
    lines: list[str] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            line = line.rstrip("\n")
            found = _head(line)
            if found is not None:
                if head is not None:
                    yield Entry(*head, path.name, "\n".join(lines))
                head, lines = found, [line]
            elif head is not None and len(lines) < ENTRY_LINES_MAX:
                lines.append(line)
    if head is not None:
        yield Entry(*head, path.name, "\n".join(lines))


def _head(line: str) -> tuple[str, str, str] | None:
    """(time, level, request id) of a line that begins an entry."""
    if line.startswith("{"):
        try:
            said = json.loads(line)
            return said["at"], said["level"], said.get("request_id") or ""
        except (ValueError, KeyError, TypeError):
            return None
    found = _TEXT.match(line)
    return found and (found["at"], found["level"].lower(), found["request"] or "")


def search(
    directory: Path, request_id: str | None, level: str, last: int | None
) -> Iterable[Entry]:
    """The entries of all files in the order of time.

    request_id  only those of this request or job
    level       the least severe that is shown, one of LEVELS
    last        only so many, the latest

    Raises FileNotFoundError where nothing has written there.
    """
    files = sorted(directory.glob("*.log.1")) + sorted(directory.glob("*.log"))
    if not files:
        raise FileNotFoundError(
            f"There are no logs in {directory}; is --data-dir that of the service?"
        )
    wanted = {*LEVELS[LEVELS.index(level) :]}
    merged = heapq.merge(*(entries(path) for path in files), key=lambda entry: entry.at)
    found = (
        entry
        for entry in merged
        if entry.level in wanted and request_id in (None, entry.request_id)
    )
    return found if last is None else deque(found, last)
