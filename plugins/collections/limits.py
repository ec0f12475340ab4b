"""Bounds of collections, with the unit at the end of each name."""

from __future__ import annotations

BULK_DELETE_COLLECTIONS_MAX = 100
METADATA_BYTES_MAX = 16 * 1024
MEMBERSHIP_EVENTS_INTERVAL_MS = 1_000
CLEANUP_ROWS_PER_STEP = 2_000
