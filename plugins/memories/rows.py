"""Memories as they are stored: the rows, the tables and indexes that hold them, and their events.

memories          (ordinal,)               -> MemoryRow
memory_ids        (memory id,)             -> ordinal, 4 bytes big endian
memory_cues       one record of 56 bytes, see plugins/memories/features.py
memory_history    (memory id, version)     -> VersionRow
memory_expiry     (expires_at, ordinal)    -> b""
memory_alarm      ()                       -> when the next expiry job runs, 8 bytes
memories_hidden   (cause, number)          -> HiddenRow      deleted, not yet swept
memory_batches    (batch id,)              -> BatchRow       for repeated Idempotency-Keys
memory_bytes      ()                       -> bytes of all of it, see plugins/memories/room.py
memory_space      ()                       -> SpaceRow       see plugins/memories/spaces.py
memory_fields     bitmaps of ordinals: live, collection, the scopes, session, speaker,
                  speaker_word, speaker_shape, role, tier, tag, source_type, superseded, pending,
                  created_hour, occurred_day
memory_text       postings of "speaker content"
memory_vectors    one vector of the content; of what a long one goes on with, see
                  plugins/memories/passages.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from pydantic import Field

from plugins.collections import CollectionRow
from plugins.memories import passages
from plugins.memories.features import ABSENT, COLUMNS, TextFeatures
from plugins.memories.fields import FACET_FIELDS, FACETS_IN_ORDER
from runtime.api.operation import Event, View
from storage.indexes import (
    BitmapIndex,
    ChangeTokens,
    ColumnIndex,
    LexicalIndex,
    VectorIndex,
    WordVectors,
)
from storage.store import Table

SCOPES = ("user_id", "agent_id", "run_id", "app_id", "session_id")
DERIVED = "inferred"  # the source_type of a memory that rests on another one
TURN = "message"  # and of one that others may rest on
# What a memory is, by what kind of source it has: an event that was told, a fact, a passage of a
# document, a file of an agent's memory folder. Any other one is a note, or told if it has a role.
EPISODIC, NOTE = "episodic", "note"
KINDS = {
    TURN: EPISODIC, "chat": EPISODIC, DERIVED: "semantic", "document": "document",
    "memory_file": "file",
}  # fmt: skip
PROCESSING, COMPLETED, FAILED = "processing", "completed", "failed"
UNINDEXED: dict[str, Any] = {"status": PROCESSING, "space": "", "chunks": 0}


# --- rows -----------------------------------------------------------------------------------------


class MemoryRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in Unix milliseconds.

    number           of its collection; collection_id is what the API shows
    status           "processing", "completed" (searchable) or "failed"
    content_version  the version that last changed the content
    change, actor, reason   how the current version came about: "ADD", "UPDATE", "SUPERSEDE" or
                            "DELETE"; by which credential
    space            of its vectors, "" while there are none
    chunks           how many passages after the first have a vector of their own
                     (plugins/memories/passages.py)
    """

    id: str
    ordinal: int
    content: str
    collection_id: str
    number: int
    created_at: int
    updated_at: int
    occurred_at: int
    importance: float = 0.5
    tier: str = "short_term"
    title: str | None = None
    tags: list[str] = []
    source: str | None = None
    source_type: str = "text"
    source_reference: str | None = None
    metadata: dict[str, Any] = {}
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    app_id: str | None = None
    session_id: str | None = None
    speaker: str | None = None
    role: str | None = None
    expires_at: int | None = None
    version: int = 1
    content_version: int = 1
    change: str = "ADD"
    actor: str = ""
    reason: str | None = None
    status: str = COMPLETED
    space: str = ""
    chunks: int = 0
    outbox_event_id: str = ""
    superseded: bool = False
    superseded_by_id: str | None = None
    access_count: int = 0
    last_accessed_at: int | None = None

    @property
    def searchable(self) -> bool:
        return self.status == COMPLETED

    @property
    def rests_on(self) -> str | None:
        """The id of the memory that this one was derived from: a fact's turn."""
        return self.source_reference if self.source_type == DERIVED else None

    @property
    def kind(self) -> str:
        """One of KINDS, or NOTE."""
        return KINDS.get(self.source_type) or (NOTE if self.role is None else EPISODIC)

    @property
    def stands_in(self) -> str | None:
        """The id of the turn that says what this memory says: of a fact whose text was edited none
        does.
        """
        return self.rests_on if self.content_version == 1 else None

    @property
    def is_turn(self) -> bool:
        """Whether it is what was said in a conversation, on which facts may rest."""
        return self.source_type == TURN

    @property
    def pending(self) -> bool:
        """Whether it waits to be searchable."""
        return self.status == PROCESSING


class VersionRow(msgspec.Struct, omit_defaults=True):
    """A version that is no longer the current one."""

    change: str
    content: str
    importance: float
    metadata: dict[str, Any]
    at: int
    actor: str
    reason: str | None = None


class SpaceRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """space: which the account is searched in; other: one that is being filled, or freed, beside
    it."""

    space: str
    other: str = ""


class HiddenRow(msgspec.Struct):
    """ordinals: a serialised BitMap; at: when they were deleted, Unix milliseconds."""

    ordinals: bytes
    at: int


class BatchItem(msgspec.Struct, omit_defaults=True):
    """One item of a write of several memories: its memory, or why there is none."""

    memory_id: str | None = None
    code: str = ""
    message: str = ""


