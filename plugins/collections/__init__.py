"""Collections: the named groups that memories and documents live in.

Owns a collection's name, description, metadata, version and counts, and the moment it ceases to be.
It does not know what a member looks like: plugins with members ask `require_collection` for the
row, store its `number` in their bitmaps, report changes through `adjust_count`, and subscribe to
two internal events.

Every account has a default collection, which nobody creates: until it is first changed its row is
derived from the account alone, id included, so that a read and a write agree on it without either
having stored anything.

A collection has two numbers. Its `ordinal` is its place in the list and in the index below; the
default collection has 0. Its `number` marks its members, and nothing else does. To drop a
collection is to retire its number: in one transaction the row goes, `internal.collections_dropped`
lets subscribers take the members out of sight, and the number is written down as dropped. To empty
the default collection is to give it a new number and drop the old one. So a sweep can remove what
carries a dropped number without looking at anything that lives. It is the job
`collections.cleanup`: step by bounded step it hands a Sweep to the subscribers of
`internal.collection_cleanup`; its result counts what each store erased.

Invariant: a number is in `dropped_collections` or belongs to exactly one collection, never both,
and is given out once.

    collections          (ordinal,)        -> CollectionRow
    collection_ids       (collection id,)  -> ordinal, 4 bytes big endian
    collection_counts    (number,)         -> CountsRow
    dropped_collections  (number,)         -> b""                 still to be swept
    collection_index     bitmaps of ordinals: all, name
"""

from __future__ import annotations

from plugins.collections.limits import (
    CLEANUP_ROWS_PER_STEP,
    COLLECTIONS_KEPT,
    METADATA_BYTES_MAX,
)
from plugins.collections.models import CollectionId
from plugins.collections.operations import OPERATIONS, export
from plugins.collections.restoring import RESTORE
from plugins.collections.store import (
    COLLECTION_CREATED,
    COLLECTION_INDEX,
    COLLECTION_UPDATED,
    COLLECTIONS_DROPPED,
    TABLES,
    CollectionNotFound,
    CollectionRow,
    adjust_count,
    announce,
    default_collection,
    drop_again,
    dropped_numbers,
    erase,
    figures,
    find_collection,
    is_dropped,
    member_totals,
    numbers_in_use,
    require_collection,
)
from plugins.collections.sweep import CHECKS, COLLECTION_CLEANUP, Sweep, cleanup, miscounted
from runtime.api.plugin import Job, Plugin

__all__ = [
    "CLEANUP_ROWS_PER_STEP",
    "COLLECTIONS_DROPPED",
    "COLLECTION_CLEANUP",
    "METADATA_BYTES_MAX",
    "CollectionId",
    "CollectionNotFound",
    "CollectionRow",
    "Sweep",
    "adjust_count",
    "default_collection",
    "drop_again",
    "dropped_numbers",
    "find_collection",
    "is_dropped",
    "member_totals",
    "miscounted",
    "numbers_in_use",
    "plugin",
    "require_collection",
]

plugin = Plugin(
    name="collections",
    id_prefixes=("col",),
    records={"col": lambda ctx, collection_id: find_collection(ctx, collection_id) is not None},
    operations=OPERATIONS,
    tables=TABLES,
    indexes=(COLLECTION_INDEX,),
    events=(COLLECTION_CREATED, COLLECTION_UPDATED, COLLECTIONS_DROPPED, COLLECTION_CLEANUP),
    jobs=(Job("collections.announce", announce), Job("collections.cleanup", cleanup, cleanup=True)),
    erase=erase,
    export=export,
    restore=RESTORE,
    figures=figures,
    keeps=(COLLECTIONS_KEPT,),
    checks=CHECKS,
)
