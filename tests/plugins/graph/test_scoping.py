"""A search by the graph that is asked for some memories alone, over HTTP: of others' neither what
they say nor whom they speak of.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.graph.limits import MEMORIES_PER_ENTITY_MAX
from tests.support.in_process import InProcess

SAID = {
    "c1": ("Anna works at Acme.", "Acme"),
    "c2": ("Anna works at Bolt.", "Bolt"),
    "c3": ("Anna works at Cargo.", "Cargo"),
}
SCOPES = ("user_id", "agent_id", "run_id", "app_id", "session_id")


class Graph:
    """An account with three end users who each know an Anna of another employer."""

    def __init__(self, directory: Path):
        self.service = InProcess(directory)
        self.me = self.service.register("ada@example.com")
        self.ids: dict[str, str] = {}
        for user, (content, employer) in SAID.items():
            scopes = {name: user if name == "user_id" else f"{name}-{user}" for name in SCOPES}
            memory = {"content": content, "metadata": {"team": user}, "wait_for_index": True}
            self.ids[user] = self.ask("POST", "/memories", {**memory, **scopes})["id"]
            self.claim("Anna", "works_at", employer, self.ids[user])

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.service.request(method, f"/v1{path}", body, who=self.me)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def claim(self, source: str, type: str, target: str, memory: str | None = None) -> None:
        claim = {"source": source, "type": type, "target": target, "source_memory_id": memory}
        self.ask("POST", "/knowledge-graph/relationships", claim)

    def search(self, **asked: Any) -> Any:
        return self.ask("POST", "/search/graph", asked)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    graph = Graph(tmp_path)
    yield graph
    graph.service.close()


def contents(answer: Any) -> set[str]:
    return {hit["content"] for hit in answer["results"]}


def names(answer: Any) -> set[str]:
    return {entity["name"] for entity in answer["entities"]}


def targets(answer: Any) -> set[str]:
    return {claim["target"]["name"] for claim in answer["relationships"]}


@pytest.mark.parametrize(
    "asked",
    [
        *({name: "c1" if name == "user_id" else f"{name}-c1"} for name in SCOPES),
        {"filters": {"user_id": "c1"}},
        {"filters": {"metadata.team": "c1"}},
        {"user_id": "c1", "depth": 5},
    ],
)
def test_a_scope_is_left_by_nothing_that_is_given(graph: Graph, asked: dict[str, Any]) -> None:
    everything = graph.search(query="What about Anna?")
    assert contents(everything) == {content for content, _ in SAID.values()}
    answer = graph.search(query="What about Anna?", **asked)
    assert contents(answer) == {SAID["c1"][0]}
    assert names(answer) == {"Anna", "Acme"} and targets(answer) == {"Acme"}
    assert {path["memory_id"] for path in answer["paths"]} == {graph.ids["c1"]}


def test_an_entity_of_others_alone_is_none(graph: Graph) -> None:
    assert graph.search(query="Who works at Bolt?", user_id="c1")["no_match"]
    refused = graph.service.request(
        "POST", "/v1/search/graph", {"entity": "Bolt", "user_id": "c1"}, who=graph.me
    )
    assert refused.status_code == 404
    assert contents(graph.search(entity="Bolt", user_id="c2")) == {SAID["c2"][0]}


def test_what_was_made_without_a_memory_is_everybodys(graph: Graph) -> None:
    graph.claim("Anna", "knows", "Zelda")
    answer = graph.search(entity="Zelda", user_id="c1", depth=2)
    assert names(answer) == {"Zelda", "Anna", "Acme"} and targets(answer) == {"Zelda", "Acme"}
    assert contents(answer) == {SAID["c1"][0]}


def test_a_claim_of_several_names_a_source_of_the_scope(graph: Graph) -> None:
    graph.claim("Anna", "works_at", "Acme", graph.ids["c3"])
    for user in ("c1", "c3"):
        claims = graph.search(query="Anna", user_id=user)["relationships"]
        sources = [each["source_memory_id"] for each in claims if each["target"]["name"] == "Acme"]
        assert sources == [graph.ids[user]]


def test_what_others_said_since_hides_nothing(graph: Graph) -> None:
    for number in range(MEMORIES_PER_ENTITY_MAX + 1):
        said = {"content": f"Anna came {number} times.", "user_id": "c2", "wait_for_index": True}
        memory = graph.ask("POST", "/memories", said)["id"]
        graph.claim("Anna", "knows", "Bolt", memory)
    assert SAID["c1"][0] in contents(graph.search(query="Anna", user_id="c1"))


@pytest.mark.parametrize(
    "asked", [{"user_id": ""}, {"filters": {"nothing": {"is": 1}}}, {"session_id": 3}]
)
def test_a_scope_that_is_none_is_refused(graph: Graph, asked: dict[str, Any]) -> None:
    for path in ("/v1/search/graph", "/v1/search"):
        body = {"query": "Anna", **asked}
        assert graph.service.request("POST", path, body, who=graph.me).status_code == 422
