"""Search: from a question to the memories that answer it (specification part 4, Search).

One snapshot serves the whole request. Channels propose candidates inside the *universe*, the bitmap of memories that are live
and pass every filter, so that what a filter excludes is never scored:

    lexical    the best by BM25
    semantic   the nearest vectors, of memories and of the passages of long ones
    …          retrievers of other plugins, declared in the registry

A hybrid search adds their session neighbours, which may hold the answer to words beside them. All are then ranked by
plugins/ranking.py, how rare a word is being judged within the universe; the most promising hundred also by late interaction, word
against word, which `fast` leaves out. They are hydrated from the same snapshot. The query's embedding is made before, outside
any snapshot; when it is late or its backend is down, the search goes on lexically and says `degraded`.

Honest answers: scores are absolute and nothing is padded out to `limit`. A result stands when it or a session neighbour shares a
word with the query, or when it is near enough in meaning; the others are dropped, and when nothing stands the answer is
`no_match`. A caller may ask for the weak ones too; they then come flagged. Confidence is a logistic curve over the best score;
it falls when what is asked of one speaker fits another one better, and abstaining is recommended from a certain conflict on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyroaring import BitMap

from plugins import ranking
from plugins.collections import require_collection
from plugins.filters import compile_filter
from plugins.memory_accesses import noted
from plugins.memory_chunks import MEMORY_CHUNKS, chunk_cosines, nearest_by_chunk
from plugins.memory_cues import QUESTION
from plugins.memory_store import (
    MEMORIES,
    MEMORY_FIELDS,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    MemoryRow,
    cue_column,
    cue_columns,
    get_row,
    scope_filter,
)
from plugins.query_dates import nearness
from plugins.ranking_weights import learned_scores
from plugins.search_events import SEARCH_COMPLETED, completed
from plugins.search_question import FILTERS_AT, Named, Question, ask, find_names, universe
from plugins.search_views import EXAMPLE_QUERY, EXAMPLE_REPLY, SearchBody, SearchReply, SimilarQuery, hit, packed, reply_of
from runtime.inference import InferenceUnavailable, Models
from runtime.operation import Call, Kind, Operation, ReadContext
from runtime.plugin import Plugin
from storage.analysis import ContentWord, Matcher, analyze, content_words
from storage.lexical_index import OCCURRENCES_SCORED_MAX
from storage.ordinals import among, ordinals_of
from storage.vector_scan import Scan


@dataclass(slots=True)
class Prepared:
    """What a search brings to its snapshot. started: perf_counter seconds. chunks: the scan of long memories' further passages.

    is_strange: the embedder has met none of the query's words
    """

    named: Named
    started: float
    space: str = ""
    vector: np.ndarray | None = None
    scan: Scan | None = None
    chunks: Scan | None = None
    words: list[ContentWord] = field(default_factory=list)
    word_vectors: np.ndarray | None = None
    is_strange: bool = False
    degraded: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Ranked:
    """n candidates by score, descending, with what each feature contributed and whether they stand on their own."""

    ordinals: np.ndarray
    scores: np.ndarray
    normalized: np.ndarray
    contributions: dict[str, np.ndarray]
    stands: np.ndarray
    conflict: float = 0.0
    profile: str = "ranking_fast"


# --- before the snapshot ----------------------------------------------------------------------------------------------


def load(ctx: ReadContext, body: SearchBody) -> tuple[Named, float]:
    """Who the query names, judged by who has spoken, and how many seconds its embedding may take.

    A bad collection or filter is refused here, before any embedding.
    """
    if body.collection_id is not None:
        require_collection(ctx, body.collection_id)
    if body.filters:
        compile_filter(ctx, body.filters, FILTERS_AT)
    return find_names(ctx, body.query), ctx.settings.search.embedding_wait_ms / 1000


async def prepare(call: Call, loaded: tuple[Named, float], models: Models) -> Prepared:
    """Embed the query, names left out: they are compared as speakers or as words, not as meaning."""
    named, wait_seconds = loaded
    prepared = Prepared(named, time.perf_counter())
    if call.body.search_type not in ("hybrid", "vector"):
        return prepared
    prepared.words = content_words(named.rest, is_query=True)
    prepared.is_strange = bool(prepared.words) and not any(models.embedder.knows(named.rest[at:end]) for at, end, _ in prepared.words)
    try:
        async with asyncio.timeout(wait_seconds):
            if call.body.fast or call.body.search_type != "hybrid":
                prepared.vector = (await models.embedder.embed([named.rest]))[0]
            else:
                spans = [(word.start, word.end) for word in prepared.words]
                prepared.vector, prepared.word_vectors = (await models.embedder.read([named.rest], [spans]))[0]
        prepared.space = models.embedder.space
    except (InferenceUnavailable, TimeoutError):
        prepared.vector = prepared.word_vectors = None
        prepared.degraded.append("embedding_unavailable")
    return prepared


# --- on the snapshot --------------------------------------------------------------------------------------------------


def together(ctx: ReadContext, batch: list[Prepared]) -> None:
    """One pass over the tenant's vectors for all queries that are ready."""
    asking = [prepared for prepared in batch if prepared.vector is not None]
    if not asking:
        return
    space, queries = asking[0].space, np.stack([prepared.vector for prepared in asking])
    for prepared, scan in zip(asking, ctx.index(MEMORY_VECTORS).scan(space, queries), strict=True):
        prepared.scan = scan
    if ctx.index(MEMORY_FIELDS).of("chunked", 1):
        for prepared, scan in zip(asking, ctx.index(MEMORY_CHUNKS).scan(space, queries), strict=True):
            prepared.chunks = scan


