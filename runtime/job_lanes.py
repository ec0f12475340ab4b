"""Whose turn it is: background jobs that are due, so many at once of each lane.

A job without a lane runs in the shard's own, which holds `own_at_once`. A job that waits for somebody else's server names a lane
of its own, such as the receiver it calls: LANE_JOBS_AT_ONCE of a lane run at once, LANES_JOBS_MAX of all such lanes together.
Lanes take turns, so a lane whose jobs hang holds up its own and nobody else's.

Invariant: a named lane is in `_turns` exactly when it has a waiting job and room for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.limits import LANE_JOBS_AT_ONCE, LANES_JOBS_MAX


class Due(NamedTuple):
    """An unfinished job: when it is to run (Unix milliseconds), whose it is, and its lane ("": the shard's own)."""

    run_at: int
    slot: int
    tenant: int
    job_id: str
    lane: str = ""


@dataclass(slots=True, eq=False)
class _Lane:
    waiting: deque[Due] = field(default_factory=deque)
    running: int = 0


class JobLanes:
    """put() what is due, take() what may run now, done() when it has ended."""

    def __init__(self, own_at_once: int, lane_at_once: int = LANE_JOBS_AT_ONCE, lanes_max: int = LANES_JOBS_MAX):
        self._own_at_once, self._lane_at_once, self._lanes_max = own_at_once, lane_at_once, lanes_max
        self._own = _Lane()
        self._lanes: dict[str, _Lane] = {}
        self._turns: deque[_Lane] = deque()
        self._running = 0

    def put(self, due: Due) -> None:
        lane = self._own if not due.lane else self._lanes.setdefault(due.lane, _Lane())
        lane.waiting.append(due)
        if lane is not self._own and len(lane.waiting) == 1 and lane.running < self._lane_at_once:
            self._turns.append(lane)

    def take(self) -> Due | None:
        """The next job that has room, now counted as running; None when there is none."""
        if self._own.waiting and self._own.running < self._own_at_once:
            self._own.running += 1
            return self._own.waiting.popleft()
        if not self._turns or self._running >= self._lanes_max:
            return None
        lane = self._turns.popleft()
        lane.running += 1
        self._running += 1
        due = lane.waiting.popleft()
        if lane.waiting and lane.running < self._lane_at_once:
            self._turns.append(lane)
        return due

    def done(self, due: Due) -> None:
        if not due.lane:
            self._own.running -= 1
            return
        lane = self._lanes[due.lane]
        was_full = lane.running == self._lane_at_once
        lane.running -= 1
        self._running -= 1
        if lane.waiting and was_full:
            self._turns.append(lane)
        elif not lane.waiting and not lane.running:
            del self._lanes[due.lane]

    def remove(self, slots: Collection[int]) -> list[Due]:
        """Take out what waits of these slots; -> it."""
        removed = []
        for name, lane in [("", self._own), *self._lanes.items()]:
            gone = [due for due in lane.waiting if due.slot in slots]
            if not gone:
                continue
            removed += gone
            lane.waiting = deque(due for due in lane.waiting if due.slot not in slots)
            if name and not lane.waiting:
                if lane in self._turns:
                    self._turns.remove(lane)
                if not lane.running:
                    del self._lanes[name]
        return removed

    def waiting(self) -> int:
        """Jobs that are due and have no room yet."""
        return len(self._own.waiting) + sum(len(lane.waiting) for lane in self._lanes.values())

    def oldest(self) -> int | None:
        """When the longest waiting of them was due."""
        return min((lane.waiting[0].run_at for lane in (self._own, *self._lanes.values()) if lane.waiting), default=None)

    def stats(self, now_ms: int) -> dict[str, int]:
        """Figures of the named lanes, for metrics."""
        held = [lane.waiting[0].run_at for lane in self._lanes.values() if lane.waiting]
        return {
            "open": len(self._lanes),
            "running": self._running,
            "waiting": sum(len(lane.waiting) for lane in self._lanes.values()),
            "oldest_age_ms": max(0, now_ms - min(held, default=now_ms)),
        }
