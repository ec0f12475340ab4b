"""What somebody entered into the graph moves with the account: exported here, imported there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.in_process import InProcess, in_process
from tests.support.transferred import brought, exported

BASE = "/v1/knowledge-graph"
JOBS = [("Acme", "2019-01-01", "2021-01-01"), ("Globex", "2021-01-01", None)]
KEPT = ("type", "attributes", "confidence", "valid_from", "valid_to", "recorded_at", "functional")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    features = {"limits.features": True, "billing.default_tier": "free"}
    with in_process(tmp_path_factory.mktemp("there"), **features) as service:
        yield service


def call(service: InProcess, who: str, method: str, path: str, body: Any = None) -> Any:
    answer = service.request(method, path, body, who=who)
    assert answer.status_code < 300, answer.text
    return answer.json()


def claims(service: InProcess, who: str, entity: str) -> list[dict[str, Any]]:
    found = call(service, who, "GET", f"{BASE}/timeline/{entity}")["items"]
    return [
        {"target": each["target"]["name"], **{name: each[name] for name in KEPT}} for each in found
    ]


@pytest.fixture(scope="module")
def me(here: InProcess) -> str:
    """Somebody who has entered a person with two jobs, and somebody of whom a memory speaks."""
    token = here.register("ada@example.com")
    work = call(here, token, "POST", "/v1/collections", {"name": "work"})["id"]
    person = {
        "name": "Ada", "type": "person", "aliases": ["Countess"], "attributes": {"n": [1, None]},
        "collection_id": work,
    }  # fmt: skip
    call(here, token, "POST", f"{BASE}/entities", person)
    for target, begins, ends in JOBS:
        job = {
            "source": "Ada", "type": "works_at", "target": target, "confidence": 0.75,
            "recorded_at": "2022-02-02", "valid_from": begins, "attributes": {"desk": target},
        }  # fmt: skip
        call(here, token, "POST", f"{BASE}/relationships", {**job, "valid_to": ends})
    said = {"content": "Grace Hopper moved to Arlington."}
    memory = call(here, token, "POST", "/v1/memories/raw", said)["id"]
    moved = {"source": "Grace Hopper", "type": "lives_in", "target": "Arlington"}
    call(here, token, "POST", f"{BASE}/relationships", {**moved, "source_memory_id": memory})
    return token


def test_what_was_entered_is_the_same_elsewhere(here: InProcess, me: str) -> None:
    mine, content = here.register("ada@second.example"), exported(here, me)
    told = brought(here, mine, content)
    assert (told["created"]["entity"], told["created"]["relationship"]) == (3, 3)
    read = [json.loads(line) for line in content.splitlines()]
    derived = [
        line for line in read if line["kind"] == "entity" and not line["record"]["asked_for"]
    ]
    assert len(derived) == told["skipped"]["entity"] == 2
    (lives,) = call(here, mine, "GET", f"{BASE}/entities/Grace Hopper")["relationships"]
    (note,) = call(here, mine, "GET", "/v1/memories")["items"]
    assert (lives["target"]["name"], lives["source_memory_id"]) == ("Arlington", note["id"])
    assert len(claims(here, me, "Ada")) == 2
    assert claims(here, mine, "Countess") == claims(here, me, "Ada")
    (ours,) = [
        line["record"]
        for line in read
        if line["kind"] == "entity" and line["record"]["name"] == "Ada"
    ]
    theirs = call(here, mine, "GET", f"{BASE}/entities/Ada")["entity"]
    for name in ("type", "aliases", "attributes", "first_seen_at", "last_seen_at"):
        assert theirs[name] == ours[name], name
    collections = call(here, mine, "GET", "/v1/collections")["items"]
    (work,) = [each["id"] for each in collections if each["name"] == "work"]
    assert theirs["collection_id"] == work
    again = brought(here, mine, content)
    assert (again["created"]["relationship"], again["known"]["relationship"]) == (0, 3)
    assert (again["created"]["entity"], again["known"]["entity"]) == (0, 3)
    assert len(claims(here, mine, "Ada")) == 2


def test_what_was_taken_back_comes_as_such(here: InProcess, me: str) -> None:
    lines = [json.loads(line) for line in exported(here, me).splitlines()]
    for line in lines:
        if line["kind"] == "relationship" and line["record"]["target"]["name"] == "Acme":
            line["record"]["invalidated_at"] = "2023-03-03T00:00:00.000Z"
    mine = here.register("ada@third.example")
    brought(here, mine, b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1]))
    assert [each["target"] for each in claims(here, mine, "Ada")] == ["Globex"]
    before = {"entity": "Ada", "known_at": "2023-01-01", "valid_at": "2020-01-01"}
    found = call(here, mine, "POST", f"{BASE}/query", before)["relationships"]
    assert [each["target"]["name"] for each in found] == ["Acme"]
    assert call(here, mine, "GET", f"{BASE}/stats")["relationships"] == 2


def test_a_tier_that_may_not_enter_takes_none_in(
    here: InProcess, there: InProcess, me: str
) -> None:
    told = brought(there, there.register("ada@free.example"), exported(here, me))
    assert told["created"]["memory"] == 1
    assert told["known"]["relationship"] == 0
    assert told["created"]["relationship"] == 0 and told["skipped"]["relationship"] == 3


def test_an_end_that_a_memory_gave_goes_with_it_elsewhere_too(here: InProcess) -> None:
    token = here.register("eve@example.com")
    relationship = {"source": "Eve", "type": "lives_in", "target": "Lisbon"}
    call(here, token, "POST", f"{BASE}/relationships", relationship)
    memory = call(here, token, "POST", "/v1/memories/raw", {"content": "Eve has moved."})["id"]
    moved = {"target": "Oslo", "source_memory_id": memory, "close_previous": True}
    call(here, token, "POST", f"{BASE}/relationships", {**relationship, **moved})
    mine = here.register("eve@second.example")
    brought(here, mine, exported(here, token))
    assert [each["valid_to"] is None for each in claims(here, mine, "Eve")] == [False, True]
    (note,) = call(here, mine, "GET", "/v1/memories")["items"]
    call(here, mine, "DELETE", f"/v1/memories/{note['id']}")
    (lisbon,) = claims(here, mine, "Eve")
    assert (lisbon["target"], lisbon["valid_to"]) == ("Lisbon", None)
