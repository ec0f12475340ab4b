"""What a search asks, apart from its embedding: whom it names, which memories it may return, where its words stand.

find_names   speakers among the query's words; they are compared as speakers or as words, not as meaning
ask          a snapshot's answer to all that needs no embedding, so that it can be found while the query is embedded
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyroaring import BitMap

from plugins import ranking
from plugins.filters import compile_filter
from plugins.memory_store import ARCHIVED, MEMORY_FIELDS, MEMORY_TEXT, scope_filter
from plugins.memory_times import known_at
from plugins.query_dates import Stretch, find_dates, reference_day
from plugins.search_views import SearchBody
from runtime.operation import ReadContext
from storage.analysis import query_terms
from storage.bitmap_index import All
from storage.ordinals import ordinals_of

NAMES_IN_QUERY_MAX = 16
FILTERS_AT = ("body", "filters")
OTHER_TERMS_MIN = 2
NAME_COMMON_MIN = 10  # memories a name must be in before it says too little to be embedded
WORD = re.compile(r"[^\W\d_]+")
ENGLISH = re.compile(
    r"\b(?:what|when|where|who|whose|which|why|how|the|does|did|of)\b", re.IGNORECASE
)  # elsewhere every noun may have a capital


@dataclass(slots=True)
class Named:
    """Speakers the query names: each the set of memories they spoke, the words that name them; names left out, and the query without."""

    people: list[BitMap]
    words: list[str]
    left_out: list[str]
    rest: str

    def proposing(self, terms: list[str]) -> list[str]:
        """Those of the query's terms that look for candidates: names find too many, so the others do where there are enough."""
        named = frozenset(term for word in self.left_out for term in query_terms(word))
        others = [term for term in terms if term not in named] if named else terms
        return others if len(others) >= OTHER_TERMS_MIN else terms


@dataclass(slots=True)
class Question:
    """What one snapshot says of a query without its embedding.

    allowed   everything that the search may return; members: the same as ascending ordinals
    archived  ascending ordinals, everything that is archived
    by_words  (n,) uint32, candidates of the lexical channel
    measure   what ranking needs to know of the query
    dates     the times that the query names
    """

    terms: list[str]
    allowed: BitMap
    members: np.ndarray
    archived: np.ndarray
    by_words: np.ndarray
    measure: ranking.Query
    dates: list[Stretch]


def ask(ctx: ReadContext, body: SearchBody, named: Named, allowed: BitMap) -> Question:
    """Where the query's words stand among the allowed memories, and how much each of them says there."""
    terms = terms_of(body)
    text = ctx.index(MEMORY_TEXT)
    by_words = np.zeros(0, np.uint32)
    if terms:
        text.postings_of(terms)  # of the names too, which ranking will need: reading all at once costs little more
        proposing = named.proposing(terms) if body.search_type == "hybrid" else terms
        by_words = text.search(proposing, ctx.settings.search.candidates, allowed)[0]
    members, stats = ordinals_of(allowed), text.stats()
    idf = rarity(ctx, terms, members)
    measure = ranking.Query(
        idf=idf,
        ceiling=float((ranking.K1 + 1) * idf.sum()),
        average_length=stats.total_length / max(stats.documents, 1),
        asks_when=ranking.asks_when(body.query),
        asks_count=ranking.asks_count(body.query),
        asks_where=ranking.asks_where(body.query),
    )
    now = next(at for at in (body.reference_date, body.as_of, ctx.now) if at is not None)
    archived = ctx.index(MEMORY_FIELDS).of("tier", ARCHIVED)
    return Question(terms, allowed, members, ordinals_of(archived), by_words, measure, find_dates(body.query, reference_day(now)))


def find_names(ctx: ReadContext, query: str) -> Named:
    """Words of the query that are names of speakers. Words that name the same person, first and last name, count as one."""
    fields = ctx.index(MEMORY_FIELDS)
    people: list[BitMap] = []
    words: list[str] = []
    for word in dict.fromkeys(WORD.findall(query)):
        # "will" is a word, "Will" may be a person: in scripts with cases a name has a capital.
        spoken = BitMap() if word.islower() else fields.of("speaker_word", word.casefold())
        if not spoken or len(words) >= NAMES_IN_QUERY_MAX:
            continue
        words.append(word)
        same = next((i for i, person in enumerate(people) if not person.isdisjoint(spoken)), None)
        if same is None:
            people.append(spoken)
        else:
            people[same] &= spoken
    left_out = words or common_names(ctx, query)
    return Named(people, words, left_out, without(query, left_out))


def common_names(ctx: ReadContext, query: str) -> list[str]:
    """Names in an English query that many memories hold. They stand in for speakers where none is known: such a name tells the
    memories apart by its word, while in an embedding it only draws together all that mention anybody."""
    found = WORD.findall(query)
    names = [word for word in dict.fromkeys(found[1:]) if word[0].isupper() and not word.isupper()]
    if not names or 2 * len(names) > len(found) or not ENGLISH.search(query):
        return []
    text = ctx.index(MEMORY_TEXT)
    return [
        name
        for name in names[:NAMES_IN_QUERY_MAX]
        if any(len(text.postings(term).ordinals) >= NAME_COMMON_MIN for term in query_terms(name))
    ]


def without(query: str, words: list[str]) -> str:
    """The query without these words and what makes them possessive; the query itself when nothing would be left."""
    rest = re.sub(rf"\b(?:{'|'.join(map(re.escape, words))})\b(?:['’]s)?", " ", query) if words else query
    return " ".join(rest.split()) or query


def universe(ctx: ReadContext, body: Any) -> BitMap:
    """Everything a search may return: live, indexed, in scope, inside the filters."""
    past = body.as_of is not None
    found = scope_filter(ctx, body, include_superseded=body.include_superseded or past) - ctx.index(MEMORY_FIELDS).of("pending", 1)
    if past:
        found = known_at(ctx, found, body.as_of, include_superseded=body.include_superseded)
    if body.filters:
        found = All(compile_filter(ctx, body.filters, FILTERS_AT)).evaluate(ctx.index(MEMORY_FIELDS), found)
    return found


def terms_of(body: SearchBody) -> list[str]:
    """The query's distinct terms, where the search goes by words at all."""
    return query_terms(body.query) if body.search_type in ("hybrid", "bm25") else []


def rarity(ctx: ReadContext, terms: list[str], members: np.ndarray) -> np.ndarray:
    """(t,) inverse document frequencies among the members, ascending ordinals: a word that is everywhere in one collection says little
    there."""
    text = ctx.index(MEMORY_TEXT)
    if not len(members):
        return np.zeros(len(terms), np.float32)
    if len(members) >= text.stats().documents:
        return np.array([text.idf(term) for term in terms], np.float32)
    held = np.zeros(int(members[-1]) + 1, bool)
    held[members] = True
    inside = [ordinals[: np.searchsorted(ordinals, len(held))] for ordinals in (text.postings(term).ordinals for term in terms)]
    return ranking.idf(len(members), np.array([np.count_nonzero(held[ordinals]) for ordinals in inside], np.float32))
