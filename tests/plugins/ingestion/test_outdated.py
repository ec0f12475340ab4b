"""Of a turn that says several things, what has been superseded is told apart from what stands."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from plugins.answers.prompt import to_prompt, with_successors
from tests.support.over_http import OverHttp, over_http

TOLD = "I live in Pisa. My cat is called Momo and sleeps all day on the piano."
OVER = "I live in Pisa."
ASKED = {"query": "Where do I live? In Pisa?", "limit": 10}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverHttp]:
    with over_http(tmp_path_factory.mktemp("outdated")) as service:
        yield service


@pytest.fixture
def me(service: OverHttp, request: pytest.FixtureRequest) -> str:
    """Who said where they live, with something else, and then that they moved."""
    me = service.register(f"{abs(hash(request.node.nodeid))}@example.com")
    say(service, me, TOLD, "2023-03-01T10:00:00Z")
    say(service, me, "I moved to Siena.", "2023-06-10T10:00:00Z")
    return me


def say(service: OverHttp, me: str, said: str, at: str) -> None:
    message = {"role": "user", "name": "Ada", "content": said}
    body = {"messages": [message], "occurred_at": at}
    answer = service.post("/v1/memories/process", body, me, Prefer="wait=30")
    assert answer.json()["status"] == "completed", answer.text
    service.settle()


def found(service: OverHttp, me: str, **given: Any) -> list[dict[str, Any]]:
    return service.post("/v1/search", {**ASKED, **given}, me).json()["results"]


def first_turn(service: OverHttp, me: str, **given: Any) -> dict[str, Any]:
    """The turn, as a search shows it."""
    (turn,) = (each for each in found(service, me, **given) if each["content"] == TOLD)
    return turn


@pytest.mark.parametrize("view", ["full", "compact"])
def test_a_search_tells_what_of_a_turn_is_over(service: OverHttp, me: str, view: str) -> None:
    (over,) = first_turn(service, me, view=view)["outdated"]
    assert TOLD[over["start"] : over["end"]] == OVER
    fact = service.get(f"/v1/memories/{over['fact_id']}", me).json()
    newer = over["superseded_by"]
    assert (fact["content"], fact["superseded_by_id"]) == (OVER, newer["id"])
    assert (newer["content"], newer["speaker"]) == ("I moved to Siena.", "Ada")
    assert newer["occurred_at"].startswith("2023-06-10")
    others = [each for each in found(service, me, view=view) if "outdated" in each]
    assert [each["content"] for each in others] == [TOLD]


def test_what_was_said_last_is_told(service: OverHttp, me: str) -> None:
    say(service, me, "I moved to Rome.", "2023-09-10T10:00:00Z")
    (over,) = first_turn(service, me)["outdated"]
    assert over["superseded_by"]["content"] == "I moved to Rome."


def test_what_was_known_before_knows_nothing_of_it(service: OverHttp, me: str) -> None:
    now = service.get("/v1/memories?include_superseded=true", me).json()["items"][0]["created_at"]
    later = (datetime.fromisoformat(now) + timedelta(minutes=1)).isoformat()
    assert "outdated" not in first_turn(service, me, as_of=later)


def test_what_is_over_is_not_quoted(service: OverHttp, me: str) -> None:
    answer = service.post("/v1/search/reason", {"query": "Where do I live?"}, me).json()
    (cited,) = answer["citations"]
    assert "Siena" in answer["answer"] and "Siena" in cited["quote"]
    assert cited["memory_id"] in answer["evidence_ids"]


def test_what_is_over_is_not_laid_out(service: OverHttp, me: str) -> None:
    asked = {"query": "Where do I live, and what is my cat called?"}
    block = service.post("/v1/context", asked, me).json()
    assert "Momo" in block["context"] and "Pisa" not in block["context"]


def test_it_holds_again_when_what_superseded_it_is_gone(service: OverHttp, me: str) -> None:
    (over,) = first_turn(service, me)["outdated"]
    service.post("/v1/memories/bulk-delete", {"ids": [over["superseded_by"]["id"]]}, me)
    service.settle()
    assert "outdated" not in first_turn(service, me)


def test_a_model_is_told_what_is_over() -> None:
    at = "2023-03-01T10:00:00Z"
    newer = {"id": "mem_3", "content": "I moved to Siena.", "occurred_at": at, "speaker": "Ada"}
    over = {"start": 0, "end": len(OVER), "fact_id": "mem_2", "superseded_by": newer}
    memory = {"id": "mem_1", "content": TOLD, "occurred_at": at, "speaker": "Ada"}
    hit = {**memory, "score": 1.0, "normalized_score": 0.5, "outdated": [over]}
    assert [each["id"] for each in with_successors([hit])] == ["mem_1", "mem_3"]
    assert [each["id"] for each in with_successors([hit, {**hit, **newer}])] == ["mem_1", "mem_3"]
    told = to_prompt(hit)
    assert (told["text"], told["no_longer_true"]) == (TOLD, [OVER])
    assert "no_longer_true" not in to_prompt(memory)
