"""Advanced search: the search of plugins/search/search.py with what a caller adds to it.

    filters, date range     narrow the universe before anything is scored
    boosts                  reorder what was found                    plugins/search/boosts.py
    rerank                  the first RERANKED_RESULTS_MAX results, as a remote model judges them
    diversity               less repetition among the first ones      plugins/search/diversity.py
    facets                  counts over all results, as `total` does  plugins/search/facets.py

in this order, then offset, limit and token_budget. `threshold` compares with the score that boosts
made; query_confidence and the advice to abstain come from the search alone, since no boost makes a
result more true.

A remote reranker is asked after the snapshot is closed, about the contents that the snapshot held.
When none is configured or it fails, the order of the ranking stays, `reranker_applied` is false and
degraded_reasons says why.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError
from pyroaring import BitMap

from plugins.memories import MEMORY_VECTORS, Facet, rows_at, within_times
from plugins.search.boosts import Boosts, boosted
from plugins.search.diversity import Arrangement
from plugins.search.events import completed
from plugins.search.facets import counted
from plugins.search.judging import Doubt, Ranked, above_threshold, judged, page_of
from plugins.search.limits import DIVERSIFIED_RESULTS_MAX, FACETS_MAX, RERANKED_RESULTS_MAX
from plugins.search.models import (
    EXAMPLE_QUERY,
    EXAMPLE_REPLY,
    Relevance,
    SearchBody,
    SearchReply,
    packed,
    reply_of,
)
from plugins.search.question import Question, ask
from plugins.search.search import (
    Prepared,
    hydrate,
    load,
    prepare,
    ranked_among,
    scan_together,
)
from plugins.search.universe import is_heavy, universe
from runtime.api.context import ReadContext
from runtime.api.operation import Call, Read, View, not_earlier
from runtime.api.plugin import Retriever
from runtime.inference import Models, RerankingFailed
from runtime.timestamps import EndTimestamp, Timestamp

log = logging.getLogger("mneme.search")


def _known_facet(name: str) -> str:
    if not Facet.exists(name):
        raise PydanticCustomError(
            "unknown_field",
            "There is no such facet; use {facets}.",
            {"facets": ", ".join(Facet.ALL)},
        )
    return name


def _unless_empty(boosts: Boosts | None) -> Boosts | None:
    """The boosts; None for those that boost nothing, which order no results anew."""
    return boosts if boosts is not None and any(boosts.model_dump().values()) else None


class AdvancedBody(SearchBody):
    date_range_start: Timestamp | None = Field(
        default=None, description="Only what happened at this instant or later (occurred_at)."
    )
    date_range_end: EndTimestamp | None = Field(
        default=None,
        description="Only what happened at this instant or earlier (occurred_at); of a date "
        "without a time, on that day too.",
    )
    boosts: Annotated[Boosts | None, AfterValidator(_unless_empty)] = Field(
        default=None, description="What counts for more, or less, in the order of results."
    )
    facets: list[Annotated[str, AfterValidator(_known_facet)]] = Field(
        default_factory=list,
        max_length=FACETS_MAX,
        description=f"Fields whose values are counted over all results: {', '.join(Facet.ALL)}.",
    )
    rerank: StrictBool = Field(
        default=False, description="Let the configured reranker order the first results."
    )
    diversity: float = Field(
        default=0.0,
        strict=True,
        ge=0,
        le=1,
        description="0 orders by relevance alone, 1 by how little a result repeats those before "
        "it.",
    )

    @model_validator(mode="after")
    def _range_is_one(self) -> AdvancedBody:
        end, start = self.date_range_end, self.date_range_start
        not_earlier(("body", "date_range_end"), end, "date_range_start", start)
        return self

    @property
    def keeps_parts(self) -> bool:
        return self.explained or self.boosts is not None

    def relevance_or(self, usual: Relevance) -> Relevance:
        """Whoever orders results anew, by other things than the score, is given all of them."""
        reordered = self.rerank or self.boosts is not None or self.diversity > 0
        return super().relevance_or("all" if reordered else usual)

    def asks(self, retriever: Retriever) -> bool:
        channels = None if self.boosts is None else self.boosts.channels
        if channels is None or retriever.name not in channels.model_fields_set:
            return super().asks(retriever)
        return (
            self.search_type in ("hybrid", retriever.name) and getattr(channels, retriever.name) > 0
        )


class FacetCount(View):
    value: str | bool | int | float | None = Field(description="A value of the field.")
    count: int = Field(description="Results that carry it.")


class AdvancedReply(SearchReply):
    facets: dict[str, list[FacetCount]] = Field(
        description="Each facet's most frequent values, counted over all `total` results."
    )


@dataclass(slots=True)
class Found:
    """What the snapshot held, for a reranker to order.

    hits     the results of which the page will be a part, best first, as they go out
    vectors  (n, width) of the first of them, where diversity will be asked for
    told     what the envelope says beside its hits, as reply_of takes it
    reply    the envelope, empty until the search is complete
    """

    hits: list[dict[str, Any]]
    vectors: NDArray[np.float32]
    told: dict[str, Any]
    started: float
    facets: dict[str, Any]
    reply: dict[str, Any]


def prefetch(ctx: ReadContext, body: AdvancedBody) -> Question:
    """What can be found before the query is embedded."""
    named = ctx.prepared.named
    return ask(ctx, body, named, _universe(ctx, body))


def search(ctx: ReadContext, body: AdvancedBody) -> Found | dict[str, Any]:
    """The envelope; what a reranker has to see first, when one is asked for and configured."""
    prepared: Prepared = ctx.prepared
    question: Question = ctx.prefetched or ask(ctx, body, prepared.named, _universe(ctx, body))
    plain = ranked_among(ctx, question, prepared, body)
    ranked = plain if body.boosts is None else boosted(ctx, plain, body.boosts)
    ranked = ranked.at(above_threshold(ctx, ranked, body))
    fields = {
        "total": len(ranked.ordinals),
        "search_type": body.search_type,
        "judged": _judged(ctx, plain, ranked),
        "profile": ranked.profile if body.explained else None,
        "names": prepared.named.words,
        "degraded": prepared.degraded,
    }
    rows = rows_at(ctx, ranked.ordinals.tolist()) if body.facets else []
    facets = {name: counted(name, rows) for name in body.facets}
    if body.rerank and ctx.settings.reranker.base_url is not None and len(ranked.ordinals):
        until = max(body.offset + body.limit, RERANKED_RESULTS_MAX)
        hits = hydrate(ctx, ranked, range(min(until, len(ranked.ordinals))), body, question.terms)
        found = Found(
            hits,
            _vectors(ctx, ranked.ordinals[:RERANKED_RESULTS_MAX], prepared.space),
            fields,
            prepared.started,
            facets,
            {},
        )
        completed(ctx, found.reply)
        return found
    if body.rerank and ctx.settings.reranker.base_url is None:
        fields["degraded"] = [*prepared.degraded, "reranker_not_configured"]
    every = np.arange(len(ranked.ordinals))
    page = page_of(ranked, every, body)
    if body.diversity:
        ranked = _diversified(ctx, ranked, prepared.space, body.diversity)
        page = every[body.offset : body.offset + body.limit]
    hits = packed(hydrate(ctx, ranked, page, body, question.terms), body.token_budget)
    grounded = bool(ranked.is_relevant[:1].any())
    took_ms = (time.perf_counter() - prepared.started) * 1000
    return completed(
        ctx,
        reply_of(body.query, hits=hits, grounded=grounded, took_ms=took_ms, **fields)
        | {"facets": facets},
    )


async def complete(call: Call, made: Found | dict[str, Any], models: Models) -> dict[str, Any]:
    """Ask the reranker, put the results into their order, cut the page."""
    if isinstance(made, dict):
        return made
    body: AdvancedBody = call.body
    first, rest = made.hits[:RERANKED_RESULTS_MAX], made.hits[RERANKED_RESULTS_MAX:]
    arrangement = Arrangement.of(
        *(np.array([shown[name] for shown in first]) for name in ("score", "normalized_score"))
    )
    reranked = False
    try:
        if models.reranker is not None:
            arrangement = arrangement.reranked(
                await models.reranker.scores(body.query, [shown["content"] for shown in first])
            )
            reranked = True
    except RerankingFailed as failure:
        log.warning(
            "results keep the order of the ranking, request %s: %s", call.request_id, failure
        )
    if not reranked:
        made.told["degraded"] = [*made.told["degraded"], "reranker_unavailable"]
    if body.diversity:
        arrangement = arrangement.diversified(made.vectors[arrangement.order], body.diversity)
    hits = [
        {**shown, "rank": rank}
        for rank, shown in enumerate([*_arranged(first, arrangement), *rest], 1)
    ]
    grounded = not hits[0]["low_confidence"]
    page = packed(hits[body.offset : body.offset + body.limit], body.token_budget)
    took_ms = (time.perf_counter() - made.started) * 1000
    made.reply |= reply_of(
        body.query, hits=page, grounded=grounded, took_ms=took_ms, reranked=reranked, **made.told
    )
    made.reply["facets"] = made.facets
    return made.reply


def _universe(ctx: ReadContext, body: AdvancedBody) -> BitMap:
    """Everything the search may return: of a plain search's universe what the date range leaves."""
    allowed = universe(ctx, body)
    if body.date_range_start is None and body.date_range_end is None:
        return allowed
    return within_times(ctx, allowed, "occurred_at", body.date_range_start, body.date_range_end)


