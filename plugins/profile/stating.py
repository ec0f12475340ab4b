"""Whether a sentence states what follows a subject in it: what is denied, doubted, supposed, dreamt
or said by somebody else is no fact.

A statement begins its sentence or clause, after a conjunction, a word of greeting or time, or a
phrase with a preposition. What stands in a clause that another verb opens ("I doubt that I …", "Tom
says I …") is that verb's, but for those that take it to be so ("I know I …").
"""

from __future__ import annotations

import re

from storage.text import word_set

# After one of these the sentence supposes, doubts, reports or denies.
_OPEN = re.compile(
    r"\b(?:if|unless|whether|lest|neither|nor|imagin\w*|suppos\w*|assum\w*|pretend\w*|"
    r"doubt\w*|wish\w*|hop(?:e|es|ed|ing)|thinks?|thought|thinking|guess\w*|believ\w*|suspect\w*|"
    r"(?<!to )(?<!must )(?<!me )(?:say|tell|hear)|says|said|saying|tells|told|claim\w*|hears|heard|"
    r"rumou?rs?|dream\w*|dreamt|lie|lied|"
    r"lying|false|untrue|wrong|maybe|perhaps|(?:not|isn['’]t) (?:true|sure|certain|clear|"
    r"the case)|in (?:the|a|my|this|our|that) (?:\w+ )?(?:novel|story|book|film|movie|game|play|"
    r"nightmare|simulation))\b",
    re.IGNORECASE,
)
# Words that what was open before them reaches no further than.
_TURN = re.compile(r";|\b(?:but|because|however)\b", re.IGNORECASE)
_AFTER = re.compile(
    r" (?:if|unless)\b|[^;]*(?:,| [-–—]) (?:or so )?I (?:think|thought|guess|suppose|believe|hope|"
    r"imagine|pretended|pretend|dreamt|dreamed|wish)\b[\s.!…]*$"
)
_CLAUSE = re.compile(
    r"[,;:()]| [-–—] |\b(?:and|but|so|because|since|although|though|while|as|or|then|yet)\b",
    re.IGNORECASE,
)
_PREPOSITIONS = word_set(
    "in on at for after before during since from with by under over about until despite besides"
)
_SUBJECTS = word_set("i you he she it we they that who which there this")
# What may lead to a subject without a mark between them: interjections, adverbs, times, and verbs
# that take what follows to be so.
_LEADING = word_set(
    """yes yeah yep no nope well ok okay hi hello hey oh ah anyway btw fyi ps now nowadays today
    tonight tomorrow yesterday still also often sometimes always here there plus meanwhile however
    maybe instead again soon once day days week weeks month months year years morning evening
    afternoon night weekend weekends summer winter spring autumn moment monday tuesday wednesday
    thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
    january february march april may june july august september october november december is know
    knew realize realise realized realised remember discovered glad happy proud sorry course"""
)
_STRESSED = re.compile(r"not only (?:do|does)|(?:I )?(?:must|have to) say", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def is_stated(sentence: str, start: int, end: int) -> bool:
    """Whether what stands from the subject at `start` to `end` is told as it is."""
    before = sentence[:start]
    reach = max((found.end() for found in _TURN.finditer(before)), default=0)
    if _OPEN.search(before, reach) or _AFTER.match(sentence, end):
        return False
    opening = max((found.end() for found in _CLAUSE.finditer(before)), default=0)
    return _leads(before[opening:].strip())


def is_real(sentence: str, start: int) -> bool:
    """Whether nobody supposes or dreams what is there at `start`, as somebody's wife is."""
    return _FICTION.search(sentence[:start]) is None


_FICTION = re.compile(
    r"\b(?:if|imagine|suppose|supposing|pretend\w*|dream\w*|dreamt|wish\w*|nightmare|novel)\b",
    re.IGNORECASE,
)


def _leads(opening: str) -> bool:
    words = [word.casefold() for word in _WORD.findall(opening)]
    if not words or _STRESSED.fullmatch(opening):
        return True
    if words[0] in _PREPOSITIONS:
        return _SUBJECTS.isdisjoint(words)
    last = words[-1]
    if "not" in words or any(word.endswith(("n't", "n’t")) for word in words):
        return False
    return last in _LEADING or last.isdigit() or last.endswith("ly")
