"""Bounds of ingestion, with the unit at the end of each name."""

from __future__ import annotations

FACTS_PER_JOB_MAX = 400
FACTS_PER_CHUNK_MAX = 64
MESSAGES_PER_CHUNK_MAX = 20
CHUNK_CHARS_MAX = 12_000
CHUNKS_AT_ONCE_MAX = 4
MODEL_SECONDS_MAX = 240
PROCESS_WAIT_SECONDS_MAX = 30
TWIN_TERMS_FIRST = 3  # that are looked up together; few memories have them all
TWIN_TERMS_MAX = 32
TWIN_MEMORIES_MAX = 16
NEAR_MEMORIES_MAX = 8
EARLIER_MEMORIES_MAX = 32  # among which the one is that a correction corrects
TELLING_JOBS_READ_MAX = 64  # of a memory that is told again and again
MERGED_MEMORIES_MAX = 64  # into one
AUDIT_MEMORIES_MAX = 2_000
TIER_MEMORIES_PER_STEP = 500
READ_CHARS_MAX = 20_000  # of a message whose trees are read
RULES_SECONDS_MAX = 10  # of a processor
INSTRUCTIONS_CHARS_MAX = 2_000
