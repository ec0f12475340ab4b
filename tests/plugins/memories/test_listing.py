"""Lists by a filter, and the names that have memories, against a list kept by hand."""

from __future__ import annotations

from collections.abc import Iterator
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
