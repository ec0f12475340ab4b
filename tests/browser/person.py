"""Somebody in front of the dashboard: reads what is shown, fills what has a label, presses what has
a name, and waits as people do.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import axe_core_python
from selenium import webdriver
from selenium.common.exceptions import (
    ElementNotInteractableException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.support.served import PASSWORD

WAIT_SECONDS_MAX = 60
POLL_SECONDS = 0.03
WIDE, NARROW = (1280, 860), (390, 844)

Value = TypeVar("Value")

# What is on the page or, while a dialog is open, in the dialog; by the name that assistive
# technology would read out.
_NAMED = """
const [wanted, selector] = arguments;
const visible = (e) => e.labels && e.labels.length ? e.labels[0].innerText : e.innerText;
const name = (e) => (e.getAttribute("aria-label") || visible(e) || "").trim();
const scope = [...document.querySelectorAll("dialog[open]")].at(-1) || document;
const all = [...scope.querySelectorAll(selector)].filter((e) => e.checkVisibility());
return all.find((e) => name(e) === wanted) || all.find((e) => name(e).startsWith(wanted)) || null;
"""
_PRESSED = "button, a[href], summary, [role=tab], input[type=checkbox], input[type=radio]"
_FILLED = "input, textarea, select"
_OVERFLOWING = """
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= width) return [];
const outside = (e) => e.getBoundingClientRect().right > width + 1;
const everything = [...document.querySelectorAll("body *")];
return everything.filter(outside).map((e) => e.outerHTML.slice(0, 120));
"""
_AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text()
_AXE_FINDINGS = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => done(violations.flatMap(
    ({id, nodes}) => nodes.map(({html}) => `${id}: ${html.slice(0, 200)}`))),
    (failed) => done([String(failed)]));
"""


def chrome(downloads: Path) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
        or ""
    )
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--lang=en-GB",
    ):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    browser.set_script_timeout(WAIT_SECONDS_MAX)
    return browser


