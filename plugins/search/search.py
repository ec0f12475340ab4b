"""The plain search, and the memories similar to one: what is made ready before the snapshot, and
the way from there through candidates, ranking and the threshold to one page of results.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np

from plugins.collections import require_collection
from plugins.memories import (
    MEMORY_FEATURES,
    MEMORY_FIELDS,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    ChunkScan,
    MemoryRow,
    Spaces,
    compile_filter,
    get_row,
    note_accesses,
    readable,
    rows_at,
)
from plugins.search import ranking
from plugins.search.dates import nearness
from plugins.search.days import as_asked
from plugins.search.events import completed
from plugins.search.folding import evidence, folded, outdated
from plugins.search.judging import Ranked, above_threshold, in_company, judged, page_of, relevant
from plugins.search.late_interaction import has_context, interaction, promising_of
from plugins.search.learned_weights import learned_scores
from plugins.search.limits import SEARCH_ITEMS_MAX
from plugins.search.models import (
    EXAMPLE_QUERY,
    EXAMPLE_REPLY,
    SearchBody,
    SearchReply,
    SimilarQuery,
    hit,
    packed,
    reply_of,
)
from plugins.search.names import WORD, Named, find_names, said_by
from plugins.search.neighbours import Surroundings, surroundings, with_neighbours
from plugins.search.question import Question, ask
from plugins.search.retrieved import Retrieved, require_channel
from plugins.search.settings import RankingFastSettings, SearchSettings, ranking_profile
from plugins.search.slips import dated, embedded
from plugins.search.universe import FILTERS_AT, is_heavy, universe
from runtime.api.context import ReadContext
from runtime.api.operation import Call, Read
from runtime.inference import Embedder, InferenceUnavailable, Models
from storage.indexes import OCCURRENCES_SCORED_MAX, Scan, among, ascending, ordinals_of
from storage.text import ContentWord, Matcher, analyze, read_query

SPEAKERS_READ_MAX = 4_096  # kept with their terms: they are shown again and again


@dataclass(slots=True)
class Prepared:
    """What a search brings to its snapshot. started: perf_counter seconds. chunks: the scan of long
    memories' further passages.

    out_of_vocabulary: the embedder has met none of the query's words; unread: it was not taught the
    script of some, foreign: nor the language of the others. one_language: as the embedder's words
    """

    named: Named
    started: float
    space: str = ""
    vector: np.ndarray | None = None
    scan: Scan | None = None
    chunks: ChunkScan | None = None
    words: list[ContentWord] = field(default_factory=list)
    word_vectors: np.ndarray | None = None
    out_of_vocabulary: bool = False
    unread: bool = False
    foreign: bool = False
    one_language: bool = False
    degraded: list[str] = field(default_factory=list)

    @property
    def reads_meaning(self) -> bool:
        """Whether the embedder read the query, in a language that it was taught."""
        return self.vector is not None and not self.foreign and not self.unread


class Loaded(NamedTuple):
    named: Named
    wait_seconds: float
    space: str | None


# --- before the snapshot --------------------------------------------------------------------------


def load(ctx: ReadContext, body: SearchBody) -> Loaded:
    """Who the query names, judged by who has spoken, how many seconds its embedding may take, and
    in which space.

    A bad collection, filter or search_type is refused here, before any embedding.
    """
    require_channel(ctx, body)
    if body.collection_id is not None:
        require_collection(ctx, body.collection_id)
    if body.filters:
        compile_filter(ctx, body.filters, FILTERS_AT)
    wait_seconds = SearchSettings.of(ctx.settings).embedding_wait_seconds
    space = Spaces.in_use(ctx)
    return Loaded(find_names(ctx, body, ctx.vocabulary_of(space)), wait_seconds, space)


async def prepare(call: Call, loaded: Loaded, models: Models) -> Prepared:
    """Embed the query, names left out: they are compared as speakers or as words, not as
    meaning.
    """
    named, wait_seconds, space = loaded
    embedder = models.embedder_of(space)
    prepared = Prepared(named, time.perf_counter(), one_language=embedder.words_of_one_language)
    prepared.foreign = not embedder.taught(named.rest.language)
    meant = embedded(dated(named.rest.text, named.slips), named.slips, named.near_terms)
    text = embedder.readable(meant)
    prepared.unread = text != meant
    if _says_nothing(text, named, embedder):
        return prepared
    # Of a question in another script a number may be left, which by itself is near to any number.
    if prepared.unread and not any(char.isalpha() for char in text):
        return prepared
    if not call.body.measures_meaning:
        return prepared
    prepared.words = (named.rest if text == named.rest.text else read_query(text)).words
    prepared.out_of_vocabulary = bool(prepared.words) and not any(
        embedder.knows(text[at:end]) for at, end, _ in prepared.words
    )
    try:
        async with asyncio.timeout(wait_seconds):
            if call.body.fast or prepared.unread or not call.body.measures_words:
                prepared.vector = (await embedder.embed([text], is_query=True))[0]
            else:
                spans = [(word.start, word.end) for word in prepared.words]
                (found,) = await embedder.embed_words([text], [spans], is_query=True)
                prepared.vector, prepared.word_vectors = found.vector, found.words
        prepared.space = embedder.space
    except (InferenceUnavailable, TimeoutError):
        prepared.vector = prepared.word_vectors = None
        prepared.degraded.append("embedding_unavailable")
    return prepared


def _says_nothing(text: str, named: Named, embedder: Embedder) -> bool:
    """Whether there is nothing in a query that the embedder could read a meaning in: no letter,
    digit or symbol that it has met, or one word that only holds others together. Its vector would
    be near to those of texts in which the embedder can read nothing either.
    """
    if not any(
        char.isalnum() or (category(char) == "So" and embedder.knows(char)) for char in text
    ):
        return True
    if named.words or named.rest.words:
        return False
    words = WORD.findall(text)
    # In capitals it may be short for a name: "IT", "US".
    return len(words) == 1 and (len(words[0]) == 1 or not words[0].isupper())


# --- on the snapshot ------------------------------------------------------------------------------


def scan_together(ctx: ReadContext, batch: list[Prepared]) -> None:
    """One pass over the tenant's vectors for all queries that are ready."""
    ready = [(prepared, prepared.vector) for prepared in batch if prepared.vector is not None]
    if not ready:
        return
    asking = [prepared for prepared, _ in ready]
    space, queries = asking[0].space, np.stack([vector for _, vector in ready])
    for prepared, scan in zip(asking, ctx.index(MEMORY_VECTORS).scan(space, queries), strict=True):
        prepared.scan = scan
    if ctx.index(MEMORY_FIELDS).of("chunked", 1):
        for prepared, chunks in zip(asking, ChunkScan.all(ctx, space, queries), strict=True):
            prepared.chunks = chunks


