"""The operations on the knowledge graph; queries.py carries them out."""

from __future__ import annotations

from typing import Any

from plugins.graph import queries
from plugins.graph.models import (
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
    EntityMerge,
    EntityQuery,
    GraphAnswer,
    GraphQuery,
    GraphStats,
    MergedEntity,
    NewEntity,
    NewRelationship,
    Relationship,
    RelationshipChoice,
    RelationshipChoiceQuery,
    TimelineQuery,
)
from runtime.api.operation import Idempotency, Read, Write
from runtime.api.pagination import Page, example_page

DEEP = 2


def deep_query(body: Any) -> str | None:
    """The feature a question needs: more than two hops are gated."""
    return "graph_query" if body is not None and body.depth > DEEP else None


OPERATIONS = (
    Read(
        name="graph.entities.list",
        method="GET",
        path="/v1/knowledge-graph/entities",
        handler=queries.list_entities,
        heavy=True,
        query=EntityQuery,
        response=Page[Entity],
        summary="List entities",
        description="Newest first.",
        example_reply=example_page(ENTITY_EXAMPLE),
    ),
    Read(
        name="graph.entities.get",
        method="GET",
        path="/v1/knowledge-graph/entities/{entity_name}",
        handler=queries.entity_details,
        heavy=True,
        response=EntityDetails,
        summary="Get an entity with its relationships and sources",
        description="By id, name or alias; names are compared without case.",
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
    Write(
        name="graph.entities.create",
        method="POST",
        path="/v1/knowledge-graph/entities",
        handler=queries.create_entity,
        body=NewEntity,
        response=CreatedEntity,
        statuses=(201, 200),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        feature="graph_write",
        summary="Create an entity, or add to one",
        description="The same name and type again is 200: aliases and attributes are merged.",
        example={"name": "Ada", "type": "person", "aliases": ["Countess of Lovelace"]},
        example_reply={**ENTITY_EXAMPLE, **RULE_G_EXAMPLE},
    ),
    Write(
        name="graph.entities.delete",
        method="DELETE",
        path="/v1/knowledge-graph/entities/{entity_name}",
        handler=queries.remove_entity,
        response=DeletedOfGraph,
        scope="write",
        idempotency=Idempotency.CACHED,
        feature="graph_write",
        summary="Delete an entity with its relationships",
        description=(
            "Again is 404. A name that several entities go by is 409, with their ids. The memories "
            "that mention it stay."
        ),
        example_reply={"id": ENTITY_ID, "deleted": True},
    ),
    Write(
        name="graph.entities.merge",
        method="POST",
        path="/v1/knowledge-graph/entities/{entity_name}/merge",
        handler=queries.merge_entities,
        lengthy=True,
        body=EntityMerge,
        response=MergedEntity,
        scope="write",
        idempotency=Idempotency.CACHED,
        feature="graph_write",
        stability="beta",
        summary="Merge an entity into another one",
        description=(
            "Two entries for the same thing become the one named `into`: it gets the names, the "
            "attributes where it has none of its own, the relationships with their ids and times, "
            "and the mentions; then the other one is gone, and its name means this one. A large "
            "entity is merged in several calls: again until `complete`. A name that several "
            "entities go by is 409, with their ids."
        ),
        example={"into": "Ada"},
        example_reply={
            **ENTITY_EXAMPLE,
            "relationships_moved": 2,
            "mentions_moved": 5,
            "complete": True,
            **RULE_G_EXAMPLE,
        },
    ),
    Write(
        name="graph.relationships.create",
        method="POST",
        path="/v1/knowledge-graph/relationships",
        handler=queries.create_relationship,
        body=NewRelationship,
        response=CreatedRelationship,
        statuses=(201, 200),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=1,
        feature="graph_write",
        summary="Create a relationship between two entities",
        description=(
            "Names that do not exist are created. The same ends, type and valid_from again is 200, "
            "attributes merged."
        ),
        example={
            "source": "Ada",
            "target": "Lisbon",
            "type": "lives_in",
            "valid_from": "2026-03-01",
            "close_previous": True,
        },
        example_reply={
            **RELATIONSHIP_EXAMPLE,
            "created_entities": [],
            "closed": [],
            **RULE_G_EXAMPLE,
        },
    ),
    Write(
        name="graph.relationships.delete",
        method="DELETE",
        path="/v1/knowledge-graph/relationships",
        handler=queries.remove_relationship,
        body=RelationshipChoice,
        query=RelationshipChoiceQuery,
        response=DeletedOfGraph,
        scope="write",
        idempotency=Idempotency.CACHED,
        feature="graph_write",
        summary="Delete a relationship",
        description="Named in the body or in the query; on both clocks. Again is 404.",
        example={"relationship_id": RELATIONSHIP_ID},
        example_reply={"id": RELATIONSHIP_ID, "deleted": True},
    ),
    Read(
        name="graph.query",
        method="POST",
        path="/v1/knowledge-graph/query",
        handler=queries.query,
        heavy=True,
        body=GraphQuery,
        response=GraphAnswer,
        errors=(404,),
        feature=deep_query,
        summary="Ask what held at a time, as it was known at a time",
        description="More than two hops need the feature `graph_query`.",
        example={"entity": "Ada", "depth": 2, "valid_at": "2026-04-15"},
        example_reply={
            "entities": [ENTITY_EXAMPLE],
            "relationships": [RELATIONSHIP_EXAMPLE],
            "valid_at": "2026-04-15T23:59:59.999Z",
            "known_at": "2026-05-08T13:56:00.000Z",
        },
    ),
    Read(
        name="graph.timeline",
        method="GET",
        path="/v1/knowledge-graph/timeline/{entity_name}",
        handler=queries.timeline,
        heavy=True,
        query=TimelineQuery,
        response=Page[Relationship],
        summary="List an entity's relationships in time",
        description="Ascending by valid_from, those that always held first.",
        example_reply=example_page(RELATIONSHIP_EXAMPLE),
    ),
    Read(
        name="graph.contradictions",
        method="GET",
        path="/v1/knowledge-graph/contradictions",
        handler=queries.contradictions,
        heavy=True,
        query=ContradictionQuery,
        response=Page[Contradiction],
        feature="graph_query",
        summary="List claims that contradict each other",
        description=(
            "Functional claims of one subject whose intervals overlap with different targets, with "
            "both sides' evidence."
        ),
        example_reply=example_page(CONTRADICTION_EXAMPLE),
    ),
    Read(
        name="graph.stats",
        method="GET",
        path="/v1/knowledge-graph/stats",
        handler=queries.stats,
        response=GraphStats,
        summary="Figures about the graph",
        description="Kept up with every change, never counted on demand.",
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
