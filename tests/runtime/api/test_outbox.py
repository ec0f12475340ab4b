"""Events are rows of the transaction that caused them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from runtime.api.operation import Event, Read, View, Write
from runtime.api.outbox import MIGRATIONS, OUTBOX
from runtime.api.plugin import EVERY_EVENT, Plugin
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, OUTBOX_RETENTION_SECONDS
from runtime.shard import usage_buffer
from storage.store import Identity, Scope, Store, Table
from tests.support.shard_harness import ShardHarness
from tests.support.worlds import example_plugin, shard_harness


def test_subscribers_run_inside_the_transaction_and_can_stop_it(tmp_path: Path) -> None:
    heard = []

    def listen(ctx, event_id, kind, data, resource_id):
        if data["label"] == "bad":
            raise KeyError("a subscriber broke")
        heard.append((kind, resource_id, event_id[:4]))

    with shard_harness(
        tmp_path, replace(example_plugin(), subscribe={"bookmark.saved": listen})
    ) as harness:
        me = harness.register()
        made = harness("bookmarks.create", {"url": "u", "label": "good"}, who=me)
        assert heard == [("bookmark.saved", made.body["id"], "evt_")]
        assert harness("bookmarks.create", {"url": "u", "label": "bad"}, who=me).status == 500
        assert harness("bookmarks.list", who=me).body["total_count"] == 1


def test_an_event_is_kept_for_a_week(tmp_path: Path) -> None:
    with shard_harness(tmp_path, example_plugin()) as harness:
        me = harness.register()
        scope = harness.scope_of(me)

        def stored() -> list[str]:
            with harness.shard.store.snapshot() as snapshot:
                urls = {
                    item["id"]: item["url"]
                    for item in harness("bookmarks.list", who=me).body["items"]
                }
                return [urls[row.resource_id] for _, row in snapshot.bind(OUTBOX, scope).scan()]

        harness("bookmarks.create", {"url": "first"}, who=me)
        harness.now_ms += OUTBOX_RETENTION_SECONDS * 1000 - 1_000
        harness("bookmarks.create", {"url": "second"}, who=me)
        assert stored() == ["first", "second"]
        harness.now_ms += 2_000
        harness("bookmarks.create", {"url": "third"}, who=me)
        assert stored() == ["second", "third"]


def test_a_call_of_many_events_sweeps_as_many_old_ones(tmp_path: Path) -> None:
    told, count = Event("other.told", View), [0]

    def emit(ctx, body):
        for _ in range(count[0]):
            ctx.emit(told, {}, "")

    start = Write(
        name="other.emit", method="POST", path="/v1/other", response=None,
        summary="", scope="write", handler=emit,
    )  # fmt: skip
    with shard_harness(
        tmp_path, Plugin(name="other", events=(told,), operations=(start,))
    ) as harness:
        me = harness.register()

        def kept_after(events: int) -> int:
            count[0] = events
            assert harness("other.emit", who=me).status == 200
            with harness.shard.store.snapshot() as snapshot:
                return snapshot.bind(OUTBOX, harness.scope_of(me)).count()

        often = 5
        old = often * EXPIRED_ROWS_SWEPT_PER_WRITE
        assert kept_after(old) == old
        harness.now_ms += OUTBOX_RETENTION_SECONDS * 1000 + 1
        assert kept_after(1) == old - EXPIRED_ROWS_SWEPT_PER_WRITE + 1
        assert kept_after(2 * often) == 1 + 2 * often


def test_who_hears_everything_hears_no_internal_signal(tmp_path: Path) -> None:
    heard = []
    saved, signal = Event("other.saved", View), Event("internal.signal", View)

    def listen(ctx, event_id, kind, data, resource_id):
        heard.append(kind)

    def emit(ctx, body):
        for event in (saved, signal):
            ctx.emit(event, {}, "")

    start = Write(
        name="other.emit", method="POST", path="/v1/other", response=None,
        summary="", scope="write", handler=emit,
    )  # fmt: skip
    other = Plugin(name="other", events=(saved, signal), operations=(start,))
    ear = Plugin(name="ear", subscribe={EVERY_EVENT: listen})
    with shard_harness(tmp_path, example_plugin(), other, ear) as harness:
        me = harness.register()
        harness("bookmarks.create", {"url": "u"}, who=me)
        harness("other.emit", who=me)
        assert heard == ["bookmark.saved", "other.saved"]


async def announced(harness: ShardHarness) -> None:
    """Until every event of a read is written."""
    async with asyncio.timeout(10):
        while harness.shard.reads.announcing:
            await asyncio.sleep(0.002)


def test_a_read_announces_to_whoever_waits_after_its_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        usage_buffer, "USAGE_WRITTEN_AFTER_SECONDS", 3_600
    )  # the only writes are those that are looked for
    heard, asked, waiting = [], [], [False]
    looked = Event("other.looked", View)

    def data():
        asked.append(1)
        return {"at": "it"}

    def look(ctx, body):
        ctx.announce(looked, data, "r1")
        return {"heard": len(heard)}

    def listen(ctx, event_id, kind, data, resource_id):
        heard.append((kind, data, resource_id))

    fields = {
        "method": "GET",
        "handler": look,
        "response": None,
        "summary": "",
    }

    async def prepare(call, loaded, models):
        return None

    quick = Read(name="other.look", path="/v1/other", **fields)
    slow = Read(name="other.look_slowly", path="/v1/slow", prepare=prepare, **fields)
    other = Plugin(name="other", events=(looked,), operations=(quick, slow))
    ear = Plugin(
        name="ear", subscribe={"other.looked": listen}, audience=lambda ctx, kind: waiting[0]
    )
    with shard_harness(tmp_path, other, ear) as harness:
        me = harness.register()
        before = harness.shard.store.sequence
        assert harness("other.look", who=me).body == {"heard": 0}
        waiting[0] = True
        for operation in ("other.look", "other.look_slowly"):
            harness(operation, who=me)
        harness.run(announced(harness))
        written = harness.shard.store.sequence - before
        assert heard == [("other.looked", {"at": "it"}, "r1")] * 2 and len(asked) == 2
        assert written in (1, 2), "nobody waited for the first"


def test_rows_of_before_lose_their_copy_of_the_data(tmp_path: Path) -> None:
    class OldRow(msgspec.Struct):
        kind: str
        resource_id: str
        at: int
        data: bytes

    identity, scope = Identity("", 0, 1, 4096, 1), Scope(1, 1)
    old = Table("outbox", key=("event_id",), row=OldRow)
    store = Store.open(tmp_path, [old], identity=identity, create=True)
    store.write(
        lambda transaction: transaction.bind(old, scope).put(
            ("evt_1",), OldRow("memory.created", "mem_1", 7, b"canary")
        )
    )
    store.close()
    store = Store.open(tmp_path, [OUTBOX], identity=identity, migrations=MIGRATIONS, create=False)
    with store.snapshot() as snapshot:
        rows = snapshot.bind(OUTBOX, scope)
        assert rows.get("evt_1").resource_id == "mem_1" and b"canary" not in rows.get_raw("evt_1")
    store.close()
