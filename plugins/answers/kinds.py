"""The kind of thing that a question asks for, and whether a sentence shows one: a time, a length of
time, a number, an amount of money, a place, a person, a colour.

A question that fits no kind asks for a thing, which any sentence may be about. The patterns are
English: a question in another language asks for a thing. What shows a kind is wider than the kind,
since it is there to tell what cannot be an answer.
"""

from __future__ import annotations

import re
from typing import Literal

from plugins.memories import TextFeatures

Kind = Literal["duration", "money", "number", "time", "place", "person", "colour", "thing"]

# What a sentence cannot answer without showing it. Of 99 such questions, of loadtests/retrieval and
# of 40 dialogues by others, 98 are answered by a memory with a sentence that shows it. A person may
# be whoever says the sentence.
SHOWN_IN_ANSWERS: frozenset[Kind] = frozenset(
    ["duration", "money", "number", "time", "place", "colour"]
)

# Before the question word: "Since when", "And in which".
_OPENING = r"^\W*(?:(?:and|but|so|then|in|on|at|by|since|until|till|from|to|of|for|with)\W+){0,2}"
_PAID = re.compile(
    r"\b(?:cost|costs|pay|paid|pays|price|rent|earn|earns|owe|owes|spend|spent|charge|charges|budget|"
    r"money|worth|save|saved|fee|bill|salary|deposit)\b",
    re.IGNORECASE,
)
# Tried in this order.
_ASKED: dict[Kind, re.Pattern[str]] = {
    "duration": re.compile(r"\bhow long\b", re.IGNORECASE),
    "money": re.compile(r"\bhow much\b", re.IGNORECASE),
    "number": re.compile(
        r"\bhow (?:many|much|old|often|far|tall|big|heavy|high|deep|fast)\b|\bwhat age\b",
        re.IGNORECASE,
    ),
    "time": re.compile(
        rf"{_OPENING}when\b|\b(?:what|which) (?:date|day|year|month|time)\b", re.IGNORECASE
    ),
    "place": re.compile(rf"{_OPENING}where\b", re.IGNORECASE),
    "person": re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE),
    "colour": re.compile(r"\b(?:what|which) colou?rs?\b", re.IGNORECASE),
}

_ONES = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_TIMES = re.compile(
    r"\b(?:at|by|till|until|from|since|around|about|before|after) (?:half |quarter )?(?:past |to )?"
    rf"(?:\d|(?:{_ONES})\b)|\b\d{{1,2}}(?:st|nd|rd|th)\b|\b1[0-8]\d\d\b|"
    r"\b(?:mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun|tmrw|tomoz|morning|afternoon|evening|"
    r"weekend|spring|summer|autumn|winter|christmas|easter|nightly|daily|weekly|monthly|yearly|"
    r"every|now|soon|just|already|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|"
    r"\w+teenth|twelfth|twentieth|thirtieth|twenty-\w+th)\b|"
    r"\b(?:through|until|till|before|after|during|when|while|once|as) \w",
    re.IGNORECASE,
)
_LENGTHS = re.compile(
    r"\b(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|weekends?|fortnights?|"
    r"months?|years?|yrs?|decades?|ages|forever|since|until|semesters?|lifetime)\b|"
    r"\d ?(?:h|s|min)\b",
    re.IGNORECASE,
)
_COUNTS = re.compile(
    r"\b(?:one|an?|every|daily|weekly|once|all|none|no|never|always)\b", re.IGNORECASE
)
_AMOUNTS = re.compile(
    r"\d|\bfree\b|\b(?:dozens?|hundreds?|thousands?|millions?|(?:twen|thir|for|fif|six|seven|eigh|"
    rf"nine)ty|{_ONES}|nothing|half)\b",
    re.IGNORECASE,
)
_WHERE = re.compile(
    r"\b(?:in|at|on|to|from|near|by|under|behind|above|below|inside|outside|between|over|through|"
    r"around|across|into|off|beside|beneath|next|opposite|here|there|home|upstairs|downstairs|"
    r"online|abroad|via|past|with)\b",
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"\b(?:mum|mom|mother|dad|father|parents?|sister|brother|aunt|auntie|uncle|cousin|nephew|"
    r"niece|nan|gran|grandma|granny|grandmother|grandpa|grandad|grandfather|husband|wife|partner|"
    r"girlfriend|boyfriend|fianc[ée]e?|friends?|colleagues?|boss|manager|neighbou?rs?|teacher|"
    r"coach|doctor|dr|dentist|mentor|team|family|kids?|children|son|daughter|someone|somebody|"
    r"everyone|nobody|couple|mr|mrs|ms)\b",
    re.IGNORECASE,
)
_COLOURS = re.compile(
    r"\b(?:black|white|gr[ae]y|red|blue|green|yellow|orange|purple|violet|pink|brown|beige|cream|"
    r"navy|teal|turquoise|maroon|burgundy|crimson|scarlet|mustard|gold(?:en)?|silver|ivory|lilac|"
    r"lavender|magenta|khaki|olive|indigo|amber|bronze|copper|tan|charcoal|coral|mint|ochre|rust|"
    r"colou?r\w*|rainbow|dark|light|pale)\b",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"(?<=[^\W_] )[^\W\d_]\w+|(?<=[,;:] )[^\W\d_]\w+")
_PATTERNS = {"duration": _LENGTHS, "money": _AMOUNTS, "colour": _COLOURS}


def kind_of(question: str) -> Kind:
    """The first kind whose question words it has; "thing" without any."""
    for kind, pattern in _ASKED.items():
        if pattern.search(question):
            return "number" if kind == "money" and not _PAID.search(question) else kind
    return "thing"


def shows(kind: Kind, sentence: str) -> bool:
    """Whether a sentence shows a thing of this kind; never of "thing"."""
    flags = TextFeatures.of(sentence, 1).flags
    match kind:
        case "time":
            return bool(flags & TextFeatures.TIME) or _TIMES.search(sentence) is not None
        case "number":
            return bool(flags & TextFeatures.NUMBER) or _COUNTS.search(sentence) is not None
        case "place":
            return _has_names(sentence) or _WHERE.search(sentence) is not None
        case "person":
            return _has_names(sentence) or _PEOPLE.search(sentence) is not None
        case "thing":
            return False
        case _:
            return _PATTERNS[kind].search(sentence) is not None


def can_answer(kind: Kind, sentence: str) -> bool:
    """Whether a sentence may answer a question for this kind: not where nothing answers without
    showing one and it shows none.
    """
    return kind not in SHOWN_IN_ANSWERS or shows(kind, sentence)


def _has_names(sentence: str) -> bool:
    return any(word[0].isupper() for word in _CAPITAL.findall(sentence))
