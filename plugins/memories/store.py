"""Memories as they exist: how they are read, and every change they go through.

Owns what "a memory exists" means. It does not know requests or replies; create.py, and every plugin
that makes memories of its own (documents, corrections, ingestion), changes them through the
functions here and nowhere else:

    store_memories   new ones, one transaction, one index job for those that are not searchable yet
    update_memory    a new version; `supersede` is the update that takes a memory out of ordinary
                     reads
    delete_memories  of plugins/memories/removal.py

A memory is named by an ordinal (uint32, per tenant, in order of arrival), which ties row, bitmaps,
postings, vector and features together. Text is indexed outside the transaction
(plugins/memories/indexing.py) and handed in as `Indexed`. Without it the memory is stored
`searchable: false`: it has neither postings nor vector until the job `memories.index` adds both.

Invariants
- postings, vector and text features belong to the content of version `content_version`, or are not
  there at all;
- what is in `live` has a row, and the other way round. A read goes by `readable`, or for one
  memory by `find_row`: both leave out what has expired and what is hidden, so those are gone before
  they are swept;
- `memory_history` holds the versions before the current one: an untouched memory has no history.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from pyroaring import BitMap

from plugins.collections import adjust_count, require_collection
from plugins.memories import room
from plugins.memories.features import (
    TextFeatures,
    entries_of_name,
)
from plugins.memories.fields import facet_entries
from plugins.memories.limits import EXPIRY_DELAY_MS
from plugins.memories.models import ROLES
from plugins.memories.neighbours import link, put_features, session_hash
from plugins.memories.rows import (
    COMPLETED,
    DERIVED,
    FAILED,
    MEMORIES,
    MEMORIES_HIDDEN,
    MEMORY_ALARM,
    MEMORY_CREATED,
    MEMORY_EXPIRY,
    MEMORY_FIELDS,
    MEMORY_HISTORY,
    MEMORY_IDS,
    MEMORY_TEXT,
    MEMORY_UPDATED,
    PROCESSING,
    SCOPES,
    UNINDEXED,
    Draft,
    Indexed,
    MemoryRow,
    Stored,
    VersionRow,
)
from plugins.memories.vectors import forget_vectors, put_vectors
from runtime.api.context import ReadContext, WriteContext
from runtime.errors import NotFound
from runtime.timestamps import DAY_MS, HOUR_MS, iso

# --- reading --------------------------------------------------------------------------------------


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
    """The memory with this id. NotFound when there is none (any more), PermissionDenied for another
    account's.
    """
    missing = NotFound("There is no memory with this id.")
    row = find_row(ctx, ctx.check_id("mem", memory_id, missing))
    if row is None:
        raise missing
    return row


def rows_at(ctx: ReadContext, ordinals: Iterable[int]) -> list[MemoryRow]:
    """The memories at these ordinals of an index, aligned with them, whether or not they can still
    be read.
    """
    return ctx[MEMORIES].rows([(int(ordinal),) for ordinal in ordinals])


def find_rows_at(ctx: ReadContext, ordinals: Iterable[int]) -> list[MemoryRow]:
    """Those memories of these ordinals that are still stored, in the ordinals' order."""
    found = ctx[MEMORIES].get_many([(int(ordinal),) for ordinal in ordinals])
    return [row for row in found if row is not None]


def is_readable(ctx: ReadContext, row: MemoryRow) -> bool:
    """Whether it is neither expired nor hidden."""
    if row.expires_at is not None and row.expires_at <= ctx.now:
        return False
    hidden = ctx[MEMORIES_HIDDEN]
    return hidden.is_empty() or not any(
        row.ordinal in BitMap.deserialize(some.ordinals) for _, some in hidden.scan()
    )


def unreadable(ctx: ReadContext) -> BitMap:
    """Ordinals of memories that are stored and can be read no more: expired, or hidden."""
    gone = BitMap()
    if not ctx[MEMORY_EXPIRY].is_empty():
        gone.update(ordinal for _, ordinal in ctx[MEMORY_EXPIRY].keys(before=(ctx.now + 1,)))
    if not ctx[MEMORIES_HIDDEN].is_empty():
        for _, hidden in ctx[MEMORIES_HIDDEN].scan():
            gone |= BitMap.deserialize(hidden.ordinals)
    return gone


