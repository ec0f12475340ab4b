"""A webhook beside its deliveries: its target, its lists, its end, and what stays behind."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from plugins.webhooks import limits
from plugins.webhooks.store import (
    ATTEMPTS,
    BODIES,
    DELIVERIES,
    DELIVERY_IDS,
    RESOURCES,
    TABLES,
)
from runtime.api.outbox import OUTBOX
from runtime.limits import GROUP_JOBS_AT_ONCE
from serve_app import Settings
from tests.support.filtering_proxy import filtering_proxy
from tests.support.receivers import receiver
from tests.support.shard_harness import CHEAP, Answer, ShardHarness
from tests.support.webhook_harness import QUICK, count, deliveries, detail, harness, hook, until

# --- targets --------------------------------------------------------------------------------------


BLOCKED = [
    "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0177.0.0.1/", "http://localhost/", "http://localhost./",
    "http://x.localhost/", "http://0.0.0.0/", "http://10.1.2.3/",
    "http://172.16.0.1/", "http://192.168.1.1/", "http://100.64.0.1/", "http://169.254.169.254/",
    "http://168.63.129.16/", "http://198.18.0.1/", "http://203.0.113.7/", "http://224.0.0.1/",
    "http://255.255.255.255/", "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/", "http://[fe80::1]/", "http://[fec0::1]/", "http://[fc00::1]/",
    "http://[ff02::1]/", "http://[2001:db8::1]/", "http://user@93.184.215.14/",
    "http://93.184.215.14:22/", "http://93.184.215.14:99999/", "ftp://93.184.215.14/",
    "//93.184.215.14/", "nonsense", "http:///path", "http://a b/",
]  # fmt: skip


def test_targets_inside_are_refused_when_given(tmp_path: Path) -> None:
    with harness(tmp_path, allow_private_networks=False) as at:
        me = at.register()
        webhook = hook(at, me, "https://93.184.215.14/hook", "memory.created")
        for url in BLOCKED:
            answers = [
                at("webhooks.create", {"url": url, "events": ["memory.created"]}, who=me),
                at(
                    "webhooks.update",
                    {"url": url, "events": ["memory.created"]},
                    who=me,
                    id=webhook["id"],
                ),
            ]
            for answer in answers:
                assert (answer.status, answer.body["param"]) == (422, "body.url"), url
        assert at("webhooks.list", who=me).body["total_count"] == 1


def test_a_name_without_an_address_is_accepted_and_judged_when_delivering(tmp_path: Path) -> None:
    with harness(tmp_path, allow_private_networks=False) as at, receiver() as inside:
        addresses: list[list[str]] = [[], ["93.184.215.14"], ["93.184.215.14", "127.0.0.1"]]

        async def rebinding(host: str, port: int) -> list[str]:
            assert host == "hooks.example.test"
            return addresses.pop(0) if addresses else ["127.0.0.1"]

        at.shard.environment.outbound.resolve = rebinding
        me = at.register()
        url = inside.url.replace("127.0.0.1", "hooks.example.test")
        for _ in range(2):
            webhook = hook(at, me, url, "memory.created")
        assert (
            at("webhooks.create", {"url": url, "events": ["memory.created"]}, who=me).status == 422
        ), "one bad address is enough"
        at("memories.create", {"content": "x"}, who=me)
        at.settle()
        assert inside.received == []
        (letter,) = deliveries(at, me, webhook)
        attempts = detail(at, me, webhook, letter)["attempts"]
        assert {attempt["error"] for attempt in attempts} == {
            "The host is in a private or reserved network."
        } and len(attempts) == 5


def test_every_delivery_goes_through_the_proxy_of_the_settings(tmp_path: Path) -> None:
    with receiver() as there, filtering_proxy({"hooks.example.test": there.address}) as proxy:
        closed = {"allow_private_networks": False, "proxy": proxy.url}
        with harness(tmp_path, **closed) as at:
            me = at.register()
            let_in = hook(at, me, "http://hooks.example.test/in", "memory.created")
            kept_out = hook(at, me, "https://inside.example.test/out", "memory.created")
            for url in ("http://127.0.0.1/", "http://10.1.2.3/", "http://localhost/"):
                told = {"url": url, "events": ["memory.created"]}
                assert at("webhooks.create", told, who=me).status == 422
            at("memories.create", {"content": "x"}, who=me)
            at.settle()
            assert [each.path for each in there.received] == ["/in"]
            assert [each["status"] for each in deliveries(at, me, let_in)] == ["delivered"]
            (letter,) = deliveries(at, me, kept_out)
            assert letter["status"] == "failed"
            attempts = detail(at, me, kept_out, letter)["attempts"]
            assert {attempt["error"] for attempt in attempts} == {
                "The proxy on the way refused: 403 Forbidden."
            }
            tunnels = [asked for asked in proxy.asked if asked[0] == "CONNECT"]
            assert tunnels == [("CONNECT", "inside.example.test")] * len(attempts)


# --- the rest of a webhook's life -----------------------------------------------------------------


def test_a_test_event_goes_to_this_webhook_alone(at: ShardHarness) -> None:
    with receiver() as there, receiver() as other:
        me = at.register()
        webhook = hook(at, me, there, "collection.created", "memory.created")
        hook(at, me, other)
        sent = at("webhooks.test", who=me, id=webhook["id"])
        at.settle()
        assert sent.status == 202 and other.received == []
        (received,) = there.received
        assert received.event["event_type"] == "collection.created" and received.event["data"] == {
            "test": True,
            "id": webhook["id"],
        }
        assert received.event["id"] == sent.body["event_id"]
        assert detail(at, me, webhook, {"id": sent.body["delivery_id"]})["status"] == "delivered"


def test_lists_of_deliveries_are_pages(at: ShardHarness) -> None:
    with receiver(500, 500, 500, 500, 500) as there:
        me = at.register()
        webhook, second = (
            hook(at, me, there, "memory.created"),
            hook(at, me, "http://127.0.0.1:9999/", "memory.deleted"),
        )
        at("memories.create", {"content": "first"}, who=me)
        at.settle()
        for n in range(4):
            at("memories.create", {"content": f"number {n}"}, who=me)
        at.settle()
        seen, page = [], {"has_more": True, "next_cursor": None}
        while page["has_more"]:
            page = at(
                "webhooks.deliveries.list",
                who=me,
                id=webhook["id"],
                query={"limit": 2, "cursor": page["next_cursor"]},
            ).body
            seen += page["items"]
        assert page["total_count"] == 5 and len({item["id"] for item in seen}) == 5
        assert [item["status"] for item in seen] == ["delivered"] * 4 + ["failed"], "newest first"
        assert (
            deliveries(at, me, webhook, status="failed")
            == seen[4:]
            == at("webhooks.dead_letters.list", who=me).body["items"]
        )
        assert (
            at("webhooks.dead_letters.list", who=me, query={"webhook_id": second["id"]}).body[
                "total_count"
            ]
            == 0
        )
        assert (
            at("webhooks.deliveries.get", who=me, id=second["id"], delivery_id=seen[0]["id"]).status
            == 404
        )


def test_dead_letters_are_replayed_by_range(at: ShardHarness) -> None:
    with receiver(*[410] * 3) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        times = []
        for n in range(3):
            at(
                "webhooks.update",
                {"url": there.url, "events": ["memory.created"]},
                who=me,
                id=webhook["id"],
            )
            times.append(
                at("memories.create", {"content": f"number {n}"}, who=me).body["created_at"]
            )
            at.settle()
        at(
            "webhooks.update",
            {"url": there.url, "events": ["memory.created"]},
            who=me,
            id=webhook["id"],
        )
        replayed = at(
            "webhooks.dead_letters.replay", {"since": times[1], "until": times[2]}, who=me
        ).body
        at.settle()
        assert replayed["replayed"] == 1 and len(there.received) == 4
        assert there.received[3].event["data"]["content"] == "number 1"
        assert at("webhooks.dead_letters.list", who=me).body["total_count"] == 2
        unknown = "dlv_" + "0" * 32
        assert (
            at("webhooks.dead_letters.replay", {"ids": [unknown]}, who=me).body["results"][0][
                "status"
            ]
            == "forbidden"
        )
        assert (
            at("webhooks.dead_letters.replay", {"ids": ["dlv_1"]}, who=me).body["results"][0][
                "status"
            ]
            == "not_found"
        )
        with pytest.raises(ValueError):
            at("webhooks.dead_letters.replay", {}, who=me)


def test_a_range_of_which_not_all_was_looked_at_has_more(
    at: ShardHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lost its body cannot be replayed, and says nothing of what comes after it."""
    with receiver(*[410] * 3) as there:
        me = at.register()
        webhook, made = hook(at, me, there, "memory.created"), []
        enable = {"url": there.url, "events": ["memory.created"]}
        for n in range(3):
            made.append(at("memories.create", {"content": f"number {n}"}, who=me).body)
            at.settle()
            at("webhooks.update", enable, who=me, id=webhook["id"])
        for memory in made[:2]:
            at("memories.delete", who=me, id=memory["id"])
        whole = {"since": made[0]["created_at"]}
        monkeypatch.setattr(limits, "DELIVERIES_EXAMINED_MAX", 2)
        few = at("webhooks.dead_letters.replay", whole, who=me).body
        assert (few["replayed"], few["has_more"]) == (0, True)
        monkeypatch.setattr(limits, "DELIVERIES_EXAMINED_MAX", 3)
        rest = at("webhooks.dead_letters.replay", whole, who=me).body
        assert (rest["replayed"], rest["has_more"]) == (1, False)
        at.settle()
        assert [each.event["data"]["content"] for each in there.received[3:]] == ["number 2"]


