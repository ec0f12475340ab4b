"""Webhooks against real receivers: what arrives, how it is signed, and what happens when nobody takes it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field
from standardwebhooks import Webhook as StandardWebhook

from plugins import accounts, collections, memories, search, webhook_store, webhooks
from plugins.webhook_delivery import retry_after_ms, wait_ms
from plugins.webhook_store import BODIES, DELIVERIES, EVENT_KINDS, TABLES
from runtime import limits, signatures
from runtime.inference import Models
from runtime.operation import Body, Event, Idempotency, Kind, Operation, View
from runtime.outbox import OUTBOX
from runtime.plugin import Plugin
from runtime.settings import Settings
from runtime.timestamps import parse
from storage.table import Table
from tests.plugins import CHEAP, JOBS_SECONDS_MAX, Answer, Desk
from tests.plugins.embedding import WordEmbedder
from tests.receivers import Received, Receiver, receiver

PLUGINS = (accounts.plugin, collections.plugin, memories.plugin, search.plugin, webhooks.plugin)
QUICK = {"allow_private_networks": True, "backoff_seconds_min": 0.01}


class Feedback(View):
    id: str = Field(description="The feedback's id.")


FEEDBACK = Event("user.feedback_received", Feedback)
# Any plugin's event is delivered, whichever plugins there are.
ELSEWHERE = Plugin(
    name="elsewhere",
    events=(FEEDBACK,),
    operations=(
        Operation(
            name="elsewhere.emit", method="POST", path="/v1/elsewhere", kind=Kind.WRITE, body=Body, response=None, summary="", spec="test",
            scope="write", idempotency=Idempotency.CACHED,
            handler=lambda ctx, body: {"event_id": ctx.emit(FEEDBACK, {"id": "fbk_1"}, "fbk_1")},
        ),
    ),
)  # fmt: skip


@contextmanager
def desk(directory: Path, *plugins: Plugin, **told: Any) -> Iterator[Desk]:
    settings = Settings.load({**CHEAP, "webhooks": {**QUICK, **told}})
    made = Desk(directory, (*PLUGINS, *plugins), Models(WordEmbedder()), settings)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as made:
        yield made


def until(at: Desk, holds: Callable[[], Any]) -> None:
    """Let the shard run until the condition holds."""
    deadline = time.monotonic() + JOBS_SECONDS_MAX
    while not holds():
        at._runner.run(asyncio.sleep(0.002))
        assert time.monotonic() < deadline


def hook(at: Desk, who: str, to: Receiver | str, *events: str, **fields: Any) -> dict[str, Any]:
    """A new webhook, with its signing secret."""
    url = to if isinstance(to, str) else to.url
    answer = at("webhooks.create", {"url": url, "events": list(events or EVENT_KINDS), **fields}, who=who)
    assert answer.status == 201, answer
    return answer.body


def deliveries(at: Desk, who: str, webhook: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    return at("webhooks.deliveries.list", who=who, id=webhook["id"], query=query).body["items"]


def detail(at: Desk, who: str, webhook: dict[str, Any], delivery: dict[str, Any]) -> dict[str, Any]:
    return at("webhooks.deliveries.get", who=who, id=webhook["id"], delivery_id=delivery["id"]).body


def count(at: Desk, who: str, table: Table) -> int:
    with at.shard.store.snapshot() as snapshot:
        return snapshot.bind(table, at.scope_of(who)).count()


# --- what arrives -----------------------------------------------------------------------------------------------------


def test_events_arrive_as_they_happen(tmp_path: Path) -> None:
    with desk(tmp_path, ELSEWHERE) as at, receiver() as there:
        me = at.register()
        webhook = hook(at, me, there)
        collection = at("collections.create", {"name": "work"}, who=me).body
        memory = at("memories.create", {"content": "Ada likes tea.", "collection_id": collection["id"], "importance": 0.7}, who=me).body
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
        assert told["memory.updated"] == {**same, "version": 2, "content": "Ada likes coffee."} and updated_at > memory["created_at"]
        assert set(told["memory.deleted"]) == {"id", "version", "collection_id", "deleted_at"} and told["memory.deleted"]["version"] == 3
        assert told["collection.created"] == {"id": collection["id"], "name": "work", "change": "created", "version": 1}
        assert told["collection.updated"]["change"] == "membership"
        assert told["search.completed"]["top_ids"] == found["evidence_ids"] == [memory["id"]]
        assert set(told["search.completed"]) == {"id", "query_hash", "search_type", "result_count", "top_ids", "no_match", "took_ms"}
        assert by_kind["user.feedback_received"]["id"] == emitted
        assert b"Who likes coffee?" not in b"".join(received.body for received in there.received)
        for received in there.received:
            event = received.event
            assert set(event) == {"id", "event_type", "timestamp", "data", "idempotency_key"}
            assert event["id"].startswith("evt_") and isinstance(event["timestamp"], int)
            kind, resource, _, last = event["idempotency_key"].split(":")
            assert (kind, resource, last) == (event["event_type"], event["data"]["id"], webhook["id"])
            assert received.headers["content-type"] == "application/json"
        assert memory["outbox_event_id"] == by_kind["memory.created"]["id"]


def test_only_what_was_asked_for_arrives_and_only_from_the_own_account(at: Desk) -> None:
    with receiver() as there, receiver() as elsewhere:
        me, eve = at.register(), at.register("eve@example.com", "Eve")
        hook(at, me, there, "memory.deleted", "memory.deleted")
        hook(at, eve, elsewhere)
        memory = at("memories.create", {"content": "Ada's own."}, who=me).body
        at("memories.delete", who=me, id=memory["id"])
        at.settle()
        assert (there.kinds(), elsewhere.kinds()) == (["memory.deleted"], [])


def test_a_write_that_is_refused_tells_nobody(at: Desk) -> None:
    with receiver() as there:
        me = at.register()
        hook(at, me, there)
        assert at("memories.create", {"content": "x", "collection_id": "col_nowhere"}, who=me).status == 404
        at.settle()
        assert there.received == [] and count(at, me, DELIVERIES) == 0


def test_a_search_that_nobody_waits_for_writes_no_event(at: Desk) -> None:
    with receiver() as there:
        me = at.register()
        hook(at, me, there, "memory.created")
        assert at("search.search", {"query": "Who likes tea?"}, who=me).status == 200
        assert not at.shard._announcing


# --- signatures -------------------------------------------------------------------------------------------------------


def assert_signed(received: Received, secret: str) -> None:
    """By the specification's formula, and by an independent implementation of Standard Webhooks."""
    signed = received.headers["x-webhook-timestamp"].encode() + b"." + received.body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert received.headers["x-webhook-signature-256"] == f"sha256={expected}"
    signatures.verify(received.body, received.headers, secret, int(received.headers["x-webhook-timestamp"]))
    keys = [base64.b64encode(secret.encode()).decode()]
    if secret.startswith("whsec_"):
        keys.append(secret)
    for key in keys:
        assert StandardWebhook(key).verify(received.body, dict(received.headers)) == received.event
    assert received.headers["webhook-id"] == received.event["id"]


