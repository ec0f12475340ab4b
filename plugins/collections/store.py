"""Collections as they are stored: rows, tables, the index, events, and every change to them.

plugins/collections/__init__.py says what a collection's ordinal and its number are, and how one is
dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from pydantic import Field

from plugins.collections import limits
from runtime import ids
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Event, View
from runtime.api.tiers import check_room
from runtime.errors import NotFound
from storage.indexes import BitmapIndex
from storage.store import Table

DEFAULT_ORDINAL = 0
DEFAULT_NAME = "default"


class CollectionNotFound(NotFound):
    """No collection of the account has this id."""

    code = "collection_not_found"

    def __init__(
        self,
        message: str = "There is no collection with this id; list yours with GET /v1/collections.",
        **fields: Any,
    ):
        super().__init__(message, **fields)


# --- tables and events ----------------------------------------------------------------------------


class CollectionRow(msgspec.Struct, frozen=True):
    """Times in Unix milliseconds. See the module's docstring for `ordinal` and `number` (both
    uint32).
    """

    id: str
    ordinal: int
    number: int
    name: str
    created_at: int
    updated_at: int
    description: str | None = None
    metadata: dict[str, Any] = {}
    version: int = 1

    @property
    def is_default(self) -> bool:
        return self.ordinal == DEFAULT_ORDINAL


class CountsRow(msgspec.Struct):
    """announced_at: when a membership change was last announced; pending: a job will announce the
    changes since.
    """

    memories: int = 0
    documents: int = 0
    announced_at: int = 0
    pending: bool = False


COLLECTIONS: Table[CollectionRow] = Table(
    "collections", key=("ordinal",), row=CollectionRow, doc="collections of an account"
)
COLLECTION_IDS: Table[bytes] = Table(
    "collection_ids",
    key=("collection_id",),
    row=bytes,
    doc="collection id to ordinal, 4 bytes big endian",
)
COLLECTION_COUNTS: Table[CountsRow] = Table(
    "collection_counts", key=("number",), row=CountsRow, doc="how many members a collection has"
)
DROPPED_COLLECTIONS: Table[bytes] = Table(
    "dropped_collections",
    key=("number",),
    row=bytes,
    doc="numbers whose members are still to be swept",
)
TABLES: tuple[Table, ...] = (
    COLLECTIONS,
    COLLECTION_IDS,
    COLLECTION_COUNTS,
    DROPPED_COLLECTIONS,
)
COLLECTION_INDEX = BitmapIndex("collection_index", fields=("all", "name"), prefixed=("name",))


class CollectionChanged(View):
    id: str = Field(description="The collection's id.")
    name: str = Field(description="Its name.")
    change: Literal["created", "metadata", "membership"] = Field(description="What changed.")
    version: int = Field(description="Its version after the change.")


class CollectionsDropped(View):
    """Members that carry one of these numbers must be out of every read when the subscriber
    returns.

    ids  theirs; the default collection is emptied, and is there under its id again
    """

    numbers: list[int]
    ids: list[str]


COLLECTION_CREATED = Event("collection.created", CollectionChanged)
COLLECTION_UPDATED = Event("collection.updated", CollectionChanged)
COLLECTIONS_DROPPED = Event("internal.collections_dropped", CollectionsDropped)


# --- what other plugins use -----------------------------------------------------------------------


def require_collection(ctx: ReadContext, collection_id: str | None) -> CollectionRow:
    """The collection that a write or a filter names; None names the default one.

    Raises CollectionNotFound for a malformed, unknown or deleted id, PermissionDenied for another
    account's.
    """
    if collection_id is None:
        return default_collection(ctx)
    row = find_collection(ctx, ctx.check_id("col", collection_id, CollectionNotFound()))
    if row is None:
        raise CollectionNotFound()
    return row


def find_collection(ctx: ReadContext, collection_id: str) -> CollectionRow | None:
    """The collection with this id, or None."""
    ordinal = ctx[COLLECTION_IDS].get(collection_id)
    if ordinal is not None:
        return ctx[COLLECTIONS].get(int.from_bytes(ordinal, "big"))
    default = default_collection(ctx)
    return default if default.id == collection_id else None


def default_collection(ctx: ReadContext) -> CollectionRow:
    """The account's default collection: its row, or what its row would be while nothing has changed
    it.
    """
    row = ctx[COLLECTIONS].get(DEFAULT_ORDINAL)
    if row is not None:
        return row
    since = ctx.principal.created_at
    random = hashlib.blake2b(b"default collection", key=ctx.scope.key, digest_size=10).digest()
    return CollectionRow(
        ids.make_id("col", since, ctx.principal.tag, random),
        DEFAULT_ORDINAL,
        0,
        DEFAULT_NAME,
        since,
        since,
    )


def dropped_numbers(ctx: ReadContext) -> frozenset[int]:
    """The numbers of dropped collections whose members are still to be swept."""
    return frozenset(number for (number,), _ in ctx[DROPPED_COLLECTIONS].scan())


def is_dropped(ctx: ReadContext, number: int) -> bool:
    """Whether this number belongs to a dropped collection that is still to be swept."""
    return ctx[DROPPED_COLLECTIONS].has(number)


def drop_again(ctx: WriteContext, number: int) -> None:
    """Write down as dropped a number whose members were never swept."""
    ctx[DROPPED_COLLECTIONS].put((number,), b"")


def numbers_in_use(ctx: ReadContext) -> dict[int, str]:
    """The number of every collection of the account, the default one included -> its id."""
    found = {row.number: row.id for _, row in ctx[COLLECTIONS].scan()}
    default = default_collection(ctx)
    return {default.number: default.id, **found}


def member_totals(ctx: ReadContext) -> tuple[int, int]:
    """How many memories and how many documents the account's collections count."""
    rows = [row for _, row in ctx[COLLECTION_COUNTS].scan()]
    return sum(row.memories for row in rows), sum(row.documents for row in rows)


