"""Bounds of collections, with the unit at the end of each name."""

from __future__ import annotations

from runtime.settings import Kept

BULK_DELETE_COLLECTIONS_MAX = 100
METADATA_BYTES_MAX = 16 * 1024
MEMBERSHIP_EVENTS_INTERVAL_MS = 1_000
CLEANUP_ROWS_PER_STEP = 2_000

# --- what an account may keep, by its tier --------------------------------------------------------
COLLECTIONS_KEPT = Kept(
    "collections",
    "Collections that an account of the tier {tier} may keep",
    {"free": 1_000, "starter": 10_000, "pro": 50_000, "scale": 250_000},
    place=30,
)
