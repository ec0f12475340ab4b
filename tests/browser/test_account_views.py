"""Signing up, in and out; API keys; the overview; export and erasure."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.browser.person import NARROW, Person
from tests.support.served import PASSWORD, Served

# How many pixels of a chart have the colour of its first series.
_DRAWN = """
const canvas = document.querySelector(".chart canvas");
const marker = document.querySelector(".chart .u-series:nth-child(2) .u-marker");
if (!canvas || !marker) return 0;
const [red, green, blue] = getComputedStyle(marker).borderColor.match(/[0-9]+/g).map(Number);
const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
let found = 0;
for (let at = 0; at < data.length; at += 4)
    found += data[at] === red && data[at + 1] === green && data[at + 2] === blue;
return found;
"""


def test_from_sign_up_over_a_key_to_a_memory_that_is_changed_and_deleted(
    visitor: Person, service: Served
) -> None:
    visitor.open()
    visitor.see("Sign in to Mneme")
    visitor.press("Sign up")
    visitor.fill("Name", "Grace Hopper")
    visitor.fill("E-mail address", "grace@example.com")
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign up")
    visitor.see("Hello, Grace Hopper.", "Nothing is stored yet", "Credits this month")

    visitor.press("API keys")
    visitor.see("No API keys yet")
    visitor.press("New key")
    visitor.fill("Name", "production")
    visitor.press("Create key")
    visitor.see("It is shown this once")
    key = visitor.all("dialog .secret code")[0].text
    visitor.press("I have copied it")
    visitor.see("production", key[:12])
    assert key not in visitor.browser.page_source

    sent = {
        "content": "The spare key is under the blue flowerpot.",
        "speaker": "Ada",
        "tags": ["home"],
        "wait_for_index": True,
    }
    httpx.post(
        f"{service.url}/v1/memories", json=sent, headers={"Authorization": f"Bearer {key}"}
    ).raise_for_status()
    visitor.browser.refresh()
    visitor.see("1 API key")
    created, used, requests, credits = (cell.text for cell in visitor.all("tbody td")[2:6])
    assert (used != "never", requests, credits) == (True, "1", "1"), (created, used)

    visitor.press("Memories")
    visitor.see("The spare key is under the blue flowerpot.", "1 memory")
    visitor.fill("Search", "Where is the spare key?")
    visitor.press("Search")
    visitor.see("1 of 1", "grounded")
    visitor.press("Why it stands here")
    visitor.see("nearness in meaning", "It ranks, and is no probability.")
    assert [mark.text for mark in visitor.all("mark")] == ["spare", "key"]

    visitor.press("The spare key is under the blue flowerpot.")
    visitor.see("searchable", "Version 1")
    visitor.press("Edit")
    visitor.fill("Content", "The spare key is with Mrs. Okafor.")
    visitor.fill("Importance, 0 to 1", "0.9")
    visitor.press("Save")
    visitor.see(
        "Saved.",
        "Version 2",
        "0.90",
        "The spare key is under the blue flowerpot.",
        "by an API key",
        "by a signed-in person",
    )

    visitor.press("Delete")
    visitor.see("Delete this memory?")
    visitor.press("Cancel")
    visitor.see("Version 2")
    visitor.press("Delete")
    visitor.press("Delete")
    visitor.see("The memory is deleted.", "Nothing is stored yet")


def test_a_deleted_key_opens_nothing(ada: Person, service: Served) -> None:
    ada.open("/keys")
    ada.press("New key")
    ada.fill("Name", "for a day")
    ada.press("write: store and change as well")
    ada.press("Create key")
    ada.see("Your new API key")
    key = ada.all("dialog .secret code")[0].text
    ada.press("I have copied it")
    reads = {"headers": {"Authorization": f"Bearer {key}"}}
    assert httpx.get(f"{service.url}/v1/memories", **reads).status_code == 200
    assert (
        httpx.post(f"{service.url}/v1/memories/raw", json={"content": "No."}, **reads).status_code
        == 403
    )
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.press("Delete for a day")
    ada.press("Delete")
    ada.see("“for a day” is deleted.", "No API keys yet")
    assert httpx.get(f"{service.url}/v1/memories", **reads).status_code == 401


def test_the_form_says_at_the_field_what_is_wrong(visitor: Person) -> None:
    visitor.open("/sign-in?new")
    visitor.fill("Name", "Ada")
    visitor.fill("E-mail address", "ada")
    visitor.fill("Password", "short")
    visitor.press("Sign up")
    visitor.until(lambda: visitor.all("input[name=email][aria-invalid]"), lambda: visitor.text)
    assert visitor.all("input[name=password][aria-invalid]")
    visitor.fill("E-mail address", "wrong@example.com")
    visitor.fill("Password", "not the password")
    visitor.press("Sign in")
    visitor.fill("E-mail address", "wrong@example.com")
    visitor.fill("Password", "not the password")
    visitor.press("Sign in")
    visitor.see("The e-mail address or the password is wrong.")
    assert "401" in "".join(visitor.complaints())


def test_an_ended_session_asks_to_sign_in_and_goes_on_where_one_was(
    ada: Person, service: Served
) -> None:
    ada.open("/collections?name_prefix=a")
    httpx.post(
        f"{service.url}/v1/auth/logout", headers={"Authorization": f"Bearer {ada.token}"}
    ).raise_for_status()
    ada.press("Filter")
    ada.see("Your session is over.", "Sign in to Mneme")
    assert ada.named("E-mail address", "input").get_attribute("value") == ada.email
    ada.fill("Password", PASSWORD)
    ada.press("Sign in")
    ada.see("Shelves that keep memories and documents apart")
    assert ada.path == "/collections?name_prefix=a"
    assert "401" in "".join(ada.complaints())


def test_sessions_are_listed_and_ended(ada: Person, service: Served) -> None:
    def signed_in(agent: str) -> dict[str, str]:
        credentials = {"email": ada.email, "password": PASSWORD}
        reply = httpx.post(
            f"{service.url}/v1/auth/login", json=credentials, headers={"User-Agent": agent}
        )
        return {"Authorization": f"Bearer {reply.json()['access_token']}"}

    def status(session: dict[str, str]) -> int:
        return httpx.get(f"{service.url}/v1/auth/me", headers=session).status_code

    firefox = signed_in("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
    others = [signed_in("<b>curl</b>/8"), signed_in("<b>curl</b>/8")]
    ada.open("/sessions")
    ada.see("4 sessions", "Chrome", "this one", "Firefox 140 on Linux", "<b>curl<")
    ada.press("End the session of Firefox 140 on Linux")
    ada.see("End this session?")
    ada.press("End it")
    ada.see("The session is ended.", "3 sessions")
    assert (status(firefox), *map(status, others)) == (401, 200, 200)
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.press("End all others")
    ada.press("End them")
    ada.see("2 sessions are ended.", "1 session")
    assert [*map(status, others)] == [401, 401]
    ada.press("End the session of Chrome")
    ada.press("Sign out")
    ada.see("Sign in to Mneme")


def test_latency_has_each_operation_with_its_share_of_errors(ada: Person, service: Served) -> None:
    me = {"Authorization": f"Bearer {ada.token}"}
    for path in ("memories/mem_nothing", "memories/mem_nothing", "collections", "collections"):
        httpx.get(f"{service.url}/v1/{path}", headers=me)
    ada.look_through(NARROW, "dark")
    ada.open("/latency")
    ada.see("95 of 100 within", "2 of the caller, 0 of the service")
    # A single hour, to which no line leads, is seen as well.
    ada.until(lambda: ada.browser.execute_script(_DRAWN), lambda: "nothing is drawn by the hour")
    shown = {row.text.split()[0]: row.text for row in ada.all("tbody tr")}
    assert "100%" in shown["memories.get"] and "0%" in shown["collections.list"]
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.fill("Span of time", "Last 8 days")
    ada.see("in the last 192 hours")


def test_an_export_is_imported_with_its_progress(
    ada: Person, service: Served, tmp_path: Path
) -> None:
    eve = {"email": "eve-exports@example.com", "password": PASSWORD, "full_name": "Eve"}
    session = httpx.post(f"{service.url}/v1/auth/register", json=eve).json()
    hers = {"headers": {"Authorization": f"Bearer {session['access_token']}"}, "timeout": 60}
    memories = [{"content": f"Eve counted <b>{number}</b>."} for number in range(60)]
    httpx.post(f"{service.url}/v1/memories/batch", json={"memories": memories}, **hers)
    lines = httpx.get(f"{service.url}/v1/account/export", **hers).text.splitlines()
    files = {"torn": lines[:-1], "changed": ["{}", *lines], "whole": lines}
    for name, kept in files.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(kept) + "\n")

    def bring(name: str) -> None:
        ada.fill("Export", str(tmp_path / f"{name}.jsonl"))
        ada.press("Import")

    ada.open("/settings")
    bring("torn")
    ada.see("This export is not whole")
    bring("changed")
    ada.see("Line 1 is not a record of an export.")
    bring("whole")
    ada.see("Imported:", "0 known before", "Taken in", "memory")
    ada.see("This installation has not signed the export for this account")
    # Her own, in two parts, each with its signature; and with one letter changed in the second.
    mine = {"headers": {"Authorization": f"Bearer {ada.token}"}, "timeout": 60}
    own = httpx.get(f"{service.url}/v1/account/export", **mine).text
    assert len(own.splitlines()) > 52
    (tmp_path / "own.jsonl").write_text(own)
    (tmp_path / "touched.jsonl").write_text(own.replace("<b>59</b>", "<b>58</b>"))
    for name, said in (("own", "has signed"), ("touched", "has not signed")):
        bring(name)
        ada.see("Imported: 0 records taken in", f"This installation {said} the export")
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.open("/memories")
    ada.see("Eve counted <b>59</b>.", "50 of 60 memories")


def test_signing_out_ends_the_session_for_good(ada: Person, service: Served) -> None:
    ada.open()
    token = ada.token
    ada.press("Sign out")
    ada.see("Sign in to Mneme")
    assert ada.browser.get_cookie("mneme_session") is None
    assert (
        httpx.get(
            f"{service.url}/v1/auth/me", headers={"Authorization": f"Bearer {token}"}
        ).status_code
        == 401
    )
    ada.open("/settings")
    ada.see("Sign in to Mneme")


def test_no_script_can_read_the_token(ada: Person) -> None:
    ada.open()
    held = ada.browser.execute_script(
        "return [document.cookie, ...Object.values(localStorage), "
        "...Object.values(sessionStorage)].join()"
    )
    assert ada.token not in held and ada.token not in ada.browser.page_source


def test_the_overview_counts_what_is_there(ada: Person) -> None:
    ada.open()
    for number in range(3):
        assert (
            ada.fetch_as_page("POST", "/v1/memories/raw", {"content": f"Ada counted to {number}."})
            == 201
        )
    ada.browser.refresh()
    ada.see("3\nin 1 collection", "Ada counted to 2.", "Memory jobs, queued", "Half of this visit")
    ada.until(lambda: len(ada.all(".chart canvas")) == 2, lambda: "no charts")
    assert "requests and 3 credits" in ada.all(".chart")[0].get_attribute("aria-label")


def test_everything_can_be_taken_along_and_erased(
    ada: Person, service: Served, downloads: Path
) -> None:
    ada.open()
    assert ada.fetch_as_page("POST", "/v1/memories/raw", {"content": "Ada was here."}) == 201
    ada.press("Settings")
    ada.see("Take everything along", "Nothing was erased lately", "Ada Lovelace")
    ada.press("Download the export")
    ada.until(
        lambda: [file for file in downloads.glob("*.jsonl") if "Ada was here." in file.read_text()],
        lambda: "no file",
    )

    ada.press("Erase the account")
    ada.see("Nobody can bring it back.")
    assert not ada.named("Erase everything").is_enabled()
    ada.fill("Type", ada.email)
    ada.press("Erase everything")
    ada.see("The account is erased")
    receipt = ada.all("dialog .secret code")[0].text
    ada.press("Done")
    ada.see("Sign in to Mneme")
    assert (
        httpx.post(f"{service.url}/v1/account/receipts", json={"receipt": receipt}).status_code
        == 200
    )
    login = httpx.post(
        f"{service.url}/v1/auth/login", json={"email": ada.email, "password": PASSWORD}
    )
    assert login.status_code == 401
