"""Memories, collections and documents, and what strangers wrote into them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.browser.person import NARROW, Person
from tests.support.served import Served

HOSTILE = (
    '<script>window.harmed="script"</script><img src=x onerror="window.harmed=1"><svg '
    'onload="window.harmed=2"></svg>'
)


@pytest.fixture
def api(ada: Person, service: Served) -> httpx.Client:
    """The API as the account of `ada`."""
    ada.open("/settings")
    return httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )


def remember(api: httpx.Client, content: str, **fields: object) -> str:
    """A memory that searches find; -> its id."""
    answer = api.post("/v1/memories", json={"content": content, "wait_for_index": True, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def test_what_strangers_wrote_is_shown_and_never_run(ada: Person, api: httpx.Client) -> None:
    fields = {
        "speaker": HOSTILE,
        "title": HOSTILE,
        "tags": ["<b>bold</b>"],
        "metadata": {HOSTILE: HOSTILE},
        "session_id": HOSTILE,
    }
    memory = remember(api, HOSTILE + " was written by a stranger.", **fields)
    remember(api, HOSTILE + " was written by a stranger again.")
    api.post("/v1/collections", json={"name": HOSTILE, "description": HOSTILE}).raise_for_status()
    api.post("/v1/auth/api-keys", json={"name": HOSTILE, "scopes": ["read"]}).raise_for_status()
    upload = api.post(
        "/v1/documents/upload",
        files={
            "file": (
                HOSTILE.replace("/", "-") + ".html",
                b"<title>" + HOSTILE.encode() + b"</title><p>Text.",
            )
        },
    )
    document = upload.json()["document"]["id"]
    shown = (
        "/",
        "/memories",
        "/memories?q=stranger&include_low_confidence=true",
        f"/memories/{memory}",
        "/collections",
        "/keys",
    )
    for path in (*shown, "/documents", f"/documents/{document}"):
        ada.open(path)
        ada.see("<script>window.harmed=")
        assert ada.browser.execute_script(
            "return [window.harmed ?? null, document.querySelectorAll('script').length, "
            "document.querySelectorAll('img[src=x]').length]"
        ) == [None, 2, 0]
        assert ada.hindering == [], path


def test_a_memory_is_stored_with_all_it_can_have(ada: Person) -> None:
    ada.open("/memories")
    ada.press("New memory")
    ada.fill("Content", "Ben brings the espresso machine.")
    ada.fill("Title", "Coffee")
    ada.fill("Tags", "offsite, coffee, offsite")
    ada.fill("Speaker", "Ben")
    ada.fill("User", "ben")
    ada.fill("Metadata, as JSON", "{trip: 1}")
    ada.press("Store")
    ada.see("This is not JSON")
    ada.fill("Metadata, as JSON", '{"trip": 1}')
    ada.press("Store")
    ada.see(
        "Stored. The next search finds it.",
        "Coffee",
        "Ben brings the espresso machine.",
        "offsite",
        '"trip": 1',
        "Version 1",
    )
    assert ada.path.startswith("/memories/mem_")


def test_filters_narrow_the_list_and_the_search_and_stay_in_the_address(
    ada: Person, api: httpx.Client
) -> None:
    remember(api, "Mei cooks without meat.", user_id="mei", tags=["food"], metadata={"year": 2026})
    remember(api, "Ben cooks with garlic.", user_id="ben", tags=["food"], metadata={"year": 2025})
    ada.open("/memories?user_id=mei")
    ada.see("Mei cooks without meat.", "1 memory")
    assert "garlic" not in ada.text
    ada.fill("User", "")
    ada.fill("Conditions, as JSON", '{"metadata.year": {"lt": 2026}}')
    ada.fill("Search", "Who cooks?")
    ada.press("Search")
    ada.see("Ben cooks with garlic.", "1 of 1")
    assert "Mei cooks" not in ada.text
    ada.browser.refresh()
    ada.see("Ben cooks with garlic.", "1 of 1")
    ada.fill("Conditions, as JSON", '{"colour": "red"}')
    ada.press("Search")
    ada.see("there is no such filter field")
    assert "422" in "".join(ada.complaints())


def test_an_old_collection_is_a_filter_and_what_is_none_never_shows_everything(
    ada: Person, api: httpx.Client
) -> None:
    old = api.post("/v1/collections", json={"name": "The oldest"}).json()["id"]
    for number in range(101):
        api.post("/v1/collections", json={"name": f"Newer {number}"}).raise_for_status()
    remember(api, "It is in the oldest one.", collection_id=old)
    remember(api, "It is in the default one.")
    ada.open(f"/memories?collection_id={old}")
    ada.see("It is in the oldest one.", "1 memory", "in The oldest")
    assert "default one" not in ada.text and ada.path == f"/memories?collection_id={old}"
    assert ada.named("Collection", "select").get_attribute("value") == old
    ada.see("choose an older one under Collections")
    ada.press("New memory")
    assert ada.named("Collection", "select").get_attribute("value") == old
    ada.press("Cancel")
    api.delete(f"/v1/collections/{old}").raise_for_status()
    for asked in (f"collection_id={old}", "tier=bogus", "created_after=yesterday"):
        ada.open(f"/memories?{asked}")
        ada.until(
            lambda: "That did not work" in ada.text or "Not found" in ada.text,
            lambda asked=asked: f"{asked}: {ada.text}",
        )
        assert "default one" not in ada.text and ada.path == f"/memories?{asked}"
    ada.open(f"/documents?collection_id={old}")
    ada.see("Not found")
    assert all("404" in said or "422" in said for said in ada.complaints())


def test_a_question_without_an_answer_says_so(ada: Person, api: httpx.Client) -> None:
    remember(api, "The offsite is at a farmhouse near Porto.")
    ada.open("/memories?q=How+tall+is+the+Eiffel+Tower%3F")
    ada.see("Nothing stored stands as an answer", "no match")
    ada.press("Filters and options")
    ada.press("Weak results too")
    ada.press("Search")
    ada.see("farmhouse near Porto", "weak")


def test_superseded_memories_form_a_chain_and_can_be_restored(
    ada: Person, api: httpx.Client
) -> None:
    older, newer = (
        remember(api, "The key is under the pot."),
        remember(api, "The key is under the flowerpot."),
    )
    api.post("/v1/memories/merge", json={"keep": newer, "duplicates": [older]}).raise_for_status()
    ada.open(f"/memories/{older}")
    ada.press("Supersession")
    ada.see("The key is under the flowerpot.", "took its place")
    ada.press("The key is under the flowerpot.")
    ada.see("Version 1")
    ada.press("Supersession")
    ada.see("was superseded by this one")
    ada.press("The key is under the pot.")
    ada.press("Restore")
    ada.see("It counts again.")
    assert api.get(f"/v1/memories/{older}").json()["superseded_by_id"] is None


def test_a_change_made_meanwhile_is_not_overwritten(ada: Person, api: httpx.Client) -> None:
    memory = remember(api, "Tea is at four.")
    ada.open(f"/memories/{memory}")
    ada.press("Edit")
    api.patch(f"/v1/memories/{memory}", json={"content": "Tea is at five."}).raise_for_status()
    ada.fill("Content", "Tea is at six.")
    ada.press("Save")
    ada.see("The memory is at version 2.")
    assert api.get(f"/v1/memories/{memory}").json()["content"] == "Tea is at five."
    assert "412" in "".join(ada.complaints())


def test_long_lists_come_page_by_page(ada: Person, api: httpx.Client) -> None:
    batch = {"memories": [{"content": f"Note {number}."} for number in range(60)]}
    api.post("/v1/memories/batch", json=batch).raise_for_status()
    ada.open("/memories")
    ada.see("50 of 60 memories")
    ada.press("Show more")
    ada.see("60 memories", "Note 0.")
    assert len(ada.all(".list > li")) == 60 and "Show more" not in ada.text


def test_collections_are_made_renamed_and_deleted_with_what_is_in_them(
    ada: Person, api: httpx.Client
) -> None:
    ada.open("/collections")
    ada.see("1 collection")
    ada.press("New collection")
    ada.fill("Name", "Trips")
    ada.press("Save")
    ada.see("Trips", "2 collections")
    ada.press("Edit Trips")
    ada.fill("Name", "Travel")
    ada.fill("Description", "Tickets and hotels")
    ada.press("Save")
    ada.see("Tickets and hotels")
    (travel,) = [
        one["id"] for one in api.get("/v1/collections").json()["items"] if one["name"] == "Travel"
    ]
    remember(api, "The hotel is in Alfama.", collection_id=travel)
    ada.press("Travel")
    ada.see("The hotel is in Alfama.")
    ada.press("Collections")
    ada.press("Delete Travel")
    ada.see("It goes with 1 memory")
    ada.fill("Type", "Travel")
    ada.press("Delete")
    ada.see("“Travel” is deleted.", "1 collection")
    assert api.get("/v1/memories").json()["total_count"] == 0


def test_documents_are_uploaded_and_read_and_found(ada: Person, tmp_path: Path) -> None:
    handbook, broken = tmp_path / "handbook.md", tmp_path / "broken.pdf"
    handbook.write_text("# Handbook\n\n## Holidays\n\nEveryone has thirty days of holiday.\n")
    broken.write_bytes(b"%PDF-1.7 and nothing more")
    ada.open("/documents")
    ada.see("No documents yet")
    ada.fill("Files", f"{handbook}\n{broken}")
    ada.fill("Tags", "house")
    ada.press("Upload")
    ada.see("ready", "1 chunk", "failed", "not a readable PDF", "2 documents")
    ada.press("Handbook")
    ada.see("Everyone has thirty days of holiday.", "house", "1 chunk")
    ada.press("as a memory")
    ada.see("Everyone has thirty days of holiday.", "Timeline")
    ada.browser.back()
    ada.press("Delete")
    ada.press("Delete")
    ada.see("is deleted.", "1 document")


def test_a_timeline_quotes_what_a_memory_rests_on_and_what_rests_on_it(
    ada: Person, api: httpx.Client
) -> None:
    said = {"content": "I live in Porto. My cat is called <b>Turing</b>.", "user_id": "ada"}
    told = api.post("/v1/memories/process", json=said, headers={"Prefer": "wait=30"}).json()
    turn, *facts = (event["memory_id"] for event in told["result"]["events"])
    api.patch(f"/v1/memories/{facts[0]}", json={"content": "I live in Lisbon."}).raise_for_status()
    kept = remember(api, "Ada lives in Lisbon.")
    merge = {"keep": kept, "duplicates": [facts[0]]}
    api.post("/v1/memories/merge", json=merge).raise_for_status()

    ada.look_through(NARROW, "dark")
    ada.open(f"/memories/{turn}")
    ada.see("a fact was read out of it", "I live in Lisbon. superseded", "other memor")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.press("I live in Lisbon.")
    ada.see("was said", "Version 2", "Version 3", "What took its place:", "Ada lives in Lisbon.")
    struck = [(one.tag_name, one.text) for one in ada.all("ins, del")]
    assert struck == [("del", "Porto."), ("ins", "Lisbon.")]
    ada.press("Ada lives in Lisbon.")
    ada.see("stands for a near duplicate as well", "No other memory rests on this one.")
