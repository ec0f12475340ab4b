"""Clauses as people string them together: what carries on after a comma, what is announced, what
must be done, who somebody is by what stands beside the name; and what only looks like these.
"""

from __future__ import annotations

import asyncio

import pytest

from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Said
from runtime.timestamps import parse

MAY_8 = parse("2023-05-08T10:00:00Z")
Told = set[tuple[str, str, str, str]]


def claims(engine: RuleEngine, *said: str) -> Told:
    messages = [Said("Ada", one) for one in said]
    facts = asyncio.run(engine.extract(messages, MAY_8, None)).facts
    return {(f.subject, f.predicate, f.object, f.polarity) for f in facts}


KNOWN: list[tuple[str, Told]] = [
    # A verb that carries on with the subject of the clause before.
    (
        "I've worked at the harbour for six years, started in the canteen.",
        {("Ada", "did", "started in the canteen", "holds")},
    ),
    ("I love my flat I live in Bath.", {("Ada", "lives_in", "Bath", "holds")}),
    ("It's cheap, but the printer needs new ink.", {("printer", "need", "new ink", "holds")}),
    # Without "I am", as people type.
    (
        "Allergic to nuts, found out when I was nine.",
        {("Ada", "allergic_to", "nuts", "holds")},
    ),
    ("Fond of chess.", {("Ada", "likes", "chess", "holds")}),
    ("Been vegan for five years.", {("Ada", "is", "vegan", "holds")}),
    ("Currently learning Welsh.", {("Ada", "learns", "Welsh", "holds")}),
    ("Still living in Leeds.", {("Ada", "lives_in", "Leeds", "holds")}),
    ("I've a very nice sofa.", {("Ada", "has", "nice sofa", "holds")}),
    # What is only announced.
    ("Just a reminder that I don't eat pork.", {("Ada", "eat", "pork", "denied")}),
    ("The fact is, I own two cars.", {("Ada", "owns", "two cars", "holds")}),
    (
        "The good news is that I got the job at Siemens.",
        {("Ada", "works_at", "Siemens", "holds")},
    ),
    # What is to be done.
    (
        "I must renew my passport before June.",
        {("Ada", "must", "renew my passport before June", "holds")},
    ),
    ("The bill must be paid by Friday.", {("bill", "must", "paid by Friday", "holds")}),
    ("I must not eat grapefruit.", {("Ada", "must", "eat grapefruit", "denied")}),
    # Who did it, and who did not.
    ("It was Ben who broke the vase.", {("Ben", "did", "broke the vase", "holds")}),
    ("It wasn't Ben who broke the vase.", {("Ben", "did", "broke the vase", "denied")}),
    ("It isn't my sister who plays the cello.", {("Ada's sister", "plays", "cello", "denied")}),
    # How, and what for.
    (
        "I broke my arm playing football.",
        {("Ada", "did", "broke my arm playing football", "holds")},
    ),
    ("I went to Graz to study music.", {("Ada", "did", "went to Graz to study music", "holds")}),
    ("I stopped to buy milk.", {("Ada", "did", "stopped to buy milk", "holds")}),
    # Why does not take back what is so.
    ("I'm vegetarian because I love animals.", {("Ada", "is", "vegetarian", "holds")}),
    # Of one place, and of another no longer.
    (
        "The runbook lives in Notion, not in the wiki anymore.",
        {("runbook", "lives_in", "Notion", "holds"), ("runbook", "lives_in", "wiki", "ended")},
    ),
    # Who somebody is.
    ("Uncle Bob lives in Texas.", {("Ada", "uncle", "Bob", "holds")}),
    (
        "My brother Tom and me went to Rome last year.",
        {
            ("Tom", "did", "went to Rome last year", "holds"),
            ("Ada", "did", "went to Rome last year", "holds"),
        },
    ),
    ("We hired a carpenter called Sven last week.", {("Sven", "works_as", "carpenter", "holds")}),
    ("Sam from accounting loves chess.", {("Sam", "likes", "chess", "holds")}),
    (
        "Vikram from Orsa Capital told me about it.",
        {("Vikram", "is_from", "Orsa Capital", "holds")},
    ),
    (
        "I have two cats, Milo and Luna.",
        {("Ada", "has_pet", "Milo", "holds"), ("Ada", "has_pet", "Luna", "holds")},
    ),
    ("My advisor is Prof. Lindqvist.", {("Ada", "advisor", "Prof. Lindqvist", "holds")}),
    ("Mrs Oda has a bad hip.", {("Mrs Oda", "has", "bad hip", "holds")}),
    (
        "My advisor Prof. Lindqvist lives in Uppsala.",
        {("Prof. Lindqvist", "lives_in", "Uppsala", "holds")},
    ),
    ("I invited Mateusz and his sister Zofia.", {("Mateusz", "sister", "Zofia", "holds")}),
    (
        "Tariq is vegetarian, his brother Imran hates onions.",
        {("Tariq", "brother", "Imran", "holds"), ("Imran", "dislikes", "onions", "holds")},
    ),
    # Names and words with hyphens.
    ("INC-2291 was resolved yesterday.", {("INC-2291", "did", "resolved yesterday", "holds")}),
    (
        "The in-house estimator runs on Debian.",
        {("in-house estimator", "run_on", "Debian", "holds")},
    ),
    # Other verbs.
    ("I'm taking salsa lessons.", {("Ada", "learns", "salsa", "holds")}),
    ("My shop sells bread.", {("Ada's shop", "sell", "bread", "holds")}),
    ("Priya teaches chemistry.", {("Priya", "teach", "chemistry", "holds")}),
]


