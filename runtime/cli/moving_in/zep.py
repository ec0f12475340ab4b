"""What Zep and Graphiti hand out, in each of their releases' shapes.

    pages        {"items": [...]} of messages, episodes, nodes, edges, observations or summaries
    parts        {"messages": [...], "nodes": [...], "edges": [...], "context": ...} of an answer
    rows         one of those by itself, or a list of them
    results      what a search over sessions found: {"results": [{"session_id", "fact", ...}]}

A row is told by what it has: a fact, a text that was said, or a summary of something with a name.
Nodes become entities, and their summaries memories; facts become memories and, where the names of
both ends are known, claims of the graph with the time that they held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runtime.cli.moving_in.records import (
    NAME_CHARS_MAX,
    ImportRecord,
    Ledger,
    Places,
    behind,
    claim,
    entity,
    memory,
    moment,
    one,
)

SAID: Places = {
    "content": "content",
    **dict.fromkeys(("uuid", "uuid_"), "source_reference"),
    "name": "speaker",
    "role_name": "speaker",
    "role": "speaker",
    "role_type": "role",
    "title": "title",
    "session_id": "session_id",
    "thread_id": "session_id",
    "thread_uuid": "session_id",
    "user_id": "user_id",
    "user_uuid": "user_id",
    "reference_time": "occurred_at",
    "valid_at": "occurred_at",
    "created_at": "occurred_at",
    "metadata": "metadata",
    **dict.fromkeys(("processed", "relevance", "score", "token_count", "content_policy")),
    **dict.fromkeys(("graph_uuid", "task_id", "updated_at", "entity_edges", "selection_rank")),
    **dict.fromkeys(("last_summarized_at", "last_summarized_episode_valid_at")),
}
FACT: Places = {
    "fact": "content",
    **dict.fromkeys(("uuid", "uuid_"), "source_reference"),
    "session_id": "session_id",
    "user_id": "user_id",
    "user_uuid": "user_id",
    "valid_at": "occurred_at",
    "created_at": "occurred_at",
    **dict.fromkeys(("graph_uuid", "relevance", "score", "rating", "episodes", "episode_uuids")),
    **dict.fromkeys(("source_node_uuid", "target_node_uuid", "fact_embedding", "name_embedding")),
    **dict.fromkeys(("source_node_labels", "target_node_labels", "hyperedge_uuid", "scope")),
    **dict.fromkeys(("selection_rank",)),
}
PAGE = "items"
# Lists of rows by the name that holds them, those of nodes before those that join them.
PARTS = (
    *("messages", "episodes", "nodes", "observations", "thread_summaries"),
    *("facts", "relevant_facts", "edges"),
)
SHARED = ("session_id", "thread_id", "thread_uuid", "user_id", "user_uuid")
# Of rows that others have no names for.
OWN_FIELDS = {"graph_uuid", "thread_uuid", "episode_uuids", "source_node_uuid", "role_type"}
OWN_ROWS = ({"uuid", "name", "labels", "summary"}, {"entity_edges", "source_description"})
OWN_PARTS = {"messages", "episodes", "nodes", "facts", "edges", "fact"}
NO_TEXT_OF_ITS_OWN = "threads and users, whose messages and facts are lists of their own"


def is_one(value: Mapping[str, Any]) -> bool:
    """Whether a file whose first value is this is of Zep or Graphiti."""
    for page in (PAGE, "results"):
        rows = value.get(page)
        if isinstance(rows, list):
            first = rows[0] if rows and isinstance(rows[0], Mapping) else {}
            told = "session_id" in first and {"fact", "message", "summary"} & {*first}
            return is_one(first) if page == PAGE else bool(told)
    if OWN_FIELDS & {*value} or any(fields <= {*value} for fields in OWN_ROWS):
        return True
    return bool(OWN_PARTS & {*value}) and "content" not in value


def zep(ledger: Ledger, values: Iterable[Any], given: Places) -> Iterator[ImportRecord]:
    """Memories, entities and relationships of what the values hold."""
    said, told = ({**given, **behind(given, places)} for places in (SAID, FACT))
    names: dict[Any, str] = {}  # of the nodes so far, by their uuid
    for value in values:
        if not isinstance(value, Mapping):
            raise TypeError("a value is no object")
        for row in _rows(value):
            if "fact" in row:
                yield from _edge(ledger, row, told, names)
            elif "content" in row:
                yield from one(memory(ledger, _as_said(row), said, {"source": "zep"}))
            elif "summary" in row or "labels" in row:
                yield from _summed_up(ledger, row, said, names)
            else:
                ledger.left_out[NO_TEXT_OF_ITS_OWN] += 1


def _rows(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every row of a value, with what is said of all of them beside them."""
    if PAGE in value:
        for row in value[PAGE] or ():
            yield from _rows(row)
        return
    shared = {name: value[name] for name in SHARED if value.get(name)}
    parts = [] if _is_a_row(value) else [*PARTS, "results"]
    held = [part for part in parts if isinstance(value.get(part), list)]
    whole = [row["fact"] for row in value.get("relevant_facts") or ()] if held else []
    for part in held:
        for row in value[part]:
            if isinstance(row, str):  # a fact without a time, which may be there with one
                row = {} if row in whole else {"fact": row}
            if row:
                bare = {"labels": ()} if part == "nodes" else {}
                yield from _rows({**bare, **shared, **row})
    alone = [value[part] for part in ("fact", "message", "summary") if part in value]
    alone = [row for row in alone if isinstance(row, Mapping)]
    for row in alone:
        yield {**shared, **row}
    if not held and not alone:
        yield value


