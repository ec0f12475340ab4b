"""Searching by the graph: whom a query names, along what held, to the memories that say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.search import SEARCH_COMPLETED
from plugins.search.advanced import AdvancedBody
from plugins.search.models import SearchBody
from runtime.api.plugin import Plugin, Retriever
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.graph_harness import PLUGINS
from tests.support.ingestion_harness import JUNE, IngestionHarness
from tests.support.shard_harness import ShardHarness

pytestmark = pytest.mark.usefixtures("without_delay")


BOB = "Acme is nice. Bob works at Acme."


@pytest.fixture
def ingestion(tmp_path: Path) -> Iterator[IngestionHarness]:
    listening = IngestionHarness(tmp_path)
    listening.hear(
        "My sister Clara plays the cello.",
        "Clara works at Acme.",
        BOB,
        "I love karaoke.",
    )
    yield listening
    listening.harness.close()


def found(ingestion: IngestionHarness, **asked: object) -> list[str]:
    return [hit["content"] for hit in ingestion("search.graph", asked)["results"]]


def test_paths_lead_from_what_is_named_to_what_is_said(ingestion: IngestionHarness) -> None:
    answer = ingestion("search.graph", {"query": "Where does ada's sister work?", "depth": 2})
    assert answer["grounding"]["subject_anchors"] == ["Ada"] and answer["search_type"] == "graph"
    contents = [hit["content"] for hit in answer["results"]]
    assert set(contents) == {
        "My sister Clara plays the cello.",
        "Clara works at Acme.",
        "I love karaoke.",
    }
    path = answer["paths"][contents.index("Clara works at Acme.")]
    assert [(hop["source"], hop["type"], hop["target"]) for hop in path["hops"]] == [
        ("Ada", "sister", "Clara"),
        ("Clara", "works_at", "Acme"),
    ]
    assert path["memory_id"] == answer["results"][contents.index("Clara works at Acme.")]["id"]
    assert {entity["name"] for entity in answer["entities"]} >= {"Ada", "Clara", "Acme"}


def test_depth_bounds_the_way(ingestion: IngestionHarness) -> None:
    assert BOB not in found(ingestion, entity="Clara", depth=1)
    assert BOB in found(ingestion, entity="Clara", depth=2)


def test_what_nobody_knows_matches_nothing(ingestion: IngestionHarness) -> None:
    answer = ingestion("search.graph", {"query": "Who is Zacharias?"})
    assert answer["no_match"] and answer["results"] == [] and answer["query_confidence"] == 0
    assert (
        ingestion.harness("search.graph", {"entity": "Zacharias"}, who=ingestion.me).status == 404
    )


def test_as_of_follows_what_held_then(ingestion: IngestionHarness) -> None:
    ingestion.hear("Clara no longer works at Acme.", at=JUNE)
    assert BOB not in found(ingestion, entity="Clara", depth=2)
    assert BOB in found(ingestion, entity="Clara", depth=2, as_of="2023-04-01")


def test_a_hybrid_search_gets_candidates(ingestion: IngestionHarness) -> None:
    hits = ingestion(
        "search.search",
        {"query": "What about Clara?", "search_type": "graph", "include_low_confidence": True},
    )["results"]
    assert {hit["content"] for hit in hits} >= {
        "Clara works at Acme.",
        "My sister Clara plays the cello.",
    }


def test_a_search_says_whether_it_has_candidates_of_the_graph() -> None:
    in_hybrid, on_demand = (Retriever("graph", list, in_hybrid=asked) for asked in (True, False))

    def asks(body: type[SearchBody], retriever: Retriever, **asked: Any) -> bool:
        return body(query="Clara", **asked).asks(retriever)

    kinds = ("graph", "hybrid", "bm25", "vector")
    for retriever, hybrid in ((in_hybrid, True), (on_demand, False)):
        asked = [asks(SearchBody, retriever, search_type=kind) for kind in kinds]
        assert asked == [True, hybrid, False, False]
    boosts = {"boosts": {"channels": {"graph": 2}}}
    assert asks(AdvancedBody, on_demand, **boosts)
    assert not asks(AdvancedBody, on_demand)
    assert not asks(AdvancedBody, on_demand, search_type="bm25", **boosts)
    for kind in ("graph", "hybrid"):
        none, others = ({"channels": {name: 0}} for name in ("graph", "lexical"))
        assert not asks(AdvancedBody, in_hybrid, search_type=kind, boosts=none)
        assert asks(AdvancedBody, in_hybrid, search_type=kind, boosts=others)


def test_it_is_told_of_as_the_search_that_it_is(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    ear = Plugin(
        name="ear",
        subscribe={
            SEARCH_COMPLETED.kind: lambda ctx, event_id, kind, data, id_: heard.append(data)
        },
        audience=lambda ctx, kind: True,
    )
    harness = ShardHarness(tmp_path, (*PLUGINS, ear), Models(WordEmbedder()))
    try:
        me = harness.register()
        memory = harness("memories.create", {"content": "Ada knows Charles."}, who=me).body["id"]
        claim = {"source": "Ada", "type": "knows", "target": "Charles", "source_memory_id": memory}
        harness("graph.relationships.create", claim, who=me)
        found = harness("search.graph", {"entity": "Ada"}, who=me).body["evidence_ids"]
        harness.until(lambda: bool(heard))
    finally:
        harness.close()
    assert (heard[0]["search_type"], heard[0]["top_ids"]) == ("graph", found) and found == [memory]
