"""Salience: how much a turn says that one could want to remember, and why one that says nothing is
left out.

A sentence's salience is a logistic of what is counted in it: words that are no function words, the
first person, names and numbers speak for it, a question against it. A turn is as salient as its
most salient sentence, and is kept or left out as a whole. The words are English, and so is the
judgement: a turn in any other language is kept whenever it has a letter or a digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import regex as re

from plugins.ingestion.rules import language_of

Reason = Literal["greeting", "acknowledgement", "reaction", "question", "duplicate", "other"]
REASONS: tuple[Reason, ...] = (
    "greeting",
    "acknowledgement",
    "reaction",
    "question",
    "duplicate",
    "other",
)

BASE = -2.2
CONTENT_WORD = 0.6  # each, up to CONTENT_WORDS_MAX
CONTENT_WORDS_MAX = 6
CONTENT_SHARE = 1.5  # of a sentence that has no other words
FIRST_PERSON, NAMED, NUMBERED, ASKED = 0.8, 0.8, 0.8, -1.0
READ_CHARS_MAX = 20_000  # a longer text has something to say

_WORD = re.compile(r"\p{L}[\p{L}\p{M}]*(?:['’]\p{L}+)?|\d[\d.,:]*")
_ENGLISH = re.compile(r"(?:\p{Latin}|[^\p{L}])*")


def _words(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


GREETINGS = _words(
    "hi hello hey hiya howdy heya yo morning afternoon evening night goodnight bye goodbye ciao",
    "cheers greetings welcome later soon ttyl cya",
)
ACKNOWLEDGEMENTS = _words(
    "yes yeah yep yup ya yea ok okay okey k kk alright sure right absolutely definitely exactly",
    "totally certainly indeed agreed agree fine no nope nah thanks thank thx ty appreciate course",
    "understood noted deal problem worries mhm hmm hm uh um huh true gotcha please perfect",
)
REACTIONS = _words(
    "wow whoa woah cool nice great awesome amazing fantastic wonderful lovely beautiful incredible",
    "brilliant excellent haha hahaha lol lmao congrats congratulations oh ooh ah aw aww awww omg",
    "gosh goodness god yay hooray woohoo yikes ouch phew glad happy sorry sad funny hilarious",
    "interesting impressive inspiring adorable cute sweet neat rad sick dope wild crazy sounds",
    "sound hear heard good well luck fun bummer pity shame proud excited exciting keep enjoy",
)
_FUNCTION = _words(
    "a an the of to in on at by for with from about into over under up down out off as than and",
    "or but so if then because while when where who whom whose what which why how that this these",
    "those there here it its it's that's i i'm i've i'd i'll me my mine myself we we're we've",
    "we'd we'll us our ours you you're you've you'd you'll your yours he he's him his she she's",
    "her hers they they're them their is isn't are aren't am was wasn't were weren't be been",
    "being do don't does doesn't did didn't done have haven't has hasn't had having can can't",
    "could couldn't will won't would wouldn't shall should shouldn't may might must not never too",
    "very really just also even still again much many more most some any all lot lots bit kind",
    "sort such only same own let let's get got going go see know think guess mean say said tell",
    "look looks looking way thing things one something anything everything nothing everyone",
    "anyone someone today now what's how's who's where's there's here's else yet ever maybe",
    "though dont im ive thats u ur r gonna wanna gotta like man dude bro girl buddy friend guys",
    "care take talk catch chat",
)
_FIRST = _words(
    "i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours im ive"
)
_HOW_ARE_YOU = re.compile(
    r"(?i)\b(?:how(?:'s|’s| is| are| have| has)?\b.{0,20}\b(?:you|it going|things|everything|life|"
    r"doing|day)|what(?:'s|’s| is) (?:up|new))\b[^?]{0,24}\?$"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A turn's salience, 0 to 1; why nothing of it is kept, for every sentence of it; and else
    which sentences are the salient ones.
    """

    salience: float
    left_out: Sequence[Reason] = ()
    salient: Sequence[str] = ()


def judge(text: str, spans: Sequence[tuple[int, int]], salience_min: float) -> Judged:
    """How salient a turn is, and whether it reaches `salience_min`. spans: its sentences."""
    if not spans:
        return Judged(0.0, left_out=("reaction",) if text.strip() else ("other",))
    told = [text[start:end] for start, end in spans]
    if len(text) > READ_CHARS_MAX or not _is_english(text):
        return Judged(1.0, salient=told)
    judged = [(sentence_salience(sentence), sentence) for sentence in told]
    salience = max(judged)[0]
    if salience < salience_min:
        return Judged(salience, left_out=[_reason(sentence) for sentence in told])
    return Judged(salience, salient=[each for value, each in judged if value >= salience_min])


def sentence_salience(sentence: str) -> float:
    """0 to 1, of an English sentence."""
    words = _WORD.findall(sentence)
    lower = [word.casefold().replace("’", "'") for word in words]
    content = [word for word in lower if word not in _EMPTY]
    if not content:
        return _logistic(BASE + ASKED * _asks(sentence))
    named = any(
        word[0].isupper() and low not in _EMPTY
        for word, low in zip(words[1:], lower[1:], strict=True)
    )
    return _logistic(
        BASE
        + CONTENT_WORD * min(len(content), CONTENT_WORDS_MAX)
        + CONTENT_SHARE * len(content) / len(lower)
        + FIRST_PERSON * any(word in _FIRST for word in lower)
        + NAMED * named
        + NUMBERED * any(word[0].isdigit() for word in lower)
        + ASKED * _asks(sentence)
    )


_EMPTY = GREETINGS | ACKNOWLEDGEMENTS | REACTIONS | _FUNCTION


def _reason(sentence: str) -> Reason:
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(sentence)]
    if _HOW_ARE_YOU.search(sentence):
        return "greeting"
    if _asks(sentence):
        return "question"
    for word in words:
        if word in GREETINGS:
            return "greeting"
        if word in ACKNOWLEDGEMENTS:
            return "acknowledgement"
        if word in REACTIONS:
            return "reaction"
    return "other"


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)] ").endswith("?")


def _is_english(text: str) -> bool:
    """Whether it is sure to be: in Latin letters, with words that are English and no other
    language's, or nothing but words that say nothing.
    """
    if not _ENGLISH.fullmatch(text):
        return False
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
    if all(word in _EMPTY for word in words):
        return True
    return language_of(text) == "en" and any(word in _FUNCTION for word in words)


def _logistic(x: float) -> float:
    return 0.5 + 0.5 * math.tanh(x / 2)
