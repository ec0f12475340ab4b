"""Bounds of the operator's lists, with the unit at the end of each name."""

from __future__ import annotations

ACCOUNTS_LISTED_MAX = 500
