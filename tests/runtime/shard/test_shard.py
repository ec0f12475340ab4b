"""The shard's pipeline, driven with the plugin that PLUGINS.md prints."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.errors import Conflict
from runtime.shard import shard
from tests.support.shard_harness import ShardHarness
from tests.support.worlds import example_plugin, shard_harness

BODY = {"url": "https://example.org/a", "label": "reading"}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    with shard_harness(tmp_path, example_plugin()) as harness:
        yield harness


def test_the_printed_example_works_from_create_to_job(harness: ShardHarness) -> None:
    me = harness.register()
    made = harness("bookmarks.create", BODY, who=me)
    assert made.status == 201
    harness.settle()
    assert harness("bookmarks.get", who=me, id=made.body["id"]).body == {
        **made.body,
        "checked": True,
    }
    assert [
        item["id"]
        for item in harness("bookmarks.list", who=me, query={"label": "reading"}).body["items"]
    ] == [made.body["id"]]
    assert harness("bookmarks.list", who=me, query={"label": "other"}).body["total_count"] == 0


def test_credentials_scopes_and_foreign_ids(harness: ShardHarness) -> None:
    me, stranger = harness.register(), harness.register("eve@example.com", "Eve")
    made = harness("bookmarks.create", BODY, who=me).body
    reader = harness("auth.api_keys.create", {"name": "r", "scopes": ["read"]}, who=me).body
    assert harness("bookmarks.create", BODY, who=reader["key"]).status == 403
    assert harness("bookmarks.list", who=reader["key"]).body["total_count"] == 1
    assert harness("bookmarks.get", who=stranger, id=made["id"]).status == 403
    assert harness("bookmarks.list", who=stranger).body["total_count"] == 0
    assert harness("bookmarks.get", who=me, id="bmk_nonsense").status == 404
    assert harness("auth.api_keys.delete", who=me, id=reader["id"]).status == 204
    assert harness("bookmarks.list", who=reader["key"]).status == 401


def test_a_failing_handler_takes_back_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    example = example_plugin()
    create = next(o for o in example.operations if o.name == "bookmarks.create")

    def half(ctx, body):
        create.handler(ctx, body)
        raise Conflict("changed my mind") if body.label == "known" else KeyError("a bug")

    broken = replace(create, name="bookmarks.break", path="/v1/bookmarks/break", handler=half)
    with shard_harness(
        tmp_path, replace(example, operations=(*example.operations, broken))
    ) as harness:
        me = harness.register()
        calls = [
            harness.form(
                "bookmarks.break" if i % 2 else "bookmarks.create",
                {"url": f"u{i}", "label": "known" if i % 4 == 1 else "bug"},
                who=me,
                key=f"k{i}",
            )
            for i in range(20)
        ]
        answers = harness.together(calls)
        assert [answer.status for answer in answers[0::2]] == [201] * 10
        assert {answer.status for answer in answers[1::4]} == {409}
        assert {answer.status for answer in answers[3::4]} == {500}
        assert "a bug" not in answers[3].body["message"]
        told = [
            record.request_id
            for record in caplog.records
            if record.message.startswith("write handler failed")
        ]
        assert sorted(told) == sorted(call.request_id for call in calls[3::4]), (
            "the log leads from a request id to the cause"
        )
        assert harness("bookmarks.list", who=me).body["total_count"] == 10
        assert (
            harness("bookmarks.create", {"url": "u1", "label": "known"}, who=me, key="k1").status
            == 201
        ), "a failure releases its key"


def test_the_status_counts_what_was_done(harness: ShardHarness) -> None:
    me = harness.register()
    before = harness.status()
    calls = [harness.form("bookmarks.create", {"url": f"u{i}"}, who=me) for i in range(20)]
    assert {reply.status for reply in harness.together(calls)} == {201}
    harness.settle()
    after = harness.status()
    assert after["calls_total"] - before["calls_total"] == 20
    done = {name: value - before["write"][name] for name, value in after["write"].items()}
    assert done["calls_total"] >= 60 and 0 < done["commits_total"] <= done["calls_total"], (
        "20 creates, and two steps of each job"
    )
    assert done["seconds_total"] > 0 and done["disk_full_total"] == 0
    assert after["jobs"]["attempts_total_by_kind"]["bookmarks.check"] == 20
    assert after["jobs"]["failures_total_by_kind"]["bookmarks.check"] == 0
    assert after["store"]["disk_free_bytes"] > 0


READ_UNTIL_KILLED = """
import sys, lmdb
with lmdb.open(sys.argv[1], readonly=True).begin():
    print("reads", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_reader_held_is_freed_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "DEAD_READERS_LOOKED_FOR_SECONDS", 0.01)
    with shard_harness(tmp_path, example_plugin()) as harness:
        me = harness.register()
        with subprocess.Popen(
            [sys.executable, "-c", READ_UNTIL_KILLED, harness.shard.directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as reader:
            assert reader.stdout.readline() == b"reads\n"
            assert harness("bookmarks.create", BODY, who=me).status == 201
            assert harness.status()["store"]["reader_lag_commits"] > 0
            reader.kill()
        deadline = time.monotonic() + 30
        while harness.status()["store"]["reader_lag_commits"]:
            assert time.monotonic() < deadline, "it was never looked for"


def test_an_error_found_before_the_shard_comes_after_authentication(harness: ShardHarness) -> None:
    me = harness.register()
    key = harness("auth.api_keys.create", {"name": "k"}, who=me).body
    call = harness.form("bookmarks.create", BODY, who=key["key"])
    call.rejected = Conflict("found before")
    assert harness.together([call])[0].status == 409
    harness("auth.api_keys.delete", who=me, id=key["id"])
    assert harness.together([call])[0].status == 401


def test_draining_refuses_new_calls_and_finishes_old_ones(harness: ShardHarness) -> None:
    me = harness.register()
    calls = [harness.form("bookmarks.create", {"url": f"u{i}"}, who=me) for i in range(20)]

    async def story() -> list[int]:
        under_way = [asyncio.create_task(harness.shard.execute(call)) for call in calls[:-1]]
        await asyncio.sleep(0)
        await harness.shard.drain()
        late = await harness.shard.execute(calls[-1])
        assert late.error.retry_after_seconds
        return [*(task.result().status for task in under_way), late.status]

    assert harness.run(story()) == [201] * 19 + [503]


def test_status_tells_queues_and_sequence(harness: ShardHarness) -> None:
    before = harness.run(harness.shard.status())
    harness.register()
    after = harness.run(harness.shard.status())
    assert after["sequence"] > before["sequence"]
    assert {
        "shard",
        "open",
        "write_queue",
        "slow_calls",
        "jobs_waiting",
        "jobs_oldest_age_ms",
        "store",
        "residents",
    } <= set(after)
