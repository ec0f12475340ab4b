"""One service and one browser for all tests of this folder; every test has an account of its own,
and a console without complaints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.browser.person import WIDE, Person, chrome
from tests.support.mailbox import Mailbox, mailbox
from tests.support.served import Served, served


@pytest.fixture(scope="session")
def box() -> Iterator[Mailbox]:
    """What the service mails."""
    with mailbox() as opened:
        yield opened


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, box: Mailbox) -> Iterator[Served]:
    hooks = {"webhooks__allow_private_networks": True, "webhooks__backoff_seconds_min": 0.05}
    mails = {
        "auth__verify_email": True,
        "mail__link": "https://memory.example.com/dashboard/mailed",
        **box.settings,
    }
    settings = {"billing__default_tier": "pro", "shards__count": 2, **hooks, **mails}
    with served(tmp_path_factory.mktemp("browser") / "data", "local", **settings) as service:
        yield service


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads: Path) -> Iterator[webdriver.Chrome]:
    browser = chrome(downloads)
    try:
        yield browser
    finally:
        browser.quit()


@pytest.fixture
def visitor(browser: webdriver.Chrome, service: Served) -> Iterator[Person]:
    """Somebody who has never been here."""
    person = Person(browser, service.url)
    person.look_through(WIDE, "light")
    yield person
    # The page goes first: what it still asks for would be refused without the cookies, and the next
    # test would be told.
    browser.get("about:blank")
    complaints = person.complaints()
    person.command("Network.clearBrowserCookies")
    person.command("Storage.clearDataForOrigin", origin=service.url, storageTypes="all")
    assert complaints == []


@pytest.fixture
def ada(visitor: Person, request: pytest.FixtureRequest) -> Person:
    """Somebody with an account of their own, signed in."""
    visitor.sign_up(f"{re.sub('[^a-z]+', '-', request.node.name).strip('-')[-60:]}@example.com")
    return visitor