def prefetch(ctx: ReadContext, body: SearchBody) -> Question:
    """What can be found before the query is embedded."""
    named = ctx.prepared.named
    return ask(ctx, body, named, universe(ctx, body))


def search(ctx: ReadContext, body: SearchBody) -> dict[str, Any]:
    """Propose, rank, drop what does not stand, hydrate one page."""
    prepared: Prepared = ctx.prepared
    question: Question = ctx.prefetched or ask(ctx, body, prepared.named, universe(ctx, body))
    ranked = ranked_among(ctx, question, prepared, body)
    places = above_threshold(ctx, ranked, body)
    page = page_of(ranked, places, body)
    reply = reply_of(
        body.query,
        hits=packed(hydrate(ctx, ranked, page, body, question.terms), body.token_budget),
        total=len(places),
        search_type=body.search_type,
        judged=judged(ctx, ranked, int(places[0]) if len(places) else None),
        grounded=bool(len(places)) and bool(ranked.is_relevant[places[0]]),
        names=prepared.named.words,
        degraded=prepared.degraded,
        took_ms=(time.perf_counter() - prepared.started) * 1000,
        profile=ranked.profile if body.explained else None,
    )
    return completed(ctx, reply)


def similar(ctx: ReadContext, body: None) -> dict[str, Any]:
    """Memories near to the given one by meaning. The memory itself is never among them."""
    started = time.perf_counter()
    row = get_row(ctx, ctx.path["id"])
    allowed = readable(ctx, ctx.query)
    allowed.discard(row.ordinal)
    ordinals, cosines = np.zeros(0, np.uint32), np.zeros(0, np.float32)
    vectors = ctx.index(MEMORY_VECTORS)
    space = Spaces.in_use(ctx, row.space) or row.space
    vector = vectors.get(space, row.ordinal) if space else None
    if vector is not None:
        # As many whatever the page's size: they are counted, too.
        ordinals, cosines = vectors.search(space, vector[None, :], SEARCH_ITEMS_MAX, allowed)[0]
    asked, usual = ctx.query.min_score, SearchSettings.of(ctx.settings).cosine_min
    floor = usual if asked is None else asked
    near = np.clip(cosines, 0, 1) >= np.float64(floor)
    return reply_with(
        ctx,
        row.content,
        ordinals[near],
        cosines[near],
        limit=ctx.query.limit,
        search_type="vector",
        started=started,
        degraded=[] if row.searchable else ["memory_not_indexed"],
    )


