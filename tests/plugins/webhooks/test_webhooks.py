"""Webhooks against real receivers: what arrives, how it is signed, and what happens when nobody
takes it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest
from standardwebhooks import Webhook as StandardWebhook

from plugins.webhooks import store as webhook_store
from plugins.webhooks.delivery import wait_ms
from plugins.webhooks.store import BODIES, DELIVERIES
from runtime import signatures
from runtime.api.plugin import RetryStrategy
from runtime.limits import GROUP_JOBS_AT_ONCE, OUTBOUND_ANSWER_BYTES_MAX
from runtime.timestamps import parse
from serve_app import Settings
from tests.support.receivers import Received, receiver
from tests.support.shard_harness import CHEAP, ShardHarness
from tests.support.webhook_harness import (
    ELSEWHERE,
    QUICK,
    count,
    deliveries,
    detail,
    harness,
    hook,
    until,
)

# --- what arrives ---------------------------------------------------------------------------------


def test_events_arrive_as_they_happen(tmp_path: Path) -> None:
    with harness(tmp_path, ELSEWHERE) as at, receiver() as there:
        me = at.register()
        webhook = hook(at, me, there)
        collection = at("collections.create", {"name": "work"}, who=me).body
        memory = at(
            "memories.create",
            {"content": "Ada likes tea.", "collection_id": collection["id"], "importance": 0.7},
            who=me,
        ).body
        at("memories.update", {"content": "Ada likes coffee."}, who=me, id=memory["id"])
        found = at("search.search", {"query": "Who likes coffee?"}, who=me).body
        at("memories.delete", who=me, id=memory["id"])
        emitted = at("elsewhere.emit", {}, who=me).body["event_id"]
        until(at, lambda: "search.completed" in there.kinds())
        at.settle()
        by_kind = {received.event["event_type"]: received.event for received in there.received}
        told = {kind: event["data"] for kind, event in by_kind.items()}
        same = {name: memory[name] for name in ("id", "collection_id", "importance", "created_at")}
        assert told["memory.created"] == {**same, "version": 1, "content": "Ada likes tea."}
        updated_at = told["memory.updated"].pop("updated_at")
        assert (
            told["memory.updated"] == {**same, "version": 2, "content": "Ada likes coffee."}
            and updated_at > memory["created_at"]
        )
        assert (
            set(told["memory.deleted"]) == {"id", "version", "collection_id", "deleted_at"}
            and told["memory.deleted"]["version"] == 3
        )
        assert told["collection.created"] == {
            "id": collection["id"],
            "name": "work",
            "change": "created",
            "version": 1,
        }
        assert told["collection.updated"]["change"] == "membership"
        assert told["search.completed"]["top_ids"] == found["evidence_ids"] == [memory["id"]]
        assert set(told["search.completed"]) == {
            "id",
            "query_hash",
            "search_type",
            "result_count",
            "top_ids",
            "no_match",
            "took_ms",
        }
        assert by_kind["user.feedback_received"]["id"] == emitted
        assert b"Who likes coffee?" not in b"".join(received.body for received in there.received)
        for received in there.received:
            event = received.event
            assert set(event) == {"id", "event_type", "timestamp", "data", "idempotency_key"}
            assert event["id"].startswith("evt_") and isinstance(event["timestamp"], int)
            kind, resource, _, last = event["idempotency_key"].split(":")
            assert (kind, resource, last) == (
                event["event_type"],
                event["data"]["id"],
                webhook["id"],
            )
            assert received.headers["content-type"] == "application/json"
        assert memory["outbox_event_id"] == by_kind["memory.created"]["id"]


def test_only_what_was_asked_for_arrives_and_only_from_the_own_account(at: ShardHarness) -> None:
    with receiver() as there, receiver() as elsewhere:
        me, eve = at.register(), at.register("eve@example.com", "Eve")
        hook(at, me, there, "memory.deleted", "memory.deleted")
        hook(at, eve, elsewhere)
        memory = at("memories.create", {"content": "Ada's own."}, who=me).body
        at("memories.delete", who=me, id=memory["id"])
        at.settle()
        assert (there.kinds(), elsewhere.kinds()) == (["memory.deleted"], [])


def test_a_write_that_is_refused_tells_nobody(at: ShardHarness) -> None:
    with receiver() as there:
        me = at.register()
        hook(at, me, there)
        assert (
            at("memories.create", {"content": "x", "collection_id": "col_nowhere"}, who=me).status
            == 404
        )
        at.settle()
        assert there.received == [] and count(at, me, DELIVERIES) == 0


def test_context_is_told_of_as_the_search_that_it_is(at: ShardHarness) -> None:
    with receiver() as there:
        me = at.register()
        hook(at, me, there, "search.completed")
        memory = at("memories.create", {"content": "Ada likes tea."}, who=me).body["id"]
        block = at("search.context", {"query": "Who likes tea?"}, who=me).body
        until(at, lambda: there.kinds() == ["search.completed"])
        told = there.received[0].event["data"]
        assert told["top_ids"] == block["evidence_ids"] == [memory]
        assert told["result_count"] == 1


def test_a_search_that_nobody_waits_for_writes_no_event(at: ShardHarness) -> None:
    with receiver() as there:
        me = at.register()
        hook(at, me, there, "memory.created")
        assert at("search.search", {"query": "Who likes tea?"}, who=me).status == 200
        assert not at.shard.reads.announcing


# --- signatures -----------------------------------------------------------------------------------


def assert_signed(received: Received, secret: str) -> None:
    """By the specification's formula, and by an independent implementation of Standard Webhooks."""
    signed = received.headers["x-webhook-timestamp"].encode() + b"." + received.body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert received.headers["x-webhook-signature-256"] == f"sha256={expected}"
    signatures.verify(
        received.body, received.headers, secret, int(received.headers["x-webhook-timestamp"])
    )
    keys = [base64.b64encode(secret.encode()).decode()]
    if secret.startswith("whsec_"):
        keys.append(secret)
    for key in keys:
        assert StandardWebhook(key).verify(received.body, dict(received.headers)) == received.event
    assert received.headers["webhook-id"] == received.event["id"]


