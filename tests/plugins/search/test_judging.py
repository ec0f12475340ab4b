"""What a ranking is worth: what stands by late interaction, confidence, and when to abstain."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.search_harness import SearchHarness

LONG = "filler " * 60


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path)
    yield harness
    harness.close()


def meaning(word: str, prefix: str = "other") -> str:
    """Another word whose vector beside other words is that of this one."""
    place = zlib.crc32(word.encode()) % 64
    return next(
        other
        for number in itertools.count()
        if zlib.crc32((other := f"{prefix}{number}").encode()) % 64 == place
    )


@pytest.mark.parametrize("prefix", ["other", "qx"])
def test_one_word_that_means_the_same_makes_a_result_stand(
    library: SearchHarness, prefix: str
) -> None:
    """Its meaning is lost in that of the whole text, but not word by word."""
    asked = meaning("spiders", prefix)
    library.add(LONG)
    assert library.find(asked)["no_match"]
    afraid = library.add(f"Paul fears spiders. {LONG}")
    found = library.find(asked)
    assert found["evidence_ids"] == [afraid] and found["grounding"]["status"] == "grounded"
    assert library.find(asked, fast=True)["no_match"]
    assert library.find(asked, search_type="vector")["no_match"]


def test_a_word_that_comes_less_near_makes_only_the_clear_best_stand(tmp_path: Path) -> None:
    library = SearchHarness(tmp_path, search={"words_min": 0.9})
    asked = f"{meaning('spiders')} pterodactyl"  # half of it is met
    first = library.add(f"Paul fears spiders. {LONG}")
    assert library.ids(asked) == [first]
    library.add(f"Anna likes spiders. {LONG}")
    assert library.find(asked)["no_match"]
    library.close()


def test_what_comes_near_to_a_result_that_stands_by_itself_is_shown_beside_it(
    tmp_path: Path,
) -> None:
    alone = {"cosine_min": 1.0, "words_min": 1.0, "clear_words_min": 1.0}
    library = SearchHarness(tmp_path, search=alone)
    question = "feared spiders"
    near = library.add(f"Paul fed {meaning('spiders')}.")
    far = library.add("Anna bought a car.")
    assert library.find(question)["no_match"]
    stands = library.add("Paul feared nothing else.")
    found = library.find(question)
    assert set(found["evidence_ids"]) == {stands, near}
    assert not any(hit["low_confidence"] for hit in found["results"])
    every = library.find(question, include_low_confidence=True)["results"]
    assert [hit["id"] for hit in every if hit["low_confidence"]] == [far]
    assert library.ids(question, fast=True) == [stands]
    library.close()


def test_little_confidence_is_a_reason_to_abstain_where_the_whole_search_has_it(
    tmp_path: Path,
) -> None:
    library = SearchHarness(tmp_path, search={"abstain_below": 1.0})
    library.add("The spare key is under the flowerpot.")
    for asked in ({}, {"fast": True}):
        answer = library.find("spare key", **asked)
        assert answer["abstain_reason"] == "weak_evidence"
        assert answer["results"] and answer["grounding"]["status"] == "grounded"
    for alone in ("bm25", "vector"):
        assert library.find("spare key", search_type=alone)["abstain_reason"] is None
    library.embedder.down = True
    assert library.find("spare key", filters={})["abstain_reason"] is None
    library.close()


def test_what_the_named_has_said_too_is_no_conflict(library: SearchHarness) -> None:
    library.add("I painted a sunrise over the lake.", speaker="Ann")
    library.add("Paint dries slowly.", speaker="Bob")
    question = "What sunrise did Bob paint over the lake?"
    for fast in (False, True):
        assert library.find(question, fast=fast)["abstain_reason"] == "subject_conflict"
    painted = library.add("I painted a sunrise, and the lake, in my kitchen.", speaker="Bob")
    for fast in (False, True):
        right = library.find(question, fast=fast)
        assert right["evidence_ids"][0] == painted and not right["abstain_recommended"]


def test_many_rare_words_make_surer_and_many_memories_less_sure(tmp_path: Path) -> None:
    """The score is the same, and so are both weights when they are 0."""

    def confidence(directory: Path, others: int, **weights: float) -> float:
        library = SearchHarness(directory, ranking_notes=weights)
        library.add("The spare key is under the flowerpot.")
        for number in range(others):
            library.add(f"Nothing here{number}.")
        found = library.find("spare key under the flowerpot")
        library.close()
        return found["query_confidence"]

    neither = {"confidence_rarity": 0.0, "confidence_searched": 0.0, "confidence_slope": 1.0}
    plain = confidence(tmp_path / "plain", 30, **neither)
    assert confidence(tmp_path / "rare", 30, **{**neither, "confidence_rarity": 0.1}) > plain
    assert confidence(tmp_path / "many", 30, **{**neither, "confidence_searched": 0.1}) < plain
