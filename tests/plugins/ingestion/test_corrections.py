"""What corrects or takes back the statement before it, over a real shard that reads trees."""

from __future__ import annotations

import pytest

from tests.support.ingestion_harness import JUNE, MARCH, IngestionHarness, kinds

pytestmark = pytest.mark.usefixtures("without_delay")
LATER = "2023-03-01T10:01:00Z"


CORRECTED = [
    ("The piano lesson is on Monday.", "Actually, I meant Tuesday, not Monday.", "UPDATE"),
    ("The piano lesson is on Monday.", "No wait, it's Tuesday.", "UPDATE"),
    ("My dentist is Dr. Okoro.", "Sorry, my dentist is Dr. Okafor, not Dr. Okoro.", "UPDATE"),
    ("My dentist is Dr. Okoro.", "I meant Dr. Okafor, not Dr. Okoro.", "UPDATE"),
    ("My niece's birthday is in March.", "No wait, her birthday is in May.", "UPDATE"),
    ("My flight leaves at noon.", "Scratch that, my flight leaves at two.", "DELETE"),
    ("I have a dog called Pepper.", "Forget that.", "DELETE"),
    ("I have a dog called Pepper.", "Please forget what I said about the dog.", "DELETE"),
]


@pytest.mark.parametrize(("first", "then", "kind"), CORRECTED)
def test_a_correction_supersedes_what_it_corrects(
    reading: IngestionHarness, first: str, then: str, kind: str
) -> None:
    kept = reading.hear(first, session_id="s")["events"][0]["memory_id"]
    event = reading.hear(then, at=LATER, session_id="s")["events"][0]
    assert (event["event"], event["previous_memory_id"]) == (kind, kept)
    assert reading.contents() == [then]
    assert first in reading.contents(include_superseded=True), "nothing is deleted"
    reading("memories.delete", id=event["memory_id"])
    assert reading.contents() == [first], "and it holds again once that is taken back"


@pytest.mark.parametrize(("first", "then", "kind"), CORRECTED)
def test_a_correction_in_the_same_conversation(
    reading: IngestionHarness, first: str, then: str, kind: str
) -> None:
    assert kinds(reading.hear("I live in Oslo.", first, then)) == ["ADD", "ADD", kind]
    assert reading.contents() == sorted(["I live in Oslo.", then])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("The piano lesson is on Monday.", "The bins go out on Tuesday, not Monday."),
        ("The piano lesson is on Monday.", "It rained on Tuesday, not Monday."),
        ("The piano lesson is on Monday.", "I meant Friday, not Thursday."),
        ("My dentist is Dr. Okoro.", "Sorry, my vet is Dr. Okafor, not Dr. Blum."),
        ("My niece's birthday is in March.", "Actually, that's a lovely month for a party."),
        ("My niece's birthday is in March.", "No wait, her party is in May."),
        ("I have a dog called Pepper.", "Don't forget that the vet closes at six."),
        ("I have a dog called Pepper.", "I forget that all the time."),
        ("I have a dog called Pepper.", "Forget what I said about the cat."),
        ("I have a dog called Pepper.", "Forget it, I'm going to bed."),
        ("I have a dog called Pepper.", "I like cats. Scratch that."),
    ],
)
def test_what_corrects_something_else_ends_nothing(
    reading: IngestionHarness, first: str, then: str
) -> None:
    reading.hear(first, session_id="s")
    assert {"UPDATE", "DELETE"}.isdisjoint(kinds(reading.hear(then, at=LATER, session_id="s")))
    assert first in reading.contents()


def test_only_the_statement_directly_before_is_taken_back(reading: IngestionHarness) -> None:
    reading.hear("I live in Oslo.", session_id="s")
    reading.hear("I have a dog called Pepper. I love opera.", at=LATER, session_id="s")
    reading.hear("Forget that.", at=LATER, session_id="s")
    assert reading.contents() == ["Forget that.", "I live in Oslo."]
    assert reading.targets("Ada", "has_pet") == []


@pytest.mark.parametrize("earlier", ["s", "last year"])
def test_what_was_said_once_more_is_what_is_taken_back(
    reading: IngestionHarness, earlier: str
) -> None:
    """Whether it was told first on this occasion or on another."""
    dog, flight, tea = "I have a dog called Pepper.", "My flight leaves at noon.", "I like tea."
    reading.hear(dog, session_id=earlier)
    reading.hear(flight, at=LATER, session_id="s")
    assert kinds(reading.hear(dog, at=MARCH, session_id="s")) == ["NOOP"]
    told = reading.hear("Scratch that.", at=LATER, session_id="s")["events"][0]
    assert (told["event"], told["previous_content"]) == ("DELETE", dog)
    assert reading.contents() == [flight, "Scratch that."]
    reading.hear(tea, at=LATER, session_id=earlier)
    told = reading.hear(flight, tea, "Scratch that.", at=LATER, session_id="t")["events"][-1]
    assert (told["event"], told["previous_content"]) == ("DELETE", tea)
    assert flight in reading.contents()


@pytest.mark.parametrize(
    "further",
    [
        {"session_id": "another", "at": LATER},
        {"user_id": "u2", "at": LATER},
        {"speaker": "Ben", "at": LATER},
        {"at": JUNE},
    ],
)
def test_nothing_of_another_occasion_is_taken_back(
    reading: IngestionHarness, further: dict[str, str]
) -> None:
    reading.hear("I have a dog called Pepper.", at=MARCH)
    assert kinds(reading.hear("Forget that.", **further)) == ["NOOP"]
    assert reading.contents() == ["I have a dog called Pepper."]


def test_what_others_say_too_is_theirs(reading: IngestionHarness) -> None:
    for user in ("u1", "u2"):
        reading.hear("I have a dog called Pepper.", user_id=user)
    reading.hear("Forget that.", at=LATER, user_id="u1")
    assert reading.contents(user_id="u1") == ["Forget that."]
    assert reading.contents(user_id="u2") == ["I have a dog called Pepper."]
