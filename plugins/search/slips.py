"""Slips of the fingers in a query: words that no memory has and the model never met, one letter
away from one that it has. What is meant is looked for beside what stands there.
"""

from __future__ import annotations

import re
from itertools import chain, islice

import numpy as np

from plugins.memories import MEMORY_TEXT
from plugins.search.limits import WORDS_LOOKED_AT_MAX
from runtime.api.context import ReadContext
from runtime.inference import Embedder
from storage.text import QueryText, query_terms

SLIPS_MAX = 4  # words of a query that are looked up in other spellings
SLIP_CHARS_MIN = 4  # a shorter word has too many neighbours

Spellings = dict[str, list[str]]  # a word that is a slip -> what may be meant, likeliest first


def unmet_words(ctx: ReadContext, query: QueryText) -> list[str]:
    """Words of the query that no memory has."""
    looked_up = [
        word
        for word in query.words[:WORDS_LOOKED_AT_MAX]
        if word.end - word.start >= SLIP_CHARS_MIN
    ]
    terms = list(chain.from_iterable(word.terms for word in looked_up))
    met = dict(zip(terms, ctx.index(MEMORY_TEXT).have_terms(terms), strict=True))
    unmet = (word for word in looked_up if not any(met[term] for term in word.terms))
    return [query.text[word.start : word.end] for word in islice(unmet, SLIPS_MAX)]


def possible_slips(unmet: list[str], embedder: Embedder) -> Spellings:
    """Those of the words that the model never met either, but in another spelling."""
    return {word: meant for word in unmet if (meant := embedder.spellings(word))}


def terms_meant(ctx: ReadContext, slips: Spellings) -> list[str]:
    """The terms of what is likely meant: of each slip the spelling that most memories have."""
    text = ctx.index(MEMORY_TEXT)
    found: list[str] = []
    for meant in slips.values():
        terms = [term for spelling in meant for term in query_terms(spelling)]
        counts = [len(each.ordinals) for each in text.postings_of(terms)]
        if any(counts):
            found.append(terms[int(np.argmax(counts))])
    return found


def embedded(query: str, slips: Spellings) -> str:
    """The query as it is embedded: a slip that is no name spelled as it is most likely meant."""
    for word, meant in slips.items():
        if word.islower():
            query = re.sub(rf"\b{word}\b", meant[0], query)
    return query
