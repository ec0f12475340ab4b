"""Stripe as the collector of invoices: what it is asked for, and what comes of what it reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.billing.collecting import collected, load_demand, load_reduction
from plugins.billing.ledger import CREDIT_JOB, VOID_JOB, balances, credit, find
from plugins.billing.stripe import AtStripe, Collected, email_of
from runtime.api import jobs
from runtime.api.context import WriteContext
from runtime.api.operation import Signed
from runtime.errors import BadRequest
from runtime.tenancy import slot_of_email
from tests.support.metered import EMAIL, MeteredHarness, metered
from tests.support.stripe_endpoint import StripeEndpoint, report, signature, stripe_endpoint

SECRET = "whsec_of_a_test"


@pytest.fixture
def stripe() -> Iterator[StripeEndpoint]:
    with stripe_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def customer(tmp_path: Path, stripe: StripeEndpoint) -> Iterator[MeteredHarness]:
    given = {
        "provider": "stripe",
        "stripe_api_key": "sk_test_1",
        "stripe_signing_secret": SECRET,
        "stripe_api_base": stripe.url,
    }
    with metered(
        tmp_path,
        billing__default_tier="free",
        **{f"billing__{name}": value for name, value in given.items()},
    ) as account:
        yield account


def tier(account: MeteredHarness) -> str:
    return account("billing.subscription").body["tier"]["name"]


def told(account: MeteredHarness, body: bytes, header: str) -> int:
    """Post a report the way the gateway hands it on; -> the status."""
    call = account.harness.form("billing.tiers")
    call.operation, call.body = "billing.stripe_events", Signed(body, header)
    call.slot = slot_of_email(email_of(call.body))
    (reply,) = account.harness.replies([call])
    return reply.status


def test_stripe_is_asked_for_the_same_amount_once(
    customer: MeteredHarness, stripe: StripeEndpoint
) -> None:
    stripe.failures = 1
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    customer.harness.settle()
    made = {sent.path: sent for sent in stripe.sent}
    assert list(made) == [
        "/v1/customers",
        "/v1/invoices",
        "/v1/invoiceitems",
        "/v1/invoices/in_2/finalize",
    ]
    assert made["/v1/invoices"].key == invoice["id"]
    assert made["/v1/invoices"].credential == "Bearer sk_test_1"
    assert made["/v1/invoices"].fields["metadata[invoice_id]"] == invoice["id"]
    assert (
        made["/v1/invoiceitems"].fields["amount"],
        made["/v1/invoiceitems"].fields["invoice"],
    ) == ("6387", "in_2")
    shown = customer("billing.invoices.get", id=invoice["id"]).body
    assert (shown["status"], shown["payment_url"]) == ("open", "https://pay.example/in_2")
    customer("billing.upgrade", {"tier": "scale"})
    customer.harness.settle()
    assert sum(sent.path == "/v1/customers" for sent in stripe.sent) == 2, (
        "one that failed, one that did not"
    )


def test_a_signed_report_pays_the_invoice_once(customer: MeteredHarness) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    body = report("invoice.paid", EMAIL, invoice["id"])
    for _ in range(2):
        assert told(customer, body, signature(body, SECRET)) == 200
    assert customer("billing.invoices.get", id=invoice["id"]).body["status"] == "paid"
    assert customer.write(balances)["cash:stripe"] == 6_387
    other = report("invoice.sent", EMAIL, invoice["id"])
    assert told(customer, other, signature(other, SECRET)) == 200
    customer.audited()


def test_an_upgrade_that_stripe_collects_takes_effect_when_it_is_paid(
    customer: MeteredHarness,
) -> None:
    asked = customer("billing.upgrade", {"tier": "pro"}).body
    invoice = asked["invoice"]
    awaited = {"tier": "pro", "effective_at": None, "invoice_id": invoice["id"]}
    assert (asked["tier"]["name"], asked["pending_change"]) == ("free", awaited)
    assert customer("auth.me").body["tier"] == tier(customer) == "free"
    body = report("invoice.paid", EMAIL, invoice["id"])
    assert told(customer, body, signature(body, SECRET)) == 200
    assert tier(customer) == "pro"
    assert customer("billing.subscription").body["pending_change"] is None
    customer.audited()


def test_an_upgrade_that_is_not_paid_for_is_forgone_and_owes_nothing(
    customer: MeteredHarness, stripe: StripeEndpoint
) -> None:
    customer("billing.upgrade", {"tier": "scale"})
    customer.harness.settle()
    pro = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    customer.harness.settle()
    voided = [sent.path for sent in stripe.sent if sent.path.endswith("/void")]
    assert voided == ["/v1/invoices/in_2/void"]
    customer.move_to("2026-06-01T00:00:00Z")
    assert customer.operate("billing.close")["invoices"] == []
    listed = customer("billing.invoices.list").body["items"]
    states = [(document["kind"], document["status"]) for document in listed[::-1]]
    assert states == [("invoice", "void"), ("credit_note", "issued")] * 2
    shown = customer("billing.subscription").body
    assert (shown["tier"]["name"], shown["pending_change"]) == ("free", None)
    assert customer("billing.invoices.get", id=pro["id"]).body["credited_cents"] == 6_387
    assert sum(customer.write(balances).values()) == 0
    customer.audited()


def test_what_is_paid_for_an_upgrade_that_was_forgone_is_owed_back(
    customer: MeteredHarness,
) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    customer("billing.upgrade", {"tier": "scale"})
    body = report("invoice.paid", EMAIL, invoice["id"])
    for _ in range(2):
        assert told(customer, body, signature(body, SECRET)) == 200
    booked = customer.write(balances)
    assert (booked["cash:stripe"], booked["refunds_payable"]) == (6_387, -6_387)
    shown = customer("billing.invoices.get", id=invoice["id"]).body
    assert (shown["status"], shown["paid_at"] is not None, tier(customer)) == ("void", True, "free")
    customer.audited()


@pytest.mark.parametrize(("came", "owed"), [(6_387, 5_000), (1_387, 0), (0, 0), (None, 0)])
def test_what_stripe_collects_of_what_was_taken_back_is_owed_back(
    customer: MeteredHarness, came: int | None, owed: int
) -> None:
    """It may be paid before Stripe is told of the credit note."""
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    taken = {"invoice": invoice["number"], "amount_cents": 5_000, "reason": "a mistake"}
    customer.operate("billing.credit_note", **taken)
    said = {} if came is None else {"amount_paid": came}
    body = report("invoice.paid", EMAIL, invoice["id"], **said)
    for _ in range(2):
        assert told(customer, body, signature(body, SECRET)) == 200
    booked = customer.write(balances)
    assert (booked["cash:stripe"], booked.get("refunds_payable", 0)) == (1_387 + owed, -owed)
    assert booked["receivable"] == 0 and tier(customer) == "pro"
    customer.audited()


def test_of_an_invoice_that_was_taken_back_what_came_is_owed_back_and_no_more(
    customer: MeteredHarness,
) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    for left in ({"amount_cents": 5_000}, {}):
        customer.operate(
            "billing.credit_note", invoice=invoice["number"], reason="a mistake", **left
        )
    body = report("invoice.paid", EMAIL, invoice["id"], amount_paid=1_387)
    assert told(customer, body, signature(body, SECRET)) == 200
    booked = customer.write(balances)
    assert (booked["cash:stripe"], booked["refunds_payable"]) == (1_387, -1_387)
    customer.audited()


def test_the_operators_word_ends_the_wait_for_an_upgrade(customer: MeteredHarness) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    said = customer.operate("billing.set_tier", tier="scale")
    assert (said["tier"]["name"], said["pending_change"]) == ("scale", None)
    body = report("invoice.paid", EMAIL, invoice["id"], amount_paid=6_387)
    assert told(customer, body, signature(body, SECRET)) == 200
    assert tier(customer) == "scale"
    assert customer.write(balances)["refunds_payable"] == -6_387
    customer.audited()


def test_a_downgrade_ends_the_wait_for_an_upgrade(customer: MeteredHarness) -> None:
    customer.operate("billing.set_tier", tier="pro")
    invoice = customer("billing.upgrade", {"tier": "scale"}).body["invoice"]
    shown = customer("billing.downgrade", {"tier": "free"}).body
    assert shown["pending_change"]["tier"] == "free"
    assert customer("billing.invoices.get", id=invoice["id"]).body["status"] == "void"


def test_an_upgrade_whose_invoice_is_taken_back_waits_no_more(customer: MeteredHarness) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    customer.operate("billing.credit_note", invoice=invoice["number"], reason="a mistake")
    assert customer("billing.subscription").body["pending_change"] is None
    customer.audited()


def test_stripe_is_asked_for_no_more_than_is_left(
    customer: MeteredHarness, stripe: StripeEndpoint
) -> None:
    stripe.failures = 1_000
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    taken = {"invoice": invoice["number"], "amount_cents": 5_000, "reason": "a mistake"}
    customer.operate("billing.credit_note", **taken)
    demand = customer.write(lambda ctx: load_demand(ctx, {"ordinal": find(ctx, invoice["id"])}))
    assert [cents for _, cents in demand.lines] == [6_387, -5_000]


def test_stripe_is_told_what_is_taken_back_of_what_it_collects(
    customer: MeteredHarness, stripe: StripeEndpoint
) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    customer.harness.settle()
    for cents in (1_000, 387):
        taken = {"invoice": invoice["number"], "amount_cents": cents, "reason": "a mistake"}
        customer.operate("billing.credit_note", **taken)
        customer.harness.settle()
    told_less = [sent for sent in stripe.sent if sent.path == "/v1/credit_notes"]
    assert [(sent.fields["invoice"], sent.fields["amount"]) for sent in told_less] == [
        ("in_2", "1000"),
        ("in_2", "387"),
    ]
    assert len({sent.key for sent in told_less}) == 2
    customer.operate("billing.credit_note", invoice=invoice["number"], reason="the rest")
    customer.harness.settle()
    assert stripe.sent[-1].path == "/v1/invoices/in_2/void"


@pytest.mark.parametrize(("taken", "told_by"), [(5_000, CREDIT_JOB), (None, VOID_JOB)])
def test_what_is_taken_back_while_stripe_is_asked_is_told_after(
    customer: MeteredHarness, taken: int | None, told_by: str
) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    ordinal = customer.write(lambda ctx: find(ctx, invoice["id"]))
    made = Collected("cus_1", "in_9", None, credited_cents=0)

    def asked_meanwhile(ctx: WriteContext) -> list[str]:
        credit(ctx, ordinal, taken, "a mistake")
        ctx.prepared = made
        collected(ctx, {"ordinal": ordinal})
        names = [row.name for _, row in ctx[jobs.JOBS].scan()]
        return [name for name in names if name in (CREDIT_JOB, VOID_JOB)]

    assert customer.write(asked_meanwhile) == [told_by]


def test_stripe_is_told_of_no_credit_note_once_all_is_paid(customer: MeteredHarness) -> None:
    """It would be one on what was paid, and give it back itself."""
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    customer.harness.settle()
    taken = {"invoice": invoice["number"], "amount_cents": 1_000, "reason": "a mistake"}
    customer.operate("billing.credit_note", **taken)

    def reduction() -> AtStripe | None:
        payload = {"ordinal": customer.write(lambda ctx: find(ctx, invoice["id"]))}
        return customer.write(lambda ctx: load_reduction(ctx, payload))

    assert reduction() is not None
    customer.operate("billing.mark_paid", invoice=invoice["number"])
    assert reduction() is None


def test_an_upgrade_that_waits_is_never_overdue(tmp_path: Path, stripe: StripeEndpoint) -> None:
    given = {"provider": "stripe", "stripe_api_key": "sk", "stripe_api_base": stripe.url}
    settings = {f"billing__{name}": value for name, value in given.items()}
    with metered(
        tmp_path, billing__default_tier="free", billing__grace_days=0, **settings
    ) as account:
        account("billing.upgrade", {"tier": "pro"})
        account.operate("billing.close")
        assert account("billing.subscription").body["status"] == "active"


def test_a_report_without_stripes_signature_changes_nothing(customer: MeteredHarness) -> None:
    invoice = customer("billing.upgrade", {"tier": "pro"}).body["invoice"]
    body = report("invoice.paid", EMAIL, invoice["id"])
    fitting = signature(body, SECRET)
    for header in (
        "",
        "nonsense",
        signature(body, "whsec_of_another"),
        signature(body, SECRET, at=1_000_000),
        fitting + "0",
    ):
        assert told(customer, body, header) == 400, header
    assert told(customer, body.replace(b"in_1", b"in_2"), fitting) == 400
    for nothing in (b"\xff", b"[]", b'{"type": 1, "data": {"object": {}}}'):
        with pytest.raises(BadRequest):
            email_of(Signed(nothing, signature(nothing, SECRET)))
    assert customer("billing.invoices.get", id=invoice["id"]).body["status"] == "open"


def test_without_stripe_there_is_nothing_to_report_to(tmp_path: Path) -> None:
    body = report("invoice.paid", EMAIL, "inv_1")
    with metered(tmp_path) as account:
        assert told(account, body, signature(body, SECRET)) == 404