def readable(
    ctx: ReadContext,
    asked: Any = None,
    *,
    include_superseded: bool = False,
    include_pending: bool = True,
) -> BitMap:
    """Ordinals of the memories that can be read now, the superseded ones only when asked for, those
    that are still to be indexed unless it is told not to, and that pass the scope fields of
    `asked`: its collection_id and those of SCOPES that it has and sets.

    Raises CollectionNotFound or PermissionDenied for a collection that is not the caller's.
    """
    fields = ctx.index(MEMORY_FIELDS)
    left_out = [("superseded", 1)] * (not include_superseded)
    left_out += [("pending", 1)] * (not include_pending)
    found, *others = fields.of_pairs([("live", 1), *left_out])
    for some in (unreadable(ctx), *others):
        found -= some
    collection_id = getattr(asked, "collection_id", None)
    if collection_id is not None:
        found &= fields.of("collection", require_collection(ctx, collection_id).number)
    for name in SCOPES:
        value = getattr(asked, name, None)
        if value is not None:
            found &= fields.of(name, value)
    return found


def facts_resting_on(ctx: ReadContext, row: MemoryRow) -> list[MemoryRow]:
    """The memories that were derived from this one and can be read now, by ordinal."""
    fields = ctx.index(MEMORY_FIELDS)
    found = fields.of("source_reference", row.id)
    if found:
        found = (found & fields.of("source_type", DERIVED)) - unreadable(ctx)
    return find_rows_at(ctx, found)


def memory_view(row: MemoryRow) -> dict[str, Any]:
    """The wire form of a memory."""
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
        "kind": row.kind,
        "source_reference": row.source_reference,
        "metadata": row.metadata,
        "user_id": row.user_id,
        "agent_id": row.agent_id,
        "run_id": row.run_id,
        "app_id": row.app_id,
        "session_id": row.session_id,
        "speaker": row.speaker,
        "role": row.role,
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


def versions(
    ctx: ReadContext, row: MemoryRow, after: int, limit: int
) -> list[tuple[int, VersionRow]]:
    """(version, what it was) in order, at most `limit`, above version `after`; the current version
    included.
    """
    found = [
        (key[1], version)
        for key, version in ctx[MEMORY_HISTORY].scan(row.id, after=(row.id, after), limit=limit)
    ]
    if len(found) < limit and after < row.version:
        found.append((row.version, version_of(row)))
    return found


# --- storing --------------------------------------------------------------------------------------


class Storing:
    """New memories of one transaction; `finish` enters words and counts of all."""

    check_contents = staticmethod(room.check_contents)  # before there is anything to store

    def __init__(self, ctx: WriteContext, reason: str | None = None):
        self._ctx, self._reason = ctx, reason
        self._rows: list[MemoryRow] = []
        self._terms: dict[int, Mapping[str, int]] = {}
        self._sessions: dict[int, int | None] = {}

    def check_room(self, drafts: Sequence[Draft]) -> None:
        """Raise PermissionDenied where the tier has no room for these as well."""
        room.check_drafts(self._ctx, drafts, len(self._rows))

    def store(self, draft: Draft) -> MemoryRow:
        """Store one. No search by words finds it before `finish`."""
        return self.store_each([(self._ctx, draft)])[0]

    def store_each(self, drafts: Sequence[tuple[WriteContext, Draft]]) -> list[MemoryRow]:
        """Store memories, then their events, in order, each for its call of the account's."""
        if not drafts:
            return []
        ordinal = self._ctx.next_ordinal("memories", len(drafts))
        rows = [
            _new_row(ctx, draft, ordinal + number, self._reason)
            for number, (ctx, draft) in enumerate(drafts)
        ]
        room.count_in(self._ctx, rows)
        for row, (_, draft) in zip(rows, drafts, strict=True):
            _store(self._ctx, row, draft.indexed, self._sessions)
            if draft.indexed is not None:
                self._terms[row.ordinal] = draft.indexed.terms
        fields = self._ctx.index(MEMORY_FIELDS)
        for entry, ordinals in ordinals_by_entry(self._ctx, rows).items():
            fields.add_each(ordinals, *entry)
        # Subscribers may read the memory, so the row, with the event's id, is there before it.
        for row, (ctx, _) in zip(rows, drafts, strict=True):
            ctx.emit(MEMORY_CREATED, _created(row), row.id, row.outbox_event_id)
        self._rows += rows
        return rows

    def finish(self) -> Stored:
        """What was stored. One job indexes those that came without `indexed`."""
        self._ctx.index(MEMORY_TEXT).add_many(self._terms.items())
        for collection_id, count in Counter(row.collection_id for row in self._rows).items():
            adjust_count(self._ctx, collection_id, memories=count)
        pending = [row for row in self._rows if not row.searchable]
        return Stored(self._rows, _enqueue_indexing(self._ctx, pending) if pending else None)


def store_memories(
    ctx: WriteContext, drafts: Sequence[Draft], *, reason: str | None = None
) -> Stored:
    """Store new memories in order, as Storing does, or none: PermissionDenied for want of room."""
    storing = Storing(ctx, reason)
    storing.check_room(drafts)
    storing.store_each([(ctx, draft) for draft in drafts])
    return storing.finish()


