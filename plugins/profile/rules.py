"""What one memory says about the person it belongs to, found by rules.

`observations` is the whole interface: a text and who it may speak of -> claims with a key and a
value, each taken word for word from the text. English sentences in the first person, or about a
named person or "the user", are read where they state something (stating.py); questions and what is
quoted, by marks or by lines that begin with ">", are not. The rules would rather find nothing than
something false.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plugins.ingestion import in_one_spelling
from plugins.profile.stating import is_real, is_stated

READ_CHARS_MAX = 5_000
VALUE_CHARS_MAX = 120
OBSERVATIONS_MAX = 20  # of one memory

# Keys that hold one value at a time: the latest one counts.
FUNCTIONAL = frozenset(
    [
        "named",
        "lives_in",
        "comes_from",
        "born_in",
        "born_on",
        "age",
        "works_at",
        "works_as",
        "studies_at",
        "married_to",
        "engaged_to",
        "diet",
        "stays_in",
    ]
)
# Keys of what passes: plans, occupations of the moment.
DYNAMIC = frozenset(["plans", "doing", "learns", "feels"])


@dataclass(frozen=True, slots=True)
class Observation:
    """holds False: the text says that this is no longer, or never was, so."""

    key: str
    value: str
    confidence: float
    holds: bool = True


_NAME = r"(?P<value>(?:[A-Z][\w'’-]+)(?: [A-Z][\w'’-]+){0,2})"
_PLACE = r"(?P<value>(?:the )?[A-Z][\w'’.-]*(?:,? (?:of |the )?(?!I\b)[A-Z][\w'’-]*){0,3})"
# "I left Graz at six" and "by train" come back.
_FOR_GOOD = (
    r"(?=\s*(?:[.,;!)\n]|$)| for (?:good|[A-Z])| in (?:\d|[A-Z])| last (?!night)| because\b"
    r"| \w+ (?:years?|months?|weeks?) ago\b| years ago\b| and (?:moved|now|live)\b)"
)
_CONJUNCTIONS = (
    "and|but|because|since|when|while|so|if|which|who|that|though|although|after|before|until|"
    "these days|right now|at the moment"
)
_STOP = rf"(?= (?:{_CONJUNCTIONS})\b| [-–—] |[.,;:!?()\n]|$)"
_THING = rf"(?P<value>[^\s.,;:!?()\n][^.,;:!?()\n]{{0,{VALUE_CHARS_MAX - 1}}}?){_STOP}"
_OFTEN = (
    r"(?:really |absolutely |still |now |currently |just |also |always |usually |actually ){0,8}+"
)
_BE, _HAVE = r"(?:am|'m|’m|is|'s|’s)", r"(?:have|'ve|’ve|has)"
_TRADES = (
    r"(?:\w+ "
    r"){0,2}?(?:engineer|developer|programmer|designer|teacher|nurse|doctor|physician|lawyer|"
    r"student|writer|author|artist|musician|"
    r"chef|cook|baker|accountant|scientist|researcher|manager|consultant|architect|carpenter|"
    r"electrician|plumber|mechanic|pilot|driver|"
    r"farmer|photographer|journalist|editor|analyst|therapist|counselor|dentist|veterinarian|"
    r"pharmacist|librarian|barista|waiter|waitress|"
    r"salesperson|entrepreneur|founder|professor|translator|coach|trainer|firefighter|police "
    r"officer|social worker)"
)
_RELATIVES = (
    r"(?P<relation>wife|husband|partner|girlfriend|boyfriend|sister|brother|mother|mom|father|dad|"
    r"daughter|son|dog|cat|boss|friend)"
)
# Relations by the names that ingestion has for them, so that a profile has each once.
_AS_CLAIMED = {
    "wife": "married_to", "husband": "married_to", "partner": "partner_of",
    "girlfriend": "partner_of", "boyfriend": "partner_of", "mom": "mother", "dad": "father",
    "dog": "has_pet", "cat": "has_pet",
}  # fmt: skip
_PETS = r"(?:\w+ )?(?:dog|cat|parrot|rabbit|hamster|horse|turtle|snake|puppy|kitten)"
_GAMES = "guitar|piano|violin|drums|cello|flute|tennis|chess|football|soccer|basketball"
_TASKS = "working on|training for|preparing for|saving for|reading|writing|building"
_POINTS_ELSEWHERE = re.compile(
    r"(?:it|this|that|these|those|them|him|her|us|me|you|your|one|do|tell|say|ask|know|thank|see|"
    r"hear|share|try|keep|is|are|was|were|neither|nothing|none|nobody)\b"
    r"|to (?:say|admit|interrupt|bother|disappoint|think|imagine|know|hear)\b"
    r"|to (?:tell|ask|break|see|bring) (?:you|it|this|that|him|her|them)\b",
    re.IGNORECASE,
)
# What ends with one of these goes on where the value was cut.
_CUT_SHORT = re.compile(r"\b(?:an?|the|my|your|his|her|our|their|to|of|in|at|for|with|be)$")
VALUE_WORDS_MAX = 8

# key ("{}" takes the group `detail`), what follows the subject, confidence, whether it holds
_RULES: tuple[tuple[str, re.Pattern[str], float, bool], ...] = tuple(
    (key, re.compile(pattern), confidence, holds)
    for key, pattern, confidence, holds in (
        ("lives_in", (rf"{_OFTEN}(?:lives?|reside[sd]?|{_BE} {_OFTEN}(?:living|based)) "
        rf"in {_PLACE}"), 0.8, True),
        ("lives_in", rf"{_HAVE}? ?{_OFTEN}(?:moved|relocated) (?:back )?to {_PLACE}", 0.75, True),
        ("lives_in", rf"(?:no longer lives? in|moved away from) {_PLACE}", 0.7, False),
        ("lives_in", rf"left {_PLACE}{_FOR_GOOD}", 0.7, False),
        ("comes_from", rf"(?:{_BE} (?:originally )?from|comes? from|grew up in) {_PLACE}", 0.75,
         True),
        ("born_in", rf"(?:was born|{_BE} born) in {_PLACE}", 0.85, True),
        ("works_at", rf"{_OFTEN}(?:works?|{_BE} {_OFTEN}working) (?:at|for) {_PLACE}", 0.8, True),
        ("works_as", rf"{_OFTEN}(?:works?|{_BE} {_OFTEN}working) as an? {_THING}", 0.8, True),
        ("works_as", rf"{_BE} {_OFTEN}an? (?P<value>{_TRADES})\b", 0.75, True),
        ("studies_at", rf"{_OFTEN}(?:stud(?:y|ies)|{_BE} {_OFTEN}studying) at {_PLACE}", 0.8, True),
        ("speaks", rf"{_OFTEN}speaks? (?:fluent |some |a little )?(?P<value>[A-Z]\w+)", 0.75, True),
        ("dislikes", rf"{_OFTEN}(?:hates?|dislikes?|can(?:'t|’t|not) "
        r"stand|do(?:es)?(?:n't|n’t| not) like) "
            rf"{_THING}", 0.7, True),
        ("likes", rf"{_OFTEN}(?:likes?|loves?|enjoys?|adores?|{_BE} (?:a (?:big |huge "
        r")?fan of|fond "
            rf"of|into)) {_THING}", 0.65, True),
        ("prefers", rf"{_OFTEN}prefers? {_THING}", 0.75, True),
        ("allergic_to", rf"{_BE} {_OFTEN}allergic to {_THING}", 0.85, True),
        ("diet", rf"{_BE} {_OFTEN}(?:an? )?(?P<value>vegan|vegetarian|pescatarian|lactose "
            r"intolerant|gluten[- ]free)\b", 0.85, True),
        ("has_pet", rf"{_HAVE} (?:got )?an? (?P<value>{_PETS})\b", 0.75, True),
        ("plays", rf"{_OFTEN}plays? (?:the )?(?P<value>{_GAMES})\b", 0.75, True),
        ("age", rf"{_BE} (?P<value>\d{{1,3}}) years old", 0.85, True),
        ("learns", rf"{_BE} {_OFTEN}learning (?:to )?{_THING}", 0.7, True),
        ("plans", rf"(?:{_BE} (?:planning|going|hoping) to|plans? to|intends? to) {_THING}", 0.6,
         True),
        ("doing", rf"{_BE} {_OFTEN}(?P<value>(?:{_TASKS}) [^.,;:!?()\n]{{2,80}}?){_STOP}", 0.6,
         True),
        ("feels", rf"{_BE} feeling {_THING}", 0.5, True),
    )
)  # fmt: skip
# The same for what belongs to the subject: "my name is …", "Ada's favourite colour is …".
_OWNED: tuple[tuple[str, re.Pattern[str], float], ...] = tuple(
    (key, re.compile(pattern), confidence)
    for key, pattern, confidence in (
        ("named", rf"name is {_NAME}", 0.9),
        ("favorite.{}", rf"fav(?:ou?rite|e)? (?P<detail>[a-z]+) is {_THING}", 0.85),
        ("born_on", rf"birthday is (?:on )?{_THING}", 0.85),
        ("{}", rf"{_RELATIVES} is (?:named |called )?{_NAME}", 0.75),
        (
            "{}",
            rf"{_RELATIVES},? {_NAME}(?=[,.!?]| (?:is|was|has|and|loves|likes|works|lives)\b)",
            0.7,
        ),
    )
)
_IS = re.compile(r"\bis ")
_SENTENCE = re.compile(r"[^.!?\n]+(?:\.(?=[^\s])[^.!?\n]*)*[.!?]*")
_QUOTED = re.compile(r"[\"“„«][^\"”“»\n]{1,400}[\"”“»]|^[ \t]*>.*$", re.MULTILINE)
_THE_USER = r"(?:[Tt]he )?[Uu]ser"


def observations(text: str, *, own: bool, names: Iterable[str] = ()) -> list[Observation]:
    """What the text says of the person.

    own    whether "I" is that person
    names  what else it is called by
    """
    others = "|".join([_THE_USER, *(re.escape(name) for name in names if name)])
    subject = re.compile(rf"(?<![\w'’])(?:{'I|' if own else ''}{others})(?=['’]| )(?: |(?=['’]))")
    owner = re.compile(rf"(?<![\w'’])(?:{'[Mm]y|' if own else ''}(?:{others})['’]s) ")
    found: dict[tuple[str, str], Observation] = {}
    for sentence in _SENTENCE.findall(_QUOTED.sub("\n", text[:READ_CHARS_MAX])):
        if sentence.rstrip().endswith("?"):
            continue
        for observation in _of_sentence(sentence, subject, owner):
            found.setdefault((observation.key, observation.value.casefold()), observation)
    return list(found.values())[:OBSERVATIONS_MAX]


def _of_sentence(
    sentence: str, subject: re.Pattern[str], owner: re.Pattern[str]
) -> Iterator[Observation]:
    for begun in subject.finditer(sentence):
        for key, pattern, confidence, holds in _RULES:
            match = pattern.match(sentence, begun.end())
            if match is None or not (value := _value(match)):
                continue
            if is_stated(sentence, begun.start(), match.end()):
                yield Observation(key, value, confidence, holds)
    for begun in owner.finditer(sentence):
        for key, pattern, confidence in _OWNED:
            match = pattern.match(sentence, begun.end())
            if match is None or not (value := _value(match)):
                continue
            is_told = _IS.search(match[0]) is not None
            if is_stated(sentence, begun.start(), match.end()) if is_told else (
                is_real(sentence, begun.start())
            ):  # fmt: skip
                parts = match.groupdict()
                detail = in_one_spelling(parts.get("detail") or "")
                relation = parts.get("relation")
                told = detail or _AS_CLAIMED.get(relation or "", relation)
                yield Observation(key.format(told), value, confidence)


def _value(match: re.Match[str]) -> str:
    value = match["value"].strip(" '\"’.-")
    is_value = (len(value) > 1 or value.isdigit()) and value.count(" ") < VALUE_WORDS_MAX
    is_value = is_value and not _POINTS_ELSEWHERE.match(value) and not _CUT_SHORT.search(value)
    return value if is_value else ""
