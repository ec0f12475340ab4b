"""Bounds of answers, with the unit at the end of each name."""

from __future__ import annotations

ANSWER_TOKENS_DEFAULT = 512
ANSWER_TOKENS_MAX = 8_192
ANSWER_MEMORY_TOKENS_MAX = 6_000