def ahead(ctx: ReadContext, body: SearchBody) -> Question:
    """What can be found before the query is embedded."""
    named, _ = ctx.prepared
    return ask(ctx, body, named, universe(ctx, body))


def search(ctx: ReadContext, body: SearchBody) -> dict[str, Any]:
    """Propose, rank, drop what does not stand, hydrate one page."""
    prepared: Prepared = ctx.prepared
    question: Question = ctx.ahead or ask(ctx, body, prepared.named, universe(ctx, body))
    ranked = ranked_among(ctx, question, prepared, body)
    places = standing(ranked, body)
    page = places[body.offset : body.offset + body.limit]
    reply = reply_of(
        body.query,
        hits=packed(hydrate(ctx, ranked, page, body, question.terms), body.token_budget),
        total=len(places),
        search_type=body.search_type,
        confidence=confidence(ctx, ranked, places[0]) if len(places) else 0.0,
        grounded=bool(len(places)) and bool(ranked.stands[places[0]]),
        conflicting=conflicting(ctx, ranked),
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
    allowed = scope_filter(ctx, ctx.query)
    allowed.discard(row.ordinal)
    ordinals, cosines = np.zeros(0, np.uint32), np.zeros(0, np.float32)
    vectors = ctx.index(MEMORY_VECTORS)
    vector = vectors.get(row.space, row.ordinal) if row.space else None
    if vector is not None:
        ordinals, cosines = vectors.search(row.space, vector[None, :], ctx.query.limit, allowed)[0]
    normalized = np.clip(cosines, 0, 1)
    floor = ctx.settings.search.cosine_min if ctx.query.min_score is None else ctx.query.min_score
    ranked = Ranked(ordinals, cosines, normalized, {"exact": cosines}, normalized >= floor)
    places = np.flatnonzero(ranked.stands)
    return reply_of(
        row.content,
        hits=hydrate(ctx, ranked, places, SearchBody(query="similar"), []),
        total=len(places),
        search_type="vector",
        confidence=float(normalized[places[0]]) if len(places) else 0.0,
        grounded=bool(len(places)),
        conflicting=False,
        names=[],
        degraded=[] if row.searchable else ["memory_not_indexed"],
        took_ms=(time.perf_counter() - started) * 1000,
    )


def ranked_among(ctx: ReadContext, question: Question, prepared: Prepared, body: SearchBody) -> Ranked:
    """What every channel proposes of the allowed memories, ranked."""
    return rank(ctx, propose(ctx, question, prepared, body), question, prepared, body)


def propose(ctx: ReadContext, question: Question, prepared: Prepared, body: SearchBody) -> np.ndarray:
    """The union of every channel's candidates, as ascending ordinals."""
    count, allowed = ctx.settings.search.candidates, question.allowed
    found = [question.by_words]
    if prepared.scan is not None:
        found.append(prepared.scan.best(count, allowed)[0])
    if prepared.chunks is not None:
        found.append(nearest_by_chunk(ctx, prepared.chunks, count, ctx.index(MEMORY_FIELDS).of("chunked", 1), allowed))
    for retriever in ctx.registry.retrievers:
        if body.graph_share(retriever.weight) > 0:
            found.append(np.array([o for o in retriever.candidates(ctx, body.query) if o in allowed], dtype=np.uint32))
    candidates = ascending(*found)
    return with_neighbours(ctx, candidates, question.members) if body.search_type == "hybrid" else candidates


def with_neighbours(ctx: ReadContext, candidates: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The candidates and those of the members beside them in their sessions, as ascending ordinals."""
    beside = np.concatenate([cue_column(ctx, side, candidates) for side in ("previous", "following")])
    return ascending(candidates, beside[among(members, beside)])


def rank(ctx: ReadContext, candidates: np.ndarray, question: Question, prepared: Prepared, body: SearchBody) -> Ranked:
    """Features, weights, order."""
    if not len(candidates):
        nothing = np.zeros(0, np.float32)
        return Ranked(candidates, nothing, nothing, {}, np.zeros(0, bool))
    pool, columns = gather(ctx, candidates, question, prepared)
    found = ranking.features(question.measure, pool, columns)
    profile = interact(ctx, candidates, columns, found, dict(zip(question.terms, question.measure.idf, strict=True)), prepared)
    weights = getattr(ctx.settings, profile).weights
    learned, set_back = learned_scores(ctx, candidates, found), _set_back(ctx, candidates, question.archived, weights)
    scores = ranking.score(found, weights) + learned + set_back
    # A model gives random letters a meaning too: what it never met as a word has to come much nearer.
    near = ctx.settings.search.strange_cosine_min if prepared.is_strange else ctx.settings.search.cosine_min
    stands = (found["lexical"] > 0) | (found["exact"] >= near)
    order = np.argsort(scores, kind="stable")[::-1]  # candidates ascend, so of equal ones the newer comes first
    contributions = {name: weights[name] * values[order] for name, values in found.items()} if body.keeps_parts else {}
    if body.keeps_parts and np.ndim(learned):
        contributions["feedback"] = learned[order]
    if body.keeps_parts and np.ndim(set_back):
        contributions["archived"] = set_back[order]
    normalized = np.clip(scores / ranking.reachable(weights), 0, 1)
    conflict = ranking.subject_conflict(found, weights)
    return Ranked(candidates[order], scores[order], normalized[order], contributions, stands[order], conflict, profile)


def _set_back(ctx: ReadContext, candidates: np.ndarray, archived: np.ndarray, weights: Mapping[str, float]) -> np.ndarray | float:
    """What archived memories are ranked lower by; 0.0 where there are none."""
    if not len(archived):
        return 0.0
    set_back = np.float32(-ctx.settings.search.archived_set_back * ranking.reachable(weights))
    return np.where(among(archived, candidates), set_back, np.float32(0))


def interact(
    ctx: ReadContext,
    candidates: np.ndarray,
    columns: ranking.Columns,
    found: ranking.Features,
    idf: Mapping[str, float],
    prepared: Prepared,
) -> str:
    """Add late interaction to the features of the most promising candidates; -> the settings section that weighs them.

    It looks at their words and at their neighbours'.
    """
    settings = ctx.settings
    if prepared.word_vectors is None or not len(prepared.word_vectors) or not settings.search.interactions:
        return "ranking_fast"
    first = ranking.score(found, settings.ranking_fast.weights)
    promising = np.arange(len(first))
    if len(first) > settings.search.interactions:
        promising = np.argpartition(first, -settings.search.interactions)[-settings.search.interactions :]
    near = candidates[promising]
    sides = np.concatenate((near, cue_column(ctx, "previous", near), cue_column(ctx, "following", near)))
    nearest = ctx.index(MEMORY_WORDS).nearest(prepared.space, sides, prepared.word_vectors)
    rarity = np.array([max(idf.get(term, 0.0) for term in word.terms) for word in prepared.words], np.float32)
    own, previous, following = nearest.reshape(3, len(near), len(rarity))
    for name, values in zip(("words", "nearby"), ranking.interaction(own, previous, following, rarity), strict=True):
        found[name][promising] = values
    told = bool(columns.cues["session"].any()) or bool(columns.speaker.any())
    return "ranking" if told else "ranking_notes"


def confidence(ctx: ReadContext, ranked: Ranked, best: int) -> float:
    """query_confidence of an answer whose first result is at place `best`."""
    told = getattr(ctx.settings, ranked.profile)
    evidence = float(ranked.scores[best]) + told.conflict_weight * min(ranked.conflict, 0.0)
    return ranking.logistic(told.confidence_slope * (evidence - told.confidence_middle))


def conflicting(ctx: ReadContext, ranked: Ranked) -> bool:
    """Whether what is asked of one speaker fits another one better."""
    return ranked.conflict < getattr(ctx.settings, ranked.profile).conflict_min


def gather(ctx: ReadContext, candidates: np.ndarray, question: Question, prepared: Prepared) -> tuple[ranking.Pool, ranking.Columns]:
    """Read what ranking needs of the candidates and their session neighbours."""
    cues = cue_columns(ctx, candidates)
    ordinals, previous, following = ranking.pooled(candidates, cues["previous"], cues["following"])
    text = ctx.index(MEMORY_TEXT)
    scan = prepared.scan or Scan.of_nothing()
    cosines = scan.at(ordinals)
    blended = scan.blended(candidates, cues["previous"], cues["following"], ranking.NEIGHBOUR)
    if prepared.chunks is not None:  # a long memory is as near as the nearest of its passages
        further = chunk_cosines(ctx, prepared.chunks, ordinals)
        cosines, blended = np.maximum(cosines, further), np.maximum(blended, further[: len(candidates)])
    pool = ranking.Pool(text.frequencies(question.terms, ordinals), text.lengths(ordinals), cosines)
    columns = ranking.Columns(
        previous=previous,
        following=following,
        blended=blended,
        answers=(cue_column(ctx, "flags", cues["previous"]) & QUESTION > 0) & (previous >= 0),
        speaker=_spoken(candidates, cues["speaker"], prepared.named.people),
        date=nearness(question.dates, cues["occurred_at"]),
        cues=cues,
    )
    return pool, columns


def ascending(*ordinals: np.ndarray) -> np.ndarray:
    """Every ordinal of these arrays once, in order."""
    found = np.sort(np.concatenate(ordinals))
    return found[np.concatenate(([True], found[1:] != found[:-1]))] if len(found) else found


def standing(ranked: Ranked, body: SearchBody) -> np.ndarray:
    """Places of the results that may be shown, best first."""
    return np.flatnonzero((ranked.stands | body.include_low_confidence) & (ranked.normalized >= body.score_min))


def hydrate(ctx: ReadContext, ranked: Ranked, page: Iterable[int], body: SearchBody, terms: list[str]) -> list[dict[str, Any]]:
    """The rows of one page, from the snapshot that ranked them."""
    page = list(page)
    ordinals = [int(ranked.ordinals[place]) for place in page]
    noted(ctx, ordinals)
    rows = ctx[MEMORIES].get_many([(ordinal,) for ordinal in ordinals])
    compact = body.view == "compact"
    matcher, counted = Matcher(frozenset(terms)), [None] * len(rows) if compact else occurrences(ctx, terms, rows)
    hits = []
    for rank_number, (place, row, found) in enumerate(zip(page, rows, counted, strict=True), body.offset + 1):
        explanation = {name: round(float(values[place]), 6) for name, values in ranked.contributions.items()} if body.explained else None
        hits.append(
            hit(
                row,
                rank=rank_number,
                score=float(ranked.scores[place]),
                normalized=float(ranked.normalized[place]),
                stands=bool(ranked.stands[place]),
                matcher=matcher,
                occurrences=found,
                explanation=explanation,
                compact=compact,
            )
        )
    return hits


def occurrences(ctx: ReadContext, terms: list[str], rows: list[MemoryRow]) -> list[dict[str, int] | None]:
    """How often each memory's content has each of the terms that it has; None where one is there too often to be counted."""
    counted = ctx.index(MEMORY_TEXT).frequencies(terms, np.array([row.ordinal for row in rows], np.uint32))
    # A memory is indexed with its speaker's name, which is no part of the content.
    spoken = {name: [] if name is None else analyze(name) for name in {row.speaker for row in rows}}
    found: list[dict[str, int] | None] = []
    for row, counts in zip(rows, counted.T.astype(int).tolist(), strict=True):
        of_name = spoken[row.speaker]
        each = {term: left for term, count in zip(terms, counts, strict=True) if (left := count - of_name.count(term)) > 0}
        found.append(each if max(counts, default=0) < OCCURRENCES_SCORED_MAX else None)
    return found


def _spoken(candidates: np.ndarray, marks: np.ndarray, people: list[BitMap]) -> np.ndarray:
    """1 for memories of the one speaker the query names, −1 for other speakers'; all 0 when it names none or several."""
    if len(people) != 1:
        return np.zeros(len(candidates), np.float32)
    theirs = among(ordinals_of(people[0]), candidates)
    return np.where(marks == 0, 0, np.where(theirs, 1, -1)).astype(np.float32)


plugin = Plugin(
    name="search",
    requires=("memories", "collections"),
    events=(SEARCH_COMPLETED,),
    operations=(
        Operation(
            name="search.search",
            method="POST",
            path="/v1/search",
            kind=Kind.READ,
            load=load,
            prepare=prepare,
            ahead=ahead,
            together=together,
            handler=search,
            body=SearchBody,
            response=SearchReply,
            rate="search",
            credits=1,
            summary="Search memories",
            description="By words and meaning. Nothing is padded: what does not stand on its own is left out, and `no_match` says so.",
            spec="part 4, Search",
            example=EXAMPLE_QUERY,
            example_reply=EXAMPLE_REPLY,
        ),
        Operation(
            name="search.similar",
            method="GET",
            path="/v1/search/similar/{id}",
            kind=Kind.READ,
            handler=similar,
            query=SimilarQuery,
            response=SearchReply,
            rate="search",
            credits=1,
            summary="Memories similar to one",
            description="The nearest memories by meaning, without the memory itself. `min_score` compares with `normalized_score`.",
            spec="part 4, Search",
            example_reply={**EXAMPLE_REPLY, "search_type": "vector"},
        ),
    ),
)
