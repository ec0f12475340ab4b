"""Reads that are ready together: shared preparation, separate answers, separate failures; and a
lone one, begun before it is prepared.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from runtime.api.operation import Body, Read
from runtime.api.plugin import Plugin
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.limits import READ_GROUP_CALLS_CROWDED_MAX, READ_GROUP_CALLS_MAX, READ_THREADS_MAX
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness, answer_of
from tests.support.worlds import shard_harness

LONG, OVERTAKING = 1000, 1001
LONG_SECONDS_MAX = 20
POLL_SECONDS = 0.002


class Number(Body):
    value: int


class Counter:
    """A plugin with one prepared read, which notes how it was run."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.passed = threading.Event()
        operation = Read(
            name="numbers.double", method="POST", path="/v1/double", body=Number,
            response=None, summary="", prepare=self.prepare, batch=self.together,
            handler=self.handler,
        )  # fmt: skip
        self.plugin = Plugin(name="numbers", operations=(operation,))

    async def prepare(self, call, loaded, models):
        return {"value": call.body.value}

    def together(self, ctx, prepared) -> None:
        self.groups.append([one["value"] for one in prepared])
        if any(one["value"] < 0 for one in prepared):
            raise KeyError("the shared step broke")
        for one in prepared:
            one["double"] = 2 * one["value"]

    def handler(self, ctx, body):
        if body.value == 13:
            raise NotFound("Nothing at thirteen.")
        if body.value == LONG:
            assert self.passed.wait(LONG_SECONDS_MAX), "nobody could pass"
        elif body.value == OVERTAKING:
            self.passed.set()
        return {"double": ctx.prepared["double"], "tenant": ctx.principal.tenant_id}


@pytest.fixture
def counter() -> Counter:
    return Counter()


def ask(harness: ShardHarness, who: list[str], values: list[int]) -> list:
    return harness.together(
        [
            harness.form("numbers.double", {"value": value}, who=token)
            for token, value in zip(who, values, strict=True)
        ]
    )


def test_calls_of_one_tenant_share_the_step_and_get_their_own_answers(
    tmp_path: Path, counter: Counter
) -> None:
    with shard_harness(tmp_path, counter.plugin) as harness:
        me, eve = harness.register(), harness.register("eve@example.com", "Eve")
        answers = ask(harness, [me] * 6 + [eve] * 2, [1, 2, 3, 4, 5, 6, 7, 8])
        assert [answer.body["double"] for answer in answers] == [2, 4, 6, 8, 10, 12, 14, 16]
        assert (
            len({answer.body["tenant"] for answer in answers[:6]}) == 1
            and answers[7].body["tenant"] != answers[0].body["tenant"]
        )
        assert sorted(counter.groups) == [[1, 2, 3, 4, 5, 6], [7, 8]]


def test_one_that_fails_leaves_the_others_alone(tmp_path: Path, counter: Counter) -> None:
    with shard_harness(tmp_path, counter.plugin) as harness:
        me = harness.register()
        answers = ask(harness, [me] * 3, [12, 13, 14])
        assert [answer.status for answer in answers] == [200, 404, 200]


def test_a_shared_step_that_breaks_fails_its_group_and_no_later_one(
    tmp_path: Path, counter: Counter
) -> None:
    with shard_harness(tmp_path, counter.plugin) as harness:
        me = harness.register()
        assert [answer.status for answer in ask(harness, [me] * 2, [1, -1])] == [500, 500]
        assert [answer.status for answer in ask(harness, [me] * 2, [1, 2])] == [200, 200]


def test_a_group_is_bounded(tmp_path: Path, counter: Counter) -> None:
    with shard_harness(tmp_path, counter.plugin) as harness:
        me = harness.register()
        count = 2 * READ_GROUP_CALLS_MAX + 3
        answers = ask(harness, [me] * count, list(range(100, 100 + count)))
        assert [answer.body["double"] for answer in answers] == [
            2 * value for value in range(100, 100 + count)
        ]
        assert (
            max(map(len, counter.groups)) == READ_GROUP_CALLS_MAX
            and sum(map(len, counter.groups)) == count
        )


def test_a_group_is_small_while_another_account_asks(tmp_path: Path, counter: Counter) -> None:
    with shard_harness(tmp_path, counter.plugin) as harness:
        me, eve = harness.register(), harness.register("eve@example.com", "Eve")
        count = READ_GROUP_CALLS_MAX + 1
        answers = ask(harness, [eve] + [me] * count, list(range(100, 101 + count)))
        assert all(answer.status == 200 for answer in answers)
        assert max(map(len, counter.groups)) == READ_GROUP_CALLS_CROWDED_MAX


def test_a_long_read_does_not_hold_the_others(tmp_path: Path, counter: Counter) -> None:
    with shard_harness(tmp_path, counter.plugin) as harness:
        me, eve = harness.register(), harness.register("eve@example.com", "Eve")
        answers = ask(harness, [me, eve], [LONG, OVERTAKING])
        assert [answer.status for answer in answers] == [200, 200]


def test_one_after_the_other_each_finds_a_thread(tmp_path: Path, counter: Counter) -> None:
    """More of them than there are threads, so that each gives its thread back."""
    with shard_harness(tmp_path, counter.plugin) as harness:
        me = harness.register()
        for value in range(READ_THREADS_MAX + 2):
            call = harness.form("numbers.double", {"value": value}, who=me)
            reply = harness.run(asyncio.wait_for(harness.shard.execute(call), LONG_SECONDS_MAX))
            assert answer_of(reply).status == 200


def test_who_shares_the_machine_is_told_while_reads_wait(tmp_path: Path, counter: Counter) -> None:
    """One long read at work and one behind it: told that reads wait; when another thread takes that
    one, that none does.
    """
    told: list[bool] = []

    class Sharing(WordEmbedder):
        def yield_to_reads(self, reads_wait: bool) -> None:
            told.append(reads_wait)

    with shard_harness(tmp_path, counter.plugin, models=Models(Sharing())) as harness:
        me, eve = harness.register(), harness.register("eve@example.com", "Eve")
        ask(harness, [me, eve], [LONG, OVERTAKING])
        assert told == [True, False]
