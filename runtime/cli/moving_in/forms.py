"""What the records of each system look like, and what becomes of their fields.

Told from a file's first value, or named by the caller:

    mneme   a text, a memory in our own field names, or a line of this service's export
    mem0    what `get_all` returns and the platform exports, with the relations of its graph
    zep     messages, episodes, facts, and the edges and nodes of a graph; in zep.py
    letta   archival passages, blocks, messages, and agent files (.af); in letta.py
    hindsight   facts as its API lists them or recalls them, mental models, and what its archives
            hold
    mcp     the knowledge-graph memory server's lines

The files of vector stores and databases are read elsewhere; what is in them comes here as rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from runtime.cli.moving_in import letta, zep
from runtime.cli.moving_in.records import (
    ENTITY_PATH,
    MEMORY_PATH,
    OURS,
    RELATIONSHIP_PATH,
    TAG_CHARS_MAX,
    ImportRecord,
    Ledger,
    Places,
    behind,
    claim,
    entity,
    memory,
    one,
)

OUR_ID = "mem_"
Reader = Callable[[Ledger, Iterable[Any], Places], Iterator[ImportRecord]]

# What columns and keys are often called where nobody has said what they mean.
ORDINARY: Places = {
    **{name: name for name in OURS if name != "collection_id"},
    **dict.fromkeys(("page_content", "document", "text", "memory", "data", "body"), "content"),
    **dict.fromkeys(("user", "userid", "userId"), "user_id"),
    **dict.fromkeys(("agent", "agentId"), "agent_id"),
    **dict.fromkeys(("session", "thread_id", "conversation_id", "sessionId"), "session_id"),
    **dict.fromkeys(("name", "author"), "speaker"),
    **dict.fromkeys(("timestamp", "created_at", "createdAt", "date", "time"), "occurred_at"),
    **dict.fromkeys(("labels", "categories"), "tags"),
    **dict.fromkeys(("url", "id", "uuid"), "source_reference"),
    **dict.fromkeys(("embedding", "vector", "embeddings"), None),
}
# What is taken of an exported entity and relationship.
ENTITY = ("name", "type", "aliases", "attributes")
CLAIM = (
    *("source", "target", "type", "attributes", "confidence"),
    *("valid_from", "valid_to", "recorded_at", "functional"),
)
ENTERED = {"entity": (ENTITY, ENTITY_PATH), "relationship": (CLAIM, RELATIONSHIP_PATH)}
# Of what this service says of a memory, what it says anew of every memory.
MNEME: Places = {
    **{name: name for name in OURS if name != "collection_id"},
    **dict.fromkeys(
        (
            *("id", "created_at", "updated_at", "version", "tier", "access_count"),
            *("last_accessed_at", "processing_status", "searchable", "status_url"),
            *("outbox_event_id", "conflict_status", "superseded_by_id", "collection_id"),
            *("kind", "score", "normalized_score", "rank"),
        )
    ),
}
MEM0: Places = {
    "memory": "content",
    "data": "content",
    "content": "content",
    "id": "source_reference",
    "user_id": "user_id",
    "agent_id": "agent_id",
    "app_id": "app_id",
    "run_id": "run_id",
    "session_id": "session_id",
    "actor_id": "speaker",
    "role": "role",
    "attributed_to": "role",
    "categories": "tags",
    "tags": "tags",
    "created_at": "occurred_at",
    "expiration_date": "expires_at",
    "metadata": "metadata",
    **dict.fromkeys(("hash", "score", "score_details", "text_lemmatized", "owner", "organization")),
}
# The first time that a fact has is its time, the others stay beside it.
HINDSIGHT: Places = {
    "text": "content",
    "content": "content",
    "chunk_text": "content",
    "id": "source_reference",
    "source_id": "source_reference",
    "name": "title",
    "tags": "tags",
    "metadata": "metadata",
    **dict.fromkeys(("occurred_start", "mentioned_at", "event_date", "date"), "occurred_at"),
    "created_at": "occurred_at",
    **dict.fromkeys(
        (
            *("chunk_id", "chunk_index", "scores", "observation_scopes", "state", "sources"),
            *("causal_relations", "consolidated_at", "consolidation_failed_at", "attachments"),
            *("source_memory_ids", "source_fact_ids", "reflect_response", "structured_content"),
            *("trigger", "max_tokens", "history", "links", "is_stale", "is_knowledge_page"),
            *("last_refreshed_at", "last_refresh_failed_at", "last_full_refreshed_at"),
            *("last_memory_seen_at", "last_refreshed_source_query", "last_updated", "subtype"),
            *("observations", "entity_id"),
        )
    ),
}


def form_of(first: Any) -> str:
    """What wrote a file whose first value is this."""
    value = first if isinstance(first, dict) else {}
    if _is_of_hindsight(value):
        return "hindsight"
    if "memory" in value:
        return "mem0"
    if letta.is_one(value):
        return "letta"
    if zep.is_one(value):
        return "zep"
    if "results" in value:
        return "mem0"
    if value.get("type") in ("entity", "relation"):
        return "mcp"
    return "mneme"


def _is_of_hindsight(value: Mapping[str, Any]) -> bool:
    """A fact or a mental model, or a page of them, or what recalled facts."""
    rows = value.get("items") or value.get("results") or [value]
    row = rows[0] if isinstance(rows, list) and isinstance(rows[0], dict) else {}
    return (
        "fact_type" in row
        or {"text", "mentioned_at"} <= {*row}
        or {"bank_id", "source_query"} <= {*row}
    )


def _mneme(ledger: Ledger, values: Iterable[Any], given: Places) -> Iterator[ImportRecord]:
    for value in values:
        whole: Mapping[str, Any] = {"content": value} if isinstance(value, str) else value
        row = whole.get("record", whole)
        if whole.get("kind", "memory") != "memory":
            entered = _entered(ledger, whole["kind"], row)
            if entered is None:
                ledger.left_out[f"of the kind {whole['kind']}"] += 1
            yield from one(entered)
            continue
        ours = "record" in whole or str(row.get("id", "")).startswith(OUR_ID)
        places = MNEME if ours else ORDINARY
        yield from one(memory(ledger, row, {**given, **behind(given, places)}))


def _entered(ledger: Ledger, kind: str, row: Mapping[str, Any]) -> ImportRecord | None:
    """What somebody entered into the graph, and has not taken back; the rest of the graph is read
    again from the memories.
    """
    if kind not in ENTERED or not row.get("asked_for") or row.get("invalidated_at"):
        return None
    taken, path = ENTERED[kind]
    body = {name: row[name] for name in taken if row.get(name) is not None}
    if kind == "relationship":
        body |= {end: row[end]["name"] for end in ("source", "target")}
    ledger.places[kind, kind] += 1
    return ImportRecord(path, body)


def rows(
    ledger: Ledger, values: Iterable[Mapping[str, Any]], given: Places, source: str | None = None
) -> Iterator[ImportRecord]:
    """Memories of rows whose fields are called what such fields are often called."""
    places = {**given, **behind(given, ORDINARY)}
    for row in values:
        yield from one(memory(ledger, row, places, {"source": source} if source else None))


def mem0(ledger: Ledger, values: Iterable[Any], given: Places) -> Iterator[ImportRecord]:
    """Memories of mem0's items, or of pages of them with the relations of its graph."""
    places = {**given, **behind(given, MEM0)}
    for value in values:
        if not isinstance(value, Mapping):
            raise TypeError("an item is no object")
        for item in value.get("results", [value]):
            if item.get("expiration_date"):
                item = {**item, "expiration_date": _end_of_day(item["expiration_date"])}
            yield from one(memory(ledger, item, places, {"source": "mem0"}))
        for relation in value.get("relations") or ():
            target = relation.get("target") or relation.get("destination")
            yield from claim(
                ledger, relation["source"], relation.get("relationship", "relates_to"), target
            )