class Person:
    def __init__(self, browser: webdriver.Chrome, url: str):
        self.browser, self.url = browser, url
        self.email = ""

    # --- where one is -----------------------------------------------------------------------------

    def open(self, path: str = "") -> None:
        """Load a view from nothing, by its address below /dashboard."""
        self.browser.get(f"{self.url}/dashboard{path}")
        self.wait_for_calm()

    def go(self, path: str) -> None:
        """To another view of a page that is there, as its links lead; nothing is loaded twice."""
        self.browser.execute_script(
            "history.pushState(null, '', arguments[0]);"
            "dispatchEvent(new PopStateEvent('popstate'))",
            f"/dashboard{path}",
        )
        self.wait_for_calm()

    def leave(self) -> list[str]:
        """To nowhere, so that no page asks a service that ends; -> what the console has said."""
        self.wait_for_calm()
        complaints = self.complaints()
        self.browser.get("about:blank")
        self.complaints()
        return complaints

    @property
    def path(self) -> str:
        address = urlsplit(self.browser.current_url)
        return address.path.removeprefix("/dashboard") + (
            f"?{address.query}" if address.query else ""
        )

    def sign_up(self, email: str) -> None:
        """An account of one's own, without going through the form."""
        self.email = email
        self.open("/sign-in")
        body = {"email": email, "password": PASSWORD, "full_name": "Ada Lovelace"}
        status = self.fetch("POST", "/dashboard/session", body)
        assert status == 201, status

    def fetch(self, method: str, path: str, body: Any = None) -> int:
        """What a script of the page would send; -> the status."""
        return self.browser.execute_async_script(
            """const [method, path, body, done] = arguments;
            const headers = {"Content-Type": "application/json"};
            fetch(path, {method, headers, body: body && JSON.stringify(body)})
                .then((answer) => done(answer.status));""",
            method,
            path,
            body,
        )

    def fetch_as_page(self, method: str, path: str, body: Any) -> int:
        """A call of the API with the session's anti-forgery value; -> the status."""
        return self.browser.execute_async_script(
            """const [method, path, body, done] = arguments;
            (async () => {
            const {csrf} = await (await fetch("/dashboard/session")).json();
            const headers = {"Content-Type": "application/json", "X-Mneme-CSRF": csrf};
            const sent = {method, headers, body: JSON.stringify(body)};
            done((await fetch("/dashboard/api" + path, sent)).status);
            })();""",
            method,
            path,
            body,
        )

    @property
    def token(self) -> str:
        """The session's access token, which only the browser itself can see."""
        return self.browser.get_cookie("mneme_session")["value"]

    # --- seeing -----------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """What can be read: the dialog's text while one is open, notices, and the page's."""
        return self.browser.execute_script(
            "const open = [...document.querySelectorAll('dialog[open]')].at(-1);"
            "return (open || document.body).innerText + '\\n' + "
            "document.getElementById('toasts').innerText"
        )

    def see(self, *texts: str) -> None:
        """Wait until all of these can be read."""
        for text in texts:
            self.until(
                lambda text=text: text in self.text,
                lambda text=text: f"{text!r} is not on the page:\n{self.text}",
            )

    def miss(self, text: str) -> None:
        """Wait until this cannot be read any more."""
        self.until(lambda: text not in self.text, lambda: f"{text!r} is on the page:\n{self.text}")

    def named(self, name: str, selector: str = _PRESSED) -> WebElement:
        """The control of this name, once there is one."""
        return self.until(
            lambda: self.browser.execute_script(_NAMED, name, selector),
            lambda: f"nothing is called {name!r}:\n{self.text}",
        )

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait_for_calm(self) -> None:
        """Until nothing is being loaded."""
        busy = (
            "return document.readyState !== 'complete' || !document.querySelector('h1')"
            " || document.querySelector('.spinner, [aria-busy]') !== null"
        )
        self.until(
            lambda: not self.browser.execute_script(busy), lambda: f"still loading:\n{self.text}"
        )

    def until(self, done: Callable[[], Value], complaint: Callable[[], str]) -> Value:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            try:
                if value := done():
                    return value
            except (StaleElementReferenceException, ElementNotInteractableException):
                pass
            if time.monotonic() > deadline:
                raise AssertionError(complaint())
            time.sleep(POLL_SECONDS)

    # --- doing ------------------------------------------------------------------------------------

    def press(self, name: str) -> None:
        """A button, link, tab or box, by its name, once it is there and lets itself be pressed."""

        def pressed() -> bool:
            control = self.browser.execute_script(_NAMED, name, _PRESSED)
            if control is None or not control.is_enabled():
                return False
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", control)
            control.click()
            return True

        self.until(pressed, lambda: f"{name!r} cannot be pressed:\n{self.text}")

    def fill(self, label: str, value: str) -> None:
        """A field, by its label."""
        field = self.named(label, _FILLED)
        if field.tag_name == "select":
            self.browser.execute_script(
                "const [e, text] = arguments; e.value = [...e.options].find((o) => o.text === "
                "text).value;"
                "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new "
                "Event('change', {bubbles: true}))",
                field,
                value,
            )
            return
        if field.get_attribute("type") != "file":
            field.clear()
        field.send_keys(value)

    # --- circumstances ----------------------------------------------------------------------------

    def command(self, name: str, **parameters: Any) -> None:
        self.browser.execute_cdp_cmd(name, parameters)

    def look_through(self, size: tuple[int, int], theme: str) -> None:
        """Another window, and another taste."""
        width, height = size
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": theme}],
        )

    @property
    def overflowing(self) -> list[str]:
        """What sticks out on the right."""
        return self.browser.execute_script(_OVERFLOWING)

    @property
    def hindering(self) -> list[str]:
        """What assistive technology would stumble over, as axe-core finds it: rule and element."""
        if not self.browser.execute_script("return typeof axe === 'object'"):
            self.command("Runtime.evaluate", expression=_AXE)
        return self.browser.execute_async_script(_AXE_FINDINGS)

    @contextmanager
    def without(self, pattern: str) -> Iterator[None]:
        """While these addresses cannot be reached; the browser's complaints about that are not held
        against the page.
        """
        self.command("Network.enable")
        self.command("Network.setBlockedURLs", urls=[pattern])
        try:
            yield
        finally:
            self.command("Network.setBlockedURLs", urls=[])
            self.complaints()

    def complaints(self) -> list[str]:
        """What the browser's console has said since it was asked last: errors and warnings."""
        return [
            entry["message"]
            for entry in self.browser.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]
