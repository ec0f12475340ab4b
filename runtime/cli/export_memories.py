"""`mneme export`: an account's memories as JSON Lines or Parquet, which `mneme import` and others
read.

One memory a line or row, in the order in which the service lists them and in pages of
PAGE_MEMORIES, so an account of any size takes the memory of one page, or of one row group. The file
appears under its name once it is whole. What moves everything exactly, with versions, graph and
documents, is the account's own export, `GET /v1/account/export`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlencode

from runtime.cli.client import Client
from runtime.cli.moving_in import OURS
from runtime.cli.progress import ProgressBar

FORMATS = ("jsonl", "parquet")
PAGE_MEMORIES = 100
ROW_GROUP_MEMORIES = 1000
UNFINISHED = ".unfinished"
KEPT = ("id", *OURS, "created_at", "updated_at")
TIMES = ("occurred_at", "expires_at", "created_at", "updated_at")


def format_of(path: str) -> str:
    """The format that the name of a file asks for."""
    return "parquet" if path.lower().endswith(".parquet") else "jsonl"


def memories(client: Client, chosen: Mapping[str, str]) -> Iterator[tuple[dict[str, Any], int]]:
    """(a memory without the fields that say nothing, how many there are in all). chosen: filters of
    GET /v1/memories.

    Raises CallFailed.
    """
    cursor = None
    while True:
        asked = {"limit": PAGE_MEMORIES, **chosen} | ({"cursor": cursor} if cursor else {})
        page = client.call("GET", f"/v1/memories?{urlencode(asked)}")
        for memory in page["items"]:
            said = (name for name in KEPT if memory.get(name) not in (None, "", [], {}))
            yield {name: memory[name] for name in said}, page["total_count"]
        cursor = page.get("next_cursor")
        if not page["has_more"] or not cursor:
            return


def line(memory: Mapping[str, Any]) -> str:
    """A memory as one line of JSON."""
    return json.dumps(memory, ensure_ascii=False) + "\n"


def run(client: Client, path: Path, form: str, chosen: Mapping[str, str], out: TextIO) -> int:
    """Write the file in one of FORMATS; -> the number of memories in it. Parquet needs its extra.
    Raises CallFailed, OSError.
    """
    path = path.resolve()  # a link goes on leading to it
    # Another export to the same name at the same time writes a file of its own.
    beside, count = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}"), 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal count
        bar = None
        for memory, total in memories(client, chosen):
            bar = bar or ProgressBar(out, total)
            count += 1
            if count % PAGE_MEMORIES == 0 or count == total:
                bar.show(count)
            yield memory
        if bar is not None:
            bar.end()

    try:
        (_write_parquet if form == "parquet" else _write_lines)(beside, counted())
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:  # what is refused or interrupted leaves nothing behind
        beside.unlink(missing_ok=True)
        raise
    return count


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(map(line, rows))


def _write_parquet(path: Path, rows: Iterator[Mapping[str, Any]]) -> None:
    """A column for each field: times in milliseconds of UTC, tags as a list, metadata as JSON."""
    import pyarrow  # an extra
    from pyarrow import parquet

    types: dict[str, Any] = {
        "importance": pyarrow.float64(),
        "tags": pyarrow.list_(pyarrow.string()),
        **dict.fromkeys(TIMES, pyarrow.timestamp("ms", "UTC")),
    }
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in KEPT])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROW_GROUP_MEMORIES)):
            writer.write_table(pyarrow.Table.from_pylist([_row(each) for each in group], schema))


def _row(memory: Mapping[str, Any]) -> dict[str, Any]:
    row = dict(memory)
    row |= {name: datetime.fromisoformat(row[name]) for name in TIMES if name in row}
    if "metadata" in row:
        row["metadata"] = json.dumps(row["metadata"], ensure_ascii=False)
    return row
