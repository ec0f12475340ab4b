"""One Idempotency-Key, one effect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.api.operation import Call
from runtime.api.outbox import OUTBOX
from runtime.limits import REPLAY_WINDOW_SECONDS
from runtime.shard.idempotency import IDEMPOTENCY, IDEMPOTENCY_EXPIRY
from tests.support.shard_harness import Answer, ShardHarness
from tests.support.worlds import example_plugin, shard_harness

BODY = {"url": "https://example.org/a", "label": "reading"}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    with shard_harness(tmp_path, example_plugin()) as harness:
        yield harness


def rows(harness: ShardHarness, table, token: str) -> list:
    with harness.shard.store.snapshot() as snapshot:
        return list(snapshot.bind(table, harness.scope_of(token)).scan())


def test_a_cached_key_repeats_the_reply_byte_for_byte_and_says_so(harness: ShardHarness) -> None:
    me = harness.register()
    first = harness("bookmarks.create", BODY, who=me, key="k1")
    again = harness("bookmarks.create", BODY, who=me, key="k1")
    assert again.body == first.body and again.status == first.status
    assert (
        again.headers["X-Idempotent-Replay"] == "true"
        and "X-Idempotent-Replay" not in first.headers
    )
    harness.reopen()
    assert harness("bookmarks.create", BODY, who=me, key="k1").body == first.body
    assert harness("bookmarks.list", who=me).body["total_count"] == 1


def test_another_request_under_the_key_is_refused_for_good(harness: ShardHarness) -> None:
    me = harness.register()
    harness("bookmarks.create", BODY, who=me, key="k1")
    for _ in range(2):
        refused = harness("bookmarks.create", {**BODY, "label": "x"}, who=me, key="k1")
        assert refused.status == 409


def test_keys_belong_to_their_account(harness: ShardHarness) -> None:
    me, eve = harness.register(), harness.register("eve@example.com", "Eve")
    mine = harness("bookmarks.create", BODY, who=me, key="same")
    hers = harness("bookmarks.create", BODY, who=eve, key="same")
    assert mine.status == hers.status == 201 and mine.body["id"] != hers.body["id"]


def test_keys_of_callers_without_an_account_belong_to_their_address(
    harness: ShardHarness,
) -> None:
    """Else whoever learns what somebody registered with is given the session of that account."""
    body = {"email": "ada@example.com", "password": "correct horse", "full_name": "Ada Lovelace"}

    def register(address: str) -> Answer:
        call = harness.form("auth.register", body, key="same")
        assert isinstance(call, Call)
        call.client = address
        return harness.together([call])[0]

    first, again = register("198.51.100.7"), register("198.51.100.7")
    assert first.status == again.status == 201 and again.body == first.body
    elsewhere = register("203.0.113.9")
    assert elsewhere.status == 409 and "access_token" not in str(elsewhere.body)
    assert "X-Idempotent-Replay" not in elsewhere.headers


def test_fifty_twins_make_one_record_one_event_and_one_key(harness: ShardHarness) -> None:
    me = harness.register()
    answers = harness.together(
        [harness.form("bookmarks.create", BODY, who=me, key="twin") for _ in range(50)]
    )
    assert {answer.status for answer in answers} <= {201, 409}
    assert len({answer.body["id"] for answer in answers if answer.status == 201}) == 1
    assert harness("bookmarks.list", who=me).body["total_count"] == 1
    assert len([row for _, row in rows(harness, OUTBOX, me) if row.kind == "bookmark.saved"]) == 1
    assert len(rows(harness, IDEMPOTENCY, me)) == 1


def test_a_running_twin_is_told_to_wait(harness: ShardHarness) -> None:
    me = harness.register()
    first, twin = harness.together(
        [harness.form("bookmarks.create", BODY, who=me, key="twin") for _ in range(2)]
    )
    assert first.status == 201 and twin.status == 409 and "still running" in twin.body["message"]


def test_the_window_of_a_cached_reply_is_a_day_and_old_records_are_swept(
    harness: ShardHarness,
) -> None:
    me = harness.register()
    first = harness("bookmarks.create", BODY, who=me, key="k").body
    harness.now_ms += REPLAY_WINDOW_SECONDS * 1000 - 10
    assert harness("bookmarks.create", BODY, who=me, key="k").body == first
    harness.now_ms += 20
    assert harness("bookmarks.create", BODY, who=me, key="k").body["id"] != first["id"]
    assert len(rows(harness, IDEMPOTENCY, me)) == len(rows(harness, IDEMPOTENCY_EXPIRY, me)) == 1


def test_neither_the_key_nor_the_reply_lies_open_on_disk(tmp_path: Path) -> None:
    with shard_harness(tmp_path, example_plugin()) as harness:
        me = harness.register()
        minted = harness(
            "auth.api_keys.create", {"name": "n"}, who=me, key="a-very-recognisable-key"
        ).body["key"]
        harness("bookmarks.create", BODY, who=me, key="another-recognisable-key")
    stored = (tmp_path / "data.mdb").read_bytes()
    assert b"recognisable-key" not in stored and minted.encode() not in stored
