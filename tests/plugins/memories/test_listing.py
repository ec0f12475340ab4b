"""Lists by a filter, and the names that have memories, against a list kept by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.in_process import InProcess, in_process

PEOPLE = ("ada", "ben", "ada", "cy", "ada", "ben")


class ListHarness:
    def __init__(self, service: InProcess):
        self.service = service
        self.me, self.other = (
            service.register("ada@example.com"),
            service.register("eve@example.com"),
        )
        self.ids = [
            self.store(f"note {n}", user_id=who, agent_id="butler" if n % 2 else None)
            for n, who in enumerate(PEOPLE)
        ]
        self.foreign = self.store("Eve's", who=self.other, user_id="eve")

    def store(self, content: str, who: str | None = None, **fields: Any) -> str:
        return self.service.request(
            "POST", "/v1/memories", {"content": content, **fields}, who=who or self.me
        ).json()["id"]

    def query(self, who: str | None = None, **body: Any) -> Any:
        return self.service.request("POST", "/v1/memories/query", body, who=who or self.me)

    def found(self, **body: Any) -> list[str]:
        answer = self.query(**body)
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]]

    def scopes(self, query: str = "") -> list[tuple[str, str, int]]:
        answer = self.service.request("GET", f"/v1/memories/scopes{query}", who=self.me)
        assert answer.status_code == 200, answer.text
        return [
            (item["kind"], item["name"], item["memory_count"]) for item in answer.json()["items"]
        ]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListHarness]:
    with in_process(tmp_path_factory.mktemp("lists")) as service:
        yield ListHarness(service)


def test_a_filter_and_an_offset_cut_the_list_newest_first(house: ListHarness) -> None:
    newest = house.ids[::-1]
    assert house.found() == newest
    assert [
        found for offset in range(0, 8, 4) for found in house.found(limit=4, offset=offset)
    ] == newest
    assert house.found(offset=6) == [] == house.found(offset=1_000_000)
    assert house.query(limit=1).json()["total_count"] == 6
    ada = [house.ids[n] for n in (4, 2, 0)]
    assert house.found(user_id="ada") == ada == house.found(filters={"user_id": "ada"})
    assert house.found(filters={"NOT": {"user_id": {"in": ["ada", "cy"]}}}) == [
        house.ids[5],
        house.ids[1],
    ]


def test_ids_filter_and_never_reach_another_account(house: ListHarness) -> None:
    first, second, *_ = house.ids
    assert house.found(filters={"id": {"in": [first, house.foreign, "mem_nonsense", second]}}) == [
        second,
        first,
    ]
    assert house.found(filters={"AND": [{"id": {"ne": first}}, {"user_id": "ada"}]}) == [
        house.ids[4],
        house.ids[2],
    ]
    assert house.found(filters={"id": house.foreign}) == []
    assert house.query(filters={"id": {"contains": "mem"}}).status_code == 422


@pytest.mark.parametrize(
    "body",
    [{"limit": 0}, {"limit": 101}, {"offset": -1}, {"filters": []}, {"filters": {"colour": "red"}}],
)
def test_what_makes_no_sense_is_refused(house: ListHarness, body: dict[str, Any]) -> None:
    assert house.query(**body).status_code == 422


def test_names_are_counted_and_come_and_go(house: ListHarness) -> None:
    assert house.scopes() == [
        ("user", "cy", 1),
        ("user", "ben", 2),
        ("agent", "butler", 3),
        ("user", "ada", 3),
    ]
    assert house.scopes("?kind=agent") == [("agent", "butler", 3)]
    assert house.scopes("?limit=2&offset=1") == [("user", "ben", 2), ("agent", "butler", 3)]
    short = house.store("gone at once", user_id="dot", app_id="web", run_id="monday")
    assert [entry for entry in house.scopes() if entry[1] in ("dot", "web", "monday")] == [
        ("user", "dot", 1),
        ("app", "web", 1),
        ("run", "monday", 1),
    ]
    house.service.request("DELETE", f"/v1/memories/{short}", who=house.me)
    house.store("past already", user_id="dot", expires_at="2020-01-01")
    assert len(house.scopes()) == 4


# --- distinct values ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListHarness]:
    """Notes with metadata and tags of several kinds beside those of every house."""
    with in_process(tmp_path_factory.mktemp("values")) as service:
        house = ListHarness(service)
        for metadata, tags in (
            ({"room": "kitchen", "n": 1, "deep": {"word": "a.b"}}, ["home", "*"]),
            ({"room": "kitchen", "n": 1.0}, ["home"]),
            ({"room": ["cellar", "kitchen", "cellar"], "n": True}, []),
            ({"room": None, "n": "1"}, ["away"]),
        ):
            house.store("A place.", metadata=metadata, tags=tags, user_id="rooms", title="place")
        yield house


def values(house: ListHarness, field: str, **body: Any) -> list[tuple[Any, int]]:
    asked = {"field": field, **body}
    answer = house.service.request("POST", "/v1/memories/values", asked, who=house.me)
    assert answer.status_code == 200, answer.text
    return [(item["value"], item["count"]) for item in answer.json()["items"]]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("user_id", [("rooms", 4), ("ada", 3), ("ben", 2), ("cy", 1)]),
        ("agent_id", [("butler", 3)]),
        ("app_id", []),
        ("title", [("place", 4)]),
        ("source_type", [("text", 10)]),
        ("tags", [("home", 2), ("*", 1), ("away", 1)]),
        ("conflict_status", [("none", 10)]),
        ("kind", [("note", 10)]),
        ("metadata.room", [("kitchen", 3), ("cellar", 1), (None, 1)]),
        ("metadata.n", [(1, 2), (True, 1), ("1", 1)]),
        ("metadata.deep.word", [("a.b", 1)]),
        ("metadata.deep", []),
        ("metadata.nothing", []),
    ],
)
def test_the_values_of_a_field_are_counted(
    shelf: ListHarness, field: str, expected: list[tuple[Any, int]]
) -> None:
    found = values(shelf, field)
    assert [(type(value), value, count) for value, count in found] == [
        (type(value), value, count) for value, count in expected
    ]


def test_values_are_those_of_what_passes_page_by_page(shelf: ListHarness) -> None:
    assert values(shelf, "metadata.room", filters={"tags": "home"}) == [("kitchen", 2)]
    assert values(shelf, "user_id", filters={"agent_id": "butler"}) == [("ben", 2), ("cy", 1)]
    assert values(shelf, "metadata.room", user_id="ada") == []
    assert values(shelf, "user_id", limit=1, offset=1) == [("ada", 3)]
    assert values(shelf, "tags", limit=2, offset=2) == [("away", 1)]
    asked = {"field": "tags", "limit": 1}
    answer = shelf.service.request("POST", "/v1/memories/values", asked, who=shelf.me)
    assert answer.json()["total_count"] == 3
    other = shelf.service.request("POST", "/v1/memories/values", asked, who=shelf.other)
    assert other.json() == {"items": [], "total_count": 0}


def test_a_star_that_an_operator_names_is_a_text(shelf: ListHarness) -> None:
    assert values(shelf, "metadata.n", filters={"tags": {"eq": "*"}}) == [(1, 1)]
    assert values(shelf, "metadata.n", filters={"tags": {"in": ["*", "away"]}}) == [
        (1, 1),
        ("1", 1),
    ]
    assert len(values(shelf, "metadata.n", filters={"tags": "*"})) == 2


def test_values_are_those_of_one_collection(shelf: ListHarness) -> None:
    made = shelf.service.request("POST", "/v1/collections", {"name": "attic"}, who=shelf.me).json()
    gone = shelf.store("Up there.", collection_id=made["id"], app_id="trunk")
    shelf.store("Down here.", collection_id=made["id"], app_id="floor", expires_at="2020-01-01")
    assert values(shelf, "app_id", collection_id=made["id"]) == [("trunk", 1)]
    shelf.service.request("DELETE", f"/v1/memories/{gone}", who=shelf.me)
    assert values(shelf, "app_id", collection_id=made["id"]) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"field": "content"},
        {"field": "metadata."},
        {"field": "user_id", "limit": 1_001},
        {"field": "user_id", "filters": {"colour": "red"}},
    ],
)
def test_values_of_what_makes_no_sense_are_refused(
    shelf: ListHarness, body: dict[str, Any]
) -> None:
    answer = shelf.service.request("POST", "/v1/memories/values", body, who=shelf.me)
    assert answer.status_code == 422


# --- deleting by a filter -------------------------------------------------------------------------


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[ListHarness]:
    with in_process(tmp_path) as service:
        yield ListHarness(service)


def delete(house: ListHarness, **body: Any) -> Any:
    return house.service.request("POST", "/v1/memories/delete-matching", body, who=house.me)


def test_what_passes_a_filter_is_deleted_and_nothing_else(doomed: ListHarness) -> None:
    kept = doomed.found(user_id="ben")
    answer = delete(doomed, filters={"user_id": ["ada", "cy", "eve"]})
    assert (answer.status_code, answer.json()) == (200, {"deleted": 4})
    assert doomed.found() == kept
    assert delete(doomed, filters={"user_id": "ada"}).json() == {"deleted": 0}
    assert delete(doomed, filters={"NOT": {"user_id": "nobody"}}, agent_id="else").json() == {
        "deleted": 0
    }
    found = doomed.service.request("GET", f"/v1/memories/{doomed.foreign}", who=doomed.other)
    assert found.status_code == 200
    assert doomed.service.request("GET", f"/v1/memories/{kept[0]}", who=doomed.me).is_success
    gone = doomed.service.request("GET", f"/v1/memories/{doomed.ids[0]}", who=doomed.me)
    assert gone.status_code == 404


def test_a_session_narrows_what_is_deleted(doomed: ListHarness) -> None:
    said = [
        doomed.store(f"said on {day}", user_id=who, session_id=day, tags=["history"])
        for day, who in (("monday", "ada"), ("tuesday", "ada"), ("monday", "ben"))
    ]
    asked = {"filters": {"tags": "history"}, "session_id": "monday", "user_id": "ada"}
    assert delete(doomed, **asked).json() == {"deleted": 1}
    assert doomed.found(filters={"tags": "history"}) == [said[2], said[1]]


def test_more_than_one_step_is_deleted_at_once(doomed: ListHarness) -> None:
    batch = [{"content": f"draft {n}", "tags": ["draft"]} for n in range(100)]
    for _ in range(3):
        doomed.service.request("POST", "/v1/memories/batch", {"memories": batch}, who=doomed.me)
    assert delete(doomed, filters={"tags": "draft"}).json() == {"deleted": 300}
    assert len(doomed.found()) == len(PEOPLE)
    totals = doomed.service.request("GET", "/v1/collections/default", who=doomed.me).json()
    assert totals["memory_count"] == len(PEOPLE)


def test_deleting_takes_times_and_long_lists_and_repeats_its_answer(doomed: ListHarness) -> None:
    doomed.store("long ago", occurred_at="2001-01-01", user_id="ada")
    named = [f"nobody-{n}" for n in range(500)]
    assert delete(
        doomed,
        filters={"AND": [{"occurred_at": {"lt": "2002-01-01"}}, {"user_id": ["ada", *named]}]},
    ).json() == {"deleted": 1}
    asked = {"filters": {"user_id": "ada"}}
    first, again = (
        doomed.service.request(
            "POST",
            "/v1/memories/delete-matching",
            asked,
            who=doomed.me,
            **{"Idempotency-Key": "once"},
        )
        for _ in range(2)
    )
    assert first.json() == again.json() == {"deleted": 3}
    assert again.headers["X-Idempotent-Replay"] == "true"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"filters": {}},
        {"user_id": "ada"},
        {"filters": {"colour": "red"}},
        {"filters": {"user_id": "*"}},
        {"filters": {"content": {"contains": "note"}}},
        {"filters": {"NOT": [{"importance": {"gt": 0.9}}]}},
        {"filters": {"title": {"gte": "a"}}},
    ],
)
def test_what_would_delete_too_much_or_take_too_long_is_refused(
    doomed: ListHarness, body: dict[str, Any]
) -> None:
    assert delete(doomed, **body).status_code == 422
    assert len(doomed.found()) == len(PEOPLE)


@pytest.mark.parametrize(
    "filters",
    [
        {"AND": []},
        {"AND": [{}, {"AND": []}]},
        {"OR": [{"user_id": "ada"}, {}]},
        {"NOT": []},
        {"NOT": {"OR": []}},
        {"NOT": {"user_id": []}},
        {"user_id": {}},
        {"user_id": {"nin": []}},
        {"agent_id": {"nin": []}, "OR": [{"tags": {}}], "NOT": {"NOT": {"AND": []}}},
    ],
)
def test_conditions_that_name_nobody_delete_nothing(
    doomed: ListHarness, filters: dict[str, Any]
) -> None:
    refused = delete(doomed, filters=filters)
    assert refused.status_code == 422
    assert refused.json()["error"]["param"] == "body.filters"
    assert delete(doomed, filters=filters, user_id="ada").status_code == 422
    assert len(doomed.found()) == len(PEOPLE)


def test_an_empty_part_of_a_condition_that_narrows_is_no_matter(doomed: ListHarness) -> None:
    for nobody in ({"OR": []}, {"user_id": {"in": []}}, {"NOT": {}}):
        assert delete(doomed, filters=nobody).json() == {"deleted": 0}
    narrowed = {"AND": [{"user_id": "ada"}, {}], "NOT": []}
    assert delete(doomed, filters=narrowed).json() == {"deleted": 3}