def adjust_count(
    ctx: WriteContext, collection_id: str, memories: int = 0, documents: int = 0
) -> None:
    """Keep the counts as members come (> 0) or go (< 0), and announce the change.

    A change is announced at once when none was within the last second, else together with others at
    that second's end. Does nothing for a collection that is gone.
    """
    row = find_collection(ctx, collection_id)
    if row is None:
        return
    counts = ctx[COLLECTION_COUNTS].get(row.number) or CountsRow()
    counts.memories += memories
    counts.documents += documents
    if not counts.pending:
        wait = counts.announced_at + limits.MEMBERSHIP_EVENTS_INTERVAL_MS - ctx.now
        if wait <= 0:
            counts.announced_at = ctx.now
            ctx.emit(COLLECTION_UPDATED, change_of(row, "membership"), row.id)
        else:
            counts.pending = True
            delay_ms = min(wait, limits.MEMBERSHIP_EVENTS_INTERVAL_MS)
            ctx.enqueue(
                "collections.announce",
                {"collection_id": row.id, "number": row.number},
                delay_ms=delay_ms,
            )
    ctx[COLLECTION_COUNTS].put((row.number,), counts)


# --- rows -----------------------------------------------------------------------------------------


def figures(ctx: ReadContext) -> dict[str, int]:
    """How many collections were made: the default one, which nobody makes, is not counted, stored
    or not.
    """
    made = ctx.index(COLLECTION_INDEX).of("all", 1)
    return {"collections": len(made) - (DEFAULT_ORDINAL in made)}


def check_collections(ctx: ReadContext) -> None:
    """Raise PermissionDenied where the tier has no room for one more collection."""
    check_room(
        ctx.settings, ctx.principal.tier, limits.COLLECTIONS_KEPT, figures(ctx)["collections"]
    )


def store_collection(ctx: WriteContext, row: CollectionRow) -> None:
    """Write the row and its places in id table and index."""
    ctx[COLLECTIONS].put((row.ordinal,), row)
    ctx[COLLECTION_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))
    index = ctx.index(COLLECTION_INDEX)
    index.add(row.ordinal, "all", 1)
    index.add(row.ordinal, "name", row.name)


def remove_collection(ctx: WriteContext, row: CollectionRow) -> None:
    ctx[COLLECTIONS].delete(row.ordinal)
    ctx[COLLECTION_IDS].delete(row.id)
    index = ctx.index(COLLECTION_INDEX)
    index.remove(row.ordinal, "all", 1)
    index.remove(row.ordinal, "name", row.name)


def drop_collections(ctx: WriteContext, rows: Sequence[CollectionRow]) -> str:
    """Retire these collections' numbers and queue the sweep; -> the job's id."""
    numbers = []
    for row in rows:
        remove_collection(ctx, row)
        ctx[COLLECTION_COUNTS].delete(row.number)
        ctx[DROPPED_COLLECTIONS].put((row.number,), b"")
        numbers.append(row.number)
    ctx.emit(COLLECTIONS_DROPPED, {"numbers": numbers, "ids": [row.id for row in rows]}, "")
    return ctx.enqueue(
        "collections.cleanup", {"first": min(numbers), "last": max(numbers), "receipts": {}}
    )


def change_of(row: CollectionRow, change: str) -> dict[str, Any]:
    return {"id": row.id, "name": row.name, "change": change, "version": row.version}


# --- jobs, privacy hooks, checks ------------------------------------------------------------------


def announce(ctx: WriteContext, payload: dict[str, Any]) -> None:
    """Emit the membership changes that came too soon after the last announcement."""
    row, counts = (
        find_collection(ctx, payload["collection_id"]),
        ctx[COLLECTION_COUNTS].get(payload["number"]),
    )
    if row is None or counts is None:
        return
    counts.pending, counts.announced_at = False, ctx.now
    ctx[COLLECTION_COUNTS].put((payload["number"],), counts)
    ctx.emit(COLLECTION_UPDATED, change_of(row, "membership"), row.id)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all collections. Counts of rows by table."""
    tables = (*TABLES, *COLLECTION_INDEX.tables)
    return {table.name: ctx[table].delete_prefix() for table in tables}
