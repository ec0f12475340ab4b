"""Talk made up for measurements: conversations, short facts and questions about them, the same for
the same seed.

A conversation is a session of two people who take turns; a turn has about 25 tokens. Everyday words
repeat as they do in real talk, while names of people, places and things are drawn from thousands,
so that an index meets common and rare words alike. The text says nothing about quality of search:
it only has to cost what real text costs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

TURNS_PER_SESSION = 20
_FIRST_DAY = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)

PEOPLE = (
    "Nadia", "Jonas", "Mara", "Tobias", "Ines", "Callum", "Priya", "Oskar", "Leila", "Bruno",
    "Saskia", "Femi", "Yuki", "Anton", "Carmen", "Idris", "Greta", "Mateo", "Noor", "Piotr",
    "Sunita", "Viktor", "Wanda", "Zoe",
)  # fmt: skip
_OPENINGS = (
    "Guess what,",
    "Honestly,",
    "By the way,",
    "You know,",
    "So",
    "Well,",
    "I forgot to tell you:",
    "Last week",
    "This morning",
)
_DEEDS = (
    "I signed up for", "I finally finished", "we talked for hours about",
    "I cannot stop thinking about", "we nearly missed", "I paid for", "somebody recommended",
    "the children asked about", "I wrote a long letter about", "we argued about",
    "I was invited to", "we started planning", "I gave up on", "my neighbour helped me with",
    "I took pictures of", "I dreamed about",
)  # fmt: skip
_KINDS = (
    "the pottery course", "the half marathon", "the night train", "the string quartet",
    "the beekeeping club", "the kitchen repair", "the chess tournament", "the vegetable garden",
    "the job interview", "the language exam", "the theatre play", "the sailing trip",
    "the photo exhibition", "the dog shelter", "the wedding party", "the bicycle workshop",
    "the choir rehearsal", "the tax return", "the science fair", "the cooking class",
    "the piano lesson", "the mountain hut", "the flea market", "the book circle",
)  # fmt: skip
_ENDINGS = (
    "and it cost {number} euros in the end.", "which took me {number} hours altogether.",
    "so remind me before {day}, will you?", "and {person} wants to come along on {day}.",
    "but {person} did not like it at all.", "and now my back hurts badly.",
    "because the old one broke {number} days ago.", "and I would do it again tomorrow.",
    "so what do you think about that?", "which is why I was late on {day}.",
    "although it rained the whole {day}.", "and {person} lent me the money for it.",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FACTS = (
    "{person} keeps the spare key for {kind} in {place}, drawer {n}",
    "{person} pays {number} euros a month for {kind} near {place} ({n})",
    "{person} is allergic to whatever they serve at {kind} in {place} ({n})",
    "{person} meets {other} for {kind} in {place} on {day} ({n})",
)  # fmt: skip
_QUESTIONS = (
    "What did {person} say about {kind} in {place}?", "When did {person} go to {place}?",
    "How much was {kind} near {place}?", "Who went to {kind} with {person} on {day}?",
    "Why was {person} late for {kind} in {place}?", "Did anybody recommend {kind} in {place}?",
)  # fmt: skip
_ONSETS = (
    "B",
    "Br",
    "D",
    "F",
    "Gl",
    "H",
    "K",
    "Kr",
    "L",
    "M",
    "N",
    "P",
    "R",
    "S",
    "St",
    "T",
    "Tr",
    "V",
    "W",
    "Z",
)
_NUCLEI = ("a", "e", "i", "o", "u", "ai", "ou", "ea")
_CODAS = ("l", "n", "r", "s", "nd", "rk", "lm", "st")
_TOWN_ENDS = ("berg", "ton", "mere", "holm", "ville", "wick", "ford", "stad")

_TOWN = re.compile(
    "".join(
        rf"(?:{'|'.join(part)})"
        for part in ((r"\b",), _ONSETS, _NUCLEI, _CODAS, _TOWN_ENDS, (r"\b",))
    )
)
_NUMBER = re.compile(r"\d+")


def memories(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """`count` turns of conversation in order, as bodies of memories: content, speaker, session_id,
    occurred_at.
    """
    return [turn for _, turn in zip(range(count), _turns(random.Random(seed)), strict=False)]


def facts(count: int, seed: int = 0) -> list[str]:
    """Different short statements, about a dozen words each."""
    chance = random.Random(seed)
    return [_filled(chance, chance.choice(_FACTS), n=number) for number in range(count)]


def questions(count: int, seed: int = 0) -> list[str]:
    """Questions such as people ask about conversations. Nearly all are different."""
    chance = random.Random(seed)
    return [_filled(chance, chance.choice(_QUESTIONS)) for _ in range(count)]


def retold(text: str, chance: random.Random) -> str:
    """The same sentence about other towns and numbers: as many words, of the same kinds."""
    elsewhere = _TOWN.sub(lambda _: _place(chance), text)
    return _NUMBER.sub(lambda _: str(chance.randrange(2, 900)), elsewhere)


def pattern(text: str) -> str:
    """What a sentence has in common with all that it can be retold as."""
    return _NUMBER.sub("{number}", _TOWN.sub("{place}", text))


def _turns(chance: random.Random) -> Iterator[dict[str, Any]]:
    session = 0
    while True:
        pair = chance.sample(PEOPLE, 2)
        begun = _FIRST_DAY + timedelta(hours=7 * session)
        for turn in range(TURNS_PER_SESSION):
            yield {
                "content": _said(chance),
                "speaker": pair[turn % 2],
                "session_id": f"session-{session}",
                "occurred_at": (begun + timedelta(minutes=turn)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        session += 1


def _said(chance: random.Random) -> str:
    return _filled(
        chance,
        f"{chance.choice(_OPENINGS)} {chance.choice(_DEEDS)} {{kind}} in {{place}}, "
        f"{chance.choice(_ENDINGS)}",
    )


def _filled(chance: random.Random, pattern: str, **given: Any) -> str:
    person, other = chance.sample(PEOPLE, 2)
    drawn = {
        "kind": chance.choice(_KINDS),
        "place": _place(chance),
        "day": chance.choice(_DAYS),
        "number": chance.randrange(2, 900),
    }
    return pattern.format(person=person, other=other, **drawn, **given)


def _place(chance: random.Random) -> str:
    """A town's name, one of about ten thousand."""
    return (
        chance.choice(_ONSETS)
        + chance.choice(_NUCLEI)
        + chance.choice(_CODAS)
        + chance.choice(_TOWN_ENDS)
    )
