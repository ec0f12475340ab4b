"""Bounds of the mem0 API, with the unit at the end of each name."""

from __future__ import annotations

HISTORY_PAGES_MAX = 10  # of a memory's versions that a mount reads at once
FILTER_NODES_MAX = 256  # conditions of one filter
