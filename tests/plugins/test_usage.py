from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins import usage
from runtime.api import figures, jobs, latencies, metering
from runtime.limits import RESERVATION_SECONDS_MAX
from runtime.timestamps import parse
from tests.support.metered import MeteredHarness, metered

MONTH, NEXT_MONTH = "2026-05-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z"


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[MeteredHarness]:
    with metered(tmp_path, limits__credits_per_month=1_000) as account:
        yield account


def operations(account: MeteredHarness) -> dict[str, tuple[int, int]]:
    return {
        share["operation"]: (share["count"], share["credits"])
        for share in account("usage.get").body["by_operation"]
    }


# --- what costs what ------------------------------------------------------------------------------


def test_every_effect_is_one_event_on_every_counter(ada: MeteredHarness) -> None:
    key = ada("auth.api_keys.create", {"name": "k"})
    made = ada("memories.create", {"content": "The key is in the shed."}).body["id"]
    ada(
        "memories.create",
        {"messages": [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]},
    )
    ada("memories.update", {"title": "Key"}, id=made)
    ada("search.search", {"query": "key"}, who=key.body["key"])
    ada("memories.get", id=made)
    ada("memories.delete", id=made)
    shown = ada("usage.get").body
    assert shown["credits"] == {"used": 5, "limit": 1_000, "remaining": 995, "percentage": 0.5}
    assert (shown["period_start"], shown["period_end"], shown["rate_limit_per_minute"]) == (
        MONTH,
        NEXT_MONTH,
        -1,
    )
    assert shown["by_operation"][0] == {"operation": "memories.create", "count": 2, "credits": 3}
    assert operations(ada) == {
        "memories.create": (2, 3), "memories.update": (1, 1), "search.search": (1, 1),
        "memories.get": (1, 0), "memories.delete": (1, 0), "auth.api_keys.create": (1, 0),
        "usage.get": (1, 0),
    }  # fmt: skip
    shares = {share["api_key_id"]: share["credits"] for share in shown["by_api_key"]}
    assert shares == {None: 4, key.body["id"]: 1}
    (period,) = ada.audited()
    assert {
        period[name] for name in ("counter", "events", "by_operation", "by_key", "by_time")
    } == {5}


def test_an_account_sees_what_it_takes_at_the_moment(ada: MeteredHarness) -> None:
    # The ledger is the process's, where other tests noted something for other addresses.
    me = ada.harness.register("nobody-else-has-this@example.com")
    assert ada("usage.load", who=me).body["requests"] == 1
    ada("memories.create", {"content": "The key hangs in the shed."}, who=me)
    between = ada("usage.load", who=me).body
    assert (between["requests"], between["read_ms"]) == (3, 0.0) and between["write_ms"] > 0
    ada("search.search", {"query": "key"}, who=me)
    # What a search took is noted once it is answered.
    ada.harness.until(lambda: ada("usage.load", who=me).body["read_ms"] > 0)
    after = ada("usage.load", who=me).body
    assert after["requests"] >= 5 and after["resident_bytes"] > 0
    assert 0 < after["seconds"] < 121 and after["cores"] >= 0


def test_a_key_knows_what_it_was_used_for(ada: MeteredHarness) -> None:
    key = ada("auth.api_keys.create", {"name": "k"}).body
    ada("memories.create_raw", {"content": "x"}, who=key["key"])
    ada("memories.list", who=key["key"])
    used_at = ada.harness.now_ms
    (listed,) = ada("auth.api_keys.list").body["items"]
    assert listed["usage"] == {"requests": 2, "credits": 1}
    assert parse(listed["last_used_at"]) == used_at


def test_a_batch_counts_its_items_and_only_those_it_stored(ada: MeteredHarness) -> None:
    items = [{"content": f"note {number}"} for number in range(7)] + [
        {"content": "x", "collection_id": "col_nowhere"}
    ]
    assert ada("memories.create_batch", {"memories": items}).body["created"] == 7
    assert ada.used() == 7


def test_what_fails_costs_nothing(ada: MeteredHarness) -> None:
    assert ada("memories.create", {"content": "x", "collection_id": "col_nowhere"}).status == 404
    assert ada.work(fails=True).status == 500
    assert ada("search.search", {"query": "x", "collection_id": "col_nowhere"}).status == 404
    shown = ada("usage.get").body
    assert shown["credits"]["used"] == 0
    assert shown["requests"] == {"used": 3, "refused": 0}