@pytest.mark.parametrize(("text", "expected"), KNOWN, ids=[text for text, _ in KNOWN])
def test_what_is_said_so_is_known(engine: RuleEngine, text: str, expected: Told) -> None:
    assert claims(engine, text) >= expected


@pytest.mark.parametrize(
    "text",
    [
        "She told me she was leaving, packed her bags and left.",
        "My brother says he hates it, works at a bank.",
        "He thinks I live in Bath I don't.",
        "If it rains, but I have a car, I drive.",
        "Is this a reminder that I owe him?",
        "The rumour that I live in Oslo is mad.",
        "The thing is that he thinks I live in Oslo.",
        "Maybe the thing is, I live in Oslo.",
        "You must see this film.",
        "Ben must work hard.",
        "It must be paid by Friday.",
        "If I must renew my passport, I will.",
        "He said I must renew my passport.",
        "I must have left my keys at work.",
        "Was it Ben who broke the vase?",
        "Is Uncle Bob coming?",
        "If a nurse called Ines rings, let me know.",
        "I'd love to meet a chef called Marco.",
        "Do you know a plumber called Sven?",
        "Is Vikram from Acme coming?",
        "Do we have two dogs, Rex and Bella?",
        "If I had two cats, Milo and Luna would fight.",
        "Are you taking cooking classes?",
        "Is going to rain later.",
        "Been a while.",
        "Been vegan in 2018.",
        "Allergic to nuts?",
        "Still thinking about it.",
        "Learning Welsh would be fun.",
        "Would I be vegan because of that?",
    ],
)
def test_what_only_looks_like_it_is_no_claim(engine: RuleEngine, text: str) -> None:
    said = {each for each in claims(engine, text) if each[:2] != ("rumour", "is")}
    assert said == set()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It wasn't Ben who told me, it was Ana.", ("Ben", "did", "told me", "holds")),
        ("Her uncle Bob lives in Texas.", ("Ada", "uncle", "Bob", "holds")),
        ("Uncle Sam wants your taxes.", ("Ada", "uncle", "Sam", "holds")),
        (
            "We saw my nan, she's old and still does her own washing.",
            ("Ada", "do", "own washing", "holds"),
        ),
        ("Ben told Tom his sister Eva was late.", ("Tom", "sister", "Eva", "holds")),
        ("I took Ana from school.", ("Ana", "is_from", "school", "holds")),
        ("I stopped to buy milk.", ("Ada", "owns", "milk", "ended")),
        ("I have two cats, Milo and Luna.", ("Ada", "has", "Milo", "holds")),
        ("I take evening classes.", ("Ada", "learns", "evening", "holds")),
        ("Between you and me, I hate squash.", ("you", "dislikes", "squash", "holds")),
    ],
)
def test_what_is_said_otherwise_is_not_claimed(
    engine: RuleEngine, text: str, wrong: tuple[str, str, str, str]
) -> None:
    assert wrong not in claims(engine, text)
