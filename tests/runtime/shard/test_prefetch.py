"""A read that is alone: what needs no model is found while the model is at work, on the snapshot
that the handler goes on with.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from runtime.api.operation import Body, Read
from runtime.api.plugin import Plugin
from runtime.errors import NotFound
from runtime.inference import InferenceUnavailable
from runtime.inference.embedding import busy_callback
from tests.support.shard_harness import ShardHarness
from tests.support.worlds import shard_harness

WAIT_SECONDS_MAX = 20
POLL_SECONDS = 0.002
TOGETHER = 6


class Word(Body):
    value: str


class Words:
    """A plugin with one prepared read, whose model works until what is prefetched is there."""

    def __init__(self) -> None:
        self.looked, self.found_at = threading.Event(), []
        self.together = 0
        self.is_left = lambda: True
        operation = Read(
            name="words.ask", method="POST", path="/v1/words", body=Word, response=None,
            summary="", load=self.load, prepare=self.prepare, prefetch=self.prefetch,
            handler=self.handler,
        )  # fmt: skip
        self.plugin = Plugin(name="words", operations=(operation,))

    def load(self, ctx, body):
        return {"loaded": body.value}

    async def prepare(self, call, loaded, models):
        self.looked.clear()
        if (begin := busy_callback()) is not None:
            begin()
        if call.body.value == "at once":
            return {"prepared": True}
        if call.body.value == "together":
            self.together += 1
            while self.together < TOGETHER:  # none is done before the last has begun
                await asyncio.sleep(POLL_SECONDS)
        else:
            assert await asyncio.to_thread(self.looked.wait, WAIT_SECONDS_MAX)
        while call.body.value == "slow" and not self.is_left():
            await asyncio.sleep(POLL_SECONDS)
        if call.body.value == "down":
            raise InferenceUnavailable("no model")
        return {"prepared": True}

    def prefetch(self, ctx, body):
        self.found_at.append(ctx.sequence)
        self.looked.set()
        if body.value == "missing":
            raise NotFound("There is no such word.")
        return {"found": ctx.prepared["loaded"].upper()}

    def handler(self, ctx, body):
        return {
            "prefetched": ctx.prefetched,
            "prepared": ctx.prepared["prepared"],
            "same": ctx.sequence in self.found_at,
        }


@pytest.fixture
def words() -> Words:
    return Words()


def no_snapshot_is_open(harness: ShardHarness) -> bool:
    return not harness.shard.store.environment.readers


def test_a_lone_read_goes_on_from_what_was_prefetched(tmp_path: Path, words: Words) -> None:
    with shard_harness(tmp_path, words.plugin) as harness:
        answer = harness("words.ask", {"value": "heron"}, who=harness.register())
        assert answer.body == {"prefetched": {"found": "HERON"}, "prepared": True, "same": True}
        harness.until(lambda: no_snapshot_is_open(harness))


def test_reads_that_are_not_alone_do_without(tmp_path: Path, words: Words) -> None:
    with shard_harness(tmp_path, words.plugin) as harness:
        me = harness.register()
        asked = [harness.form("words.ask", {"value": "together"}, who=me) for _ in range(TOGETHER)]
        answers = harness.together(asked)
        assert [answer.status for answer in answers] == [200] * TOGETHER
        # The first may have begun as the only one.
        assert [answer.body["prefetched"] for answer in answers[1:]] == [None] * (TOGETHER - 1)


def test_a_model_that_fails_leaves_no_snapshot_open(tmp_path: Path, words: Words) -> None:
    with shard_harness(tmp_path, words.plugin) as harness:
        me = harness.register()
        assert harness("words.ask", {"value": "down"}, who=me).status == 500
        assert words.found_at
        harness.until(lambda: no_snapshot_is_open(harness))
        assert harness("words.ask", {"value": "heron"}, who=me).status == 200


def test_a_slow_model_leaves_no_snapshot_open_either(tmp_path: Path, words: Words) -> None:
    """It is closed after moments, and the read takes another one."""
    with shard_harness(tmp_path, words.plugin) as harness:
        words.is_left = lambda: no_snapshot_is_open(harness)
        answer = harness("words.ask", {"value": "slow"}, who=harness.register())
        assert answer.body["prefetched"] is None and answer.body["prepared"]


def test_what_cannot_be_prefetched_is_the_answer(tmp_path: Path, words: Words) -> None:
    with shard_harness(tmp_path, words.plugin) as harness:
        me = harness.register()
        assert harness("words.ask", {"value": "missing"}, who=me).status == 404
        harness.until(lambda: no_snapshot_is_open(harness))


def test_a_model_that_answers_at_once_waits_for_nobody(tmp_path: Path, words: Words) -> None:
    with shard_harness(tmp_path, words.plugin) as harness:
        me = harness.register()
        for _ in range(20):
            assert harness("words.ask", {"value": "at once"}, who=me).body["prepared"]
        harness.until(lambda: no_snapshot_is_open(harness))
