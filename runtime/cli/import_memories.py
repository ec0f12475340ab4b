"""`mneme import`: memories from a file, through the public API of a running service.

Understands, told apart by their shape or named with --format:

    mneme   JSON Lines; each line a body of POST /v1/memories/raw, a line of this service's own
            export, or a plain JSON string
    mem0    what `get_all` returns and the platform exports: {"results": [{"memory", "user_id",
            "metadata", "created_at", …}]}
    zep     {"messages": [{"role", "content", "created_at", …}]} and {"facts": [{"fact", "valid_at",
            …}]}
    letta   archival passages: [{"text", "created_at", "agent_id", "tags", …}]
    mcp     the knowledge-graph memory server's file: lines of {"type": "entity" | "relation", …}

Every record is one request under an Idempotency-Key made from the record, so sending it twice
stores it once, whoever interrupted the first time and whatever was added to the file since. How far
an import came is kept beside the file; a second run goes on from there, and a file that changed
starts over, which costs time and duplicates nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from runtime.cli.client import CallFailed, Client
from runtime.cli.progress import ProgressBar

FORMATS = ("mneme", "mem0", "zep", "letta", "mcp")
FILE_BYTES_MAX = 2 * 1024**3
REQUESTS_AT_ONCE = 8
ATTEMPTS_MAX = 8
WAIT_SECONDS_MAX = 30.0
RECORDS_PER_STEP = 200
PROGRESS_SUFFIX = ".import-progress"
_KEPT = (
    "title", "tags", "source", "source_type", "source_reference", "importance", "metadata",
    "user_id", "agent_id", "run_id", "app_id", "session_id", "speaker", "role",
    "occurred_at", "expires_at",
    "collection_id",
)  # fmt: skip


class ImportFailed(Exception):
    """The file cannot be imported; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Record:
    """One request: where it goes and its body."""

    path: str
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The Idempotency-Key: the same record has the same one, always."""
        said = json.dumps([self.path, self.body], sort_keys=True, ensure_ascii=False)
        return "import-" + hashlib.sha256(said.encode()).hexdigest()


@dataclass(slots=True)
class Report:
    total: int = 0
    sent: int = 0
    skipped: int = 0
    refused: int = 0
    first_refusal: str = ""


def read(path: Path, form: str | None = None) -> list[Record]:
    """The records of a file. Raises ImportFailed."""
    if path.stat().st_size > FILE_BYTES_MAX:
        raise ImportFailed(f"{path} is larger than {FILE_BYTES_MAX} bytes; split it")
    try:
        values = list(_values(path.read_text(encoding="utf-8-sig")))
    except UnicodeDecodeError:
        raise ImportFailed(f"{path} is not UTF-8 text") from None
    except json.JSONDecodeError as broken:
        raise ImportFailed(
            f"{path} is neither JSON nor JSON Lines: {broken.msg} at line {broken.lineno}"
        ) from None
    form = form or _form_of(values)
    try:
        return list(_READERS[form](values))
    except (KeyError, TypeError, AttributeError) as odd:
        raise ImportFailed(
            f"{path} does not look like a file of the format {form}: {type(odd).__name__} {odd}"
        ) from None


def run(
    client: Client,
    path: Path,
    records: list[Record],
    shared: dict[str, Any],
    infer: bool,
    out: TextIO,
) -> Report:
    """Send every record; `shared` fields fill in what a memory does not say itself. Raises
    CallFailed when the service is not there.
    """
    records = [_with(record, shared, infer) for record in records]
    state = path.with_name(path.name + PROGRESS_SUFFIX)
    digest = hashlib.sha256(
        "".join(record.key for record in records).encode() + client.base_url.encode()
    ).hexdigest()
    done = _resumed(state, digest)
    report = Report(total=len(records), skipped=done)
    bar = ProgressBar(out, len(records))
    with ThreadPoolExecutor(REQUESTS_AT_ONCE, "mneme-import") as pool:
        for start in range(done, len(records), RECORDS_PER_STEP):
            step = records[start : start + RECORDS_PER_STEP]
            for refusal in pool.map(lambda record: send(client, record), step):
                report.sent += refusal is None
                report.refused += refusal is not None
                report.first_refusal = report.first_refusal or refusal or ""
            _save(state, {"digest": digest, "done": start + len(step)})
            bar.show(start + len(step))
    bar.end()
    state.unlink(missing_ok=True)
    return report


def send(client: Client, record: Record, pause: Callable[[float], None] = time.sleep) -> str | None:
    """Send one record until it is answered; -> why it was refused, or None. Raises CallFailed when
    the service stays away.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            client.call("POST", record.path, record.body, {"Idempotency-Key": record.key})
            return None
        except CallFailed as failed:
            passing = failed.status in (0, 408, 429) or failed.status >= 500
            if not passing and failed.status not in (401, 403):
                return str(failed)
            if not passing or attempt == ATTEMPTS_MAX:
                raise
            pause(min(WAIT_SECONDS_MAX, 0.25 * 2**attempt))
    raise AssertionError("the last attempt returns or raises")


