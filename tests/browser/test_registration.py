"""Who may sign up is said before a form is filled in: anybody, whoever asks for a mail, whoever was
invited, or nobody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium import webdriver

from tests.browser.mails import link
from tests.browser.person import Person
from tests.support.mailbox import Mailbox
from tests.support.served import PASSWORD, Served, served


def modes(mode: str, box: Mailbox) -> dict[str, Any]:
    page = {"mail__link": "https://memory.example.com/dashboard/mailed"}
    return {"auth__registration": mode, **page, **box.settings}


def fill_in(person: Person, email: str) -> None:
    person.fill("Name", "Ivy Invited")
    person.fill("E-mail address", email)
    person.fill("Password", PASSWORD)


def invitation(service: Served) -> str:
    token = (service.data_dir / "secrets/operator_token").read_text().strip()
    answer = httpx.post(
        f"{service.url}/v1/auth/invitations",
        json={},
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )
    return answer.raise_for_status().json()["invitation"]


@pytest.fixture
def stranger(browser: webdriver.Chrome) -> Person:
    return Person(browser, "")


def test_where_invitations_are_mailed_one_asks_for_one(
    stranger: Person, tmp_path: Path, box: Mailbox
) -> None:
    with served(tmp_path / "data", "local", **modes("mailed", box)) as service:
        stranger.url = service.url
        stranger.open("/sign-in")
        stranger.press("Sign up")
        stranger.see("mailed to the address that is to have one")
        assert stranger.hindering == []
        stranger.fill("E-mail address", "ivy@example.com")
        stranger.press("Send me a link")
        stranger.see("Look into your mailbox")
        stranger.open(link(stranger, box, "ivy@example.com", "invitation"))
        fill_in(stranger, "ivy@example.com")
        stranger.press("Sign up")
        stranger.see("Hello, Ivy Invited.")
        assert stranger.leave() == []


def test_where_one_is_invited_the_form_asks_for_the_invitation(
    stranger: Person, tmp_path: Path, box: Mailbox
) -> None:
    with served(tmp_path / "data", "local", **modes("invite", box)) as service:
        stranger.url = service.url
        stranger.open("/sign-in")
        stranger.press("Sign up")
        stranger.see("takes whom its operator invites", "ask whoever runs it for one")
        assert stranger.hindering == []
        stranger.fill("Invitation", "mem_tk_nonsense")
        fill_in(stranger, "ivy@example.com")
        stranger.press("Sign up")
        stranger.see("An account needs an invitation that is good")
        stranger.complaints()
        stranger.fill("Invitation", invitation(service))
        stranger.press("Sign up")
        stranger.see("Hello, Ivy Invited.")
        assert stranger.leave() == []


def test_where_nobody_may_sign_up_no_form_offers_it(
    stranger: Person, tmp_path: Path, box: Mailbox
) -> None:
    with served(tmp_path / "data", "local", **modes("closed", box)) as service:
        stranger.url = service.url
        for path in ("/sign-in", "/sign-in?new"):
            stranger.open(path)
            stranger.see("Sign in to Mneme", "This service takes no new ones")
            assert "Sign up" not in stranger.text
        assert stranger.hindering == [] and stranger.leave() == []