def reply_with(
    ctx: ReadContext,
    query: str,
    ordinals: np.ndarray,
    scores: np.ndarray,
    *,
    limit: int,
    search_type: str,
    started: float,
    terms: Sequence[str] = (),
    names: Sequence[str] = (),
    degraded: Sequence[str] = (),
) -> dict[str, Any]:
    """The reply of a search that found these memories in a way of its own: best first, each with a
    score whose share from 0 to 1 says how good it is, and all of them good enough to be shown.

    started  perf_counter seconds
    terms    what is highlighted in them
    names    who or what the query names
    """
    shares = np.clip(scores, 0, 1)
    ranked = Ranked(ordinals, scores, shares, {}, np.ones(len(ordinals), bool), shares)
    page = range(min(limit, len(ordinals)))
    return reply_of(
        query,
        hits=hydrate(ctx, ranked, page, SearchBody(query="other"), list(terms)),
        total=len(ordinals),
        search_type=search_type,
        judged=(float(shares[0]) if len(shares) else 0.0, None),
        grounded=bool(len(ordinals)),
        names=list(names),
        degraded=list(degraded),
        took_ms=(time.perf_counter() - started) * 1000,
    )


def ranked_among(
    ctx: ReadContext, question: Question, prepared: Prepared, body: SearchBody
) -> Ranked:
    """What every channel proposes of the allowed memories, ranked. What more candidates are needed
    for comes after what fewer have led to, or pages would share results and lose others.
    """
    retrieved = Retrieved.of(ctx, body)
    prepared.degraded += retrieved.failed
    counts = SearchSettings.of(ctx.settings).candidates_for(body.offset + body.limit)
    *earlier, candidates = (
        propose(ctx, question, prepared, body, retrieved, count) for count in counts
    )
    ranked = rank(ctx, candidates, question, prepared, body, retrieved)
    if not earlier:
        return ranked
    ranked.later = np.sum([~among(pool, ranked.ordinals) for pool in earlier], axis=0)
    return ranked.in_turn()


def propose(
    ctx: ReadContext,
    question: Question,
    prepared: Prepared,
    body: SearchBody,
    retrieved: Retrieved,
    count: int,
) -> np.ndarray:
    """The union of every channel's candidates, `count` of each, as ascending ordinals."""
    allowed = question.allowed
    found = [question.by_words[:count]]
    found += [day.ordinals[among(question.members, day.ordinals)] for day in question.days]
    if prepared.scan is not None and body.by_meaning:
        found.append(prepared.scan.best(count, allowed, question.members)[0])
    if prepared.chunks is not None and body.by_meaning:
        found.append(
            prepared.chunks.nearest(ctx, count, ctx.index(MEMORY_FIELDS).of("chunked", 1), allowed)
        )
    found += [ordinals_of(proposed & allowed) for proposed in retrieved.proposed]
    if body.search_type != "hybrid":
        return ascending(*found)
    candidates = np.concatenate(found)
    features = ctx.index(MEMORY_FEATURES).laid_out(candidates)
    return with_neighbours(candidates, features, question.members)


