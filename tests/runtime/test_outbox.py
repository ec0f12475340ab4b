"""Events are rows of the transaction that caused them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from runtime.limits import OUTBOX_RETENTION_SECONDS
from runtime.operation import Event, Kind, Operation, View
from runtime.outbox import MIGRATIONS, OUTBOX
from runtime.plugin import EVERY_EVENT, Plugin
from storage.table import Identity, Scope, Store, Table
from tests.plugins import Desk
from tests.worlds import desk_of, example_plugin


def test_subscribers_run_inside_the_transaction_and_can_stop_it(tmp_path: Path) -> None:
    heard = []

    def listen(ctx, event_id, kind, data, resource_id):
        if data["label"] == "bad":
            raise KeyError("a subscriber broke")
        heard.append((kind, resource_id, event_id[:4]))

    with desk_of(tmp_path, replace(example_plugin(), subscribe={"bookmark.saved": listen})) as desk:
        me = desk.register()
        made = desk("bookmarks.create", {"url": "u", "label": "good"}, who=me)
        assert heard == [("bookmark.saved", made.body["id"], "evt_")]
        assert desk("bookmarks.create", {"url": "u", "label": "bad"}, who=me).status == 500
        assert desk("bookmarks.list", who=me).body["total_count"] == 1


def test_an_event_is_kept_for_a_week(tmp_path: Path) -> None:
    with desk_of(tmp_path, example_plugin()) as desk:
        me = desk.register()
        scope = desk.scope_of(me)

        def stored() -> list[str]:
            with desk.shard.store.snapshot() as snapshot:
                urls = {item["id"]: item["url"] for item in desk("bookmarks.list", who=me).body["items"]}
                return [urls[row.resource_id] for _, row in snapshot.bind(OUTBOX, scope).scan()]

        desk("bookmarks.create", {"url": "first"}, who=me)
        desk.now_ms += OUTBOX_RETENTION_SECONDS * 1000 - 1_000
        desk("bookmarks.create", {"url": "second"}, who=me)
        assert stored() == ["first", "second"]
        desk.now_ms += 2_000
        desk("bookmarks.create", {"url": "third"}, who=me)
        assert stored() == ["second", "third"]


def test_who_hears_everything_hears_no_internal_signal(tmp_path: Path) -> None:
    heard = []
    saved, signal = Event("other.saved", View), Event("internal.signal", View)

    def listen(ctx, event_id, kind, data, resource_id):
        heard.append(kind)

    def emit(ctx, body):
        for event in (saved, signal):
            ctx.emit(event, {}, "")

    start = Operation(
        name="other.emit", method="POST", path="/v1/other", kind=Kind.WRITE, response=None, summary="", spec="test", scope="write",
        handler=emit,
    )  # fmt: skip
    other = Plugin(name="other", events=(saved, signal), operations=(start,))
    ear = Plugin(name="ear", subscribe={EVERY_EVENT: listen})
    with desk_of(tmp_path, example_plugin(), other, ear) as desk:
        me = desk.register()
        desk("bookmarks.create", {"url": "u"}, who=me)
        desk("other.emit", who=me)
        assert heard == ["bookmark.saved", "other.saved"]


async def announced(desk: Desk) -> None:
    """Until every event of a read is written."""
    async with asyncio.timeout(10):
        while desk.shard._announcing:
            await asyncio.sleep(0.002)


def test_a_read_announces_to_whoever_waits_after_its_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.usage_buffer.USAGE_WRITTEN_AFTER_SECONDS", 3_600)  # the only writes are those that are looked for
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

    fields = {"method": "GET", "kind": Kind.READ, "handler": look, "response": None, "summary": "", "spec": "test"}

    async def prepare(call, loaded, models):
        return None

    quick = Operation(name="other.look", path="/v1/other", **fields)
    slow = Operation(name="other.look_slowly", path="/v1/slow", prepare=prepare, **fields)
    other = Plugin(name="other", events=(looked,), operations=(quick, slow))
    ear = Plugin(name="ear", subscribe={"other.looked": listen}, audience=lambda ctx, kind: waiting[0])
    with desk_of(tmp_path, other, ear) as desk:
        me = desk.register()
        before = desk.shard.store.sequence
        assert desk("other.look", who=me).body == {"heard": 0}
        waiting[0] = True
        for operation in ("other.look", "other.look_slowly"):
            desk(operation, who=me)
        desk._runner.run(announced(desk))
        written = desk.shard.store.sequence - before
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
    store.write(lambda transaction: transaction.bind(old, scope).put(("evt_1",), OldRow("memory.created", "mem_1", 7, b"canary")))
    store.close()
    store = Store.open(tmp_path, [OUTBOX], identity=identity, migrations=MIGRATIONS, create=False)
    with store.snapshot() as snapshot:
        rows = snapshot.bind(OUTBOX, scope)
        assert rows.get("evt_1").resource_id == "mem_1" and b"canary" not in rows.get_raw("evt_1")
    store.close()
