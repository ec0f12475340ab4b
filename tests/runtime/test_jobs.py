"""Background jobs: attempts, reasons, steps, and effects that happen once."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runtime import auth, job_loop, jobs, write_lane
from runtime.errors import Unavailable
from runtime.limits import JOB_ATTEMPTS_LOST_MAX, JOBS_RETENTION_SECONDS, LANE_JOBS_AT_ONCE
from runtime.operation import Body, Call, Idempotency, Kind, Operation, WriteContext
from runtime.plugin import Job, Plugin, RetryStrategy
from tests.plugins import Desk
from tests.worlds import desk_of

HOUR_MS = 3_600_000


def work(handler, **fields) -> Plugin:
    """A plugin that enqueues the job under test, now or much later, looks at it, and counts its effects."""
    common = {"scope": "write", "response": None, "spec": "test", "summary": ""}
    start = Operation(
        name="work.start", method="POST", path="/v1/work", kind=Kind.WRITE, idempotency=Idempotency.CACHED, body=Body,
        handler=lambda ctx, body: {"job_id": ctx.enqueue("work.run", {"step": 0})}, **common,
    )  # fmt: skip
    look = Operation(
        name="work.look", method="GET", path="/v1/work/{id}", kind=Kind.READ,
        handler=lambda ctx, body: jobs.view(jobs.get(ctx, ctx.path["id"], ("work.run",))), **common,
    )  # fmt: skip
    effects = Operation(
        name="work.effects", method="POST", path="/v1/effects", kind=Kind.WRITE, idempotency=Idempotency.CACHED,
        handler=lambda ctx, body: {"count": ctx.next_ordinal("effects")}, **common,
    )  # fmt: skip
    later = Operation(
        name="work.later", method="POST", path="/v1/later", kind=Kind.WRITE, idempotency=Idempotency.CACHED, body=Body,
        handler=lambda ctx, body: {"job_id": ctx.enqueue("work.run", {"step": 0}, delay_ms=10**9)}, **common,
    )  # fmt: skip
    return Plugin(name="work", operations=(start, later, look, effects), jobs=(Job("work.run", handler, **fields),))


def start(desk: Desk) -> tuple[str, str]:
    me = desk.register()
    return me, desk("work.start", {}, who=me).body["job_id"]


def test_a_job_that_fails_is_retried_and_its_effect_happens_once(tmp_path: Path) -> None:
    tries = []

    async def prepare(loaded, payload, models):
        tries.append(payload)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        return "prepared"

    def handler(ctx, payload):
        return {"number": ctx.next_ordinal("effects"), "prepared": ctx.prepared}

    with desk_of(tmp_path, work(handler, prepare=prepare, retry=RetryStrategy(base_ms=10))) as desk:
        me, job_id = start(desk)
        desk.settle()
        done = desk("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"], done["progress"]) == ("completed", 3, 1.0)
        assert done["result"] == {"number": 0, "prepared": "prepared"}
        assert done["created_at"] <= done["started_at"] <= done["finished_at"]


def test_a_poison_job_ends_as_failed_with_its_reason_and_leaves_nothing(tmp_path: Path) -> None:
    told = []

    def handler(ctx, payload):
        ctx.next_ordinal("effects")
        raise Unavailable("the well is dry")

    plugin = work(handler, failed=lambda ctx, payload, reason: told.append(reason), retry=RetryStrategy(attempts=2, base_ms=5))
    with desk_of(tmp_path, plugin) as desk:
        me, job_id = start(desk)
        desk.settle()
        done = desk("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"], done["error"]) == ("failed", 2, "the well is dry")
        assert told == ["the well is dry"]
        assert desk("work.effects", who=me).body["count"] == 0


def test_a_job_that_takes_its_process_with_it_ends_as_failed(tmp_path: Path) -> None:
    """An attempt that began and recorded no end is what a killed process leaves."""
    told = []
    plugin = work(lambda ctx, payload: {"done": True}, failed=lambda ctx, payload, reason: told.append(reason))
    with desk_of(tmp_path, plugin) as desk:
        me = desk.register()
        job_id = desk("work.later", {}, who=me).body["job_id"]
        begun = [begin(desk, me, job_id) for _ in range(JOB_ATTEMPTS_LOST_MAX + 2)]
        assert [row is not None for row in begun] == [True] * JOB_ATTEMPTS_LOST_MAX + [False] * 2
        done = desk("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"]) == ("failed", JOB_ATTEMPTS_LOST_MAX)
        assert told == [done["error"]] == [f"The process ended in the middle of {JOB_ATTEMPTS_LOST_MAX} attempts in a row."]


def begin(desk: Desk, token: str, job_id: str) -> jobs.JobRow | None:
    """Begin an attempt by hand."""
    scope = desk.scope_of(token)

    def run(transaction):
        principal, _ = auth.tenant(transaction, scope.slot, scope.tenant)
        call = Call("test", scope.slot, desk.now_ms, b"s" * 32, "test")
        return jobs.begin(WriteContext(transaction, scope, call, desk.shard.environment, principal), job_id)

    return desk.shard.store.write(run).result


def test_a_job_that_could_not_be_recorded_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many writes wait, or the disk is full: the job is neither lost nor left until the next start."""
    monkeypatch.setattr(job_loop, "JOB_PUT_BACK_MS", 5)
    refusals = iter(["begin", "begin", "run"])
    with desk_of(tmp_path, work(lambda ctx, payload: {"number": ctx.next_ordinal("effects")})) as desk:
        write = desk.shard._jobs._write

        async def refused_at_times(label, *arguments):
            if (refused := next(refusals, None)) is not None:
                raise Unavailable(f"no room to {refused}")
            return await write(label, *arguments)

        desk.shard._jobs._write = refused_at_times
        me, job_id = start(desk)
        desk.settle()
        done = desk("work.look", who=me, id=job_id).body
        assert (done["status"], done["result"]) == ("completed", {"number": 0})


