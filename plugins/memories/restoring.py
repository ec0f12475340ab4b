"""Taking in exported memories: the same contents, versions, times and order, under ids of this
account.

An id keeps its time and its random part and gets the tag of the account that imports
(runtime/ids.py). So references between records stay right without any table of them, a record that
is here already is recognised and left alone, and an import can be repeated. What cannot be the
same:

- memories of the exported account's default collection go to this account's;
- `outbox_event_id` is the event of the import: memories arrive as memory.created, so that whoever
  listens learns of them;
- a memory is searchable once it is indexed here, also one whose indexing had failed;
- who made a version is kept for API keys (their ids, under the new tag); what the account's owner
  did is this account's doing. Where it is not this installation that made the export, what it says
  of its past is what somebody says: each version's actor has IMPORTED before it, for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from plugins.collections import default_collection, find_collection
from plugins.memories.limits import IMPORT_VERSIONS_MAX, VERSIONS_PER_MEMORY_MAX
from plugins.memories.models import Content, Importance, Metadata, RawMemory, Tier
from plugins.memories.removal import remove_unreadable
from plugins.memories.room import check_bytes, put_version, version_bytes
from plugins.memories.rows import MEMORIES, MEMORY_HISTORY, Draft, MemoryRow, VersionRow
from plugins.memories.store import find_ordinal, find_row, is_readable, store_memories
from runtime.api.context import WriteContext
from runtime.api.operation import Body
from runtime.api.restoring import Origin, Restore
from runtime.limits import ID_CHARS_MAX
from runtime.timestamps import Timestamp

# Ids become keys, which are not sealed: nothing but an id may stand there.
CollectionId = Annotated[str, Field(pattern=r"^col_[0-9a-hjkmnp-tv-z]{32}$")]
MemoryId = Annotated[str, Field(pattern=r"^mem_[0-9a-hjkmnp-tv-z]{32}$")]
_MEMORY = "mem_"
IMPORTED = "imported:"
_COPIED = (
    "importance", "metadata", "title", "tags", "source", "source_type", "source_reference",
    "user_id", "agent_id", "run_id", "app_id", "session_id", "speaker", "role",
    "occurred_at", "expires_at", "tier", "created_at", "updated_at", "version", "access_count",
    "last_accessed_at",
)  # fmt: skip


class ExportedVersion(Body):
    """A version of an exported memory."""

    version: int = Field(ge=1, le=VERSIONS_PER_MEMORY_MAX)
    event: Literal["ADD", "UPDATE", "SUPERSEDE", "DELETE"]
    content: Content
    importance: Importance
    metadata: Metadata = Field(default_factory=dict)
    at: Timestamp
    actor: str = Field(default="", max_length=ID_CHARS_MAX)
    reason: str | None = None


class ExportedVersions(Body):
    """Versions of an exported memory from before those that its own record has."""

    memory_id: MemoryId
    history: list[ExportedVersion] = Field(max_length=IMPORT_VERSIONS_MAX)


class ExportedMemory(RawMemory):
    """A memory as an export has it, with its newest versions, the current one last."""

    id: MemoryId
    collection_id: CollectionId = Field(default=...)
    occurred_at: Timestamp = Field(default=...)
    tier: Tier = "short_term"
    created_at: Timestamp
    updated_at: Timestamp
    version: int = Field(default=1, ge=1, le=VERSIONS_PER_MEMORY_MAX)
    access_count: int = Field(default=0, ge=0)
    last_accessed_at: Timestamp | None = None
    conflict_status: Literal["none", "superseded"] = "none"
    superseded_by_id: MemoryId | None = None
    history: list[ExportedVersion] = Field(default_factory=list, max_length=IMPORT_VERSIONS_MAX)


def restore_memories(ctx: WriteContext, records: Sequence[ExportedMemory], origin: Origin) -> int:
    """Store the memories that are not here yet, with their past versions; -> how many. Raises
    PermissionDenied where the tier has no room for them.
    """
    new, unreadable = dict[str, ExportedMemory](), list[MemoryRow]()
    for record in records:
        memory_id = origin.renamed(record.id)
        ordinal = find_ordinal(ctx, memory_id)
        known = None if ordinal is None else ctx[MEMORIES].get(ordinal)
        if known is not None:
            if is_readable(ctx, known):
                continue
            unreadable.append(known)  # it was deleted a moment ago
        new[memory_id] = record
    if unreadable:
        remove_unreadable(ctx, unreadable)
    rows = store_memories(
        ctx, [_draft(ctx, memory_id, record, origin) for memory_id, record in new.items()]
    ).rows
    for row, record in zip(rows, new.values(), strict=True):
        for version in record.history:
            if version.version < row.version:
                past = _version(version, origin)
                check_bytes(ctx, version_bytes(past))
                put_version(ctx, row, version.version, past)
    return len(rows)


def restore_versions(ctx: WriteContext, records: Sequence[ExportedVersions], origin: Origin) -> int:
    """Keep the versions that memories which are here lack; -> of how many records some were new.
    Raises PermissionDenied where the tier has no room for them.
    """
    return sum(_restore_versions(ctx, record, origin) for record in records)


def _restore_versions(ctx: WriteContext, record: ExportedVersions, origin: Origin) -> bool:
    row = find_row(ctx, origin.renamed(record.memory_id))
    if row is None:
        return False
    history, is_new = ctx[MEMORY_HISTORY], False
    for version in record.history:
        if version.version < row.version and not history.has(row.id, version.version):
            past, is_new = _version(version, origin), True
            check_bytes(ctx, version_bytes(past))
            put_version(ctx, row, version.version, past)
    return is_new


def _draft(ctx: WriteContext, memory_id: str, record: ExportedMemory, origin: Origin) -> Draft:
    current = record.history[-1] if record.history else None
    by_id = record.superseded_by_id
    fields: dict[str, Any] = {
        name: value for name in _COPIED if (value := getattr(record, name)) is not None
    }
    fields |= {
        "id": memory_id,
        "superseded": record.conflict_status == "superseded",
        "content_version": _content_version(record),
    }
    if (reference := record.source_reference) and reference.startswith(_MEMORY):
        fields["source_reference"] = origin.renamed(reference)
    fields["superseded_by_id"] = None if by_id is None else origin.renamed(by_id)
    fields["actor"] = _actor("" if current is None else current.actor, origin)
    if current is not None:
        fields |= {"change": current.event, "reason": current.reason}
    return Draft(
        record.content,
        find_collection(ctx, origin.renamed(record.collection_id)) or default_collection(ctx),
        fields,
    )


def _content_version(record: ExportedMemory) -> int:
    """The version that last changed the content."""
    past = [
        (version.version, version.content)
        for version in record.history
        if version.version < record.version
    ]
    changed = [number for number, content in past if content != record.content]
    return max(changed, default=0) + 1


def _actor(exported: str, origin: Origin) -> str:
    """Who made a version, as this account is to read it."""
    name = exported.removeprefix(IMPORTED)
    mark = "" if origin.is_own and name == exported else IMPORTED
    return (mark + origin.renamed(name))[:ID_CHARS_MAX]


def _version(version: ExportedVersion, origin: Origin) -> VersionRow:
    return VersionRow(
        version.event,
        version.content,
        version.importance,
        version.metadata,
        version.at,
        _actor(version.actor, origin),
        version.reason,
    )


RESTORE = {
    "memory": Restore(ExportedMemory, restore_memories),
    "memory_versions": Restore(ExportedVersions, restore_versions),
}
