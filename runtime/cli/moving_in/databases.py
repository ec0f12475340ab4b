"""The files in which other systems keep their memories: SQLite, opened to read and never to write.

    chroma      chroma.sqlite3 of a persistent Chroma: documents and metadata of every collection
    qdrant      storage.sqlite of each collection of a local Qdrant, mem0's store by default
    history     history.db of mem0: the texts and their times, and no users
    langgraph   the table `store` of a SqliteStore, also from a dump of a PostgresStore

Opened by their own packages these files might be migrated; read here they stay as they are. Rows
are read one by one in the order of their keys, so that a second reading finds the same ones.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from runtime.cli.moving_in.inert import Inert, unpickled
from runtime.cli.moving_in.records import ImportFailed, Ledger

HEAD = b"SQLite format 3\0"
CHROMA_FILE, QDRANT_FILE, HISTORY_FILE = "chroma.sqlite3", "storage.sqlite", "history.db"
DOCUMENT_KEY = "chroma:document"
CHROMA_KINDS = ("string_value", "int_value", "float_value", "bool_value")
# Where langmem and others keep the text within a value of a LangGraph store.
TEXT_KEYS = ("content", "text", "memory", "data", "page_content", "document", "value")
# Collections of mem0's that hold no memories.
MEM0_OWN = ("mem0migrations", "_entities")


def opened(path: Path) -> closing[sqlite3.Connection]:
    """The database, read-only. Raises ImportFailed."""
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as broken:
        raise ImportFailed(f"{path} cannot be read as an SQLite database: {broken}") from None
    return closing(connection)


def shape_of(path: Path) -> str | None:
    """Which of the databases it is, by its tables, None for none. Raises ImportFailed."""
    with opened(path) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if {"embeddings", "embedding_metadata", "collections"} <= tables:
        return "chroma"
    if "points" in tables:
        return "qdrant"
    if "history" in tables:
        return "history"
    if "store" in tables:
        return "langgraph"
    if {"checkpoints", "writes"} <= tables:
        raise ImportFailed(
            f"{path} holds LangGraph's checkpoints, which are states of a graph and no memories; "
            "import the file of its store, or the messages of a state as JSON Lines"
        )
    return None


def chroma(path: Path, only: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """One row a document: its text, its metadata, its id, its collection and when it was stored."""
    with opened(path) as database:
        found = database.execute("SELECT id, name FROM collections ORDER BY name").fetchall()
        _know(path, only, [name for _, name in found])
        kinds = [kind for kind in CHROMA_KINDS if kind in _columns(database, "embedding_metadata")]
        lists = bool(_columns(database, "embedding_metadata_array"))
        for collection, name in found:
            if only and name not in only:
                continue
            for row in _chroma_rows(database, collection, kinds, lists):
                yield {**row, "collection": name} if len(found) > 1 else row


def _chroma_rows(
    database: sqlite3.Connection, collection: str, kinds: list[str], lists: bool
) -> Iterator[dict[str, Any]]:
    segment = database.execute(
        "SELECT id FROM segments WHERE collection = ? AND scope = 'METADATA'", (collection,)
    ).fetchone()
    stored = database.execute(
        "SELECT id, embedding_id, created_at FROM embeddings WHERE segment_id = ? ORDER BY id",
        segment or ("",),
    )
    cells = f"SELECT key, {', '.join(kinds)} FROM embedding_metadata WHERE id = ?"
    elements = cells.replace("embedding_metadata", "embedding_metadata_array") + " ORDER BY rowid"
    for number, name, stored_at in stored:
        row: dict[str, Any] = {"id": name, "stored_at": stored_at}
        for key, *values in database.execute(cells, (number,)):
            row[key] = _chroma_value(kinds, values)
        for key, *values in database.execute(elements, (number,)) if lists else ():
            row.setdefault(key, []).append(_chroma_value(kinds, values))
        document = row.pop(DOCUMENT_KEY, None)
        yield row if document is None else {"document": document, **row}


def _chroma_value(kinds: list[str], values: list[Any]) -> Any:
    """The one of a cell's values that is there, each of another kind."""
    for kind, value in zip(kinds, values, strict=True):
        if value is not None:
            return bool(value) if kind == "bool_value" else value
    return None


