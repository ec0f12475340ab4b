"""What is used and what it costs: charts, tiers, an upgrade with its invoice, a downgrade that
waits.
"""

from __future__ import annotations

import httpx

from tests.browser.person import NARROW, Person
from tests.support.served import Served


def test_an_upgrade_says_what_it_costs_and_makes_an_invoice(ada: Person, service: Served) -> None:
    api = httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )
    ada.open("/billing")
    ada.see("You have Pro", "$99 / month", "No invoices yet", "By agreement")
    ada.press("Upgrade to Scale")
    ada.see("Upgrade to Scale?", "It takes effect at once.", "an invoice of about $")
    announced = ada.text.partition("an invoice of about ")[2].partition(" is issued")[0]
    ada.press("Upgrade")
    ada.see("You have Scale", "1 invoice", "open")
    (invoice,) = api.get("/v1/billing/invoices").json()["items"]
    assert announced == f"${invoice['total_cents'] / 100:,.2f}" and invoice["total_cents"] > 0
    ada.press(invoice["number"])
    ada.see(
        f"Invoice {invoice['number']}",
        invoice["lines"][0]["description"],
        "Ada Lovelace",
        announced,
    )
    page = ada.all("dialog a[target=_blank]")[0].get_attribute("href")
    ada.press("Close")

    ada.press("Downgrade to Starter")
    ada.see("Downgrade to Starter?", "Scale stays until", "nothing is paid back")
    ada.press("Downgrade")
    ada.see("changes soon", "It becomes Starter on", "From next month on")
    ada.look_through(NARROW, "dark")
    assert ada.overflowing == []
    ada.press("Keep Scale")
    ada.see("You keep Scale")
    assert api.get("/v1/billing/subscription").json()["pending_change"] is None
    ada.browser.get(page)
    assert (
        invoice["number"] in ada.browser.title and "Scale instead of Pro" in ada.browser.page_source
    )


def test_usage_is_drawn_and_shared_out(ada: Person, service: Served) -> None:
    api = httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )
    key = api.post("/v1/auth/api-keys", json={"name": "production <b>"}).json()["key"]
    for number in range(3):
        sent = httpx.post(
            f"{service.url}/v1/memories",
            json={"content": f"Note {number}"},
            headers={"Authorization": f"Bearer {key}"},
        )
        sent.raise_for_status()
    ada.open("/usage")
    ada.see(
        "Credits this month",
        "memories.create",
        "production <b>",
        "this dashboard, and background work",
        "100%",
    )
    drawn = "return document.querySelectorAll('.chart canvas').length"
    for granularity, span in (
        ("by the day", "Last 90 days"),
        ("by the hour", "Last 2 days"),
        ("by the month", "Last 12 months"),
    ):
        ada.fill("Granularity", granularity)
        ada.fill("Span of time", span)
        ada.see("3 credits and ", granularity)
        ada.until(lambda: ada.browser.execute_script(drawn) == 1, lambda: "no chart")
    ada.look_through(NARROW, "dark")
    ada.until(lambda: ada.overflowing == [], lambda: str(ada.overflowing))
