"""The shard's pipeline, driven with the plugin that PLUGINS.md prints."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import orjson
import pytest

from runtime import jobs
from runtime.errors import Conflict, InternalError, PermissionDenied, Unauthenticated, Unavailable
from runtime.operation import Credential, Idempotency, Kind, Operation
from runtime.plugin import Job, Plugin, RetryStrategy
from tests.worlds import World, example_plugin, registry_of

BODY = {"url": "https://example.org/a", "label": "reading"}


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "shard", registry_of(example_plugin()))


def test_the_printed_example_works_from_create_to_job(world: World) -> None:
    async def story():
        async with world:
            made = await world.ok("bookmarks.create", BODY)
            await world.idle()
            assert (await world.ok("bookmarks.get", path={"id": made["id"]})) == {**made, "checked": True}
            listed = await world.ok("bookmarks.list", query={"label": "reading"})
            assert [item["id"] for item in listed["items"]] == [made["id"]]
            assert (await world.ok("bookmarks.list", query={"label": "other"}))["total_count"] == 0

    run(story())


def test_pages_are_stable_while_writes_go_on(world: World) -> None:
    async def story():
        async with world:
            before = [(await world.ok("bookmarks.create", {"url": f"u{i}"}))["id"] for i in range(7)]
            seen, cursor = [], None
            while True:
                page = await world.ok("bookmarks.list", query={"limit": 3, "cursor": cursor})
                seen += [item["id"] for item in page["items"]]
                cursor = page["next_cursor"]
                await world.ok("bookmarks.create", {"url": "meanwhile"})
                if not page["has_more"]:
                    break
            assert seen == before[::-1]

    run(story())


def test_a_cursor_of_another_list_is_refused(world: World) -> None:
    async def story():
        async with world:
            for i in range(3):
                await world.ok("bookmarks.create", {"url": f"u{i}", "label": "a"})
            cursor = (await world.ok("bookmarks.list", query={"limit": 1, "label": "a"}))["next_cursor"]
            assert (await world.call("bookmarks.list", query={"limit": 1, "cursor": cursor})).status == 400
            stranger = world.account("stranger@example.com")
            reply = await world.call("bookmarks.list", query={"limit": 1, "label": "a", "cursor": cursor}, credential=stranger, email="stranger@example.com")
            assert reply.status == 400

    run(story())


def test_credentials_scopes_and_foreign_ids(world: World) -> None:
    async def story():
        async with world:
            made = await world.ok("bookmarks.create", BODY)
            unknown = await world.call("bookmarks.list", credential=Credential("key", digest=b"x" * 32))
            assert isinstance(unknown.error, Unauthenticated)
            reader = world.account(world.email, scopes=("read",))
            assert isinstance((await world.call("bookmarks.create", BODY, credential=reader)).error, PermissionDenied)
            assert (await world.call("bookmarks.list", credential=reader)).status == 200
            stranger = world.account("stranger@example.com")
            foreign = await world.call("bookmarks.get", path={"id": made["id"]}, credential=stranger, email="stranger@example.com")
            assert foreign.status == 403
            assert (await world.call("bookmarks.get", path={"id": "mem_nonsense"})).status == 404

    run(story())


def test_a_cached_key_repeats_the_reply_and_refuses_another_request(world: World) -> None:
    async def story():
        async with world:
            first = await world.call("bookmarks.create", BODY, idempotency_key="k1")
            again = await world.call("bookmarks.create", dict(reversed(BODY.items())), idempotency_key="k1")
            assert again.body == first.body and again.headers["X-Idempotent-Replay"] == "true"
            assert "X-Idempotent-Replay" not in first.headers
            other = await world.call("bookmarks.create", {**BODY, "label": "x"}, idempotency_key="k1")
            assert isinstance(other.error, Conflict) and other.error.retry_after_seconds is None
            assert (await world.ok("bookmarks.list"))["total_count"] == 1
            await world.reopen()
            assert (await world.call("bookmarks.create", BODY, idempotency_key="k1")).body == first.body

    run(story())


def test_fifty_twins_make_one_record(world: World) -> None:
    async def story():
        async with world:
            replies = await asyncio.gather(*(world.call("bookmarks.create", BODY, idempotency_key="twin") for _ in range(50)))
            assert {reply.status for reply in replies} <= {201, 409}
            assert all(reply.error.retry_after_seconds for reply in replies if reply.status == 409)
            assert (await world.ok("bookmarks.list"))["total_count"] == 1

    run(story())


def test_a_replay_window_ends_after_a_day(world: World) -> None:
    async def story():
        async with world:
            now = 1_800_000_000_000
            first = await world.ok("bookmarks.create", BODY, idempotency_key="k", now_ms=now)
            later = await world.ok("bookmarks.create", BODY, idempotency_key="k", now_ms=now + 24 * 3600 * 1000 + 1)
            assert first["id"] != later["id"]

    run(story())


def breaking(tmp_path: Path) -> World:
    """The example with operations that break in the middle of their transaction."""
    example = example_plugin()
    create = next(o for o in example.operations if o.name == "bookmarks.create")

    def half(ctx, body):
        create.handler(ctx, body)
        raise Conflict("changed my mind") if body.label == "known" else KeyError("a bug")

    broken = replace(create, name="bookmarks.break", path="/v1/bookmarks/break", handler=half)
    return World(tmp_path / "shard", registry_of(replace(example, operations=(*example.operations, broken))))


def test_a_failing_handler_takes_back_only_itself_and_releases_its_key(tmp_path: Path) -> None:
    async def story():
        async with breaking(tmp_path) as world:
            calls = [
                world.call("bookmarks.break" if i % 2 else "bookmarks.create", {"url": f"u{i}", "label": "known" if i % 4 == 1 else "bug"}, idempotency_key=f"k{i}")
                for i in range(20)
            ]
            replies = await asyncio.gather(*calls)
            assert [r.status for r in replies[0::2]] == [201] * 10
            assert {type(r.error) for r in replies[1::2]} == {Conflict, InternalError}
            assert (await world.ok("bookmarks.list"))["total_count"] == 10
            released = await world.call("bookmarks.create", {"url": "u1", "label": "known"}, idempotency_key="k1")
            assert released.status == 201

    run(story())


class Tally(msgspec.Struct):
    count: int = 0


def job_world(tmp_path: Path, handler, **fields) -> World:
    """A world with one operation that enqueues the job under test."""
    start = Operation(
        name="work.start", method="POST", path="/v1/work", kind=Kind.WRITE, scope="write", response=None, idempotency=Idempotency.CACHED,
        summary="Start", spec="test", handler=lambda ctx, body: {"job_id": ctx.enqueue("work.run", {"step": 0})},
    )  # fmt: skip
    look = Operation(
        name="work.look", method="GET", path="/v1/work/{id}", kind=Kind.READ, response=None, summary="Look", spec="test",
        handler=lambda ctx, body: jobs.view(jobs.get(ctx, ctx.path["id"], ("work.run",))),
    )  # fmt: skip
    plugin = Plugin(name="work", operations=(start, look), jobs=(Job("work.run", handler, **fields),))
    return World(tmp_path / "shard", registry_of(plugin))


def test_a_job_that_fails_is_retried_and_its_effect_happens_once(tmp_path: Path) -> None:
    tries = []

    async def prepare(loaded, payload, models):
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("not yet")

    def handler(ctx, payload):
        return {"number": ctx.next_ordinal("effects")}

    async def story():
        async with job_world(tmp_path, handler, prepare=prepare, retry=RetryStrategy(base_ms=10)) as world:
            job_id = (await world.ok("work.start"))["job_id"]
            await world.idle()
            done = await world.ok("work.look", path={"id": job_id})
            assert done["status"] == "completed" and done["attempts"] == 3 and done["result"] == {"number": 0}

    run(story())


def test_a_poison_job_ends_as_failed_with_its_reason(tmp_path: Path) -> None:
    def handler(ctx, payload):
        ctx.next_ordinal("effects")
        raise Unavailable("the well is dry")

    async def story():
        async with job_world(tmp_path, handler, retry=RetryStrategy(attempts=2, base_ms=5)) as world:
            job_id = (await world.ok("work.start"))["job_id"]
            await world.idle()
            done = await world.ok("work.look", path={"id": job_id})
            assert (done["status"], done["attempts"], done["error"]) == ("failed", 2, "the well is dry")

    run(story())


def test_a_job_in_steps_goes_on_after_a_restart(tmp_path: Path) -> None:
    def handler(ctx, payload):
        ctx.next_ordinal("effects")
        if payload["step"] == 4:
            return {"steps": payload["step"]}
        return jobs.Again({"step": payload["step"] + 1}, progress=payload["step"] / 5, delay_ms=30)

    async def story():
        async with job_world(tmp_path, handler) as world:
            job_id = (await world.ok("work.start"))["job_id"]
            while (await world.ok("work.look", path={"id": job_id}))["progress"] == 0:
                await asyncio.sleep(0.005)
            await world.reopen()
            await world.idle()
            done = await world.ok("work.look", path={"id": job_id})
            assert done["status"] == "completed" and done["result"] == {"steps": 4}

    run(story())


def test_draining_refuses_new_calls_and_finishes_old_ones(world: World) -> None:
    async def story():
        async with world:
            under_way = [asyncio.create_task(world.call("bookmarks.create", {"url": f"u{i}"})) for i in range(20)]
            await asyncio.sleep(0)
            await world.shard.drain()
            assert {task.result().status for task in under_way} <= {201}
            late = await world.call("bookmarks.list")
            assert late.status == 503 and late.error.retry_after_seconds

    run(story())


def test_replies_carry_encoded_bytes(world: World) -> None:
    async def story():
        async with world:
            reply = await world.call("bookmarks.create", BODY)
            assert isinstance(reply.body, bytes) and orjson.loads(reply.body)["url"] == BODY["url"]

    run(story())