@pytest.mark.parametrize("own", [None, "correct horse battery staple"])
def test_deliveries_are_signed(at: Desk, own: str | None) -> None:
    with receiver() as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created", **({} if own is None else {"signing_secret": own}))
        assert webhook["signing_secret"] == own or len(webhook["signing_secret"]) == len("whsec_") + 43
        at("memories.create", {"content": "Ünïcödé ✓"}, who=me)
        at.settle()
        (received,) = there.received
        assert_signed(received, webhook["signing_secret"])
        with pytest.raises(signatures.NotGenuine):
            signatures.verify(received.body + b" ", received.headers, webhook["signing_secret"], int(received.headers["webhook-timestamp"]))


def test_a_rotation_signs_with_both_until_its_grace_is_over(at: Desk) -> None:
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
        previous = {**between.headers, "x-webhook-signature-256": between.headers["x-webhook-signature-256-previous"]}
        assert_signed(Received(between.path, previous, between.body), webhook["signing_secret"])
        assert "x-webhook-signature-256-previous" not in afterwards.headers
        with pytest.raises(signatures.NotGenuine):
            signatures.verify(afterwards.body, afterwards.headers, rotated["signing_secret"], int(afterwards.headers["webhook-timestamp"]))


def test_a_secret_is_shown_once_and_stored_sealed(at: Desk) -> None:
    me = at.register()
    made = at("webhooks.create", {"url": "http://127.0.0.1:9999/", "events": ["memory.created"]}, who=me, key="k")
    again = at("webhooks.create", {"url": "http://127.0.0.1:9999/", "events": ["memory.created"]}, who=me, key="k")
    secret = made.body["signing_secret"]
    assert again.body == made.body, "the same request within its day gets the same answer"
    shown = [at("webhooks.get", who=me, id=made.body["id"]), at("webhooks.list", who=me), at("webhooks.update", {
        "url": "http://127.0.0.1:9999/", "events": ["memory.created"]}, who=me, id=made.body["id"])]  # fmt: skip
    assert secret not in repr(shown)
    assert secret.encode() not in at.shard.store.data_file.read_bytes()