@pytest.mark.parametrize("own", [None, "correct horse battery staple"])
def test_deliveries_are_signed(at: ShardHarness, own: str | None) -> None:
    with receiver() as there:
        me = at.register()
        webhook = hook(
            at, me, there, "memory.created", **({} if own is None else {"signing_secret": own})
        )
        assert (
            webhook["signing_secret"] == own or len(webhook["signing_secret"]) == len("whsec_") + 43
        )
        at("memories.create", {"content": "Ünïcödé ✓"}, who=me)
        at.settle()
        (received,) = there.received
        assert_signed(received, webhook["signing_secret"])
        with pytest.raises(signatures.NotGenuine):
            signatures.verify(
                received.body + b" ",
                received.headers,
                webhook["signing_secret"],
                int(received.headers["webhook-timestamp"]),
            )


def test_a_rotation_signs_with_both_until_its_grace_is_over(at: ShardHarness) -> None:
    with receiver() as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        rotated = at("webhooks.rotate_secret", {}, who=me, id=webhook["id"]).body
        assert rotated["signing_secret"] != webhook["signing_secret"]
        at("memories.create", {"content": "in between"}, who=me)
        at.settle()
        at("webhooks.rotate_secret", {"grace_seconds": 0}, who=me, id=webhook["id"])
        at("memories.create", {"content": "afterwards"}, who=me)
        at.settle()
        between, afterwards = there.received
        assert_signed(between, rotated["signing_secret"])
        previous = {
            **between.headers,
            "x-webhook-signature-256": between.headers["x-webhook-signature-256-previous"],
        }
        assert_signed(Received(between.path, previous, between.body), webhook["signing_secret"])
        assert "x-webhook-signature-256-previous" not in afterwards.headers
        with pytest.raises(signatures.NotGenuine):
            signatures.verify(
                afterwards.body,
                afterwards.headers,
                rotated["signing_secret"],
                int(afterwards.headers["webhook-timestamp"]),
            )


