"""Retrievers of other plugins: in hybrid searches, asked alone, and when they fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.api.plugin import Plugin, Retriever
from tests.support.search_harness import AdvancedSearchHarness

CHOICES = (
    "must be one of 'hybrid', 'vector', 'bm25', 'notes.first', 'notes.scored' or 'notes.broken'"
)


def fail(ctx: object, query: str) -> list[int]:
    raise RuntimeError("no such shelf")


NOTES = Plugin(
    "notes",
    retrievers=(
        Retriever("notes.first", lambda ctx, query: [0, 1]),
        Retriever("notes.scored", lambda ctx, query: {2: 0.5, 1: 1.0}, weight=lambda settings: 0.4),
        Retriever("notes.broken", fail, in_hybrid=True),
    ),
)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[AdvancedSearchHarness]:
    harness = AdvancedSearchHarness(tmp_path, further=(NOTES,))
    yield harness
    harness.close()


def test_asked_alone_its_candidates_are_ranked_by_words_and_meaning(
    archive: AdvancedSearchHarness,
) -> None:
    texts = ("a crane", "five tulips", "a crane again")
    crane, tulips, again = map(archive.add, texts)
    asked = {"search_type": "notes.first", "explain": True}
    (hit,) = archive.find("crane", **asked)["results"]
    assert hit["id"] == crane, "what shares nothing with the query does not stand"
    assert hit["explanation"]["lexical"] > 0 and hit["explanation"]["words"] > 0
    weak = archive.ids("crane", include_low_confidence=True, **asked)
    assert weak == [crane, tulips], "and nobody else proposes any"
    assert archive.ids("crane")[0] in (crane, again)


def test_asked_alone_what_it_scores_stands_by_its_score(archive: AdvancedSearchHarness) -> None:
    _, rose, quay = map(archive.add, ("a red crane", "a rose in June", "the quay at noon"))
    found = archive.find("zebra", search_type="notes.scored", explain=True)
    given = [hit["explanation"]["notes.scored"] for hit in found["results"]]
    assert found["evidence_ids"] == [rose, quay] and given == pytest.approx([0.4, 0.2])
    assert found["search_type"] == "notes.scored" and not found["degraded"]
    assert archive.ask("zebra", search_type="notes.scored")["evidence_ids"] == [rose, quay]


def test_one_that_raises_costs_its_own_candidates_and_is_told(
    archive: AdvancedSearchHarness,
) -> None:
    crane = archive.add("a red crane")
    for ask in (archive.find, archive.ask):
        found = ask("red crane")
        assert found["evidence_ids"] == [crane]
        assert found["degraded_reasons"] == ["notes.broken_unavailable"]
        alone = ask("red crane", search_type="notes.broken")
        assert alone["no_match"] and alone["degraded_reasons"] == ["notes.broken_unavailable"]
        assert not ask("red crane", search_type="bm25")["degraded"]


@pytest.mark.parametrize("operation", ["search.search", "search.advanced"])
def test_of_a_type_that_there_is_not_the_types_are_told(
    archive: AdvancedSearchHarness, operation: str
) -> None:
    for kind in ("notes", "graph", ""):
        answer = archive(operation, {"query": "crane", "search_type": kind}, who=archive.me)
        assert answer.status == 422
        (finding,) = answer.body["details"]
        assert finding["loc"] == ["body", "search_type"] and finding["msg"] == CHOICES
