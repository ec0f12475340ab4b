"""Memories: what they are, how they are stored and found, and how they go.

    models.py      what requests and responses look like
    create.py      the endpoints that create
    importing.py   the one that creates by the thousand
    operations.py  the other endpoints
    listing.py     lists by a filter, and whose memories there are
    job_views.py   what jobs show
    rows.py        rows, tables, indexes and events; no other package reads or writes them by itself
    store.py       reading memories, and every change they go through
    removal.py     how they go
    indexing.py    what a memory's text becomes for search, and the job `memories.index`
    features.py    what a text shows at a glance, for ranking
    passages.py    vectors of what a long text goes on with
    fields.py      values that filters compare, as index entries
    filters.py     the filter language
    times.py       memories by their times, and as of an instant
    accesses.py    how often searches returned a memory
    restoring.py   taking in exported memories
    checks.py      what must agree, for verification
    telling_changes.py  what an account of an earlier release is owed

Choices:
- A PATCH that changes no value makes no new version. Only new content is indexed again.
- An If-Match header guards DELETE as well as PATCH; a version without quotes is understood.
- Deleting a memory erases its history with it.
"""

from __future__ import annotations

from plugins.collections import COLLECTION_CLEANUP, COLLECTIONS_DROPPED
from plugins.memories import listing, telling_changes
from plugins.memories.accesses import ACCESSES, MEMORIES_ACCESSED, note_accesses
from plugins.memories.accesses import count as count_accesses
from plugins.memories.checks import CHECKS
from plugins.memories.create import CREATE, CREATE_RAW, memory_reply
from plugins.memories.exporting import export
from plugins.memories.features import TextFeatures
from plugins.memories.fields import metadata_value
from plugins.memories.figures import figures
from plugins.memories.filters import Facet, compile_filter, is_wide
from plugins.memories.indexing import INDEX_JOB, index_in_time, index_texts, wait_seconds
from plugins.memories.job_views import job_view, leave_out_text
from plugins.memories.limits import (
    BATCH_ITEMS_MAX,
    CONTENT_CHARS_MAX,
    MEMORIES_KEPT,
    TEXT_BYTES_KEPT,
    TITLE_CHARS_MAX,
)
from plugins.memories.models import (
    DELETE_ALL_CONFIRMATION,
    EXAMPLE,
    Content,
    Filters,
    JobView,
    Memory,
    MemoryId,
    Messages,
    Metadata,
    NewMemory,
    Scoped,
    ScopeName,
    Status,
    Tag,
    Tags,
)
from plugins.memories.operations import OPERATIONS
from plugins.memories.passages import ChunkScan
from plugins.memories.removal import (
    delete_memories,
    erase,
    hide_all,
    hide_collections,
    sweep_collection,
    sweep_deleted,
    sweep_expired,
)
from plugins.memories.restoring import RESTORE
from plugins.memories.room import MEASURE_JOB, measure
from plugins.memories.rows import (
    INDEXES,
    MEMORIES_CLEARED,
    MEMORY_CREATED,
    MEMORY_DELETED,
    MEMORY_FEATURES,
    MEMORY_FIELDS,
    MEMORY_TEXT,
    MEMORY_UPDATED,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    TABLES,
    Draft,
    Indexed,
    MemoryCreated,
    MemoryRow,
)
from plugins.memories.settings import WriteSettings
from plugins.memories.spaces import RE_EMBED_JOB, Spaces
from plugins.memories.store import (
    Storing,
    find_row,
    find_rows_at,
    get_row,
    index_again,
    memory_view,
    readable,
    restore,
    rows_at,
    set_tier,
    store_memories,
    supersede,
    unreadable,
    update_memory,
)
from plugins.memories.times import known_at, within_times
from plugins.memories.tools import TOOLS
from runtime.api.plugin import Job, Plugin

__all__ = [
    "BATCH_ITEMS_MAX",
    "CONTENT_CHARS_MAX",
    "CREATE",
    "CREATE_RAW",
    "DELETE_ALL_CONFIRMATION",
    "EXAMPLE",
    "MEMORIES_ACCESSED",
    "MEMORY_CREATED",
    "MEMORY_DELETED",
    "MEMORY_FEATURES",
    "MEMORY_FIELDS",
    "MEMORY_TEXT",
    "MEMORY_UPDATED",
    "MEMORY_VECTORS",
    "MEMORY_WORDS",
    "TITLE_CHARS_MAX",
    "ChunkScan",
    "Content",
    "Draft",
    "Facet",
    "Filters",
    "Indexed",
    "JobView",
    "Memory",
    "MemoryCreated",
    "MemoryId",
    "MemoryRow",
    "Messages",
    "Metadata",
    "NewMemory",
    "ScopeName",
    "Scoped",
    "Spaces",
    "Status",
    "Storing",
    "Tag",
    "Tags",
    "TextFeatures",
    "WriteSettings",
    "compile_filter",
    "delete_memories",
    "find_row",
    "find_rows_at",
    "get_row",
    "hide_all",
    "index_again",
    "index_in_time",
    "index_texts",
    "is_wide",
    "job_view",
    "known_at",
    "leave_out_text",
    "memory_reply",
    "memory_view",
    "metadata_value",
    "note_accesses",
    "plugin",
    "readable",
    "restore",
    "rows_at",
    "set_tier",
    "store_memories",
    "supersede",
    "unreadable",
    "update_memory",
    "wait_seconds",
    "within_times",
]

plugin = Plugin(
    name="memories",
    id_prefixes=("mem",),
    records={"mem": lambda ctx, memory_id: find_row(ctx, memory_id) is not None},
    requires=("collections",),
    operations=(*OPERATIONS, *listing.OPERATIONS),
    tools=TOOLS,
    tables=TABLES,
    indexes=INDEXES,
    events=(MEMORY_CREATED, MEMORY_UPDATED, MEMORY_DELETED, MEMORIES_ACCESSED, MEMORIES_CLEARED),
    access_counters={ACCESSES: count_accesses},
    subscribe={
        COLLECTIONS_DROPPED.kind: hide_collections,
        COLLECTION_CLEANUP.kind: sweep_collection,
    },
    jobs=(
        INDEX_JOB,
        RE_EMBED_JOB,
        Job("memories.expire", sweep_expired),
        Job(MEASURE_JOB, measure),
        Job("memories.sweep", sweep_deleted, cleanup=True),
    ),
    catch_up=telling_changes.CATCH_UP,
    erase=erase,
    export=export,
    figures=figures,
    keeps=(TEXT_BYTES_KEPT, MEMORIES_KEPT),
    restore=RESTORE,
    swept=TABLES,
    checks=CHECKS,
    settings={"write": WriteSettings},
    rates={"batch": lambda settings: settings.limits.batch_per_minute},
)
