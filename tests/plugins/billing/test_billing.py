from __future__ import annotations

import calendar
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.billing import invoice_page
from plugins.billing.ledger import INVOICES, LEDGER, balances
from plugins.billing.periods import RANK, days_left, days_of, prorated
from runtime.api.metering import (
    period_end,
    period_of,
)
from runtime.limits import TIERS
from runtime.timestamps import DAY_MS, iso, parse
from tests.support.metered import EMAIL, MeteredHarness, metered


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[MeteredHarness]:
    """On the tier free, on the 12th of May: 20 of 31 days are left."""
    with metered(tmp_path, billing__default_tier="free") as account:
        yield account


def tier(account: MeteredHarness) -> str:
    return account("billing.subscription").body["tier"]["name"]


def invoices(account: MeteredHarness) -> list[dict[str, Any]]:
    """Oldest first."""
    return account("billing.invoices.list").body["items"][::-1]


def within(account: MeteredHarness, read: Any) -> Any:
    return account.write(read)


# --- proration ------------------------------------------------------------------------------------


def test_a_hundred_euros_from_the_first_to_the_fifteenth_of_january() -> None:
    days = days_of(parse("2026-01-01"), parse("2026-01-15"))
    assert (days, prorated(10_000, days, 31)) == (14, 4_516)


@pytest.mark.parametrize(
    ("now", "left", "of_days"),
    [
        ("2024-02-29T23:59:59Z", 1, 29),
        ("2024-02-01T00:00:00Z", 29, 29),
        ("2026-02-28T12:00:00Z", 1, 28),
        ("2100-02-28T12:00:00Z", 1, 28),
        ("2000-02-01T12:00:00Z", 29, 29),
        ("2026-12-31T23:59:59.999Z", 1, 31),
        ("2026-04-30T00:00:00Z", 1, 30),
        ("2026-05-12T10:00:00Z", 20, 31),
    ],
)
def test_today_counts_among_the_days_that_are_left(now: str, left: int, of_days: int) -> None:
    period = period_of(parse(now))
    assert (days_left(parse(now)), days_of(period, period_end(period))) == (left, of_days)


@given(st.integers(min_value=0, max_value=4_102_444_800_000))
def test_a_period_is_the_calendars_month(ms: int) -> None:
    period = period_of(ms)
    year, month = (int(part) for part in iso(ms)[:7].split("-"))
    assert iso(period) == f"{year}-{month:02}-01T00:00:00.000Z"
    assert (period_end(period) - period) // DAY_MS == calendar.monthrange(year, month)[1]
    assert period <= ms < period_end(period)


@given(st.integers(-(10**9), 10**9), st.integers(1, 31), st.integers(28, 31))
def test_proration_is_off_by_half_a_cent_at_most(cents: int, days: int, of_days: int) -> None:
    assert 2 * abs(prorated(cents, days, of_days) * of_days - cents * days) <= of_days
    assert prorated(cents, of_days, of_days) == cents
    assert prorated(-cents, days, of_days) == -prorated(cents, days, of_days)


# --- changing the tier ----------------------------------------------------------------------------


def test_an_upgrade_is_immediate_and_charges_the_days_left(ada: MeteredHarness) -> None:
    answer = ada("billing.upgrade", {"tier": "starter"})
    assert answer.body["tier"] == {
        "name": "starter", "display_name": "Starter", "price": "$19 / month", "price_cents": 1_900,
        "credits": 25_000, "requests_per_minute": 300, "file_bytes": 10 * 1024**3,
        "text_bytes": 2 * 1024**3, "collections": 10_000, "profiles": 10_000,
        "memories": 250_000, "documents": 10_000, "entities": 250_000,
    }  # fmt: skip
    assert ada("auth.me").body["tier"] == "starter"
    invoice = answer.body["invoice"]
    assert (invoice["total_cents"], invoice["status"]) == (round(1_900 * 20 / 31), "open")
    (line,) = invoice["lines"]
    assert line == {
        "description": "Starter instead of Free, 20 of 31 days of May 2026", "quantity": 0.645161,
        "unit_cents": 1_900, "amount_cents": 1_226, "period_start": "2026-05-12T00:00:00.000Z",
        "period_end": "2026-06-01T00:00:00.000Z",
    }  # fmt: skip
    ada.move_to("2026-05-31T23:00:00Z")
    assert ada("billing.upgrade", {"tier": "scale"}).body["invoice"]["total_cents"] == round(
        (39_900 - 1_900) / 31
    )
    ada.audited()


