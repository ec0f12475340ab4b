"""Whose turn it is: background jobs that are due, so many at once of each concurrency
group.

A job without a group runs in the shard's own, which has room for `own_at_once`. A job that waits
for somebody else's server names a group, such as the receiver it calls: GROUP_JOBS_AT_ONCE of a
group run at once, GROUPS_JOBS_MAX of all named groups together. Groups take turns, so a group whose
jobs hang holds up its own and nobody else's.

Invariant: a named group is in `_turns` exactly when it has a waiting job and room for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from runtime.api.call import Due
from runtime.limits import GROUP_JOBS_AT_ONCE, GROUPS_JOBS_MAX


@dataclass(slots=True, eq=False)
class _Group:
    waiting: deque[Due] = field(default_factory=deque)
    running: int = 0


class ConcurrencyGroups:
    """put() what is due, take() what may run now, done() when it has ended."""

    def __init__(
        self,
        own_at_once: int,
        group_at_once: int = GROUP_JOBS_AT_ONCE,
        groups_max: int = GROUPS_JOBS_MAX,
    ):
        self._own_at_once, self._group_at_once, self._groups_max = (
            own_at_once,
            group_at_once,
            groups_max,
        )
        self._own = _Group()
        self._groups: dict[str, _Group] = {}
        self._turns: deque[_Group] = deque()
        self._running = 0

    def put(self, due: Due) -> None:
        group = self._own if not due.group else self._groups.setdefault(due.group, _Group())
        group.waiting.append(due)
        if (
            group is not self._own
            and len(group.waiting) == 1
            and group.running < self._group_at_once
        ):
            self._turns.append(group)

    def take(self) -> Due | None:
        """Take the next job that has room, and count it as running; None when there is none."""
        if self._own.waiting and self._own.running < self._own_at_once:
            self._own.running += 1
            return self._own.waiting.popleft()
        if not self._turns or self._running >= self._groups_max:
            return None
        group = self._turns.popleft()
        group.running += 1
        self._running += 1
        due = group.waiting.popleft()
        if group.waiting and group.running < self._group_at_once:
            self._turns.append(group)
        return due

    def done(self, due: Due) -> None:
        if not due.group:
            self._own.running -= 1
            return
        group = self._groups[due.group]
        was_full = group.running == self._group_at_once
        group.running -= 1
        self._running -= 1
        if group.waiting and was_full:
            self._turns.append(group)
        elif not group.waiting and not group.running:
            del self._groups[due.group]

    def remove(self, slots: Collection[int]) -> list[Due]:
        """Take out what waits of these slots; -> it."""
        removed = []
        for name, group in [("", self._own), *self._groups.items()]:
            gone = [due for due in group.waiting if due.slot in slots]
            if not gone:
                continue
            removed += gone
            group.waiting = deque(due for due in group.waiting if due.slot not in slots)
            if name and not group.waiting:
                if group in self._turns:
                    self._turns.remove(group)
                if not group.running:
                    del self._groups[name]
        return removed

    def waiting(self) -> int:
        """Jobs that are due and have no room yet."""
        return len(self._own.waiting) + sum(len(group.waiting) for group in self._groups.values())

    def oldest(self) -> int | None:
        """When the longest waiting of them was due."""
        return min(
            (
                group.waiting[0].run_at
                for group in (self._own, *self._groups.values())
                if group.waiting
            ),
            default=None,
        )

    def stats(self, now_ms: int) -> dict[str, int]:
        """Figures of the named groups, for metrics."""
        held = [group.waiting[0].run_at for group in self._groups.values() if group.waiting]
        return {
            "open": len(self._groups),
            "running": self._running,
            "waiting": sum(len(group.waiting) for group in self._groups.values()),
            "oldest_age_ms": max(0, now_ms - min(held, default=now_ms)),
        }
