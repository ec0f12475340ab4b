"""What agents may ask of memories."""

from __future__ import annotations

from runtime.api.tools import Tool

TOOLS = (
    Tool(
        "ask_memories",
        "search.reason",
        "Answer a question from memories, with verbatim quotations. answer is null when "
        "nothing stored supports one.",
        ("query", "user_id", "agent_id", "collection_id", "session_id", "filters", "as_of"),
        place=8,
    ),
)