# --- attempts ---------------------------------------------------------------------------------------------------------


def test_five_attempts_then_a_dead_letter_then_a_replay(at: Desk) -> None:
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
        assert {len(attempt["response_body"]) for attempt in log["attempts"]} == {limits.OUTBOUND_ANSWER_BYTES_MAX}
        assert log["payload"] == there.received[0].event
        assert at("webhooks.get", who=me, id=webhook["id"]).body["failure_count"] == 5
        replayed = at("webhooks.deliveries.replay", who=me, id=webhook["id"], delivery_id=letter["id"])
        twice = at("webhooks.deliveries.replay", who=me, id=webhook["id"], delivery_id=letter["id"])
        assert (replayed.status, replayed.body["status"], twice.status) == (202, "pending", 202)
        at.settle()
        assert len(there.received) in (6, 7), "the second replay may have found the first one delivered"
        assert there.received[5].body == there.received[0].body
        assert at("webhooks.dead_letters.list", who=me).body["items"] == []
        after = at("webhooks.get", who=me, id=webhook["id"]).body
        assert after["failure_count"] == 0 and after["last_delivery_at"] is not None


def test_a_receiver_says_when_to_come_back(tmp_path: Path) -> None:
    with desk(tmp_path, backoff_seconds_min=100) as at, receiver(503, headers={"Retry-After": "150"}) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        until(at, lambda: deliveries(at, me, webhook, status="retrying"))
        (row,) = deliveries(at, me, webhook)
        (attempt,) = detail(at, me, webhook, row)["attempts"]
        assert parse(row["next_attempt_at"]) - parse(attempt["at"]) == 150_000


def test_with_too_much_waiting_events_are_kept_as_skipped(at: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_store, "WEBHOOK_DELIVERIES_PENDING_MAX", 2)
    with receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create_batch", {"memories": [{"content": f"number {n}"} for n in range(3)]}, who=me)
        assert len(deliveries(at, me, webhook, status="skipped")) == 1
        there.let_go.set()
        at.settle()
        at("memories.create", {"content": "there is room again"}, who=me)
        at.settle()
        assert len(deliveries(at, me, webhook, status="delivered")) == 3


def test_a_redirect_is_not_followed(at: Desk) -> None:
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


@pytest.mark.parametrize(("asked_ms", "wait"), [(0, 8_000), (1_000, 8_000), (12_000, 12_000), (600_000, 16_000)])
def test_a_receiver_may_ask_for_up_to_twice_the_wait(asked_ms: int, wait: int) -> None:
    assert wait_ms(4, 2, 0.0, asked_ms) == wait


