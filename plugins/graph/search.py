"""Searching by the knowledge graph: POST /v1/search/graph, and candidates for hybrid search.

Whom or what a query names is looked up among the entities' names and aliases. From there the claims
that held at `as_of` lead, breadth first, to the memories that support them. A memory's score falls
with its distance and rises with the query's words in it:

    1 / hops, weighted PROXIMITY,  +  its BM25 as a share of the best reachable, weighted WORDS

Each result's path says over which claims it was reached. As a retriever for hybrid search it
proposes the same memories for the entities themselves and their neighbours, where a search asks for
it; what stands there is for the ranking of search to say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field, model_validator
from pyroaring import BitMap

from plugins.graph.limits import (
    CLAIMS_VISITED_MAX,
    ENTITIES_IN_QUERY_MAX,
    GRAPH_CLAIMS_SEARCHED_MAX,
    MEMORIES_PER_ENTITY_MAX,
    QUERY_WORDS_READ_MAX,
)
from plugins.graph.models import (
    ENTITY_EXAMPLE,
    RELATIONSHIP_EXAMPLE,
    Depth,
    Entity,
    NameOrId,
    Relationship,
)
from plugins.graph.queries import ends_of, entity_view, relationship_view, walk
from plugins.graph.rows import MENTIONS, EntityRow, RelationshipRow
from plugins.graph.statistics import figure
from plugins.graph.store import get_entity, named
from plugins.memories import MEMORY_TEXT, readable
from plugins.search import (
    EXAMPLE_REPLY,
    QUERY_CHARS_MAX,
    SEARCH_ITEMS_DEFAULT,
    SEARCH_ITEMS_MAX,
    SearchReply,
    reply_with,
)
from runtime.api.context import ReadContext
from runtime.api.operation import Body, Read, View
from runtime.api.plugin import Retriever
from runtime.errors import ValidationFailed
from runtime.timestamps import Timestamp
from storage.text import query_terms

PROXIMITY, WORDS = 0.6, 0.4
NAME_WORDS_MAX = 4
_WORD = re.compile(r"[^\s,.;:!?()\"“”]+")


class GraphSearch(Body):
    query: str | None = Field(
        default=None,
        min_length=1,
        max_length=QUERY_CHARS_MAX,
        description="What to look for; the entities it names lead.",
    )
    entity: NameOrId | None = Field(
        default=None, description="Where to start, instead of what the query names, or beside it."
    )
    depth: Depth = 2
    limit: int = Field(
        default=SEARCH_ITEMS_DEFAULT,
        strict=True,
        ge=1,
        le=SEARCH_ITEMS_MAX,
        description="At most so many results.",
    )
    as_of: Timestamp | None = Field(
        default=None, description="Follow what held then; now when absent."
    )
    collection_id: str | None = Field(
        default=None, min_length=1, description="Only memories of this collection."
    )

    @model_validator(mode="after")
    def _has_a_start(self) -> GraphSearch:
        if self.entity is None and (self.query is None or not self.query.strip()):
            raise ValidationFailed.at(
                ("body", "query"), "is required unless entity is given", "missing"
            )
        return self


class Hop(View):
    relationship_id: str = Field(description="The claim that was followed.")
    source: str = Field(description="Name of its subject.")
    type: str = Field(description="Its predicate.")
    target: str = Field(description="Name of its object.")


class Path(View):
    memory_id: str = Field(description="The result.")
    hops: list[Hop] = Field(
        description="From an entity that was asked for; empty when the memory mentions that itself."
    )


class GraphSearchReply(SearchReply):
    entities: list[Entity] = Field(description="The entities met, those asked for first.")
    relationships: list[Relationship] = Field(description="The claims followed, nearest first.")
    paths: list[Path] = Field(description="How each result was reached.")


@dataclass(slots=True)
class _Reached:
    """What a walk found: claims nearest first, and for each memory the hops and the claims that led
    to it.
    """

    claims: list[RelationshipRow] = field(default_factory=list)
    memories: dict[int, tuple[int, list[RelationshipRow]]] = field(default_factory=dict)

    def add(self, memory: int, hops: int, way: list[RelationshipRow]) -> None:
        if memory not in self.memories or self.memories[memory][0] > hops:
            self.memories[memory] = (hops, way)


def entities_in(ctx: ReadContext, query: str) -> list[EntityRow]:
    """The entities a query names, the longest names first; nothing is read where there are none."""
    if not figure(ctx, "entities"):
        return []
    words = [
        word.removesuffix("'s").removesuffix("’s")
        for word in _WORD.findall(query)[:QUERY_WORDS_READ_MAX]
    ]
    found: dict[int, EntityRow] = {}
    used: set[int] = set()
    for size in range(min(NAME_WORDS_MAX, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            places = range(start, start + size)
            if used.isdisjoint(places) and (
                rows := named(ctx, " ".join(words[start : start + size]))
            ):
                used.update(places)
                found[rows[0].ordinal] = rows[0]
                if len(found) == ENTITIES_IN_QUERY_MAX:
                    return list(found.values())
    return list(found.values())


def reach(ctx: ReadContext, starts: Iterable[EntityRow], depth: int, as_of: int) -> _Reached:
    """The memories that the claims around some entities lead to."""
    starts = list(starts)
    reached = _Reached()
    for entity in starts:
        for _, memory in ctx[MENTIONS].keys(
            entity.ordinal, reverse=True, limit=MEMORIES_PER_ENTITY_MAX
        ):
            reached.add(memory, 1, [])
    accepts = lambda row: row.holds(as_of, ctx.now)  # noqa: E731
    reached.claims, _ = walk(
        ctx, [entity.ordinal for entity in starts], depth, accepts, GRAPH_CLAIMS_SEARCHED_MAX
    )
    ways: dict[int, list[RelationshipRow]] = {entity.ordinal: [] for entity in starts}
    for claim in reached.claims:
        near = min(
            (end for end in (claim.source, claim.target) if end in ways),
            key=lambda end: len(ways[end]),
        )
        way = [*ways[near], claim]
        ways.setdefault(claim.target if near == claim.source else claim.source, way)
        for memory in claim.sources:
            reached.add(memory, len(way), way)
    return reached


def search(ctx: ReadContext, body: GraphSearch) -> dict[str, Any]:
    started = time.perf_counter()
    starts = [get_entity(ctx, body.entity)] if body.entity is not None else []
    starts += [
        row
        for row in entities_in(ctx, body.query or "")
        if row.ordinal not in {start.ordinal for start in starts}
    ]
    reached = reach(ctx, starts, body.depth, ctx.now if body.as_of is None else body.as_of)
    past = body.as_of is not None
    allowed = readable(ctx, body, include_superseded=past, include_pending=False)
    ordinals = np.array(
        sorted(memory for memory in reached.memories if memory in allowed), np.uint32
    )
    scores, terms = _scores(ctx, ordinals, reached, body.query)
    order = np.lexsort((ordinals, scores))[::-1]
    reply = reply_with(
        ctx,
        body.query or body.entity or "",
        ordinals[order],
        scores[order],
        limit=body.limit,
        search_type="graph",
        started=started,
        terms=terms,
        names=[start.name for start in starts],
    )
    names = ends_of(ctx, reached.claims, *(start.ordinal for start in starts))
    page = ordinals[order[: body.limit]].tolist()
    paths = [
        {
            "memory_id": result["id"],
            "hops": [_hop(claim, names) for claim in reached.memories[ordinal][1]],
        }
        for result, ordinal in zip(reply["results"], page, strict=True)
    ]
    return reply | {
        "entities": [entity_view(row) for row in names.values()],
        "relationships": [relationship_view(claim, names) for claim in reached.claims],
        "paths": paths,
    }


def _scores(
    ctx: ReadContext, ordinals: np.ndarray, reached: _Reached, query: str | None
) -> tuple[np.ndarray, list[str]]:
    """One score from 0 to 1 for each memory, and the query's terms."""
    near = np.array(
        [1 / max(1, reached.memories[int(ordinal)][0]) for ordinal in ordinals], np.float32
    )
    terms = query_terms(query) if query else []
    text = ctx.index(MEMORY_TEXT)
    best = text.ceiling(terms) if terms else 0.0
    if not len(ordinals) or not best:
        return near, terms
    return PROXIMITY * near + WORDS * np.clip(text.score(terms, ordinals) / best, 0, 1), terms


