"""What agents may do to remember: a text, or what a conversation holds."""

from __future__ import annotations

from plugins.ingestion.limits import PROCESS_WAIT_SECONDS_MAX
from runtime.api.tools import Tool

TOOLS = (
    Tool(
        "add_memory",
        "memories.create",
        "Remember a text: a fact, a preference, something that happened. With infer, what can "
        "be learned from the text is stored "
        "instead of the text, and what it contradicts is superseded.",
        (
            "content",
            "user_id",
            "agent_id",
            "collection_id",
            "session_id",
            "title",
            "tags",
            "metadata",
            "importance",
            "occurred_at",
            "infer",
        ),
        required=("content",),
        place=1,
    ),
    Tool(
        "process_conversation",
        "memories.process",
        "Learn from a conversation: extracts facts, compares them with what is known, adds, "
        "updates and supersedes memories. Returns "
        "the finished job, or one that is still under way.",
        (
            "messages",
            "user_id",
            "agent_id",
            "collection_id",
            "session_id",
            "occurred_at",
            "metadata",
            "instructions",
            "dry_run",
        ),
        required=("messages",),
        headers=((b"prefer", b"wait=%d" % PROCESS_WAIT_SECONDS_MAX),),
        place=7,
    ),
)