@pytest.mark.parametrize(
    ("header", "ms"),
    [
        ("7", 7_000),
        (" 7 ", 7_000),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 50_000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
        ("soon", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, ms: int | None) -> None:
    assert retry_after_ms(header, 10_000) == ms


def test_an_answer_that_does_not_come_in_time_is_a_failure(tmp_path: Path) -> None:
    with desk(tmp_path, timeout_seconds=0.1) as at, receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        (letter,) = deliveries(at, me, webhook, status="failed")
        errors = {attempt["error"] for attempt in detail(at, me, webhook, letter)["attempts"]}
        assert errors == {"No complete answer within 0.1 seconds."}


def test_a_receiver_that_hangs_delays_no_other(at: Desk) -> None:
    with receiver(hangs=True) as hole, receiver() as there:
        me = at.register()
        hook(at, me, hole, "memory.created")
        hook(at, me, there, "memory.created")
        for _ in range(3):
            assert at("memories.create_batch", {"memories": [{"content": f"number {n}"} for n in range(20)]}, who=me).status == 201
        until(at, lambda: len(there.received) == 60)
        until(at, lambda: at.shard._jobs.lanes()["open"] == 1)
        lanes = at.shard._jobs.lanes()
        assert (lanes["running"], lanes["waiting"], len(hole.received)) == (4, 56, limits.LANE_JOBS_AT_ONCE)


# --- disabled ---------------------------------------------------------------------------------------------------------


def test_gone_disables_at_once_and_what_was_skipped_can_be_replayed(at: Desk) -> None:
    with receiver(410) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "first"}, who=me)
        at.settle()
        disabled = at("webhooks.get", who=me, id=webhook["id"]).body
        assert (disabled["status"], disabled["disabled_reason"]) == ("disabled", "The receiver answered 410 Gone.")
        at("memories.create", {"content": "second"}, who=me)
        at.settle()
        assert len(there.received) == 1
        (skipped,), (letter,) = deliveries(at, me, webhook, status="skipped"), deliveries(at, me, webhook, status="failed")
        assert at("webhooks.test", who=me, id=webhook["id"]).status == 409
        assert at("webhooks.deliveries.replay", who=me, id=webhook["id"], delivery_id=skipped["id"]).status == 409
        results = at("webhooks.dead_letters.replay", {"ids": [letter["id"]]}, who=me).body["results"]
        assert results == [{"id": letter["id"], "status": "refused"}]
        enabled = at("webhooks.update", {"url": there.url, "events": ["memory.created"]}, who=me, id=webhook["id"]).body
        assert (enabled["status"], enabled["disabled_reason"], enabled["failure_count"]) == ("active", None, 0)
        replayed = at("webhooks.dead_letters.replay", {"since": "2000-01-01", "include_skipped": True}, who=me)
        assert (replayed.status, replayed.body["replayed"], replayed.body["has_more"]) == (202, 2, False)
        at.settle()
        assert [received.event["data"]["content"] for received in there.received[1:]] in (["first", "second"], ["second", "first"])


def test_days_of_nothing_but_failures_disable(tmp_path: Path) -> None:
    with desk(tmp_path) as at, receiver(*[500] * 11) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        assert at("webhooks.get", who=me, id=webhook["id"]).body["status"] == "active"
        at.settings = Settings.load({**CHEAP, "webhooks": QUICK, "clock": {"offset_seconds": 120 * 3600 + 60}})
        at.reopen()
        at("memories.create", {"content": "y"}, who=me)
        at.settle()
        disabled = at("webhooks.get", who=me, id=webhook["id"]).body
        assert disabled["status"] == "disabled"
        assert disabled["disabled_reason"] == "Every attempt of the last 120 hours failed. The last one: The receiver answered 500."
        assert len(there.received) == 6, "the first attempt after five days settled it"
        assert len(deliveries(at, me, webhook, status="skipped")) == 1


