"""What agents may do with memories."""

from __future__ import annotations

from runtime.api.tools import Tool

TOOLS = (
    Tool(
        "get_memory",
        "memories.get",
        "Read one memory by its id.",
        id_argument="memory_id",
        place=3,
    ),
    Tool(
        "update_memory",
        "memories.update",
        "Change a memory; fields that are not named stay as they are. Its earlier versions are "
        "kept.",
        ("content", "title", "tags", "metadata", "importance", "expires_at"),
        id_argument="memory_id",
        destructive=True,
        repeatable=True,
        place=4,
    ),
    Tool(
        "delete_memory",
        "memories.delete",
        "Delete a memory for good, with its earlier versions.",
        id_argument="memory_id",
        destructive=True,
        repeatable=True,
        place=5,
    ),
    Tool(
        "list_memories",
        "memories.list",
        "List memories, newest first, a page at a time: pass next_cursor as cursor to go on. "
        "To look for something, search instead.",
        (
            "limit",
            "cursor",
            "user_id",
            "agent_id",
            "collection_id",
            "session_id",
            "tag",
            "tier",
            "created_after",
            "created_before",
            "include_superseded",
        ),
        place=6,
    ),
)
