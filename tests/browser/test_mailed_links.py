"""What is shown to whoever follows the link of a mail: a new password, a confirmed address, and
what to do when the link is good no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_string, policy

import httpx
import pytest
from selenium import webdriver

from tests.browser.person import NARROW, WIDE, Person
from tests.support.mailbox import Mailbox, mailbox
from tests.support.served import PASSWORD, Served, served

NEW = "four bronze lanterns hum"


@pytest.fixture(scope="module")
def box() -> Iterator[Mailbox]:
    with mailbox() as opened:
        yield opened


@pytest.fixture(scope="module")
def mailing(tmp_path_factory: pytest.TempPathFactory, box: Mailbox) -> Iterator[Served]:
    settings = {
        "auth__verify_email": True,
        "mail__link": "https://memory.example.com/dashboard/mailed",
        **box.settings,
    }
    with served(tmp_path_factory.mktemp("mailing") / "data", "local", **settings) as service:
        yield service


@pytest.fixture
def eve(browser: webdriver.Chrome, mailing: Served) -> Iterator[Person]:
    """Somebody who has never been here."""
    person = Person(browser, mailing.url)
    person.look_through(WIDE, "light")
    yield person
    browser.delete_all_cookies()
    person.command("Storage.clearDataForOrigin", origin=mailing.url, storageTypes="all")
    browser.get("about:blank")


def link(person: Person, box: Mailbox, email: str, purpose: str) -> str:
    """Below /dashboard: where the newest mail of this purpose leads."""

    def newest() -> str:
        sent = [read(text) for to, text in box.letters if to == email]
        leading = [text for text in sent if f"purpose={purpose}" in text]
        return leading[-1] if leading else ""

    text = person.until(newest, lambda: f"no mail to {email}: {box.letters}")
    return text.partition("https://memory.example.com/dashboard")[2].split()[0]


def read(letter: str) -> str:
    """A mail's text, as a reader of mails has it."""
    content = message_from_string(letter, policy=policy.default).get_content()
    return str(content)


def login(service: Served, email: str, password: str) -> int:
    sent = {"email": email, "password": password}
    return httpx.post(f"{service.url}/v1/auth/login", json=sent, timeout=60).status_code


def test_a_forgotten_password_is_set_anew_by_the_link_of_a_mail(
    eve: Person, mailing: Served, box: Mailbox
) -> None:
    email = "eve@example.com"
    mailing.register(email)
    eve.open("/sign-in")
    eve.press("Forgot your password?")
    eve.fill("E-mail address", email)
    eve.press("Send me a link")
    eve.see("If the address has an account, a mail is on its way")
    assert eve.complaints() == []

    followed = link(eve, box, email, "reset")
    eve.open(followed)
    eve.see("Choose a new password", "signed out")
    assert "ticket" not in eve.browser.current_url and "mem_tk_" not in eve.browser.page_source
    eve.fill("New password", "short")
    eve.press("Set the password")
    eve.until(lambda: eve.all("[aria-invalid]"), lambda: eve.text)
    eve.fill("New password", NEW)
    eve.press("Set the password")
    eve.see("Your password is changed")
    assert (login(mailing, email, PASSWORD), login(mailing, email, NEW)) == (401, 200)
    eve.press("Go on")
    eve.see("Sign in to Mneme")

    # The link is used up: it says so, and where another comes from.
    eve.open(followed)
    eve.fill("New password", PASSWORD)
    eve.press("Set the password")
    eve.see("Ask for another")
    eve.until(lambda: eve.all(".problem:not([hidden])"), lambda: eve.text)
    assert login(mailing, email, NEW) == 200
    eve.complaints()  # the browser's own remark on the refusal
    eve.press("Ask for another")
    eve.see("Send me a link")


def test_an_address_is_confirmed_by_a_press_and_not_by_opening_the_link(
    eve: Person, mailing: Served, box: Mailbox
) -> None:
    email = "vera@example.com"
    token = mailing.register(email)

    def verified() -> bool:
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{mailing.url}/v1/auth/me", headers=headers, timeout=60)
        return answer.json()["email_verified"]

    eve.look_through(NARROW, "dark")
    eve.open(link(eve, box, email, "verify"))
    eve.see("Confirm your e-mail address")
    assert eve.overflowing == [] and not verified()
    eve.press("Confirm")
    eve.see("Your address is confirmed", email)
    assert verified() and eve.complaints() == []


def test_an_invitation_makes_an_account(eve: Person, mailing: Served) -> None:
    token = (mailing.data_dir / "secrets/operator_token").read_text().strip()
    made = httpx.post(
        f"{mailing.url}/v1/auth/invitations",
        json={},
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )
    eve.open(f"/mailed#purpose=invitation&ticket={made.json()['invitation']}")
    eve.see("You are invited.")
    eve.fill("Name", "Ivy Invited")
    eve.fill("E-mail address", "ivy@example.com")
    eve.fill("Password", PASSWORD)
    eve.press("Sign up")
    eve.see("Hello, Ivy Invited.")
    assert eve.path == "/" and eve.complaints() == []


def test_half_a_link_says_what_to_do(eve: Person) -> None:
    for half in ("/mailed", "/mailed#purpose=reset", "/mailed#purpose=toString&ticket=x"):
        eve.browser.get("about:blank")
        eve.open(half)
        eve.see("This link is not whole", "Ask for a new password")
    assert eve.complaints() == []
