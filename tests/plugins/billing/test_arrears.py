"""What follows when an invoice stays open for too long, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.webhooks.store import DELIVERIES
from tests.support.metered import MeteredHarness, metered


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[MeteredHarness]:
    """On the tier free, on the 12th of May; invoices may be open for two weeks."""
    with metered(tmp_path, billing__default_tier="free", billing__grace_days=14) as account:
        yield account


def standing(account: MeteredHarness) -> tuple[str, str | None]:
    """The subscription's status, and the invoice that it is about."""
    shown = account("billing.subscription").body
    suspension = shown["suspension"]
    return shown["status"], None if suspension is None else suspension["invoice_id"]


def written(account: MeteredHarness) -> Any:
    return account("memories.create", {"content": "One more."})


def test_an_overdue_invoice_suspends_what_costs_until_it_is_paid(ada: MeteredHarness) -> None:
    kept = ada("memories.create", {"content": "Kept through it all."}).body["id"]
    invoice = ada("billing.upgrade", {"tier": "pro"}).body["invoice"]
    ada.move_to("2026-05-26T09:59:00Z")
    ada.operate("billing.close")
    assert standing(ada) == ("active", None) and written(ada).status == 201
    ada.move_to("2026-05-26T10:01:00Z")
    ada.operate("billing.close")
    assert standing(ada) == ("suspended", invoice["id"])
    refused = written(ada)
    assert (refused.status, refused.body["code"]) == (403, "permission_denied")
    assert invoice["number"] in refused.body["message"]
    assert ada("auth.me").body["tier"] == "pro", "what the account has it keeps"
    assert ada("memories.get", id=kept).body["content"] == "Kept through it all."
    assert ada("search.search", {"query": "kept"}).status == 200
    assert ada("billing.invoices.get", id=invoice["id"]).status == 200
    assert ada("memories.delete", id=kept).status == 200
    ada.operate("billing.mark_paid", invoice=invoice["number"])
    assert standing(ada) == ("active", None) and written(ada).status == 201
    ada.audited()


def test_the_job_of_an_invoice_looks_at_it_and_webhooks_are_told(tmp_path: Path) -> None:
    given = {"billing__grace_days": 0, "webhooks__allow_private_networks": True}
    with metered(tmp_path, billing__default_tier="free", **given) as ada:
        ada.harness.shard.environment.outbound.allow_private_networks = True
        hook = {
            "url": "http://127.0.0.1:1024/x",
            "events": ["billing.suspended", "billing.resumed"],
        }
        assert ada("webhooks.create", hook).status == 201
        invoice = ada("billing.upgrade", {"tier": "starter"}).body["invoice"]
        ada.harness.until(lambda: standing(ada) == ("suspended", invoice["id"]))
        ada.operate("billing.credit_note", invoice=invoice["id"], reason="goodwill")
        assert standing(ada) == ("active", None) and written(ada).status == 201
        told = ada.write(lambda ctx: [row.kind for _, row in ctx[DELIVERIES].scan()])
        assert told == ["billing.suspended", "billing.resumed"]


def test_invoices_may_stay_open_for_ever(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free", billing__grace_days=None) as ada:
        ada("billing.upgrade", {"tier": "pro"})
        ada.move_to("2027-02-01T00:00:00Z")
        ada.operate("billing.close")
        assert standing(ada) == ("active", None) and written(ada).status == 201