def test_a_range_is_replayed_in_parts(at: ShardHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DELIVERIES_REPLAYED_MAX", 1)
    with receiver(*[410] * 2) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        enable = {"url": there.url, "events": ["memory.created"]}
        for n in range(2):
            at("memories.create", {"content": f"number {n}"}, who=me)
            at.settle()
            at("webhooks.update", enable, who=me, id=webhook["id"])
        for has_more in (True, False):
            part = at("webhooks.dead_letters.replay", {"since": "2000-01-01"}, who=me).body
            assert (part["replayed"], part["has_more"]) == (1, has_more)
            at.settle()
        assert [each.event["data"]["content"] for each in there.received[2:]] == [
            "number 0",
            "number 1",
        ]


def test_what_is_under_way_is_replayed_by_nobody(at: ShardHarness) -> None:
    with receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at("memories.create", {"content": "on its way"}, who=me)
        until(at, lambda: there.received)
        (row,) = deliveries(at, me, webhook)
        asked = at("webhooks.dead_letters.replay", {"ids": [row["id"]]}, who=me).body
        assert asked["results"] == [{"id": row["id"], "status": "under_way"}]
        assert asked["replayed"] == 0
        there.let_go.set()
        at.settle()
        assert len(there.received) == 1


def test_what_was_looked_at_while_its_webhook_was_disabled_is_sent_once_that_is_enabled(
    at: ShardHarness,
) -> None:
    """It is enabled after a delivery found it disabled, and before that was written down."""
    found_disabled, goes_on = asyncio.Event(), asyncio.Event()
    parts, name = at.shard.parts, "webhooks.deliver"
    prepare = parts.registry.jobs[name].prepare
    assert prepare is not None

    async def held_up(steps: Any, loaded: Any, payload: Any, models: Any) -> Any:
        if loaded is None:
            found_disabled.set()
            await goes_on.wait()
        return await prepare(steps, loaded, payload, models)

    held = dataclasses.replace(parts.registry.jobs[name], prepare=held_up)
    parts.registry = dataclasses.replace(parts.registry, jobs={**parts.registry.jobs, name: held})
    with receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        memories = [{"content": f"number {n}"} for n in range(GROUP_JOBS_AT_ONCE + 1)]
        at("memories.create_batch", {"memories": memories}, who=me)
        until(at, lambda: len(there.received) == GROUP_JOBS_AT_ONCE)
        body = {"url": there.url, "events": ["memory.created"]}
        at("webhooks.update", {**body, "status": "disabled"}, who=me, id=webhook["id"])
        there.let_go.set()
        until(at, found_disabled.is_set)
        at("webhooks.update", body, who=me, id=webhook["id"])
        goes_on.set()
        at.settle()
        statuses = {row["status"] for row in deliveries(at, me, webhook)}
        assert (statuses, len(there.received)) == ({"delivered"}, len(memories))


def test_a_deleted_webhook_takes_its_deliveries_along(at: ShardHarness) -> None:
    with receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        at(
            "memories.create_batch",
            {"memories": [{"content": f"number {n}"} for n in range(10)]},
            who=me,
        )
        until(at, lambda: len(there.received) == GROUP_JOBS_AT_ONCE)
        newest = deliveries(at, me, webhook)[0]["id"]
        assert at("webhooks.delete", who=me, id=webhook["id"]).body == {
            "id": webhook["id"],
            "deleted": True,
        }
        gone = at("webhooks.dead_letters.replay", {"ids": [newest]}, who=me).body
        assert gone["results"] == [{"id": newest, "status": "not_found"}]
        there.let_go.set()
        at.settle()
        assert len(there.received) == GROUP_JOBS_AT_ONCE
        assert {table.name: count(at, me, table) for table in TABLES if count(at, me, table)} == {}
        for answer in (
            at("webhooks.delete", who=me, id=webhook["id"]),
            at("webhooks.deliveries.list", who=me, id=webhook["id"]),
        ):
            assert answer.status == 404
        assert at("webhooks.dead_letters.list", who=me).body["total_count"] == 0


def test_an_account_has_so_many_webhooks(at: ShardHarness) -> None:
    me = at.register()
    for _ in range(limits.WEBHOOKS_PER_TENANT_MAX):
        hook(at, me, "http://127.0.0.1:9999/", "memory.created")
    refused = at(
        "webhooks.create", {"url": "http://127.0.0.1:9999/", "events": ["memory.created"]}, who=me
    )
    assert refused.status == 400
    page = at("webhooks.list", who=me, query={"limit": 20}).body
    assert (len(page["items"]), page["total_count"], page["has_more"]) == (
        20,
        limits.WEBHOOKS_PER_TENANT_MAX,
        True,
    )


# --- what stays behind ----------------------------------------------------------------------------


def stored(at: ShardHarness, who: str, text: str) -> list[str]:
    """Tables of webhooks and events whose rows hold this text."""
    found = []
    with at.shard.store.snapshot() as snapshot:
        for table in (*TABLES, OUTBOX):
            rows = snapshot.bind(table, at.scope_of(who))
            found += [
                table.name for key in list(rows.keys()) if text.encode() in rows.get_raw(*key)
            ]
    return found


def test_deleting_a_memory_erases_what_was_told_of_it(at: ShardHarness) -> None:
    with receiver() as there, receiver(*[500] * 5) as broken:
        me = at.register()
        webhook, failing = (
            hook(at, me, there, "memory.created", "memory.updated"),
            hook(at, me, broken, "memory.created"),
        )
        memory = at("memories.create", {"content": "the canary sings"}, who=me).body
        at.settle()
        assert stored(at, me, "canary") == ["delivery_bodies"] * 2
        at("memories.delete", who=me, id=memory["id"])
        assert stored(at, me, "canary") == []
        (sent,), (letter,) = deliveries(at, me, webhook), deliveries(at, me, failing)
        assert (sent["status"], detail(at, me, webhook, sent)["payload"]) == ("delivered", None)
        for hooked, row in ((webhook, sent), (failing, letter)):
            assert (
                at(
                    "webhooks.deliveries.replay", who=me, id=hooked["id"], delivery_id=row["id"]
                ).status
                == 409
            )
        ids = {"ids": [sent["id"], letter["id"]]}
        results = at("webhooks.dead_letters.replay", ids, who=me).body["results"]
        assert [each["status"] for each in results] == ["refused", "refused"]


@pytest.mark.parametrize("hangs", [False, True])
def test_what_a_receiver_answered_goes_with_the_memory_it_may_repeat(
    at: ShardHarness, hangs: bool
) -> None:
    with receiver(500, hangs=hangs, body=b"You sent: the canary sings") as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")
        memory = at("memories.create", {"content": "the canary sings"}, who=me).body
        if hangs:
            until(at, lambda: there.received)
        else:
            at.settle()
            assert sorted(stored(at, me, "canary")) == ["delivery_attempts"] * 2 + [
                "delivery_bodies"
            ]
        at("memories.delete", who=me, id=memory["id"])
        there.let_go.set()
        at.settle()
        assert stored(at, me, "canary") == []
        (row,) = deliveries(at, me, webhook)
        tried = detail(at, me, webhook, row)["attempts"]
        assert [(one["status_code"], one["response_body"]) for one in tried] == [
            (500, ""),
            (200, ""),
        ]


def test_what_still_has_to_be_delivered_tells_nothing_of_what_is_gone(at: ShardHarness) -> None:
    with receiver(hangs=True) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created", "memory.deleted")
        memory = at("memories.create", {"content": "the canary sings"}, who=me).body
        until(at, lambda: there.received)
        at("memories.delete", who=me, id=memory["id"])
        assert stored(at, me, "canary") == []
        payloads = {
            row["event_type"]: detail(at, me, webhook, row)["payload"]
            for row in deliveries(at, me, webhook)
        }
        assert payloads["memory.created"] is None
        assert payloads["memory.deleted"]["data"]["id"] == memory["id"]
        there.let_go.set()
        at.settle()
        assert sorted(there.kinds()) == ["memory.created", "memory.deleted"]


@pytest.mark.parametrize("way", ["delete", "bulk_delete", "delete_matching"])
def test_an_attempt_after_the_deletion_sends_no_text(at: ShardHarness, way: str) -> None:
    with receiver(*[500] * 3, hangs=True) as there:
        me = at.register()
        hook(at, me, there, "memory.created")
        gone = at("memories.create", {"content": "the canary sings", "user_id": "ada"}, who=me).body
        kept = at("memories.create", {"content": "the dog barks"}, who=me).body
        until(at, lambda: len(there.received) == 2)
        bodies = {
            "delete": None,
            "bulk_delete": {"ids": [gone["id"]]},
            "delete_matching": {"filters": {"user_id": "ada"}},
        }
        ids = {"id": gone["id"]} if way == "delete" else {}
        assert at(f"memories.{way}", bodies[way], who=me, **ids).status == 200
        there.let_go.set()
        at.settle()
    told: dict[str, list[str]] = {gone["id"]: [], kept["id"]: []}
    for received in there.received:
        data = received.event["data"]
        told[data["id"]].append(data["content"])
    assert told[gone["id"]][0] == "the canary sings" and set(told[gone["id"]][1:]) == {""}
    assert len(told[kept["id"]]) > 1 and set(told[kept["id"]]) == {"the dog barks"}


def test_deliveries_are_forgotten_in_time(tmp_path: Path) -> None:
    with harness(tmp_path) as at, receiver(410) as there:
        me = at.register()
        webhook = hook(at, me, there, "memory.created")

        def send(content: str) -> list[str]:
            at(
                "webhooks.update",
                {"url": there.url, "events": ["memory.created"]},
                who=me,
                id=webhook["id"],
            )
            at("memories.create", {"content": content}, who=me)
            at.settle()
            return [row["status"] for row in deliveries(at, me, webhook)]

        def jump(seconds: int) -> None:
            at.settings = Settings.load(
                {**CHEAP, "webhooks": QUICK, "clock": {"offset_seconds": seconds}}
            )
            at.reopen()

        assert send("refused") == ["failed"] and send("taken") == ["delivered", "failed"]
        jump(limits.DELIVERED_RETENTION_SECONDS + 10)
        assert send("a week later") == ["delivered", "failed"]
        jump(limits.UNDELIVERED_RETENTION_SECONDS + 10)
        assert send("a month later") == ["delivered"]
        for table in (DELIVERIES, DELIVERY_IDS, BODIES, ATTEMPTS, RESOURCES):
            assert count(at, me, table) == 1, table.name


def test_deliveries_under_way_go_on_after_a_restart(at: ShardHarness) -> None:
    with receiver(hangs=True) as there:
        me = at.register()
        hook(at, me, there, "memory.created")
        at(
            "memories.create_batch",
            {"memories": [{"content": f"number {n}"} for n in range(9)]},
            who=me,
        )
        until(at, lambda: len(there.received) == GROUP_JOBS_AT_ONCE)
        at.reopen()
        there.let_go.set()
        at.settle()
        keys = {received.event["idempotency_key"] for received in there.received}
        assert len(keys) == 9


def test_foreign_and_unknown_webhooks(at: ShardHarness) -> None:
    me, eve = at.register(), at.register("eve@example.com", "Eve")
    webhook = hook(at, me, "http://127.0.0.1:9999/", "memory.created")

    def asked(who: str, webhook_id: str) -> Answer:
        return at("webhooks.get", who=who, id=webhook_id)

    assert asked(eve, webhook["id"]).status == 403
    assert asked(me, webhook["id"][:-1] + ("0" if webhook["id"][-1] != "0" else "1")).status == 404
    assert asked(me, "whk_1").status == 404
    assert (
        at("webhooks.dead_letters.list", who=eve, query={"webhook_id": webhook["id"]}).status == 403
    )
