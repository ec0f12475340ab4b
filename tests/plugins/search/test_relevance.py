"""How far below the best result others may stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.search.ranking import SCORE_GAPS, SEVERAL_GAP, asks_several
from tests.support.search_harness import AdvancedSearchHarness

QUESTION = "Does the lighthouse keeper paint boats in autumn?"


@pytest.fixture
def library(tmp_path: Path) -> Iterator[AdvancedSearchHarness]:
    harness = AdvancedSearchHarness(tmp_path)
    harness.add("The lighthouse keeper paints boats in autumn.")
    harness.add("The keeper paints in autumn.")
    harness.add("There is a lighthouse, and boats.")
    harness.add("In autumn we pick apples in the garden behind the house.")
    harness.add("Two boats went by.")
    yield harness
    harness.close()


@pytest.mark.parametrize("asked", ["strict", "balanced", "all"])
def test_results_stand_within_the_gap_below_the_best(
    library: AdvancedSearchHarness, asked: str
) -> None:
    every = library.find(QUESTION, relevance="all")["results"]
    best = every[0]["score"]
    kept = [hit["id"] for hit in every if hit["score"] >= best - SCORE_GAPS[asked]]
    answer = library.find(QUESTION, relevance=asked)
    assert answer["evidence_ids"] == kept and answer["total"] == len(kept)
    paged = library.find(QUESTION, relevance=asked, offset=1, limit=1)
    assert paged["evidence_ids"] == kept[1:2] and paged["total"] == len(kept)


def test_each_level_keeps_more_and_balanced_is_the_default(
    library: AdvancedSearchHarness,
) -> None:
    strict, balanced, every = (
        library.ids(QUESTION, relevance=asked) for asked in ("strict", "balanced", "all")
    )
    assert len(strict) < len(balanced) < len(every)
    assert library.ids(QUESTION) == balanced
    assert library.ids(QUESTION, include_low_confidence=True)[: len(every)] == every


def test_a_question_for_several_things_keeps_more(library: AdvancedSearchHarness) -> None:
    asked = QUESTION.replace("boats", "all boats")
    every = library.find(asked, relevance="all")["results"]
    best = every[0]["score"]
    kept = [hit["id"] for hit in every if hit["score"] >= best - SEVERAL_GAP]
    assert library.ids(asked) == library.ids(asked, relevance="balanced") == kept
    assert len(kept) > len(library.ids(QUESTION))
    assert len(library.ids(asked, relevance="strict")) == len(
        library.ids(QUESTION, relevance="strict")
    )


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("Which books has she read?", True),
        ("what kinds of pastries did they bake", True),
        ("What has Paul painted?", True),
        ("Where have we been?", True),
        ("How many plants did I buy?", True),
        ("What do Ann and Bob both like?", True),
        ("What does James paint?", False),
        ("What is his dog's name?", False),
        ("What bus is it?", False),
        ("Which this is", False),
        ("What has to be done?", False),
        ("When did she leave?", False),
    ],
)
def test_what_asks_for_several_things(question: str, several: bool) -> None:
    assert asks_several(question) is several


def test_an_installation_has_its_own_default(tmp_path: Path) -> None:
    library = AdvancedSearchHarness(tmp_path, search={"relevance": "all"})
    library.add("The lighthouse keeper paints boats in autumn.")
    library.add("In autumn we pick apples in the garden behind the house.")
    assert len(library.ids(QUESTION)) == 2 and len(library.ids(QUESTION, relevance="strict")) == 1
    library.close()


def test_whoever_orders_results_anew_is_given_all_of_them(library: AdvancedSearchHarness) -> None:
    every = set(library.ids(QUESTION, relevance="all"))
    assert set(library.order(QUESTION, diversity=0.5)) == every
    assert set(library.order(QUESTION)) < every
    assert set(library.order(QUESTION, diversity=0.5, relevance="strict")) < every


@pytest.mark.parametrize("nothing", [{}, {"importance": 0, "tags": {}}, {"colour": 2}])
def test_boosts_that_boost_nothing_change_nothing(
    library: AdvancedSearchHarness, nothing: dict[str, Any]
) -> None:
    plain = library.ask(QUESTION)
    assert library.ask(QUESTION, boosts={"importance": 0.1})["total"] > plain["total"]
    answer = library.ask(QUESTION, boosts=nothing)
    assert answer["results"] == plain["results"] and answer["total"] == plain["total"]
