"""Reads that are ready together: shared preparation, separate answers, separate failures; and a lone one, begun before it is prepared."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.errors import NotFound
from runtime.limits import READ_GROUP_CALLS_MAX
from runtime.operation import Body, Kind, Operation
from runtime.plugin import Plugin
from tests.plugins import Desk
from tests.worlds import desk_of

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
        operation = Operation(
            name="numbers.double", method="POST", path="/v1/double", kind=Kind.READ, body=Number, response=None, summary="", spec="test",
            prepare=self.prepare, together=self.together, handler=self.handler,
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


def ask(desk: Desk, who: list[str], values: list[int]) -> list:
    return desk.together([desk.form("numbers.double", {"value": value}, who=token) for token, value in zip(who, values, strict=True)])


def test_calls_of_one_tenant_share_the_step_and_get_their_own_answers(tmp_path: Path, counter: Counter) -> None:
    with desk_of(tmp_path, counter.plugin) as desk:
        me, eve = desk.register(), desk.register("eve@example.com", "Eve")
        answers = ask(desk, [me] * 6 + [eve] * 2, [1, 2, 3, 4, 5, 6, 7, 8])
        assert [answer.body["double"] for answer in answers] == [2, 4, 6, 8, 10, 12, 14, 16]
        assert len({answer.body["tenant"] for answer in answers[:6]}) == 1 and answers[7].body["tenant"] != answers[0].body["tenant"]
        assert sorted(counter.groups) == [[1, 2, 3, 4, 5, 6], [7, 8]]


def test_one_that_fails_leaves_the_others_alone(tmp_path: Path, counter: Counter) -> None:
    with desk_of(tmp_path, counter.plugin) as desk:
        me = desk.register()
        answers = ask(desk, [me] * 3, [12, 13, 14])
        assert [answer.status for answer in answers] == [200, 404, 200]


def test_a_shared_step_that_breaks_fails_its_group_and_no_later_one(tmp_path: Path, counter: Counter) -> None:
    with desk_of(tmp_path, counter.plugin) as desk:
        me = desk.register()
        assert [answer.status for answer in ask(desk, [me] * 2, [1, -1])] == [500, 500]
        assert [answer.status for answer in ask(desk, [me] * 2, [1, 2])] == [200, 200]


def test_a_group_is_bounded(tmp_path: Path, counter: Counter) -> None:
    with desk_of(tmp_path, counter.plugin) as desk:
        me = desk.register()
        count = 2 * READ_GROUP_CALLS_MAX + 3
        answers = ask(desk, [me] * count, list(range(100, 100 + count)))
        assert [answer.body["double"] for answer in answers] == [2 * value for value in range(100, 100 + count)]
        assert max(map(len, counter.groups)) == READ_GROUP_CALLS_MAX and sum(map(len, counter.groups)) == count


def test_a_long_read_does_not_hold_the_others(tmp_path: Path, counter: Counter) -> None:
    with desk_of(tmp_path, counter.plugin) as desk:
        me, eve = desk.register(), desk.register("eve@example.com", "Eve")
        answers = ask(desk, [me, eve], [LONG, OVERTAKING])
        assert [answer.status for answer in answers] == [200, 200]


def test_who_shares_the_machine_is_told_while_reads_wait(tmp_path: Path, counter: Counter) -> None:
    """One long read at work and one behind it: told that reads wait; when another thread takes that one, that none does."""
    with desk_of(tmp_path, counter.plugin) as desk:
        told: list[bool] = []
        desk.shard._reads._crowds = told.append
        me, eve = desk.register(), desk.register("eve@example.com", "Eve")
        ask(desk, [me, eve], [LONG, OVERTAKING])
        assert told == [True, False]


class Early:
    """A plugin with one read that has something to do ahead; `prepare` goes on as soon as `ready` says so."""

    def __init__(self) -> None:
        self.ready: Callable[[int], bool] = lambda _value: True
        self.ahead: list[int] = []
        operation = Operation(
            name="numbers.double", method="POST", path="/v1/double", kind=Kind.READ, body=Number, response=None, summary="", spec="test",
            load=lambda ctx, body: 2 * body.value, prepare=self.prepare, ahead=self.look, handler=self.handler,
        )  # fmt: skip
        self.plugin = Plugin(name="numbers", operations=(operation,))

    async def prepare(self, call, loaded, models):
        async with asyncio.timeout(LONG_SECONDS_MAX):
            while not self.ready(call.body.value):
                await asyncio.sleep(POLL_SECONDS)
        if call.body.value < 0:
            raise NotFound("Nothing below zero.")
        return loaded

    def look(self, ctx, body) -> int:
        self.ahead.append(body.value)
        if body.value == 13:
            raise NotFound("Nothing at thirteen.")
        return 100 * ctx.prepared

    def handler(self, ctx, body):
        return {"double": ctx.prepared, "ahead": ctx.ahead}


@pytest.fixture
def early() -> Early:
    return Early()


@contextmanager
def desk_at(directory: Path, early: Early) -> Iterator[Desk]:
    """A desk where a model is always busy."""
    with desk_of(directory, early.plugin) as desk:
        desk.shard._reads._meanwhile = lambda call: call()
        yield desk


def test_a_lone_read_begins_before_it_is_prepared(tmp_path: Path, early: Early) -> None:
    early.ready = lambda value: value in early.ahead
    with desk_at(tmp_path, early) as desk:
        me = desk.register()
        for value in (1, 2):
            assert ask(desk, [me], [value])[0].body == {"double": 2 * value, "ahead": 200 * value}


def test_only_a_lone_read_does(tmp_path: Path, early: Early) -> None:
    """The others would wait for its thread, and it for theirs."""
    early.ready = lambda _value: bool(early.ahead)
    with desk_at(tmp_path, early) as desk:
        me = desk.register()
        answers = ask(desk, [me] * 3, [1, 2, 3])
        assert [answer.body["double"] for answer in answers] == [2, 4, 6]
        assert [answer.body["ahead"] for answer in answers] == [200, None, None] and early.ahead == [1]


def test_a_read_that_fails_before_or_while_it_is_prepared_leaves_nothing_behind(tmp_path: Path, early: Early) -> None:
    early.ready = lambda value: value in early.ahead
    with desk_at(tmp_path, early) as desk:
        me = desk.register()
        assert [ask(desk, [me], [value])[0].status for value in (13, -1, 13, 5)] == [404, 404, 404, 200]


def test_a_snapshot_does_not_wait_for_a_slow_preparation(tmp_path: Path, early: Early, monkeypatch: pytest.MonkeyPatch) -> None:
    """The read is done anew, on a snapshot of its own, once it is prepared."""
    monkeypatch.setattr("runtime.read_pool.READ_AHEAD_SECONDS_MAX", 0.01)
    with desk_at(tmp_path, early) as desk:
        me, store = desk.register(), desk.shard.store
        early.ready = lambda value: value in early.ahead and not store._gate.readers
        assert ask(desk, [me], [7])[0].body == {"double": 14, "ahead": None}