def test_a_downgrade_waits_for_the_end_of_the_period(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    pending = {
        "tier": "starter",
        "effective_at": "2026-06-01T00:00:00.000Z",
        "invoice_id": None,
    }
    assert ada("billing.downgrade", {"tier": "starter"}).body["pending_change"] == pending
    assert tier(ada) == "pro"
    ada.move_to("2026-06-01T00:00:00Z")
    (closed,) = ada.operate("billing.close")["invoices"]
    assert [line["description"] for line in closed["lines"]] == [
        "Credits used in May 2026, included",
        "Starter, June 2026",
    ]
    assert closed["total_cents"] == 1_900
    assert (tier(ada), ada("billing.subscription").body["pending_change"]) == ("starter", None)


def test_up_and_down_on_the_same_day(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    ada("billing.downgrade", {"tier": "free"})
    assert tier(ada) == "pro", "what was paid for is given"
    ada.move_to("2026-06-01T00:00:00Z")
    assert ada.operate("billing.close")["invoices"] == [], "nothing was used and nothing is due"
    assert tier(ada) == "free"
    assert [invoice["total_cents"] for invoice in invoices(ada)] == [round(9_900 * 20 / 31)]


def test_an_upgrade_cancels_a_pending_downgrade(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "starter"})
    ada("billing.downgrade", {"tier": "free"})
    assert ada("billing.upgrade", {"tier": "pro"}).body["pending_change"] is None
    ada.move_to("2026-06-01T00:00:00Z")
    (closed,) = ada.operate("billing.close")["invoices"]
    assert (tier(ada), closed["total_cents"]) == ("pro", 9_900)


def test_a_downgrade_to_the_present_tier_cancels_one_that_is_pending(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    ada("billing.downgrade", {"tier": "free"})
    assert ada("billing.downgrade", {"tier": "pro"}).body["pending_change"] is None
    assert ada("billing.downgrade", {"tier": "pro"}).status == 400, "nothing is pending any more"
    ada.move_to("2026-06-01T00:00:00Z")
    ada.operate("billing.close")
    assert tier(ada) == "pro"


def test_an_upgrade_from_a_dearer_agreement_charges_nothing(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free", billing__grace_days=0) as account:
        account.operate("billing.set_tier", tier="pro", price_cents=50_000)
        invoice = account("billing.upgrade", {"tier": "scale"}).body["invoice"]
        assert (invoice["total_cents"], invoice["status"]) == (0, "paid")
        account.move_to("2026-05-31T23:00:00Z")
        account.operate("billing.close")
        assert account("billing.subscription").body["status"] == "active"
        account.move_to("2026-06-01T00:00:00Z")
        (closed,) = account.operate("billing.close")["invoices"]
        price = account("billing.subscription").body["tier"]["price_cents"]
        assert closed["total_cents"] == price != 50_000, "what was agreed on was the tier before"
        account.audited()


def test_a_tier_without_credits_has_a_usage(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free", tiers__free_credits=0) as account:
        credits = account("usage.get").body["credits"]
        assert (credits["limit"], credits["remaining"], credits["percentage"]) == (0, 0, 100.0)


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ("upgrade", "free"),
        ("upgrade", "starter"),
        ("upgrade", "enterprise"),
        ("downgrade", "starter"),
        ("downgrade", "pro"),
    ],
)
def test_the_wrong_direction_is_refused(ada: MeteredHarness, operation: str, wanted: str) -> None:
    ada("billing.upgrade", {"tier": "starter"})
    before = ada("billing.subscription").body
    answer = ada(f"billing.{operation}", {"tier": wanted})
    assert (answer.status, answer.body["code"], answer.body["param"]) == (
        400,
        "invalid_request",
        "tier",
    )
    assert ada("billing.subscription").body == before


def test_the_operator_sets_any_tier_at_an_agreed_price(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    ada("billing.downgrade", {"tier": "free"})
    answer = ada.operate("billing.set_tier", tier="enterprise", price_cents=120_000)
    assert (answer["tier"]["name"], answer["pending_change"]) == ("enterprise", None)
    assert len(invoices(ada)) == 1, "the operator's word costs nothing by itself"
    ada.move_to("2026-06-03T00:00:00Z")
    assert ada.operate("billing.close")["invoices"][0]["total_cents"] == 120_000


def test_prices_are_settings(tmp_path: Path) -> None:
    with metered(
        tmp_path,
        billing__default_tier="free",
        tiers__pro_price_cents=3_100,
        billing__currency="eur",
    ) as ada:
        invoice = ada("billing.upgrade", {"tier": "pro"}).body["invoice"]
        assert (invoice["total_cents"], invoice["currency"]) == (2_000, "eur")
        assert (
            next(
                item
                for item in ada("billing.tiers", who=None).body["items"]
                if item["name"] == "pro"
            )["price"]
            == "$31 / month"
        )


def test_the_tiers_have_the_envelope_of_every_list(ada: MeteredHarness) -> None:
    listed = ada("billing.tiers", who=None).body
    assert {name: listed[name] for name in ("next_cursor", "has_more", "total_count")} == {
        "next_cursor": None,
        "has_more": False,
        "total_count": len(listed["items"]),
    }


# --- closing --------------------------------------------------------------------------------------


def test_an_invoice_has_the_months_credits_and_the_next_fee(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "starter"})
    ada.work(credits=321)
    ada("memories.create", {"content": "x"})
    ada.move_to("2026-06-01T00:00:01Z")
    ada.work(credits=5)
    (closed,) = ada.operate("billing.close")["invoices"]
    used, due = closed["lines"]
    assert (used["quantity"], used["amount_cents"], used["description"]) == (
        322,
        0,
        "Credits used in May 2026, included",
    )
    assert (due["quantity"], due["amount_cents"], due["period_start"]) == (
        1,
        1_900,
        "2026-06-01T00:00:00.000Z",
    )
    assert (closed["period_start"], closed["period_end"]) == (
        "2026-05-01T00:00:00.000Z",
        "2026-06-01T00:00:00.000Z",
    )
    assert ada.operate("billing.close")["invoices"] == [], "closing again changes nothing"
    may, june = ada.audited()
    assert (may["closed"], may["counter"], june["closed"], june["counter"]) == (True, 322, False, 5)


def test_metered_credits_have_a_price(tmp_path: Path) -> None:
    with metered(
        tmp_path, billing__default_tier="enterprise", billing__metered_millicents=40
    ) as ada:
        ada.work(credits=12_345)
        ada.move_to("2026-06-01T00:00:00Z")
        (closed,) = ada.operate("billing.close")["invoices"]
        (line,) = closed["lines"]
        assert (line["quantity"], line["unit_cents"], line["amount_cents"]) == (12.345, 40, 494)
        assert type(line["unit_cents"]) is int, "an amount of cents is an integer"
        assert line["description"] == "Credits used in May 2026, in thousands"


def test_months_that_nobody_closed_are_closed_one_by_one(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "starter"})
    ada.work(credits=3)
    ada.move_to("2026-09-10T00:00:00Z")
    closed = ada.operate("billing.close")["invoices"]
    assert [invoice["period_start"][:7] for invoice in closed] == [
        "2026-05",
        "2026-06",
        "2026-07",
        "2026-08",
    ]
    assert [invoice["lines"][0]["quantity"] for invoice in closed] == [3, 0, 0, 0]
    numbers = [int(invoice["number"][-6:]) for invoice in invoices(ada)]
    assert numbers == [1, 2, 3, 4, 5]
    ada.audited()


def test_a_change_after_the_months_end_closes_the_month_first(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    ada("billing.downgrade", {"tier": "free"})
    ada.move_to("2026-06-30T00:00:00Z")
    assert ada("billing.upgrade", {"tier": "starter"}).body["invoice"]["total_cents"] == round(
        1_900 / 30
    )


def test_a_downgrade_after_the_months_end_waits_for_the_end_of_the_one_that_runs(
    ada: MeteredHarness,
) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    ada.move_to("2026-06-03T00:00:00Z")
    ada("billing.downgrade", {"tier": "free"})
    ada.operate("billing.close")
    assert tier(ada) == "pro"
    ada.move_to("2026-07-01T00:00:00Z")
    ada.operate("billing.close")
    assert tier(ada) == "free"


def test_the_operators_word_is_for_no_month_before_it(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    ada.move_to("2026-06-03T00:00:00Z")
    ada.operate("billing.set_tier", tier="enterprise", price_cents=120_000)
    june = invoices(ada)[-1]
    assert (june["period_start"], june["total_cents"]) == ("2026-05-01T00:00:00.000Z", 9_900)
    ada.move_to("2026-07-03T00:00:00Z")
    assert ada.operate("billing.close")["invoices"][0]["total_cents"] == 120_000


def test_the_month_is_closed_by_itself(tmp_path: Path) -> None:
    """Calls are made half a minute before the month's end; the shard's own clock is half a minute
    after it.
    """
    with metered(tmp_path, at="2026-05-31T23:59:30Z", billing__default_tier="enterprise") as ada:
        ada.work(credits=11)
        ada.harness.settle()
        (closed,) = invoices(ada)
        assert (closed["lines"][0]["quantity"], closed["status"]) == (11, "paid")
        ada.audited()


# --- documents and ledger -------------------------------------------------------------------------


def test_a_payment_and_credit_notes_in_the_books(ada: MeteredHarness) -> None:
    first = ada("billing.upgrade", {"tier": "starter"}).body["invoice"]
    second = ada("billing.upgrade", {"tier": "pro"}).body["invoice"]
    note = ada.operate(
        "billing.credit_note", invoice=first["number"], reason="slow <week>", amount_cents=226
    )
    assert (note["kind"], note["total_cents"], note["credited_invoice_id"], note["status"]) == (
        "credit_note",
        -226,
        first["id"],
        "issued",
    )
    paid = ada.operate("billing.mark_paid", invoice=first["id"], reference="transfer")
    assert (paid["status"], paid["credited_cents"], paid["lines"], paid["total_cents"]) == (
        "paid",
        226,
        first["lines"],
        1_226,
    )
    assert ada.operate("billing.mark_paid", invoice=first["id"])["paid_at"] == paid["paid_at"], (
        "paid once"
    )
    ada.operate("billing.credit_note", invoice=second["number"], reason="wrong tier")
    assert ada("billing.invoices.get", id=second["id"]).body["status"] == "void"
    ada.operate("billing.credit_note", invoice=first["number"], reason="all of it")
    books = within(ada, balances)
    assert {account: cents for account, cents in books.items() if cents} == {
        "cash:manual": 1_000, "refunds_payable": -1_000,
        "revenue:subscription": -1_226 - second["total_cents"],
        "revenue:credited": 1_226 + second["total_cents"],
    }  # fmt: skip
    ada.audited()


@pytest.mark.parametrize("cents", [None, 1])
def test_no_more_is_taken_back_than_was_charged(ada: MeteredHarness, cents: int | None) -> None:
    invoice = ada("billing.upgrade", {"tier": "starter"}).body["invoice"]
    ada.operate("billing.credit_note", invoice=invoice["id"], reason="all")
    amount = {} if cents is None else {"amount_cents": cents}
    body = {"email": EMAIL, "invoice": invoice["id"], "reason": "again", **amount}
    assert ada.harness("internal.billing.credit_note", body, who=ada.operator).status == 409
    assert (
        ada.harness(
            "internal.billing.mark_paid",
            {"email": EMAIL, "invoice": invoice["id"]},
            who=ada.operator,
        ).status
        == 409
    )


def test_an_issued_document_never_changes(ada: MeteredHarness) -> None:
    ada("billing.upgrade", {"tier": "pro"})
    stored = within(ada, lambda ctx: ctx[INVOICES].get_raw(0))
    posted = within(ada, lambda ctx: ctx[LEDGER].get_raw(0))
    ada.operate("billing.mark_paid", invoice=invoices(ada)[0]["number"])
    ada.operate("billing.credit_note", invoice=invoices(ada)[0]["number"], reason="x")
    ada.move_to("2026-07-01T00:00:00Z")
    ada.operate("billing.close")
    assert within(ada, lambda ctx: ctx[INVOICES].get_raw(0)) == stored
    assert within(ada, lambda ctx: ctx[LEDGER].get_raw(0)) == posted


ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["upgrade", "downgrade", "set_tier"]), st.sampled_from(list(TIERS))),
    st.tuples(st.just("work"), st.integers(1, 50)),
    st.tuples(st.just("days"), st.integers(1, 40)),
    st.tuples(st.sampled_from(["close", "pay", "credit"]), st.integers(0, 5)),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(ACTIONS, min_size=4, max_size=20))
