"""Taking in exported collections: the same names, texts, versions and times, under ids of this
account.

The default collection is each account's own: the exported one's description and the like become
this one's, unless it was changed before. A collection that is here already is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from pydantic import Field

from plugins.collections.models import Description, Metadata, Name
from plugins.collections.store import (
    COLLECTION_IDS,
    COLLECTIONS,
    DEFAULT_ORDINAL,
    CollectionRow,
    check_collections,
    default_collection,
    store_collection,
)
from runtime.api.context import WriteContext
from runtime.api.operation import Body
from runtime.api.restoring import Origin, Restore
from runtime.timestamps import Timestamp

# Ids become keys, which are not sealed: nothing but an id may stand there.
CollectionId = Annotated[str, Field(pattern=r"^col_[0-9a-hjkmnp-tv-z]{32}$")]


class ExportedCollection(Body):
    """A collection as an export has it."""

    id: CollectionId
    name: Name
    description: Description | None = None
    metadata: Metadata = Field(default_factory=dict)
    is_default: bool = False
    version: int = Field(default=1, ge=1)
    created_at: Timestamp
    updated_at: Timestamp


def restore_collections(
    ctx: WriteContext, records: Sequence[ExportedCollection], origin: Origin
) -> int:
    """Store the collections that are not here yet; -> how many. Raises PermissionDenied for want of
    room.
    """
    return sum(_restore_collection(ctx, record, origin.renamed(record.id)) for record in records)


def _restore_collection(ctx: WriteContext, record: ExportedCollection, collection_id: str) -> bool:
    fields = {
        "description": record.description,
        "metadata": record.metadata,
        "version": record.version,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
    if record.is_default:
        if ctx[COLLECTIONS].has(DEFAULT_ORDINAL):
            return False
        restored = msgspec.structs.replace(default_collection(ctx), name=record.name, **fields)
        store_collection(ctx, restored)
        return True
    if ctx[COLLECTION_IDS].has(collection_id):
        return False
    check_collections(ctx)
    ordinal, number = (
        ctx.next_ordinal(counter) + 1 for counter in ("collections", "collection_numbers")
    )
    store_collection(ctx, CollectionRow(collection_id, ordinal, number, record.name, **fields))
    return True


RESTORE = {"collection": Restore(ExportedCollection, restore_collections)}