def _is_a_row(value: Mapping[str, Any]) -> bool:
    """Whether it says something itself: what it calls its episodes are their ids then."""
    return any(isinstance(value.get(text), str) for text in ("fact", "content", "summary"))


def _as_said(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with its role where the roles of all releases are, and an episode's name, which
    nobody bears, as its title.
    """
    row = dict(row)
    if row.get("role_type") is None and row.get("role") in ("user", "assistant", "system"):
        row["role_type"] = row["role"]
    if "entity_edges" in row and "name" in row:
        row["title"] = row.pop("name")
    return row


def _summed_up(
    ledger: Ledger, row: Mapping[str, Any], places: Places, names: dict[Any, str]
) -> Iterator[ImportRecord]:
    """The entity that a node is, and its summary as a memory; of observations and threads the
    summary alone.
    """
    name = row.get("name")
    # Both say which episodes they come from; how many edges it has only a node says.
    observed = "episode_uuids" in row and not {"degree", "episode_uuids_truncated"} & {*row}
    if name and not observed:
        names[row.get("uuid") or row.get("uuid_")] = name
        labels = [label for label in row.get("labels") or () if label != "Entity"]
        yield entity(ledger, name, labels[0] if labels else None, row.get("attributes"))
    if row.get("summary"):
        kept = ("uuid", "uuid_", "created_at", "group_id", *SHARED)
        text = {each: row[each] for each in kept if each in row} | {"content": row["summary"]}
        title = {"title": name[:NAME_CHARS_MAX]} if name else {}
        yield from one(memory(ledger, text, places, {"source": "zep", **title}))


def _edge(
    ledger: Ledger, edge: Mapping[str, Any], places: Places, names: Mapping[Any, str]
) -> Iterator[ImportRecord]:
    """A fact as a memory, unless it is over, and with both its ends as a claim of the graph, which
    knows when it held.
    """
    begins, ends = moment(edge.get("valid_at")), moment(edge.get("invalid_at"))
    source = edge.get("source_node_name") or names.get(edge.get("source_node_uuid"))
    target = edge.get("target_node_name") or names.get(edge.get("target_node_uuid"))
    if source and target and edge.get("name"):
        yield from claim(ledger, source, edge["name"], target, begins, ends)
    if edge.get("invalid_at") or edge.get("expired_at"):
        ledger.left_out["facts that are over (the graph keeps those whose ends it knows)"] += 1
        return
    hidden = {"name", "source_node_name", "target_node_name"} if source and target else set()
    row = {name: field for name, field in edge.items() if name not in hidden}
    yield from one(memory(ledger, row, places, {"source": "zep"}))
