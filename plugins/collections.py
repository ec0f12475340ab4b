"""Collections: the named groups that memories and documents live in.

Owns a collection's name, description, metadata, version and counts, and the moment it ceases to be. It does not know what a
member looks like: plugins with members ask `require_collection` for the row, store its `number` in their bitmaps, report
changes through `adjust_count`, and subscribe to two internal events.

Every account has a default collection, which nobody creates: until it is first changed its row is derived from the account
alone, id included, so that a read and a write agree on it without either having stored anything.

A collection has two numbers. Its `ordinal` is its place in the list and in the index below; the default collection has 0.
Its `number` marks its members, and nothing else does. To drop a collection is to retire its number: in one transaction the
row goes, `internal.collections_dropped` lets subscribers take the members out of sight, and the number is written down as
dropped. To empty the default collection is to give it a new number and drop the old one. So a sweep can remove what carries
a dropped number without looking at anything that lives. It is the job `collections.cleanup`: step by bounded step it hands a
Sweep to the subscribers of `internal.collection_cleanup`; its result counts what each store erased.

Invariant: a number is in `dropped_collections` or belongs to exactly one collection, never both, and is given out once.

    collections          (ordinal,)        -> CollectionRow
    collection_ids       (collection id,)  -> ordinal, 4 bytes big endian
    collection_counts    (number,)         -> CountsRow
    dropped_collections  (number,)         -> b""                 still to be swept
    collection_index     bitmaps of ordinals: all, name
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec
import orjson
from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError
from pyroaring import BitMap

from runtime import ids, limits
from runtime.checks import Counter, Derived, Marks, Pursued, last_ordinal
from runtime.errors import BadRequest, CollectionNotFound, PermissionDenied
from runtime.jobs import Again
from runtime.operation import Body, Event, Idempotency, Kind, Operation, Patch, Query, ReadContext, Reply, View, WriteContext
from runtime.pagination import Page, PageQuery, envelope, newest_first
from runtime.plugin import Job, Plugin
from runtime.timestamps import iso
from storage.bitmap_index import PREFIX_CHARS_MAX, BitmapIndex
from storage.table import Table

DEFAULT_ORDINAL = 0
DEFAULT_NAME = "default"
DELETE_ALL_CONFIRMATION = "delete-all-collections"

# --- requests and responses -------------------------------------------------------------------------------------------


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(orjson.dumps(metadata))
    except orjson.JSONEncodeError:
        raise PydanticCustomError("metadata", "Must hold JSON values only, integers of at most 64 bits.") from None
    if size > limits.METADATA_BYTES_MAX:
        raise PydanticCustomError("metadata", "Must be at most 16 KiB of JSON.")
    return metadata


Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description="Name; it need not be unique.")]
Description = Annotated[str, Field(max_length=limits.DESCRIPTION_CHARS_MAX, description="What the collection is for.")]
Metadata = Annotated[dict[str, Any], Field(description="Free JSON object, at most 16 KiB."), AfterValidator(_small)]


class NewCollection(Body):
    name: Name
    description: Description | None = None
    metadata: Metadata = Field(default_factory=dict)


class CollectionPatch(Patch):
    name: Name = Field("", json_schema_extra=lambda schema: schema.pop("default"))
    description: Description | None = None
    metadata: Metadata | None = None


class CollectionQuery(PageQuery):
    name: str | None = Field(None, max_length=limits.NAME_CHARS_MAX, description="Only collections of exactly this name.")
    name_prefix: str | None = Field(None, max_length=limits.NAME_CHARS_MAX, description="Only collections whose name starts with this.")


class DeleteAllQuery(Query):
    model_config = ConfigDict(json_schema_extra={"required": ["confirm"]})  # its absence is 400, not 422
    confirm: str | None = Field(None, description=f"Must be `{DELETE_ALL_CONFIRMATION}`.")


class BulkDelete(Body):
    ids: list[Annotated[str, Field(min_length=1, max_length=limits.ID_CHARS_MAX)]] = Field(
        min_length=1, max_length=limits.BULK_DELETE_COLLECTIONS_MAX, description="Collections to delete."
    )


class Collection(View):
    id: str = Field(description="The collection's id.")
    name: str = Field(description="Its name.")
    description: str | None = Field(description="What it is for.")
    metadata: dict[str, Any] = Field(description="Free JSON object.")
    is_default: bool = Field(description="Whether memories without a collection_id go here.")
    is_active: bool = Field(description="True: a deleted collection is not shown at all.")
    memory_count: int = Field(description="Memories in it.")
    document_count: int = Field(description="Documents in it.")
    version: int = Field(description="Counts the changes of name, description and metadata, from 1.")
    created_at: str = Field(description="When it was created (ISO 8601).")
    updated_at: str = Field(description="When its name, description or metadata last changed (ISO 8601).")


class Cleanup(View):
    status: Literal["queued"] = Field(description="Removal of derived data goes on in the background.")
    job_id: str = Field(description="The job that does it.")


class DeletedCollection(View):
    id: str = Field(description="The collection's id.")
    deleted: Literal[True] = Field(description="It and everything in it can no longer be read.")
    cleanup: Cleanup = Field(description="What is still going on.")


class BulkResult(View):
    id: str = Field(description="The id as it was sent.")
    status: Literal["deleted", "not_found", "forbidden"] = Field(description="forbidden: the default collection, or another account's.")


class BulkDeleted(View):
    deleted: int = Field(description="Collections deleted.")
    not_found: int = Field(description="Ids that name no collection of this account.")
    results: list[BulkResult] = Field(description="One entry for each id, in order.")


class AllDeleted(View):
    deleted: int = Field(description="Collections deleted; the default collection stays, emptied.")


# --- tables and events ------------------------------------------------------------------------------------------------


class CollectionRow(msgspec.Struct, frozen=True):
    """Times in Unix milliseconds. See the module's docstring for `ordinal` and `number` (both uint32)."""

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
    """announced_at: when a membership change was last announced; pending: a job will announce the changes since."""

    memories: int = 0
    documents: int = 0
    announced_at: int = 0
    pending: bool = False


