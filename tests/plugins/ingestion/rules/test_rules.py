"""What the rules hear in a sentence, what they leave alone, and which day a word means."""

from __future__ import annotations

import asyncio
import json

import pytest

from plugins.ingestion.engine import RuleEngine, find_facts
from plugins.ingestion.facts import Said, supported
from plugins.ingestion.rules import SENTENCE_CHARS_MAX, language_of
from plugins.ingestion.rules.dates import resolve
from runtime.timestamps import iso, parse
from tests.support import ROOT

MAY_8 = parse("2023-05-08T10:00:00Z")  # a Monday
SETS = ROOT / "loadtests" / "facts"


def heard(*said: str) -> set[tuple[str, str, str, str]]:
    return {
        (f.subject, f.predicate, f.object, f.polarity)
        for f in find_facts([Said("Ada", text) for text in said], MAY_8)
    }


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I live in Oslo.", {("Ada", "lives_in", "Oslo", "holds")}),
        ("I no longer live in Oslo.", {("Ada", "lives_in", "Oslo", "ended")}),
        ("I don't like mushrooms.", {("Ada", "dislikes", "mushrooms", "denied")}),
        ("My sister plays the cello.", {("Ada's sister", "plays", "cello", "holds")}),
        (
            "I sold my Golf and bought a used Volvo.",
            {("Ada", "owns", "Golf", "ended"), ("Ada", "owns", "used Volvo", "holds")},
        ),
        ("Ich wohne nicht mehr in Bremen.", {("Ada", "lives_in", "Bremen", "ended")}),
        ("Je n'habite plus à Lyon.", {("Ada", "lives_in", "Lyon", "ended")}),
        ("Ya no vivo en Bilbao.", {("Ada", "lives_in", "Bilbao", "ended")}),
    ],
)
def test_statements_are_heard(text: str, facts: set[tuple[str, str, str, str]]) -> None:
    assert heard(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Oslo?", "If I lived in Oslo, I would ski.", "I wish I lived in Oslo.",
        "Maybe I work at Acme one day.",
        'He said: "I live in Oslo".', "In the film the hero lives in Oslo.",
        "<memory>I live in Oslo.</memory>", "", "...", "🙂" * 100,
    ],
)  # fmt: skip
def test_what_is_not_stated_is_not_heard(text: str) -> None:
    assert heard(text) == set()


def test_others_keep_what_is_theirs_and_pronouns_are_resolved() -> None:
    assert heard("My brother Tom lives in Kiel.", "He works at Acme.", "She is a nurse.") >= {
        ("Tom", "lives_in", "Kiel", "holds"),
        ("Tom", "works_at", "Acme", "holds"),
    }
    assert not any(
        subject == "Ada" and predicate != "brother"
        for subject, predicate, _, _ in heard("My brother Tom lives in Kiel.")
    )


@pytest.mark.parametrize("name", ["tuned", "held_out"])
def test_every_span_is_verbatim_and_bears_its_fact_out(name: str) -> None:
    for conversation in json.loads((SETS / f"{name}.json").read_text()):
        said = [
            Said(speaker, text, speaker != "assistant")
            for speaker, text in conversation["messages"]
        ]
        facts = find_facts(said, parse(conversation["at"]))
        assert supported(facts, said) == facts
        assert all(
            said[fact.source].told and said[fact.source].content[fact.start : fact.end].strip()
            for fact in facts
        )


@pytest.mark.parametrize(
    "words",
    [
        "My ",
        "I moved from ",
        "A",
        "my sister ",
        "Anna Bella ",
        "(",
        "I have a ",
        "I live in Anna Bella and ",
        "Ich wohne in Anna, ",
    ],
)
def test_hostile_texts_are_read_to_their_end(words: str) -> None:
    """Where a pattern runs away in the longest of sentences, the rules stop before the end, and say
    so.
    """
    sentence = (words * SENTENCE_CHARS_MAX)[: SENTENCE_CHARS_MAX - 1] + ".\n"
    assert (
        asyncio.run(RuleEngine().extract([Said("Ada", sentence * 10)], MAY_8, None)).degraded == ()
    )
    assert heard(words * SENTENCE_CHARS_MAX) == set(), (
        "what has no full stop for longer is no sentence"
    )


@pytest.mark.parametrize(
    ("language", "text", "day"),
    [
        ("en", "in May", "2023-05-01"), ("en", "last Friday", "2023-05-05"),
        ("en", "in September", "2022-09-01"),
        ("en", "yesterday", "2023-05-07"), ("de", "im Juli", "2022-07-01"),
        ("de", "letzten Monat", "2023-04-01"),
        ("de", "vor zwei Jahren", "2021-01-01"), ("de", "am 3. Mai", "2023-05-03"),
        ("de", "seit 2019", "2019-01-01"),
        ("fr", "la semaine dernière", "2023-05-01"), ("fr", "il y a trois ans", "2020-01-01"),
        ("es", "el mes pasado", "2023-04-01"), ("es", "hace tres años", "2020-01-01"),
        ("it", "a marzo", "2023-03-01"),
        ("it", "due mesi fa", "2023-03-01"),
        ("pt", "ontem", "2023-05-07"), ("nl", "in maart", "2023-03-01"),
        ("nl", "vorige week", "2023-05-01"),
    ],
)  # fmt: skip
def test_times_are_those_of_the_conversation(language: str, text: str, day: str) -> None:
    found = resolve(text, MAY_8, language)
    assert found is not None and iso(found)[:10] == day


def test_a_plan_looks_ahead() -> None:
    assert iso(resolve("in March", MAY_8, ahead=True))[:10] == "2024-03-01"
    assert resolve("some day", MAY_8) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I live in Oslo and I work at Acme", "en"),
        ("Ich wohne in Oslo und arbeite bei Acme", "de"),
        ("J'habite à Oslo avec ma sœur", "fr"),
        ("Vivo en Oslo con mi hermana", "es"), ("Vivo a Oslo con mia sorella", "it"),
        ("Moro em Oslo com a minha irmã", "pt"),
        ("Ik woon in Oslo met mijn zus", "nl"), ("Oslo", "en"),
    ],
)  # fmt: skip
def test_languages_are_told_apart(text: str, language: str) -> None:
    assert language_of(text) == language
