"""What conversations taught moves with the account: the same graph and profiles elsewhere, which
behave as they did.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.in_process import InProcess
from tests.support.ingestion_harness import JUNE, MARCH
from tests.support.transferred import brought, exported

GRAPH = "/v1/knowledge-graph"
OWN = frozenset(["id", "collection_id", "updated_at", "source_memory_id", "evidence_memory_ids"])
APRIL = "2023-04-01T10:00:00Z"
TALKS = (
    (MARCH, "My name is Mira.", "I live in Lisbon.", "I work at Farfetch.", "I love karaoke."),
    (JUNE, "I moved to Oslo.", "My sister Ana works at Globex.", "I no longer like karaoke."),
)


def call(service: InProcess, who: str, method: str, path: str, body: Any = None) -> Any:
    answer = service.request(method, path, body, who=who)
    assert answer.status_code < 300, answer.text
    return answer.json()


def listener(here: InProcess, email: str) -> str:
    """Somebody who was told of a life, and of what changed in it."""
    token = here.register(email)
    for at, *said in TALKS:
        messages = [{"role": "user", "name": "mira", "content": text} for text in said]
        body = {"messages": messages, "occurred_at": at, "user_id": "mira"}
        call(here, token, "POST", "/v1/memories/process", body)
        here.settle()
    return token


def bare(value: Any) -> Any:
    """Without what each account has of its own."""
    if isinstance(value, dict):
        return {name: bare(each) for name, each in value.items() if name not in OWN}
    return [bare(each) for each in value] if isinstance(value, list) else value


def known(service: InProcess, who: str) -> dict[str, Any]:
    """What can be asked of the graph and of the profile."""
    service.settle()
    entities = call(service, who, "GET", f"{GRAPH}/entities?limit=100")["items"]
    asked = [{}, {"valid_at": APRIL}, {"valid_at": APRIL, "known_at": APRIL}]
    found = {
        "entities": sorted(bare(entities), key=lambda each: (each["name"], each["type"])),
        "profile": bare(call(service, who, "GET", "/v1/profile?user_id=mira")),
        "stats": bare(call(service, who, "GET", f"{GRAPH}/stats")),
        "contradictions": bare(call(service, who, "GET", f"{GRAPH}/contradictions")["items"]),
    }
    for entity in ("mira", "Ana"):
        line = call(service, who, "GET", f"{GRAPH}/timeline/{entity}")["items"]
        found[f"timeline of {entity}"] = bare(line)
        for number, when in enumerate(asked):
            answer = call(service, who, "POST", f"{GRAPH}/query", {"entity": entity, **when})
            names = sorted(
                (each["type"], each["target"]["name"]) for each in answer["relationships"]
            )
            found[f"{entity} {number}"] = names
    return found


def memory_of(service: InProcess, who: str, content: str) -> dict[str, Any]:
    listed = call(service, who, "GET", "/v1/memories?limit=100&include_superseded=true")["items"]
    (found,) = (each for each in listed if each["content"] == content)
    return found


def test_graph_and_profile_are_the_same_elsewhere(here: InProcess, there: InProcess) -> None:
    me = listener(here, "ada@example.com")
    content = exported(here, me)
    mine = there.register("ada@elsewhere.example")
    before = call(there, mine, "GET", "/v1/usage")["credits"]["used"]
    told = brought(there, mine, content)
    paid = call(there, mine, "GET", "/v1/usage")["credits"]["used"] - before
    assert paid == told["created"]["memory"], "what memories say comes with them"
    expected = known(here, me)
    assert expected["timeline of mira"] and expected["profile"]["static"]
    assert known(there, mine) == expected
    again = brought(there, mine, content)["created"]
    assert {
        kind: again[kind] for kind in ("fact", "relationship", "entity", "succession")
    } == dict.fromkeys(("fact", "relationship", "entity", "succession"), 0)
    assert known(there, mine) == expected


def test_what_was_brought_is_ended_and_holds_again_as_it_did(
    here: InProcess, there: InProcess
) -> None:
    accounts = [(here, listener(here, "bo@example.com")), (there, there.register("bo@b.example"))]
    (_, me), (_, mine) = accounts
    brought(there, mine, exported(here, me))
    there.settle()
    for service, who in accounts:
        moved = memory_of(service, who, "I moved to Oslo.")
        call(service, who, "DELETE", f"/v1/memories/{moved['id']}")
        assert memory_of(service, who, "I live in Lisbon.")["conflict_status"] == "none"
    assert known(there, mine) == known(here, me)
    for service, who in accounts:
        said = [{"role": "user", "name": "mira", "content": "I work at Initech now."}]
        body = {"messages": said, "user_id": "mira"}
        call(service, who, "POST", "/v1/memories/process", body)
        service.settle()
        assert memory_of(service, who, "I work at Farfetch.")["conflict_status"] == "superseded"


def test_what_a_memory_said_before_it_was_edited_does_not_come_back(
    here: InProcess, there: InProcess
) -> None:
    me, mine = listener(here, "cy@example.com"), there.register("cy@elsewhere.example")
    content = exported(here, me)
    memories = [line for line in content.splitlines(True) if json.loads(line)["kind"] != "manifest"]
    brought(there, mine, b"".join(memories))
    there.settle()
    edited = memory_of(there, mine, "I work at Farfetch.")
    call(there, mine, "PATCH", f"/v1/memories/{edited['id']}", {"content": "I work at Initech."})
    there.settle()
    brought(there, mine, content)
    there.settle()
    jobs = call(
        there, mine, "POST", f"{GRAPH}/query", {"entity": "mira", "relation_type": "works_at"}
    )
    assert [each["target"]["name"] for each in jobs["relationships"]] == ["Initech"]