def qdrant_collections(path: Path, only: tuple[str, ...], ledger: Ledger) -> list[Path]:
    """The files of the collections of a local Qdrant that hold memories. Raises ImportFailed."""
    files = sorted(path.glob(f"collection/*/{QDRANT_FILE}"))
    _know(path, only, [file.parent.name for file in files])
    chosen = []
    for file in files:
        if only and file.parent.name not in only:
            continue
        if not only and file.parent.name.endswith(MEM0_OWN):
            ledger.left_out[f"collections of mem0's own ({file.parent.name})"] += 1
            continue
        chosen.append(file)
    return chosen


def qdrant(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """One row a point: its payload and its id. Raises ImportFailed."""
    for file in files:
        with opened(file) as database:
            seen: set[str] = set()
            # The latest of several copies of a point is the one that holds.
            for (blob,) in database.execute("SELECT point FROM points ORDER BY rowid DESC"):
                try:
                    point = unpickled(blob)
                except ValueError as unreadable:
                    raise ImportFailed(f"{file} has what is no point: {unreadable}") from None
                state = point.state if isinstance(point, Inert) else {}
                name = str(_plain(state.get("id")))
                if name not in seen:
                    seen.add(name)
                    yield {**(state.get("payload") or {}), "id": name}


def _plain(value: Any) -> Any:
    """A point's id, which is a number, a text or a UUID."""
    return value.state.get("int", "") if isinstance(value, Inert) else value


def history(path: Path, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """One row a memory that mem0 has not deleted: its last text, and when it was first added."""
    latest = (
        "SELECT memory_id, new_memory, event, is_deleted, role, actor_id, "
        "min(created_at) OVER (PARTITION BY memory_id), "
        "row_number() OVER (PARTITION BY memory_id ORDER BY rowid DESC) AS newest FROM history"
    )
    with opened(path) as database:
        columns = _columns(database, "history")
        if not {"role", "actor_id"} <= columns:
            latest = latest.replace("role, actor_id", "NULL AS role, NULL AS actor_id")
        found = database.execute(f"SELECT * FROM ({latest}) WHERE newest = 1 ORDER BY memory_id")
        for name, text, event, deleted, role, actor, added, _ in found:
            if deleted or event == "DELETE":
                ledger.left_out["deleted ones"] += 1
                continue
            yield {"id": name, "memory": text, "role": role, "actor_id": actor, "created_at": added}


def langgraph(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a SqliteStore."""
    with opened(path) as database:
        columns = _columns(database, "store")
        if not {"prefix", "key", "value"} <= columns:
            raise ImportFailed(f"{path} has a table store, which is none of LangGraph's")
        kept = ("prefix", "key", "value", "created_at", "updated_at", "expires_at")
        names = [name for name in kept if name in columns]
        for row in database.execute(f"SELECT {', '.join(names)} FROM store ORDER BY prefix, key"):
            yield dict(zip(names, row, strict=True))


def of_namespaces(items: Iterable[Mapping[str, Any]], parts: Iterable[str]) -> Iterator[dict]:
    """Items of a LangGraph store as rows: the fields of the value, and where it stood.

    parts  such as namespace.1, which name parts of the namespace, counted from 0
    """
    wanted = [part for part in parts if part.startswith("namespace.")]
    for item in items:
        value = json.loads(item["value"])
        namespace = item["prefix"].split(".")
        row: dict[str, Any] = {
            "namespace": item["prefix"],
            "id": f"{item['prefix']}/{item['key']}",
            **{name: item.get(name) for name in ("created_at", "updated_at", "expires_at")},
        }
        for part in wanted:
            place = part.removeprefix("namespace.")
            if place.isdecimal() and int(place) < len(namespace):
                row[part] = namespace[int(place)]
        yield row | _fields(value)


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a value, one of them its text: where no field is one, all of them in lines."""
    while isinstance(value, dict) and isinstance(value.get("content"), dict):
        value = {**{name: each for name, each in value.items() if name != "content"},
                 **value["content"]}  # fmt: skip
    if not isinstance(value, dict):
        return {"content": value if isinstance(value, str) else json.dumps(value)}
    text = next((key for key in TEXT_KEYS if isinstance(value.get(key), str)), None)
    if text is not None:
        return {"content": value[text], **{k: each for k, each in value.items() if k != text}}
    said = [
        f"{name}: {each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)}"
        for name, each in value.items()
    ]
    return {"content": "\n".join(said), **value}


def _know(path: Path, only: tuple[str, ...], names: list[str]) -> None:
    if unknown := set(only) - set(names):
        raise ImportFailed(
            f"{path} has no collection {', '.join(sorted(unknown))}; it has "
            f"{', '.join(names) or 'none'}"
        )


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