def test_whatever_happens_documents_ledger_and_usage_agree(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, Any]]
) -> None:
    with metered(
        tmp_path_factory.mktemp("books"), billing__default_tier="free", limits__credits_per_month=0
    ) as ada:
        for what, value in actions:
            if what in ("upgrade", "downgrade"):
                before = tier(ada)
                answer = ada(f"billing.{what}", {"tier": value})
                assert answer.status in (200, 400)
                assert answer.status == 400 or what == "downgrade" or RANK[tier(ada)] == RANK[value]
                assert (
                    answer.status == 200 or tier(ada) == before or RANK[tier(ada)] < RANK[before]
                ), "only an old downgrade may show"
            elif what == "set_tier":
                ada.operate("billing.set_tier", tier=value, price_cents=7_001)
            elif what == "work":
                ada.work(credits=value)
            elif what == "days":
                ada.harness.now_ms += value * DAY_MS
            elif what == "close":
                ada.operate("billing.close")
            elif value < len(found := invoices(ada)):
                body = {
                    "email": EMAIL,
                    "invoice": found[value]["id"],
                    **({"reason": "r"} if what == "credit" else {}),
                }
                ada.harness(
                    f"internal.billing.{'credit_note' if what == 'credit' else 'mark_paid'}",
                    body,
                    who=ada.operator,
                )
        ada.operate("billing.close")
        ada.audited()
        for document in invoices(ada):
            assert (
                document["total_cents"]
                == document["subtotal_cents"]
                == sum(line["amount_cents"] for line in document["lines"])
            )
        postings = within(ada, lambda ctx: [row for _, row in ctx[LEDGER].scan()])
        assert all(sum(posting.entries.values()) == 0 for posting in postings)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_shows_the_document_and_escapes_what_people_wrote(ada: MeteredHarness) -> None:
    evil = '<script>alert("x")</script>'
    token = ada.harness.register("eve@example.com", evil)
    invoice = ada("billing.upgrade", {"tier": "pro"}, who=token).body["invoice"]
    call = ada.harness.form("billing.invoices.page", who=token, id=invoice["id"])
    (reply,) = ada.harness.replies([call])
    html = reply.body.decode()
    assert reply.content_type == "text/html; charset=utf-8"
    assert "script" not in reply.headers["Content-Security-Policy"]
    assert invoice["number"] in html and "63.87 USD" in html and "Pro instead of Free" in html
    assert evil not in html and "&lt;script&gt;" in html


def test_money_is_written_with_its_cents() -> None:
    assert [invoice_page.money(cents, "usd") for cents in (0, 5, 123_456, -99, 0.04)] == [
        "0.00 USD", "0.05 USD", "1,234.56 USD", "-0.99 USD", "0.0004 USD",
    ]  # fmt: skip