def test_an_owner_can_disable(at: Desk) -> None:
    with receiver() as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created", description="for tests")
        body = {"url": there.url, "events": ["memory.created"], "status": "disabled"}
        disabled = at("webhooks.update", body, who=me, id=webhook["id"]).body
        assert (disabled["disabled_reason"], disabled["description"]) == ("Disabled by its owner.", None)
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        assert there.received == []


# --- targets ----------------------------------------------------------------------------------------------------------

BLOCKED = [
    "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://localhost/",
    "http://0.0.0.0/", "http://10.1.2.3/", "http://172.16.0.1/", "http://192.168.1.1/", "http://100.64.0.1/", "http://169.254.169.254/",
    "http://168.63.129.16/", "http://198.18.0.1/", "http://203.0.113.7/", "http://224.0.0.1/", "http://255.255.255.255/", "http://[::1]/",
    "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/", "http://[fe80::1]/", "http://[fec0::1]/", "http://[fc00::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/",
    "http://user@93.184.215.14/", "http://93.184.215.14:22/", "http://93.184.215.14:99999/", "ftp://93.184.215.14/", "//93.184.215.14/",
    "nonsense", "http:///path", "http://a b/",
]  # fmt: skip


def test_targets_inside_are_refused_when_given(tmp_path: Path) -> None:
    with desk(tmp_path, allow_private_networks=False) as at:
        me = at.register()
        webhook = hook(at, me, "https://93.184.215.14/hook", "memory.created")
        for url in BLOCKED:
            answers = [
                at("webhooks.create", {"url": url, "events": ["memory.created"]}, who=me),
                at("webhooks.update", {"url": url, "events": ["memory.created"]}, who=me, id=webhook["id"]),
            ]
            for answer in answers:
                assert (answer.status, answer.body["param"]) == (422, "body.url"), url
        assert at("webhooks.list", who=me).body["total_count"] == 1


def test_a_name_without_an_address_is_accepted_and_judged_when_delivering(tmp_path: Path) -> None:
    with desk(tmp_path, allow_private_networks=False) as at, receiver() as inside:
        addresses: list[list[str]] = [[], ["93.184.215.14"], ["93.184.215.14", "127.0.0.1"]]

        async def rebinding(host: str, port: int) -> list[str]:
            assert host == "hooks.example.test"
            return addresses.pop(0) if addresses else ["127.0.0.1"]

        at.shard.environment.outbound.resolve = rebinding
        me = at.register()
        url = inside.url.replace("127.0.0.1", "hooks.example.test")
        for _ in range(2):
            webhook = hook(at, me, url, "memory.created")
        assert at("webhooks.create", {"url": url, "events": ["memory.created"]}, who=me).status == 422, "one bad address is enough"
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        assert inside.received == []
        (letter,) = deliveries(at, me, webhook)
        attempts = detail(at, me, webhook, letter)["attempts"]
        assert {attempt["error"] for attempt in attempts} == {"The host is in a private or reserved network."} and len(attempts) == 5


# --- the rest of a webhook's life -------------------------------------------------------------------------------------


def test_a_test_event_goes_to_this_webhook_alone(at: Desk) -> None:
    with receiver() as there, receiver() as other:
        me = at.register()
        webhook = hook(at, me, there, "collection.created", "memory.created")
        hook(at, me, other)
        sent = at("webhooks.test", who=me, id=webhook["id"])
        at.settle()
        assert sent.status == 202 and other.received == []
        (received,) = there.received
        assert received.event["event_type"] == "collection.created" and received.event["data"] == {"test": True, "id": webhook["id"]}
        assert received.event["id"] == sent.body["event_id"]
        assert detail(at, me, webhook, {"id": sent.body["delivery_id"]})["status"] == "delivered"


