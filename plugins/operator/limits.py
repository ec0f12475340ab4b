"""Bounds of the operator's lists, with the unit at the end of each name."""

from __future__ import annotations

ACCOUNTS_LISTED_MAX = 500
BUSIEST_ITEMS_MAX = 1_000