class BatchRow(msgspec.Struct, omit_defaults=True):
    """What a write of several memories did, kept while an Idempotency-Key is bound to it."""

    items: list[BatchItem]
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class Indexed:
    """What search needs of a text: term frequencies, features, a unit vector of `space`, its words'
    vectors where the model has them, and the vectors of what a long text goes on with. previous:
    the same by the model that is being replaced, while it is."""

    terms: Mapping[str, int]
    features: TextFeatures
    space: str
    vector: np.ndarray
    words: np.ndarray | None = None
    chunks: Sequence[np.ndarray] = ()
    previous: Indexed | None = None

    def within(self, space: str | None) -> Indexed:
        """What was made for this space, if it was."""
        return self.previous if self.previous is not None and self.previous.space == space else self


@dataclass(slots=True)
class Draft:
    """A memory to be. `fields` are MemoryRow fields, an id only for a restored one, and a role only
    if it is a chat's; without `indexed` it becomes searchable later.
    """

    content: str
    collection: CollectionRow
    fields: dict[str, Any] = field(default_factory=dict)
    indexed: Indexed | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """rows in the drafts' order; job_id of the index job, None when all are searchable."""

    rows: list[MemoryRow]
    job_id: str | None


MEMORIES: Table[MemoryRow] = Table(
    "memories", key=("ordinal",), row=MemoryRow, doc="memories in order of arrival"
)
MEMORY_IDS: Table[bytes] = Table(
    "memory_ids", key=("memory_id",), row=bytes, doc="memory id to ordinal, 4 bytes big endian"
)
MEMORY_HISTORY: Table[VersionRow] = Table(
    "memory_history",
    key=("memory_id", "version"),
    row=VersionRow,
    doc="versions before the current one",
)
MEMORY_EXPIRY: Table[bytes] = Table(
    "memory_expiry", key=("expires_at", "ordinal"), row=bytes, doc="memories with an end, by time"
)
MEMORY_ALARM: Table[bytes] = Table(
    "memory_alarm", key=(), row=bytes, doc="when the next expiry job runs, 8 bytes big endian"
)
MEMORIES_HIDDEN: Table[HiddenRow] = Table(
    "memories_hidden", key=("cause", "number"), row=HiddenRow, doc="deleted, still to be swept"
)
MEMORY_SPACE: Table[SpaceRow] = Table(
    "memory_space", key=(), row=SpaceRow, doc="which embedding space the memories are searched in"
)
MEMORY_BYTES: Table[bytes] = Table(
    "memory_bytes",
    key=(),
    row=bytes,
    doc="bytes of the memories' texts, and which ordinals are still to be added",
)
MEMORY_BATCHES: Table[BatchRow] = Table(
    "memory_batches", key=("batch_id",), row=BatchRow, doc="results of writes of several memories"
)
MEMORY_FIELDS = BitmapIndex(
    "memory_fields",
    fields=(
        "live", "collection", *SCOPES, "session", "speaker", "speaker_word", "speaker_shape",
        "tier", "tag", "role", "source_type", "superseded", "pending", "created_hour",
        "updated_hour", "occurred_day", "chunked", *FACET_FIELDS,
    ),
    plain=FACETS_IN_ORDER,
    version=4,  # 3: metadata, importance, title, source, time of change; 4: speaker_shape
)  # fmt: skip
MEMORY_TEXT = LexicalIndex("memory_text")
MEMORY_CHANGES = ChangeTokens("memory_ordinals")  # of both that follow
MEMORY_VECTORS = VectorIndex("memory_vectors", changes=MEMORY_CHANGES)
MEMORY_WORDS = WordVectors("memory_words")
MEMORY_FEATURES = ColumnIndex("memory_cues", COLUMNS, ABSENT, changes=MEMORY_CHANGES)

TABLES: tuple[Table, ...] = (
    MEMORIES,
    MEMORY_IDS,
    MEMORY_HISTORY,
    MEMORY_EXPIRY,
    MEMORY_ALARM,
    MEMORIES_HIDDEN,
    MEMORY_BATCHES,
    MEMORY_BYTES,
    MEMORY_SPACE,
)
INDEXES = (
    MEMORY_FIELDS,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    MEMORY_FEATURES,
    *passages.INDEXES,
)


# --- events ---------------------------------------------------------------------------------------


class MemoryCreated(View):
    id: str = Field(description="The memory's id.")
    version: int = Field(description="Its version, from 1.")
    content: str = Field(description="Its text; empty once the memory has been deleted.")
    collection_id: str = Field(description="The collection it belongs to.")
    importance: float = Field(description="0 to 1.")
    created_at: str = Field(description="When it was stored (ISO 8601).")


class MemoryUpdated(MemoryCreated):
    updated_at: str = Field(description="When this version was stored (ISO 8601).")


class MemoriesCleared(View):
    """All memories that were here and pass these filters were deleted. What was asked for before,
    and would become such a memory, is unwanted.

    scopes   all of them, None where any does
    filters  a condition (runtime/api/conditions.py); empty: whatever has the scopes
    """

    collection_id: str | None
    scopes: dict[str, str | None]
    filters: dict[str, Any]


class MemoryDeleted(View):
    id: str = Field(description="The memory's id.")
    version: int = Field(description="One above its last version.")
    collection_id: str = Field(description="The collection it belonged to.")
    deleted_at: str = Field(description="When it ceased to be readable (ISO 8601).")


MEMORY_CREATED = Event("memory.created", MemoryCreated)
MEMORY_UPDATED = Event("memory.updated", MemoryUpdated)
MEMORY_DELETED = Event("memory.deleted", MemoryDeleted)
MEMORIES_CLEARED = Event("internal.memories_cleared", MemoriesCleared)