def test_lists_of_deliveries_are_pages(at: Desk) -> None:
    with receiver(500, 500, 500, 500, 500) as there:
        me = at.register()
        webhook, second = hook(at, me, there, "memory.created"), hook(at, me, "http://127.0.0.1:9999/", "memory.deleted")
        at("memories.create", {"content": "first"}, who=me)
        at.settle()
        for n in range(4):
            at("memories.create", {"content": f"number {n}"}, who=me)
        at.settle()
        seen, page = [], {"has_more": True, "next_cursor": None}
        while page["has_more"]:
            page = at("webhooks.deliveries.list", who=me, id=webhook["id"], query={"limit": 2, "cursor": page["next_cursor"]}).body
            seen += page["items"]
        assert page["total_count"] == 5 and len({item["id"] for item in seen}) == 5
        assert [item["status"] for item in seen] == ["delivered"] * 4 + ["failed"], "newest first"
        assert deliveries(at, me, webhook, status="failed") == seen[4:] == at("webhooks.dead_letters.list", who=me).body["items"]
        assert at("webhooks.dead_letters.list", who=me, query={"webhook_id": second["id"]}).body["total_count"] == 0
        assert at("webhooks.deliveries.get", who=me, id=second["id"], delivery_id=seen[0]["id"]).status == 404


def test_dead_letters_are_replayed_by_range(at: Desk) -> None:
    with receiver(*[410] * 3) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        times = []
        for n in range(3):
            at("webhooks.update", {"url": there.url, "events": ["memory.created"]}, who=me, id=webhook["id"])
            times.append(at("memories.create", {"content": f"number {n}"}, who=me).body["created_at"])
            at.settle()
        at("webhooks.update", {"url": there.url, "events": ["memory.created"]}, who=me, id=webhook["id"])
        replayed = at("webhooks.dead_letters.replay", {"since": times[1], "until": times[2]}, who=me).body
        at.settle()
        assert replayed["replayed"] == 1 and len(there.received) == 4
        assert there.received[3].event["data"]["content"] == "number 1"
        assert at("webhooks.dead_letters.list", who=me).body["total_count"] == 2
        unknown = "dlv_" + "0" * 32
        assert at("webhooks.dead_letters.replay", {"ids": [unknown]}, who=me).body["results"][0]["status"] == "forbidden"
        assert at("webhooks.dead_letters.replay", {"ids": ["dlv_1"]}, who=me).body["results"][0]["status"] == "not_found"
        with pytest.raises(ValueError):
            at("webhooks.dead_letters.replay", {}, who=me)


def test_a_deleted_webhook_takes_its_deliveries_along(at: Desk) -> None:
    with receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create_batch", {"memories": [{"content": f"number {n}"} for n in range(10)]}, who=me)
        until(at, lambda: len(there.received) == limits.LANE_JOBS_AT_ONCE)
        assert at("webhooks.delete", who=me, id=webhook["id"]).body == {"id": webhook["id"], "deleted": True}
        there.let_go.set()
        at.settle()
        assert len(there.received) == limits.LANE_JOBS_AT_ONCE
        assert {table.name: count(at, me, table) for table in TABLES if count(at, me, table)} == {}
        for answer in (at("webhooks.delete", who=me, id=webhook["id"]), at("webhooks.deliveries.list", who=me, id=webhook["id"])):
            assert answer.status == 404
        assert at("webhooks.dead_letters.list", who=me).body["total_count"] == 0


def test_an_account_has_so_many_webhooks(at: Desk) -> None:
    me = at.register()
    for _ in range(limits.WEBHOOKS_PER_TENANT_MAX):
        hook(at, me, "http://127.0.0.1:9999/", "memory.created")
    refused = at("webhooks.create", {"url": "http://127.0.0.1:9999/", "events": ["memory.created"]}, who=me)
    assert refused.status == 400
    page = at("webhooks.list", who=me, query={"limit": 20}).body
    assert (len(page["items"]), page["total_count"], page["has_more"]) == (20, limits.WEBHOOKS_PER_TENANT_MAX, True)


# --- what stays behind ------------------------------------------------------------------------------------------------


def stored(at: Desk, who: str, text: str) -> list[str]:
    """Tables of webhooks and events whose rows hold this text."""
    found = []
    with at.shard.store.snapshot() as snapshot:
        for table in (*TABLES, OUTBOX):
            rows = snapshot.bind(table, at.scope_of(who))
            found += [table.name for key in list(rows.keys()) if text.encode() in rows.get_raw(*key)]
    return found


