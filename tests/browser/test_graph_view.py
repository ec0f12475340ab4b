"""The knowledge graph as one looks at it: drawn, walked through, moved along both clocks, and read
as a list.
"""

from __future__ import annotations

import httpx
import pytest

from tests.browser.person import NARROW, Person
from tests.support.served import Served

HOSTILE = "<img src=x onerror=window.harmed=1>"
_PICTURE = "return document.querySelector('.drawing canvas')?.toDataURL() ?? ''"
_SLIDE = """
const [slider, value] = arguments;
slider.value = value;
slider.dispatchEvent(new Event("input", {bubbles: true}));
"""


@pytest.fixture
def api(ada: Person, service: Served) -> httpx.Client:
    """The API as the account of `ada`."""
    return httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )


@pytest.fixture
def family(api: httpx.Client) -> None:
    """Ada in Porto, then in Lisbon; or in Oslo, as was thought for a while; and where her friends
    are.
    """
    told = api.post(
        "/v1/memories", json={"content": "Ada says: I live in Oslo now.", "wait_for_index": True}
    ).json()["id"]
    claims = [
        {
            "type": "lives_in",
            "target": "Porto",
            "valid_from": "2018-01-01",
            "valid_to": "2022-01-01",
            "recorded_at": "2018-02-01",
        },
        {
            "type": "lives_in",
            "target": "Lisbon",
            "valid_from": "2022-01-01",
            "recorded_at": "2022-02-01",
            "functional": True,
        },
        {
            "type": "lives_in",
            "target": "Oslo",
            "valid_from": "2023-01-01",
            "recorded_at": "2025-01-01",
            "source_memory_id": told,
        },
        {"type": "knows", "target": "Mei", "recorded_at": "2018-02-01"},
        {"type": "knows", "target": HOSTILE, "recorded_at": "2018-02-01"},
        {
            "source": "Mei",
            "type": "works_at",
            "target": "Globex",
            "valid_from": "2020-01-01",
            "recorded_at": "2020-02-01",
        },
    ]
    api.post(
        "/v1/knowledge-graph/entities",
        json={"name": "Ada", "type": "person", "aliases": ["Countess"]},
    ).raise_for_status()
    for claim in claims:
        api.post(
            "/v1/knowledge-graph/relationships", json={"source": "Ada", **claim}
        ).raise_for_status()


def hold_still(ada: Person) -> None:
    """As somebody who wants no motion: the layout is there at once."""
    ada.command(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-reduced-motion", "value": "reduce"}],
    )


def test_an_empty_graph_says_how_it_grows(ada: Person) -> None:
    ada.open("/graph")
    ada.see("The graph is empty")


@pytest.mark.usefixtures("family")
def test_both_clocks_change_what_is_drawn(ada: Person) -> None:
    hold_still(ada)
    ada.open("/graph")
    ada.see("Drawn: 7 entities and 5 relationships.")
    valid, known = ada.all(".clock input[type=range]")
    now = ada.browser.execute_script(_PICTURE)

    ada.browser.execute_script(_SLIDE, valid, 1)
    ada.see("Drawn: 7 entities and 2 relationships, as it held on")
    assert valid.get_attribute("aria-valuetext").endswith("2017")
    ada.until(
        lambda: ada.browser.execute_script(_PICTURE) != now, lambda: "the drawing stayed as it was"
    )
    ada.press("Later change: what held at")
    ada.see("Drawn: 7 entities and 3 relationships", "2018")
    ada.press("Now")
    ada.see("Drawn: 7 entities and 5 relationships.")

    ada.browser.execute_script(_SLIDE, known, 600)
    ada.see("Drawn: 7 entities and 4 relationships, as it was known on")
    ada.press("Later change: as it was known at")
    ada.see("Drawn: 7 entities and 5 relationships, as it was known on")


