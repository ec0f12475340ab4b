"""Memories as they are stored: the rows, the indexes beside them, and every change they go through.

Owns what "a memory exists" means. It does not know requests or replies; plugins/memories.py, and every plugin that makes
memories of its own (documents, corrections, ingestion), changes them through the functions here and nowhere else:

    store_memories   new ones, one transaction, one index job for those that are not searchable yet
    update_memory    a new version; `supersede` is the update that takes a memory out of ordinary reads
    delete_memories  of plugins/memory_removal.py

A memory is named by an ordinal (uint32, per tenant, in order of arrival), which ties row, bitmaps, postings, vector and cues
together. Text is indexed outside the transaction (plugins/memory_indexing.py) and handed in as `Indexed`. Without it the
memory is stored `searchable: false`: it has neither postings nor vector until the job `memories.index` adds both.

Invariants
- postings, vector and text cues belong to the content of version `content_version`, or are not there at all;
- what is in `live` has a row, and the other way round. A read goes by `live_bitmap`, or for one memory by `find_row`: both
  leave out what has expired and what is hidden, so those are gone before they are swept;
- `memory_history` holds the versions before the current one, so that an untouched memory costs no history.

    memories          (ordinal,)               -> MemoryRow
    memory_ids        (memory id,)             -> ordinal, 4 bytes big endian
    memory_cues       one record of 56 bytes, see plugins/memory_cues.py
    memory_history    (memory id, version)     -> VersionRow
    memory_expiry     (expires_at, ordinal)    -> b""
    memory_alarm      ()                       -> when the next expiry job runs, 8 bytes
    memories_hidden   (cause, number)          -> HiddenRow      deleted, not yet swept
    memory_batches    (batch id,)              -> BatchRow       for repeated Idempotency-Keys
    memory_fields     bitmaps of ordinals: live, collection, the scopes, session, speaker, speaker_word, tier, tag, source_type, superseded,
                      pending, created_hour, occurred_day
    memory_text       postings of "speaker content"
    memory_vectors    one vector of the content; of what a long one goes on with, see plugins/memory_chunks.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from pydantic import Field
from pyroaring import BitMap

from plugins import memory_chunks
from plugins.collections import CollectionRow, adjust_count, require_collection
from plugins.memory_cues import ABSENT, COLUMNS, NOTHING, TextCues, links, mark, pack, relinked, words_of_name
from plugins.memory_facets import FACET_FIELDS, FACETS_IN_ORDER, facet_marks
from runtime.errors import NotFound
from runtime.limits import EXPIRY_DELAY_MS
from runtime.operation import Event, ReadContext, View, WriteContext
from runtime.timestamps import iso
from storage.bitmap_index import BitmapIndex
from storage.column_index import ColumnIndex
from storage.lexical_index import LexicalIndex
from storage.table import Table
from storage.vector_index import VectorIndex
from storage.word_vectors import WordVectors

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
SCOPES = ("user_id", "agent_id", "run_id", "app_id", "session_id")
PROCESSING, COMPLETED, FAILED = "processing", "completed", "failed"
ARCHIVED = "archived"  # a tier
UNINDEXED: dict[str, Any] = {"status": PROCESSING, "space": "", "chunks": 0}

# --- rows -------------------------------------------------------------------------------------------------------------


class MemoryRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in Unix milliseconds.

    number           of its collection; collection_id is what the API shows
    status           "processing", "completed" (searchable) or "failed"
    content_version  the version that last changed the content
    change, actor, reason   how the current version came about: "ADD", "UPDATE", "SUPERSEDE" or "DELETE"; by which credential
    space            of its vectors, "" while there are none
    chunks           how many passages after the first have a vector of their own (plugins/memory_chunks.py)
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


class VersionRow(msgspec.Struct, omit_defaults=True):
    """A version that is no longer the current one."""

    change: str
    content: str
    importance: float
    metadata: dict[str, Any]
    at: int
    actor: str
    reason: str | None = None


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
    """What search needs of a text: term frequencies, cues, a unit vector of `space`, its words' vectors where the model has them, and
    the vectors of what a long text goes on with."""

    terms: Mapping[str, int]
    cues: TextCues
    space: str
    vector: np.ndarray
    words: np.ndarray | None = None
    chunks: Sequence[np.ndarray] = ()


@dataclass(slots=True)
class Draft:
    """A memory to be. `fields` are MemoryRow fields, an id only for a restored one; without `indexed` it becomes searchable later."""

    content: str
    collection: CollectionRow
    fields: dict[str, Any] = field(default_factory=dict)
    indexed: Indexed | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """rows in the drafts' order; job_id of the index job, None when all are searchable."""

    rows: list[MemoryRow]
    job_id: str | None


