"""What agents may do to find memories."""

from __future__ import annotations

from runtime.api.tools import Tool

TOOLS = (
    Tool(
        "search_memories",
        "search.search",
        "Find memories by meaning and by words. no_match and abstain_recommended say when "
        "nothing stored answers the query: then do "
        "not answer from the results.",
        (
            "query",
            "limit",
            "user_id",
            "agent_id",
            "collection_id",
            "session_id",
            "filters",
            "as_of",
            "include_low_confidence",
            "view",
        ),
        given={"view": "compact"},
        place=2,
    ),
    Tool(
        "recall_context",
        "search.context",
        "What is known of a question as one block to read: notes and conversations in order, as "
        "many as fit into token_budget, each with a marker to cite it by.",
        (
            "query",
            "token_budget",
            "user_id",
            "agent_id",
            "collection_id",
            "session_id",
            "filters",
            "as_of",
        ),
        place=3,
    ),
)
