"""What one snapshot says of a query without its embedding: which memories it may return, where its
words stand among them; found while the query is embedded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from plugins.memories import MEMORY_FIELDS, MEMORY_TEXT
from plugins.search import ranking
from plugins.search.dates import Stretch, find_dates, reference_day
from plugins.search.days import ToldDay, told_days
from plugins.search.models import SearchBody
from plugins.search.names import Named
from plugins.search.settings import SearchSettings
from plugins.search.slips import dated, terms_meant
from runtime.api.context import ReadContext
from storage.indexes import ordinals_of


@dataclass(slots=True)
class Question:
    """What one snapshot says of a query without its embedding.

    allowed   everything that the search may return; members: the same as ascending ordinals
    archived  ascending ordinals, everything that is archived
    by_words  (n,) uint32, candidates of the lexical channel
    measure   what ranking needs to know of the query
    dates     the times that the query names
    days      those of them that memories tell in other words
    """

    terms: list[str]
    allowed: BitMap
    members: np.ndarray
    archived: np.ndarray
    by_words: np.ndarray
    measure: ranking.Query
    dates: list[Stretch]
    days: list[ToldDay]


def ask(ctx: ReadContext, body: SearchBody, named: Named, allowed: BitMap) -> Question:
    """Where the query's words stand among the allowed memories, and how much each of them says
    there.
    """
    terms, members = terms_of(ctx, body, named), ordinals_of(allowed)
    text = ctx.index(MEMORY_TEXT)
    by_words = np.zeros(0, np.uint32)
    if terms:
        # Of the names too, which ranking will need: reading all at once costs little more.
        text.end_to_end(terms)
        proposing = named.proposing(terms) if body.search_type == "hybrid" else terms
        if body.by_words:
            counts = SearchSettings.of(ctx.settings).candidates_for(body.offset + body.limit)
            by_words = text.search(proposing, counts[-1], members)[0]
    stats = text.stats()
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
    archived = ctx.index(MEMORY_FIELDS).of("tier", "archived")
    today, query = reference_day(now), dated(body.query, named.slips)
    return Question(
        terms,
        allowed,
        members,
        ordinals_of(archived),
        by_words,
        measure,
        find_dates(query, today),
        told_days(ctx, query, today) if terms and body.by_words else [],
    )


def terms_of(ctx: ReadContext, body: SearchBody, named: Named) -> list[str]:
    """The query's distinct terms, where the search goes by words at all; of slips among them what
    they are likely to mean.
    """
    if not body.measures_words:
        return []
    meant = terms_meant(ctx, named.slips, named.near_terms) if named.slips else {}
    return list(dict.fromkeys(meant.get(term, term) for term in named.query.terms))


def rarity(ctx: ReadContext, terms: list[str], members: np.ndarray) -> np.ndarray:
    """(t,) inverse document frequencies among the members, ascending ordinals: a word that is
    everywhere in one collection says little there."""
    text = ctx.index(MEMORY_TEXT)
    if not len(members):
        return np.zeros(len(terms), np.float32)
    if len(members) >= text.stats().documents:
        return np.array(text.idfs(terms), np.float32)
    containing = text.document_frequencies(terms, members)
    return ranking.idf(len(members), containing.astype(np.float32))