MEMORIES: Table[MemoryRow] = Table("memories", key=("ordinal",), row=MemoryRow, doc="memories in order of arrival")
MEMORY_IDS: Table[bytes] = Table("memory_ids", key=("memory_id",), row=bytes, doc="memory id to ordinal, 4 bytes big endian")
MEMORY_HISTORY: Table[VersionRow] = Table(
    "memory_history", key=("memory_id", "version"), row=VersionRow, doc="versions before the current one"
)
MEMORY_EXPIRY: Table[bytes] = Table("memory_expiry", key=("expires_at", "ordinal"), row=bytes, doc="memories with an end, by time")
MEMORY_ALARM: Table[bytes] = Table("memory_alarm", key=(), row=bytes, doc="when the next expiry job runs, 8 bytes big endian")
MEMORIES_HIDDEN: Table[HiddenRow] = Table("memories_hidden", key=("cause", "number"), row=HiddenRow, doc="deleted, still to be swept")
MEMORY_BATCHES: Table[BatchRow] = Table("memory_batches", key=("batch_id",), row=BatchRow, doc="results of writes of several memories")
MEMORY_FIELDS = BitmapIndex(
    "memory_fields",
    fields=(
        "live", "collection", *SCOPES, "session", "speaker", "speaker_word", "tier", "tag", "source_type", "superseded", "pending",
        "created_hour", "updated_hour", "occurred_day", "chunked", *FACET_FIELDS,
    ),
    plain=FACETS_IN_ORDER,
    version=3,  # 3: metadata, importance, title, source and time of change
)  # fmt: skip
MEMORY_TEXT = LexicalIndex("memory_text")
MEMORY_VECTORS = VectorIndex("memory_vectors")
MEMORY_WORDS = WordVectors("memory_words")
MEMORY_CUES = ColumnIndex("memory_cues", COLUMNS, ABSENT)

TABLES = (MEMORIES, MEMORY_IDS, MEMORY_HISTORY, MEMORY_EXPIRY, MEMORY_ALARM, MEMORIES_HIDDEN, MEMORY_BATCHES)
INDEXES = (MEMORY_FIELDS, MEMORY_TEXT, MEMORY_VECTORS, MEMORY_WORDS, MEMORY_CUES, *memory_chunks.INDEXES)

# --- events -----------------------------------------------------------------------------------------------------------


class MemoryCreated(View):
    id: str = Field(description="The memory's id.")
    version: int = Field(description="Its version, from 1.")
    content: str = Field(description="Its text.")
    collection_id: str = Field(description="The collection it belongs to.")
    importance: float = Field(description="0 to 1.")
    created_at: str = Field(description="When it was stored (ISO 8601).")


class MemoryUpdated(MemoryCreated):
    updated_at: str = Field(description="When this version was stored (ISO 8601).")


class MemoryDeleted(View):
    id: str = Field(description="The memory's id.")
    version: int = Field(description="One above its last version.")
    collection_id: str = Field(description="The collection it belonged to.")
    deleted_at: str = Field(description="When it ceased to be readable (ISO 8601).")


MEMORY_CREATED = Event("memory.created", MemoryCreated)
MEMORY_UPDATED = Event("memory.updated", MemoryUpdated)
MEMORY_DELETED = Event("memory.deleted", MemoryDeleted)

# --- reading ----------------------------------------------------------------------------------------------------------


def find_ordinal(ctx: ReadContext, memory_id: str) -> int | None:
    """The ordinal stored for this id, whether or not the memory can still be read."""
    raw = ctx[MEMORY_IDS].get(memory_id)
    return None if raw is None else int.from_bytes(raw, "big")


def find_row(ctx: ReadContext, memory_id: str) -> MemoryRow | None:
    """The memory with this id, when it can be read now."""
    ordinal = find_ordinal(ctx, memory_id)
    row = None if ordinal is None else ctx[MEMORIES].get(ordinal)
    return row if row is not None and is_readable(ctx, row) else None