def test_a_secret_is_shown_once_and_stored_sealed(at: ShardHarness) -> None:
    me = at.register()
    made = at(
        "webhooks.create",
        {"url": "http://127.0.0.1:9999/", "events": ["memory.created"]},
        who=me,
        key="k",
    )
    again = at(
        "webhooks.create",
        {"url": "http://127.0.0.1:9999/", "events": ["memory.created"]},
        who=me,
        key="k",
    )
    secret = made.body["signing_secret"]
    assert again.body == made.body, "the same request within its day gets the same answer"
    webhook = made.body["id"]
    changed = {"url": "http://127.0.0.1:9999/", "events": ["memory.created"]}
    shown = [
        at("webhooks.get", who=me, id=webhook),
        at("webhooks.list", who=me),
        at("webhooks.update", changed, who=me, id=webhook),
    ]
    assert secret not in repr(shown)
    assert secret.encode() not in at.shard.store.data_file.read_bytes()


# --- attempts -------------------------------------------------------------------------------------


def test_five_attempts_then_a_dead_letter_then_a_replay(at: ShardHarness) -> None:
    with receiver(500, 301, 404, 503, 429, body=b"x" * 20_000) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "hard to get rid of"}, who=me)
        at.settle()
        assert len(there.received) == 5 and len({received.body for received in there.received}) == 1
        (letter,) = at("webhooks.dead_letters.list", who=me).body["items"]
        assert (letter["status"], letter["attempt_count"]) == ("failed", 5)
        assert letter["idempotency_key"] == there.received[0].event["idempotency_key"]
        log = detail(at, me, webhook, letter)
        assert [attempt["status_code"] for attempt in log["attempts"]] == [500, 301, 404, 503, 429]
        assert {len(attempt["response_body"]) for attempt in log["attempts"]} == {
            OUTBOUND_ANSWER_BYTES_MAX
        }
        assert log["payload"] == there.received[0].event
        assert at("webhooks.get", who=me, id=webhook["id"]).body["failure_count"] == 5
        replayed = at(
            "webhooks.deliveries.replay", who=me, id=webhook["id"], delivery_id=letter["id"]
        )
        twice = at("webhooks.deliveries.replay", who=me, id=webhook["id"], delivery_id=letter["id"])
        assert (replayed.status, replayed.body["status"], twice.status) == (202, "pending", 202)
        at.settle()
        assert len(there.received) in (6, 7), (
            "the second replay may have found the first one delivered"
        )
        assert there.received[5].body == there.received[0].body
        assert at("webhooks.dead_letters.list", who=me).body["items"] == []
        after = at("webhooks.get", who=me, id=webhook["id"]).body
        assert after["failure_count"] == 0 and after["last_delivery_at"] is not None


def test_a_replay_has_a_full_set_of_attempts(at: ShardHarness) -> None:
    with receiver(*[500] * 9) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "hard to get rid of"}, who=me)
        at.settle()
        (letter,) = deliveries(at, me, webhook, status="failed")
        ids = {"ids": [letter["id"]]}
        assert at("webhooks.dead_letters.replay", ids, who=me).body["replayed"] == 1
        at.settle()
        (delivered,) = deliveries(at, me, webhook)
        assert (delivered["status"], delivered["attempt_count"]) == ("delivered", 10)


def test_a_receiver_says_when_to_come_back(tmp_path: Path) -> None:
    with (
        harness(tmp_path, backoff_seconds_min=100) as at,
        receiver(503, headers={"Retry-After": "150"}) as there,
    ):
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        until(at, lambda: deliveries(at, me, webhook, status="retrying"))
        (row,) = deliveries(at, me, webhook)
        (attempt,) = detail(at, me, webhook, row)["attempts"]
        assert parse(row["next_attempt_at"]) - parse(attempt["at"]) == 150_000