def _judged(ctx: ReadContext, plain: Ranked, ranked: Ranked) -> tuple[float, Doubt | None]:
    """What the search itself thinks of its best result, whatever boosts made of its score."""
    shown = np.flatnonzero(np.isin(plain.ordinals, ranked.ordinals))
    return judged(ctx, plain, int(shown[0]) if len(shown) else None)


def _diversified(ctx: ReadContext, ranked: Ranked, space: str, diversity: float) -> Ranked:
    """The first results in an order of less repetition, the others after them."""
    first = min(len(ranked.ordinals), DIVERSIFIED_RESULTS_MAX)
    arrangement = Arrangement.of(ranked.scores[:first], ranked.normalized[:first])
    arrangement = arrangement.diversified(_vectors(ctx, ranked.ordinals[:first], space), diversity)
    found = ranked.at(np.concatenate((arrangement.order, np.arange(first, len(ranked.ordinals)))))
    found.scores = np.concatenate((arrangement.scores, ranked.scores[first:]))
    found.normalized = np.concatenate((arrangement.normalized, ranked.normalized[first:]))
    unmoved = np.zeros(len(ranked.ordinals) - first)
    found.contributions |= {
        name: np.concatenate((values, unmoved)) for name, values in arrangement.moved.items()
    }
    return found


