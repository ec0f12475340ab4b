"""`mneme export`: an account's memories as JSON Lines, which `mneme import` and people read.

One memory a line, in the order in which the service lists them and in pages of PAGE_MEMORIES, so an
account of any size takes the memory of one page. The file appears under its name once it is whole.
What moves everything exactly, with versions, graph and documents, is the account's own export,
`GET /v1/account/export`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlencode

from runtime.cli.client import Client
from runtime.cli.moving_in import OURS
from runtime.cli.progress import ProgressBar

PAGE_MEMORIES = 100
UNFINISHED = ".unfinished"
KEPT = ("id", *OURS, "created_at", "updated_at")


def lines(client: Client, chosen: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """(a memory as one line, how many there are in all). chosen: filters of GET /v1/memories.

    Raises CallFailed.
    """
    cursor = None
    while True:
        asked = {"limit": PAGE_MEMORIES, **chosen} | ({"cursor": cursor} if cursor else {})
        page = client.call("GET", f"/v1/memories?{urlencode(asked)}")
        for memory in page["items"]:
            yield _line(memory), page["total_count"]
        cursor = page.get("next_cursor")
        if not page["has_more"] or not cursor:
            return


def _line(memory: Mapping[str, Any]) -> str:
    """Fields that say nothing are left out."""
    kept = {name: memory[name] for name in KEPT if memory.get(name) not in (None, "", [], {})}
    return json.dumps(kept, ensure_ascii=False) + "\n"


def run(client: Client, path: Path, chosen: Mapping[str, str], out: TextIO) -> int:
    """Write the file; -> the number of memories in it. Raises CallFailed, OSError."""
    beside, count, bar = path.with_name(path.name + UNFINISHED), 0, None
    with beside.open("w", encoding="utf-8") as file:
        for line, total in lines(client, chosen):
            bar = bar or ProgressBar(out, total)
            file.write(line)
            count += 1
            if count % PAGE_MEMORIES == 0 or count == total:
                bar.show(count)
        file.flush()
        os.fsync(file.fileno())
    if bar is not None:
        bar.end()
    os.replace(beside, path)
    return count
