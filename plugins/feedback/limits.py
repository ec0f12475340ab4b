"""Bounds of feedback and of the training on it, with the unit at the end of each name."""

from __future__ import annotations

RANK_ITEMS_MAX = 10_000
FEEDBACK_DAYS_SHOWN_MAX = 30
TRAINING_ROWS_MAX = 5_000
TRAINING_QUERIES_MAX = 2_000
RANKING_VERSIONS_SHOWN_MAX = 100
