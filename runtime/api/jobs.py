"""Background work, durable from the transaction that asked for it.

    queued → processing → completed
                 ↘ queued (another attempt, later)
                 ↘ failed (the last attempt failed; the reason is kept)

A job is a row, written in the transaction of the write that needs it. The shard's loop runs it in
up to four steps: count the attempt (one commit, so that a job that kills its process is noticed),
`load` on a snapshot, `prepare` outside any transaction, and the handler in one transaction together
with the job's completion. `prepare`, which may speak to others, is not called before the job itself
is as durable as an acknowledged write. So an effect happens once: a crash before that last commit
leaves the job queued, a crash after it leaves nothing to do. A shard has one process, so claims
need no lease.

    jobs      (ordinal,)                    -> JobRow
    job_ids   (job_id,)                     -> ordinal
    jobs_due  (run_at, tenant, job_id)      -> its concurrency group  of the slot: what the loop
                                               rebuilds its queue from when it starts
    job_fields  bitmaps: status, name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.api.call import Due
from runtime.errors import NotFound
from runtime.limits import (
    EXPIRED_ROWS_SWEPT_PER_WRITE,
    JOB_ATTEMPTS_LOST_MAX,
    JOBS_RETENTION_SECONDS,
)
from runtime.timestamps import iso
from storage.indexes import BitmapIndex
from storage.store import Scope, Table

if TYPE_CHECKING:
    from runtime.api.context import ReadContext, WriteContext

QUEUED, PROCESSING, COMPLETED, FAILED = "queued", "processing", "completed", "failed"
STATES = (QUEUED, PROCESSING, COMPLETED, FAILED)


class JobRow(msgspec.Struct):
    """Times in Unix milliseconds.

    group  stored as `lane`: its concurrency group, "" for the shard's own
    lost  attempts in a row that never recorded an end, because their process ended first, or was
          stopping and did not wait
    """

    id: str
    name: str
    payload: dict[str, Any]
    status: str
    created_at: int
    run_at: int
    attempts: int = 0
    progress: float = 0.0
    started_at: int | None = None
    finished_at: int | None = None
    result: Any = None
    error: str | None = None
    group: str = msgspec.field(default="", name="lane")
    lost: int = 0


JOBS: Table[JobRow] = Table(
    "jobs", key=("ordinal",), row=JobRow, doc="background work and its results, a week long"
)
JOB_IDS: Table[bytes] = Table(
    "job_ids", key=("job_id",), row=bytes, doc="job id to ordinal, 4 bytes big endian"
)
JOBS_DUE: Table[bytes] = Table(
    "jobs_due",
    key=("run_at", "tenant", "job_id"),
    row=bytes,
    level="slot",
    doc="unfinished jobs of all tenants of a slot, by time",
)
JOB_FIELDS = BitmapIndex("job_fields", fields=("all", "status", "name"), plain=("status", "name"))
TABLES = (JOBS, JOB_IDS, JOBS_DUE)


@dataclass(frozen=True, slots=True)
class Again:
    """A handler's way to say "one bounded step is done, run me again": the job stays, with a new
    payload.
    """

    payload: Mapping[str, Any]
    progress: float = 0.0
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A handler's way to say "this can never succeed": what the handler wrote stays, and the job is
    failed for good.
    """

    reason: str


def enqueue(
    ctx: WriteContext, name: str, payload: Mapping[str, Any], *, delay_ms: int = 0, group: str = ""
) -> str:
    """Add a job in this transaction; -> its id. Raises KeyError for a name no plugin declares,
    PermissionError where a tenant asks for work on a slot's accounts.
    """
    job = ctx.registry.jobs[name]
    if job.accounts and ctx.scope.tenant:
        raise PermissionError(f"job {name!r} is the slot's, and this is the context of a tenant")
    row = JobRow(
        ctx.new_id("job"),
        job.name,
        dict(payload),
        QUEUED,
        created_at=ctx.now,
        run_at=ctx.now + delay_ms,
        group=group,
    )
    return _add(ctx, row)


def record(ctx: WriteContext, name: str, result: Any) -> str:
    """Add a job whose work this transaction has done already, for whoever is told to ask after it;
    -> its id. Raises KeyError for a name no plugin declares.
    """
    row = JobRow(
        ctx.new_id("job"),
        ctx.registry.jobs[name].name,
        {},
        COMPLETED,
        created_at=ctx.now,
        run_at=ctx.now,
        progress=1.0,
        started_at=ctx.now,
        finished_at=ctx.now,
        result=result,
    )
    return _add(ctx, row)


def _add(ctx: WriteContext, row: JobRow) -> str:
    ordinal = ctx.next_ordinal("jobs")
    ctx[JOB_IDS].put((row.id,), ordinal.to_bytes(4, "big"))
    fields = ctx.index(JOB_FIELDS)
    fields.add(ordinal, "all", 1)
    fields.add(ordinal, "name", row.name)
    _store(ctx, ordinal, row, None)
    _sweep(ctx)
    return row.id


def find(ctx: ReadContext, job_id: str) -> tuple[int, JobRow] | None:
    """(ordinal, row) of a job, or None."""
    number = ctx[JOB_IDS].get(job_id)
    if number is None:
        return None
    ordinal = int.from_bytes(number, "big")
    row = ctx[JOBS].get(ordinal)
    return None if row is None else (ordinal, row)


def row(ctx: ReadContext, job_id: str) -> JobRow:
    """The row of a job that is there. LookupError when it is not."""
    return ctx[JOBS].row(int.from_bytes(ctx[JOB_IDS].row(job_id), "big"))


