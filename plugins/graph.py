"""The knowledge graph: who and what the memories speak of, and how they relate, on two clocks (specification part 4).

Handlers are in plugins/graph_endpoints.py. What is stored, and how it changes, is in plugins/graph_store.py; the figures in
plugins/graph_stats.py; searching by it in plugins/graph_search.py.

Choices where the specification is silent:
- An entity is looked up by id, name or alias; among several of a name, the one most spoken of is meant. A name that is given
  without a type means any entity of that name.
- What is created through the API stays until it is deleted, unless it names a source memory: then it goes with that memory.
- A functional claim may be made beside another one: both stand and are listed as a contradiction. `close_previous` ends the
  earlier ones where the new one begins (at valid_from, else now) instead.
- Statistics count the claims that stand; a claim that has ended stands, one that was taken back does not.
- When a memory is superseded without anybody ending its claims, they are taken back; restoring it brings them back.
- A question that names both an entity and a target is answered with the claims on the ways between them.
"""

from __future__ import annotations

from typing import Any

from plugins import graph_endpoints as endpoints
from plugins.graph_store import INDEXES, TABLES
from plugins.graph_views import (
    CONTRADICTION_EXAMPLE,
    ENTITY_EXAMPLE,
    ENTITY_ID,
    RELATIONSHIP_EXAMPLE,
    RELATIONSHIP_ID,
    RULE_G_EXAMPLE,
    Contradiction,
    ContradictionQuery,
    CreatedEntity,
    CreatedRelationship,
    DeletedOfGraph,
    Entity,
    EntityDetails,
    EntityQuery,
    GraphAnswer,
    GraphQuery,
    GraphStats,
    NewEntity,
    NewRelationship,
    Relationship,
    RelationshipChoice,
    RelationshipChoiceQuery,
    TimelineQuery,
)
from plugins.memory_store import MEMORY_DELETED, MEMORY_UPDATED
from runtime.operation import Idempotency, Kind, Operation
from runtime.pagination import Page
from runtime.plugin import Plugin

_GRAPH = "part 4, Knowledge graph"
_RULE_G = "part 4, Knowledge graph; rule G"
DEEP = 2


def deep_query(body: Any) -> str | None:
    """The feature a question needs: more than two hops are gated."""
    return "graph_query" if body is not None and body.depth > DEEP else None


def _page(item: dict[str, Any]) -> dict[str, Any]:
    return {"items": [item], "next_cursor": None, "has_more": False, "total_count": 1}


