"""Batching queues: what shares a message, what a full or broken queue answers, and that a write is
never sent twice.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

import pytest

from runtime.api.operation import Call, Flow, Reply, Write
from runtime.cluster import batching
from runtime.cluster.batching import (
    BATCHES_UNDER_WAY_MAX,
    CALLS_PER_BATCH_MAX,
    BatchingQueue,
    Early,
    ShardLost,
    ShardNotFound,
    pack_replies,
    queue_of,
    unpack_calls,
)
from runtime.errors import NotFound, Unavailable
from runtime.limits import BATCH_BYTES_MAX, BATCH_CALLS_MAX
from tests.support.tiny_app import call, registry


class Shard:
    """The far end of a queue: it records the batches and answers each call with its own body."""

    def __init__(self) -> None:
        self.batches: list[list[Call]] = []
        self.up = asyncio.Event()
        self.up.set()
        self.is_looked_for = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.at_once: set[bytes] = set()  # bodies of calls that do not wait for the gate

    async def send(self, message: bytes, early: Early) -> bytes:
        calls = unpack_calls(message)
        self.batches.append(calls)
        at_once = [call.body in self.at_once for call in calls]
        if any(at_once):
            early(self._replies(calls, at_once))
        await self.gate.wait()
        if not self.up.is_set():
            raise ShardLost
        return self._replies(calls, [not each for each in at_once])

    def _replies(self, calls: list[Call], wanted: list[bool]) -> bytes:
        replies = zip(calls, wanted, strict=True)
        return pack_replies([Reply(200, call.body) if now else None for call, now in replies])

    async def wait_until_up(self, seconds: float) -> bool:
        self.is_looked_for = True
        try:
            async with asyncio.timeout(seconds):
                return await self.up.wait()
        except TimeoutError:
            return False

    def queue(self, name: str = "write") -> BatchingQueue:
        return BatchingQueue(name, self.send, self.wait_until_up)


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())


def test_operations_find_their_queue() -> None:
    operations = registry().operations
    asked = call("tiny.wait")
    assert [queue_of(operations[f"tiny.{name}"], asked) for name in ("read", "add", "wait")] == [
        "read",
        "write",
        "slow_read",
    ]
    flow = Flow("tiny.talk", "GET", "/tiny/talk", handler=dict, summary="", response=None)
    assert queue_of(flow, asked) == "write", "the end of a flow must not be sent twice"
    slow = operations["tiny.wait"].prepare
    completed = dataclasses.replace(operations["tiny.wait"], complete=slow)
    assert queue_of(completed, asked) == "remote_read"
    remote = Write(
        "tiny.send", "POST", "/tiny/send", handler=dict, summary="", response=None,
        prepare=slow, remote=lambda call: call.body == b"far",
    )  # fmt: skip
    assert [
        queue_of(remote, dataclasses.replace(asked, body=body)) for body in (b"far", b"near")
    ] == ["remote_write", "slow_write"]
    assert queue_of(remote, dataclasses.replace(asked, rejected=NotFound("x"))) == "write", (
        "it is refused at once"
    )


def test_calls_that_arrive_while_a_batch_is_under_way_leave_together() -> None:
    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        queue = shard.queue()
        first = asyncio.create_task(queue.execute(call("tiny.add", body=b"0")))
        while not shard.batches:
            await asyncio.sleep(0)
        rest = [
            asyncio.create_task(queue.execute(call("tiny.add", body=b"%d" % n)))
            for n in range(1, 10)
        ]
        await asyncio.sleep(0)
        shard.gate.set()
        replies = await asyncio.gather(first, *rest)
        assert [reply.body for reply in replies] == [b"%d" % n for n in range(10)]
        assert [len(batch) for batch in shard.batches] == [1, 9]

    run(work)


def test_a_batch_is_bounded_in_calls_and_in_bytes() -> None:
    async def work() -> None:
        shard = Shard()
        queue = shard.queue()
        await asyncio.gather(
            *(queue.execute(call("tiny.add", body=b"")) for _ in range(BATCH_CALLS_MAX + 1))
        )
        assert [len(batch) for batch in shard.batches] == [BATCH_CALLS_MAX, 1]
        shard.batches.clear()
        big = b"x" * (BATCH_BYTES_MAX // 2)
        await asyncio.gather(
            *(queue.execute(call("tiny.add", body=big)) for _ in range(3)),
            queue.execute(call("tiny.add", body=big * 3)),
        )
        assert [len(batch) for batch in shard.batches] == [1, 1, 1, 1]

    run(work)


def test_slow_writes_travel_in_small_batches_side_by_side() -> None:
    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        queue = shard.queue("slow_write")
        room, size = BATCHES_UNDER_WAY_MAX["slow_write"], CALLS_PER_BATCH_MAX["slow_write"]
        waiting = [
            asyncio.create_task(queue.execute(call("tiny.add", body=b"")))
            for _ in range(room * size + 1)
        ]
        while len(shard.batches) < room:
            await asyncio.sleep(0)
        assert [len(batch) for batch in shard.batches] == [size] * room, (
            "one that takes long leaves room for others"
        )
        shard.gate.set()
        assert len(await asyncio.gather(*waiting)) == room * size + 1

    run(work)


def test_a_slow_call_is_answered_before_its_neighbours_are() -> None:
    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        shard.at_once = {b"quick", b"lost"}
        queue = shard.queue("slow_write")
        slow, quick = (
            asyncio.create_task(queue.execute(call("tiny.add", body=body)))
            for body in (b"slow", b"quick")
        )
        assert (await quick).body == b"quick" and not slow.done()
        assert [len(batch) for batch in shard.batches] == [2]
        shard.gate.set()
        assert (await slow).body == b"slow"

    run(work)


def test_what_came_early_is_known_when_the_rest_is_lost() -> None:
    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        shard.at_once = {b"quick"}
        queue = shard.queue("slow_write")
        slow, quick = (
            asyncio.create_task(queue.execute(call("tiny.add", body=body)))
            for body in (b"slow", b"quick")
        )
        assert (await quick).body == b"quick"
        shard.up.clear()
        shard.gate.set()
        with pytest.raises(Unavailable, match="unknown"):
            await slow
        shard.up.set()

    run(work)


def test_batches_that_take_long_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCH_PATIENCE_SECONDS", 0.01)

    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        shard.at_once = {b"quick"}
        queue = shard.queue("slow_write")
        room = BATCHES_UNDER_WAY_MAX["slow_write"] * CALLS_PER_BATCH_MAX["slow_write"]
        slow = [
            asyncio.create_task(queue.execute(call("tiny.add", body=b"slow"))) for _ in range(room)
        ]
        assert (await queue.execute(call("tiny.add", body=b"quick"))).body == b"quick"
        assert not any(each.done() for each in slow)
        shard.gate.set()
        assert len(await asyncio.gather(*slow)) == room
        # Those that were overdue are not counted any more: so many are under way again, no more.
        shard.batches.clear()
        shard.gate.clear()
        monkeypatch.setattr(batching, "BATCH_PATIENCE_SECONDS", 600)
        more = [
            asyncio.create_task(queue.execute(call("tiny.add", body=b"more")))
            for _ in range(room + 1)
        ]
        while sum(map(len, shard.batches)) < room:
            await asyncio.sleep(0)
        assert sum(map(len, shard.batches)) == room
        shard.gate.set()
        await asyncio.gather(*more)

    run(work)


def test_a_full_queue_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCHING_QUEUE_CALLS_MAX", 2)

    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        queue = shard.queue()
        waiting = [asyncio.create_task(queue.execute(call("tiny.add", body=b""))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable) as refused:
            await queue.execute(call("tiny.add"))
        assert refused.value.retry_after_seconds == 1
        shard.gate.set()
        await asyncio.gather(*waiting)

    run(work)


def test_a_lost_write_is_unknown_a_lost_read_is_repeated_and_the_queue_waits() -> None:
    async def work() -> None:
        for name, expected in (("write", Unavailable), ("read", bytes)):
            shard = Shard()
            queue = shard.queue(name)
            shard.up.clear()
            shard.gate.clear()
            under_way = asyncio.create_task(queue.execute(call("tiny.add", body=b"first")))
            while not shard.batches:
                await asyncio.sleep(0)
            queued = asyncio.create_task(queue.execute(call("tiny.add", body=b"second")))
            await asyncio.sleep(0)
            shard.gate.set()
            while not shard.is_looked_for:
                await asyncio.sleep(0)
            assert not queued.done()
            shard.up.set()
            outcome = (await asyncio.gather(under_way, return_exceptions=True))[0]
            assert isinstance(getattr(outcome, "body", outcome), expected)
            assert (await queued).body == b"second"
            sent = [one.body for batch in shard.batches for one in batch]
            assert sent.count(b"first") == (2 if name == "read" else 1)

    run(work)


def test_a_write_that_found_no_shard_is_sent_when_there_is_one() -> None:
    async def work() -> None:
        shard = Shard()
        shard.up.clear()

        async def send(message: bytes, early: Early) -> bytes:
            if not shard.up.is_set():
                raise ShardNotFound
            return await shard.send(message, early)

        queue = BatchingQueue("write", send, shard.wait_until_up)
        written = asyncio.create_task(queue.execute(call("tiny.add", body=b"first")))
        while not shard.is_looked_for:
            await asyncio.sleep(0)
        shard.up.set()
        assert (await written).body == b"first"
        assert [one.body for batch in shard.batches for one in batch] == [b"first"]

    run(work)


def test_calls_behind_a_shard_that_stays_away_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "SHARD_RECOVERY_SECONDS_MAX", 0.05)

    async def work() -> None:
        shard = Shard()
        shard.up.clear()
        queue = shard.queue("read")
        with pytest.raises(Unavailable):
            await queue.execute(call("tiny.read", body=b""))
        shard.up.set()
        assert (await queue.execute(call("tiny.read", body=b"back"))).body == b"back"

    run(work)


def test_a_call_without_an_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "CALL_SECONDS_MAX", 0.05)

    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        queue = shard.queue()
        with pytest.raises(Unavailable, match="unknown"):
            await queue.execute(call("tiny.add", body=b""))
        shard.gate.set()
        monkeypatch.undo()
        assert (await queue.execute(call("tiny.add", body=b"next"))).body == b"next"

    run(work)


def test_a_caller_that_leaves_takes_its_unsent_call_along() -> None:
    async def work() -> None:
        shard = Shard()
        shard.gate.clear()
        queue = shard.queue()
        first = asyncio.create_task(queue.execute(call("tiny.add", body=b"first")))
        while not shard.batches:
            await asyncio.sleep(0)
        left = asyncio.create_task(queue.execute(call("tiny.add", body=b"left")))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        shard.gate.set()
        await first
        await queue.execute(call("tiny.add", body=b"last"))
        assert [one.body for batch in shard.batches for one in batch] == [b"first", b"last"]

    run(work)
