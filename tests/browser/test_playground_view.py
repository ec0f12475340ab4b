"""The playground: one question put to search, reason and chat, without a language model and with
one.
"""

from __future__ import annotations

from pathlib import Path

from selenium import webdriver

from tests.browser.person import NARROW, WIDE, Person
from tests.support.in_process import PASSWORD
from tests.support.over_http import over_http
from tests.support.upstream import says, upstream

FACT = "Ada keeps the spare key <b>under</b> the blue flowerpot."
SAID = "<img src=x onerror=window.harmed=1> It is under the flowerpot."


def test_without_a_model_search_and_reason_answer_and_chat_says_why_not(ada: Person) -> None:
    ada.open("/playground")
    new = {"content": FACT, "wait_for_index": True}
    assert ada.fetch_as_page("POST", "/v1/memories", new) == 201
    ada.press("Ask")
    assert ada.all("input[name=query][aria-invalid]")
    ada.fill("Question", "Where does Ada keep the spare key?")
    ada.press("Ask")
    ada.see("No language model is configured", "1 of 1", "quotes, no model", "It rests on")
    ada.see(FACT, "was quoted as it stands", "about 14")
    assert [mark.text for mark in ada.all("blockquote mark")] == [FACT]
    ada.press("Why it stands here")
    ada.see("nearness in meaning")
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])


def test_with_a_model_chat_says_what_it_was_given_and_what_it_took(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    with upstream() as model:
        model.will(says(SAID))
        with over_http(tmp_path, llm__base_url=model.url, llm__model="tiny-1") as service:
            me = service.register("ada@example.com")
            service.remember(me, FACT)
            person = Person(browser, service.url)
            person.look_through(WIDE, "light")
            person.open("/sign-in")
            person.fill("E-mail address", "ada@example.com")
            person.fill("Password", PASSWORD)
            person.press("Sign in")
            person.press("Playground")
            person.fill("Question", "Where does Ada keep the spare key?")
            person.press("Ask")
            person.see(
                SAID, "tiny-1", "What memory put in", "18", "degraded: language_model_failed"
            )
            assert [quote.text for quote in person.all("blockquote")] == [FACT, FACT]
            harmed = (
                "return [window.harmed ?? null, document.querySelectorAll('img[src=x]').length]"
            )
            assert person.browser.execute_script(harmed) == [None, 0]
            assert person.leave() == []
            person.command("Network.clearBrowserCookies")
