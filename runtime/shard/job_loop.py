"""Runs the shard's background jobs on its own event loop: a heap of what will be due, and the
concurrency groups of what is (runtime/shard/concurrency_groups.py).

The heap is derived: it is rebuilt from the `jobs_due` tables when the shard opens and fed by every
commit afterwards.

A job whose `prepare` may speak to somebody outside does so after the write that asked for it, and
the beginning of the attempt, are acknowledged (runtime/shard/durability.py). So nobody hears of a
write that a take-over would not find, and no former owner of a shard tells anybody anything. While
the object store is away such a job waits, and its attempt is not counted twice.

An attempt is a span under that of what queued its job, as long as the shard runs: that is kept in
memory, and is forgotten where a job is due so late that nobody waits for it.

A shard that stops lets its jobs reach their commit. Those that still prepare after a moment may
hang on somebody else's server, or wait for a model that many others wait for, so they are left
where they are: nothing of them is lost, they run again after the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from runtime import tracing
from runtime.api import jobs
from runtime.api.call import Due
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Principal
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.errors import PLUGIN_RAISES, ApiError, PermissionDenied, RateLimited, Unavailable
from runtime.ids import id_time
from runtime.limits import (
    JOB_PREPARE_SECONDS_MAX,
    JOB_PUT_BACK_MS,
    JOBS_HELD_SECONDS,
    JOBS_STOP_SECONDS,
    JOBS_WAITING_SECONDS,
)
from runtime.log_lines import REQUEST_ID
from runtime.loop_stalls import Label, LoopStalls
from runtime.shard.background import Background
from runtime.shard.concurrency_groups import ConcurrencyGroups
from runtime.shard.head import Parts
from runtime.turns import in_turn_of
from storage.store import Scope

log = logging.getLogger("mneme.jobs")


class JobLoop:
    """Runs the jobs of one shard, `at_once` of a group at a time."""

    def __init__(self, parts: Parts, background: Background, stalls: LoopStalls, at_once: int):
        self._parts, self._background, self._stalls = parts, background, stalls
        definitions = parts.registry.jobs
        self._heap: list[Due] = []
        self._groups = ConcurrencyGroups(at_once)
        self._running: dict[asyncio.Task, Due] = {}
        self._held: dict[int, list[Due]] = {}
        self._traces: dict[str, str] = {}  # of what runs, by its id
        self._wake = asyncio.Event()
        self._task: asyncio.Task | None = None
        self._runs: Counter[str] = Counter(dict.fromkeys(definitions, 0))
        self._failures: Counter[str] = Counter(dict.fromkeys(definitions, 0))
        self._not_begun: set[asyncio.Task | None] = set()
        self._ending: set[asyncio.Task | None] = set()  # on their last write
        self._stopping = False

    def start(self, owns: Callable[[int], bool]) -> None:
        """Begin with the jobs of the slots that are the shard's own."""
        with self._parts.store.snapshot() as snapshot:
            self.add(jobs.unfinished(snapshot, filter(owns, snapshot.slots())))
        self._task = asyncio.get_running_loop().create_task(self._run())

    def add(self, due: list[Due]) -> None:
        """Take up jobs that a commit made or put back. What was asked for at once is due now, also
        where the clock that dated it was ahead of ours, or ours was set back since.
        """
        now = self._parts.now_ms()
        soon = now + JOBS_WAITING_SECONDS * 1000
        for item in due:
            if item.run_at > now and item.run_at == id_time(item.job_id):
                item = item._replace(run_at=now)
            item = item._replace(trace=self._trace(item) if item.run_at <= soon else "")
            if item.slot in self._held:
                self._held[item.slot].append(item)
            else:
                heapq.heappush(self._heap, item)
        self._wake.set()

    def _trace(self, due: Due) -> str:
        """The span under which a job runs: what made it, or what it ran under when it put itself
        back.
        """
        return due.trace or self._traces.get(due.job_id, "")

    async def hold(self, slots: Collection[int]) -> None:
        """Begin no further job of these slots, and let the running ones reach their commit, as far
        as they can soon.

        Those that cannot are left where they are: like the jobs of a process that ended, they run
        again.
        """
        self._held |= {slot: [] for slot in slots}
        for due in [due for due in self._heap if due.slot in self._held] + self._groups.remove(
            slots
        ):
            self._held[due.slot].append(due)
        self._heap = [due for due in self._heap if due.slot not in self._held]
        heapq.heapify(self._heap)
        running = {task: due for task, due in self._running.items() if due.slot in slots}
        if not running:
            return
        _, late = await asyncio.wait(running, timeout=JOBS_HELD_SECONDS)
        for task in late:
            task.cancel()
            self._held[running[task].slot].append(running[task])
        if late:
            await asyncio.wait(late)

    def release(self, slots: Collection[int]) -> None:
        """The held slots stay: their jobs go on."""
        self.add([due for slot in slots for due in self._held.pop(slot, [])])

    def forget(self, slots: Collection[int]) -> None:
        """Forget the jobs of slots that have gone."""
        for slot in slots:
            self._held.pop(slot, None)
        self._heap = [due for due in self._heap if due.slot not in slots]
        heapq.heapify(self._heap)
        self._groups.remove(slots)

    @property
    def depth(self) -> int:
        """Jobs running, and those queued for the next minute; alarms set for later do not wait for
        anything.
        """
        soon = self._parts.now_ms() + JOBS_WAITING_SECONDS * 1000
        # Below one that is due later all are, so what is set for later costs nothing here.
        places, due_soon = [0], 0
        while places:
            place = places.pop()
            if place < len(self._heap) and self._heap[place].run_at <= soon:
                due_soon += 1
                places += (2 * place + 1, 2 * place + 2)
        return due_soon + self._groups.waiting() + len(self._running)

    def oldest_age_ms(self) -> int:
        """How long the most overdue queued job has waited, in milliseconds."""
        overdue = [
            due
            for due in (self._groups.oldest(), self._heap[0].run_at if self._heap else None)
            if due is not None
        ]
        return max(0, self._parts.now_ms() - min(overdue)) if overdue else 0

    def concurrency_groups(self) -> dict[str, int]:
        """Figures of the named groups."""
        return self._groups.stats(self._parts.now_ms())

    def attempts(self) -> dict[str, dict[str, int]]:
        """Attempts begun, and those that failed, by the job's name."""
        return {
            "attempts_total_by_kind": dict(self._runs),
            "failures_total_by_kind": dict(self._failures),
        }

    async def stop(self) -> None:
        """Take no further job; let the running ones reach their commit, as far as they can soon."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        # They have done nothing yet, and the object store may be away for long: they begin again.
        for task in filter(None, self._not_begun):
            task.cancel()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=JOBS_STOP_SECONDS)
            for task in late - self._ending:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            while self._heap and self._heap[0].run_at <= self._parts.now_ms():
                self._groups.put(heapq.heappop(self._heap))
            while (due := self._groups.take()) is not None:
                task = asyncio.get_running_loop().create_task(
                    self._run_one(due.slot, due.tenant, due.job_id, due.trace)
                )
                self._running[task] = due
                self._traces[due.job_id] = due.trace
                task.add_done_callback(self._ended)
            wait = (self._heap[0].run_at - self._parts.now_ms()) / 1000 if self._heap else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    def _ended(self, task: asyncio.Task) -> None:
        due = self._running.pop(task)
        self._traces.pop(due.job_id, None)
        self._ending.discard(task)
        self._groups.done(due)
        self._wake.set()
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            log.error("a job could not record its end", exc_info=failure)
        if isinstance(failure, Unavailable):
            # The disk is full, or too many writes wait: the row is as it was, and must not be
            # forgotten until the next start.
            self.add([due._replace(run_at=self._parts.now_ms() + JOB_PUT_BACK_MS)])

    async def _run_one(self, slot: int, number: int, job_id: str, trace: str) -> None:
        REQUEST_ID.set(job_id)  # in what is logged from here on
        with self._parts.store.snapshot() as snapshot:
            found = self._background.owner(snapshot, slot, number)
        if found is None:
            return
        principal, scope = found
        begun: list[jobs.JobRow | None] = [None]

        def begin(ctx: WriteContext) -> None:
            begun[0] = jobs.begin(ctx, job_id)

        written = await self._background.write(
            f"begin {job_id}", scope, principal, self._call(slot, job_id), begin
        )
        row = begun[0]
        if row is None:
            return
        self._runs[row.name] += 1
        if self._parts.registry.jobs[row.name].prepare is not None:
            await self._until_durable(written.sequence)
        try:
            with tracing.job(trace, row.name, job_id, row.attempts):
                call = self._call(slot, job_id, row)
                attempt = self._attempt(scope, principal, call, row)
                await self._stalls.watch(attempt, Label(call.operation))
        except asyncio.CancelledError:
            raise
        except PLUGIN_RAISES as error:
            self._failures[row.name] += 1
            reason = (
                error.message if isinstance(error, ApiError) else f"{type(error).__name__}: {error}"
            )
            # What the account's plan has no room for it has none for a second later.
            is_final = isinstance(error, PermissionDenied | RateLimited)
            log.warning("job %s (%s) attempt %d failed: %s", row.name, job_id, row.attempts, reason)
            self._ending.add(asyncio.current_task())
            await self._background.write(
                f"fail {job_id}",
                scope,
                principal,
                self._call(slot, job_id),
                lambda ctx: jobs.fail(ctx, job_id, reason, random.random(), final=is_final),
            )

    async def _until_durable(self, sequence: int) -> None:
        """Wait until a job's commits, up to the one that begins this attempt, are as durable as an
        acknowledged write, for as long as that takes: what leaves the service cannot be taken back.

        Raises StorageFailed where another process owns the shard by then, Unavailable where this
        one is stopping first.
        """
        durability, task = self._parts.durability, asyncio.current_task()
        self._not_begun.add(task)
        try:
            while durability is not None:
                try:
                    return await durability.acknowledge(sequence)
                except Unavailable:
                    if self._stopping:
                        raise
        finally:
            self._not_begun.discard(task)

    async def _attempt(
        self, scope: Scope, principal: Principal, call: Call, row: jobs.JobRow
    ) -> None:
        job = self._parts.registry.jobs[row.name]
        prepared = None
        if job.load is not None:
            with self._parts.store.snapshot() as snapshot:
                reads = SlotReadContext if job.accounts else ReadContext
                ctx: Any = self._background.context(snapshot, scope, principal, call, reads)
                prepared = job.load(ctx, row.payload)
        if job.prepare is not None:
            async with asyncio.timeout(JOB_PREPARE_SECONDS_MAX):
                steps = self._background.steps(principal, scope, call)
                with in_turn_of((scope.slot, scope.tenant)):
                    prepared = await job.prepare(steps, prepared, row.payload, self._parts.models)

        def finish(ctx: WriteContext) -> None:
            ctx.prepared = prepared
            jobs.complete(ctx, row.id, job.handler)

        self._ending.add(asyncio.current_task())
        kind = SlotWriteContext if job.accounts else WriteContext
        await self._background.write(f"run {row.name}", scope, principal, call, finish, kind)

    def _call(self, slot: int, job_id: str, row: jobs.JobRow | None = None) -> Call:
        name = f"job:{row.name}" if row is not None else "job"
        return Call(
            operation=name,
            slot=slot,
            now_ms=self._parts.now_ms(),
            seed=os.urandom(32),
            request_id=job_id,
            trace=tracing.carried(),
        )
