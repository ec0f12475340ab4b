"""What took the place of what, and what parted whom, told later, over a real shard that reads
trees; and what only looks like it.
"""

from __future__ import annotations

import pytest

from tests.support.ingestion_harness import JUNE, IngestionHarness, kinds

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [
        ("I live in Lisbon.", "We relocated to Oslo.", "UPDATE"),
        ("I'm married to Sam.", "We got divorced.", "DELETE"),
        ("I'm married to Sam.", "Sam and I got divorced.", "DELETE"),
        ("Sam is my girlfriend.", "Sam and I broke up.", "DELETE"),
        ("Lars is my boyfriend.", "Lars left me for Eva.", "DELETE"),
        ("I'm engaged to Lars.", "We called off the engagement.", "DELETE"),
        ("I work at Siemens as a nurse.", "I retired in April.", "DELETE"),
        ("I work at Siemens as a nurse.", "I left Siemens after eleven years.", "DELETE"),
        ("I work at Siemens as a nurse.", "I quit my job!", "DELETE"),
        ("I work at Siemens.", "I left my job at Siemens.", "DELETE"),
        ("I work at Siemens.", "I got laid off yesterday.", "DELETE"),
        ("I work at Siemens.", "They fired me this morning.", "DELETE"),
        ("I work at Siemens.", "I was let go yesterday.", "DELETE"),
        ("I work at Siemens.", "I was made redundant.", "DELETE"),
        ("I love coffee.", "I can't stand coffee anymore.", "UPDATE"),
        ("I love coffee.", "I've gone off coffee.", "DELETE"),
        ("I have a dog called Biscuit.", "My dog died last night.", "DELETE"),
        ("We run Postgres 14.", "We upgraded to Postgres 16.", "UPDATE"),
        ("Our database is Postgres 14.", "We upgraded to Postgres 16.", "UPDATE"),
        ("I own a flat in Leith.", "We sold the flat in Leith.", "DELETE"),
        ("Staging listens on port 8080.", "I moved staging to port 9090.", "UPDATE"),
        ("Production runs on Ubuntu 20.04.", "Production now runs on Ubuntu 24.04.", "UPDATE"),
        ("The on-call lead is Mei.", "The on-call lead is Arjun now.", "UPDATE"),
        ("I'm a member of the climbing club.", "I left the climbing club.", "DELETE"),
        ("I'm studying law.", "I dropped out of law school.", "DELETE"),
        ("I use a Pixel.", "I traded my Pixel in.", "DELETE"),
        ("I have a cello.", "I'm glad I sold the cello.", "DELETE"),
        ("I use Vim on my laptop.", "I stopped using Vim.", "DELETE"),
        ("Ana lives in Porto.", "Ana moved to Madrid in March.", "UPDATE"),
        ("I use Vim.", "I switched from Vim to Helix.", "UPDATE"),
        ("My editor is Vim.", "I switched from Vim to Helix.", "UPDATE"),
        ("We use Jenkins for builds.", "We migrated from Jenkins to GitHub Actions.", "UPDATE"),
        ("We use Jenkins for builds.", "We replaced Jenkins with Buildkite.", "UPDATE"),
        ("We deploy with Ansible.", "We stopped using Ansible.", "DELETE"),
        ("The timeout is 30 seconds.", "We raised the timeout to 60 seconds.", "UPDATE"),
        (
            "The staging password is hunter-seven.",
            "I changed the staging password to maple-forty.",
            "UPDATE",
        ),
        ("The primary region is eu-west-1.", "The primary region is eu-central-1.", "UPDATE"),
        ("My sister Ana lives in Porto.", "My sister Ana moved to Madrid.", "UPDATE"),
        ("My sister Ana lives in Porto.", "Ana moved to Madrid.", "UPDATE"),
        ("My favorite color is teal.", "My favourite colour is orange.", "UPDATE"),
        ("I live in Oslo.", "I moved to Norway.", "UPDATE"),
    ],
)
def test_what_took_its_place_supersedes_it(
    reading: IngestionHarness, first: str, then: str, kind: str
) -> None:
    kept = reading.hear(first)["events"][0]["memory_id"]
    event = reading.hear(then, at=JUNE)["events"][0]
    assert (event["event"], event["previous_memory_id"]) == (kind, kept)
    assert reading.contents(include_superseded=True) == sorted([first, then])
    reading("memories.delete", id=event["memory_id"])
    assert reading.contents() == [first], "and it holds again once that is taken back"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I'm married to Sam.", "Our neighbours got divorced."),
        ("Sam is my girlfriend.", "Sam and I broke up the old pallets."),
        ("Lars is my boyfriend.", "Lars left me his keys for the weekend."),
        ("I'm engaged to Lars.", "We called off the engagement party."),
        ("I work at Siemens as a nurse.", "I left Siemens at six today."),
        ("I work at Siemens.", "I retired to bed early."),
        ("I work at Siemens.", "I quit my second job."),
        ("I work at Siemens.", "My parents let me go to the party."),
        ("I work at Siemens.", "My boss let me go early."),
        ("I work at Siemens.", "I nearly quit my job."),
        ("I love coffee.", "I can't stand waiting for coffee."),
        ("I love coffee.", "I stopped drinking coffee."),
        ("I love roads.", "I went off the road."),
        ("I have a dog called Biscuit.", "Anna's dog died."),
        ("I have a dog called Biscuit. I have a dog called Rex.", "My dog died."),
        ("We run Postgres 14.", "I upgraded to first class."),
        ("We run Postgres 14.", "We upgraded to Node 20."),
        ("We run Postgres 14.", "The billing team upgraded to Postgres 16."),
        ("We run Postgres 16.", "We upgraded to Postgres 16."),
        ("I use Vim.", "I switched from tabs to spaces."),
        ("I love Vim.", "I switched from Vim to Helix."),
        ("The staging password is hunter-seven.", "I changed the production password to oak."),
        ("My sister Ana lives in Porto.", "My sister Rita moved to Madrid."),
        ("My sister Ana lives in Porto.", "My sister Ana moved her bike to the shed."),
        ("My favorite color is teal.", "My favourite flavour is orange."),
        ("I live in Oslo.", "I live in Norway."),
        ("I live in Norway.", "I live in Oslo."),
        ("I work at Siemens.", "I lost my job once in my twenties."),
        ("Sam is my girlfriend.", "We split up to search for the cat."),
        ("I use Vim.", "I switched from Vim to the browser to check my mail."),
        ("My car is a Golf.", "My car is a wreck."),
        ("Ana lives in Porto.", "Ana moved to Madrid in 2015."),
        ("I live in Graz.", "I was sad when I moved to Wien."),
        ("I live in Graz.", "I'm thinking of moving to Wien."),
        ("I'm a member of the climbing club.", "I left the climbing club at six."),
        ("I'm a member of the climbing club.", "My son left the climbing club."),
        ("I have a cello.", "I'm thinking about selling my cello."),
        ("I have a dog called Rex.", "The dog in the film died."),
        ("I have a dog called Rex.", "My childhood dog died when I was nine."),
        ("The timeout is 30 seconds.", "We raised the timeout to 60 seconds in the tests."),
    ],
)
def test_what_only_looks_like_it_ends_nothing(
    reading: IngestionHarness, first: str, then: str
) -> None:
    reading.hear(first)
    assert {"UPDATE", "DELETE"}.isdisjoint(kinds(reading.hear(then, at=JUNE)))


def test_a_town_and_its_country_both_end_with_a_move(reading: IngestionHarness) -> None:
    reading.hear("I live in Oslo.")
    reading.hear("I live in Norway.")
    reading.hear("I moved to Madrid.", at=JUNE)
    assert reading.contents() == ["I moved to Madrid."]
    assert reading.targets("Ada", "lives_in") == ["Madrid"]


def test_what_is_taken_for_given_is_known_and_no_memory_of_its_own(
    reading: IngestionHarness,
) -> None:
    said = "My car broke down. I live in Oslo."
    reading.hear(said)
    assert reading.contents() == sorted([said, "I live in Oslo."])
    assert reading.targets("Ada", "has") == ["car"]