@pytest.mark.parametrize("operation", ["memories.create", "work.do"])
def test_a_replay_counts_as_a_request_and_costs_nothing(
    ada: MeteredHarness, operation: str
) -> None:
    body = {"content": "x"} if operation == "memories.create" else {"credits": 3}
    answers = [ada(operation, body, key="once") for _ in range(4)]
    assert len({str(answer.body.get("id")) for answer in answers}) == 1
    assert operations(ada)[operation] == (4, 1 if operation == "memories.create" else 3)
    ada.audited()


def test_fifty_twins_are_one_charge(ada: MeteredHarness) -> None:
    answers = ada.at_once("memories.create", [{"content": "x"}] * 50, key="once")
    assert {answer.body["id"] for answer in answers} == {answers[0].body["id"]}
    assert operations(ada)["memories.create"] == (50, 1)


# --- the month's end of credits -------------------------------------------------------------------


def test_the_thousandth_credit_is_given_out_once(ada: MeteredHarness) -> None:
    for _ in range(9):
        assert ada("memories.create_batch", {"memories": [{"content": "x"}] * 100}).status == 201
    answers = ada.at_once(
        "memories.create_raw", [{"content": f"note {number}"} for number in range(130)]
    )
    assert sum(answer.status == 201 for answer in answers) == 100
    refused = next(answer for answer in answers if answer.status != 201)
    assert (refused.status, refused.body["code"]) == (429, "quota_exceeded")
    assert refused.headers["X-RateLimit-Limit"] == "1000"
    shown = ada("usage.get").body
    assert shown["credits"] == {"used": 1_000, "limit": 1_000, "remaining": 0, "percentage": 100.0}
    assert shown["requests"]["refused"] == 30
    assert ada("memories.list").status == 200, "what costs nothing goes on"
    ada.audited()


def test_searches_at_once_get_exactly_the_credits_that_are_left(ada: MeteredHarness) -> None:
    ada.work(credits=990)
    answers = ada.at_once("search.search", [{"query": "key"}] * 30)
    assert sorted(answer.status for answer in answers) == [200] * 10 + [429] * 20
    assert ada.used() == 1_000
    ada.audited()


@pytest.mark.parametrize(
    ("operation", "fails", "passes"),
    [
        ("work.look", {"fails": True}, {}),
        ("search.search", {"query": "x", "collection_id": "col_nowhere"}, {"query": "x"}),
    ],
)
def test_a_read_that_fails_holds_back_no_credits(
    ada: MeteredHarness, operation: str, fails: dict[str, Any], passes: dict[str, Any]
) -> None:
    ada.work(credits=999)
    assert ada(operation, fails).status in (404, 500)
    assert [ada(operation, passes).status for _ in range(2)] == [200, 429]
    ada.audited()


