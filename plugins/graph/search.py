"""Searching by the knowledge graph: POST /v1/search/graph, and candidates for hybrid search.

Whom or what a query names is looked up among the entities' names and aliases. From there the claims
that held at `as_of`, and the memories that mention the same, lead to memories. A memory's score
rises with its nearness and with the query's words in it:

    its PageRank as a share of the best one's (proximity.py), weighted PROXIMITY,
    +  its BM25 as a share of the best reachable, weighted WORDS

Of the newest memories some may be unread (reading.py). Those with all words of a name that the
query has count as mentioning it.

Each result's path says over which claims it was reached. As a retriever for hybrid search it
proposes the memories of the entities themselves and of their claims, where a search asks for it;
what stands there is for the ranking of search to say.
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
    UNREAD_MEMORIES_SEARCHED_MAX,
)
from plugins.graph.models import (
    ENTITY_EXAMPLE,
    RELATIONSHIP_EXAMPLE,
    Depth,
    Entity,
    NameOrId,
    Relationship,
)
from plugins.graph.proximity import neighbourhood, pagerank
from plugins.graph.queries import ends_of, entity_view, relationship_view, walk
from plugins.graph.rows import MENTIONS, EntityRow, RelationshipRow
from plugins.graph.scoping import Scoping
from plugins.graph.statistics import figure
from plugins.graph.store import get_entity, named
from plugins.graph.unread import unread
from plugins.memories import MEMORY_TEXT, readable
from plugins.search import (
    EXAMPLE_REPLY,
    QUERY_CHARS_MAX,
    SEARCH_ITEMS_DEFAULT,
    SEARCH_ITEMS_MAX,
    SearchedMemories,
    SearchReply,
    completed,
    reply_with,
)
from runtime.api.context import ReadContext
from runtime.api.operation import Body, Read, View
from runtime.api.plugin import Retriever
from runtime.errors import NotFound, ValidationFailed
from runtime.timestamps import EndTimestamp
from storage.text import analyze, query_terms

PROXIMITY, WORDS = 0.6, 0.4
NAME_WORDS_MAX = 6
_LARGE = re.compile(r"\b[A-Z][\w'’-]{0,40}(?: [A-Z][\w'’-]{0,40}){0,5}")
_WORD = re.compile(r"[^\s,.;:!?()\"“”]+")


class GraphStart(Body):
    """Where a search by the graph begins, and how far it goes."""

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
    as_of: EndTimestamp | None = Field(
        default=None,
        description="Follow what held then (of a date without a time, at the end of that day); "
        "now when absent.",
    )


class GraphSearch(SearchedMemories, GraphStart):
    """A search by the graph, and which memories may answer it."""

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
        description="From an entity that was asked for; empty when the memory mentions that "
        "itself, or what a memory mentions that does."
    )


class GraphSearchReply(SearchReply):
    entities: list[Entity] = Field(description="The entities met, those asked for first.")
    relationships: list[Relationship] = Field(description="The claims followed, nearest first.")
    paths: list[Path] = Field(description="How each result was reached.")


@dataclass(slots=True)
class _Reached:
    """What a walk found: claims nearest first, and for each memory the claims that led to it, none
    where it mentions a start itself.
    """

    claims: list[RelationshipRow] = field(default_factory=list)
    ways: dict[int, list[RelationshipRow]] = field(default_factory=dict)

    def add(self, memory: int, way: list[RelationshipRow]) -> None:
        if memory not in self.ways or len(self.ways[memory]) > len(way):
            self.ways[memory] = way


def entities_in(ctx: ReadContext, query: str, scoping: Scoping) -> list[EntityRow]:
    """The entities a query names that the scope shows, the longest names first; nothing is read
    where there are none.
    """
    if not figure(ctx, "entities"):
        return []
    words = _WORD.findall(query.replace("’", "'"))[:QUERY_WORDS_READ_MAX]
    found: dict[int, EntityRow] = {}
    used: set[int] = set()
    for size in range(min(NAME_WORDS_MAX, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            places = range(start, start + size)
            if not used.isdisjoint(places):
                continue
            rows = named(ctx, " ".join(words[start : start + size]).removesuffix("'s"))
            row = next(filter(scoping.sees, rows), None)
            if row is not None:
                used.update(places)
                found[row.ordinal] = row
                if len(found) == ENTITIES_IN_QUERY_MAX:
                    return list(found.values())
    return list(found.values())


def reach(
    ctx: ReadContext, starts: Iterable[EntityRow], depth: int, as_of: int, scoping: Scoping
) -> _Reached:
    """The memories that the claims around some entities lead to, those claims that are in scope."""
    starts = list(starts)
    reached = _Reached()
    for entity in starts:
        for _, memory in ctx[MENTIONS].keys(
            entity.ordinal, reverse=True, limit=MEMORIES_PER_ENTITY_MAX
        ):
            reached.add(memory, [])
    accepts = lambda row: row.holds(as_of, ctx.now) and scoping.sees_claim(row)  # noqa: E731
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
            reached.add(memory, way)
    return reached


def search(ctx: ReadContext, body: GraphSearch) -> dict[str, Any]:
    started = time.perf_counter()
    scoping = Scoping.of(ctx, body)
    starts = _starts(ctx, body, scoping)
    as_of, past = ctx.now if body.as_of is None else body.as_of, body.as_of is not None
    reached = reach(ctx, starts, body.depth, as_of, scoping)
    allowed = readable(ctx, body, include_superseded=past, include_pending=False)
    if scoping.memories is not None:
        allowed &= scoping.memories
    ordinals, near = _near(ctx, starts, reached, body, allowed)
    scores, terms = _scores(ctx, ordinals, near, body.query)
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
            "hops": [_hop(claim, names) for claim in reached.ways.get(ordinal, ())],
        }
        for result, ordinal in zip(reply["results"], page, strict=True)
    ]
    completed(ctx, reply)
    return reply | {
        "entities": [entity_view(row) for row in names.values()],
        "relationships": [
            relationship_view(claim, names) for claim in scoping.sourced(reached.claims)
        ],
        "paths": paths,
    }


def _starts(ctx: ReadContext, body: GraphSearch, scoping: Scoping) -> list[EntityRow]:
    """The entity that is asked for, then those that the query names. Raises NotFound for one that
    only memories outside the scope speak of, as for one that is not there.
    """
    starts: list[EntityRow] = []
    if body.entity is not None:
        rows = [get_entity(ctx, body.entity), *named(ctx, body.entity)]
        starts += [row for row in rows if scoping.sees(row)][:1]
        if not starts:
            raise NotFound("There is no entity with this name or id.")
    known = {start.ordinal for start in starts}
    return starts + [
        row for row in entities_in(ctx, body.query or "", scoping) if row.ordinal not in known
    ]


def _near(
    ctx: ReadContext,
    starts: list[EntityRow],
    reached: _Reached,
    body: GraphSearch,
    allowed: BitMap,
) -> tuple[np.ndarray, np.ndarray]:
    """The memories that were reached, ascending, and how near each is, 0 to 1."""
    near: dict[int, float] = {}
    if starts:
        around = neighbourhood(ctx, starts, reached.claims, body.depth, allowed)
        ranks = pagerank(around, starts)
        near = {memory: float(ranks[number]) for memory, (number, _) in around.memories.items()}
        best = max(near.values(), default=1.0)
        near = {memory: rank / best for memory, rank in near.items()}
    near |= dict.fromkeys(_newest(ctx, starts, body.query or "", allowed), 1.0)
    ordinals = np.array(sorted(near), np.uint32)
    return ordinals, np.array([near[int(ordinal)] for ordinal in ordinals], np.float32)


def _newest(ctx: ReadContext, starts: list[EntityRow], query: str, allowed: BitMap) -> list[int]:
    """The unread memories that have all words of a name: of a start's, or of words that the query
    writes large.
    """
    waiting = np.array(unread(ctx, UNREAD_MEMORIES_SEARCHED_MAX) & allowed, np.uint32)
    if not len(waiting):
        return []
    names = {name for start in starts for name in (start.name, *start.aliases)}
    names |= {match[0] for match in _LARGE.finditer(query) if match.start()}
    found: set[int] = set()
    for name in sorted(names)[:ENTITIES_IN_QUERY_MAX]:
        terms = analyze(name)
        if terms:
            occurring = ctx.index(MEMORY_TEXT).frequencies(terms, waiting) > 0
            found.update(waiting[occurring.all(axis=0)].tolist())
    return sorted(found)


def _scores(
    ctx: ReadContext, ordinals: np.ndarray, near: np.ndarray, query: str | None
) -> tuple[np.ndarray, list[str]]:
    """One score from 0 to 1 for each memory, and the query's terms."""
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
    everything = Scoping(ctx, None)
    starts = entities_in(ctx, query, everything)
    found = BitMap(reach(ctx, starts, 1, ctx.now, everything).ways) if starts else BitMap()
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
            "From the entities named, along what held at the time and over the memories that "
            "mention the same, to the nearest memories. Paths say how. With scope fields or "
            "filters only memories inside them are given and walked over, and only entities and "
            "relationships that these memories speak of or that were made without a memory. How "
            "an entity or relationship looks (names, attributes, counts and times) is the same "
            "for the whole account."
        ),
        example={"query": "Where does Ada's sister work?", "depth": 2, "user_id": "ada"},
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