def get_row(ctx: ReadContext, memory_id: str) -> MemoryRow:
    """The memory with this id. NotFound when there is none (any more), PermissionDenied for another account's."""
    missing = NotFound("There is no memory with this id.")
    row = find_row(ctx, ctx.check_id("mem", memory_id, missing))
    if row is None:
        raise missing
    return row


def is_readable(ctx: ReadContext, row: MemoryRow) -> bool:
    """Neither expired nor hidden."""
    if row.expires_at is not None and row.expires_at <= ctx.now:
        return False
    return not any(row.ordinal in BitMap.deserialize(hidden.ordinals) for _, hidden in ctx[MEMORIES_HIDDEN].scan())


def live_bitmap(ctx: ReadContext, include_superseded: bool = False) -> BitMap:
    """Ordinals of all memories that can be read now; the superseded ones only when asked for."""
    fields = ctx.index(MEMORY_FIELDS)
    gone = [BitMap.deserialize(hidden.ordinals) for _, hidden in ctx[MEMORIES_HIDDEN].scan()]
    gone.append(BitMap(ordinal for _, ordinal in ctx[MEMORY_EXPIRY].keys(before=(ctx.now + 1,))))
    if not include_superseded:
        gone.append(fields.of("superseded", 1))
    return fields.of("live", 1) - BitMap.union(*gone)


def scope_filter(ctx: ReadContext, asked: Any, *, include_superseded: bool = False) -> BitMap:
    """The readable memories that pass the scope fields of `asked`: its collection_id and those of SCOPES that it has and sets.

    Raises CollectionNotFound or PermissionDenied for a collection that is not the caller's.
    """
    fields = ctx.index(MEMORY_FIELDS)
    found = live_bitmap(ctx, include_superseded)
    collection_id = getattr(asked, "collection_id", None)
    if collection_id is not None:
        found &= fields.of("collection", require_collection(ctx, collection_id).number)
    for name in SCOPES:
        value = getattr(asked, name, None)
        if value is not None:
            found &= fields.of(name, value)
    return found


def cue_columns(ctx: ReadContext, ordinals: np.ndarray) -> np.ndarray:
    """The cues of stored memories, aligned with `ordinals`: a structured array of dtype memory_cues.COLUMNS."""
    return ctx.index(MEMORY_CUES).take(ordinals)


def cue_column(ctx: ReadContext, name: str, ordinals: np.ndarray) -> np.ndarray:
    """One column of the cues, aligned with `ordinals`."""
    return ctx.index(MEMORY_CUES).field(name, ordinals)


def speaker_mark(ctx: ReadContext, speaker: str) -> int:
    """The number that stands for a speaker in the cues."""
    return mark(ctx.scope.key, "speaker", speaker)


def session_mark(ctx: ReadContext, row: MemoryRow) -> int:
    """The number of a row's session, in the cues and in the field "session"; 0 for none. A session never spans collections or users."""
    return 0 if row.session_id is None else mark(ctx.scope.key, "session", row.number, row.user_id or "", row.session_id)


def memory_view(row: MemoryRow) -> dict[str, Any]:
    """A Memory, as the API shows it."""
    return {
        "id": row.id,
        "content": row.content,
        "collection_id": row.collection_id,
        "importance": row.importance,
        "tier": row.tier,
        "title": row.title,
        "tags": row.tags,
        "source": row.source,
        "source_type": row.source_type,
        "source_reference": row.source_reference,
        "metadata": row.metadata,
        "user_id": row.user_id,
        "agent_id": row.agent_id,
        "run_id": row.run_id,
        "app_id": row.app_id,
        "session_id": row.session_id,
        "speaker": row.speaker,
        "occurred_at": iso(row.occurred_at),
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "version": row.version,
        "access_count": row.access_count,
        "last_accessed_at": None if row.last_accessed_at is None else iso(row.last_accessed_at),
        "processing_status": row.status,
        "searchable": row.searchable,
        "status_url": f"/v1/memories/{row.id}",
        "outbox_event_id": row.outbox_event_id,
        "conflict_status": "superseded" if row.superseded else "none",
        "superseded_by_id": row.superseded_by_id,
        "expires_at": None if row.expires_at is None else iso(row.expires_at),
    }


