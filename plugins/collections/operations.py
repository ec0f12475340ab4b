"""The endpoints of collections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from pyroaring import BitMap

from plugins.collections.models import (
    DELETE_ALL_CONFIRMATION,
    AllDeleted,
    BulkDelete,
    BulkDeleted,
    BulkResult,
    Cleanup,
    Collection,
    CollectionPatch,
    CollectionQuery,
    DeleteAllQuery,
    DeletedCollection,
    NewCollection,
)
from plugins.collections.store import (
    COLLECTION_COUNTS,
    COLLECTION_CREATED,
    COLLECTION_INDEX,
    COLLECTION_UPDATED,
    COLLECTIONS,
    DEFAULT_NAME,
    DEFAULT_ORDINAL,
    CollectionNotFound,
    CollectionRow,
    CountsRow,
    change_of,
    check_collections,
    default_collection,
    drop_collections,
    remove_collection,
    require_collection,
    store_collection,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from runtime.api.operation import Idempotency, Read, Reply, Write
from runtime.api.pagination import Page, envelope, example_page, newest_first
from runtime.errors import BadRequest, PermissionDenied
from runtime.timestamps import iso
from storage.indexes import PREFIX_CHARS_MAX
from storage.store import Key

# --- handlers -------------------------------------------------------------------------------------


def create(ctx: WriteContext, body: NewCollection) -> Reply:
    check_collections(ctx)
    ordinal, number = (
        ctx.next_ordinal(counter) + 1 for counter in ("collections", "collection_numbers")
    )  # 0 is the default one's
    row = CollectionRow(
        ctx.new_id("col"),
        ordinal,
        number,
        body.name,
        ctx.now,
        ctx.now,
        body.description,
        body.metadata,
    )
    store_collection(ctx, row)
    ctx.emit(COLLECTION_CREATED, change_of(row, "created"), row.id)
    return _reply(ctx, row, 201)


def get(ctx: ReadContext, body: None) -> Reply:
    return _reply(ctx, require_collection(ctx, ctx.path["id"]))


def get_default(ctx: ReadContext, body: None) -> Reply:
    return _reply(ctx, default_collection(ctx))


def list_collections(ctx: ReadContext, body: None) -> dict[str, Any]:
    matching = _matching(ctx, ctx.query.name, ctx.query.name_prefix)
    page, following = newest_first(ctx, matching)
    items = [
        _view(ctx, ctx[COLLECTIONS].get(ordinal) or default_collection(ctx)) for ordinal in page
    ]
    return envelope(ctx, items, following, len(matching))


def update(ctx: WriteContext, body: CollectionPatch) -> Reply:
    before = require_collection(ctx, ctx.path["id"])
    ctx.call.check_match(before.version, "collection")
    sent = body.model_dump(include=body.model_fields_set)
    if "metadata" in sent:
        sent["metadata"] = sent["metadata"] or {}
    after = msgspec.structs.replace(before, **sent)
    if COLLECTIONS.encode(after) != COLLECTIONS.encode(
        before
    ):  # as values, 1 and true would be the same
        after = msgspec.structs.replace(after, version=before.version + 1, updated_at=ctx.now)
        remove_collection(ctx, before)
        store_collection(ctx, after)
        ctx.emit(COLLECTION_UPDATED, change_of(after, "metadata"), after.id)
    return _reply(ctx, after)


def delete(ctx: WriteContext, body: None) -> DeletedCollection:
    row = require_collection(ctx, ctx.path["id"])
    if row.is_default:
        raise BadRequest(
            "The default collection cannot be deleted; delete the memories in it instead.",
            param="id",
        )
    ctx.call.check_match(row.version, "collection")
    job_id = drop_collections(ctx, [row])
    return DeletedCollection(
        id=row.id, deleted=True, cleanup=Cleanup(status="queued", job_id=job_id)
    )


def bulk_delete(ctx: WriteContext, body: BulkDelete) -> BulkDeleted:
    results, doomed = [], {}
    for collection_id in body.ids:
        try:
            row = require_collection(ctx, collection_id)
            status = (
                "forbidden" if row.is_default else "not_found" if row.id in doomed else "deleted"
            )
        except CollectionNotFound:
            status = "not_found"
        except PermissionDenied:
            status = "forbidden"
        if status == "deleted":
            doomed[row.id] = row
        results.append(BulkResult(id=collection_id, status=status))
    if doomed:
        drop_collections(ctx, list(doomed.values()))
    return BulkDeleted(
        deleted=len(doomed),
        not_found=sum(result.status == "not_found" for result in results),
        results=results,
    )


def delete_all(ctx: WriteContext, body: None) -> AllDeleted:
    if ctx.query.confirm != DELETE_ALL_CONFIRMATION:
        raise BadRequest(
            f"This deletes everything: confirm with ?confirm={DELETE_ALL_CONFIRMATION}.",
            param="confirm",
        )
    rows = [row for _, row in ctx[COLLECTIONS].scan() if not row.is_default]
    default = default_collection(ctx)
    drop_collections(ctx, [*rows, default])
    emptied = msgspec.structs.replace(default, number=ctx.next_ordinal("collection_numbers") + 1)
    store_collection(ctx, emptied)
    ctx.emit(COLLECTION_UPDATED, change_of(emptied, "membership"), emptied.id)
    return AllDeleted(deleted=len(rows))


def _matching(ctx: ReadContext, name: str | None, name_prefix: str | None) -> BitMap:
    """Ordinals of the collections that pass both filters, the default one included although it may
    have no row yet.
    """
    index = ctx.index(COLLECTION_INDEX)
    found = BitMap(index.of("all", 1))
    if name is not None:
        found &= index.of("name", name)
    if name_prefix is not None:
        found &= index.starting_with("name", name_prefix)
        if len(name_prefix) > PREFIX_CHARS_MAX:
            found = BitMap(
                ordinal
                for ordinal in found
                if ctx[COLLECTIONS].row(ordinal).name.startswith(name_prefix)
            )
    if (
        not ctx[COLLECTIONS].has(DEFAULT_ORDINAL)
        and name in (None, DEFAULT_NAME)
        and DEFAULT_NAME.startswith(name_prefix or "")
    ):
        found.add(DEFAULT_ORDINAL)
    return found


def _reply(ctx: ReadContext, row: CollectionRow, status: int = 200) -> Reply:
    return Reply(status, _view(ctx, row), {"ETag": f'"{row.version}"'}, resource_id=row.id)


def _view(ctx: ReadContext, row: CollectionRow) -> dict[str, Any]:
    """The wire form of a collection, with its counts of members."""
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


def export(ctx: ReadContext) -> Iterator[Exported]:
    """("collection", record) for each, the default one first."""
    return sections(ctx, _default, _others)


def _default(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    if after is None:
        yield "collection", _view(ctx, default_collection(ctx)), ()


def _others(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for key, row in ctx[COLLECTIONS].scan(after=after):
        if not row.is_default:
            yield "collection", _view(ctx, row), key


# --- the plugin -----------------------------------------------------------------------------------

_ID = "col_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_EXAMPLE = {
    "id": _ID, "name": "travel", "description": "Trips and plans", "metadata": {"team": "blue"},
    "is_default": False, "is_active": True, "memory_count": 12, "document_count": 0, "version": 1,
    "created_at": "2026-05-08T13:56:00.000Z", "updated_at": "2026-05-08T13:56:00.000Z",
}  # fmt: skip

OPERATIONS = (
    Write(
        name="collections.create",
        method="POST",
        path="/v1/collections",
        handler=create,
        body=NewCollection,
        response=Collection,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Create a collection",
        example={"name": "travel", "description": "Trips and plans", "metadata": {"team": "blue"}},
        example_reply=_EXAMPLE,
    ),
    Read(
        name="collections.list",
        method="GET",
        path="/v1/collections",
        handler=list_collections,
        query=CollectionQuery,
        response=Page[Collection],
        summary="List collections",
        description="Newest first, the default collection included.",
        example_reply=example_page(_EXAMPLE),
    ),
    Read(
        name="collections.get_default",
        method="GET",
        path="/v1/collections/default",
        handler=get_default,
        response=Collection,
        summary="Get the default collection",
        description="Every account has one; memories without a collection_id go there.",
        example_reply={
            **_EXAMPLE,
            "name": "default",
            "description": None,
            "metadata": {},
            "is_default": True,
        },
    ),
    Read(
        name="collections.get",
        method="GET",
        path="/v1/collections/{id}",
        handler=get,
        response=Collection,
        summary="Get a collection",
        description="The ETag is its version.",
        example_reply=_EXAMPLE,
    ),
    Write(
        name="collections.update",
        method="PATCH",
        path="/v1/collections/{id}",
        handler=update,
        body=CollectionPatch,
        response=Collection,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Change a collection",
        description=(
            "Fields that are absent stay; null clears description and metadata; metadata is "
            "replaced whole. With If-Match, another version than the named one is 412."
        ),
        conditional=True,
        example={"name": "journeys"},
        example_reply={
            **_EXAMPLE,
            "name": "journeys",
            "version": 2,
            "updated_at": "2026-05-08T14:10:30.000Z",
        },
    ),
    Write(
        name="collections.delete",
        method="DELETE",
        path="/v1/collections/{id}",
        handler=delete,
        response=DeletedCollection,
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Delete a collection and everything in it",
        description=(
            "Nothing in it can be read from now on; what was derived from it is swept in the "
            "background. Again is 404. With If-Match, another version than the named one is 412."
        ),
        conditional=True,
        example_reply={
            "id": _ID,
            "deleted": True,
            "cleanup": {"status": "queued", "job_id": "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"},
        },
    ),
    Write(
        name="collections.bulk_delete",
        method="POST",
        path="/v1/collections/bulk-delete",
        handler=bulk_delete,
        body=BulkDelete,
        response=BulkDeleted,
        scope="write",
        rate="batch",
        idempotency=Idempotency.CACHED,
        summary="Delete collections by their ids",
        description=(
            "One transaction, with a result for each id. The default collection is `forbidden`."
        ),
        example={"ids": [_ID]},
        example_reply={"deleted": 1, "not_found": 0, "results": [{"id": _ID, "status": "deleted"}]},
    ),
    Write(
        name="collections.delete_all",
        method="DELETE",
        path="/v1/collections/all",
        handler=delete_all,
        query=DeleteAllQuery,
        response=AllDeleted,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Delete all collections and everything in them",
        description=(
            f"Needs `confirm={DELETE_ALL_CONFIRMATION}`, else 400. The default collection stays, "
            "emptied."
        ),
        example_reply={"deleted": 3},
    ),
)
