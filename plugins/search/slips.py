"""Slips of the fingers in a query: words that no memory has and the model never met, one letter
away from one that is known. What is meant is looked for instead: a speaker's name, a month or day
of the week, what the model knows, or else a word that some memory has.
"""

from __future__ import annotations

import calendar
import re
from itertools import chain, islice

import numpy as np

from plugins.memories import MEMORY_TEXT
from plugins.search.days import MONTHS
from plugins.search.limits import WORDS_LOOKED_AT_MAX
from runtime.api.context import ReadContext, Vocabulary
from storage.text import DIGIT, QueryText, Speller, query_terms

SLIPS_MAX = 4  # words of a query that are looked up in other spellings
SLIP_CHARS_MIN = 4  # a shorter word has too many neighbours
_DATED = Speller([*MONTHS, *map(str.lower, calendar.day_name)])
_POSSESSIVE = re.compile(r"['’]s?$")

Spellings = dict[str, list[str]]  # a word that is a slip -> what may be meant, likeliest first


def find_slips(ctx: ReadContext, query: QueryText, vocabulary: Vocabulary) -> Spellings:
    """Words of the query that no memory has and the model never met, and the spellings that it has
    met. What has a digit means itself.
    """
    unknown = {
        said: word.terms
        for word in query.words[:WORDS_LOOKED_AT_MAX]
        if word.end - word.start >= SLIP_CHARS_MIN
        and not DIGIT.search(said := query.text[word.start : word.end])
        and not vocabulary.knows(said := _POSSESSIVE.sub("", said))
    }
    if not unknown:
        return {}
    terms = list(chain.from_iterable(unknown.values()))
    met = dict(zip(terms, ctx.index(MEMORY_TEXT).have_terms(terms), strict=True))
    unmet = (said for said, own in unknown.items() if not any(met[term] for term in own))
    return {word: vocabulary.spellings(word) for word in islice(unmet, SLIPS_MAX)}


def near_terms(ctx: ReadContext, slips: Spellings, vocabulary: Vocabulary) -> dict[str, list[str]]:
    """Slip -> terms one slip away that some memories have, the likeliest first: a slip happens the
    more often, the more often its word is written.

    With a capital it may be a name that nobody mentioned, which is not to be taken for another one:
    then only what the model has met is looked for.
    """
    text, found = ctx.index(MEMORY_TEXT), {}
    for slip, spellings in slips.items():
        if slip[0].isupper():
            likely = dict.fromkeys(chain.from_iterable(map(query_terms, spellings)), 1.0)
        else:
            own = query_terms(slip)
            likely = vocabulary.slips_undone(own[0]) if len(own) == 1 else {}
        met = [term for term, has in zip(likely, text.have_terms(likely), strict=True) if has]
        counts = [len(each.ordinals) for each in text.postings_of(met)]
        often = {term: likely[term] * count for term, count in zip(met, counts, strict=True)}
        if often:
            found[slip] = sorted(often, key=lambda term: -often[term])
    return found


def terms_meant(ctx: ReadContext, slips: Spellings, near: dict[str, list[str]]) -> dict[str, str]:
    """Term of a slip -> the term that is likely meant: of the spellings that the model has met the
    one that most memories have; where none has any, the likeliest of the near terms.
    """
    found: dict[str, str] = {}
    for slip, spellings in slips.items():
        known = [term for spelling in spellings for term in query_terms(spelling)]
        counts = [len(each.ordinals) for each in ctx.index(MEMORY_TEXT).postings_of(known)]
        meant = [known[int(np.argmax(counts))]] if any(counts) else near.get(slip, [])[:1]
        found |= {term: meant[0] for term in query_terms(slip) if meant}
    return found


def embedded(query: str, slips: Spellings, near: dict[str, list[str]]) -> str:
    """The query as it is embedded: a slip spelled as it is most likely meant. With a capital it may
    be a name that nobody mentioned, and stays unless memories have what is meant.
    """
    for word, spellings in slips.items():
        terms = near.get(word, [])
        met = [each for each in spellings if not set(terms).isdisjoint(query_terms(each))]
        likely = [*(spellings if word.islower() else met), *terms]
        if likely:
            query = spelled(query, word, likely[0])
    return query


def dated(query: str, slips: Spellings) -> str:
    """The query as its dates are read: with the months and days of the week that are meant."""
    for word in slips:
        names = _DATED.meant(word)
        if names:
            query = spelled(query, word, max(names, key=lambda name: names[name]))
    return query


def spelled(query: str, word: str, meant: str) -> str:
    """The query with another word in a word's place."""
    return re.sub(rf"\b{re.escape(word)}\b", meant, query)
