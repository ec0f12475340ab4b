"""What happens to a page whose session ends, is replaced, or is too old for what is asked: what was
typed stays, and nobody sees another account's data under their own name.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator

import httpx
import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from selenium import webdriver

from tests.browser.person import NARROW, WIDE, Person
from tests.support.served import PASSWORD, Served, served


@pytest.fixture
def api(ada: Person, service: Served) -> httpx.Client:
    """The API as the account of `ada`, in her session."""
    ada.open("/memories")
    return httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )


def sign_in_in_another_tab(person: Person, email: str) -> None:
    """The browser's cookie is another one from now on; the page is told nothing."""
    credentials = {"email": email, "password": PASSWORD}
    assert person.fetch("POST", "/dashboard/session", credentials) == 200


def another(service: Served, email: str) -> httpx.Client:
    """An account of somebody else, with a memory."""
    session = {"Authorization": f"Bearer {service.register(email)}"}
    api = httpx.Client(base_url=service.url, headers=session, timeout=60)
    api.post("/v1/memories", json={"content": "Bob has a secret."}).raise_for_status()
    return api


# --- another account ------------------------------------------------------------------------------


def test_no_page_shows_another_account_s_data_under_its_own_name(
    ada: Person, api: httpx.Client, service: Served
) -> None:
    bob = another(service, "bob-of-tabs@example.com")
    sign_in_in_another_tab(ada, "bob-of-tabs@example.com")
    ada.press("Collections")
    ada.see("Somebody else is signed in now", "bob-of-tabs@example.com", ada.email)
    assert "Bob has a secret." not in ada.browser.page_source
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.look_through(WIDE, "light")
    ada.press("Stay here")
    ada.see("bob-of-tabs@example.com is signed in in this browser now.")
    ada.press("Memories")
    ada.press("Go on as bob-of-tabs@example.com")
    ada.see("Hello, Ada Lovelace.")  # as everybody is called who registers here
    assert (
        ada.browser.execute_script("return document.querySelector('.email').textContent")
        == "bob-of-tabs@example.com"
    )
    ada.open("/memories")
    ada.see("Bob has a secret.")
    assert bob.get("/v1/memories").json()["total_count"] == 1
    assert [said for said in ada.complaints() if "403" not in said] == []


def test_what_was_typed_for_one_account_is_not_stored_in_another(
    ada: Person, api: httpx.Client, service: Served
) -> None:
    bob = another(service, "bob-of-forms@example.com")
    ada.press("New memory")
    ada.fill("Content", "This belongs to Ada.")
    sign_in_in_another_tab(ada, "bob-of-forms@example.com")
    ada.press("Store")
    ada.see("Somebody else is signed in now")
    ada.press("Stay here")
    assert ada.named("Content", "textarea").get_attribute("value") == "This belongs to Ada."
    sign_in_in_another_tab(ada, ada.email)
    ada.press("Store")
    ada.see("Stored.")
    assert bob.get("/v1/memories").json()["total_count"] == 1
    assert [said for said in ada.complaints() if "403" not in said] == []


def test_the_same_account_in_another_session_goes_on_unasked(
    ada: Person, api: httpx.Client
) -> None:
    sign_in_in_another_tab(ada, ada.email)
    ada.press("Collections")
    ada.see("1 collection")
    # The session before may have been over by then, or another one's value was sent.
    refused = ("(Unauthorized)", "(Forbidden)")
    assert [said for said in ada.complaints() if not said.endswith(refused)] == []


def test_a_download_is_of_the_account_that_the_page_shows(
    ada: Person, api: httpx.Client, service: Served
) -> None:
    service.register("bob-of-exports@example.com")
    ada.go("/settings")
    sign_in_in_another_tab(ada, "bob-of-exports@example.com")
    ada.press("Download the export")
    ada.see("Somebody else is signed in now")
    assert [said for said in ada.complaints() if "403" not in said] == []


# --- a session that ends --------------------------------------------------------------------------


def test_what_was_typed_outlives_the_session(ada: Person, api: httpx.Client) -> None:
    ada.go("/collections")
    ada.go("/memories")
    ada.press("New memory")
    ada.fill("Content", "It took an hour to write this.")
    api.post("/v1/auth/logout").raise_for_status()
    ada.press("Store")
    ada.see("Your session is over.")
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.browser.back()
    ada.see("Your session is over.")
    assert ada.path == "/memories"
    ada.fill("Password", "not the password")
    ada.press("Sign in")
    ada.see("The e-mail address or the password is wrong.")
    ada.fill("Password", PASSWORD)
    ada.press("Sign in")
    ada.see("Stored.", "It took an hour to write this.")
    assert [said for said in ada.complaints() if "401" not in said] == []