def rank(
    ctx: ReadContext,
    candidates: np.ndarray,
    question: Question,
    prepared: Prepared,
    body: SearchBody,
    retrieved: Retrieved,
) -> Ranked:
    """Order the candidates by the weighted sum of their features, those of retrievers included."""
    if not len(candidates):
        nothing = np.zeros(0, np.float32)
        return Ranked(candidates, nothing, nothing, {}, np.zeros(0, bool), nothing)
    stored = ctx.index(MEMORY_FEATURES)
    features = stored.laid_out(candidates)
    around = surroundings(candidates, features, stored.field("flags", features["previous"]))
    pool, columns = gather(ctx, candidates, around, question, prepared)
    found = ranking.features(question.measure, pool, columns)
    profile = interact(ctx, around, columns, found, question, prepared)
    weights = ranking_profile(ctx.settings, profile).weights
    learned, penalty = (
        learned_scores(ctx, candidates, found),
        _archived_penalty(ctx, candidates, question.archived, weights),
    )
    scores = ranking.score(found, weights) + learned + penalty
    is_relevant = relevant(ctx, found, question.dates, unmet=prepared.out_of_vocabulary)
    given = retrieved.contributions(candidates)
    for values in given.values():
        scores, is_relevant = scores + values, is_relevant | (values > 0)
    if profile != "ranking_fast" and prepared.reads_meaning and not prepared.out_of_vocabulary:
        is_relevant = in_company(is_relevant, scores)
    together = folded(ctx, candidates, columns.text_features["previous"], scores)
    # Candidates ascend, so of equal ones the newer comes first.
    order = together.shown[np.argsort(scores[together.best[together.shown]], kind="stable")[::-1]]
    best = together.best[order]
    contributions = (
        {name: weights[name] * values[best] for name, values in found.items()}
        if body.keeps_parts
        else {}
    )
    if body.keeps_parts:
        contributions |= {name: values[best] for name, values in given.items()}
    if body.keeps_parts and isinstance(learned, np.ndarray):
        contributions["feedback"] = learned[best]
    if body.keeps_parts and isinstance(penalty, np.ndarray):
        contributions["archived"] = penalty[best]
    reachable = ranking.reachable(weights | retrieved.weights)
    normalized = np.minimum(np.maximum(scores / reachable, 0), 1)
    asked = question.measure.idf
    rarities, rarity = ranking.rarity_met(pool, asked, len(candidates)), float(asked.sum())
    conflict = 0.0
    if prepared.named.people:
        conflict = ranking.subject_conflict(found, weights, rarities / max(rarity, 1e-9))
    return Ranked(
        candidates[order],
        scores[best],
        normalized[best],
        contributions,
        is_relevant[best],
        rarities[best],
        facts=together.facts,
        rarity=rarity,
        searched=len(question.members),
        conflict=conflict,
        profile=profile,
        retrievers=retrieved.weights,
        is_whole=prepared.reads_meaning and body.search_type == "hybrid",
        foreign=prepared.foreign,
        unread=prepared.unread,
    )


def _archived_penalty(
    ctx: ReadContext, candidates: np.ndarray, archived: np.ndarray, weights: Mapping[str, float]
) -> np.ndarray | float:
    """What archived memories are ranked lower by; 0.0 where there are none."""
    if not len(archived):
        return 0.0
    penalty = np.float32(
        -SearchSettings.of(ctx.settings).archived_penalty * ranking.reachable(weights)
    )
    return np.where(among(archived, candidates), penalty, np.float32(0))


def interact(
    ctx: ReadContext,
    around: Surroundings,
    columns: ranking.Columns,
    found: ranking.Features,
    question: Question,
    prepared: Prepared,
) -> str:
    """Add late interaction to the features of the most promising candidates; -> the settings
    section that weighs them.

    It looks at their words and at their neighbours'.
    """
    count = SearchSettings.of(ctx.settings).interactions
    if prepared.word_vectors is None or not len(prepared.word_vectors) or not count:
        return "ranking_fast"
    first = ranking.score(found, RankingFastSettings.of(ctx.settings).weights)
    promising, places = promising_of(first, count, around.previous, around.following)
    nearest = ctx.index(MEMORY_WORDS).nearest(
        prepared.space,
        around.ordinals,
        prepared.word_vectors,
        places,
        documents=prepared.scan.size if prepared.scan else 0,
    )
    idf = dict(zip(question.terms, question.measure.idf, strict=True))
    rarity = np.array(
        [max(idf.get(term, 0.0) for term in word.terms) for word in prepared.words], np.float32
    )
    for day in question.days:
        told = np.array([day.terms.issuperset(word.terms) for word in prepared.words], bool)
        in_pool = among(day.ordinals, around.ordinals)
        nearest[np.ix_(in_pool[places] & (places >= 0), told)] = 1
    interaction(found, promising, nearest, rarity, one_language=prepared.one_language)
    return "ranking" if has_context(columns) else "ranking_notes"


def gather(
    ctx: ReadContext,
    candidates: np.ndarray,
    around: Surroundings,
    question: Question,
    prepared: Prepared,
) -> tuple[ranking.Pool, ranking.Columns]:
    """Read what ranking needs of the candidates and their session neighbours."""
    ordinals, text_features = around.ordinals, around.features
    text = ctx.index(MEMORY_TEXT)
    scan = prepared.scan or Scan.of_nothing()
    cosines = scan.at(ordinals)
    blended = scan.blended(
        candidates, text_features["previous"], text_features["following"], ranking.NEIGHBOUR
    )
    if prepared.chunks is not None:  # a long memory is as near as the nearest of its passages
        further = prepared.chunks.cosines(ctx, ordinals)
        cosines, blended = (
            np.maximum(cosines, further),
            np.maximum(blended, further[: len(candidates)]),
        )
    frequencies = text.frequencies(question.terms, ordinals)
    for told in as_asked(question.days, question.terms, ordinals):
        frequencies[told] = np.maximum(frequencies[told], 1)
    pool = ranking.Pool(frequencies, text.lengths(ordinals), cosines)
    columns = ranking.Columns(
        previous=around.previous,
        following=around.following,
        blended=blended,
        answers=around.answers,
        speaker=said_by(ctx, prepared.named, candidates, text_features["speaker"]),
        date=nearness(question.dates, text_features["occurred_at"]),
        text_features=text_features,
    )
    return pool, columns


