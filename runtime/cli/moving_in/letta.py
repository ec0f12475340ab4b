"""What Letta hands out: agent files, and what its API lists of an agent.

    agent files   {"agents": [{"messages": …}], "blocks": …}, the .af of an export
    passages      of the archival memory, or {"results": …} of a search in it
    blocks        of the core memory
    messages      rows with a `message_type`

Passages and blocks are memories, and so is what user and agent said to each other; prompts, tools,
thoughts and events are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runtime.cli.moving_in.records import ImportRecord, Ledger, Places, behind, memory, one

LETTA: Places = {
    "text": "content",
    "content": "content",
    "value": "content",
    "id": "source_reference",
    "label": "title",
    "agent_id": "agent_id",
    "name": "speaker",
    "role": "role",
    "tags": "tags",
    **dict.fromkeys(("created_at", "date", "timestamp"), "occurred_at"),
    "metadata": "metadata",
    "metadata_": "metadata",
    **dict.fromkeys(("embedding", "embedding_config", "is_deleted", "organization_id", "limit")),
    **dict.fromkeys(("created_by_id", "last_updated_by_id", "model", "tool_calls", "read_only")),
    **dict.fromkeys(("tool_call_id", "tool_returns", "otid", "sender_id", "batch_item_id")),
    **dict.fromkeys(("group_id", "type", "is_template", "template_name", "preserve_on_migration")),
    **dict.fromkeys(("updated_at", "in_context", "step_id", "run_id", "seq_id", "is_err")),
}
FILE_PARTS = {"agents", "core_memory", "passages"}
OWN_FIELDS = {"embedding_config", "organization_id", "archive_id"}
OWN_IDS = ("passage-", "block-")
SPOKEN = {"user_message": "user", "assistant_message": "assistant"}
# An agent file numbers what is in it anew: its first agent is agent-0 in each of them.
NUMBERED = re.compile(r"agent-\d+")


def is_one(value: Mapping[str, Any]) -> bool:
    """Whether a file whose first value is this is Letta's. Many others call a text `text`."""
    rows = value.get("results")
    if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
        return str(rows[0].get("id")).startswith(OWN_IDS)
    if FILE_PARTS & {*value} or str(value.get("id")).startswith(OWN_IDS):
        return True
    if str(value.get("id")).startswith("message-") and "message_type" in value:
        return True
    told = OWN_FIELDS & {*value} or str(value.get("agent_id")).startswith("agent-")
    return "text" in value and bool(told)


def letta(ledger: Ledger, values: Iterable[Any], given: Places) -> Iterator[ImportRecord]:
    """Memories of what the values hold."""
    places = {**given, **behind(given, LETTA)}
    for value in values:
        for row in _rows(ledger, value):
            yield from one(memory(ledger, row, places, {"source": "letta"}))


def _rows(ledger: Ledger, value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Passages, blocks, and messages as somebody said them."""
    if "message_type" in value:
        if value["message_type"] in SPOKEN:
            row = {name: value[name] for name in value if name not in ("message_type", "date")}
            said = _as_message(ledger, {**value, "role": SPOKEN[value["message_type"]]})
            if said is not None:
                yield {**row, **said}
        else:
            ledger.left_out[f"messages of the type {value['message_type']}"] += 1
        return
    if "text" in value or str(value.get("id")).startswith(OWN_IDS):
        yield value
        return
    for agent in value.get("agents") or [value]:
        who = str(agent.get("id") or agent.get("name"))
        if NUMBERED.fullmatch(who) and agent.get("name"):
            who = agent["name"]
        for message in agent.get("messages") or ():
            said = _as_message(ledger, message)
            if said is not None:
                yield {**said, "agent_id": who}
    for part in ("passages", "blocks", "core_memory", "results"):
        yield from value.get(part) or ()


def _as_message(ledger: Ledger, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """A message as somebody said it; None for prompts, tools and events."""
    if message.get("role") not in ("user", "assistant"):
        ledger.left_out[f"messages of the role {message.get('role')}"] += 1
        return None
    parts = message.get("content") or ""
    if isinstance(parts, list):
        parts = "\n".join(part["text"] for part in parts if part.get("text"))
    for call in message.get("tool_calls") or ():
        if call.get("function", {}).get("name") == "send_message":
            parts = json.loads(call["function"]["arguments"]).get("message", "")
    try:
        event = json.loads(parts) if parts.lstrip().startswith("{") else None
    except ValueError:
        event = None
    when = message.get("created_at") or message.get("date")
    if isinstance(event, dict) and "type" in event:
        if event["type"] != "user_message":
            ledger.left_out[f"events of the type {event['type']}"] += 1
            return None
        parts, when = event.get("message", ""), when or event.get("time")
    kept = {name: message.get(name) for name in ("id", "role", "name")}
    return {name: each for name, each in kept.items() if each} | {
        "content": parts,
        "created_at": when,
    }