def _vectors(ctx: ReadContext, ordinals: NDArray[np.uint32], space: str) -> NDArray[np.float32]:
    """(n, width) stored vectors; rows of zeros where there is none."""
    vectors = ctx.index(MEMORY_VECTORS)
    space = space or next(iter(vectors.spaces()), "")
    found = [vectors.get(space, ordinal) for ordinal in ordinals.tolist()]
    width = max((len(vector) for vector in found if vector is not None), default=1)
    return (
        np.stack([np.zeros(width, np.float32) if vector is None else vector for vector in found])
        if found
        else np.zeros((0, 1), np.float32)
    )


def _arranged(hits: list[dict[str, Any]], arrangement: Arrangement) -> list[dict[str, Any]]:
    """The hits in their new order, with the scores and explanations that go with it."""
    found = []
    for i, place in enumerate(arrangement.order.tolist()):
        hit = {
            **hits[place],
            "score": float(arrangement.scores[i]),
            "normalized_score": float(arrangement.normalized[i]),
        }
        if "explanation" in hit:
            hit["explanation"] = hit["explanation"] | {
                name: round(float(values[i]), 6) for name, values in arrangement.moved.items()
            }
        found.append(hit)
    return found


OPERATIONS = (
    Read(
        name="search.advanced",
        method="POST",
        path="/v1/search/advanced",
        load=load,
        prepare=prepare,
        prefetch=prefetch,
        batch=scan_together,
        handler=search,
        heavy=is_heavy,
        complete=complete,
        body=AdvancedBody,
        response=AdvancedReply,
        rate="search",
        credits=2,
        summary="Search with boosts, facets, date ranges, diversity and reranking",
        description="All that a search takes, and more. Boosts, a reranker and diversity change "
        "the order of what was found, not what is found; where one of them is asked for, "
        "`relevance` is `all` when absent. Facets count over all of it.",
        example={
            **EXAMPLE_QUERY,
            "filters": {"metadata.room": {"in": ["kitchen", "hall"]}},
            "date_range_start": "2026-01-01",
            "boosts": {"recency": {"half_life_days": 30, "weight": 0.3}, "tags": {"home": 0.2}},
            "facets": ["tags", "metadata.room"],
            "diversity": 0.2,
        },
        example_reply={
            **EXAMPLE_REPLY,
            "facets": {
                "tags": [{"value": "home", "count": 1}],
                "metadata.room": [{"value": "kitchen", "count": 1}],
            },
        },
    ),
)