def _hop(claim: RelationshipRow, names: dict[int, EntityRow]) -> dict[str, str]:
    return {
        "relationship_id": claim.id,
        "source": names[claim.source].name,
        "type": claim.type,
        "target": names[claim.target].name,
    }


def candidates(ctx: ReadContext, query: str) -> BitMap:
    """Retriever: the memories of what the query names and of what is beside it."""
    starts = entities_in(ctx, query)
    found = BitMap(reach(ctx, starts, 1, ctx.now).memories) if starts else BitMap()
    return found[:CLAIMS_VISITED_MAX]


OPERATIONS = (
    Read(
        name="search.graph",
        method="POST",
        path="/v1/search/graph",
        handler=search,
        heavy=True,
        body=GraphSearch,
        response=GraphSearchReply,
        rate="search",
        credits=2,
        summary="Search by the knowledge graph",
        description=(
            "From the entities named, along what held at the time, to the memories that say "
            "so. Paths say how."
        ),
        example={"query": "Where does Ada's sister work?", "depth": 2},
        example_reply={
            **EXAMPLE_REPLY,
            "search_type": "graph",
            "entities": [ENTITY_EXAMPLE],
            "relationships": [RELATIONSHIP_EXAMPLE],
            "paths": [
                {
                    "memory_id": EXAMPLE_REPLY["results"][0]["id"],
                    "hops": [
                        {
                            "relationship_id": RELATIONSHIP_EXAMPLE["id"],
                            "source": "Ada",
                            "type": "lives_in",
                            "target": "Lisbon",
                        },
                    ],
                }
            ],
        },
    ),
)
# In a hybrid search its candidates changed no figure (loadtests/graph_retrieval.py), so it has them
# only where they are asked for.
RETRIEVER = Retriever("graph", candidates)