COLLECTIONS: Table[CollectionRow] = Table("collections", key=("ordinal",), row=CollectionRow, doc="collections of an account")
COLLECTION_IDS: Table[bytes] = Table(
    "collection_ids", key=("collection_id",), row=bytes, doc="collection id to ordinal, 4 bytes big endian"
)
COLLECTION_COUNTS: Table[CountsRow] = Table("collection_counts", key=("number",), row=CountsRow, doc="how many members a collection has")
DROPPED_COLLECTIONS: Table[bytes] = Table(
    "dropped_collections", key=("number",), row=bytes, doc="numbers whose members are still to be swept"
)
COLLECTION_INDEX = BitmapIndex("collection_index", fields=("all", "name"), prefixed=("name",))


class CollectionChanged(View):
    id: str = Field(description="The collection's id.")
    name: str = Field(description="Its name.")
    change: Literal["created", "metadata", "membership"] = Field(description="What changed.")
    version: int = Field(description="Its version after the change.")


class CollectionsDropped(View):
    """Members that carry one of these numbers must be out of every read when the subscriber returns."""

    numbers: list[int]


class Sweep(View):
    """One step of removing what carries a dropped number.

    A subscriber removes at most `rows_left` rows and reports them with `erased`; the step that leaves some was the last.
    """

    number: int
    rows_left: int
    receipts: dict[str, int]

    def erased(self, store: str, rows: int) -> None:
        """Count `rows` rows erased from `store`, and take them off the step's allowance."""
        self.receipts[store] = self.receipts.get(store, 0) + rows
        self.rows_left -= rows


COLLECTION_CREATED = Event("collection.created", CollectionChanged)
COLLECTION_UPDATED = Event("collection.updated", CollectionChanged)
COLLECTIONS_DROPPED = Event("internal.collections_dropped", CollectionsDropped)
COLLECTION_CLEANUP = Event("internal.collection_cleanup", Sweep)


# --- what other plugins use -------------------------------------------------------------------------------------------


