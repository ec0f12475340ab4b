"""What goes wrong is said in the words of the page: links in place of operations, days and hours in
place of seconds, and each wait once.
"""

from __future__ import annotations

from pathlib import Path

import httpx
from selenium import webdriver

from tests.browser.person import Person
from tests.support.served import Served, served


def test_what_the_api_has_operations_for_the_page_has_links_for(ada: Person) -> None:
    ada.open("/webhooks/bogus")
    ada.see("Not found", "list yours under Webhooks.")
    assert [one.text for one in ada.all("h1")] == ["Webhook"] and "/v1/" not in ada.text
    ada.browser.execute_script("document.querySelector('.failure a').click()")
    ada.see("Signed events, sent to addresses of yours")
    assert ada.path == "/webhooks" and ada.hindering == []
    ada.complaints()


def test_an_address_that_is_none_is_a_page_that_says_so(ada: Person) -> None:
    ada.open("/memories/%zz")
    ada.see("There is nothing here")
    for view in ("memories", "documents", "webhooks"):
        ada.open(f"/{view}/a.b")
        ada.see("Not found")
        assert len(ada.all("h1")) == 1
    assert all("404" in said for said in ada.complaints())


def test_a_used_ticket_leads_to_where_another_comes_from(visitor: Person, service: Served) -> None:
    email = "dora@example.com"
    service.register(email)
    visitor.open("/sign-in?new")
    visitor.fill("Name", "Dora")
    visitor.fill("E-mail address", email)
    visitor.fill("Password", "four bronze lanterns hum")
    visitor.press("Sign up")
    visitor.see("An account with this e-mail address exists.")
    assert "/v1/" not in visitor.text
    used = "mem_tk_" + "0b5f" + "3fa0c81d52e79b46" * 4
    visitor.open(f"/mailed#purpose=verify&ticket={used}")
    visitor.press("Confirm")
    visitor.see("Ask for another under Settings.")
    assert "/v1/" not in visitor.text
    visitor.press("Settings")
    visitor.see("Sign in to Mneme")
    assert all("409" in said or "403" in said for said in visitor.complaints())


def test_whoever_is_signed_in_gets_to_the_link_for_a_new_password_too(ada: Person) -> None:
    ada.open("/sign-in?forgotten")
    ada.see("A new password", "Send me a link")
    assert (ada.overflowing, ada.hindering) == ([], [])


def test_used_up_credits_say_once_and_in_days_when_there_are_more(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    with served(tmp_path / "data", "local", limits__credits_per_month=1) as service:
        person = Person(browser, service.url)
        person.sign_up("ada@example.com")
        session = {"Authorization": f"Bearer {person.token}"}
        sent = {"headers": session, "json": {"content": "One."}, "timeout": 60}
        httpx.post(f"{service.url}/v1/memories", **sent).raise_for_status()
        person.open("/memories?q=one")
        person.see("The next month begins in ", "Tiers with more: Billing.")
        said = person.text.partition("The next month begins in ")[2].partition("\n")[0]
        assert "day" in said or "hour" in said or "minute" in said or "second" in said
        assert "Wait" not in said and " s." not in said
        assert all("429" in one for one in person.leave())


def test_too_many_requests_say_the_wait_once(browser: webdriver.Chrome, tmp_path: Path) -> None:
    with served(tmp_path / "data", "local", limits__requests_per_minute=30) as service:
        person = Person(browser, service.url)
        person.sign_up("ada@example.com")
        person.open("/settings")
        listed = "/dashboard/api/v1/collections"
        person.until(lambda: person.fetch("GET", listed) == 429, lambda: "nothing is refused")
        person.go("/collections")
        person.until(lambda: "a minute is reached" in person.text, lambda: person.text)
        said = person.text.partition("a minute is reached. ")[2].partition("\n")[0]
        assert said.startswith("Retry in ") and "Wait" not in said, said
        assert all("429" in one for one in person.leave())


def test_the_spans_of_usage_are_read_as_they_are_meant(ada: Person) -> None:
    ada.open("/usage")
    spans = ada.named("Span of time", "select").text.split("\n")
    assert [one.strip() for one in spans] == ["Last 30 days", "Last 90 days", "Last 365 days"]