def hydrate(
    ctx: ReadContext, ranked: Ranked, page: Iterable[int], body: SearchBody, terms: list[str]
) -> list[dict[str, Any]]:
    """The rows of one page, from the snapshot that ranked them."""
    page = list(page)
    ordinals = [int(ranked.ordinals[place]) for place in page]
    note_accesses(ctx, ordinals)
    rows = rows_at(ctx, ordinals)
    compact = body.view == "compact"
    matcher, counted = (
        Matcher(frozenset(terms)),
        [None] * len(rows) if compact else occurrences(ctx, terms, rows),
    )
    # What was known at an instant knows nothing of what was said since.
    over = outdated(ctx, rows) if body.as_of is None else {}
    hits = []
    for rank_number, (place, row, found) in enumerate(
        zip(page, rows, counted, strict=True), body.offset + 1
    ):
        explanation = (
            {name: round(float(values[place]), 6) for name, values in ranked.contributions.items()}
            if body.explained
            else None
        )
        hits.append(
            hit(
                row,
                rank=rank_number,
                score=float(ranked.scores[place]),
                normalized=float(ranked.normalized[place]),
                is_relevant=bool(ranked.is_relevant[place]),
                matcher=matcher,
                occurrences=found,
                explanation=explanation,
                compact=compact,
                evidence=evidence(ctx, row, ranked.facts) if ranked.facts else None,
                outdated=over.get(row.ordinal),
            )
        )
    return hits


@lru_cache(SPEAKERS_READ_MAX)
def _terms_of_speaker(account: bytes, name: str | None) -> tuple[str, ...]:
    """Terms of a speaker's name. account: its key, since nobody may tell by the time it takes which
    names others have.
    """
    return () if name is None else tuple(analyze(name))


def occurrences(
    ctx: ReadContext, terms: list[str], rows: list[MemoryRow]
) -> list[dict[str, int] | None]:
    """How often each memory's content has each of the terms that it has; None where one is there
    too often to be counted.
    """
    counted = ctx.index(MEMORY_TEXT).frequencies(
        terms, np.array([row.ordinal for row in rows], np.uint32)
    )
    # A memory is indexed with its speaker's name, which is no part of the content.
    key = ctx.scope.key
    spoken = {name: _terms_of_speaker(key, name) for name in {row.speaker for row in rows}}
    found: list[dict[str, int] | None] = []
    for row, counts in zip(rows, counted.T.astype(int).tolist(), strict=True):
        of_name = spoken[row.speaker]
        each = {
            term: left
            for term, count in zip(terms, counts, strict=True)
            if (left := count - of_name.count(term)) > 0
        }
        found.append(each if max(counts, default=0) < OCCURRENCES_SCORED_MAX else None)
    return found


OPERATIONS = (
    Read(
        name="search.search",
        method="POST",
        path="/v1/search",
        load=load,
        prepare=prepare,
        prefetch=prefetch,
        batch=scan_together,
        handler=search,
        heavy=is_heavy,
        body=SearchBody,
        response=SearchReply,
        rate="search",
        credits=1,
        summary="Search memories",
        description=(
            "By words and meaning. Nothing is padded: what does not stand on its own is left "
            "out, and `no_match` says so."
        ),
        example=EXAMPLE_QUERY,
        example_reply=EXAMPLE_REPLY,
    ),
    Read(
        name="search.similar",
        method="GET",
        path="/v1/search/similar/{id}",
        handler=similar,
        heavy=True,
        query=SimilarQuery,
        response=SearchReply,
        rate="search",
        credits=1,
        summary="Memories similar to one",
        description=(
            "The nearest memories by meaning, without the memory itself. `min_score` compares "
            "with `normalized_score`."
        ),
        example_reply={**EXAMPLE_REPLY, "search_type": "vector"},
    ),
)