def begin(ctx: WriteContext, job_id: str) -> JobRow | None:
    """Count an attempt before it is made; None when the job is gone or done, or has taken its
    process with it too often.
    """
    found = find(ctx, job_id)
    if found is None or found[1].status not in (QUEUED, PROCESSING):
        return None
    ordinal, row = found
    lost = row.lost + 1 if row.status == PROCESSING else 0
    if lost >= JOB_ATTEMPTS_LOST_MAX:
        fail(
            ctx,
            job_id,
            f"The process ended in the middle of {lost} attempts in a row.",
            0.0,
            final=True,
        )
        return None
    started = msgspec.structs.replace(
        row,
        status=PROCESSING,
        attempts=row.attempts + 1,
        lost=lost,
        started_at=row.started_at or ctx.now,
    )
    _store(ctx, ordinal, started, row)
    return started


def complete(ctx: WriteContext, job_id: str, run: Any) -> None:
    """Run the handler `run(ctx, payload)` and record its end, in this one transaction. Does nothing
    if the job is gone or done.
    """
    found = find(ctx, job_id)
    if found is None or found[1].status != PROCESSING:
        return
    ordinal, row = found
    result = run(ctx, row.payload)
    if not isinstance(result, Again) and not ctx.registry.jobs[row.name].keep:
        forget(ctx, ordinal, row)
        return
    if isinstance(result, Again):
        ended = msgspec.structs.replace(
            row,
            status=QUEUED,
            payload=dict(result.payload),
            progress=result.progress,
            attempts=0,
            run_at=ctx.now + result.delay_ms,
        )
    elif isinstance(result, GiveUp):
        ended = msgspec.structs.replace(
            row, status=FAILED, finished_at=ctx.now, error=result.reason
        )
    else:
        ended = msgspec.structs.replace(
            row, status=COMPLETED, progress=1.0, finished_at=ctx.now, result=result, error=None
        )
    _store(ctx, ordinal, ended, row)


def fail(
    ctx: WriteContext, job_id: str, reason: str, chance: float, *, final: bool = False
) -> None:
    """Record a failed attempt: another one later, or `failed` for good with the reason."""
    found = find(ctx, job_id)
    if found is None or found[1].status != PROCESSING:
        return
    ordinal, row = found
    job = ctx.registry.jobs[row.name]
    if final or row.attempts >= job.retry.attempts:
        ended = msgspec.structs.replace(row, status=FAILED, finished_at=ctx.now, error=reason)
        if job.failed is not None:
            job.failed(ctx, row.payload, reason)
    else:
        ended = msgspec.structs.replace(
            row,
            status=QUEUED,
            run_at=ctx.now + job.retry.wait_ms(row.attempts, chance),
            error=reason,
        )
    _store(ctx, ordinal, ended, row)


def _store(ctx: WriteContext, ordinal: int, row: JobRow, before: JobRow | None) -> None:
    """Write the row, keep its bitmaps and its place in the slot's due list, and tell the loop when
    it is to run.
    """
    fields, due = ctx.index(JOB_FIELDS), ctx._of_slot(JOBS_DUE)
    if before is None or before.status != row.status:
        if before is not None:
            fields.remove(ordinal, "status", before.status)
        fields.add(ordinal, "status", row.status)
    if before is not None:
        due.delete(before.run_at, ctx.scope.tenant, row.id)
    if row.status in (QUEUED, PROCESSING):
        due.put((row.run_at, ctx.scope.tenant, row.id), row.group.encode())
    if row.status == QUEUED:
        of = "" if before is not None else ctx.call.trace
        ctx.due.append(Due(row.run_at, ctx.scope.slot, ctx.scope.tenant, row.id, row.group, of))
    ctx[JOBS].put((ordinal,), row)


def _sweep(ctx: WriteContext) -> None:
    """Forget a few jobs that ended more than a week ago."""
    oldest = ctx.now - JOBS_RETENTION_SECONDS * 1000
    for (ordinal,), row in ctx[JOBS].scan(limit=EXPIRED_ROWS_SWEPT_PER_WRITE):
        if row.created_at >= oldest:
            return
        if row.finished_at is not None and row.finished_at < oldest:
            forget(ctx, ordinal, row)


def forget(ctx: WriteContext, ordinal: int, row: JobRow) -> None:
    """Remove a job and all that points at it."""
    fields = ctx.index(JOB_FIELDS)
    for field, value in (("all", 1), ("status", row.status), ("name", row.name)):
        fields.remove(ordinal, field, value)
    ctx._of_slot(JOBS_DUE).delete(row.run_at, ctx.scope.tenant, row.id)
    ctx[JOB_IDS].delete(row.id)
    ctx[JOBS].delete(ordinal)


def unfinished(reader: Any, slots: Iterable[int]) -> list[Due]:
    """Every unfinished job, for a loop that starts."""
    found = []
    for slot in slots:
        due = reader.bind(JOBS_DUE, Scope.of_slot(slot))
        found += [
            Due(run_at, slot, tenant, job_id, group.decode())
            for (run_at, tenant, job_id), group in due.scan()
        ]
    return found


def view(row: JobRow) -> dict[str, Any]:
    """Make the view of a job."""
    return {
        "job_id": row.id,
        "status": row.status,
        "progress": row.progress,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at) if row.started_at is not None else None,
        "finished_at": iso(row.finished_at) if row.finished_at is not None else None,
        "attempts": row.attempts,
        "result": row.result,
        "error": row.error,
    }


def get(ctx: ReadContext, job_id: str, names: tuple[str, ...]) -> JobRow:
    """The job of one of these kinds, or 404 (403 for another tenant's id)."""
    found = find(ctx, ctx.check_id("job", job_id))
    if found is None or found[1].name not in names:
        raise NotFound("There is no job with this id.")
    return found[1]