def test_a_receiver_that_names_no_time_is_asked_again_as_one_that_says_nothing(
    at: ShardHarness,
) -> None:
    with receiver(503, headers={"Retry-After": "Thu, 01 Jan 99999999999 00:00:00 GMT"}) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        (row,) = deliveries(at, me, webhook)
        attempts = detail(at, me, webhook, row)["attempts"]
        assert [attempt["status_code"] for attempt in attempts] == [503, 200]


def test_with_too_much_waiting_events_are_kept_as_skipped(
    at: ShardHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_store, "WEBHOOK_DELIVERIES_PENDING_MAX", 2)
    with receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at(
            "memories.create_batch",
            {"memories": [{"content": f"number {n}"} for n in range(3)]},
            who=me,
        )
        assert len(deliveries(at, me, webhook, status="skipped")) == 1
        there.let_go.set()
        at.settle()
        at("memories.create", {"content": "there is room again"}, who=me)
        at.settle()
        assert len(deliveries(at, me, webhook, status="delivered")) == 3


def test_a_delivery_that_cannot_be_made_ends_as_a_dead_letter_and_gives_its_place_back(
    at: ShardHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_store, "WEBHOOK_DELIVERIES_PENDING_MAX", 1)
    monkeypatch.setattr(RetryStrategy, "wait_ms", lambda *_: 0)
    with receiver(500, hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "what it sends is lost"}, who=me)
        until(at, lambda: there.received)
        at.shard.store.write(lambda t: t.bind(BODIES, at.scope_of(me)).delete_prefix())
        there.let_go.set()
        at.settle()
        (letter,) = deliveries(at, me, webhook, status="failed")
        answered, given_up = detail(at, me, webhook, letter)["attempts"]
        assert (answered["status_code"], given_up["status_code"]) == (500, None)
        assert BODIES.name in given_up["error"]
        at("memories.create", {"content": "there is room again"}, who=me)
        at.settle()
        (delivered,) = deliveries(at, me, webhook, status="delivered")
        assert detail(at, me, webhook, delivered)["payload"] == there.received[-1].event


def test_a_redirect_is_not_followed(at: ShardHarness) -> None:
    with receiver() as inside, receiver(302, headers={"Location": inside.url}) as there:
        me = at.register()
        hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        assert len(there.received) == 2 and inside.received == []


@pytest.mark.parametrize(("tries", "seconds"), [(1, 4), (2, 8), (3, 16), (4, 32), (11, 3_600)])
def test_waits_double_and_only_grow_by_chance(tries: int, seconds: int) -> None:
    assert wait_ms(4, tries, 0.0) == seconds * 1000
    longest = wait_ms(4, tries, 0.999_999)
    assert seconds * 1000 <= longest <= min(seconds * 1_100, 3_600_000)


@pytest.mark.parametrize(
    ("asked_seconds", "wait"), [(0, 8_000), (1, 8_000), (12, 12_000), (600, 16_000)]
)
def test_a_receiver_may_ask_for_up_to_twice_the_wait(asked_seconds: float, wait: int) -> None:
    assert wait_ms(4, 2, 0.0, asked_seconds) == wait


def test_an_answer_that_does_not_come_in_time_is_a_failure(tmp_path: Path) -> None:
    with harness(tmp_path, timeout_seconds=0.1) as at, receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        (letter,) = deliveries(at, me, webhook, status="failed")
        errors = {attempt["error"] for attempt in detail(at, me, webhook, letter)["attempts"]}
        assert errors == {"No complete answer within 0.1 seconds."}


def test_a_receiver_that_hangs_delays_no_other(at: ShardHarness) -> None:
    with receiver(hangs=True) as hole, receiver() as there:
        me = at.register()
        hook(at, me, hole, "memory.created")
        hook(at, me, there, "memory.created")
        for _ in range(3):
            assert (
                at(
                    "memories.create_batch",
                    {"memories": [{"content": f"number {n}"} for n in range(20)]},
                    who=me,
                ).status
                == 201
            )
        until(at, lambda: len(there.received) == 60)
        until(at, lambda: at.status()["lanes"]["open"] == 1)
        until(at, lambda: len(hole.received) >= GROUP_JOBS_AT_ONCE)
        lanes = at.status()["lanes"]
        assert (lanes["running"], lanes["waiting"], len(hole.received)) == (
            4,
            56,
            GROUP_JOBS_AT_ONCE,
        )


