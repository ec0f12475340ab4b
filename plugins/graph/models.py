"""What the knowledge graph looks like on the wire: entities, relationships, questions on two
clocks, contradictions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, model_validator

from plugins.collections import CollectionId
from plugins.graph import limits
from plugins.memories import Metadata
from runtime.api.operation import Body, Query, View, not_blank
from runtime.api.pagination import PageQuery
from runtime.api.tiers import Feature
from runtime.errors import ValidationFailed
from runtime.limits import ID_CHARS_MAX, NAME_CHARS_MAX
from runtime.timestamps import EndTimestamp, Timestamp

Name = Annotated[
    str,
    Field(min_length=1, max_length=NAME_CHARS_MAX, description="A name, as it is written."),
    AfterValidator(not_blank),
]
NameOrId = Annotated[
    str,
    Field(min_length=1, max_length=NAME_CHARS_MAX, description="A name, alias or id."),
    AfterValidator(not_blank),
]
Kind = Annotated[
    str,
    Field(min_length=1, max_length=limits.ENTITY_TYPE_CHARS_MAX),
    AfterValidator(not_blank),
]
RelationshipId = Annotated[
    str, Field(min_length=1, max_length=ID_CHARS_MAX, description="The relationship's id.")
]
Depth = Annotated[
    int,
    Field(
        ge=1, le=limits.GRAPH_DEPTH_MAX, strict=True, description="How many hops from the entity."
    ),
]

GRAPH_WRITE = Feature("Writing to the knowledge graph", tier="pro")

# --- requests -------------------------------------------------------------------------------------


class NewEntity(Body):
    name: Name
    type: Kind | None = Field(
        default=None,
        description="What it is, such as `person`; any entity of this name when absent.",
    )
    aliases: list[Name] = Field(
        default_factory=list, max_length=limits.ALIASES_MAX, description="Further names."
    )
    attributes: Metadata = Field(default_factory=dict)
    collection_id: CollectionId | None = Field(
        default=None, description="The collection it belongs to; none when absent."
    )


class NewRelationship(Body):
    source: NameOrId
    target: NameOrId
    type: Kind = Field(description="The predicate, such as `works_at`.")
    valid_from: Timestamp | None = Field(
        default=None, description="Since when it holds; always when absent."
    )
    valid_to: Timestamp | None = Field(
        default=None, description="Until when, exclusive; open when absent."
    )
    recorded_at: Timestamp | None = Field(
        default=None, description="When we learned it; now when absent."
    )
    confidence: Annotated[float, Field(strict=True, ge=0, le=1)] = Field(
        default=1.0, description="How sure it is, 0 to 1."
    )
    functional: StrictBool | None = Field(
        default=None,
        description="Whether a subject has one such target at a time; known for common predicates.",
    )
    attributes: Metadata = Field(default_factory=dict)
    source_memory_id: Annotated[str, Field(min_length=1, max_length=ID_CHARS_MAX)] | None = Field(
        default=None,
        description="The memory that says so; the relationship goes when it is deleted.",
    )
    close_previous: StrictBool = Field(
        default=False,
        description=(
            "End earlier claims of this subject and predicate where this one begins, which is now "
            "when `valid_from` is absent; not where `functional` is false. One that is over "
            "already, told again without a beginning, begins anew."
        ),
    )

    @model_validator(mode="after")
    def _runs_forwards(self) -> NewRelationship:
        if (
            self.valid_from is not None
            and self.valid_to is not None
            and self.valid_from >= self.valid_to
        ):
            raise ValidationFailed.at(
                ("body", "valid_to"), "must be later than valid_from", "value_error"
            )
        return self


class EntityMerge(Body):
    into: NameOrId = Field(description="The entity that stays, by name, alias or id.")


class RelationshipChoice(Body):
    relationship_id: RelationshipId | None = None


class RelationshipChoiceQuery(Query):
    relationship_id: RelationshipId | None = None


class EntityQuery(PageQuery):
    entity_type: Kind | None = Field(default=None, description="Only entities of this type.")
    name_prefix: str | None = Field(
        default=None,
        max_length=NAME_CHARS_MAX,
        description="Only entities whose name starts with this.",
    )
    collection_id: CollectionId | None = Field(
        default=None, description="Only entities of this collection."
    )


class GraphQuery(Body):
    entity: NameOrId | None = Field(
        default=None, description="Where to start; all relationships that match when absent."
    )
    relation_type: Kind | None = Field(default=None, description="Only relationships of this type.")
    target: NameOrId | None = Field(
        default=None, description="Only relationships on a way to this entity."
    )
    depth: Depth = 1
    valid_at: EndTimestamp | None = Field(
        default=None,
        description="What held then (of a date without a time, at the end of that day); now when "
        "absent.",
    )
    timestamp: EndTimestamp | None = Field(default=None, description="Another name for valid_at.")
    known_at: EndTimestamp | None = Field(
        default=None,
        description="As it was known then (of a date without a time, at the end of that day); now "
        "when absent.",
    )
    between: Annotated[list[Timestamp], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="What held at some time in [from, to), instead of valid_at."
    )
    limit: int = Field(
        default=limits.GRAPH_ITEMS_DEFAULT,
        strict=True,
        ge=1,
        le=limits.GRAPH_ITEMS_MAX,
        description="At most so many.",
    )

    @model_validator(mode="after")
    def _one_question(self) -> GraphQuery:
        if self.between is not None and self.between[0] >= self.between[1]:
            raise ValidationFailed.at(("body", "between"), "must run forwards", "value_error")
        return self


class TimelineQuery(PageQuery):
    relation_type: Kind | None = Field(default=None, description="Only relationships of this type.")


class ContradictionQuery(PageQuery):
    entity: NameOrId | None = Field(
        default=None, description="Only contradictions about this entity."
    )
    memory_id: Annotated[str, Field(min_length=1, max_length=ID_CHARS_MAX)] | None = Field(
        default=None, description="Only those this memory takes part in."
    )
    collection_id: CollectionId | None = Field(
        default=None, description="Only those about entities of this collection."
    )


# --- responses ------------------------------------------------------------------------------------


class Entity(View):
    id: str = Field(description="The entity's id; it never changes.")
    name: str = Field(description="Its name, as first written.")
    normalized_name: str = Field(
        description="NFKC, case-folded, white space collapsed: what names are compared by."
    )
    type: str = Field(description="What it is; `unknown` when nobody said.")
    aliases: list[str] = Field(description="Further names.")
    attributes: dict[str, Any] = Field(description="Free JSON object.")
    mention_count: int = Field(description="Memories that mention it.")
    first_seen_at: str = Field(description="When it was first spoken of (ISO 8601).")
    last_seen_at: str = Field(description="When it was last spoken of (ISO 8601).")
    collection_id: str | None = Field(description="The collection it belongs to.")


class EntityName(View):
    id: str = Field(description="The entity's id.")
    name: str = Field(description="Its name.")


class Relationship(View):
    id: str = Field(description="The relationship's id; it never changes.")
    source: EntityName = Field(description="The subject.")
    type: str = Field(description="The predicate.")
    target: EntityName = Field(description="The object.")
    attributes: dict[str, Any] = Field(description="Free JSON object.")
    confidence: float = Field(description="How sure it is, 0 to 1.")
    valid_from: str | None = Field(description="Since when it holds (ISO 8601); null: always.")
    valid_to: str | None = Field(description="Until when, exclusive (ISO 8601); null: open.")
    recorded_at: str = Field(description="When we learned it (ISO 8601).")
    invalidated_at: str | None = Field(description="When we learned that it was wrong (ISO 8601).")
    source_memory_id: str | None = Field(description="The memory that first said so.")
    functional: bool = Field(description="Whether a subject has one such target at a time.")


class Primary(View):
    status: Literal["committed"] = Field(description="It is on disk.")
    read_after_write: Literal[True] = Field(description="The next read sees it.")
    sequence: int = Field(description="Number of the commit.")


class ReplicaDelivery(View):
    status: Literal["not_configured", "pending", "delivered"] = Field(
        description="Whether copies elsewhere have it."
    )
    outbox_event_id: str = Field(description="The event of this change.")


class CreatedEntity(Entity):
    primary: Primary
    replica_delivery: ReplicaDelivery


class CreatedRelationship(Relationship):
    created_entities: list[EntityName] = Field(
        description="Entities that were made because a name was new."
    )
    closed: list[str] = Field(description="Ids of the relationships that close_previous ended.")
    primary: Primary
    replica_delivery: ReplicaDelivery


class MergedEntity(Entity):
    relationships_moved: int = Field(
        description="Relationships it got; those between the two are gone."
    )
    mentions_moved: int = Field(description="Mentions by memories that it got.")
    complete: bool = Field(
        description="Whether the other one is gone; where not, the rest waits for the next merge."
    )
    primary: Primary
    replica_delivery: ReplicaDelivery


class DeletedOfGraph(View):
    id: str = Field(description="The id.")
    deleted: Literal[True] = Field(description="It is gone, on both clocks.")


class SourceMemory(View):
    memory_id: str = Field(description="The memory's id.")
    content: str = Field(description="Its text.")
    occurred_at: str = Field(description="When what it tells happened (ISO 8601).")


class EntityDetails(View):
    entity: Entity
    relationships: list[Relationship] = Field(
        description="Its standing relationships, newest first."
    )
    source_memories: list[SourceMemory] = Field(
        description="Memories that mention it, newest first."
    )


class GraphAnswer(View):
    entities: list[Entity] = Field(
        description="The ends of the relationships, and the entity asked for."
    )
    relationships: list[Relationship] = Field(description="Nearest first.")
    valid_at: str = Field(description="The instant that was asked about (ISO 8601).")
    known_at: str = Field(description="As of which knowledge (ISO 8601).")


class ContradictingClaim(View):
    relationship_id: str = Field(description="The relationship's id.")
    value: str = Field(description="Name of its target.")
    valid_from: str | None = Field(description="Since when (ISO 8601).")
    valid_to: str | None = Field(description="Until when (ISO 8601).")
    memory_id: str | None = Field(description="The memory that says so.")
    quote: str | None = Field(description="That memory's words.")


class Interval(View):
    from_: str | None = Field(alias="from", description="Its beginning (ISO 8601); null: open.")
    to: str | None = Field(description="Its end, exclusive (ISO 8601); null: open.")


class Resolution(View):
    kept: str = Field(description="Id of the relationship to go by.")
    reason: str = Field(description="Why.")


class Contradiction(View):
    subject: str = Field(description="Name of the entity both claims are about.")
    predicate: str = Field(description="Their type.")
    claims: list[ContradictingClaim] = Field(description="Both sides, the older one first.")
    overlap: Interval = Field(description="When both would hold.")
    resolution: Resolution | None = Field(
        description="Which one stands for now; null when nothing tells them apart."
    )


class GraphStats(View):
    entities: int
    relationships: int = Field(description="Claims that stand; those we took back are not counted.")
    entities_by_type: dict[str, int]
    relationships_by_type: dict[str, int]
    contradictions: int
    average_degree: float = Field(description="Relationships per entity, both ends counted.")
    max_degree: int
    components: int = Field(description="Groups of entities that are joined to each other.")
    updated_at: str | None = Field(description="When the graph last changed (ISO 8601).")


# --- examples -------------------------------------------------------------------------------------

ENTITY_ID, RELATIONSHIP_ID = (
    "ent_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
    "rel_06a1kz0c9j3s5d7p9f1w3y5a7c9e2g4h",
)
_AT = "2026-05-08T13:56:00.000Z"
ENTITY_EXAMPLE = {
    "id": ENTITY_ID, "name": "Ada", "normalized_name": "ada", "type": "person",
    "aliases": ["Countess of Lovelace"], "attributes": {}, "mention_count": 3, "first_seen_at": _AT,
    "last_seen_at": _AT, "collection_id": None,
}  # fmt: skip
RELATIONSHIP_EXAMPLE = {
    "id": RELATIONSHIP_ID,
    "source": {"id": ENTITY_ID, "name": "Ada"},
    "type": "lives_in",
    "target": {"id": "ent_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j", "name": "Lisbon"},
    "attributes": {},
    "confidence": 0.9,
    "valid_from": "2026-03-01T00:00:00.000Z",
    "valid_to": None,
    "recorded_at": _AT,
    "invalidated_at": None,
    "source_memory_id": "mem_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
    "functional": True,
}
RULE_G_EXAMPLE = {
    "primary": {"status": "committed", "read_after_write": True, "sequence": 42},
    "replica_delivery": {
        "status": "not_configured",
        "outbox_event_id": "evt_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j",
    },
}
CONTRADICTION_EXAMPLE = {
    "subject": "Ada",
    "predicate": "lives_in",
    "claims": [
        {
            "relationship_id": RELATIONSHIP_ID,
            "value": "Lisbon",
            "valid_from": "2026-03-01T00:00:00.000Z",
            "valid_to": None,
            "memory_id": "mem_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
            "quote": "I moved to Lisbon in March.",
        },
        {"relationship_id": "rel_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j", "value": "Oslo",
         "valid_from": None, "valid_to": None,
         "memory_id": None, "quote": None},
    ],
    "overlap": {"from": "2026-03-01T00:00:00.000Z", "to": None},
    "resolution": None,
}  # fmt: skip
