"""What a "not" denies altogether, and what only at times, so much or with somebody; what is to
come; and what is said of nobody or of somebody else than it seems.
"""

from __future__ import annotations

import asyncio

import pytest

from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Said
from runtime.timestamps import parse

MAY_8 = parse("2023-05-08T10:00:00Z")
Told = set[tuple[str, str, str, str]]


def claims(engine: RuleEngine, text: str) -> Told:
    facts = asyncio.run(engine.extract([Said("Ada", text)], MAY_8, None)).facts
    return {(f.subject, f.predicate, f.object, f.polarity) for f in facts if f.predicate != "did"}


LIMITED = [
    "I don't work at Siemens on Fridays.",
    "I don't work at Siemens on Fridays any more.",
    "I don't live in Graz with my parents.",
    "I don't always like tea.",
    "I don't like every tea.",
    "I left Siemens at six and took the tram.",
]


@pytest.mark.parametrize(
    "text",
    [
        *LIMITED,
        "I no longer work at Siemens on Fridays.",
        "I no longer live with Tom in Graz.",
        "I don't work at Siemens today.",
        "My wife doesn't work at Siemens on Fridays.",
        "I'm not allergic to nuts as badly as I used to be.",
        "I'm not very allergic to nuts.",
        "I don't usually eat meat.",
        "I don't like tea as much as coffee.",
        "I don't speak French at work.",
        "I don't speak French well.",
        "I don't smoke when I drink.",
        "I left Graz by train.",
        "I left Siemens early today.",
        "Last night I left Graz.",
    ],
)
def test_what_is_denied_in_part_is_not_denied(engine: RuleEngine, text: str) -> None:
    assert claims(engine, text) == set()


@pytest.mark.parametrize("text", LIMITED)
def test_nor_is_it_by_patterns(text: str) -> None:
    assert claims(RuleEngine(), text) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't live in Graz.", ("Ada", "lives_in", "Graz", "denied")),
        ("I don't live in Graz right now.", ("Ada", "lives_in", "Graz", "denied")),
        ("I don't live in Graz any more.", ("Ada", "lives_in", "Graz", "ended")),
        ("I no longer work at Siemens since May.", ("Ada", "works_at", "Siemens", "ended")),
        ("I'm not allergic to nuts any more.", ("Ada", "allergic_to", "nuts", "ended")),
        ("I don't like tea at all.", ("Ada", "dislikes", "tea", "holds")),
        ("I don't really like tea.", ("Ada", "dislikes", "tea", "holds")),
        ("I just don't like tea.", ("Ada", "dislikes", "tea", "holds")),
        ("I don't like coffee, only tea.", ("Ada", "dislikes", "coffee", "holds")),
        ("I don't smoke, I just vape.", ("Ada", "habit", "smoke", "denied")),
        ("I don't eat meat because it is cruel.", ("Ada", "eat", "meat", "denied")),
        ("I quit Acme in May.", ("Ada", "has", "Acme", "ended")),
        ("I left Siemens last year.", ("Ada", "works_at", "Siemens", "ended")),
        ("I left Siemens after ten years.", ("Ada", "works_at", "Siemens", "ended")),
        ("I don't only like tea.", ("Ada", "likes", "tea", "holds")),
        ("Not only do I like tea, I love it.", ("Ada", "likes", "tea", "holds")),
        ("I'm not just a nurse.", ("Ada", "works_as", "nurse", "holds")),
        ("I like neither tea nor coffee.", ("Ada", "likes", "coffee", "denied")),
        ("I am allergic to neither nuts nor milk.", ("Ada", "allergic_to", "nuts", "denied")),
        ("I don't drink, nor do I smoke.", ("Ada", "habit", "smoke", "denied")),
    ],
)
def test_what_is_denied_altogether_is(
    engine: RuleEngine, text: str, expected: tuple[str, str, str, str]
) -> None:
    found = claims(engine, text)
    assert expected in found
    opposite = "holds" if expected[3] != "holds" else "denied"
    assert (*expected[:3], opposite) not in found


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("We move to Wien next month.", "move to Wien next month"),
        ("I move to Wien on Friday.", "move to Wien on Friday"),
        ("I quit Acme next month.", "quit Acme next month"),
        ("I turn 30 next week.", "turn 30 next week"),
        ("I start working at Siemens in June.", "start working at Siemens in June"),
        ("I stop smoking next week.", "stop smoking next week"),
        ("We're getting married in June.", "getting married in June"),
    ],
)
def test_a_change_told_for_later_is_a_plan(engine: RuleEngine, text: str, plan: str) -> None:
    assert claims(engine, text) == {("Ada", "plans", plan, "holds")}


@pytest.mark.parametrize(
    ("text", "place"),
    [("I moved to Wien last month.", "Wien"), ("I live in Graz until next month.", "Graz")],
)
def test_what_is_so_is_none(engine: RuleEngine, text: str, place: str) -> None:
    assert claims(engine, text) == {("Ada", "lives_in", place, "holds")}


@pytest.mark.parametrize(
    "text",
    [
        "In my dream I was married to George.",
        "In the film I am a doctor.",
        "Neither my wife nor I like opera.",
        "I would be lying if I said I like opera.",
        "> I live in Rome.",
        "Mine is called Emil as well",
        "Ours is called Rex.",
        "Mine lives in Graz.",
    ],
)
def test_what_is_dreamt_quoted_or_of_somebody_else_makes_none(
    engine: RuleEngine, text: str
) -> None:
    assert claims(engine, text) == set()


def test_quoted_lines_say_nothing_and_the_others_do(engine: RuleEngine) -> None:
    found = claims(engine, "> I live in Rome.\nI live in Graz.")
    assert found == {("Ada", "lives_in", "Graz", "holds")}
    assert claims(RuleEngine(), "> I live in Rome.\nI live in Graz.") == found


def test_who_got_married_is_who_is_named(engine: RuleEngine) -> None:
    text = "Ben got married on 7 August. My friend Ben is moving to Dublin next month."
    of_ada = {claim for claim in claims(engine, text) if claim[0] == "Ada"}
    assert of_ada == {("Ada", "friend", "Ben", "holds")}
    assert ("Ada", "is", "married", "holds") in claims(engine, "Got married last week!")


def test_a_number_is_no_time(engine: RuleEngine) -> None:
    found = claims(engine, "My phone number is 555-1234")
    assert found == {("Ada's phone number", "measures", "555-1234", "holds")}
    assert claims(engine, "The standup is at 9:45.") == {
        ("standup", "takes_place", "9:45", "holds")
    }
