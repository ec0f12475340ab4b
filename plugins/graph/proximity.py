"""How near memories are to some entities, by whom they mention and by what is claimed.

Entities and memories are the nodes of a graph: a memory is joined to what it mentions, an entity to
what it is related to. Around the entities a search begins with, so many hops of it are looked at;
personalised PageRank (Haveliwala, Topic-sensitive PageRank, 2002) then says how often a walk that
begins there, and begins anew at every other step, comes by each memory. A memory that several of
them lead to is nearer than one that one of them leads to, a rare name leads further than one that
many memories mention, and a memory that mentions a hundred things is near to none of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

from plugins.graph.limits import (
    GRAPH_MEMORIES_EXPANDED_MAX,
    GRAPH_NODES_MAX,
    GRAPH_SEARCH_MS_MAX,
)
from plugins.graph.rows import ENTITY, SOURCES, EntityRow, RelationshipRow
from plugins.graph.scoping import mentioning
from plugins.memories import find_rows_at
from runtime.api.context import ReadContext

RESTART = 0.5  # the share of steps that begin anew
STEPS = 12  # after which what is left on its way is less than 0.1 %


@dataclass(slots=True)
class Neighbourhood:
    """What lies around some entities: nodes by their numbers, edges as pairs of these.

    entities  number of each entity, by its ordinal
    memories  (number, hops from where it began) of each memory, by its ordinal
    """

    entities: dict[int, int] = field(default_factory=dict)
    memories: dict[int, tuple[int, int]] = field(default_factory=dict)
    edges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.entities) + len(self.memories)

    def entity(self, ordinal: int) -> int:
        """The number of an entity's node, new or known."""
        return self.entities.setdefault(ordinal, self.size)

    def memory(self, ordinal: int, hops: int) -> int:
        """The number of a memory's node, new or known."""
        return self.memories.setdefault(ordinal, (self.size, hops))[0]


def neighbourhood(
    ctx: ReadContext,
    starts: Sequence[EntityRow],
    claims: Iterable[RelationshipRow],
    depth: int,
    allowed: BitMap,
) -> Neighbourhood:
    """Walk up to `depth` hops around the entities: over these claims, and over these memories.

    It ends early at GRAPH_NODES_MAX nodes, and after GRAPH_SEARCH_MS_MAX milliseconds.
    """
    around = Neighbourhood()
    deadline = time.perf_counter() + GRAPH_SEARCH_MS_MAX / 1000
    beside: dict[int, list[int]] = {}
    for claim in claims:
        beside.setdefault(claim.source, []).append(claim.target)
        beside.setdefault(claim.target, []).append(claim.source)
    for start in starts:
        around.entity(start.ordinal)
    front = list(around.entities)
    for hops in range(1, depth + 1):
        fresh: list[int] = []
        following: dict[int, None] = {}
        for entity in front:
            if around.size >= GRAPH_NODES_MAX or time.perf_counter() > deadline:
                return around
            number = around.entity(entity)
            fresh += _join_memories(ctx, around, entity, hops, allowed)
            for other in beside.get(entity, ()):
                if other not in around.entities:
                    following[other] = None
                around.edges.append((number, around.entity(other)))
        if hops < depth:
            following |= dict.fromkeys(_join_entities(ctx, around, fresh))
        front = list(following)
    return around


def _join_memories(
    ctx: ReadContext, around: Neighbourhood, entity: int, hops: int, allowed: BitMap
) -> list[int]:
    """Join an entity to the newest memories that mention it; -> those that are new."""
    number, fresh = around.entity(entity), []
    for memory in mentioning(ctx, entity, allowed):
        if memory not in around.memories:
            fresh.append(memory)
        around.edges.append((number, around.memory(memory, hops)))
    return fresh


def _join_entities(ctx: ReadContext, around: Neighbourhood, memories: list[int]) -> list[int]:
    """Join memories to whom else they mention; -> the entities that are new."""
    found: list[int] = []
    for row in find_rows_at(ctx, memories[:GRAPH_MEMORIES_EXPANDED_MAX]):
        number = around.memories[row.ordinal][0]
        for _, _, entity in ctx[SOURCES].keys(row.id, ENTITY):
            if entity not in around.entities:
                found.append(entity)
                around.edges.append((around.entity(entity), number))
    return found


def pagerank(around: Neighbourhood, starts: Sequence[EntityRow]) -> np.ndarray:
    """(nodes,) float64 by number: the share of a walk's steps that come by each node."""
    restart = np.zeros(around.size)
    for start in starts:
        restart[around.entities[start.ordinal]] = 1 / np.sqrt(1 + start.mentions)
    restart /= restart.sum()
    if not around.edges:
        return restart
    pairs = np.unique(np.sort(np.array(around.edges, np.int64), axis=1), axis=0)
    source = np.concatenate([pairs[:, 0], pairs[:, 1]])
    target = np.concatenate([pairs[:, 1], pairs[:, 0]])
    share = (1 - RESTART) / np.maximum(np.bincount(source, minlength=around.size), 1)
    found = restart
    for _ in range(STEPS):
        going = (found * share)[source]
        found = RESTART * restart + np.bincount(target, going, minlength=around.size)
    return found
