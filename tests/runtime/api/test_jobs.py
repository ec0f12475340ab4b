"""Background jobs: attempts, reasons, steps, and effects that happen once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.api import jobs, tenants
from runtime.api.context import WriteContext
from runtime.api.operation import Body, Call, Idempotency, Read, Write
from runtime.api.plugin import Job, Plugin, RetryStrategy
from runtime.errors import Unavailable
from runtime.limits import GROUP_JOBS_AT_ONCE, JOB_ATTEMPTS_LOST_MAX, JOBS_RETENTION_SECONDS
from runtime.shard import job_loop, writer
from tests.support.shard_harness import ShardHarness
from tests.support.worlds import shard_harness


def work(handler, **fields) -> Plugin:
    """A plugin that enqueues the job under test, now or much later, looks at it, and counts its
    effects.
    """
    common = {"scope": "write", "response": None, "summary": ""}
    start = Write(
        name="work.start",
        method="POST",
        path="/v1/work",
        idempotency=Idempotency.CACHED,
        body=Body,
        handler=lambda ctx, body: {"job_id": ctx.enqueue("work.run", {"step": 0})},
        **common,
    )
    look = Read(
        name="work.look",
        method="GET",
        path="/v1/work/{id}",
        handler=lambda ctx, body: jobs.view(jobs.get(ctx, ctx.path["id"], ("work.run",))),
        **common,
    )
    effects = Write(
        name="work.effects",
        method="POST",
        path="/v1/effects",
        idempotency=Idempotency.CACHED,
        handler=lambda ctx, body: {"count": ctx.next_ordinal("effects")},
        **common,
    )
    later = Write(
        name="work.later",
        method="POST",
        path="/v1/later",
        idempotency=Idempotency.CACHED,
        body=Body,
        handler=lambda ctx, body: {"job_id": ctx.enqueue("work.run", {"step": 0}, delay_ms=10**9)},
        **common,
    )
    return Plugin(
        name="work",
        operations=(start, later, look, effects),
        jobs=(Job("work.run", handler, **fields),),
    )


def start(harness: ShardHarness) -> tuple[str, str]:
    me = harness.register()
    return me, harness("work.start", {}, who=me).body["job_id"]


def test_a_job_that_fails_is_retried_and_its_effect_happens_once(tmp_path: Path) -> None:
    tries = []

    async def prepare(steps, loaded, payload, models):
        tries.append(payload)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        return "prepared"

    def handler(ctx, payload):
        return {"number": ctx.next_ordinal("effects"), "prepared": ctx.prepared}

    with shard_harness(
        tmp_path, work(handler, prepare=prepare, retry=RetryStrategy(base_ms=10))
    ) as harness:
        me, job_id = start(harness)
        harness.settle()
        done = harness("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"], done["progress"]) == ("completed", 3, 1.0)
        assert done["result"] == {"number": 0, "prepared": "prepared"}
        assert done["created_at"] <= done["started_at"] <= done["finished_at"]


def test_a_job_runs_reads_of_its_account_and_nothing_else(tmp_path: Path) -> None:
    async def prepare(steps, loaded, payload, models):
        with pytest.raises(ValueError, match="reads"):
            await steps.run("work.effects")
        with pytest.raises(ValueError, match="reads"):
            await steps.run("auth.login", {"email": "ada@example.com", "password": "correct horse"})
        ran = await steps.run("work.look", id=payload["id"])
        return ran, await steps.look(lambda ctx: (ctx.principal.tenant_id, ctx[jobs.JOBS].count()))

    def handler(ctx, payload):
        ran, looked = ctx.prepared
        return {"ran": ran["status"], "looked": looked}

    plugin = work(handler, prepare=prepare)
    asked = replace(
        plugin.operations[0],
        handler=lambda ctx, body: {
            "job_id": (first := ctx.enqueue("work.run", {}, delay_ms=10**9))
            and ctx.enqueue("work.run", {"id": first})
        },
    )
    with shard_harness(
        tmp_path, replace(plugin, operations=(asked, *plugin.operations[1:]))
    ) as harness:
        me, job_id = start(harness)
        harness.settle()
        done = harness("work.look", who=me, id=job_id).body
        account = harness("auth.me", who=me).body["user_id"]
        assert done["result"] == {"ran": "queued", "looked": [account, 2]}


def test_what_is_rehearsed_leaves_nothing(tmp_path: Path) -> None:
    def settle(ctx):
        return ctx.next_ordinal("effects"), ctx.enqueue("work.run", {}) != ""

    def handler(ctx, payload):
        rehearsed = [ctx.rehearse(settle) for _ in range(2)]
        with pytest.raises(ZeroDivisionError):
            ctx.rehearse(lambda within: (within.next_ordinal("effects"), 1 // 0))
        return {"rehearsed": rehearsed, "number": ctx.next_ordinal("effects")}

    with shard_harness(tmp_path, work(handler)) as harness:
        me, job_id = start(harness)
        harness.settle()
        done = harness("work.look", who=me, id=job_id).body
        assert done["result"] == {"rehearsed": [[0, True], [0, True]], "number": 0}
        assert harness.status()["jobs_waiting"] == 0
        assert harness("work.effects", who=me).body == {"count": 1}


def test_a_poison_job_ends_as_failed_with_its_reason_and_leaves_nothing(tmp_path: Path) -> None:
    told = []

    def handler(ctx, payload):
        ctx.next_ordinal("effects")
        raise Unavailable("the well is dry")

    plugin = work(
        handler,
        failed=lambda ctx, payload, reason: told.append(reason),
        retry=RetryStrategy(attempts=2, base_ms=5),
    )
    with shard_harness(tmp_path, plugin) as harness:
        me, job_id = start(harness)
        harness.settle()
        done = harness("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"], done["error"]) == ("failed", 2, "the well is dry")
        assert told == ["the well is dry"]
        assert harness("work.effects", who=me).body["count"] == 0


def test_a_job_that_takes_its_process_with_it_ends_as_failed(tmp_path: Path) -> None:
    """An attempt that began and recorded no end is what a killed process leaves."""
    told = []
    plugin = work(
        lambda ctx, payload: {"done": True}, failed=lambda ctx, payload, reason: told.append(reason)
    )
    with shard_harness(tmp_path, plugin) as harness:
        me = harness.register()
        job_id = harness("work.later", {}, who=me).body["job_id"]
        begun = [begin(harness, me, job_id) for _ in range(JOB_ATTEMPTS_LOST_MAX + 2)]
        assert [row is not None for row in begun] == [True] * JOB_ATTEMPTS_LOST_MAX + [False] * 2
        done = harness("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"]) == ("failed", JOB_ATTEMPTS_LOST_MAX)
        assert (
            told
            == [done["error"]]
            == [f"The process ended in the middle of {JOB_ATTEMPTS_LOST_MAX} attempts in a row."]
        )


def begin(harness: ShardHarness, token: str, job_id: str) -> jobs.JobRow | None:
    """Begin an attempt by hand."""
    scope = harness.scope_of(token)

    def run(transaction):
        principal, _ = tenants.tenant(transaction, scope.slot, scope.tenant)
        call = Call("test", scope.slot, harness.now_ms, b"s" * 32, "test")
        return jobs.begin(
            WriteContext(transaction, scope, call, harness.shard.environment, principal), job_id
        )

    return harness.shard.store.write(run).result


def test_a_job_that_could_not_be_recorded_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many writes wait, or the disk is full: the job is neither lost nor left until the next
    start.
    """
    monkeypatch.setattr(job_loop, "JOB_PUT_BACK_MS", 5)
    refusals = iter(range(3))
    with shard_harness(
        tmp_path, work(lambda ctx, payload: {"number": ctx.next_ordinal("effects")})
    ) as harness:
        job_writer = harness.shard.parts.writer
        submit = job_writer.submit

        async def refused_at_times(work, label, ended=None, account=None, joint=None):
            if label.startswith("begin ") and next(refusals, None) is not None:
                ended(None)
                raise Unavailable("no room")
            return await submit(work, label, ended, account, joint)

        job_writer.submit = refused_at_times
        me, job_id = start(harness)
        harness.settle()
        done = harness("work.look", who=me, id=job_id).body
        assert (done["status"], done["result"]) == ("completed", {"number": 0})