# --- reading --------------------------------------------------------------------------------------


def _values(text: str) -> Iterator[Any]:
    """The values of a JSON document (the elements, when it is an array) or of JSON Lines."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        yield from (json.loads(line) for line in text.splitlines() if line.strip())
        return
    if isinstance(whole, list):
        yield from whole
    else:
        yield whole


def _form_of(values: list[Any]) -> str:
    first = next((value for value in values if isinstance(value, dict)), {})
    if "results" in first or "memory" in first:
        return "mem0"
    if ("messages" in first or "facts" in first) and "content" not in first:
        return "zep"
    if first.get("type") in ("entity", "relation"):
        return "mcp"
    return "letta" if "text" in first and "content" not in first else "mneme"


def _memory(content: str, fields: dict[str, Any]) -> Record:
    kept = {name: fields[name] for name in _KEPT if fields.get(name) not in (None, "", [], {})}
    return Record("/v1/memories/raw", {"content": content, **kept})


def _mneme(values: Iterable[Any]) -> Iterator[Record]:
    for value in values:
        if isinstance(value, str):
            yield _memory(value, {})
        elif value.get("kind", "memory") == "memory":
            record = value.get("record", value)
            yield _memory(
                record["content"],
                {name: field for name, field in record.items() if name != "collection_id"},
            )


def _mem0(values: Iterable[Any]) -> Iterator[Record]:
    for value in values:
        for item in value.get("results", [value]) if isinstance(value, dict) else ():
            yield _memory(
                item.get("memory") or item["content"],
                {**item, "occurred_at": item.get("created_at"), "source": "mem0"},
            )


def _zep(values: Iterable[Any]) -> Iterator[Record]:
    for value in values:
        session = value.get("session_id") or value.get("thread_id")
        for said in value.get("messages", ()):
            speaker = said.get("name") or said.get("role")
            fields = {
                "speaker": speaker,
                "occurred_at": said.get("created_at"),
                "metadata": said.get("metadata"),
                "session_id": session,
            }
            yield _memory(said["content"], fields | {"source": "zep"})
        for fact in value.get("facts", ()):
            yield _memory(
                fact["fact"],
                {"occurred_at": fact.get("valid_at") or fact.get("created_at"), "source": "zep"},
            )


def _letta(values: Iterable[Any]) -> Iterator[Record]:
    for item in values:
        fields = {
            **item,
            "occurred_at": item.get("created_at"),
            "source": "letta",
            "metadata": item.get("metadata_") or item.get("metadata"),
        }
        yield _memory(item["text"], fields)


def _mcp(values: Iterable[Any]) -> Iterator[Record]:
    for value in values:
        if value["type"] == "entity":
            yield Record(
                "/v1/knowledge-graph/entities",
                {"name": value["name"], "type": value.get("entityType") or "unknown"},
            )
            for observation in value.get("observations", ()):
                yield _memory(
                    f"{value['name']}: {observation}",
                    {"source": "mcp", "tags": [value["name"][:64]]},
                )
        elif value["type"] == "relation":
            ends = {"source": value["from"], "target": value["to"], "type": value["relationType"]}
            yield Record("/v1/knowledge-graph/relationships", ends)


_READERS: dict[str, Callable[[Iterable[Any]], Iterator[Record]]] = {
    "mneme": _mneme, "mem0": _mem0, "zep": _zep, "letta": _letta, "mcp": _mcp,
}  # fmt: skip


# --- sending --------------------------------------------------------------------------------------


def _with(record: Record, shared: dict[str, Any], infer: bool) -> Record:
    """A memory with the shared fields it lacks; with `infer`, what can be learned from it is stored
    instead.
    """
    if record.path != "/v1/memories/raw":
        return record
    body = {**shared, **record.body}
    return Record("/v1/memories", {**body, "infer": True}) if infer else Record(record.path, body)


def _resumed(state: Path, digest: str) -> int:
    try:
        saved = json.loads(state.read_text())
        return int(saved["done"]) if saved["digest"] == digest else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _save(state: Path, progress: dict[str, Any]) -> None:
    """Written beside and renamed, so that an interrupted write leaves the last one."""
    beside = state.with_name(state.name + ".new")
    beside.write_text(json.dumps(progress))
    os.replace(beside, state)