OPERATIONS = (
    Operation(
        name="graph.entities.list",
        method="GET",
        path="/v1/knowledge-graph/entities",
        kind=Kind.READ,
        handler=endpoints.list_entities,
        query=EntityQuery,
        response=Page[Entity],
        summary="List entities",
        description="Newest first.",
        spec="part 4, Knowledge graph; rule P",
        example_reply=_page(ENTITY_EXAMPLE),
    ),
    Operation(
        name="graph.entities.get",
        method="GET",
        path="/v1/knowledge-graph/entities/{entity_name}",
        kind=Kind.READ,
        handler=endpoints.entity_details,
        response=EntityDetails,
        summary="Get an entity with its relationships and sources",
        description="By id, name or alias; names are compared without case.",
        spec=_GRAPH,
        example_reply={
            "entity": ENTITY_EXAMPLE,
            "relationships": [RELATIONSHIP_EXAMPLE],
            "source_memories": [
                {
                    "memory_id": RELATIONSHIP_EXAMPLE["source_memory_id"],
                    "content": "I moved to Lisbon in March.",
                    "occurred_at": "2026-05-08T13:56:00.000Z",
                }
            ],
        },
    ),
    Operation(
        name="graph.entities.create",
        method="POST",
        path="/v1/knowledge-graph/entities",
        kind=Kind.WRITE,
        handler=endpoints.create_entity,
        body=NewEntity,
        response=CreatedEntity,
        statuses=(201, 200),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        feature="graph_write",
        summary="Create an entity, or add to one",
        description="The same name and type again is 200: aliases and attributes are merged.",
        spec=_RULE_G,
        example={"name": "Ada", "type": "person", "aliases": ["Countess of Lovelace"]},
        example_reply={**ENTITY_EXAMPLE, **RULE_G_EXAMPLE},
    ),
    Operation(
        name="graph.entities.delete",
        method="DELETE",
        path="/v1/knowledge-graph/entities/{entity_name}",
        kind=Kind.WRITE,
        handler=endpoints.remove_entity,
        response=DeletedOfGraph,
        scope="write",
        idempotency=Idempotency.CACHED,
        feature="graph_write",
        summary="Delete an entity with its relationships",
        description="Again is 404. The memories that mention it stay.",
        spec=_GRAPH,
        example_reply={"id": ENTITY_ID, "deleted": True},
    ),
    Operation(
        name="graph.relationships.create",
        method="POST",
        path="/v1/knowledge-graph/relationships",
        kind=Kind.WRITE,
        handler=endpoints.create_relationship,
        body=NewRelationship,
        response=CreatedRelationship,
        statuses=(201, 200),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        feature="graph_write",
        summary="Create a relationship between two entities",
        description="Names that do not exist are created. The same ends, type and valid_from again is 200, attributes merged.",
        spec=_RULE_G,
        example={"source": "Ada", "target": "Lisbon", "type": "lives_in", "valid_from": "2026-03-01", "close_previous": True},
        example_reply={**RELATIONSHIP_EXAMPLE, "created_entities": [], "closed": [], **RULE_G_EXAMPLE},
    ),
    Operation(
        name="graph.relationships.delete",
        method="DELETE",
        path="/v1/knowledge-graph/relationships",
        kind=Kind.WRITE,
        handler=endpoints.remove_relationship,
        body=RelationshipChoice,
        query=RelationshipChoiceQuery,
        response=DeletedOfGraph,
        scope="write",
        idempotency=Idempotency.CACHED,
        feature="graph_write",
        summary="Delete a relationship",
        description="Named in the body or in the query; on both clocks. Again is 404.",
        spec=_GRAPH,
        example={"relationship_id": RELATIONSHIP_ID},
        example_reply={"id": RELATIONSHIP_ID, "deleted": True},
    ),
    Operation(
        name="graph.query",
        method="POST",
        path="/v1/knowledge-graph/query",
        kind=Kind.READ,
        handler=endpoints.query,
        body=GraphQuery,
        response=GraphAnswer,
        feature=deep_query,
        summary="Ask what held at a time, as it was known at a time",
        description="More than two hops need the feature `graph_query`.",
        spec=_GRAPH,
        example={"entity": "Ada", "depth": 2, "valid_at": "2026-04-15"},
        example_reply={
            "entities": [ENTITY_EXAMPLE],
            "relationships": [RELATIONSHIP_EXAMPLE],
            "valid_at": "2026-04-15T00:00:00.000Z",
            "known_at": "2026-05-08T13:56:00.000Z",
        },
    ),
    Operation(
        name="graph.timeline",
        method="GET",
        path="/v1/knowledge-graph/timeline/{entity_name}",
        kind=Kind.READ,
        handler=endpoints.timeline,
        query=TimelineQuery,
        response=Page[Relationship],
        summary="List an entity's relationships in time",
        description="Ascending by valid_from, those that always held first.",
        spec=_GRAPH,
        example_reply=_page(RELATIONSHIP_EXAMPLE),
    ),
    Operation(
        name="graph.contradictions",
        method="GET",
        path="/v1/knowledge-graph/contradictions",
        kind=Kind.READ,
        handler=endpoints.contradictions,
        query=ContradictionQuery,
        response=Page[Contradiction],
        feature="graph_query",
        summary="List claims that contradict each other",
        description="Functional claims of one subject whose intervals overlap with different targets, with both sides' evidence.",
        spec=_GRAPH,
        example_reply=_page(CONTRADICTION_EXAMPLE),
    ),
    Operation(
        name="graph.stats",
        method="GET",
        path="/v1/knowledge-graph/stats",
        kind=Kind.READ,
        handler=endpoints.stats,
        response=GraphStats,
        summary="Figures about the graph",
        description="Kept up with every change, never counted on demand.",
        spec=_GRAPH,
        example_reply={
            "entities": 2,
            "relationships": 1,
            "entities_by_type": {"person": 1, "place": 1},
            "relationships_by_type": {"lives_in": 1},
            "contradictions": 0,
            "average_degree": 1.0,
            "max_degree": 1,
            "components": 1,
            "updated_at": "2026-05-08T13:56:00.000Z",
        },
    ),
)

plugin = Plugin(
    name="graph",
    requires=("memories", "collections"),
    operations=OPERATIONS,
    tables=TABLES,
    indexes=INDEXES,
    events=(endpoints.GRAPH_CHANGED,),
    subscribe={MEMORY_DELETED.kind: endpoints.on_deleted, MEMORY_UPDATED.kind: endpoints.on_updated},
    erase=endpoints.erase,
    export=endpoints.export,
)
