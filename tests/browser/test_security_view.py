"""The password, the second factor and the e-mail address of an account, in Settings."""

from __future__ import annotations

import base64
import time

import httpx
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from tests.browser.mails import link
from tests.browser.person import NARROW, Person
from tests.support.mailbox import Mailbox
from tests.support.served import PASSWORD, Served

NEW = "four bronze lanterns hum"


def login(service: Served, email: str, password: str, **further: str) -> int:
    sent = {"email": email, "password": password, **further}
    return httpx.post(f"{service.url}/v1/auth/login", json=sent, timeout=60).status_code


def test_the_password_is_changed(ada: Person, service: Served) -> None:
    ada.open("/sessions")
    ada.press("change the password")
    ada.see("Security")
    assert login(service, ada.email, PASSWORD) == 200
    ada.press("Change the password")
    ada.fill("Password until now", "not the password")
    ada.fill("New password", NEW)
    ada.press("Change it")
    ada.see("The current password is wrong.")
    assert all("403" in said for said in ada.complaints())
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.fill("Password until now", PASSWORD)
    ada.press("Change it")
    ada.see("The password is changed.", "signed out")
    assert (login(service, ada.email, PASSWORD), login(service, ada.email, NEW)) == (401, 200)
    ada.open("/settings")
    ada.see("Security")


def test_a_second_factor_is_set_up_and_turned_off(ada: Person, service: Served) -> None:
    ada.open("/settings")
    ada.see("Second factor", "off")
    ada.press("Set up a second factor")
    ada.see("otpauth://totp/Mneme")
    secret = ada.all("dialog .secret code")[0].text
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.fill("Code", "000000")
    ada.press("Turn it on")
    ada.see("This code is wrong")
    ada.complaints()
    totp = TOTP(base64.b32decode(secret), 6, SHA1(), 30)
    ada.fill("Code", totp.generate(int(time.time())).decode())
    ada.press("Turn it on")
    ada.see("Your recovery codes")
    codes = ada.all("dialog .secret code")[0].text.split()
    assert len(codes) == 10 and (ada.overflowing, ada.hindering) == ([], [])
    ada.press("I have kept them")
    ada.see("Second factor", "on")
    assert codes[0] not in ada.browser.page_source
    assert login(service, ada.email, PASSWORD) == 401
    assert login(service, ada.email, PASSWORD, code=codes[0]) == 200
    ada.press("Turn the second factor off")
    ada.fill("Code", codes[1])
    ada.press("Turn it off")
    ada.see("The second factor is off.", "Set up a second factor")
    assert login(service, ada.email, PASSWORD) == 200


def test_an_address_is_confirmed_or_a_mail_is_asked_for(
    ada: Person, service: Served, box: Mailbox
) -> None:
    ada.open("/settings")
    ada.see("not confirmed")
    ada.press("Send a mail that confirms it")
    ada.see("A mail is on its way.")
    ada.open(link(ada, box, ada.email, "verify"))
    ada.press("Confirm")
    ada.see("Your address is confirmed")
    ada.open("/settings")
    ada.see("E-mail address", "confirmed")
    assert "not confirmed" not in ada.text
