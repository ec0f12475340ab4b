"""One Idempotency-Key, one effect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.idempotency import IDEMPOTENCY, IDEMPOTENCY_EXPIRY
from runtime.limits import REPLAY_WINDOW_SECONDS
from runtime.outbox import OUTBOX
from tests.plugins import Desk
from tests.worlds import desk_of, example_plugin

BODY = {"url": "https://example.org/a", "label": "reading"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_of(tmp_path, example_plugin()) as desk:
        yield desk


def rows(desk: Desk, table, token: str) -> list:
    with desk.shard.store.snapshot() as snapshot:
        return list(snapshot.bind(table, desk.scope_of(token)).scan())


def test_a_cached_key_repeats_the_reply_byte_for_byte_and_says_so(desk: Desk) -> None:
    me = desk.register()
    first = desk("bookmarks.create", BODY, who=me, key="k1")
    again = desk("bookmarks.create", BODY, who=me, key="k1")
    assert again.body == first.body and again.status == first.status
    assert again.headers["X-Idempotent-Replay"] == "true" and "X-Idempotent-Replay" not in first.headers
    desk.reopen()
    assert desk("bookmarks.create", BODY, who=me, key="k1").body == first.body
    assert desk("bookmarks.list", who=me).body["total_count"] == 1


def test_another_request_under_the_key_is_refused_for_good(desk: Desk) -> None:
    me = desk.register()
    desk("bookmarks.create", BODY, who=me, key="k1")
    for _ in range(2):
        refused = desk("bookmarks.create", {**BODY, "label": "x"}, who=me, key="k1")
        assert refused.status == 409


def test_keys_belong_to_their_account(desk: Desk) -> None:
    me, eve = desk.register(), desk.register("eve@example.com", "Eve")
    mine = desk("bookmarks.create", BODY, who=me, key="same")
    hers = desk("bookmarks.create", BODY, who=eve, key="same")
    assert mine.status == hers.status == 201 and mine.body["id"] != hers.body["id"]


def test_fifty_twins_make_one_record_one_event_and_one_key(desk: Desk) -> None:
    me = desk.register()
    answers = desk.together([desk.form("bookmarks.create", BODY, who=me, key="twin") for _ in range(50)])
    assert {answer.status for answer in answers} <= {201, 409}
    assert len({answer.body["id"] for answer in answers if answer.status == 201}) == 1
    assert desk("bookmarks.list", who=me).body["total_count"] == 1
    assert len([row for _, row in rows(desk, OUTBOX, me) if row.kind == "bookmark.saved"]) == 1
    assert len(rows(desk, IDEMPOTENCY, me)) == 1


def test_a_running_twin_is_told_to_wait(desk: Desk) -> None:
    me = desk.register()
    first, twin = desk.together([desk.form("bookmarks.create", BODY, who=me, key="twin") for _ in range(2)])
    assert first.status == 201 and twin.status == 409 and "still running" in twin.body["message"]


def test_the_window_of_a_cached_reply_is_a_day_and_old_records_are_swept(desk: Desk) -> None:
    me = desk.register()
    first = desk("bookmarks.create", BODY, who=me, key="k").body
    desk.now_ms += REPLAY_WINDOW_SECONDS * 1000 - 10
    assert desk("bookmarks.create", BODY, who=me, key="k").body == first
    desk.now_ms += 20
    assert desk("bookmarks.create", BODY, who=me, key="k").body["id"] != first["id"]
    assert len(rows(desk, IDEMPOTENCY, me)) == len(rows(desk, IDEMPOTENCY_EXPIRY, me)) == 1


def test_neither_the_key_nor_the_reply_lies_open_on_disk(tmp_path: Path) -> None:
    with desk_of(tmp_path, example_plugin()) as desk:
        me = desk.register()
        minted = desk("auth.api_keys.create", {"name": "n"}, who=me, key="a-very-recognisable-key").body["key"]
        desk("bookmarks.create", BODY, who=me, key="another-recognisable-key")
    stored = (tmp_path / "data.mdb").read_bytes()
    assert b"recognisable-key" not in stored and minted.encode() not in stored
