"""A month that is closed twice, because a take-over lost the first time, is billed once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from runtime.api.metering import period_end, period_of
from storage.replication import shipper
from tests.support.cut_off import Link, node, taken_over
from tests.support.in_process import InProcess
from tests.support.metered import metered
from tests.support.stripe_endpoint import StripeEndpoint, stripe_endpoint


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper, "BACKOFF_SECONDS_MAX", 0.1)
    monkeypatch.setattr(Link, "is_cut", False)


def collecting(stripe: StripeEndpoint) -> dict[str, Any]:
    return {
        "billing__default_tier": "free",
        "billing__provider": "stripe",
        "billing__stripe_api_key": "sk_test_1",
        "billing__stripe_signing_secret": "whsec_1",
        "billing__stripe_api_base": stripe.url,
    }


def next_month() -> dict[str, Any]:
    """The clock a day into the next month."""
    now_ms = int(time.time() * 1000)
    return {"clock__offset_seconds": (period_end(period_of(now_ms)) - now_ms) // 1000 + 86_400}


def invoices(service: InProcess, who: str) -> list[dict[str, Any]]:
    """Oldest first."""
    return service.request("GET", "/v1/billing/invoices", who=who).json()["items"][::-1]


def collected(service: InProcess, who: str, count: int) -> list[dict[str, Any]]:
    """Its invoices, once there are so many, and each is at the provider."""

    def done() -> bool:
        found = invoices(service, who)
        return len(found) == count and all(invoice["payment_url"] for invoice in found)

    service.until(done)
    return invoices(service, who)


def test_a_close_that_a_take_over_lost_is_not_billed_twice(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    with stripe_endpoint() as stripe:
        options = collecting(stripe)
        with node(tmp_path / "first", objects, "local", **options) as first:
            who = first.register("ada@example.org")
            assert (
                first.request("POST", "/v1/billing/upgrade", {"tier": "pro"}, who=who).status_code
                == 200
            )
            (upgraded,) = collected(first, who, 1)
            paid(first, upgraded)
        options |= next_month()
        with node(tmp_path / "first", objects, "local", first.secrets, **options) as first:
            Link.is_cut = True
            who = login(first)
            closed = collected(first, who, 2)
            with taken_over(first, objects, tmp_path / "second", **options) as second:
                assert [
                    (invoice["id"], invoice["number"], invoice["total_cents"])
                    for invoice in collected(second, login(second), 2)
                ] == [
                    (invoice["id"], invoice["number"], invoice["total_cents"]) for invoice in closed
                ]
            made = {sent.key for sent in stripe.sent if sent.path == "/v1/invoices"}
            assert made == {invoice["id"] for invoice in closed}


def paid(service: InProcess, invoice: dict[str, Any]) -> None:
    body = {"email": "ada@example.org", "invoice": invoice["id"]}
    path, operator = "/v1/internal/billing/mark-paid", service.secrets.operator_token
    assert service.request("POST", path, body, who=operator).status_code == 200


def login(service: InProcess) -> str:
    body = {"email": "ada@example.org", "password": "correct horse battery staple"}
    return service.request("POST", "/v1/auth/login", body).json()["access_token"]


def test_a_tier_that_is_taken_twice_in_a_month_is_billed_twice(tmp_path: Path) -> None:
    """An operator may take a tier back; whoever pays for it once more has another invoice."""
    with metered(tmp_path, billing__default_tier="free") as ada:
        first = ada("billing.upgrade", {"tier": "pro"}).body["invoice"]
        ada.operate("billing.set_tier", tier="free")
        second = ada("billing.upgrade", {"tier": "pro"}).body["invoice"]
        notes = [
            ada.operate(
                "billing.credit_note", invoice=first["id"], reason="goodwill", amount_cents=1
            )
            for _ in range(2)
        ]
        made = [document["id"] for document in (first, second, *notes)]
        assert len(set(made)) == 4
        assert [ada("billing.invoices.get", id=each).body["id"] for each in made] == made
        ada.audited()
