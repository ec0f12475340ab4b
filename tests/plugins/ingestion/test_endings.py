"""What ends what: told later, in other words, over a real shard; and what ends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ingestion_harness import JUNE, IngestionHarness, kinds

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.fixture
def ingestion(tmp_path: Path) -> Iterator[IngestionHarness]:
    listening = IngestionHarness(tmp_path)
    yield listening
    listening.harness.close()


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [
        ("I live in Lisbon.", "I moved from Lisbon to Oslo.", "UPDATE"),
        (
            "My favourite colour is green.",
            "My favourite colour is now orange, not green any more.",
            "UPDATE",
        ),
        ("I smoke a pack a day.", "I quit smoking.", "DELETE"),
        ("We have a car.", "We sold the car.", "DELETE"),
        ("We own a red Volvo.", "We sold the Volvo.", "DELETE"),
        ("I'm a vegetarian.", "I stopped being a vegetarian.", "DELETE"),
        ("I play the piano.", "I gave up the piano.", "DELETE"),
        ("I'm learning Spanish.", "I stopped learning Spanish.", "DELETE"),
        ("I study at MIT.", "I dropped out of MIT.", "DELETE"),
        ("I love karaoke.", "I don't love karaoke any more.", "DELETE"),
        ("My boss is Kim.", "My new boss is Lee.", "UPDATE"),
        ("My dentist is Dr. Okafor.", "My new dentist is Dr. Lee.", "UPDATE"),
    ],
)
def test_what_is_over_is_superseded(
    ingestion: IngestionHarness, first: str, then: str, kind: str
) -> None:
    kept = ingestion.hear(first)["events"][0]["memory_id"]
    event = ingestion.hear(then, at=JUNE)["events"][0]
    assert (event["event"], event["previous_memory_id"]) == (kind, kept)
    assert ingestion.contents() == [then]
    assert ingestion.contents(include_superseded=True) == sorted([first, then])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("We own a red Volvo. We own a blue Volvo.", "We sold the Volvo."),
        ("We have a car.", "We sold the boat."),
        ("I love karaoke.", "I love opera."),
        ("My boss is Kim.", "My dentist is Dr. Lee."),
        ("My sister smokes.", "I quit smoking."),
        ("I play the piano.", "I stopped playing the cello."),
    ],
)
def test_likeness_alone_ends_nothing(ingestion: IngestionHarness, first: str, then: str) -> None:
    ingestion.hear(first)
    before = ingestion.contents()
    assert set(kinds(ingestion.hear(then, at=JUNE))) == {"ADD"}
    assert set(before) <= set(ingestion.contents())
