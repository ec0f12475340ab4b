"""A day is the same however it is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from plugins.search.days import spellings
from tests.support.search_harness import SearchHarness

OTHERS = ["The meeting on 30 August 2026 was moved.", "We met in September 2025 at 9.30."]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path)
    for other in OTHERS:
        harness.add(other)
    yield harness
    harness.close()


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    "written", ["2026-09-30", "30.09.2026", "9/30/2026", "30 September 2026", "Sept 30th, 2026"]
)
def test_a_day_is_found_in_every_spelling_by_every_other(
    library: SearchHarness, written: str, fast: bool
) -> None:
    lease = library.add(f"The lease ends on {written}.")
    for asked in ("2026-09-30", "30 September 2026", "September 30, 2026", "09/30/2026"):
        assert library.ids(asked, fast=fast)[0] == lease
        assert library.ids(f"What ends on {asked}?", search_type="bm25")[0] == lease


def test_a_day_of_another_collection_is_not_found(library: SearchHarness) -> None:
    other = library("collections.create", {"name": "other"}, who=library.me).body["id"]
    library.add("The lease ends on 2026-09-30.", collection_id=other)
    answer = library.find("30 September 2026", collection_id=other)
    assert answer["total"] == 1
    shown = library.find("30 September 2026", filters={"NOT": {"collection_id": other}})
    assert all(hit["content"] in OTHERS for hit in shown["results"])


def test_of_a_day_up_to_the_twelfth_the_first_number_is_the_month() -> None:
    written = set(spellings(date(2026, 3, 4)))
    assert {frozenset(["3/4/2026"]), frozenset(["03.04.2026"])} <= written
    assert frozenset(["4/3/2026"]) not in written
    assert {frozenset(["30.9.2026"]), frozenset(["30", "sept", "2026"])} <= set(
        spellings(date(2026, 9, 30))
    )


HAPPENED = {
    "Met Lucia at the Prado.": "2025-11-03T09:00:00Z",
    "Paid the plumber.": "2025-11-20T09:00:00Z",
    "Signed for the flat in Ghent.": "2019-05-10T09:00:00Z",
}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("who was seen on 3 November?", "Met Lucia at the Prado."),
        ("2025-11-03", "Met Lucia at the Prado."),
        ("what was done on November 20, 2025?", "Paid the plumber."),
        ("what was done in May 2019?", "Signed for the flat in Ghent."),
        ("what was done in 2019?", "Signed for the flat in Ghent."),
        ("what was done on 24 December 2025?", None),
    ],
)
def test_what_happened_then_is_found_whatever_its_words(
    tmp_path: Path, asked: str, found: str | None
) -> None:
    harness = SearchHarness(tmp_path)
    for told, at in HAPPENED.items():
        harness.add(told, occurred_at=at)
    results = [hit["content"] for hit in harness.find(asked)["results"]]
    assert results[:1] == ([] if found is None else [found])
    harness.close()