def _end_of_day(day: Any) -> Any:
    """Of a date the midnight at which it ends, UTC: mem0 still shows a memory on its last day."""
    try:
        return (date.fromisoformat(str(day)) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return day


def hindsight(ledger: Ledger, values: Iterable[Any], given: Places) -> Iterator[ImportRecord]:
    """Memories of Hindsight's facts, and an entity of the graph for each that they name; the values
    are rows, pages of them, or the documents of an archive.
    """
    places = {**given, **behind(given, HINDSIGHT)}
    known: set[str] = set()
    for value in values:
        rows = value.get("items", value.get("results", [value]))
        if "facts" in value or ("chunks" in value and "results" not in value):
            rows = [*(value.get("facts") or ()), *(value.get("chunks") or ())]
            whole = {"bank_id": value.get("bank_id"), "document_id": value["document_id"]}
            rows = [{**whole, **row} for row in rows]
        for name in (name for row in rows for name in _named(row)):
            if name not in known:
                known.add(name)
                yield entity(ledger, name, None, None)
        for row in rows:
            if row.get("state") == "invalidated":
                ledger.left_out["invalidated ones"] += 1
                continue
            yield from one(memory(ledger, row, places, {"source": "hindsight"}))


def _named(row: Mapping[str, Any]) -> list[str]:
    """The entities of a fact, which the API lists in one text with commas."""
    names = row.get("entities") or ()
    each = names.split(",") if isinstance(names, str) else names
    return [name for one in each if (name := str(one).strip())]


def _mcp(ledger: Ledger, values: Iterable[Any], given: Places) -> Iterator[ImportRecord]:
    for value in values:
        if value["type"] == "entity":
            yield entity(ledger, value["name"], value.get("entityType"), None)
            for observation in value.get("observations", ()):
                ledger.places["observations", "content"] += 1
                tags = [value["name"][:TAG_CHARS_MAX]]
                content = f"{value['name']}: {observation}"
                yield ImportRecord(MEMORY_PATH, {"content": content, "source": "mcp", "tags": tags})
        elif value["type"] == "relation":
            ends = {"source": value["from"], "target": value["to"], "type": value["relationType"]}
            ledger.places["relation", "relationship"] += 1
            yield ImportRecord(RELATIONSHIP_PATH, ends)


READERS: Mapping[str, Reader] = {
    "mneme": _mneme, "mem0": mem0, "zep": zep.zep, "letta": letta.letta, "hindsight": hindsight,
    "mcp": _mcp,
}  # fmt: skip
