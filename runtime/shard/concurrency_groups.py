"""Whose turn it is: background jobs that are due, so many at once of each concurrency
group.

A job without a group runs in the shard's own, which has room for `own_at_once`. A job that waits
for somebody else's server names a group, such as the receiver it calls: GROUP_JOBS_AT_ONCE of a
group run at once, GROUPS_JOBS_MAX of all named groups together. Groups take turns, so a group whose
jobs hang holds up its own and nobody else's. Within a group the accounts take turns: one that has
thousands waiting delays the one job of another by a single job.

Invariant: a named group is in `_turns` exactly when it has a waiting job and room for it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass, field

from runtime.api.call import Due
from runtime.limits import GROUP_JOBS_AT_ONCE, GROUPS_JOBS_MAX


class _Waiting:
    """Jobs in the order they will run: each account's in the order they came, one of each account
    after the other.
    """

    def __init__(self) -> None:
        self._of_account: OrderedDict[tuple[int, int], deque[Due]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, due: Due) -> None:
        self._of_account.setdefault((due.slot, due.tenant), deque()).append(due)
        self._count += 1

    def popleft(self) -> Due:
        account, own = self._of_account.popitem(last=False)
        due = own.popleft()
        self._count -= 1
        if own:
            self._of_account[account] = own  # behind all others
        return due

    def remove(self, slots: Collection[int]) -> list[Due]:
        """Take out the jobs of these slots; -> them."""
        gone = [account for account in self._of_account if account[0] in slots]
        removed = [due for account in gone for due in self._of_account.pop(account)]
        self._count -= len(removed)
        return removed

    def oldest(self) -> int:
        """The time at which the first of some account was due that has waited longest. Not for
        none.
        """
        return min(own[0].run_at for own in self._of_account.values())


@dataclass(slots=True, eq=False)
class _Group:
    waiting: _Waiting = field(default_factory=_Waiting)
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
            gone = group.waiting.remove(slots)
            removed += gone
            if gone and name and not group.waiting:
                if group in self._turns:
                    self._turns.remove(group)
                if not group.running:
                    del self._groups[name]
        return removed

    def waiting(self) -> int:
        """Jobs that are due and have no room yet."""
        return len(self._own.waiting) + sum(len(group.waiting) for group in self._groups.values())

    def oldest(self) -> int | None:
        """The time at which the longest waiting of them was due."""
        return min(
            (
                group.waiting.oldest()
                for group in (self._own, *self._groups.values())
                if group.waiting
            ),
            default=None,
        )

    def stats(self, now_ms: int) -> dict[str, int]:
        """Figures of the named groups, for metrics."""
        held = [group.waiting.oldest() for group in self._groups.values() if group.waiting]
        return {
            "open": len(self._groups),
            "running": self._running,
            "waiting": sum(len(group.waiting) for group in self._groups.values()),
            "oldest_age_ms": max(0, now_ms - min(held, default=now_ms)),
        }
