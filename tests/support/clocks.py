"""The clock that commits are dated by."""

from __future__ import annotations

import time


def next_millisecond() -> int:
    """Wait until the clock shows another one; -> it, in Unix milliseconds."""
    before = now = time.time_ns() // 1_000_000
    while now == before:
        now = time.time_ns() // 1_000_000
    return now
