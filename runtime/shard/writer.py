"""The shard's single writer: one thread, one transaction for all writes that wait, one fsync.

Callers hand over a task and await its reply. The thread takes everything queued (up to
GROUP_COMMIT_CALLS_MAX), runs each task in a child transaction of its own, so that one failing
operation rolls back alone, commits once, feeds the derived indexes up to that commit, and only then
answers: an acknowledgement is always after the fsync and after the next search would see it.

Neighbours of one account that say how are handled together (Joint), in one child transaction; where
that fails, each is handled by itself.

Accounts take turns by the time that they have had (runtime/turns.py), an account's tasks in the
order they came. While several ask, no account has more of a group's time than a commit takes, or
than the others of the group have together: so one that keeps hundreds waiting at most doubles what
another's write takes.

A group that finds no room is refused as a whole, and the shard goes on. Another fault of the
storage fails every task of the group with StorageFailed, and all that wait behind it: the shard is
then finished.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, NamedTuple

from runtime import tracing
from runtime.account_work import account_work
from runtime.api.call import Due
from runtime.api.operation import Reply
from runtime.api.plugin import Registry
from runtime.errors import PLUGIN_RAISES, ApiError, InternalError, Unavailable
from runtime.limits import (
    CALLS_TOGETHER_IN_A_CROWD_MAX,
    CALLS_TOGETHER_MAX,
    GROUP_COMMIT_CALLS_MAX,
    GROUP_COMMIT_SECONDS_MAX,
    WRITE_QUEUE_MAX,
)
from runtime.log_lines import REQUEST_ID
from runtime.processor_turns import come_soon
from runtime.turns import Crowd, InTurns
from storage.store import Committed, Store, StoreAtBound, StoreError, StoreFull, Transaction

log = logging.getLogger("mneme.shard")

USAGE = "usage"  # has turns like an account, and makes no crowd of one
_COMMIT_SECONDS = 0.002  # until it has been measured
_SMOOTHING = 0.1  # of the mean, by each commit
FULL_SECONDS = 10.0  # after the last refusal: small writes find room where large ones find none


class StorageFailed(Exception):
    """The storage layer failed in a way no caller caused; the process must end and reopen from
    disk.
    """


@dataclass(slots=True)
class WriteOutcome:
    """What a task made: its reply, the jobs it enqueued, and by how much its tenant's usage grew.

    sequence  of the commit it is part of
    """

    reply: Reply
    due: list[Due] = field(default_factory=list)
    metered: int = 0
    sequence: int = 0


Ended = Callable[[WriteOutcome | None], None]


class Apart(Exception):
    """These tasks are no ones to be run together."""


class Joint(NamedTuple):
    """How a task may be run together with its account's next ones.

    kind  tasks of the same kind are: of one operation and account
    item  what `work` is given for this task
    work  (transaction, items) -> the outcome of each, in order
    """

    kind: Hashable
    item: Any
    work: Callable[[Transaction, Sequence[Any]], Sequence[WriteOutcome]]


@dataclass(slots=True)
class _Waiting:
    work: Callable[[Transaction], WriteOutcome]
    label: str
    request_id: str
    account: Hashable
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future
    ended: Ended | None = None
    joint: Joint | None = None
    since: float = field(default_factory=time.perf_counter)
    outcome: WriteOutcome | None = None
    fault: BaseException | None = None


class Writer:
    """submit() from any event loop; close() ends the thread after the queue is empty."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        on_due: Callable[[list], None],
        on_fed: Callable[[Committed], None],
    ):
        """on_fed: called with each commit once the indexes have it, before anybody is told of
        it."""
        self._store = store
        self._registry = registry
        self._on_due = on_due
        self._on_fed = on_fed
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._turns: InTurns[_Waiting] = InTurns()  # what was taken from it, of the thread alone
        self._last: _Waiting | None = None  # comes when all those are done
        self._crowd = Crowd()
        self._commit_seconds = _COMMIT_SECONDS
        self._waiting = 0
        self._failed: str | None = None
        self._full_since = self._refused_at = -inf  # for want of room, monotonic
        self._fed = store.sequence
        self._stats = {
            "commits_total": 0,
            "calls_total": 0,
            "calls_together_total": 0,
            "seconds_total": 0.0,
            "disk_full_total": 0,
        }
        self._stats |= {"credits_metered_total": 0, "credits_released_total": 0}
        self._thread = threading.Thread(target=self._run, name="mneme-writer", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        """Tasks not yet answered."""
        return self._waiting

    def stats(self) -> dict[str, float]:
        """Commits, the calls in them, how many of those were handled together, and the seconds they
        took; groups that a full disk refused, and since how many seconds it has been refusing some;
        credits that were charged or held, and of those given back. For metrics.
        """
        full = time.monotonic() - self._full_since if self._is_full() else 0.0
        return {**self._stats, "disk_full_seconds": round(full, 3)}

    def _is_full(self) -> bool:
        return time.monotonic() < self._refused_at + FULL_SECONDS

    async def submit(
        self,
        work: Callable[[Transaction], WriteOutcome],
        label: str,
        ended: Ended | None = None,
        account: Hashable = None,
        joint: Joint | None = None,
    ) -> Reply:
        """Run `work` in the next group commit that has room for it. Raises Unavailable when the
        queue is full, StorageFailed on a storage fault.

        account  whose turn it takes; nobody's comes after all that was submitted before it, and
                 before all that is afterwards
        ended  called on the caller's event loop before the reply arrives, even when the caller no
               longer waits: with the committed outcome, or None when nothing was committed
        joint  how it may be run together with others instead
        """
        if self._waiting >= WRITE_QUEUE_MAX:
            if ended is not None:
                ended(None)
            raise Unavailable(
                "Too many writes are waiting. Retry in a moment with the same Idempotency-Key."
            )
        loop = asyncio.get_running_loop()
        waiting = _Waiting(
            work, label, REQUEST_ID.get(), account, loop, loop.create_future(), ended, joint
        )
        self._waiting += 1
        try:
            self._queue.put(waiting)
            # A caller that goes away must not take the write with it: the group is already on its
            # way.
            with tracing.part("commit", label):
                return await asyncio.shield(waiting.future)
        finally:
            self._waiting -= 1

    async def until_fed(self, sequence: int, account: Hashable) -> None:
        """Return once searches find what a snapshot of this commit shows, which may be before its
        writer is told. Raises as `submit`.
        """
        if self._fed < sequence:
            await self.submit(lambda _: WriteOutcome(Reply()), "until fed", None, account)

    def check(self) -> None:
        """Raise StorageFailed once the storage has failed, whoever's write met that."""
        if self._failed is not None:
            raise StorageFailed(self._failed)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        come_soon()
        closing = False
        while not closing or self._turns or self._last is not None:
            closing = self._take_in() or closing
            if self._turns or self._last is not None:
                self._commit()

    def _take_in(self) -> bool:
        """Let all that has been submitted wait for its turn, up to a task that is nobody's; wait
        for one where none does. -> whether the thread is to end after these.
        """
        must_wait = not self._turns
        while self._last is None:
            try:
                waiting = self._queue.get() if must_wait else self._queue.get_nowait()
            except queue.Empty:
                return False
            if waiting is None:
                return True
            if waiting.account is None:
                self._last = waiting
            else:
                if waiting.account != USAGE:
                    self._crowd.asked(waiting.account)
                self._turns.put(waiting.account, waiting)
            must_wait = False
        return False

    def _commit(self) -> None:
        started = time.perf_counter()
        group: list[_Waiting] = []
        try:
            self.check()
            committed = self._store.write(lambda transaction: self._run_group(transaction, group))
            beside = time.perf_counter() - started - committed.result
            self._commit_seconds += _SMOOTHING * (beside - self._commit_seconds)
            self.feed(committed)
            for waiting in group:
                if waiting.outcome is not None:
                    waiting.outcome.reply.sequence = committed.sequence
        except StoreFull as full:
            log.error("write refused: %s", full)
            self._stats["disk_full_total"] += 1
            if not isinstance(full, StoreAtBound):
                since = self._full_since if self._is_full() else time.monotonic()
                self._full_since, self._refused_at = since, time.monotonic()
            group = group or self._all()
            for waiting in group:
                waiting.outcome = None
                waiting.fault = Unavailable(_refusal(full), retry_after_seconds=30)
        except BaseException as fault:
            if self._failed is None:
                log.critical("storage fault", exc_info=fault)
                self._failed = str(fault)
            group += self._all()
            for waiting in group:
                waiting.outcome = None
                waiting.fault = StorageFailed(self._failed)
        else:
            self._count(group, time.perf_counter() - started)
            due = [
                item
                for waiting in group
                if waiting.outcome is not None
                for item in waiting.outcome.due
            ]
            if due:
                group[0].loop.call_soon_threadsafe(self._on_due, due)
        for loop in {waiting.loop for waiting in group}:
            loop.call_soon_threadsafe(
                _answer, [waiting for waiting in group if waiting.loop is loop]
            )

    def _run_group(self, transaction: Transaction, group: list[_Waiting]) -> float:
        """Run the tasks whose turn it is, each noted in `group` before; -> seconds."""
        room = min(len(self._turns), GROUP_COMMIT_CALLS_MAX)
        had: dict[Hashable, float] = {}
        total = 0.0  # of what is in `had`, seconds

        def may(account: Hashable) -> bool:
            own = had.get(account, 0.0)
            return not own or own < max(self._commit_seconds, total - own)

        take, together = partial(self._turns.take_run, fits=_are_joint), CALLS_TOGETHER_MAX
        seconds_max = inf
        if self._crowd.is_here():
            take, together = partial(take, may=may), CALLS_TOGETHER_IN_A_CROWD_MAX
            # Whoever came first would wait for all of them.
            seconds_max = max(GROUP_COMMIT_SECONDS_MAX, 2 * self._commit_seconds)
        while (
            len(group) < room
            and total < seconds_max
            and (some := take(min(together, room - len(group))))
        ):
            group += some
            begun, account = time.perf_counter(), some[0].account
            self._run_some(transaction, some)
            took = time.perf_counter() - begun
            had[account] = had.get(account, 0.0) + took
            total += took
            self._turns.charge(account, took)
            waited = sum(begun - waiting.since for waiting in some)
            account_work().note(account, write_seconds=took, waited_seconds=waited)
        if self._last is not None and not self._turns and len(group) < GROUP_COMMIT_CALLS_MAX:
            waiting, self._last = self._last, None
            group.append(waiting)
            self._run_alone(transaction, waiting)
        return total

    def _all(self) -> list[_Waiting]:
        """All that waits, taken out."""
        found = list(iter(self._turns.take, None))
        if self._last is not None:
            found.append(self._last)
            self._last = None
        return found

    def _count(self, group: list[_Waiting], seconds: float) -> None:
        metered = [waiting.outcome.metered for waiting in group if waiting.outcome is not None]
        self._stats["commits_total"] += 1
        self._stats["calls_total"] += len(group)
        self._stats["seconds_total"] += seconds
        self._stats["credits_metered_total"] += sum(credits for credits in metered if credits > 0)
        self._stats["credits_released_total"] -= sum(credits for credits in metered if credits < 0)

    def _run_some(self, transaction: Transaction, some: Sequence[_Waiting]) -> None:
        """Tasks that are joint, together where that goes."""
        joint = some[0].joint
        if joint is not None and len(some) > 1:
            items = [waiting.joint.item for waiting in some if waiting.joint is not None]
            try:
                with transaction.child() as child:
                    outcomes = joint.work(child, items)
            except (StoreError, MemoryError):
                raise
            except (ApiError, Apart):
                pass  # each that is refused says so below
            except PLUGIN_RAISES as error:
                log.error("writes failed together: %s", some[0].label, exc_info=error)
            else:
                self._stats["calls_together_total"] += len(some)
                for waiting, outcome in zip(some, outcomes, strict=True):
                    outcome.sequence = transaction.sequence
                    waiting.outcome = outcome
                return
        for waiting in some:
            self._run_alone(transaction, waiting)

    def _run_alone(self, transaction: Transaction, waiting: _Waiting) -> None:
        """One task in a child transaction: what it refuses or breaks stays its own."""
        try:
            with transaction.child() as child:
                outcome = waiting.work(child)
        except ApiError as error:
            waiting.fault = error.without_stack()
        except (StoreError, MemoryError):
            raise
        except PLUGIN_RAISES as error:
            log.error(
                "write handler failed: %s",
                waiting.label,
                exc_info=error,
                extra={"request_id": waiting.request_id},
            )
            waiting.fault = InternalError(
                "Something failed on our side; nothing was written. The request id finds the cause "
                "in the log."
            )
        else:
            outcome.sequence = transaction.sequence
            waiting.outcome = outcome

    def feed(self, committed: Committed) -> None:
        """Bring derived in-memory state up to this commit."""
        for name, changes in committed.notes.items():
            self._registry.indexes[name].apply(self._store, changes)
        self._on_fed(committed)
        self._fed = committed.sequence


def _are_joint(first: _Waiting, other: _Waiting) -> bool:
    one, another = first.joint, other.joint
    return one is not None and another is not None and one.kind == another.kind


def _refusal(full: StoreFull) -> str:
    """What the callers of a group without room are told."""
    if isinstance(full, StoreAtBound):
        return (
            "The store of this account's shard is as large as it may become; nothing was written."
        )
    return "The disk that holds the data is full; nothing was written. Free some space and retry."


def _answer(group: list[_Waiting]) -> None:
    for waiting in group:
        if waiting.ended is not None:
            waiting.ended(waiting.outcome)
        if waiting.future.done():
            continue
        if waiting.fault is not None:
            waiting.future.set_exception(waiting.fault)
        elif waiting.outcome is not None:
            waiting.future.set_result(waiting.outcome.reply)
