"""What ends what: told later, in other words, over a real shard; and what ends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.inference import MiniLmEmbedder, Models
from tests.support.ingestion_harness import JUNE, IngestionHarness, kinds

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.fixture(params=["patterns", "trees"])
def ingestion(
    request: pytest.FixtureRequest, tmp_path: Path, model: MiniLmEmbedder
) -> Iterator[IngestionHarness]:
    listening = IngestionHarness(tmp_path, Models(model) if request.param == "trees" else None)
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


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [
        ("I get a veg box from a farm every Friday.", "Cancelled the veg box.", "DELETE"),
        ("I'm learning Urdu.", "Gave up on the Urdu in the end.", "DELETE"),
        ("I ride a green bike.", "Sold the bike to a lad off Gumtree.", "DELETE"),
        ("The coverage gate is 82%.", "The coverage gate is 85% now.", "UPDATE"),
        ("The standup is at 9:45.", "The standup is at 10 from tomorrow on.", "UPDATE"),
        ("The offsite is in Asheville.", "The offsite is in Chattanooga now.", "UPDATE"),
        ("I drive a Volvo.", "I drive a Tesla now.", "UPDATE"),
        ("I live with Sam in Oslo.", "I finally moved out.", "DELETE"),
        ("I work at Acme.", "Got fired last week.", "DELETE"),
        ("My line manager's Folasade.", "I report to Gintaras these days.", "UPDATE"),
        ("The standup is at 9:45.", "We moved the standup to Tuesday.", "UPDATE"),
        ("The union meeting is on Friday.", "The union meeting was cancelled.", "DELETE"),
        ("I have a subscription.", "My subscription was cancelled.", "DELETE"),
        ("I'm vegetarian.", "I'm vegan now.", "UPDATE"),
        ("My coach is single.", "My coach got engaged in May.", "UPDATE"),
        ("Nan lives in Bramley.", "Nan has settled into Sycamore Lodge.", "UPDATE"),
        ("My boss is Dana.", "My boss is now Kim.", "UPDATE"),
        ("My doctor is Dr. Okafor.", "My new doctor is Dr. Lund.", "UPDATE"),
        ("My older sister lives in Oslo.", "My older sister moved to Bergen.", "UPDATE"),
        ("Ana is in Oslo.", "Ana came back to Rome.", "UPDATE"),
        ("We have a car.", "We had to sell the car.", "DELETE"),
        ("My cat Biscuit sleeps on the sofa.", "We had to let Biscuit go on Friday.", "DELETE"),
    ],
)
def test_clauses_end_what_they_say_is_over(
    reading: IngestionHarness, first: str, then: str, kind: str
) -> None:
    kept = reading.hear(first)["events"][0]["memory_id"]
    event = reading.hear(then, at=JUNE)["events"][0]
    assert (event["event"], event["previous_memory_id"]) == (kind, kept)
    reading("memories.delete", id=event["memory_id"])
    assert reading.contents() == [first], "and it holds again once that is taken back"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I love my bike.", "Sold the bike."),
        ("I drive a Volvo.", "I drive a Tesla too."),
        ("The standup is at 9:45.", "The standup is in the blue room."),
        ("I smoke a pack a day.", "I quit drinking."),
        ("I work at Acme.", "I got fired in 2010."),
        ("I get a veg box.", "Yasmin cancelled the veg box."),
        ("I get a veg box.", "I might cancel the veg box."),
        ("We have a car and a boat.", "We sold the house."),
        ("The standup is at 9:45.", "We moved the party to Tuesday."),
        ("The union meeting is on Friday.", "The tennis match was cancelled."),
        ("I am vegetarian and allergic to walnuts.", "I'm not vegetarian anymore."),
        ("I live in Oslo and take warfarin every evening.", "I moved to Bergen."),
        ("I work at Acme and report to Dana.", "I now work at Globex."),
        ("I am vegan, diabetic and allergic to nuts.", "I'm not vegan anymore."),
        ("My sister lives in Oslo.", "My other sister lives in Bergen."),
        ("My daughter lives in Oslo.", "My older daughter lives in Bergen."),
        ("My brother works at Acme.", "My younger brother works at Globex."),
        ("My mother lives in Oslo.", "My mother-in-law lives in Bergen."),
        ("My boss is Dana.", "My former boss is Kim."),
        ("My boss is Dana.", "Kim is my former boss."),
        ("My doctor is Dr. Okafor.", "My eye doctor is Dr. Lund."),
        ("I work as a nurse.", "I work as a volunteer firefighter too."),
        ("I live in Oslo during the summer.", "I live in Malaga during the winter."),
        ("I love coffee in the morning.", "I hate coffee in the evening."),
        ("I work at Acme in the mornings.", "I work at Globex in the evenings."),
        (
            "My favourite dish for breakfast is porridge.",
            "My favourite dish for dinner is lasagne.",
        ),
        ("I'm vegetarian.", "Ana is vegan now."),
        ("I'm vegetarian.", "I'm single."),
        ("I play the drums.", "I'm currently playing AC Valhalla."),
        ("I smoke a pack a day.", "I can't stop smoking."),
        ("I smoke a pack a day.", "I never quit smoking."),
        ("Ana lives in Nagoya.", "Ana is in Saitama."),
        ("My cat Biscuit sleeps on the sofa.", "We let Rex go out on Friday."),
    ],
)
def test_clauses_end_nothing_else(reading: IngestionHarness, first: str, then: str) -> None:
    reading.hear(first)
    assert set(kinds(reading.hear(then, at=JUNE))) == {"ADD"}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("We have a car.", "We sold the car."),
        ("The standup is at 9:45.", "The standup is at 10 from tomorrow on."),
    ],
)
def test_what_one_user_ends_holds_for_the_others(
    reading: IngestionHarness, first: str, then: str
) -> None:
    for user in ("u1", "u2", "u3"):
        reading.hear(first, user_id=user)
    gone = reading.hear(then, at=JUNE, user_id="u1")["events"][0]["memory_id"]
    held = {user: reading.contents(user_id=user) for user in ("u1", "u2", "u3", "u4")}
    assert held == {"u1": [then], "u2": [first], "u3": [first], "u4": []}
    event = reading.hear(then, at=JUNE, user_id="u2")["events"][0]
    assert event["event"] in ("DELETE", "UPDATE"), "and each of them can end it"
    reading("memories.delete", id=gone)
    assert [reading.contents(user_id=user) for user in ("u1", "u2")] == [[first], [then]]


def test_what_is_over_for_one_user_begins_for_another(reading: IngestionHarness) -> None:
    reading.hear("We have a car.", user_id="u1")
    reading.hear("We sold the car.", at=JUNE, user_id="u1")
    reading.hear("We have a car.", at=JUNE, user_id="u2")
    event = reading.hear("We sold the car.", at="2023-09-01T10:00:00Z", user_id="u2")["events"][0]
    assert event["event"] == "DELETE", "it held until then"
    assert reading.contents(user_id="u2") == ["We sold the car."]


def test_what_happened_stays_in_its_turn(reading: IngestionHarness) -> None:
    """What relates to nothing that lasts is a fact of the turn, and no memory beside it."""
    said = "I went to Rome last week. I live in Oslo."
    result = reading.hear(said)
    assert (result["facts_extracted"], result["statements"]["facts"]) == (2, 2)
    assert reading.contents() == ["I live in Oslo.", said]
    assert reading.hear(said, at=JUNE)["memories_created"] == 1, "another time it happened anew"