def test_deleting_a_memory_erases_what_was_told_of_it(at: Desk) -> None:
    with receiver() as there, receiver(*[500] * 5) as broken:
        me = at.register()
        webhook, failing = hook(at, me, there, "memory.created", "memory.updated"), hook(at, me, broken, "memory.created")
        memory = at("memories.create", {"content": "the canary sings"}, who=me).body
        at.settle()
        assert stored(at, me, "canary") == ["delivery_bodies"] * 2
        at("memories.delete", who=me, id=memory["id"])
        assert stored(at, me, "canary") == []
        (sent,), (letter,) = deliveries(at, me, webhook), deliveries(at, me, failing)
        assert (sent["status"], detail(at, me, webhook, sent)["payload"]) == ("delivered", None)
        for hooked, row in ((webhook, sent), (failing, letter)):
            assert at("webhooks.deliveries.replay", who=me, id=hooked["id"], delivery_id=row["id"]).status == 409


def test_what_still_has_to_be_delivered_is_erased_when_it_is(at: Desk) -> None:
    with receiver(hangs=True) as there:
        me = at.register()
        hook(at, me, there, "memory.created", "memory.deleted")
        memory = at("memories.create", {"content": "the canary sings"}, who=me).body
        until(at, lambda: there.received)
        at("memories.delete", who=me, id=memory["id"])
        assert stored(at, me, "canary") == ["delivery_bodies"]
        there.let_go.set()
        at.settle()
        assert sorted(there.kinds()) == ["memory.created", "memory.deleted"]
        assert stored(at, me, "canary") == []


def test_deliveries_are_forgotten_in_time(tmp_path: Path) -> None:
    with desk(tmp_path) as at, receiver(410) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")

        def send(content: str) -> list[str]:
            at("webhooks.update", {"url": there.url, "events": ["memory.created"]}, who=me, id=webhook["id"])
            at("memories.create", {"content": content}, who=me)
            at.settle()
            return [row["status"] for row in deliveries(at, me, webhook)]

        def jump(seconds: int) -> None:
            at.settings = Settings.load({**CHEAP, "webhooks": QUICK, "clock": {"offset_seconds": seconds}})
            at.reopen()

        assert send("refused") == ["failed"] and send("taken") == ["delivered", "failed"]
        jump(limits.DELIVERED_RETENTION_SECONDS + 10)
        assert send("a week later") == ["delivered", "failed"]
        jump(limits.UNDELIVERED_RETENTION_SECONDS + 10)
        assert send("a month later") == ["delivered"]
        assert count(at, me, BODIES) == 1


def test_deliveries_under_way_go_on_after_a_restart(at: Desk) -> None:
    with receiver(hangs=True) as there:
        me = at.register()
        hook(at, me, there, "memory.created")
        at("memories.create_batch", {"memories": [{"content": f"number {n}"} for n in range(9)]}, who=me)
        until(at, lambda: len(there.received) == limits.LANE_JOBS_AT_ONCE)
        at.reopen()
        there.let_go.set()
        at.settle()
        keys = {received.event["idempotency_key"] for received in there.received}
        assert len(keys) == 9


def test_foreign_and_unknown_webhooks(at: Desk) -> None:
    me, eve = at.register(), at.register("eve@example.com", "Eve")
    webhook = hook(at, me, "http://127.0.0.1:9999/", "memory.created")

    def asked(who: str, webhook_id: str) -> Answer:
        return at("webhooks.get", who=who, id=webhook_id)

    assert asked(eve, webhook["id"]).status == 403
    assert asked(me, webhook["id"][:-1] + ("0" if webhook["id"][-1] != "0" else "1")).status == 404
    assert asked(me, "whk_1").status == 404
    assert at("webhooks.dead_letters.list", who=eve, query={"webhook_id": webhook["id"]}).status == 403