def versions(ctx: ReadContext, row: MemoryRow, after: int, limit: int) -> list[tuple[int, VersionRow]]:
    """(version, what it was) in order, at most `limit`, above version `after`; the current version included."""
    found = [(key[1], version) for key, version in ctx[MEMORY_HISTORY].scan(row.id, after=(row.id, after), limit=limit)]
    if len(found) < limit and after < row.version:
        found.append((row.version, _version_of(row)))
    return found


# --- storing ----------------------------------------------------------------------------------------------------------


def store_memories(ctx: WriteContext, drafts: Sequence[Draft], *, reason: str | None = None) -> Stored:
    """Store new memories, in order, with their events and counts. One job indexes those that came without `indexed`."""
    sessions: dict[int, int | None] = {}
    rows = [_store(ctx, draft, reason, sessions) for draft in drafts]
    ctx.index(MEMORY_TEXT).add_many((row.ordinal, d.indexed.terms) for row, d in zip(rows, drafts, strict=True) if d.indexed is not None)
    for collection_id, count in Counter(row.collection_id for row in rows).items():
        adjust_count(ctx, collection_id, memories=count)
    pending = [row for row in rows if not row.searchable]
    return Stored(rows, _enqueue_indexing(ctx, pending) if pending else None)


def store_memory(ctx: WriteContext, draft: Draft, *, reason: str | None = None) -> MemoryRow:
    """Store one new memory."""
    return store_memories(ctx, [draft], reason=reason).rows[0]


def update_memory(
    ctx: WriteContext,
    row: MemoryRow,
    changes: Mapping[str, Any],
    indexed: Indexed | None = None,
    *,
    change: str = "UPDATE",
    reason: str | None = None,
) -> Stored:
    """Make a new version of `row` with these fields changed. New content without `indexed` is not found until it is indexed again."""
    version = row.version + 1
    ctx[MEMORY_HISTORY].put((row.id, row.version), _version_of(row))
    head = {"version": version, "updated_at": ctx.now, "change": change, "actor": _actor(ctx), "reason": reason}
    after = msgspec.structs.replace(row, **changes, **head)
    rewritten = "content" in changes
    if rewritten:
        _unindex(ctx, row)
        after = msgspec.structs.replace(after, content_version=version, **UNINDEXED)
        after = after if indexed is None else _index(ctx, after, indexed)
    _put(ctx, after, before=row)
    data = {**_created(after), "updated_at": iso(ctx.now)}
    after = msgspec.structs.replace(after, outbox_event_id=ctx.emit(MEMORY_UPDATED, data, row.id))
    ctx[MEMORIES].put((row.ordinal,), after)
    return Stored([after], _enqueue_indexing(ctx, [after]) if rewritten and indexed is None else None)


def supersede(ctx: WriteContext, row: MemoryRow, by_id: str | None, *, reason: str | None = None) -> MemoryRow:
    """Mark a memory as no longer true: replaced by the memory `by_id`, or just invalidated when that is None."""
    changes = {"superseded": True, "superseded_by_id": by_id}
    return update_memory(ctx, row, changes, change="DELETE" if by_id is None else "SUPERSEDE", reason=reason).rows[0]


def restore(ctx: WriteContext, row: MemoryRow, *, reason: str | None = None) -> MemoryRow:
    """Undo `supersede`."""
    return update_memory(ctx, row, {"superseded": False, "superseded_by_id": None}, reason=reason).rows[0]


def set_tier(ctx: WriteContext, row: MemoryRow, tier: str) -> MemoryRow:
    """Move a memory to another tier; no new version. The event is the caller's."""
    after = msgspec.structs.replace(row, tier=tier)
    _put(ctx, after, before=row)
    return after


def index_again(ctx: WriteContext, row: MemoryRow, indexed: Indexed | None) -> Stored:
    """Replace what search knows of a memory whose content stays; no new version."""
    _unindex(ctx, row)
    after = msgspec.structs.replace(row, **UNINDEXED)
    after = after if indexed is None else _index(ctx, after, indexed)
    _put(ctx, after, before=row)
    return Stored([after], None if indexed is not None else _enqueue_indexing(ctx, [after]))


def pending_row(ctx: ReadContext, memory_id: str, content_version: int) -> MemoryRow | None:
    """The memory, if it still waits for the index of this content; None when it is gone, indexed, or has other content by now."""
    row = find_row(ctx, memory_id)
    return row if row is not None and row.status == PROCESSING and row.content_version == content_version else None