def test_signing_in_in_another_tab_goes_on_as_well(ada: Person, api: httpx.Client) -> None:
    ada.press("New memory")
    ada.fill("Content", "It took an hour to write this.")
    api.post("/v1/auth/logout").raise_for_status()
    ada.press("Store")
    ada.see("Your session is over.")
    sign_in_in_another_tab(ada, ada.email)
    ada.browser.execute_script("dispatchEvent(new Event('focus'))")
    ada.see("Stored.", "It took an hour to write this.")
    assert [said for said in ada.complaints() if "401" not in said] == []


def test_whoever_does_not_sign_in_again_leaves(ada: Person, api: httpx.Client) -> None:
    api.post("/v1/auth/logout").raise_for_status()
    ada.press("Collections")
    ada.press("Leave")
    ada.see("Sign in to Mneme", "Forgot your password?")
    assert ada.path == "/sign-in?next=%2Fcollections"
    assert [said for said in ada.complaints() if "401" not in said] == []


# --- what is shown once ---------------------------------------------------------------------------


def test_what_is_shown_once_is_not_taken_away_unasked(ada: Person, api: httpx.Client) -> None:
    ada.press("API keys")
    ada.press("New key")
    ada.fill("Name", "production")
    ada.press("Create key")
    ada.see("Your new API key")
    key = ada.all("dialog .secret code")[0].text
    ada.browser.back()
    ada.see("Close this?", "It is shown this once.")
    assert (ada.path, ada.hindering) == ("/keys", [])
    ada.press("Cancel")
    ada.see(key)
    ada.press("Close")
    ada.see("Close this?")
    ada.press("Close it")
    ada.see("1 API key")
    ada.browser.back()
    ada.see("Browse what is stored")


# --- a login that is too old ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that wants a login of the last seconds for keys and erasure."""
    settings = {"auth__fresh_login_seconds": 3}
    with served(tmp_path_factory.mktemp("strict") / "data", "local", **settings) as service:
        yield service


def test_a_stale_login_is_renewed_where_it_is_needed(
    browser: webdriver.Chrome, strict: Served
) -> None:
    grace = Person(browser, strict.url)
    grace.sign_up("grace@example.com")
    grace.open("/keys")
    grace.press("New key")
    grace.fill("Name", "production")
    grace.until(lambda: stale(strict, grace), lambda: "the login is fresh for ever")
    grace.press("Create key")
    grace.see("Is it you?", "Give your password once more")
    grace.press("Cancel")
    grace.see("What it is for.")
    grace.press("Create key")
    grace.fill("Password", PASSWORD)
    grace.press("Go on")
    grace.see("Your new API key")
    grace.press("I have copied it")
    grace.see("production")
    assert all("403" in said for said in grace.leave())


def test_a_stale_login_asks_for_the_second_factor_too(
    browser: webdriver.Chrome, strict: Served
) -> None:
    grace = Person(browser, strict.url)
    grace.sign_up("grace-of-two@example.com")
    me = httpx.Client(
        base_url=strict.url, headers={"Authorization": f"Bearer {grace.token}"}, timeout=60
    )
    secret = me.post("/v1/auth/totp").raise_for_status().json()["secret"]
    recovery = confirmed(me, secret)
    grace.open("/settings")
    grace.until(lambda: stale(strict, grace), lambda: "the login is fresh for ever")
    grace.press("Erase the account")
    grace.fill("Type", grace.email)
    grace.press("Erase everything")
    grace.fill("Password", PASSWORD)
    grace.press("Go on")
    grace.fill("Code", recovery[0])
    grace.press("Go on")
    grace.see("The account is erased", "This receipt proves it")
    grace.press("Done")
    grace.see("Sign in to Mneme")
    assert all("403" in said or "401" in said for said in grace.leave())


def confirmed(me: httpx.Client, secret: str) -> list[str]:
    """The recovery codes of a second factor that is on now."""
    totp = TOTP(base64.b32decode(secret), 6, SHA1(), 30)
    code = totp.generate(int(time.time())).decode()
    return me.post("/v1/auth/totp/confirm", json={"code": code}).json()["recovery_codes"]


def stale(service: Served, person: Person) -> bool:
    """Whether the session is too old to mint keys."""
    answer = httpx.post(
        f"{service.url}/v1/auth/api-keys",
        json={"name": "probe", "scopes": ["read"]},
        headers={"Authorization": f"Bearer {person.token}"},
        timeout=60,
    )
    return "needs a login" in answer.text