# --- disabled -------------------------------------------------------------------------------------


def test_what_the_receiver_before_says_disables_nothing(at: ShardHarness) -> None:
    with receiver(410, hangs=True) as before, receiver() as now:
        me = at.register()
        webhook = hook(at, me, before, "memory.created")
        at("memories.create", {"content": "first"}, who=me)
        until(at, lambda: before.received)
        moved = {"url": now.url, "events": ["memory.created"]}
        at("webhooks.update", moved, who=me, id=webhook["id"])
        before.let_go.set()
        until(at, lambda: now.received)
        at.settle()
        shown = at("webhooks.get", who=me, id=webhook["id"]).body
        assert (shown["url"], shown["status"]) == (now.url, "active")
        assert [row["status"] for row in deliveries(at, me, webhook)] == ["delivered"]


def test_gone_disables_at_once_and_what_was_skipped_can_be_replayed(at: ShardHarness) -> None:
    with receiver(410) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "first"}, who=me)
        at.settle()
        disabled = at("webhooks.get", who=me, id=webhook["id"]).body
        assert (disabled["status"], disabled["disabled_reason"]) == (
            "disabled",
            "The receiver answered 410 Gone.",
        )
        at("memories.create", {"content": "second"}, who=me)
        at.settle()
        assert len(there.received) == 1
        (skipped,), (letter,) = (
            deliveries(at, me, webhook, status="skipped"),
            deliveries(at, me, webhook, status="failed"),
        )
        assert at("webhooks.test", who=me, id=webhook["id"]).status == 409
        assert (
            at(
                "webhooks.deliveries.replay", who=me, id=webhook["id"], delivery_id=skipped["id"]
            ).status
            == 409
        )
        results = at("webhooks.dead_letters.replay", {"ids": [letter["id"]]}, who=me).body[
            "results"
        ]
        assert results == [{"id": letter["id"], "status": "refused"}]
        enabled = at(
            "webhooks.update",
            {"url": there.url, "events": ["memory.created"]},
            who=me,
            id=webhook["id"],
        ).body
        assert (enabled["status"], enabled["disabled_reason"], enabled["failure_count"]) == (
            "active",
            None,
            0,
        )
        replayed = at(
            "webhooks.dead_letters.replay", {"since": "2000-01-01", "include_skipped": True}, who=me
        )
        assert (replayed.status, replayed.body["replayed"], replayed.body["has_more"]) == (
            202,
            2,
            False,
        )
        at.settle()
        assert [received.event["data"]["content"] for received in there.received[1:]] in (
            ["first", "second"],
            ["second", "first"],
        )


def test_days_of_nothing_but_failures_disable(tmp_path: Path) -> None:
    with harness(tmp_path) as at, receiver(*[500] * 11) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        assert at("webhooks.get", who=me, id=webhook["id"]).body["status"] == "active"
        at.settings = Settings.load(
            {**CHEAP, "webhooks": QUICK, "clock": {"offset_seconds": 120 * 3600 + 60}}
        )
        at.reopen()
        at("memories.create", {"content": "y"}, who=me)
        at.settle()
        disabled = at("webhooks.get", who=me, id=webhook["id"]).body
        assert disabled["status"] == "disabled"
        assert disabled["disabled_reason"] == (
            "Every attempt of the last 120 hours failed. The last one: The receiver answered 500."
        )
        assert len(there.received) == 6, "the first attempt after five days settled it"
        assert len(deliveries(at, me, webhook, status="skipped")) == 1


def test_an_owner_can_disable(at: ShardHarness) -> None:
    with receiver() as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created", description="for tests")
        body = {"url": there.url, "events": ["memory.created"], "status": "disabled"}
        disabled = at("webhooks.update", body, who=me, id=webhook["id"]).body
        assert (disabled["disabled_reason"], disabled["description"]) == (
            "Disabled by its owner.",
            None,
        )
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        assert there.received == []