def require_collection(ctx: ReadContext, collection_id: str | None) -> CollectionRow:
    """The collection that a write or a filter names; None names the default one.

    Raises CollectionNotFound for a malformed, unknown or deleted id, PermissionDenied for another account's.
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
    """The account's default collection: its row, or what its row would be while nothing has changed it."""
    row = ctx[COLLECTIONS].get(DEFAULT_ORDINAL)
    if row is not None:
        return row
    since = ctx.principal.created_at
    random = hashlib.blake2b(b"default collection", key=ctx.scope.key, digest_size=10).digest()
    return CollectionRow(ids.make_id("col", since, ctx.principal.tag, random), DEFAULT_ORDINAL, 0, DEFAULT_NAME, since, since)


def adjust_count(ctx: WriteContext, collection_id: str, memories: int = 0, documents: int = 0) -> None:
    """Members came (> 0) or went (< 0): keep the counts, and announce the change.

    A change is announced at once when none was within the last second, else together with others at that second's end. Does
    nothing for a collection that is gone.
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
            ctx.emit(COLLECTION_UPDATED, _changed(row, "membership"), row.id)
        else:
            counts.pending = True
            delay_ms = min(wait, limits.MEMBERSHIP_EVENTS_INTERVAL_MS)
            ctx.enqueue("collections.announce", {"collection_id": row.id, "number": row.number}, delay_ms=delay_ms)
    ctx[COLLECTION_COUNTS].put((row.number,), counts)


# --- handlers ---------------------------------------------------------------------------------------------------------


def create(ctx: WriteContext, body: NewCollection) -> Reply:
    ordinal, number = (ctx.next_ordinal(counter) + 1 for counter in ("collections", "collection_numbers"))  # 0 is the default one's
    row = CollectionRow(ctx.new_id("col"), ordinal, number, body.name, ctx.now, ctx.now, body.description, body.metadata)
    store_collection(ctx, row)
    ctx.emit(COLLECTION_CREATED, _changed(row, "created"), row.id)
    return Reply(201, _view(ctx, row), resource_id=row.id)


def get(ctx: ReadContext, body: None) -> dict[str, Any]:
    return _view(ctx, require_collection(ctx, ctx.path["id"]))


def get_default(ctx: ReadContext, body: None) -> dict[str, Any]:
    return _view(ctx, default_collection(ctx))


def list_collections(ctx: ReadContext, body: None) -> dict[str, Any]:
    matching = _matching(ctx, ctx.query.name, ctx.query.name_prefix)
    page, following = newest_first(ctx, matching)
    items = [_view(ctx, ctx[COLLECTIONS].get(ordinal) or default_collection(ctx)) for ordinal in page]
    return envelope(ctx, items, following, len(matching))


def update(ctx: WriteContext, body: CollectionPatch) -> dict[str, Any]:
    before = require_collection(ctx, ctx.path["id"])
    sent = body.model_dump(include=body.model_fields_set)
    if "metadata" in sent:
        sent["metadata"] = sent["metadata"] or {}
    after = msgspec.structs.replace(before, **sent)
    if COLLECTIONS.encode(after) != COLLECTIONS.encode(before):  # as values, 1 and true would be the same
        after = msgspec.structs.replace(after, version=before.version + 1, updated_at=ctx.now)
        _forget(ctx, before)
        store_collection(ctx, after)
        ctx.emit(COLLECTION_UPDATED, _changed(after, "metadata"), after.id)
    return _view(ctx, after)


def delete(ctx: WriteContext, body: None) -> DeletedCollection:
    row = require_collection(ctx, ctx.path["id"])
    if row.is_default:
        raise BadRequest("The default collection cannot be deleted; delete the memories in it instead.", param="id")
    job_id = _drop(ctx, [row])
    return DeletedCollection(id=row.id, deleted=True, cleanup=Cleanup(status="queued", job_id=job_id))


def bulk_delete(ctx: WriteContext, body: BulkDelete) -> BulkDeleted:
    results, doomed = [], {}
    for collection_id in body.ids:
        try:
            row = require_collection(ctx, collection_id)
            status = "forbidden" if row.is_default else "not_found" if row.id in doomed else "deleted"
        except CollectionNotFound:
            status = "not_found"
        except PermissionDenied:
            status = "forbidden"
        if status == "deleted":
            doomed[row.id] = row
        results.append(BulkResult(id=collection_id, status=status))
    if doomed:
        _drop(ctx, doomed.values())
    return BulkDeleted(deleted=len(doomed), not_found=sum(result.status == "not_found" for result in results), results=results)


def delete_all(ctx: WriteContext, body: None) -> AllDeleted:
    if ctx.query.confirm != DELETE_ALL_CONFIRMATION:
        raise BadRequest(f"This deletes everything: confirm with ?confirm={DELETE_ALL_CONFIRMATION}.", param="confirm")
    rows = [row for _, row in ctx[COLLECTIONS].scan() if not row.is_default]
    default = default_collection(ctx)
    _drop(ctx, [*rows, default])
    emptied = msgspec.structs.replace(default, number=ctx.next_ordinal("collection_numbers") + 1)
    store_collection(ctx, emptied)
    ctx.emit(COLLECTION_UPDATED, _changed(emptied, "membership"), emptied.id)
    return AllDeleted(deleted=len(rows))


# --- rows -------------------------------------------------------------------------------------------------------------


def store_collection(ctx: WriteContext, row: CollectionRow) -> None:
    """Write the row and its places in id table and index."""
    ctx[COLLECTIONS].put((row.ordinal,), row)
    ctx[COLLECTION_IDS].put((row.id,), row.ordinal.to_bytes(4, "big"))
    index = ctx.index(COLLECTION_INDEX)
    index.add(row.ordinal, "all", 1)
    index.add(row.ordinal, "name", row.name)


def _forget(ctx: WriteContext, row: CollectionRow) -> None:
    ctx[COLLECTIONS].delete(row.ordinal)
    ctx[COLLECTION_IDS].delete(row.id)
    index = ctx.index(COLLECTION_INDEX)
    index.remove(row.ordinal, "all", 1)
    index.remove(row.ordinal, "name", row.name)


def _drop(ctx: WriteContext, rows: Iterable[CollectionRow]) -> str:
    """Retire these collections' numbers and queue the sweep; -> the job's id."""
    numbers = []
    for row in rows:
        _forget(ctx, row)
        ctx[COLLECTION_COUNTS].delete(row.number)
        ctx[DROPPED_COLLECTIONS].put((row.number,), b"")
        numbers.append(row.number)
    ctx.emit(COLLECTIONS_DROPPED, {"numbers": numbers}, "")
    return ctx.enqueue("collections.cleanup", {"first": min(numbers), "last": max(numbers), "receipts": {}})


def _matching(ctx: ReadContext, name: str | None, name_prefix: str | None) -> BitMap:
    """Ordinals of the collections that pass both filters, the default one included although it may have no row yet."""
    index = ctx.index(COLLECTION_INDEX)
    found = BitMap(index.of("all", 1))
    if name is not None:
        found &= index.of("name", name)
    if name_prefix is not None:
        found &= index.starting_with("name", name_prefix)
        if len(name_prefix) > PREFIX_CHARS_MAX:
            found = BitMap(ordinal for ordinal in found if ctx[COLLECTIONS].get(ordinal).name.startswith(name_prefix))
    if not ctx[COLLECTIONS].has(DEFAULT_ORDINAL) and name in (None, DEFAULT_NAME) and DEFAULT_NAME.startswith(name_prefix or ""):
        found.add(DEFAULT_ORDINAL)
    return found


def _changed(row: CollectionRow, change: str) -> dict[str, Any]:
    return {"id": row.id, "name": row.name, "change": change, "version": row.version}


def _view(ctx: ReadContext, row: CollectionRow) -> dict[str, Any]:
    """A Collection, as the API shows it."""
    counts = ctx[COLLECTION_COUNTS].get(row.number) or CountsRow()
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "metadata": row.metadata,
        "is_default": row.is_default,
        "is_active": True,
        "memory_count": counts.memories,
        "document_count": counts.documents,
        "version": row.version,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
    }


# --- jobs, privacy hooks, checks --------------------------------------------------------------------------------------


def announce(ctx: WriteContext, payload: dict[str, Any]) -> None:
    """Emit the membership changes that came too soon after the last announcement."""
    row, counts = find_collection(ctx, payload["collection_id"]), ctx[COLLECTION_COUNTS].get(payload["number"])
    if row is None or counts is None:
        return
    counts.pending, counts.announced_at = False, ctx.now
    ctx[COLLECTION_COUNTS].put((payload["number"],), counts)
    ctx.emit(COLLECTION_UPDATED, _changed(row, "membership"), row.id)


def cleanup(ctx: WriteContext, payload: dict[str, Any]) -> Again | dict[str, Any]:
    """One step of sweeping the dropped numbers in [first, last]; the job's result counts the rows erased, by store."""
    dropped = ctx[DROPPED_COLLECTIONS]
    receipts = dict(payload["receipts"])
    rows_left = limits.CLEANUP_ROWS_PER_STEP
    while rows_left > 0:
        number = next((key[0] for key in dropped.keys(after=(payload["first"] - 1,), limit=1)), None)
        if number is None or number > payload["last"]:
            return {"erased": receipts}
        sweep = Sweep(number=number, rows_left=rows_left, receipts=receipts)
        ctx.emit(COLLECTION_CLEANUP, sweep, "")
        # A number costs at least one row, so that many empty collections are a bounded step too.
        rows_left, receipts = sweep.rows_left - 1, sweep.receipts
        if sweep.rows_left > 0:
            dropped.delete(number)
    return Again({**payload, "receipts": receipts})


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all collections. Counts of rows by table."""
    tables = (COLLECTIONS, COLLECTION_IDS, COLLECTION_COUNTS, DROPPED_COLLECTIONS, *COLLECTION_INDEX.tables)
    return {table.name: ctx[table].delete_prefix() for table in tables}


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """("collection", record) for each, the default one first."""
    yield "collection", get_default(ctx, None)
    yield from (("collection", _view(ctx, row)) for _, row in ctx[COLLECTIONS].scan() if not row.is_default)


def _highest_number(ctx: ReadContext) -> int:  # numbers count from 1, their counter from 0
    return max((0, *(row.number for _, row in ctx[COLLECTIONS].scan()), *(key[0] for key, _ in ctx[DROPPED_COLLECTIONS].scan()))) - 1


CHECKS = (
    Derived(COLLECTION_IDS, COLLECTIONS, lambda ctx, key, row: [((row.id,), row.ordinal.to_bytes(4, "big"))]),
    Marks(COLLECTION_INDEX, COLLECTIONS, lambda ctx, row: (("all", 1), ("name", row.name))),
    Counter("collections", lambda ctx: (last_ordinal(COLLECTIONS)(ctx) or 0) - 1),
    Counter("collection_numbers", _highest_number),
    Pursued(
        "collections.cleanup",
        DROPPED_COLLECTIONS,
        waiting=lambda ctx: ((key[0], f"number {key[0]}") for key, _ in ctx[DROPPED_COLLECTIONS].scan()),
        covers=lambda payload: range(payload["first"], payload["last"] + 1),
        enqueue=lambda ctx, numbers: ctx.enqueue("collections.cleanup", {"first": min(numbers), "last": max(numbers), "receipts": {}}),
    ),
)

# --- the plugin -------------------------------------------------------------------------------------------------------

_ID = "col_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_EXAMPLE = {
    "id": _ID, "name": "travel", "description": "Trips and plans", "metadata": {"team": "blue"}, "is_default": False, "is_active": True,
    "memory_count": 12, "document_count": 0, "version": 1,
    "created_at": "2026-05-08T13:56:00.000Z", "updated_at": "2026-05-08T13:56:00.000Z",
}  # fmt: skip
_SPEC = "part 4, Collections; part 2, Collection"

OPERATIONS = (
    Operation(
        name="collections.create",
        method="POST",
        path="/v1/collections",
        kind=Kind.WRITE,
        handler=create,
        body=NewCollection,
        response=Collection,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Create a collection",
        spec=_SPEC,
        example={"name": "travel", "description": "Trips and plans", "metadata": {"team": "blue"}},
        example_reply=_EXAMPLE,
    ),
    Operation(
        name="collections.list",
        method="GET",
        path="/v1/collections",
        kind=Kind.READ,
        handler=list_collections,
        query=CollectionQuery,
        response=Page[Collection],
        summary="List collections",
        description="Newest first, the default collection included.",
        spec="part 4, Collections; rule P",
        example_reply={"items": [_EXAMPLE], "next_cursor": None, "has_more": False, "total_count": 1},
    ),
    Operation(
        name="collections.get_default",
        method="GET",
        path="/v1/collections/default",
        kind=Kind.READ,
        handler=get_default,
        response=Collection,
        summary="Get the default collection",
        description="Every account has one; memories without a collection_id go there.",
        spec=_SPEC,
        example_reply={**_EXAMPLE, "name": "default", "description": None, "metadata": {}, "is_default": True},
    ),
    Operation(
        name="collections.get",
        method="GET",
        path="/v1/collections/{id}",
        kind=Kind.READ,
        handler=get,
        response=Collection,
        summary="Get a collection",
        spec=_SPEC,
        example_reply=_EXAMPLE,
    ),
    Operation(
        name="collections.update",
        method="PATCH",
        path="/v1/collections/{id}",
        kind=Kind.WRITE,
        handler=update,
        body=CollectionPatch,
        response=Collection,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Change a collection",
        description="Fields that are absent stay; null clears description and metadata; metadata is replaced whole.",
        spec=_SPEC,
        example={"name": "journeys"},
        example_reply={**_EXAMPLE, "name": "journeys", "version": 2, "updated_at": "2026-05-08T14:10:30.000Z"},
    ),
    Operation(
        name="collections.delete",
        method="DELETE",
        path="/v1/collections/{id}",
        kind=Kind.WRITE,
        handler=delete,
        response=DeletedCollection,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Delete a collection and everything in it",
        description="Nothing in it can be read from now on; what was derived from it is swept in the background. Again is 404.",
        spec=_SPEC,
        example_reply={"id": _ID, "deleted": True, "cleanup": {"status": "queued", "job_id": "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"}},
    ),
    Operation(
        name="collections.bulk_delete",
        method="POST",
        path="/v1/collections/bulk-delete",
        kind=Kind.WRITE,
        handler=bulk_delete,
        body=BulkDelete,
        response=BulkDeleted,
        scope="write",
        rate="batch",
        idempotency=Idempotency.CACHED,
        summary="Delete collections by their ids",
        description="One transaction, with a result for each id. The default collection is `forbidden`.",
        spec="part 4, Collections",
        example={"ids": [_ID]},
        example_reply={"deleted": 1, "not_found": 0, "results": [{"id": _ID, "status": "deleted"}]},
    ),
    Operation(
        name="collections.delete_all",
        method="DELETE",
        path="/v1/collections/all",
        kind=Kind.WRITE,
        handler=delete_all,
        query=DeleteAllQuery,
        response=AllDeleted,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Delete all collections and everything in them",
        description=f"Needs `confirm={DELETE_ALL_CONFIRMATION}`, else 400. The default collection stays, emptied.",
        spec="part 4, Collections; part 7, confirmation",
        example_reply={"deleted": 3},
    ),
)

plugin = Plugin(
    name="collections",
    operations=OPERATIONS,
    tables=(COLLECTIONS, COLLECTION_IDS, COLLECTION_COUNTS, DROPPED_COLLECTIONS),
    indexes=(COLLECTION_INDEX,),
    events=(COLLECTION_CREATED, COLLECTION_UPDATED, COLLECTIONS_DROPPED, COLLECTION_CLEANUP),
    jobs=(Job("collections.announce", announce), Job("collections.cleanup", cleanup)),
    erase=erase,
    export=export,
    checks=CHECKS,
)
