"""What every view has in common: it fits, it is kept up by the keyboard, it says when something is
missing or goes wrong.
"""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from plugins.dashboard.site import FILES
from tests.browser.person import NARROW, WIDE, Person

INDEX = (FILES / "pages/index.js").read_text()
VIEWS = [
    path for path in re.findall(r'path: "([^"]+)"', INDEX) if ":" not in path and path != "/sign-in"
]
CHECKED = ((WIDE, "light"), (NARROW, "dark"))  # both sizes and both themes by axe-core


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_view_fits_its_window_with_nothing_in_it(
    ada: Person, size: tuple[int, int], theme: str
) -> None:
    ada.look_through(size, theme)
    ada.open()
    for path in VIEWS:
        ada.go(path)
        assert ada.overflowing == [], path
        if (size, theme) in CHECKED:
            assert ada.hindering == [], path
        assert len(ada.all("h1")) == 1 and ada.all("main"), path
        assert ada.complaints() == [], path


def test_every_view_says_what_went_wrong_and_tries_again(ada: Person) -> None:
    ada.open("/settings")
    for path in VIEWS:
        if path in ("/operator", "/mailed"):
            continue  # they ask for something first, and call nothing before
        with ada.without("*/dashboard/api/*"):
            ada.go(path)
            ada.see("That did not work", "The service cannot be reached.")
        for again in ada.all(".failure button"):
            ada.browser.execute_script("arguments[0].click()", again)
        ada.miss("That did not work")
        ada.wait_for_calm()


def test_the_keyboard_is_enough(ada: Person) -> None:
    ada.open("/collections")

    def focused() -> WebElement:
        return ada.browser.switch_to.active_element

    focused().send_keys(Keys.TAB)
    assert focused().text == "Skip to content"
    focused().send_keys(Keys.ENTER)
    assert focused().get_attribute("id") == "main"
    opener = ada.named("New collection")
    opener.send_keys(Keys.ENTER)
    ada.see("Description")
    inside = (
        "return document.activeElement.closest('dialog') !== null || document.activeElement === "
        "document.body"
    )
    for _ in range(12):
        focused().send_keys(Keys.TAB)
        assert ada.browser.execute_script(inside)
    focused().send_keys(Keys.ESCAPE)
    ada.until(lambda: not ada.all("dialog"), lambda: "the dialog is still open")
    assert focused() == opener


def test_the_theme_follows_the_system_until_one_is_chosen(ada: Person) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    ada.open("/settings")
    light = ada.browser.execute_script(background)
    ada.look_through(WIDE, "dark")
    dark = ada.browser.execute_script(background)
    assert light != dark
    ada.press("Light or dark")
    assert ada.browser.execute_script(background) == light
    ada.browser.refresh()
    ada.wait_for_calm()
    assert ada.browser.execute_script(background) == light
    ada.press("As the system has it")
    assert ada.browser.execute_script(background) == dark


def test_an_address_without_a_view_says_so(ada: Person) -> None:
    ada.open("/nothing/here")
    ada.see("There is nothing here")
    ada.press("To the overview")
    ada.see("Hello, Ada Lovelace.")


def test_the_menu_opens_on_small_windows(ada: Person) -> None:
    ada.look_through(NARROW, "light")
    ada.open()
    assert not ada.all("nav a")[0].is_displayed()
    ada.press("Menu")
    ada.press("Memories")
    ada.see("Browse what is stored")
    assert not ada.all("nav a")[0].is_displayed()


def test_back_and_forward_go_through_the_views(ada: Person) -> None:
    ada.open()
    ada.press("Memories")
    ada.see("Browse what is stored")
    ada.press("API keys")
    ada.see("No API keys yet")
    ada.browser.back()
    ada.see("Browse what is stored")
    ada.browser.forward()
    ada.see("No API keys yet")