def test_what_is_asked_for_at_once_is_done_whatever_clock_dated_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a gateway whose clock is ahead, or before the clock was set back; what is to be done later
    waits.
    """
    monkeypatch.setattr(job_loop, "JOBS_STOP_SECONDS", 0.01)
    hangs = [True]

    async def prepare(steps, loaded, payload, models):
        if hangs[0]:
            await asyncio.Event().wait()

    with shard_harness(
        tmp_path, work(lambda ctx, payload: {"done": True}, prepare=prepare)
    ) as harness:
        harness.now_ms += 86_400_000
        me, begun = start(harness)
        harness.until(lambda: harness.status()["jobs_waiting"] == 1)
        harness.reopen()
        hangs[0] = False
        harness.reopen()
        asked, later = (
            harness(name, {}, who=me).body["job_id"] for name in ("work.start", "work.later")
        )
        harness.settle()
        states = [
            harness("work.look", who=me, id=each).body["status"] for each in (begun, asked, later)
        ]
        assert states == ["completed", "completed", "queued"]


def test_a_job_that_gives_up_is_failed_at_once_and_keeps_what_it_wrote(tmp_path: Path) -> None:
    def handler(ctx, payload):
        ctx.next_ordinal("effects")
        return jobs.GiveUp("the well was never dug")

    with shard_harness(tmp_path, work(handler)) as harness:
        me, job_id = start(harness)
        harness.settle()
        done = harness("work.look", who=me, id=job_id).body
        assert (done["status"], done["attempts"], done["error"]) == (
            "failed",
            1,
            "the well was never dug",
        )
        assert harness("work.effects", who=me).body["count"] == 1


def test_a_job_in_steps_goes_on_after_a_restart(tmp_path: Path) -> None:
    def handler(ctx, payload):
        step = ctx.next_ordinal("effects")
        if step == 4:
            return {"steps": payload["step"]}
        return jobs.Again({"step": payload["step"] + 1}, progress=(step + 1) / 5, delay_ms=20)

    with shard_harness(tmp_path, work(handler)) as harness:
        me, job_id = start(harness)
        harness.until(lambda: harness("work.look", who=me, id=job_id).body["progress"] > 0)
        harness.reopen()
        harness.settle()
        done = harness("work.look", who=me, id=job_id).body
        assert done["status"] == "completed" and done["result"] == {"steps": 4}


def test_a_job_of_another_account_is_forbidden_and_an_unknown_one_missing(tmp_path: Path) -> None:
    with shard_harness(tmp_path, work(lambda ctx, payload: None)) as harness:
        me, job_id = start(harness)
        eve = harness.register("eve@example.com", "Eve")
        assert harness("work.look", who=eve, id=job_id).status == 403
        assert (
            harness(
                "work.look", who=me, id=job_id[:-1] + ("0" if job_id[-1] != "0" else "1")
            ).status
            == 404
        )


def test_jobs_that_ended_long_ago_are_forgotten(tmp_path: Path) -> None:
    with shard_harness(tmp_path, work(lambda ctx, payload: None)) as harness:
        me, job_id = start(harness)
        harness.settle()
        harness.now_ms += JOBS_RETENTION_SECONDS * 1000 + 120_000
        harness("work.start", {}, who=me)
        assert harness("work.look", who=me, id=job_id).status == 404


def test_a_job_that_keeps_no_record_is_gone_when_it_is_done(tmp_path: Path) -> None:
    with shard_harness(
        tmp_path, work(lambda ctx, payload: {"number": ctx.next_ordinal("effects")}, keep=False)
    ) as harness:
        me, job_id = start(harness)
        harness.settle()
        assert harness("work.look", who=me, id=job_id).status == 404
        assert harness("work.effects", who=me).body["count"] == 1


def test_jobs_of_groups_keep_their_group_and_do_not_hold_up_a_stop(tmp_path: Path) -> None:
    """The second group's job runs although the first one's hangs; both are there again after a
    restart.
    """
    hanging, ran = [True], []

    async def prepare(steps, loaded, payload, models):
        ran.append(payload["group"])
        if payload["group"] == "a" and hanging[0]:
            await asyncio.Event().wait()

    def begin(ctx, body):
        for group in ["a"] * (GROUP_JOBS_AT_ONCE + 2) + ["b"]:
            ctx.enqueue("work.run", {"group": group}, group=group)

    plugin = work(lambda ctx, payload: ctx.next_ordinal("effects"), prepare=prepare)
    begins = replace(plugin.operations[0], handler=begin)
    with shard_harness(
        tmp_path, replace(plugin, operations=(begins, *plugin.operations[1:]))
    ) as harness:
        me = harness.register()
        harness("work.start", {}, who=me)
        harness.until(
            lambda: len(ran) == GROUP_JOBS_AT_ONCE + 1 and harness.status()["lanes"]["open"] == 1
        )
        assert sorted(ran) == ["a"] * GROUP_JOBS_AT_ONCE + ["b"]
        assert (
            harness.status()["lanes"]["waiting"] == 2
            and harness.status()["jobs_waiting"] == GROUP_JOBS_AT_ONCE + 2
        )
        with harness.shard.store.snapshot() as snapshot:
            assert [due.group for due in jobs.unfinished(snapshot, snapshot.slots())] == ["a"] * (
                GROUP_JOBS_AT_ONCE + 2
            )
        hanging[0] = False
        harness.reopen()
        harness.settle()
        assert harness("work.effects", who=me).body["count"] == GROUP_JOBS_AT_ONCE + 3


def test_a_job_that_still_prepares_does_not_hold_up_a_stop_and_runs_again(tmp_path: Path) -> None:
    hanging, preparing = [True], []

    async def prepare(steps, loaded, payload, models):
        preparing.append(payload)
        if hanging[0]:
            await asyncio.Event().wait()

    plugin = work(lambda ctx, payload: ctx.next_ordinal("effects"), prepare=prepare)
    with shard_harness(tmp_path, plugin) as harness:
        me, _ = start(harness)
        harness.until(lambda: bool(preparing))
        hanging[0] = False
        harness.reopen()
        harness.settle()
        assert len(preparing) == 2
        assert harness("work.effects", who=me).body["count"] == 1


def test_a_job_whose_writes_are_refused_for_a_while_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job_loop, "JOB_PUT_BACK_MS", 5)
    plugin = work(lambda ctx, payload: {"number": ctx.next_ordinal("effects")})
    with shard_harness(tmp_path, plugin) as harness:
        me = harness.register()
        slot = harness.scope_of(me).slot
        harness.run(harness.shard.jobs.hold([slot]))
        job_id = harness("work.start", {}, who=me).body["job_id"]
        with monkeypatch.context() as full:
            full.setattr(writer, "WRITE_QUEUE_MAX", 0)
            harness.shard.jobs.release([slot])
            harness.until(lambda: "a job could not record its end" in caplog.text)
        harness.settle()
        assert harness("work.look", who=me, id=job_id).body["status"] == "completed"
