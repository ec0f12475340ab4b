"""Runs the shard's background jobs on its own event loop: a heap of what will be due, and lanes of what is (runtime/job_lanes.py).

The heap is derived: it is rebuilt from the `jobs_due` tables when the shard opens and fed by every commit afterwards.

A shard that stops lets its own jobs reach their commit. Those of named lanes may hang on somebody else's server, so after a
moment they are left where they are: nothing of them is lost, they run again after the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from runtime import jobs
from runtime.errors import ApiError, Unavailable
from runtime.job_lanes import Due, JobLanes
from runtime.limits import JOB_PREPARE_SECONDS_MAX, JOB_PUT_BACK_MS, JOBS_HELD_SECONDS, JOBS_WAITING_SECONDS, LANE_STOP_SECONDS
from runtime.operation import Call, Principal, ReadContext, Reply, WriteContext
from runtime.telemetry import REQUEST_ID
from storage.table import Scope, Snapshot

log = logging.getLogger("mneme.jobs")

Tenant = Callable[[Snapshot, int, int], tuple[Principal, Scope]]


class JobLoop:
    """
    snapshot   () -> Snapshot
    tenant     (snapshot, slot, tenant number) -> (principal, scope) of the job's owner
    write      (label, scope, principal, call, work(ctx: WriteContext) -> None) -> awaitable; one transaction
    read       (snapshot, scope, principal, call) -> ReadContext
    """

    def __init__(
        self,
        *,
        snapshot: Callable[[], Snapshot],
        tenant: Tenant,
        read: Callable[..., ReadContext],
        write: Callable[..., Awaitable[Reply]],
        models: Any,
        now_ms: Callable[[], int],
        definitions: Any,
        at_once: int,
    ):
        self._snapshot, self._tenant, self._read, self._write = snapshot, tenant, read, write
        self._models, self._now_ms, self._definitions = models, now_ms, definitions
        self._heap: list[Due] = []
        self._lanes = JobLanes(at_once)
        self._running: dict[asyncio.Task, Due] = {}
        self._held: dict[int, list[Due]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task | None = None
        self._runs: Counter[str] = Counter(dict.fromkeys(definitions, 0))
        self._failures: Counter[str] = Counter(dict.fromkeys(definitions, 0))
        self._stopping = False

    def start(self, owns: Callable[[int], bool]) -> None:
        """Begin with the jobs of the slots that are the shard's own."""
        with self._snapshot() as snapshot:
            self.add(jobs.unfinished(snapshot, filter(owns, snapshot.slots())))
        self._task = asyncio.get_running_loop().create_task(self._run())

    def add(self, due: list[Due]) -> None:
        """Jobs that a commit made or put back."""
        for item in due:
            if item.slot in self._held:
                self._held[item.slot].append(item)
            else:
                heapq.heappush(self._heap, item)
        self._wake.set()

    async def hold(self, slots: Collection[int]) -> None:
        """Begin no further job of these slots, and let the running ones reach their commit, as far as they can soon.

        Those that cannot are left where they are: like the jobs of a process that ended, they run again.
        """
        self._held |= {slot: [] for slot in slots}
        for due in [due for due in self._heap if due.slot in self._held] + self._lanes.remove(slots):
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
        """The slots have gone, and their jobs with them."""
        for slot in slots:
            self._held.pop(slot, None)
        self._heap = [due for due in self._heap if due.slot not in slots]
        heapq.heapify(self._heap)
        self._lanes.remove(slots)

    @property
    def depth(self) -> int:
        """Jobs running, and those queued for the next minute; alarms set for later do not wait for anything."""
        soon = self._now_ms() + JOBS_WAITING_SECONDS * 1000
        return sum(due.run_at <= soon for due in self._heap) + self._lanes.waiting() + len(self._running)

    def oldest_age_ms(self) -> int:
        """How long the most overdue queued job has waited, in milliseconds."""
        overdue = [due for due in (self._lanes.oldest(), self._heap[0].run_at if self._heap else None) if due is not None]
        return max(0, self._now_ms() - min(overdue)) if overdue else 0

    def lanes(self) -> dict[str, int]:
        """Figures of the named lanes."""
        return self._lanes.stats(self._now_ms())

    def attempts(self) -> dict[str, dict[str, int]]:
        """Attempts begun, and those that failed, by the job's name."""
        return {"attempts_total_by_kind": dict(self._runs), "failures_total_by_kind": dict(self._failures)}

    async def stop(self) -> None:
        """Take no further job; let the running ones reach their commit, as far as they can soon."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        hanging = [task for task, due in self._running.items() if due.lane]
        if hanging:
            _, hanging = await asyncio.wait(hanging, timeout=LANE_STOP_SECONDS)
        for task in hanging:
            task.cancel()
        if self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            while self._heap and self._heap[0].run_at <= self._now_ms():
                self._lanes.put(heapq.heappop(self._heap))
            while (due := self._lanes.take()) is not None:
                task = asyncio.get_running_loop().create_task(self._run_one(due.slot, due.tenant, due.job_id))
                self._running[task] = due
                task.add_done_callback(self._ended)
            wait = (self._heap[0].run_at - self._now_ms()) / 1000 if self._heap else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    def _ended(self, task: asyncio.Task) -> None:
        due = self._running.pop(task)
        self._lanes.done(due)
        self._wake.set()
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            log.error("a job could not record its end", exc_info=failure)
        if isinstance(failure, Unavailable):
            # The disk is full, or too many writes wait: the row is as it was, and must not be forgotten until the next start.
            self.add([due._replace(run_at=self._now_ms() + JOB_PUT_BACK_MS)])

    async def _run_one(self, slot: int, number: int, job_id: str) -> None:
        REQUEST_ID.set(job_id)  # in what is logged from here on
        with self._snapshot() as snapshot:
            found = self._tenant(snapshot, slot, number)
        if found is None:
            return
        principal, scope = found
        begun: list[jobs.JobRow | None] = [None]

        def begin(ctx: WriteContext) -> None:
            begun[0] = jobs.begin(ctx, job_id)

        await self._write(f"begin {job_id}", scope, principal, self._call(slot, job_id), begin)
        row = begun[0]
        if row is None:
            return
        call = self._call(slot, job_id, row)
        self._runs[row.name] += 1
        try:
            await self._attempt(scope, principal, call, row)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._failures[row.name] += 1
            reason = error.message if isinstance(error, ApiError) else f"{type(error).__name__}: {error}"
            log.warning("job %s (%s) attempt %d failed: %s", row.name, job_id, row.attempts, reason)
            await self._write(
                f"fail {job_id}", scope, principal, self._call(slot, job_id), lambda ctx: jobs.fail(ctx, job_id, reason, random.random())
            )

    async def _attempt(self, scope: Scope, principal: Principal, call: Call, row: jobs.JobRow) -> None:
        job = self._definitions[row.name]
        prepared = None
        if job.load is not None:
            with self._snapshot() as snapshot:
                prepared = job.load(self._read(snapshot, scope, principal, call), row.payload)
        if job.prepare is not None:
            async with asyncio.timeout(JOB_PREPARE_SECONDS_MAX):
                prepared = await job.prepare(prepared, row.payload, self._models)

        def finish(ctx: WriteContext) -> None:
            ctx.prepared = prepared
            jobs.complete(ctx, row.id, job.handler)

        await self._write(f"run {row.name}", scope, principal, call, finish)

    def _call(self, slot: int, job_id: str, row: jobs.JobRow | None = None) -> Call:
        name = f"job:{row.name}" if row is not None else "job"
        return Call(operation=name, slot=slot, now_ms=self._now_ms(), seed=os.urandom(32), request_id=job_id)