def update_memory(
    ctx: WriteContext,
    row: MemoryRow,
    changes: Mapping[str, Any],
    indexed: Indexed | None = None,
    *,
    change: str = "UPDATE",
    reason: str | None = None,
    asked: bool = True,
) -> Stored:
    """Make a new version of `row` with these fields changed. New content without `indexed` is not
    found until it is indexed again. Raises PermissionDenied where somebody asked for it and the
    tier has no room for one more version.
    """
    version = row.version + 1
    if asked:
        room.check_version(ctx, row)
    room.put_version(ctx, row, row.version, version_of(row))
    head = {
        "version": version,
        "updated_at": ctx.now,
        "change": change,
        "actor": _actor(ctx),
        "reason": reason,
        "outbox_event_id": ctx.new_id("evt"),
    }
    after = msgspec.structs.replace(row, **changes, **head)
    room.count_rewritten(ctx, row, after)
    rewritten = "content" in changes
    if rewritten:
        _unindex(ctx, row)
        after = msgspec.structs.replace(after, content_version=version, **UNINDEXED)
        after = after if indexed is None else _index(ctx, after, indexed)
    _put(ctx, after, before=row)
    data = {**_created(after), "updated_at": iso(ctx.now)}
    ctx.emit(MEMORY_UPDATED, data, row.id, after.outbox_event_id)
    return Stored(
        [after], _enqueue_indexing(ctx, [after]) if rewritten and indexed is None else None
    )


def supersede(
    ctx: WriteContext, row: MemoryRow, by_id: str | None, *, reason: str, asked: bool = False
) -> MemoryRow:
    """Mark a memory as no longer true: replaced by the memory `by_id`, or just invalidated when
    that is None.
    """
    changes, change = {"superseded": True, "superseded_by_id": by_id}, "SUPERSEDE"
    change = "DELETE" if by_id is None else change
    return update_memory(ctx, row, changes, change=change, reason=reason, asked=asked).rows[0]


def restore(ctx: WriteContext, row: MemoryRow, *, reason: str, asked: bool = False) -> MemoryRow:
    """Bring a superseded memory back, as a new version; `supersede` undone."""
    changes = {"superseded": False, "superseded_by_id": None}
    return update_memory(ctx, row, changes, reason=reason, asked=asked).rows[0]


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
    """The memory, if it still waits for the index of this content; None when it is gone, indexed,
    or has other content by now.
    """
    row = find_row(ctx, memory_id)
    return (
        row
        if row is not None and row.status == PROCESSING and row.content_version == content_version
        else None
    )


def finish_indexing(
    ctx: WriteContext, memory_id: str, content_version: int, indexed: Indexed | None
) -> bool:
    """Make a waiting memory searchable, or `failed` when `indexed` is None. False when it waits no
    more.
    """
    row = pending_row(ctx, memory_id, content_version)
    if row is None:
        return False
    after = (
        msgspec.structs.replace(row, status=FAILED)
        if indexed is None
        else _index(ctx, row, indexed)
    )
    _put(ctx, after, before=row)
    return True


def _new_row(ctx: WriteContext, draft: Draft, ordinal: int, reason: str | None) -> MemoryRow:
    fields = {
        "created_at": ctx.now,
        "updated_at": ctx.now,
        "occurred_at": ctx.now,
        "actor": _actor(ctx),
        "reason": reason,
        **draft.fields,
    }
    if fields.get("role") not in ROLES:  # a message's may be any
        fields["role"] = None
    indexed = draft.indexed
    return MemoryRow(
        id=fields.pop("id", "") or ctx.new_id("mem"),
        outbox_event_id=ctx.new_id("evt"),
        ordinal=ordinal,
        content=draft.content,
        collection_id=draft.collection.id,
        number=draft.collection.number,
        status=PROCESSING if indexed is None else COMPLETED,
        space="" if indexed is None else indexed.space,
        chunks=0 if indexed is None else len(indexed.chunks),
        **fields,
    )


def _store(
    ctx: WriteContext, row: MemoryRow, indexed: Indexed | None, sessions: dict[int, int | None]
) -> None:
    """All of a new memory but its postings, bitmaps and event, which its caller adds for many at
    once. sessions: session's hash -> its last ordinal.
    """
    ctx[MEMORY_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))
    put_features(ctx, row, TextFeatures() if indexed is None else indexed.features)
    turn = find_ordinal(ctx, row.stands_in) if row.stands_in else None
    link(ctx, row, turn, sessions)
    if indexed is not None:
        put_vectors(ctx, row.ordinal, indexed)
    _put_row(ctx, row, None)


def _index(ctx: WriteContext, row: MemoryRow, indexed: Indexed) -> MemoryRow:
    """Add postings, vector and text features; -> the row as searchable, which the caller stores."""
    ctx.index(MEMORY_TEXT).add(row.ordinal, indexed.terms)
    put_vectors(ctx, row.ordinal, indexed)
    put_features(ctx, row, indexed.features)
    return msgspec.structs.replace(
        row, status=COMPLETED, space=indexed.space, chunks=len(indexed.chunks)
    )


