"""Requests that change nothing are written down together, once, and what cannot be written is not
lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runtime import limits
from runtime.api import metering
from runtime.api.operation import Call, Principal, Reply
from runtime.errors import Unavailable
from runtime.shard import usage_buffer
from runtime.shard.usage_buffer import UsageBuffer
from runtime.timestamps import parse
from tests.support.metered import metered

KEY = Principal(7, 1, "usr", b"tag_", "free", frozenset({"read"}), "key_1", False)
SESSION = Principal(7, 2, "usr", b"tag_", "free", frozenset({"read"}), "jti", True)


def call(now_ms: int) -> Call:
    return Call(
        operation="search.search",
        slot=7,
        now_ms=now_ms,
        seed=now_ms.to_bytes(32, "big"),
        request_id="r",
    )


def buffered(check: Callable[[UsageBuffer, list], Awaitable[None]]) -> None:
    """Run the check with a buffer and the list of what it has written: {tenant: record}. A full
    disk is the entry None.
    """
    written: list = []

    async def write(records: dict) -> None:
        if written and written[-1] is None:
            written.pop()
            raise Unavailable("The disk is full.")
        written.append(records)

    asyncio.run(check(UsageBuffer(write), written))


def test_nothing_to_write_writes_nothing() -> None:
    async def check(buffer: UsageBuffer, written: list) -> None:
        await buffer.flush()
        assert written == []

    buffered(check)


def test_one_write_for_all_tenants() -> None:
    async def check(buffer: UsageBuffer, written: list) -> None:
        for principal in (KEY, SESSION, KEY):
            buffer.request(principal, "memories.get", 1)
        buffer.request(None, "auth.login", 1)
        await buffer.flush()
        await buffer.flush()
        (records,) = written
        assert set(records) == {(7, 1), (7, 2)}

    buffered(check)


def test_of_many_tenants_some_are_written_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others' writes wait for one of these; what of them is refused comes again, and no more."""
    monkeypatch.setattr(usage_buffer, "USAGE_ACCOUNTS_TOGETHER_MAX", 3)

    async def check(buffer: UsageBuffer, written: list) -> None:
        tenants = [dataclasses.replace(KEY, tenant_number=number) for number in range(8)]
        for tenant in tenants:
            buffer.request(tenant, "memories.get", 1)
            buffer.charge(tenant, "search.search", call(1), 2)
        written.append(None)  # the first of them is refused
        await buffer.flush()
        assert [{number for _, number in records} for records in written] == [{3, 4, 5}, {6, 7}]
        assert buffer.unwritten == 3
        await buffer.flush()
        assert {number for _, number in written[-1]} == {0, 1, 2} and buffer.unwritten == 0

    buffered(check)


def test_it_is_written_although_whoever_asked_for_it_has_gone() -> None:
    async def check(buffer: UsageBuffer, written: list) -> None:
        buffer.request(KEY, "memories.get", 1)
        asked = asyncio.create_task(buffer.flush())
        for _ in range(2):  # until it has begun
            await asyncio.sleep(0)
        asked.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asked
        await buffer.flush()
        assert [set(records) for records in written] == [{(7, 1)}]

    buffered(check)


