"""Queries of any length, as what a user said may have it."""

from __future__ import annotations

QUERY_CHARS_MAX = 8_192


def searchable(query: str) -> str:
    """So much of a text, from its beginning, as a search takes; empty where there is nothing to
    search for.
    """
    return query.strip()[:QUERY_CHARS_MAX]
