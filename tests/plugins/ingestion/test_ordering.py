"""What is asked for once and for all is a preference; what is asked once, or of others, is none."""

from __future__ import annotations

import asyncio

import pytest

from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Said
from runtime.timestamps import parse
from tests.support.ingestion_harness import IngestionHarness

MAY_8 = parse("2026-05-08T12:00:00Z")


def preferred(engine: RuleEngine, text: str) -> list[str]:
    facts = asyncio.run(engine.extract([Said("Ada", text)], MAY_8, None)).facts
    return [fact.object for fact in facts if fact.predicate == "prefers"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pls always answer in bullet points", "answer in bullet points"),
        ("Always use metric units please.", "use metric units"),
        ("From now on, answer in French", "answer in French"),
        ("Never use exclamation marks", "never use exclamation marks"),
        ("Never use emojis.", "never use emojis"),
        ("From now on call me Liz.", "call me Liz"),
        ("Please answer in English from now on", "answer in English"),
    ],
)
def test_it_is_wanted_each_time(engine: RuleEngine, text: str, wanted: str) -> None:
    assert preferred(engine, text) == [wanted]


@pytest.mark.parametrize(
    "text",
    [
        "Never give up!",
        "Always call your mother.",
        "Write me a poem about the sea",
        "Always use it",
        "I always write tests first",
        "Should I always use metric units?",
        "She said always use metric units",
        "Always use protection",
        "Never use the lift in a fire",
        "Never reply to spam",
        "Never answer the door to strangers",
        "Call the office from now on",
        "Always call us first",
        "Always answer in bullet points, she said",
        "Use 'from now on' in a sentence",
        "Write a letter to the council about parking in the future",
        "Explain what happens in future if I always use cash",
    ],
)
def test_nothing_is_wanted_each_time(engine: RuleEngine, text: str) -> None:
    assert preferred(engine, text) == []


@pytest.mark.usefixtures("without_delay")
def test_a_profile_shows_it(reading: IngestionHarness) -> None:
    reading.hear("Please always answer in bullet points.", user_id="ada")
    shown = reading("profile.get", query={"user_id": "ada"})
    assert [(fact["key"], fact["value"]) for fact in shown["static"]] == [
        ("prefers", "answer in bullet points")
    ]