def test_a_job_that_gives_up_is_failed_at_once_and_keeps_what_it_wrote(tmp_path: Path) -> None:
    def handler(ctx, payload):
        ctx.next_ordinal("effects")
        return jobs.GiveUp("the well was never dug")

    with desk_of(tmp_path, work(handler)) as desk:
        me, job_id = start(desk)
        desk.settle()
        done = desk("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"], done["error"]) == ("failed", 1, "the well was never dug")
        assert desk("work.effects", who=me).body["count"] == 1


def test_a_job_in_steps_goes_on_after_a_restart(tmp_path: Path) -> None:
    def handler(ctx, payload):
        step = ctx.next_ordinal("effects")
        if step == 4:
            return {"steps": payload["step"]}
        return jobs.Again({"step": payload["step"] + 1}, progress=(step + 1) / 5, delay_ms=20)

    with desk_of(tmp_path, work(handler)) as desk:
        me, job_id = start(desk)
        deadline = time.monotonic() + 5
        while desk("work.look", who=me, id=job_id).body["progress"] == 0:
            assert time.monotonic() < deadline
        desk.reopen()
        desk.settle()
        done = desk("work.look", who=me, id=job_id).body
        assert done["status"] == "completed" and done["result"] == {"steps": 4}


def test_a_job_of_another_account_is_forbidden_and_an_unknown_one_missing(tmp_path: Path) -> None:
    with desk_of(tmp_path, work(lambda ctx, payload: None)) as desk:
        me, job_id = start(desk)
        eve = desk.register("eve@example.com", "Eve")
        assert desk("work.look", who=eve, id=job_id).status == 403
        assert desk("work.look", who=me, id=job_id[:-1] + ("0" if job_id[-1] != "0" else "1")).status == 404


def test_jobs_that_ended_long_ago_are_forgotten(tmp_path: Path) -> None:
    with desk_of(tmp_path, work(lambda ctx, payload: None)) as desk:
        me, job_id = start(desk)
        desk.settle()
        desk.now_ms += JOBS_RETENTION_SECONDS * 1000 + 120_000
        desk("work.start", {}, who=me)
        assert desk("work.look", who=me, id=job_id).status == 404


def test_a_job_that_keeps_no_record_is_gone_when_it_is_done(tmp_path: Path) -> None:
    with desk_of(tmp_path, work(lambda ctx, payload: {"number": ctx.next_ordinal("effects")}, keep=False)) as desk:
        me, job_id = start(desk)
        desk.settle()
        assert desk("work.look", who=me, id=job_id).status == 404
        assert desk("work.effects", who=me).body["count"] == 1


def test_jobs_of_lanes_keep_their_lane_and_do_not_hold_up_a_stop(tmp_path: Path) -> None:
    """The second lane's job runs although the first one's hangs; both are there again after a restart."""
    hanging, ran = [True], []

    async def prepare(loaded, payload, models):
        ran.append(payload["lane"])
        if payload["lane"] == "a" and hanging[0]:
            await asyncio.Event().wait()

    def begin(ctx, body):
        for lane in ["a"] * (LANE_JOBS_AT_ONCE + 2) + ["b"]:
            ctx.enqueue("work.run", {"lane": lane}, lane=lane)

    plugin = work(lambda ctx, payload: ctx.next_ordinal("effects"), prepare=prepare)
    begins = replace(plugin.operations[0], handler=begin)
    with desk_of(tmp_path, replace(plugin, operations=(begins, *plugin.operations[1:]))) as desk:
        me = desk.register()
        desk("work.start", {}, who=me)
        deadline = time.monotonic() + 5
        while desk("work.look", who=me, id="job_1").status != 404 or desk.shard._jobs.lanes()["open"] != 1:
            assert time.monotonic() < deadline
        assert sorted(ran) == ["a"] * LANE_JOBS_AT_ONCE + ["b"]
        assert desk.shard._jobs.lanes()["waiting"] == 2 and desk.shard._jobs.depth == LANE_JOBS_AT_ONCE + 2
        with desk.shard.store.snapshot() as snapshot:
            assert [due.lane for due in jobs.unfinished(snapshot, snapshot.slots())] == ["a"] * (LANE_JOBS_AT_ONCE + 2)
        hanging[0] = False
        desk.reopen()
        desk.settle()
        assert desk("work.effects", who=me).body["count"] == LANE_JOBS_AT_ONCE + 3


def test_a_job_whose_writes_are_refused_for_a_while_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = work(lambda ctx, payload: {"number": ctx.next_ordinal("effects")})
    later = replace(plugin.operations[0], handler=lambda ctx, body: {"job_id": ctx.enqueue("work.run", {"step": 0}, delay_ms=HOUR_MS)})
    with desk_of(tmp_path, replace(plugin, operations=(later, *plugin.operations[1:]))) as desk:
        me, job_id = start(desk)
        loop = desk.shard._jobs
        due = loop._heap.pop()
        monkeypatch.setattr(write_lane, "WRITE_QUEUE_MAX", 0)
        loop.add([due._replace(run_at=0)])
        deadline = time.monotonic() + 5
        while not (loop._heap and loop._heap[0].run_at > 0):
            desk("work.look", who=me, id=job_id)
            assert time.monotonic() < deadline
        monkeypatch.undo()
        desk.settle()
        assert desk("work.look", who=me, id=job_id).body["status"] == "completed"
