"""The knowledge graph as it is stored: the rows of entities and relationships, their tables and
indexes. store.py reads and changes them.

A relationship is a claim about the world, true from `valid_from` until `valid_to` (exclusive; None
is open). What we knew of it is kept beside: `recorded_at` and `invalidated_at` bound the claim's
life in our knowledge, and every end it was given carries the moment at which it was given. So a
question may be asked on both clocks: what held on a day, as it was known on another. An end is
added, never written over; an invalidated claim stays visible to an earlier `known_at`. (Two clocks:
Snodgrass, Developing Time-Oriented Database Applications in SQL, 1999.)

Sources. What the API is asked to make stays until it is deleted. What memories say stays as long as
one of its source memories does: when the last one is erased, claim and entity go with it, and an
end that only an erased memory knew of is taken back.

Functional predicates (a person lives in one place at a time) contradict themselves when two of
their intervals overlap with different targets. Pairs of such claims are kept in a table of their
own, so that a list of contradictions reads no claims.

    graph_entities       (ordinal,)                            -> EntityRow
    graph_names          (digest of a normalised name or alias, ordinal)   -> b""
    graph_relationships  (ordinal,)                            -> RelationshipRow
    graph_ids            (entity or relationship id,)          -> ordinal, 4 bytes big endian
    graph_claims         (source, type, target, valid_from)    -> relationship, 4 bytes big endian
    graph_sources        (memory id, kind, ordinal)            -> memory, 4 bytes big endian
    graph_mentions       (entity, memory ordinal)              -> what it takes it for
    graph_conflicts      (newer relationship, older one)       -> b""
    graph_reading        ()                                    -> ReadingRow
    graph_unread         (memory ordinal,)                     -> b""
    graph_entity_fields  bitmaps of entities: all, type, collection, name
    graph_claim_fields   bitmaps of relationships: all, type, end (the entities at both ends)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from plugins.collections import METADATA_BYTES_MAX
from plugins.graph import statistics as graph_stats
from plugins.graph.limits import ENDS_PER_CLAIM_ITEMS_MAX
from runtime.errors import ValidationFailed
from storage.indexes import BitmapIndex
from storage.store import Table

ENTITY, RELATIONSHIP = 0, 1
UNKNOWN_TYPE = "unknown"
# What a mention is stored with: what the memory takes the entity for, such as b"person", or
CLAIMED = b""  # only its claims speak of it
GIVEN = b"given"  # the API was told that it does
ALWAYS = -(2**62)  # how an open valid_from sorts: before every instant
FUNCTIONAL = frozenset(
    [
        "lives_in",
        "works_at",
        "works_as",
        "married_to",
        "engaged_to",
        "partner_of",
        "born_in",
        "born_on",
        "named",
        "age",
        "studies_at",
    ]
)


class EntityRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """asked_for  made through the API, so it needs no source
    number     of its collection, None when it has none
    kinds      how many memories name it, by what they take it for; what only claims speak of has
               none
    read_aliases  names that memories were read to give it, and which memories, by their ordinals
    is_read    whether its type is the one that most memories take it for, rather than told
    is_value   whether it only stands at the end of claims, and no memory names it: no entity
    """

    id: str
    ordinal: int
    name: str
    normalized: str
    type: str
    first_seen_at: int
    last_seen_at: int
    aliases: list[str] = []
    attributes: dict[str, Any] = {}
    mentions: int = 0
    asked_for: bool = False
    collection_id: str | None = None
    number: int | None = None
    kinds: dict[str, int] = {}
    read_aliases: dict[str, list[int]] = {}
    is_read: bool = False
    is_value: bool = False

    @property
    def all_aliases(self) -> list[str]:
        """Its further names, those that were read last."""
        return list(dict.fromkeys([*self.aliases, *self.read_aliases]))


class ReadingRow(msgspec.Struct, frozen=True):
    """read: the memories below this ordinal were read for whom they mention, but for those of
    graph_unread. waits: whether the job that reads is under way.
    """

    read: int = 0
    waits: bool = False


class End(msgspec.Struct, frozen=True, array_like=True):
    """An end given to a claim: at which instant it held no more, when we learned so, and from which
    memory ("" for none).
    """

    valid_to: int | None
    learned_at: int
    memory_id: str = ""


class Begin(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of a claim that was open before: from when it holds, when we learned so, and
    from which memory.
    """

    valid_from: int
    learned_at: int
    memory_id: str = ""


class RelationshipRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """source and target are entity ordinals, sources memory ordinals. retracted_by: the memory
    whose superseding invalidated it. is_entered: somebody entered it and named its source, so it
    goes with that memory, but is not read from its text.
    """

    id: str
    ordinal: int
    source: int
    type: str
    target: int
    recorded_at: int
    attributes: dict[str, Any] = {}
    confidence: float = 1.0
    valid_from: int | None = None
    ends: list[End] = []
    narrowed: Begin | None = None
    invalidated_at: int | None = None
    functional: bool = False
    asked_for: bool = False
    sources: list[int] = []
    source_memory_id: str | None = None
    retracted_by: str | None = None
    is_entered: bool = False

    @property
    def begins(self) -> int | None:
        """The beginning as we know it now; valid_from is what the claim was made with, and part of
        what it is.
        """
        return self.valid_from if self.narrowed is None else self.narrowed.valid_from

    @property
    def valid_to(self) -> int | None:
        """The end as we know it now."""
        return self.ends[-1].valid_to if self.ends else None

    def end_known_at(self, known_at: int) -> int | None:
        """The end as it was known then."""
        known = [end.valid_to for end in self.ends if end.learned_at <= known_at]
        return known[-1] if known else None

    def holds(self, valid_at: int, known_at: int, between: tuple[int, int] | None = None) -> bool:
        """Whether it held at `valid_at` (or overlapped `between`, end exclusive), as it was known
        at `known_at`.
        """
        if self.recorded_at > known_at or (
            self.invalidated_at is not None and self.invalidated_at <= known_at
        ):
            return False
        low, high = (valid_at, valid_at) if between is None else between
        end = self.end_known_at(known_at)
        start = (
            self.valid_from
            if self.narrowed is None or self.narrowed.learned_at > known_at
            else self.narrowed.valid_from
        )
        begins = start is None or (start <= low if between is None else start < high)
        return begins and (end is None or end > low)


ENTITIES: Table[EntityRow] = Table(
    "graph_entities",
    key=("ordinal",),
    row=EntityRow,
    version=2,  # 2: what memories take it for
    doc="entities in order of arrival",
)
NAMES: Table[bytes] = Table(
    "graph_names",
    key=("name", "ordinal"),
    row=bytes,
    doc="digests of normalised names and aliases of entities",
)
RELATIONSHIPS: Table[RelationshipRow] = Table(
    "graph_relationships",
    key=("ordinal",),
    row=RelationshipRow,
    version=2,  # 2: is_entered
    doc="claims, on both clocks",
)
GRAPH_IDS: Table[bytes] = Table(
    "graph_ids",
    key=("id",),
    row=bytes,
    doc="entity or relationship id to ordinal, 4 bytes big endian",
)
CLAIMS: Table[bytes] = Table(
    "graph_claims",
    key=("source", "type", "target", "valid_from"),
    row=bytes,
    doc="claim to relationship, 4 bytes big endian",
)
SOURCES: Table[bytes] = Table(
    "graph_sources",
    key=("memory_id", "kind", "ordinal"),
    row=bytes,
    doc="what a memory is a source of",
)
MENTIONS: Table[bytes] = Table(
    "graph_mentions",
    key=("entity", "memory"),
    row=bytes,
    doc="memories that mention an entity, and what they take it for",
)
CONFLICTS: Table[bytes] = Table(
    "graph_conflicts", key=("newer", "older"), row=bytes, doc="claims that contradict each other"
)
READING: Table[ReadingRow] = Table(
    "graph_reading", key=(), row=ReadingRow, doc="how far memories were read for their mentions"
)
UNREAD: Table[bytes] = Table(
    "graph_unread", key=("memory",), row=bytes, doc="rewritten memories that are to be read again"
)
ENTITY_FIELDS = BitmapIndex(
    "graph_entity_fields", fields=("all", "type", "collection", "name"), prefixed=("name",)
)
CLAIM_FIELDS = BitmapIndex("graph_claim_fields", fields=("all", "type", "end"))
TABLES: tuple[Table, ...] = (
    ENTITIES,
    NAMES,
    RELATIONSHIPS,
    GRAPH_IDS,
    CLAIMS,
    SOURCES,
    MENTIONS,
    CONFLICTS,
    READING,
    UNREAD,
    *graph_stats.TABLES,
)
INDEXES = (ENTITY_FIELDS, CLAIM_FIELDS)


def normalized(text: str) -> str:
    """NFKC, case-folded, white space collapsed: what names are compared by."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def with_attributes(
    present: dict[str, Any], further: Mapping[str, Any] | None, param: str = "attributes"
) -> dict[str, Any]:
    """Both together; of one that both have, the further. Raises ValidationFailed, naming the
    body's field, when they are too many.
    """
    if not further:
        return present
    merged = {**present, **further}
    if len(orjson.dumps(merged)) > METADATA_BYTES_MAX:
        raise ValidationFailed.at(
            ("body", param),
            f"the attributes of both would be larger than {METADATA_BYTES_MAX // 1024} KiB",
        )
    return merged


def with_end(ends: list[End], end: End) -> list[End]:
    """The ends of a claim and one more; of very many those that were learned last."""
    return [*ends, end][-ENDS_PER_CLAIM_ITEMS_MAX:]