@pytest.mark.usefixtures("family")
def test_an_entity_is_found_opened_and_walked_from(ada: Person) -> None:
    ada.open("/graph")
    ada.fill("Find an entity by name", "ad")
    ada.press("Ada")
    ada.see("Also called", "Countess", "lives in → Lisbon", "since", "2022", "contradicted")
    assert ada.path.startswith("/graph?entity=ent_")
    ada.press("Only around it")
    ada.see("Only around Ada, up to", "Drawn: 5 entities and 4 relationships.")
    ada.fill("How far", "2 hops")
    ada.see("Drawn: 6 entities and 5 relationships.")
    ada.press("Show everything")
    ada.see("Drawn: 7 entities and 5 relationships.")
    ada.press("Mei")
    ada.see("Ada → knows → this", "works at → Globex")
    ada.press("Timeline")
    ada.see("2 relationships")

    ada.browser.refresh()
    ada.see("Ada → knows → this")
    ada.press("person")
    ada.see("Drawn: 6 entities and 1 relationship.")


@pytest.mark.usefixtures("family")
def test_contradictions_show_what_speaks_for_each_side(ada: Person) -> None:
    ada.open("/graph")
    ada.press("Contradictions (1)")
    ada.see(
        "Ada · lives in",
        "Lisbon",
        "It was claimed through the API",
        "Oslo",
        "Ada says: I live in Oslo now.",
        "to go by",
        "It began later.",
    )
    ada.press("Show in the graph")
    ada.see("Also called", "Countess")
    ada.press("Sources 1")
    ada.press("Open the memory")
    ada.see("Ada says: I live in Oslo now.")
    assert ada.path.startswith("/memories/mem_")


@pytest.mark.usefixtures("family")
def test_the_list_says_the_same_without_a_drawing_and_names_stay_text(ada: Person) -> None:
    ada.open("/graph")
    ada.press("List")
    ada.see("7 entities", HOSTILE)
    ada.fill("Name begins with", "<img")
    ada.see("1 entity")
    ada.press(HOSTILE)
    ada.see("Ada → knows → this")
    assert ada.browser.execute_script(
        "return [window.harmed ?? null, document.querySelectorAll('img[src=x]').length]"
    ) == [None, 0]


@pytest.mark.usefixtures("family")
def test_the_drawing_is_moved_by_keys_and_fits_a_small_window(ada: Person) -> None:
    ada.look_through(NARROW, "dark")
    hold_still(ada)
    ada.open("/graph")
    ada.see("Drawn: 7 entities and 5 relationships.")
    assert ada.overflowing == []
    ada.press("Fit")
    fitted = ada.browser.execute_script(_PICTURE)
    canvas = ada.all(".drawing canvas")[0]
    canvas.send_keys("++")
    ada.until(lambda: ada.browser.execute_script(_PICTURE) != fitted, lambda: "it was not zoomed")
    canvas.send_keys("0")
    ada.until(
        lambda: ada.browser.execute_script(_PICTURE) == fitted, lambda: "it was not fitted again"
    )


@pytest.mark.usefixtures("family")
def test_entities_are_merged_by_hand_and_relationships_filtered_by_type(
    ada: Person, api: httpx.Client
) -> None:
    graph = "/v1/knowledge-graph"
    twin = {
        "source": "Mei Lin",
        "type": "works_at",
        "target": "Initech",
        "valid_from": "2024-05-01",
    }
    api.post(f"{graph}/relationships", json=twin).raise_for_status()
    ada.open("/graph")
    ada.fill("Relationships that are drawn", "knows (2)")
    ada.see("Drawn: 3 entities and 2 relationships.")
    ada.fill("Relationships that are drawn", "Every relationship")
    ada.fill("Find an entity by name", "Mei L")
    ada.press("Mei Lin")
    ada.press("Merge…")
    ada.fill("The entity that stays", "Mei")
    ada.press("Mei")
    ada.see("its relationships with their times and sources", "This cannot be undone.")
    assert ada.hindering == []
    ada.press("Merge")
    ada.see("“Mei Lin” is “Mei” from here on: 1 relationship moved.")
    ada.see("Also called", "works at → Initech")
    mei = api.get(f"{graph}/entities/Mei Lin").json()
    assert (mei["entity"]["name"], mei["entity"]["aliases"]) == ("Mei", ["Mei Lin"])
    moved = [one for one in mei["relationships"] if one["target"]["name"] == "Initech"]
    assert [one["valid_from"] for one in moved] == ["2024-05-01T00:00:00.000Z"]
    ada.look_through(NARROW, "dark")
    assert (ada.overflowing, ada.hindering) == ([], [])
