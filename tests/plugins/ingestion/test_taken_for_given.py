"""What is told beside or inside of another clause: of several people at once, in relative clauses,
as what is taken for given, as a thought of doing something, in the title of a book.
"""

from __future__ import annotations

import asyncio

import pytest

from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Said
from runtime.timestamps import parse

MAY_8 = parse("2026-05-08T12:00:00Z")
Told = set[tuple[str, str, str]]


def claims(engine: RuleEngine, text: str) -> Told:
    facts = asyncio.run(engine.extract([Said("Ada", text)], MAY_8, None)).facts
    return {(fact.subject, fact.predicate, fact.object) for fact in facts}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ana and Ben moved to Riga.", ("Ben", "lives_in", "Riga")),
        ("My husband Tom and I have two cats.", ("Ada", "has_pet", "two cats")),
        ("My colleagues and I went to a fair.", ("Ada", "did", "went to a fair")),
        ("I'm glad I sold the cello.", ("Ada", "owns", "cello")),
        ("I'm so happy I moved to Leeds.", ("Ada", "lives_in", "Leeds")),
        ("I know that Ana sold her car.", ("Ana", "owns", "car")),
        ("My sister, who lives in Graz, is a nurse.", ("Ada's sister", "lives_in", "Graz")),
        ("I was nervous when I visited Denver.", ("Ada", "did", "visited Denver")),
        ("I'm so excited, I opened my own shop!", ("Ada", "did", "opened my own shop")),
        ("I'm thinking of moving to Oslo.", ("Ada", "considers", "moving to Oslo")),
        ("I'm planning on visiting Kyoto.", ("Ada", "plans", "visiting Kyoto")),
        ("I'm interested in exploring Kyoto.", ("Ada", "interested_in", "exploring Kyoto")),
        ("I'm really happy with my new bike.", ("Ada", "happy_with", "new bike")),
        ("I look forward to the concert.", ("Ada", "look_forward_to", "concert")),
        ("I love trying beers and enjoying the view.", ("Ada", "likes", "enjoying the view")),
        ("I prefer trains, especially if they are slow.", ("Ada", "prefers", "trains")),
        ('We played the game "Detroit".', ("Ada", "did", "played the game Detroit")),
        ("I met the curator, Rachel Lee, at work.", ("Rachel Lee", "works_as", "curator")),
        ("Ravi, our tech lead, lives in Pune.", ("Ravi", "is", "tech lead")),
        ("I live with Tom and our kids in Leeds.", ("Ada", "lives_in", "Leeds")),
        ("I'm looking for a flat in Leith.", ("Ada", "look_for", "flat in Leith")),
        ("I'll make sure to call Ben.", ("Ada", "plans", "make sure to call Ben")),
        ('I joined a band called "Night Owls".', ("Ada", "did", "joined a band called Night Owls")),
        ("My car needs new tyres.", ("Ada", "has", "car")),
        ("I took my dogs to the lake.", ("Ada", "has_pet", "dogs")),
        ("Production runs on Ubuntu 20.04.", ("production", "run_on", "Ubuntu 20.04")),
        ("Lars left me.", ("Ada", "partner_of", "Lars")),
    ],
)
def test_it_is_told(engine: RuleEngine, text: str, expected: tuple[str, str, str]) -> None:
    assert expected in claims(engine, text)


@pytest.mark.parametrize(
    "text",
    [
        'She said "I Love Rome".',
        'He told me "You Are Fired".',
        '"Are You Ready", asked my boss.',
        "A friend who lives in Rome would help me.",
        "I guess I moved too early.",
        "I'd buy the house if I were glad I moved.",
    ],
)
def test_somebodys_words_and_what_is_open_are_not(engine: RuleEngine, text: str) -> None:
    assert not {each for each in claims(engine, text) if each[1] != "does"}


@pytest.mark.parametrize(
    ("text", "untold"),
    [
        ("I was sad when I moved to Rome.", "lives_in"),
        ("I remember that I lived in Rome.", "lives_in"),
        ("The house where I lived in Rome was old.", "lives_in"),
        ("I sold my car.", "has"),
        ("I want to buy my own car.", "has"),
        ("My first car was red.", "has"),
        ("My dog died.", "holds"),
        ("My new job at Siemens is great.", "works_as"),
        ("I've been buying tickets.", "owns"),
        ("I've never had sushi.", "has"),
    ],
)
def test_what_was_once_or_is_no_more_is_not_had_now(
    engine: RuleEngine, text: str, untold: str
) -> None:
    assert untold not in {predicate for _, predicate, _ in claims(engine, text)}
