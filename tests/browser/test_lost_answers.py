"""Answers that are lost or late: what was asked is done once, and the page says what happened."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.browser.person import Person
from tests.support.served import Served

# The service is asked, and its next answer to a new memory does not arrive. What the page asks of
# the list of memories is kept.
_LOSING = """
window.asked = [];
let lost = false;
const real = window.fetch;
window.fetch = async (url, options) => {
    const answer = await real(url, options);
    if (!new URL(url, location).pathname.endsWith("/v1/memories")) return answer;
    window.asked.push([options.method, new Headers(options.headers).get("Idempotency-Key")]);
    if (options.method !== "POST" || lost) return answer;
    lost = true;
    throw new TypeError("the answer is lost");
};
"""
# Seconds pass a hundred times as fast for whoever waits.
_HASTY = """
const real = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (ms) => real(ms / 100);
"""


@pytest.fixture
def api(ada: Person, service: Served) -> httpx.Client:
    """The API as the account of `ada`."""
    ada.open("/memories")
    return httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )


def keys(person: Person, method: str) -> list[str | None]:
    """The Idempotency-Keys of the calls by this method, in order."""
    asked = person.browser.execute_script("return window.asked")
    return [key for called, key in asked if called == method]


def test_pressing_again_after_a_lost_answer_stores_once(ada: Person, api: httpx.Client) -> None:
    ada.browser.execute_script(_LOSING)
    ada.press("New memory")
    ada.fill("Content", "The kettle is descaled on Mondays.")
    ada.press("Store")
    ada.see("The service cannot be reached.")
    ada.press("Store")
    ada.see("Stored.")
    assert api.get("/v1/memories").json()["total_count"] == 1
    first, again = keys(ada, "POST")
    assert first == again and first is not None

    # Another form is another key, and so is the same one once it was answered.
    for count in (2, 3):
        ada.open("/memories")
        ada.browser.execute_script(_LOSING.replace("lost = false", "lost = true"))
        ada.press("New memory")
        ada.fill("Content", "The kettle is descaled on Mondays.")
        ada.press("Store")
        ada.see("Stored.")
        assert api.get("/v1/memories").json()["total_count"] == count
        (key,) = keys(ada, "POST")
        assert key not in (first, None)
        first = key
    ada.press("Memories")
    ada.see("3 memories")
    assert set(keys(ada, "GET")) == {None}


def test_a_form_that_changed_after_a_lost_answer_is_another(ada: Person, api: httpx.Client) -> None:
    ada.browser.execute_script(_LOSING)
    ada.press("New memory")
    ada.fill("Content", "The kettle is descaled on Mondays.")
    ada.press("Store")
    ada.see("The service cannot be reached.")
    ada.fill("Content", "The kettle is descaled on Tuesdays.")
    ada.press("Store")
    ada.see("Stored.")
    first, again = keys(ada, "POST")
    assert first != again and api.get("/v1/memories").json()["total_count"] == 2


def test_an_upload_has_a_key_that_its_repeat_has_too(
    ada: Person, api: httpx.Client, tmp_path: Path
) -> None:
    sent = """
        const done = arguments[0], real = XMLHttpRequest.prototype.setRequestHeader;
        window.keys = [];
        XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
            if (name === "Idempotency-Key") window.keys.push(value);
            return real.call(this, name, value);
        };
        done();
    """
    handbook = tmp_path / "handbook.md"
    handbook.write_text("# Handbook\n\nEveryone has thirty days of holiday.\n")
    ada.go("/documents")
    ada.browser.execute_async_script(sent)
    with ada.without("*/documents/upload"):
        ada.fill("Files", str(handbook))
        ada.press("Upload")
        ada.see("The service cannot be reached.")
    ada.fill("Files", str(handbook))
    ada.press("Upload")
    ada.see("ready", "1 document")
    first, again = ada.browser.execute_script("return window.keys")
    assert first == again


def test_a_service_that_does_not_answer_is_said_to(ada: Person, api: httpx.Client) -> None:
    ada.browser.execute_script(_HASTY)
    ada.command("Fetch.enable", patterns=[{"urlPattern": "*/dashboard/api/*"}])
    try:
        ada.go("/collections")
        ada.see("That did not work", "The service has not answered for 60 seconds.")
    finally:
        ada.command("Fetch.disable")
    ada.press("Try again")
    ada.see("1 collection")
