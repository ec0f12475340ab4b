"""Dates without a time, and ranges that end before they start, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.over_http import OverHttp, over_http

DAY, BEFORE, AFTER = "2026-05-08", "2026-05-07", "2026-05-09"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverHttp]:
    with over_http(tmp_path_factory.mktemp("days")) as there:
        yield there


@pytest.fixture(scope="module")
def ada(service: OverHttp) -> str:
    who = service.register()
    for day in (BEFORE, DAY, AFTER):
        service.remember(who, f"The note of {day}", occurred_at=f"{day}T14:30:00Z")
    return who


def found(service: OverHttp, who: str, **asked: Any) -> list[str]:
    body = {"query": "the note", "relevance": "all", **asked}
    answer = service.post("/v1/search/advanced", body, who)
    assert answer.status_code == 200, answer.text
    return sorted(hit["occurred_at"][:10] for hit in answer.json()["results"])


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ({"date_range_end": DAY}, [BEFORE, DAY]),
        ({"date_range_start": DAY, "date_range_end": DAY}, [DAY]),
        ({"date_range_start": DAY}, [DAY, AFTER]),
        ({"filters": {"occurred_at": {"lte": DAY}}}, [BEFORE, DAY]),
        ({"filters": {"occurred_at": {"lt": DAY}}}, [BEFORE]),
        ({"filters": {"occurred_at": {"gte": DAY}}}, [DAY, AFTER]),
        ({"filters": {"occurred_at": {"gt": DAY}}}, [DAY, AFTER]),
        ({"filters": {"occurred_at": DAY}}, [DAY]),
        ({"filters": {"occurred_at": {"lte": f"{DAY}T00:00:00Z"}}}, [BEFORE]),
    ],
)
def test_a_date_as_an_end_is_the_whole_day(
    service: OverHttp, ada: str, asked: dict[str, Any], days: list[str]
) -> None:
    assert found(service, ada, **asked) == days


def test_as_of_a_day_is_as_of_its_end(service: OverHttp, ada: str) -> None:
    stored = service.get("/v1/memories", ada).json()["items"]
    today, first = stored[0]["created_at"][:10], stored[-1]["created_at"][:10]
    assert found(service, ada, as_of=today) == [BEFORE, DAY, AFTER]
    assert found(service, ada, as_of=f"{first}T00:00:00Z") == []
    said = {"source": "Ada", "target": "Oslo", "type": "lives_in", "valid_from": f"{DAY}T09:00:00Z"}
    assert service.post("/v1/knowledge-graph/relationships", said, ada).status_code == 201
    for asked, count in (
        ({"valid_at": DAY}, 1),
        ({"valid_at": BEFORE}, 0),
        ({"timestamp": DAY}, 1),
    ):
        query = {"entity": "Ada", **asked, "known_at": "2999-01-01"}
        answer = service.post("/v1/knowledge-graph/query", query, ada).json()
        assert len(answer["relationships"]) == count, asked
    assert answer["valid_at"] == f"{DAY}T23:59:59.999Z"


def test_usage_up_to_today_has_today(service: OverHttp, ada: str) -> None:
    item = service.get("/v1/usage/history", ada).json()["items"][0]
    today = item["period_start"][:10]
    days = service.get(f"/v1/usage/history?from={today}&to={today}", ada).json()["items"]
    assert [day["period_start"] for day in days] == [item["period_start"]]


@pytest.mark.parametrize(
    ("path", "loc"),
    [
        (f"/v1/usage/history?from={AFTER}&to={DAY}", ["query", "to"]),
        (f"/v1/memories?created_after={AFTER}&created_before={DAY}", ["query", "created_before"]),
    ],
)
def test_a_list_that_ends_before_it_starts_is_refused(
    service: OverHttp, ada: str, path: str, loc: list[str]
) -> None:
    answer = service.get(path, ada)
    assert answer.status_code == 422, answer.text
    (finding,) = answer.json()["error"]["details"]
    assert finding["loc"] == loc
    assert finding["msg"].startswith("must ")


def test_a_replay_of_dead_letters_that_ends_before_it_starts_is_refused(
    service: OverHttp, ada: str
) -> None:
    path = "/v1/webhooks/dead-letters/replay"
    answer = service.post(path, {"since": AFTER, "until": DAY}, ada)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["details"][0]["loc"] == ["body", "until"]
    assert service.post(path, {"since": DAY, "until": DAY}, ada).status_code == 202
