"""Whom a query is about: speakers it names, the user where it says "I", the assistant where it
says "you".

Names are compared as speakers or as words, not as meaning, so they are left out of what is
embedded. In a chat with an assistant nobody is named: a question about "my" things is answered by
what the user said, one about what "you" told by what the assistant did. The words for that are
English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
from pyroaring import BitMap

from plugins.memories import MEMORY_FEATURES, MEMORY_FIELDS, MEMORY_TEXT
from plugins.search.limits import WORDS_LOOKED_AT_MAX
from plugins.search.models import SearchBody
from plugins.search.slips import Spellings, find_slips, near_terms, spelled
from plugins.search.universe import universe
from runtime.api.context import ReadContext, Vocabulary
from storage.indexes import Ordinals, among, ordinals_of
from storage.text import (
    STOP_WORDS,
    QueryText,
    read_query,
    slip_shape,
    word_set,
)

NAMES_IN_QUERY_MAX = 16
OTHER_TERMS_MIN = 2
NAME_COMMON_MIN = 10  # memories a name must be in before it says too little to be embedded
NAMES_LOOKED_AT_FIRST = 64
SPEAKERS_LOOKED_FOR_MAX = 1_000  # memories of a search that tell whether its speakers are known
ROLES = ("user", "assistant", "system", "tool")
WORD = re.compile(r"[^\W\d_]+")
ENGLISH = re.compile(
    r"\b(?:what|when|where|who|whose|which|why|how|the|does|did|of)\b", re.IGNORECASE
)  # elsewhere every noun may have a capital
# Names that are words as well: in small letters, or where a question begins, they are words.
ORDINARY = STOP_WORDS["english"] | word_set(
    """amber angel april art august baker bill bob brook buddy carter chase cliff cook daisy dale
    dawn dean don drew duke earl faith forest frank gene ginger glen grace grant guy heath hope
    hunter iris ivy jack jay joy june king lane lily mark mason may mike miles nick olive page pat
    pearl penny porter ray reed rich rob robin rose ruby rusty sky star stone sue summer sunny
    autumn violet wade will young assistant system tool user"""
)
_OF_USER = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves)\b", re.IGNORECASE)
_SAID = (
    "advised|answered|called|came up|created|described|explained|gave|given|listed|made|mentioned|"
    "named|proposed|provided|recommended|replied|said|shared|showed|shown|suggested|told|written|"
    "wrote"
)
_OF_ASSISTANT = re.compile(
    rf"\b(?:did you|you(?:'ve| had| have)?(?: just| also| already| previously)? (?:{_SAID})|"
    rf"have you (?:{_SAID})|we (?:chatted|discussed|spoke|talked)|"
    r"our (?:\w+ )?(?:chats?|conversations?|discussions?))\b",
    re.IGNORECASE,
)
_REMIND = re.compile(r"\bremind me\b", re.IGNORECASE)


@dataclass(slots=True)
class Named:
    """Speakers the query names: each the set of memories they spoke, the words that name them;
    names left out, and the query with and without.

    role   "user" or "assistant" where the query asks for what one of them said, else None
    slips  words that no memory has and the model never met -> what they may be meant to be
    near_terms  those that are one slip away from terms of memories -> these, likeliest first
    """

    query: QueryText
    people: list[BitMap]
    words: list[str]
    left_out: list[str]
    rest: QueryText
    role: str | None = None
    slips: Spellings = field(default_factory=dict)
    near_terms: dict[str, list[str]] = field(default_factory=dict)

    def proposing(self, terms: list[str]) -> list[str]:
        """Those of the query's terms that look for candidates: names find too many, so the others
        do where there are enough.
        """
        named = frozenset(term for word in self.left_out for term in self.query.terms_of(word))
        others = [term for term in terms if term not in named] if named else terms
        return others if len(others) >= OTHER_TERMS_MIN else terms

    def correct(self, near: dict[str, tuple[str, BitMap]]) -> None:
        """Take slips that are near a speaker's name for that name.

        near: slip -> the name, and what was said by whom it names
        """
        if not near:
            return
        text = self.query.text
        for word, (name, spoken) in near.items():
            del self.slips[word]
            meant = name.capitalize() if word[0].isupper() else name
            text = spelled(text, word, meant)
            self.add(meant, spoken)
        self.role, self.left_out = None, self.words
        self.query = read_query(text, self.query.language)
        shorter = without(text, self.words)
        self.rest = self.query if shorter == text else read_query(shorter, self.query.language)

    def add(self, word: str, spoken: BitMap) -> None:
        """A further word that names a speaker, who may be named already."""
        self.words.append(word)
        same = next((i for i, one in enumerate(self.people) if not one.isdisjoint(spoken)), None)
        if same is None:
            self.people.append(spoken)
        else:
            self.people[same] &= spoken


def find_names(ctx: ReadContext, body: SearchBody, vocabulary: Vocabulary) -> Named:
    """Words of the query that are names of speakers, as people type them. Words that name the same
    person, first and last name, count as one.

    vocabulary: what the model that will embed the query knows. Other spellings are looked up of
    words that it never met alone: there are hundreds of each, and it reads any other as it stands.
    """
    query = read_query(body.query)
    named = Named(query, [], [], [], query)
    found = islice(dict.fromkeys(WORD.findall(query.text)), WORDS_LOOKED_AT_MAX)
    # "will" is a word and "Will" may be a person, but not where a question begins with it.
    asked = [
        word
        for at, word in enumerate(found)
        if word.casefold() not in ORDINARY or (at > 0 and not word.islower())
    ]
    spoken_by = ctx.index(MEMORY_FIELDS).of_each("speaker_word", [w.casefold() for w in asked])
    for word, spoken in zip(asked, spoken_by, strict=True):
        if spoken and len(named.words) < NAMES_IN_QUERY_MAX:
            named.add(word, spoken)
    named.left_out = named.words or common_names(ctx, body, query)
    shorter = without(query.text, named.left_out)
    named.rest = query if shorter == query.text else read_query(shorter, query.language)
    named.role = None if named.people else role_asked(query)
    # Who was taught another language knows of no slips in this one.
    if body.measures_words and vocabulary.taught(named.rest.language):
        named.slips = find_slips(ctx, named.rest, vocabulary)
        named.correct(near_speakers(ctx, named.slips, vocabulary))
        named.near_terms = near_terms(ctx, named.slips, vocabulary)
    return named


def near_speakers(
    ctx: ReadContext, slips: Iterable[str], vocabulary: Vocabulary
) -> dict[str, tuple[str, BitMap]]:
    """Those of the slips that are one slip away from a speaker's name -> the likeliest of such
    names, of equally likely ones that of whoever said most, and all that was said by whom it names.
    """
    found, speakers = {}, ctx.index(MEMORY_FIELDS)
    for word in slips:
        lengths = range(len(word) - 1, len(word) + 2)
        shapes = [slip_shape(word.casefold(), chars) for chars in lengths]
        met = speakers.have_each("speaker_shape", shapes)
        fitting = {chars for chars, is_met in zip(lengths, met, strict=True) if is_met}
        if not fitting:
            continue  # as it is with most words: it has some 140 spellings
        undone = vocabulary.slips_undone(word)
        likely = {
            name: so for name, so in undone.items() if len(name) in fitting and name not in ORDINARY
        }
        have = speakers.have_each("speaker_word", list(likely))
        names = [name for name, has in zip(likely, have, strict=True) if has]
        spoken = zip(names, speakers.of_each("speaker_word", names), strict=True)
        if names:
            found[word] = max(spoken, key=lambda one: (likely[one[0]], len(one[1]), one[0]))
    return found


def role_asked(query: QueryText) -> str | None:
    """Who said what the query asks for: "assistant" when it recalls an answer, "user" when somebody
    asks about themselves, None when nothing tells, or it is not asked in English.
    """
    text = query.text
    if query.language != "english":
        return None
    if _OF_ASSISTANT.search(text):
        return "assistant"
    reminded = _REMIND.search(text)
    if reminded is not None:
        return "user" if _OF_USER.search(text, reminded.end()) else "assistant"
    return "user" if _OF_USER.search(text) else None


def by_role(ctx: ReadContext) -> dict[str, BitMap]:
    """Role -> the ordinals of what was said in it; where none is told, the speaker may be called by
    theirs.
    """
    fields = ctx.index(MEMORY_FIELDS)
    told = {role: fields.of("role", role) for role in ROLES}
    any_role = BitMap().union(*told.values())
    return {role: found | (fields.of("speaker", role) - any_role) for role, found in told.items()}


def said_by(
    ctx: ReadContext, named: Named, candidates: np.ndarray, speakers: np.ndarray
) -> np.ndarray:
    """1 for memories of the one speaker or role that the query is about, −1 for others'; all 0 when
    it is about nobody or several.

    (n,) float32; speakers: (n,) numbers of the candidates' speakers, 0 for none.
    """
    if named.role is not None:
        found = np.zeros(len(candidates), np.float32)
        for role, ordinals in by_role(ctx).items():
            said = among(ordinals_of(ordinals), candidates)
            found[said] = 1 if role == named.role else -1
        return found
    if len(named.people) != 1:
        return np.zeros(len(candidates), np.float32)
    theirs = among(ordinals_of(named.people[0]), candidates)
    found = np.where(theirs, np.float32(1), np.float32(-1))
    found[speakers == 0] = 0
    return found


def common_names(ctx: ReadContext, body: SearchBody, query: QueryText) -> list[str]:
    """Names in an English query that many memories of the search hold. They stand in for speakers
    where none is known: such a name tells the memories apart by its word, while in an embedding it
    only draws together all that mention anybody."""
    found = WORD.findall(body.query)
    names = [word for word in dict.fromkeys(found[1:]) if word[0].isupper() and not word.isupper()]
    if not names or 2 * len(names) > len(found) or not ENGLISH.search(body.query):
        return []
    terms_of = {name: query.terms_of(name) for name in names[:NAMES_IN_QUERY_MAX]}
    # The account has at least as many of them as the search, and is asked sooner.
    text, terms = ctx.index(MEMORY_TEXT), list(chain.from_iterable(terms_of.values()))
    counts = dict(zip(terms, text.counts_of(terms), strict=True))
    common = [
        name for name, own in terms_of.items() if any(counts[t] >= NAME_COMMON_MIN for t in own)
    ]
    if not common:
        return []
    allowed = universe(ctx, body)
    if ctx.index(MEMORY_FIELDS).has_any("speaker"):
        some = ordinals_of(allowed[:SPEAKERS_LOOKED_FOR_MAX])
        if ctx.index(MEMORY_FEATURES).field("speaker", some).any():
            return []
    if len(allowed) == text.stats().documents:
        return common  # all that the account has are in the search
    within = ordinals_of(allowed)
    return [
        name
        for name in common
        if any(
            _are_many(within, each.ordinals, NAME_COMMON_MIN)
            for each in text.postings_of(terms_of[name])
        )
    ]


def _are_many(allowed: Ordinals, ordinals: Ordinals, least: int) -> bool:
    """Whether so many of the ordinals are allowed, which mostly the first of them tell."""
    found, start, size = 0, 0, NAMES_LOOKED_AT_FIRST
    while start < len(ordinals) and found < least:
        found += int(among(allowed, ordinals[start : start + size]).sum())
        start, size = start + size, 2 * size
    return found >= least


def without(query: str, words: list[str]) -> str:
    """The query without these words and what makes them possessive; the query itself when nothing
    would be left.
    """
    rest = (
        re.sub(rf"\b(?:{'|'.join(map(re.escape, words))})\b(?:['’]s)?", " ", query)
        if words
        else query
    )
    return " ".join(rest.split()) or query
