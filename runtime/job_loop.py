"""Runs the shard's background jobs: a heap of what is due, a bounded number at once, on the shard's own event loop.

The heap is derived: it is rebuilt from the `jobs_due` tables when the shard opens and fed by every commit afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import os
import random
from collections.abc import Awaitable, Callable
from typing import Any

from runtime import jobs
from runtime.errors import ApiError
from runtime.limits import JOB_PREPARE_SECONDS_MAX, JOB_PUT_BACK_MS
from runtime.operation import Call, Principal, ReadContext, Reply, WriteContext
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
        self._heap: list[tuple[int, int, int, str]] = []
        self._running: set[asyncio.Task] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task | None = None
        self._stopping = False
        self._room = asyncio.Semaphore(at_once)

    def start(self) -> None:
        with self._snapshot() as snapshot:
            self.add(jobs.unfinished(snapshot, snapshot.slots()))
        self._task = asyncio.get_running_loop().create_task(self._run())

    def add(self, due: list[tuple[int, int, int, str]]) -> None:
        """Jobs that a commit made or put back, as (run_at, slot, tenant, job_id)."""
        for item in due:
            heapq.heappush(self._heap, item)
        self._wake.set()

    @property
    def depth(self) -> int:
        """Jobs queued or running."""
        return len(self._heap) + len(self._running)

    def oldest_age_ms(self) -> int:
        """How long the most overdue queued job has waited, in milliseconds."""
        return max(0, self._now_ms() - self._heap[0][0]) if self._heap else 0

    async def stop(self) -> None:
        """Take no further job; let the running ones reach their commit."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            wait = (self._heap[0][0] - self._now_ms()) / 1000 if self._heap else None
            if wait is not None and wait <= 0:
                await self._room.acquire()
                _, slot, number, job_id = heapq.heappop(self._heap)
                task = asyncio.get_running_loop().create_task(self._run_to_an_end(slot, number, job_id))
                self._running.add(task)
                task.add_done_callback(self._ended)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    def _ended(self, task: asyncio.Task) -> None:
        self._running.discard(task)
        self._room.release()

    async def _run_to_an_end(self, slot: int, number: int, job_id: str) -> None:
        """Run it; when its beginning or its end could not be written (the disk is full, too many writes wait), try again later."""
        try:
            await self._run_one(slot, number, job_id)
        except Exception:
            log.error("job %s could not be recorded and is tried again", job_id, exc_info=True)
            self.add([(self._now_ms() + JOB_PUT_BACK_MS, slot, number, job_id)])

    async def _run_one(self, slot: int, number: int, job_id: str) -> None:
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
        try:
            await self._attempt(scope, principal, call, row)
        except asyncio.CancelledError:
            raise
        except Exception as error:
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
