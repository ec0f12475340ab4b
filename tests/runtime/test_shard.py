"""The shard's pipeline, driven with the plugin that PLUGINS.md prints."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.errors import Conflict
from tests.plugins import Desk
from tests.worlds import desk_of, example_plugin

BODY = {"url": "https://example.org/a", "label": "reading"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_of(tmp_path, example_plugin()) as desk:
        yield desk


def test_the_printed_example_works_from_create_to_job(desk: Desk) -> None:
    me = desk.register()
    made = desk("bookmarks.create", BODY, who=me)
    assert made.status == 201
    desk.settle()
    assert desk("bookmarks.get", who=me, id=made.body["id"]).body == {**made.body, "checked": True}
    assert [item["id"] for item in desk("bookmarks.list", who=me, query={"label": "reading"}).body["items"]] == [made.body["id"]]
    assert desk("bookmarks.list", who=me, query={"label": "other"}).body["total_count"] == 0


def test_credentials_scopes_and_foreign_ids(desk: Desk) -> None:
    me, stranger = desk.register(), desk.register("eve@example.com", "Eve")
    made = desk("bookmarks.create", BODY, who=me).body
    reader = desk("auth.api_keys.create", {"name": "r", "scopes": ["read"]}, who=me).body
    assert desk("bookmarks.create", BODY, who=reader["key"]).status == 403
    assert desk("bookmarks.list", who=reader["key"]).body["total_count"] == 1
    assert desk("bookmarks.get", who=stranger, id=made["id"]).status == 403
    assert desk("bookmarks.list", who=stranger).body["total_count"] == 0
    assert desk("bookmarks.get", who=me, id="mem_nonsense").status == 404
    assert desk("auth.api_keys.delete", who=me, id=reader["id"]).status == 204
    assert desk("bookmarks.list", who=reader["key"]).status == 401


def test_a_failing_handler_takes_back_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    example = example_plugin()
    create = next(o for o in example.operations if o.name == "bookmarks.create")

    def half(ctx, body):
        create.handler(ctx, body)
        raise Conflict("changed my mind") if body.label == "known" else KeyError("a bug")

    broken = replace(create, name="bookmarks.break", path="/v1/bookmarks/break", handler=half)
    with desk_of(tmp_path, replace(example, operations=(*example.operations, broken))) as desk:
        me = desk.register()
        calls = [
            desk.form(
                "bookmarks.break" if i % 2 else "bookmarks.create",
                {"url": f"u{i}", "label": "known" if i % 4 == 1 else "bug"},
                who=me,
                key=f"k{i}",
            )
            for i in range(20)
        ]
        answers = desk.together(calls)
        assert [answer.status for answer in answers[0::2]] == [201] * 10
        assert {answer.status for answer in answers[1::4]} == {409}
        assert {answer.status for answer in answers[3::4]} == {500}
        assert "a bug" not in answers[3].body["message"]
        told = [record.request_id for record in caplog.records if record.message.startswith("write handler failed")]
        assert sorted(told) == sorted(call.request_id for call in calls[3::4]), "the log leads from a request id to the cause"
        assert desk("bookmarks.list", who=me).body["total_count"] == 10
        assert desk("bookmarks.create", {"url": "u1", "label": "known"}, who=me, key="k1").status == 201, "a failure releases its key"


def test_the_status_counts_what_was_done(desk: Desk) -> None:
    me = desk.register()
    before = desk.status()
    calls = [desk.form("bookmarks.create", {"url": f"u{i}"}, who=me) for i in range(20)]
    assert {reply.status for reply in desk.together(calls)} == {201}
    desk.settle()
    after = desk.status()
    assert after["calls_total"] - before["calls_total"] == 20
    done = {name: value - before["write"][name] for name, value in after["write"].items()}
    assert done["calls_total"] >= 60 and 0 < done["commits_total"] <= done["calls_total"], "20 creates, and two steps of each job"
    assert done["seconds_total"] > 0 and done["disk_full_total"] == 0
    assert after["jobs"]["attempts_total_by_kind"]["bookmarks.check"] == 20
    assert after["jobs"]["failures_total_by_kind"]["bookmarks.check"] == 0
    assert after["store"]["disk_free_bytes"] > 0


def test_an_error_found_before_the_shard_comes_after_authentication(desk: Desk) -> None:
    me = desk.register()
    key = desk("auth.api_keys.create", {"name": "k"}, who=me).body
    call = desk.form("bookmarks.create", BODY, who=key["key"])
    call.rejected = Conflict("found before")
    assert desk.together([call])[0].status == 409
    desk("auth.api_keys.delete", who=me, id=key["id"])
    assert desk.together([call])[0].status == 401


def test_draining_refuses_new_calls_and_finishes_old_ones(desk: Desk) -> None:
    me = desk.register()
    calls = [desk.form("bookmarks.create", {"url": f"u{i}"}, who=me) for i in range(20)]

    async def story() -> list[int]:
        under_way = [asyncio.create_task(desk.shard.execute(call)) for call in calls[:-1]]
        await asyncio.sleep(0)
        await desk.shard.drain()
        late = await desk.shard.execute(calls[-1])
        assert late.error.retry_after_seconds
        return [*(task.result().status for task in under_way), late.status]

    assert desk._runner.run(story()) == [201] * 19 + [503]


def test_status_tells_queues_and_sequence(desk: Desk) -> None:
    before = desk._runner.run(desk.shard.status())
    desk.register()
    after = desk._runner.run(desk.shard.status())
    assert after["sequence"] > before["sequence"]
    assert {"shard", "open", "write_queue", "slow_calls", "jobs_waiting", "jobs_oldest_age_ms", "store", "residents"} <= set(after)
