"""Searching by the graph: whom a query names, along what held, to the memories that say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.search_advanced import AdvancedBody
from plugins.search_views import SearchBody
from tests.plugins.test_ingestion import JUNE, Ears

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.fixture
def ears(tmp_path: Path) -> Iterator[Ears]:
    listening = Ears(tmp_path)
    listening.hear("My sister Clara plays the cello.", "Clara works at Acme.", "Acme is nice. Bob works at Acme.", "I love karaoke.")
    yield listening
    listening.desk.close()


def found(ears: Ears, **asked: object) -> list[str]:
    return [hit["content"] for hit in ears("search.graph", asked)["results"]]


def test_paths_lead_from_what_is_named_to_what_is_said(ears: Ears) -> None:
    answer = ears("search.graph", {"query": "Where does ada's sister work?", "depth": 2})
    assert answer["grounding"]["subject_anchors"] == ["Ada"] and answer["search_type"] == "graph"
    contents = [hit["content"] for hit in answer["results"]]
    assert set(contents) == {"My sister Clara plays the cello", "Clara works at Acme", "I love karaoke"}
    path = answer["paths"][contents.index("Clara works at Acme")]
    assert [(hop["source"], hop["type"], hop["target"]) for hop in path["hops"]] == [
        ("Ada", "sister", "Clara"),
        ("Clara", "works_at", "Acme"),
    ]
    assert path["memory_id"] == answer["results"][contents.index("Clara works at Acme")]["id"]
    assert {entity["name"] for entity in answer["entities"]} >= {"Ada", "Clara", "Acme"}


def test_depth_bounds_the_way(ears: Ears) -> None:
    assert "Bob works at Acme" not in found(ears, entity="Clara", depth=1)
    assert "Bob works at Acme" in found(ears, entity="Clara", depth=2)


def test_what_nobody_knows_matches_nothing(ears: Ears) -> None:
    answer = ears("search.graph", {"query": "Who is Zacharias?"})
    assert answer["no_match"] and answer["results"] == [] and answer["query_confidence"] == 0
    assert ears.desk("search.graph", {"entity": "Zacharias"}, who=ears.me).status == 404


def test_as_of_follows_what_held_then(ears: Ears) -> None:
    ears.hear("Clara no longer works at Acme.", at=JUNE)
    assert "Bob works at Acme" not in found(ears, entity="Clara", depth=2)
    assert "Bob works at Acme" in found(ears, entity="Clara", depth=2, as_of="2023-04-01")


def test_a_hybrid_search_gets_candidates(ears: Ears) -> None:
    hits = ears("search.search", {"query": "What about Clara?", "search_type": "graph", "include_low_confidence": True})["results"]
    assert {hit["content"] for hit in hits} >= {"Clara works at Acme", "My sister Clara plays the cello"}


def test_a_search_says_whether_it_has_candidates_of_the_graph() -> None:
    def share(body: type[SearchBody], default: float, **asked: Any) -> float:
        return body(query="Clara", **asked).graph_share(default)

    assert [share(SearchBody, 0.5, search_type=kind) for kind in ("graph", "hybrid", "bm25", "vector")] == [1.0, 0.5, 0.0, 0.0]
    asked = {"boosts": {"channels": {"graph": 2}}}
    assert share(AdvancedBody, 0.0, **asked) > 0 == share(AdvancedBody, 0.0) == share(AdvancedBody, 0.0, search_type="bm25", **asked)
    for kind in ("graph", "hybrid"):
        assert share(AdvancedBody, 1.0, search_type=kind, boosts={"channels": {"graph": 0}}) == 0
        assert share(AdvancedBody, 1.0, search_type=kind, boosts={"channels": {"lexical": 0}}) == 1