def test_a_refusal_says_when_the_next_month_begins(ada: MeteredHarness) -> None:
    ada.work(credits=1_000)
    call = ada.harness.form("work.do", {}, who=ada.token)
    (reply,) = ada.harness.replies([call])
    assert reply.error.retry_after_seconds == -(-(parse(NEXT_MONTH) - call.now_ms) // 1000)


def test_what_needs_more_than_is_left_is_refused_whole(ada: MeteredHarness) -> None:
    ada.work(credits=998)
    assert ada.work(credits=3).status == 429
    assert ada.work(credits=2).status == 200
    assert ada.used() == 1_000


def test_a_replay_is_answered_when_nothing_is_left(ada: MeteredHarness) -> None:
    first = ada("memories.create", {"content": "x"}, key="once").body["id"]
    ada.work(credits=999)
    assert ada("memories.create", {"content": "x"}, key="once").body["id"] == first
    assert ada("memories.create", {"content": "y"}, key="another").status == 429


def test_a_new_month_begins_with_nothing_used(ada: MeteredHarness) -> None:
    ada.work(credits=1_000)
    assert ada.work().status == 429
    ada.move_to("2026-06-01T00:00:00Z")
    assert ada.work().status == 200
    assert ada.used() == 1


def test_a_restart_forgets_no_charge(ada: MeteredHarness) -> None:
    ada.work(credits=600)
    ada("search.search", {"query": "key"})
    ada.harness.reopen()
    assert ada.work(credits=400).status == 429
    assert ada.used() == 601
    ada.audited()


def test_an_upgrade_gives_its_credits_at_once(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free") as ada:
        ada.work(credits=1_000)
        assert ada.work().status == 429
        assert ada("billing.upgrade", {"tier": "starter"}).status == 200
        assert ada.work().status == 200
        assert ada("usage.get").body["credits"] == {
            "used": 1_001,
            "limit": 25_000,
            "remaining": 23_999,
            "percentage": 4.0,
        }


def test_a_handler_may_charge_less_than_was_asked_for(ada: MeteredHarness) -> None:
    ada.work(credits=1_000, spent=10)
    assert ada.used() == 10
    assert ada.work(credits=990).status == 200


# --- features -------------------------------------------------------------------------------------


def test_a_tier_without_the_feature_is_told_which_one_has_it(tmp_path: Path) -> None:
    with metered(
        tmp_path, billing__default_tier="starter", billing__upgrade_url="https://shop.example/up"
    ) as ada:
        call = ada.harness.form("work.write_graph", {}, who=ada.token)
        (reply,) = ada.harness.replies([call])
        assert reply.error.status == 403
        assert reply.error.body == {
            "error": "feature_not_available",
            "feature": "graph_write",
            "feature_name": "Writing to the knowledge graph",
            "message": (
                "Writing to the knowledge graph: this takes the tier Pro, and the account has "
                "Starter."
            ),
            "current_tier": {"name": "starter", "display_name": "Starter"},
            "required_tier": {
                "name": "pro",
                "display_name": "Pro",
                "price": "$99 / month",
                "credits": "200,000 / month",
            },
            "upgrade_url": "https://shop.example/up",
            "pricing_url": "http://127.0.0.1:8000/v1/billing/tiers",
        }
        assert ada("usage.get").body["requests"] == {"used": 0, "refused": 0}, (
            "a refused request is not counted"
        )
        ada("billing.upgrade", {"tier": "pro"})
        assert ada("work.write_graph", {}).status == 200


def test_the_body_may_decide_whether_a_feature_is_needed(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free") as ada:
        assert ada("work.query_graph", {"credits": 2}).status == 200
        assert ada("work.query_graph", {"credits": 3}).status == 403


def test_the_operator_can_open_all_features(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free", limits__features=False) as ada:
        assert ada("work.write_graph", {}).status == 200


# --- reservations ---------------------------------------------------------------------------------


def test_a_reservation_counts_until_it_is_settled_for_what_it_came_to(ada: MeteredHarness) -> None:
    reserved = ada.work(credits=1_000, spent=0, reserve=900).body["charge_id"]
    assert ada.used() == 900
    assert ada.work(credits=101).status == 429
    assert ada.work(settle=reserved, credits=0).status == 200
    assert ada.used() == 0
    reserved = ada.work(credits=0, reserve=900).body["charge_id"]
    assert ada.work(settle=reserved, credits=40).body["counted"]
    assert not ada.work(settle=reserved, credits=40).body["counted"], "settled twice, charged once"
    assert ada.used() == 40
    ada.audited()


def test_a_released_reservation_costs_nothing(ada: MeteredHarness) -> None:
    reserved = ada.work(credits=0, reserve=1_000).body["charge_id"]
    assert ada.work().status == 429
    assert ada.work(credits=0, release=reserved).body["counted"]
    assert not ada.work(credits=0, release=reserved).body["counted"]
    assert ada.work().status == 200
    ada.audited()


def test_what_nobody_came_back_for_is_reaped(ada: MeteredHarness) -> None:
    reserved = ada.work(credits=0, reserve=1_000).body["charge_id"]
    assert ada.write(lambda ctx: metering.reap(ctx, {"period": parse(MONTH)})) == {"reaped": 0}
    ada.harness.now_ms += RESERVATION_SECONDS_MAX * 1000 + 1
    assert ada.write(lambda ctx: metering.reap(ctx, {"period": parse(MONTH)})) == {"reaped": 1}
    assert ada.used() == 0
    assert ada.work(settle=reserved, credits=7).body["counted"], "the work was done all the same"
    assert ada.used() == 7
    ada.audited()


def test_what_is_left_when_some_was_reaped_is_reaped_in_its_time(ada: MeteredHarness) -> None:
    """The job comes again for whichever is over first; without it they would be held for good."""
    for _ in range(3):
        assert ada.work(credits=0, reserve=100).status == 200
        ada.harness.now_ms += 60_000
    over = ada.write(
        lambda ctx: sorted(row.expires_at for _, row in ctx[metering.USAGE_RESERVATIONS].scan())
    )

    def reap(at: int) -> int:
        """-> when the job comes again."""
        ada.harness.now_ms = at
        assert ada.write(lambda ctx: metering.reap(ctx, {"period": parse(MONTH)})) == {"reaped": 1}
        rows = ada.write(lambda ctx: [row for _, row in ctx[jobs.JOBS].scan()])
        return max(row.run_at for row in rows if row.name == metering.REAPER)

    assert [reap(over[0]), reap(over[1])] == over[1:]
    assert ada.used() == 100
    ada.audited()


def test_reserved_work_is_charged_to_the_key_that_asked_for_it(ada: MeteredHarness) -> None:
    key = ada("auth.api_keys.create", {"name": "k"}).body["key"]
    reserved = ada("work.do", {"credits": 0, "reserve": 9}, who=key).body["charge_id"]
    assert ada.work(settle=reserved, credits=7).body["counted"]
    (listed,) = ada("auth.api_keys.list").body["items"]
    assert listed["usage"] == {"requests": 1, "credits": 7}
    ada.audited()


# --- months, days, hours --------------------------------------------------------------------------


def history(account: MeteredHarness, granularity: str, **query: str) -> list[tuple[str, int]]:
    items, cursor = [], {}
    while True:
        page = account(
            "usage.history", query={"granularity": granularity, "limit": 2, **query, **cursor}
        ).body
        items += [(item["period_start"][:13], item["credits"]) for item in page["items"]]
        if not page["has_more"]:
            assert page["total_count"] == len(items)
            return [item for item in items if item[1]]
        cursor = {"cursor": page["next_cursor"]}


def test_history_by_hour_day_and_month(ada: MeteredHarness) -> None:
    for moment in (
        "2026-05-12T10:59:59Z",
        "2026-05-12T11:00:00Z",
        "2026-05-13T00:00:00Z",
        "2026-06-02T08:00:00Z",
    ):
        ada.move_to(moment)
        ada.work(credits=2)
    assert history(ada, "hour") == [
        ("2026-05-12T10", 2),
        ("2026-05-12T11", 2),
        ("2026-05-13T00", 2),
        ("2026-06-02T08", 2),
    ]
    assert history(ada, "day") == [("2026-05-12T00", 4), ("2026-05-13T00", 2), ("2026-06-02T00", 2)]
    assert history(ada, "month") == [("2026-05-01T00", 6), ("2026-06-01T00", 2)]
    assert history(
        ada, "hour", **{"from": "2026-05-12T11:30:00Z", "to": "2026-05-13T00:00:00Z"}
    ) == [("2026-05-12T11", 2)]


def test_old_events_and_hours_are_folded_and_nothing_is_lost(ada: MeteredHarness) -> None:
    for day in range(1, 29):
        ada.move_to(f"2026-05-{day:02}T10:00:00Z")
        ada.work(credits=1)
    ada.move_to("2026-07-31T00:00:00Z")
    for _ in range(8):
        ada.harness.now_ms += metering.HOUR_MS
        ada.work(credits=1)
    scope = ada.harness.scope_of(ada.token)
    with ada.harness.shard.store.snapshot() as snapshot:
        assert snapshot.bind(metering.USAGE_EVENTS, scope).count() == 8
        rollups = snapshot.bind(metering.USAGE_ROLLUPS, scope)
        assert rollups.count("day") == 28
        assert rollups.count("hour") <= 10
    assert [credits for _, credits in history(ada, "day")] == [1] * 28 + [8]
    assert [(period["counter"], period["events"]) for period in ada.audited()] == [(28, 28), (8, 8)]


def test_what_comes_after_a_month_was_closed_is_the_next_months(ada: MeteredHarness) -> None:
    ada.move_to("2026-05-31T23:59:59.990Z")
    ada.work(credits=5)
    ada.write(lambda ctx: metering.close(ctx, parse(MONTH)))
    ada.work(credits=7)
    assert [
        (period["period_start"], period["counter"])
        for period in ada.operate("usage.audit")["periods"]
    ] == [(MONTH, 5), (NEXT_MONTH, 7)]


def test_storage_counts_what_is_there(ada: MeteredHarness) -> None:
    made = [ada("memories.create_raw", {"content": "x" * 1_000}).body["id"] for _ in range(3)]
    before = ada("usage.get").body["storage"]
    assert before["memories"] == 3 and 3_000 < before["bytes"] < 6_000
    ada("memories.delete", id=made[0])
    after = ada("usage.get").body["storage"]
    assert after["memories"] == 2 and after["bytes"] < before["bytes"]


def test_part_of_a_flow_is_neither_counted_nor_charged(ada: MeteredHarness) -> None:
    part = ada.harness.form("work.do", {"credits": 5}, who=ada.token)
    part.flow = "answers.reason"
    (answer,) = ada.harness.together([part])
    assert answer.status == 200
    shown = ada("usage.get").body
    assert (shown["credits"]["used"], shown["requests"]["used"]) == (0, 0)


def test_very_many_memories_are_measured_by_the_newest(
    ada: MeteredHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (10, 10, 1_000, 1_000):
        ada("memories.create_raw", {"content": "x" * size})
    whole = ada("usage.get").body["storage"]["bytes"]
    monkeypatch.setattr(figures, "ROWS_MEASURED_MAX", 2)
    assert ada("usage.get").body["storage"]["bytes"] > whole + 1_900


# --- privacy --------------------------------------------------------------------------------------


def test_usage_can_be_taken_along_and_erased(ada: MeteredHarness) -> None:
    ada.work(credits=3)
    ada.work(credits=0, reserve=5)
    exported = ada.write(lambda ctx: list(usage.plugin.export(ctx)))
    assert ("usage_month", {"period_start": MONTH, "requests": 0, "credits": 3}) in exported
    counts = ada.write(usage.plugin.erase)
    assert counts["usage_events"] == counts["usage_periods"] == counts["usage_reservations"] == 1
    assert (
        ada.write(lambda ctx: [table.name for table in metering.TABLES if ctx[table].count()]) == []
    )


# --- how long it took, and how it ended -----------------------------------------------------------


def test_latency_counts_each_request_with_how_it_ended(ada: MeteredHarness) -> None:
    made = ada("memories.create", {"content": "The key is in the shed."}).body["id"]
    ada("memories.get", id=made)
    ada("memories.get", id=made.replace("mem_", "mem_0")[:36])
    shown = ada("usage.latency", query={"hours": 1}).body
    by_operation = {one["operation"]: one for one in shown["by_operation"]}
    ended = {
        name: (one["requests"], one["client_errors"], one["server_errors"], one["error_share"])
        for name, one in by_operation.items()
    }
    assert ended == {
        "memories.create": (1, 0, 0, 0.0),
        "memories.get": (2, 1, 0, 0.5),
    }
    assert (shown["total"]["requests"], shown["total"]["error_share"]) == (3, 0.3333)
    for one in (shown["total"], *shown["by_operation"]):
        assert 0 < one["p50_ms"] <= one["p95_ms"] <= one["p99_ms"]
    (hour,) = shown["by_hour"]
    assert hour == {"period_start": shown["since"], **shown["total"]}


def test_latencies_are_kept_for_eight_days(ada: MeteredHarness) -> None:
    ada.move_to("2026-05-12T10:59:00Z")
    ada("memories.list")
    ada.move_to("2026-05-20T10:01:00Z")
    ada("memories.list")
    assert [one["requests"] for one in ada("usage.latency").body["by_hour"]] == [1]
    assert len(ada("usage.latency", query={"hours": 192}).body["by_hour"]) == 1
    ada.move_to("2026-05-20T11:01:00Z")
    ada("memories.list")
    scope = ada.harness.scope_of(ada.token)
    ada("usage.get")
    with ada.harness.shard.store.snapshot() as snapshot:
        hours = {hour for (hour, _), _ in snapshot.bind(latencies.LATENCIES, scope).scan()}
    assert hours == {parse("2026-05-20T10:00:00.000Z"), parse("2026-05-20T11:00:00.000Z")}
