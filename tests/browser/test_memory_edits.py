"""Editing a memory changes what was edited and nothing else, whatever it holds and whoever changes
it meanwhile.
"""

from __future__ import annotations

import re

import httpx
import pytest

from tests.browser.person import NARROW, Person
from tests.support.served import Served

METADATA = '{"order":1234567890123456789,"price":1.0,"deep":{"ids":[9007199254740993]},"none":{}}'


@pytest.fixture
def api(ada: Person, service: Served) -> httpx.Client:
    """The API as the account of `ada`."""
    ada.open("/settings")
    return httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )


def stored(api: httpx.Client) -> str:
    """A memory that is hard to keep as it is; -> its id."""
    body = (
        '{"content": "Tea is at four.", "title": "Tea", "tags": ["Smith, John", "home"], '
        f'"importance": 0.73, "wait_for_index": true, "metadata": {METADATA}}}'
    )
    answer = api.post(
        "/v1/memories", content=body, headers={"Content-Type": "application/json"}
    ).raise_for_status()
    return answer.json()["id"]


def metadata(api: httpx.Client, memory: str) -> str:
    """A memory's metadata as the service writes it."""
    text = api.get(f"/v1/memories/{memory}").text
    return text.partition('"metadata":')[2].partition("}}")[0] + "}}"


def test_an_edit_leaves_alone_what_it_did_not_touch(ada: Person, api: httpx.Client) -> None:
    memory = stored(api)
    assert metadata(api, memory) == METADATA
    ada.open(f"/memories/{memory}")
    ada.see('"order": 1234567890123456789', '"price": 1.0', "9007199254740993")
    ada.press("Edit")
    ada.fill("Content", "Tea is at five.")
    ada.press("Save")
    ada.see("Saved.", "Version 2")
    now = api.get(f"/v1/memories/{memory}").json()
    assert (now["content"], now["title"], now["importance"]) == ("Tea is at five.", "Tea", 0.73)
    assert now["tags"] == ["Smith, John", "home"] and metadata(api, memory) == METADATA


def test_tags_and_metadata_that_are_edited_keep_what_is_hard_to_write(
    ada: Person, api: httpx.Client
) -> None:
    memory = stored(api)
    ada.open(f"/memories/{memory}")
    ada.press("Edit")
    tags = ada.named("Tags", "input")
    assert tags.get_attribute("value") == '"Smith, John", home'
    tags.send_keys(', 5" disk, "a ""b"", c"')
    written = ada.named("Metadata, as JSON", "textarea").get_attribute("value")
    ada.fill("Metadata, as JSON", re.sub(r"1\.0", "2.0", written))
    ada.fill("Title", "")
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.press("Save")
    ada.see("Saved.", "Version 2")
    now = api.get(f"/v1/memories/{memory}").json()
    assert now["tags"] == ["Smith, John", "home", '5" disk', 'a "b", c']
    assert now["title"] is None and now["importance"] == 0.73
    assert metadata(api, memory) == METADATA.replace("1.0", "2.0")


def test_a_new_memory_keeps_the_numbers_that_were_typed(ada: Person, api: httpx.Client) -> None:
    ada.open("/memories")
    ada.press("New memory")
    ada.fill("Content", "Order 1234567890123456789 has shipped.")
    ada.fill("Importance, 0 to 1", "0.735")
    ada.fill("Metadata, as JSON", METADATA)
    ada.press("Store")
    ada.see("Stored.")
    (made,) = api.get("/v1/memories").json()["items"]
    assert made["importance"] == 0.735 and metadata(api, made["id"]) == METADATA


def test_what_was_typed_outlives_a_change_made_meanwhile(ada: Person, api: httpx.Client) -> None:
    memory = stored(api)
    ada.open(f"/memories/{memory}")
    ada.press("Edit")
    elsewhere = {"content": "Tea is at five.", "title": "Tea time"}
    api.patch(f"/v1/memories/{memory}", json=elsewhere).raise_for_status()
    ada.fill("Content", "Tea is at six.")
    ada.press("Save")
    ada.see("The memory is at version 2.", "As it is now, version 2", "Tea is at five.")
    assert ada.named("Content", "textarea").get_attribute("value") == "Tea is at six."
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
    ada.press("Save mine over it")
    ada.see("Saved.", "Version 3")
    now = api.get(f"/v1/memories/{memory}").json()
    assert (now["content"], now["title"]) == ("Tea is at six.", "Tea time")

    ada.press("Edit")
    api.patch(f"/v1/memories/{memory}", json={"content": "Tea is at eight."}).raise_for_status()
    ada.fill("Content", "Tea is at nine.")
    ada.press("Save")
    ada.press("Begin with the newer text")
    assert ada.named("Content", "textarea").get_attribute("value") == "Tea is at eight."
    ada.fill("Content", "Tea is at ten.")
    ada.press("Save")
    ada.see("Saved.", "Version 5", "Tea is at ten.")
    said = ada.complaints()
    assert [each for each in said if "412" not in each] == []
