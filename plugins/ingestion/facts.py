"""Facts: what can be said once a conversation is over, and the check that it was really said.

A fact is one claim about one subject with the words that support it: a message and a span of code
points in it. Two engines find facts, the rules (plugins/ingestion/engine.py) and a language
model (plugins/ingestion/language_model.py); both hand in the same thing, and `supported` drops what
a span does not bear out: a quotation that is not in the message, or one that lacks the claim's
words.

The text of a fact is what becomes a memory. It stays in the language it was said in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from plugins.ingestion.small_words import SMALL_WORDS
from storage.text import word_set

Polarity = Literal["holds", "ended", "denied"]

# Predicate -> the type of its object. Those of plugins/graph/store.py's FUNCTIONAL have one object
# at a time.
PREDICATES: dict[str, str] = {
    "lives_in": "place", "stays_in": "place", "born_in": "place", "comes_from": "place",
    "born_on": "date", "named": "name", "age": "number", "works_at": "organization",
    "works_in": "place",
    "works_as": "occupation", "studies_at": "organization", "studies": "subject",
    "speaks": "language", "learns": "skill",
    "plays": "activity", "likes": "thing", "dislikes": "thing", "prefers": "thing",
    "favorite": "thing", "is": "trait", "allergic_to": "substance", "has_condition": "condition",
    "owns": "thing", "uses": "thing", "has_pet": "animal", "married_to": "person",
    "engaged_to": "person", "partner_of": "person", "sister": "person", "brother": "person",
    "mother": "person", "father": "person", "daughter": "person", "son": "person",
    "friend": "person", "colleague": "person", "boss": "person", "neighbor": "person",
    "grandmother": "person", "grandfather": "person", "aunt": "person", "uncle": "person",
    "cousin": "person", "roommate": "person", "niece": "person", "nephew": "person",
    "granddaughter": "person", "grandson": "person", "child": "person", "tutor": "person",
    "coach": "person", "physio": "person", "tailor": "person", "advisor": "person",
    "grew_up_in": "place", "knows": "person", "dentist": "person",
    "doctor": "person", "landlord": "person", "therapist": "person", "accountant": "person",
    "hairdresser": "person", "habit": "activity", "plans": "plan", "did": "event",
}  # fmt: skip
RELATIVES = frozenset(
    name for name, kind in PREDICATES.items() if kind == "person" and name != "knows"
)

ANY, ALL = "any", "all"
# What a statement does to the one before it (plugins/ingestion/corrections.py).
TAKES_BACK, CORRECTS = "takes_back", "corrects"
VALUE = "value"  # the detail of what the one thing is that a noun of ONE_OF names
# Of each of these somebody or something has one at a time, and one says what it is: "my editor is
# Vim".
ONE_OF = word_set(
    """password passcode passphrase pin port version url address hostname domain email region
    timezone plan tier editor ide shell browser database db framework phone laptop car bike stack"""
)
_WORD = re.compile(r"[^\W_]+")
_STEM_CHARS = 4


@dataclass(frozen=True, slots=True)
class Said:
    """One message: who says it (a name), and what. `told` is False for messages that are not a
    person's own words; `role`: the message's, whatever it is called.
    """

    speaker: str
    content: str
    told: bool = True
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One claim. Instants are Unix milliseconds, None when nothing was said of them.

    subject    a name: the speaker's, or a third party's
    relative   set when the subject is known only as somebody's relative, such as "sister" of
               `owner`: its name may be known elsewhere
    polarity   "holds"; "ended", it held once and does no more; "denied", it does not hold
    text       the memory to be
    source     index of the message; start, end: code points in it, end exclusive
    detail     what kind of object, where that adds something ("dog" of has_pet, "colour" of
               favorite, VALUE of is)
    instead    whether it is told as what is so now, in the place of something else
    beside     whether it is told as one thing more, or as what is so at times: it replaces nothing
    relates    whether its object is something that could be met again, a thing of the graph
    also       of what is ended, the predicates it may have been said under; "*" for any of a
               thing; ANY where it is whatever one thing the predicate has, or with "*" where
               nothing may be known of the thing; ALL where it is all that passes of its subject
    by         of what is ended, what is there in its place
    passing    whether it is only taken for given, as "my car is red" takes it that there is one
    """

    subject: str
    predicate: str
    object: str
    text: str
    source: int
    start: int
    end: int
    polarity: Polarity = "holds"
    valid_from: int | None = None
    valid_to: int | None = None
    subject_type: str = "person"
    relative: str | None = None
    owner: str | None = None
    detail: str | None = None
    confidence: float = 0.8
    also: tuple[str, ...] = ()
    relates: bool = True
    instead: bool = False
    beside: bool = False
    by: str | None = None
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """facts, which engine found them ("rules" or "llm"), and what went wrong on the way, if
    anything.
    """

    facts: list[Fact]
    engine: str
    degraded: tuple[str, ...] = ()


class Engine(Protocol):
    """Finds facts in a conversation that took place at `at` (Unix milliseconds)."""

    async def extract(
        self, said: Sequence[Said], at: int, instructions: str | None
    ) -> Extraction: ...


def supported(facts: Iterable[Fact], said: Sequence[Said]) -> list[Fact]:
    """Those facts whose span lies in their message and holds the words of the claim."""
    return [fact for fact in facts if _is_supported(fact, said)]


def _is_supported(fact: Fact, said: Sequence[Said]) -> bool:
    if not 0 <= fact.source < len(said) or not said[fact.source].told:
        return False
    quote = said[fact.source].content[fact.start : fact.end]
    if not quote.strip():
        return False
    wanted = key_words(fact.object)
    if not wanted:
        return fact.object.strip().casefold() in quote.casefold()
    present = {word.casefold() for word in _WORD.findall(quote)}
    return all(word in present or any(_alike(word, other) for other in present) for word in wanted)


def key_words(text: str) -> list[str]:
    """The words of a claim that must be in its evidence: case-folded, without articles and
    prepositions.
    """
    return [
        word
        for word in (found.casefold() for found in _WORD.findall(text))
        if word not in SMALL_WORDS
    ]


def _alike(one: str, other: str) -> bool:
    """The same word, or two forms of one: an inflection changes endings."""
    if one == other:
        return True
    shared = max(_STEM_CHARS, min(len(one), len(other)) - 3)
    return len(one) >= _STEM_CHARS and len(other) >= _STEM_CHARS and one[:shared] == other[:shared]


def located(
    quote: str, said: Sequence[Said], hint: int | None = None
) -> tuple[int, int, int] | None:
    """(message, start, end) of a verbatim quotation, looked for in the message `hint` first; None
    when nobody said it.
    """
    order = ([hint] if hint is not None and 0 <= hint < len(said) else []) + list(range(len(said)))
    for index in order:
        if quote and said[index].told and (start := said[index].content.find(quote)) >= 0:
            return index, start, start + len(quote)
    return None


def moved(fact: Fact, by: int) -> Fact:
    """The fact with its message counted from elsewhere."""
    return replace(fact, source=fact.source + by)
