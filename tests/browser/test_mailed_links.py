"""What is shown to whoever follows the link of a mail: a new password, a confirmed address, and
what to do when the link is good no more.
"""

from __future__ import annotations

import httpx

from tests.browser.mails import link
from tests.browser.person import NARROW, Person
from tests.support.mailbox import Mailbox
from tests.support.served import PASSWORD, Served

NEW = "four bronze lanterns hum"


def login(service: Served, email: str, password: str) -> int:
    sent = {"email": email, "password": password}
    return httpx.post(f"{service.url}/v1/auth/login", json=sent, timeout=60).status_code


def test_a_forgotten_password_is_set_anew_by_the_link_of_a_mail(
    visitor: Person, service: Served, box: Mailbox
) -> None:
    email = "eve@example.com"
    service.register(email)
    visitor.open("/sign-in")
    visitor.press("Forgot your password?")
    visitor.fill("E-mail address", email)
    visitor.press("Send me a link")
    visitor.see("If the address has an account, a mail is on its way")
    assert visitor.complaints() == []

    followed = link(visitor, box, email, "reset")
    visitor.open(followed)
    visitor.see("Choose a new password", "signed out")
    assert (
        "ticket" not in visitor.browser.current_url and "mem_tk_" not in visitor.browser.page_source
    )
    visitor.fill("New password", "short")
    visitor.press("Set the password")
    visitor.until(lambda: visitor.all("[aria-invalid]"), lambda: visitor.text)
    visitor.fill("New password", NEW)
    visitor.press("Set the password")
    visitor.see("Your password is changed")
    assert (login(service, email, PASSWORD), login(service, email, NEW)) == (401, 200)
    visitor.press("Go on")
    visitor.see("Sign in to Mneme")

    # The link is used up: it says so, and where another comes from.
    visitor.open(followed)
    visitor.fill("New password", PASSWORD)
    visitor.press("Set the password")
    visitor.see("Ask for another")
    visitor.until(lambda: visitor.all(".problem:not([hidden])"), lambda: visitor.text)
    assert login(service, email, NEW) == 200
    visitor.complaints()  # the browser's own remark on the refusal
    visitor.press("Ask for another")
    visitor.see("Send me a link")


def test_an_address_is_confirmed_by_a_press_and_not_by_opening_the_link(
    visitor: Person, service: Served, box: Mailbox
) -> None:
    email = "vera@example.com"
    token = service.register(email)

    def verified() -> bool:
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{service.url}/v1/auth/me", headers=headers, timeout=60)
        return answer.json()["email_verified"]

    visitor.look_through(NARROW, "dark")
    visitor.open(link(visitor, box, email, "verify"))
    visitor.see("Confirm your e-mail address")
    assert visitor.overflowing == [] and not verified()
    visitor.press("Confirm")
    visitor.see("Your address is confirmed", email)
    assert verified() and visitor.complaints() == []


def test_an_invitation_makes_an_account(visitor: Person, service: Served) -> None:
    token = (service.data_dir / "secrets/operator_token").read_text().strip()
    made = httpx.post(
        f"{service.url}/v1/auth/invitations",
        json={},
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )
    visitor.open(f"/mailed#purpose=invitation&ticket={made.json()['invitation']}")
    visitor.see("You are invited.")
    visitor.fill("Name", "Ivy Invited")
    visitor.fill("E-mail address", "ivy@example.com")
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign up")
    visitor.see("Hello, Ivy Invited.")
    assert visitor.path == "/" and visitor.complaints() == []


def test_half_a_link_says_what_to_do(visitor: Person) -> None:
    for half in ("/mailed", "/mailed#purpose=reset", "/mailed#purpose=toString&ticket=x"):
        visitor.browser.get("about:blank")
        visitor.open(half)
        visitor.see("This link is not whole", "Ask for a new password")
    assert visitor.complaints() == []