def test_what_reads_have_noted_waits_longer_than_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noted of both tenants, requested by one: the first write is of that one alone, a later one
    brings the notes, once.
    """
    monkeypatch.setattr(usage_buffer, "USAGE_WRITTEN_AFTER_SECONDS", 0.005)
    monkeypatch.setattr(usage_buffer, "ACCESSES_WRITTEN_AFTER_SECONDS", 3_600)

    async def check(buffer: UsageBuffer, written: list) -> None:
        async def until_written(count: int) -> None:
            async with asyncio.timeout(60):
                while len(written) < count:
                    await asyncio.sleep(0.005)

        loop = asyncio.get_running_loop()
        clock, ahead = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: clock() + ahead)
        buffer.count_accesses(SESSION, [("memories.accesses", 4)], 1)
        buffer.request(KEY, "memories.get", 1)
        await until_written(1)
        ahead = 3_600.0  # an hour is over
        await until_written(2)
        await buffer.flush()
        assert [set(records) for records in written] == [{(7, 1)}, {(7, 2)}]

    buffered(check)


def test_it_writes_by_itself_a_second_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_buffer, "USAGE_WRITTEN_AFTER_SECONDS", 0.01)

    async def check(buffer: UsageBuffer, written: list) -> None:
        buffer.request(KEY, "memories.get", 1)
        async with asyncio.timeout(60):
            while not written:
                await asyncio.sleep(0.001)

    buffered(check)


def test_there_is_room_for_so_many_unwritten_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_buffer, "USAGE_UNWRITTEN_EVENTS_MAX", 3)

    async def check(buffer: UsageBuffer, written: list) -> None:
        for number in range(3):
            buffer.check_room()
            buffer.charge(KEY, "search.search", call(number), 1)
        written.append(None)
        await buffer.flush()
        with pytest.raises(Unavailable):
            buffer.check_room()
        await buffer.flush()
        buffer.check_room()
        (records,) = written
        assert set(records) == {(7, 1)}

    buffered(check)


def test_what_a_full_disk_refused_is_written_later(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free") as ada:
        writer, refusals = ada.harness.shard.parts.writer, [1, 2]
        submit = writer.submit

        async def refusing(work: Any, label: str, *others: Any, **named: Any) -> Reply:
            if label == "usage" and refusals:
                refusals.pop()
                asked = ada.harness.form("search.search", {"query": "meanwhile"}, who=ada.token)
                assert (await ada.harness.shard.execute(asked)).error is None
                raise Unavailable("The disk is full.")
            return await submit(work, label, *others, **named)

        writer.submit = refusing
        for _ in range(3):
            ada("search.search", {"query": "x"})
            ada("memories.list")
        assert ada.used() == 0
        assert ada.used() == 0
        ada("search.search", {"query": "x"})
        usage = ada("usage.get").body
        assert usage["credits"]["used"] == 4 + 2
        assert usage["requests"]["used"] == 3 + 3 + 2 + 1 + 2
        ada.audited()


def test_what_is_written_together_is_counted_in_its_own_hour_and_month(tmp_path: Path) -> None:
    """Searches around the end of a month, by two keys, of two operations, are one write."""
    with metered(tmp_path, at="2026-05-31T22:59:00Z", billing__default_tier="free") as ada:
        key = ada("auth.api_keys.create", {"name": "k"}).body
        for at in ("22:59:59", "23:00:01", "23:59:59"):
            ada.move_to(f"2026-05-31T{at}Z")
            ada("search.search", {"query": "x"})
            ada("search.search", {"query": "x"}, who=key["key"])
            ada("search.context", {"query": "x"})
        ada.move_to("2026-06-01T00:00:01Z")
        ada("search.search", {"query": "x"}, who=key["key"])
        last = ada.harness.now_ms
        assert ada.used() == 1
        assert [month["counter"] for month in ada.audited()] == [12, 1]
        (listed,) = ada("auth.api_keys.list").body["items"]
        assert listed["usage"]["credits"] == 4
        assert parse(listed["last_used_at"]) == last
        hours = ada("usage.history", query={"granularity": "hour"}).body["items"]
        assert [hour["credits"] for hour in hours if hour["credits"]] == [4, 8, 1]


def test_a_charge_that_is_written_again_costs_nothing(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free") as ada:
        charges = [(metering.operation_id(call(ada.harness.now_ms + i)), 2) for i in range(3)]

        def charged(given: list[tuple[bytes, int]]) -> int:
            at = ada.harness.now_ms
            return ada.write(lambda ctx: metering.charge_each(ctx, "search.search", "", at, given))

        assert charged(charges[:2]) == 2
        assert charged(charges) == 1
        assert charged(charges) == 0
        assert ada.used() == 6
        ada.audited()


def test_counts_survive_an_orderly_stop(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free") as ada:
        for _ in range(5):
            ada("search.search", {"query": "x"})
        ada.harness.reopen()
        assert ada("usage.get").body["requests"]["used"] == 5
        assert ada.used() == 5


def test_an_operation_id_is_the_calls_and_no_id_that_a_handler_makes() -> None:
    made = metering.operation_id(call(5))
    assert len(made) == metering.OPERATION_ID_BYTES and metering.made_at(made) == 5
    assert made == metering.operation_id(call(5)) != metering.operation_id(call(6))
    assert limits.USAGE_EVENTS_KEPT_SECONDS > limits.REPLAY_WINDOW_SECONDS, (
        "a late settlement finds the event it repeats"
    )


def test_notes_of_reads_are_counted_bounded_and_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage_buffer, "ACCESSES_UNWRITTEN_MAX", 2)
    heard: list[dict] = []
    ctx = SimpleNamespace(
        registry=SimpleNamespace(access_counters={"seen": lambda ctx, noted: heard.append(noted)})
    )

    async def check(buffer: UsageBuffer, written: list) -> None:
        for now_ms, keys in ((5, [1, 2]), (3, [2, 3]), (4, [1])):
            buffer.count_accesses(KEY, [("seen", key) for key in keys], now_ms)
        await buffer.flush()
        written[0][(7, 1)](ctx)
        assert heard == [{1: (2, 5), 2: (2, 5)}]
        buffer.count_accesses(KEY, [("seen", 3)], 6)
        await buffer.flush()
        written[1][(7, 1)](ctx)
        assert heard[1] == {3: (1, 6)}

    buffered(check)