def finish_indexing(ctx: WriteContext, memory_id: str, content_version: int, indexed: Indexed | None) -> bool:
    """Make a waiting memory searchable, or `failed` when `indexed` is None. False when it waits no more."""
    row = pending_row(ctx, memory_id, content_version)
    if row is None:
        return False
    after = msgspec.structs.replace(row, status=FAILED) if indexed is None else _index(ctx, row, indexed)
    _put(ctx, after, before=row)
    return True


def _store(ctx: WriteContext, draft: Draft, reason: str | None, sessions: dict[int, int | None]) -> MemoryRow:
    """All of a new memory but its postings, which its caller adds for many at once. sessions: session mark -> its last ordinal."""
    fields = {"created_at": ctx.now, "updated_at": ctx.now, "occurred_at": ctx.now, "actor": _actor(ctx), "reason": reason, **draft.fields}
    indexed = draft.indexed
    row = MemoryRow(
        id=fields.pop("id", "") or ctx.new_id("mem"),
        ordinal=ctx.next_ordinal("memories"),
        content=draft.content,
        collection_id=draft.collection.id,
        number=draft.collection.number,
        status=PROCESSING if indexed is None else COMPLETED,
        space="" if indexed is None else indexed.space,
        chunks=0 if indexed is None else len(indexed.chunks),
        **fields,
    )
    ctx[MEMORY_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))
    _put_cues(ctx, row, TextCues() if indexed is None else indexed.cues)
    _link(ctx, row, sessions)
    if indexed is not None:
        _put_vectors(ctx, row.ordinal, indexed)
    _put(ctx, row)
    # Subscribers may read the memory, so the row is there before the event whose id it then learns.
    row = msgspec.structs.replace(row, outbox_event_id=ctx.emit(MEMORY_CREATED, _created(row), row.id))
    ctx[MEMORIES].put((row.ordinal,), row)
    return row


def _index(ctx: WriteContext, row: MemoryRow, indexed: Indexed) -> MemoryRow:
    """Add postings, vector and text cues; -> the row as searchable, which the caller stores."""
    ctx.index(MEMORY_TEXT).add(row.ordinal, indexed.terms)
    _put_vectors(ctx, row.ordinal, indexed)
    _put_cues(ctx, row, indexed.cues)
    return msgspec.structs.replace(row, status=COMPLETED, space=indexed.space, chunks=len(indexed.chunks))


def _put_vectors(ctx: WriteContext, ordinal: int, indexed: Indexed) -> None:
    ctx.index(MEMORY_VECTORS).put(indexed.space, ordinal, indexed.vector)
    if indexed.words is not None:
        ctx.index(MEMORY_WORDS).put(indexed.space, ordinal, indexed.words)
    memory_chunks.put_chunks(ctx, indexed.space, ordinal, indexed.chunks)


def _unindex(ctx: WriteContext, row: MemoryRow) -> None:
    """Take postings and vectors away, if there are any."""
    if row.searchable:
        ctx.index(MEMORY_TEXT).remove(row.ordinal)
        ctx.index(MEMORY_VECTORS).delete(row.space, row.ordinal)
        ctx.index(MEMORY_WORDS).delete(row.space, row.ordinal)
        memory_chunks.delete_chunks(ctx, row.space, row.ordinal)


def _put(ctx: WriteContext, row: MemoryRow, before: MemoryRow | None = None) -> None:
    """Write the row, and bring its bitmaps and its place in the expiry order up to it."""
    ctx[MEMORIES].put((row.ordinal,), row)
    fields = ctx.index(MEMORY_FIELDS)
    now, then = marks_of(ctx, row), set() if before is None else marks_of(ctx, before)
    for name, value in then - now:
        fields.remove(row.ordinal, name, value)
    for name, value in now - then:
        fields.add(row.ordinal, name, value)
    expired_at = None if before is None else before.expires_at
    if row.expires_at != expired_at:
        if expired_at is not None:
            ctx[MEMORY_EXPIRY].delete(expired_at, row.ordinal)
        if row.expires_at is not None:
            ctx[MEMORY_EXPIRY].put((row.expires_at, row.ordinal), b"")
            set_alarm(ctx, row.expires_at)


