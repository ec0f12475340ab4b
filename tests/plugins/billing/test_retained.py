"""Bills outlive the account that they were made out to, without the person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.billing import limits
from plugins.billing import retained as retaining
from tests.support.metered import EMAIL, MeteredHarness, metered

WHO, SECRET = "Ada Lovelace", "a transfer of Mrs Lovelace"


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[MeteredHarness]:
    """On the 12th of May, with a paid upgrade of which a part was taken back."""
    with metered(tmp_path, billing__default_tier="free") as account:
        number = account("billing.upgrade", {"tier": "pro"}).body["invoice"]["number"]
        account.operate("billing.mark_paid", invoice=number, reference=SECRET)
        account.operate("billing.credit_note", invoice=number, amount_cents=100, reason=SECRET)
        yield account


def erase(account: MeteredHarness) -> list[dict[str, Any]]:
    """-> the receipts."""
    answer = account("account.erase", query={"confirm": "erase-account"})
    assert answer.status == 200, answer
    account.harness.settle()
    asked = {"receipt": answer.body["receipt"]}
    told = account.harness("account.erasure", asked).body
    assert told["status"] == "completed"
    return told["receipts"]


def retained(account: MeteredHarness) -> list[dict[str, Any]]:
    """All records, page by page."""
    records, page = [], {"next": None}
    while True:
        after = {} if page["next"] is None else {"after": page["next"]}
        page = account.harness(
            "internal.billing.retained", {"slot": 0, **after}, who=account.operator
        ).body
        records += page["records"]
        if page["next"] is None:
            return records


def test_numbers_stay_and_the_person_goes(ada: MeteredHarness) -> None:
    before = ada("billing.invoices.list").body["items"][::-1]
    assert retained(ada) == [], "of an account that is there nothing is kept beside it"
    receipts = erase(ada)
    records = retained(ada)
    documents = [one for one in records if one["record"] == "document"]
    same = ("id", "number", "kind", "status", "currency", "total_cents", "credited_cents")
    times = ("period_start", "period_end", "issued_at", "paid_at", "credited_invoice_id")
    for kept, shown in zip(documents, before, strict=True):
        assert {name: kept[name] for name in same + times} == {
            name: shown[name] for name in same + times
        }
        assert [line["amount_cents"] for line in kept["lines"]] == [
            line["amount_cents"] for line in shown["lines"]
        ]
    text = json.dumps(records)
    for private in (EMAIL, WHO, "Ada", SECRET, "Lovelace"):
        assert private not in text
    (reason,) = [one["reason"] for one in receipts if one["store"] == "financial records"]
    assert "no name" in reason
    assert {one["store"]: one["count"] for one in receipts}["invoices"] == 2


def test_the_ledger_that_stays_balances_and_agrees_with_the_documents(ada: MeteredHarness) -> None:
    erase(ada)
    records = retained(ada)
    postings = [one for one in records if one["record"] == "posting"]
    assert len(postings) == 3 and all(not sum(one["entries"].values()) for one in postings)
    revenue = sum(
        cents
        for one in postings
        for account, cents in one["entries"].items()
        if account.startswith("revenue")
    )
    documents = [one for one in records if one["record"] == "document"]
    assert -revenue == sum(one["total_cents"] for one in documents) > 0
    (account,) = {one["account"] for one in records}
    assert all(account.upper() in one["number"] for one in documents), "one opaque id, in both"


def test_they_come_in_pages(ada: MeteredHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    erase(ada)
    whole = retained(ada)
    assert len(whole) == 5
    for size in (1, 2, 3):
        monkeypatch.setattr(retaining, "RETAINED_PER_PAGE_RECORDS_MAX", size)
        assert retained(ada) == whole
    assert limits.RETAINED_PER_PAGE_RECORDS_MAX >= 100


def test_who_was_never_billed_leaves_nothing(tmp_path: Path) -> None:
    with metered(tmp_path) as account:
        assert "financial records" not in {one["store"] for one in erase(account)}
        assert retained(account) == []