def _unindex(ctx: WriteContext, row: MemoryRow) -> None:
    """Take postings and vectors away, if there are any."""
    if row.searchable:
        ctx.index(MEMORY_TEXT).remove(row.ordinal)
        forget_vectors(ctx, row)


def _put(ctx: WriteContext, row: MemoryRow, before: MemoryRow) -> None:
    """Write the row, and bring its bitmaps and its place in the expiry order up to it."""
    _put_row(ctx, row, before.expires_at)
    fields = ctx.index(MEMORY_FIELDS)
    now, then = entries_of(ctx, row), entries_of(ctx, before)
    for name, value in then - now:
        fields.remove(row.ordinal, name, value)
    for name, value in now - then:
        fields.add(row.ordinal, name, value)


def _put_row(ctx: WriteContext, row: MemoryRow, expired_at: int | None) -> None:
    """expired_at: where it stands in the expiry order, if it does."""
    ctx[MEMORIES].put((row.ordinal,), row)
    if row.expires_at != expired_at:
        if expired_at is not None:
            ctx[MEMORY_EXPIRY].delete(expired_at, row.ordinal)
        if row.expires_at is not None:
            ctx[MEMORY_EXPIRY].put((row.expires_at, row.ordinal), b"")
            set_alarm(ctx, row.expires_at)


def entries_of(ctx: ReadContext, row: MemoryRow) -> set[tuple[str, int | str]]:
    """Every (field, value) whose bitmap holds this memory."""
    entries: set[tuple[str, int | str]] = {
        ("live", 1),
        ("collection", row.number),
        ("tier", row.tier),
        ("source_type", row.source_type),
        ("created_hour", row.created_at // HOUR_MS),
        ("occurred_day", row.occurred_at // DAY_MS),
        *facet_entries(
            ctx.scope.key, row.metadata, row.importance, row.source, row.source_reference, row.title
        ),
    }
    entries.update(("tag", tag) for tag in row.tags)
    entries.update(
        (name, value)
        for name in (*SCOPES, "speaker", "role")
        if (value := getattr(row, name)) is not None
    )
    if row.speaker is not None:
        entries |= entries_of_name(row.speaker)
    if row.session_id is not None and row.rests_on is None:
        entries.add(("session", session_hash(ctx, row)))
    if row.updated_at != row.created_at:
        entries.add(("updated_hour", row.updated_at // HOUR_MS))
    if row.superseded:
        entries.add(("superseded", 1))
    if not row.searchable:
        entries.add(("pending", 1))
    if row.chunks:
        entries.add(("chunked", 1))
    for further in ctx.registry.index_entries.get(MEMORY_FIELDS.name, ()):
        entries.update(further(row))
    return entries


def ordinals_by_entry(
    ctx: ReadContext, rows: Iterable[MemoryRow]
) -> dict[tuple[str, int | str], list[int]]:
    """entries_of several memories, each entry with the ordinals that carry it."""
    found: dict[tuple[str, int | str], list[int]] = defaultdict(list)
    for row in rows:
        for entry in entries_of(ctx, row):
            found[entry].append(row.ordinal)
    return found


def _created(row: MemoryRow) -> dict[str, Any]:
    fields = {
        name: getattr(row, name)
        for name in ("id", "version", "content", "collection_id", "importance")
    }
    return {**fields, "created_at": iso(row.created_at)}


def version_of(row: MemoryRow) -> VersionRow:
    """The current version, as it is kept once there is another one."""
    return VersionRow(
        row.change, row.content, row.importance, row.metadata, row.updated_at, row.actor, row.reason
    )


def _actor(ctx: ReadContext) -> str:
    """Who made this version: the API key's id, the account's for an access token, "system" for
    background work.
    """
    principal = ctx.principal
    return principal.tenant_id if principal.is_session else principal.credential_id or "system"


def _enqueue_indexing(ctx: WriteContext, rows: Sequence[MemoryRow]) -> str:
    return ctx.enqueue(
        "memories.index", {"memories": [[row.id, row.content_version] for row in rows]}
    )


def set_alarm(ctx: WriteContext, at: int) -> None:
    """Have a job run soon after `at`; one alarm serves all memories, the earliest counts."""
    alarm = ctx[MEMORY_ALARM].get()
    at = max(at, ctx.now)
    if alarm is None or int.from_bytes(alarm, "big") > at:
        ctx[MEMORY_ALARM].put((), at.to_bytes(8, "big"))
        ctx.enqueue("memories.expire", {"at": at}, delay_ms=at - ctx.now + EXPIRY_DELAY_MS)
