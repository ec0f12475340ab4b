"""Events are rows of the transaction that caused them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runtime.limits import OUTBOX_RETENTION_SECONDS
from runtime.outbox import OUTBOX
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
