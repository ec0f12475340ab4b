"""What agents may ask of the graph."""

from __future__ import annotations

from runtime.api.tools import Tool

TOOLS = (
    Tool(
        "graph_query",
        "graph.query",
        "Who is related to whom, and since when: relationships around an entity, as they held "
        "at valid_at and were known at known_at.",
        ("entity", "relation_type", "target", "depth", "valid_at", "known_at", "between", "limit"),
        place=9,
    ),
)