def _put_cues(ctx: WriteContext, row: MemoryRow, cues: TextCues) -> None:
    records = ctx.index(MEMORY_CUES)
    records.put(row.ordinal, cue_record(ctx, row, cues, *links(records.get(row.ordinal))))


def cue_record(ctx: ReadContext, row: MemoryRow, cues: TextCues, previous: int, following: int) -> bytes:
    """A memory's cues as stored, between its neighbours in the session."""
    return pack(
        cues,
        created_at=row.created_at,
        occurred_at=row.occurred_at,
        session=session_mark(ctx, row),
        speaker=0 if row.speaker is None else speaker_mark(ctx, row.speaker),
        collection=row.number,
        previous=previous,
        following=following,
    )


def _link(ctx: WriteContext, row: MemoryRow, sessions: dict[int, int | None]) -> None:
    """Put a new memory at the end of its session."""
    session = session_mark(ctx, row)
    if not session:
        return
    if session not in sessions:
        members = ctx.index(MEMORY_FIELDS).of("session", session)
        sessions[session] = members.max() if members else None
    last, records = sessions[session], ctx.index(MEMORY_CUES)
    sessions[session] = row.ordinal
    if last is not None:
        records.put(last, relinked(records.get(last), following=row.ordinal))
        records.put(row.ordinal, relinked(records.get(row.ordinal), previous=last))


def unlink(ctx: WriteContext, ordinal: int) -> None:
    """Take a memory's cues away and join its session neighbours."""
    records = ctx.index(MEMORY_CUES)
    previous, following = links(records.get(ordinal))
    records.delete(ordinal)
    if previous != NOTHING:
        records.put(previous, relinked(records.get(previous), following=following))
    if following != NOTHING:
        records.put(following, relinked(records.get(following), previous=previous))


def marks_of(ctx: ReadContext, row: MemoryRow) -> set[tuple[str, int | str]]:
    """Every (field, value) whose bitmap holds this memory."""
    marks: set[tuple[str, int | str]] = {
        ("live", 1),
        ("collection", row.number),
        ("tier", row.tier),
        ("source_type", row.source_type),
        ("created_hour", row.created_at // HOUR_MS),
        ("occurred_day", row.occurred_at // DAY_MS),
        *facet_marks(ctx.scope.key, row.metadata, row.importance, row.source, row.source_reference, row.title),
    }
    marks.update(("tag", tag) for tag in row.tags)
    marks.update((name, value) for name in (*SCOPES, "speaker") if (value := getattr(row, name)) is not None)
    if row.speaker is not None:
        marks.update(("speaker_word", word) for word in words_of_name(row.speaker))
    if row.session_id is not None:
        marks.add(("session", session_mark(ctx, row)))
    if row.updated_at != row.created_at:
        marks.add(("updated_hour", row.updated_at // HOUR_MS))
    if row.superseded:
        marks.add(("superseded", 1))
    if not row.searchable:
        marks.add(("pending", 1))
    if row.chunks:
        marks.add(("chunked", 1))
    return marks


def _created(row: MemoryRow) -> dict[str, Any]:
    told = {name: getattr(row, name) for name in ("id", "version", "content", "collection_id", "importance")}
    return {**told, "created_at": iso(row.created_at)}


def _version_of(row: MemoryRow) -> VersionRow:
    return VersionRow(row.change, row.content, row.importance, row.metadata, row.updated_at, row.actor, row.reason)


def _actor(ctx: ReadContext) -> str:
    """Who made this version: the API key's id, the account's for an access token, "system" for background work."""
    principal = ctx.principal
    return principal.tenant_id if principal.is_session else principal.credential_id or "system"


def _enqueue_indexing(ctx: WriteContext, rows: Sequence[MemoryRow]) -> str:
    return ctx.enqueue("memories.index", {"memories": [[row.id, row.content_version] for row in rows]})


def set_alarm(ctx: WriteContext, at: int) -> None:
    """See to it that a job runs soon after `at`; one alarm serves all memories, the earliest counts."""
    alarm = ctx[MEMORY_ALARM].get()
    at = max(at, ctx.now)
    if alarm is None or int.from_bytes(alarm, "big") > at:
        ctx[MEMORY_ALARM].put((), at.to_bytes(8, "big"))
        ctx.enqueue("memories.expire", {"at": at}, delay_ms=at - ctx.now + EXPIRY_DELAY_MS)
