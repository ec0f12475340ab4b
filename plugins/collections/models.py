"""What requests and responses about collections look like on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from plugins.collections import limits
from runtime.api.operation import Body, Patch, Query, View
from runtime.api.pagination import PageQuery
from runtime.limits import DESCRIPTION_CHARS_MAX, ID_CHARS_MAX, NAME_CHARS_MAX

DELETE_ALL_CONFIRMATION = "delete-all-collections"


# --- requests and responses -----------------------------------------------------------------------


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(orjson.dumps(metadata))
    except orjson.JSONEncodeError:
        raise PydanticCustomError(
            "metadata", "Must hold JSON values only, integers of at most 64 bits."
        ) from None
    if size > limits.METADATA_BYTES_MAX:
        raise PydanticCustomError("metadata", "Must be at most 16 KiB of JSON.")
    return metadata


CollectionId = Annotated[
    str, Field(min_length=1, max_length=ID_CHARS_MAX, description="A collection's id.")
]
Name = Annotated[
    str,
    Field(min_length=1, max_length=NAME_CHARS_MAX, description="Name; it need not be unique."),
]
Description = Annotated[
    str, Field(max_length=DESCRIPTION_CHARS_MAX, description="What the collection is for.")
]
Metadata = Annotated[
    dict[str, Any], Field(description="Free JSON object, at most 16 KiB."), AfterValidator(_small)
]


class NewCollection(Body):
    name: Name
    description: Description | None = None
    metadata: Metadata = Field(default_factory=dict)


def _without_default(schema: dict[str, Any]) -> None:
    """What a field would be set to says nothing where its absence leaves it."""
    del schema["default"]


class CollectionPatch(Patch):
    name: Name = Field(default="", json_schema_extra=_without_default)
    description: Description | None = None
    metadata: Metadata | None = None


class CollectionQuery(PageQuery):
    name: str | None = Field(
        default=None,
        max_length=NAME_CHARS_MAX,
        description="Only collections of exactly this name.",
    )
    name_prefix: str | None = Field(
        default=None,
        max_length=NAME_CHARS_MAX,
        description="Only collections whose name starts with this.",
    )


class DeleteAllQuery(Query):
    model_config = ConfigDict(
        json_schema_extra={"required": ["confirm"]}
    )  # its absence is 400, not 422
    confirm: str | None = Field(default=None, description=f"Must be `{DELETE_ALL_CONFIRMATION}`.")


class BulkDelete(Body):
    ids: list[Annotated[str, Field(min_length=1, max_length=ID_CHARS_MAX)]] = Field(
        min_length=1,
        max_length=limits.BULK_DELETE_COLLECTIONS_MAX,
        description="Collections to delete.",
    )


class Collection(View):
    id: str = Field(description="The collection's id.")
    name: str = Field(description="Its name.")
    description: str | None = Field(description="What it is for.")
    metadata: dict[str, Any] = Field(description="Free JSON object.")
    is_default: bool = Field(description="Whether memories without a collection_id go here.")
    is_active: bool = Field(description="True: a deleted collection is not shown at all.")
    memory_count: int = Field(
        description="Memories in it, superseded ones included; what has expired for a minute more."
    )
    document_count: int = Field(description="Documents in it.")
    version: int = Field(
        description="Counts the changes of name, description and metadata, from 1."
    )
    created_at: str = Field(description="When it was created (ISO 8601).")
    updated_at: str = Field(
        description="When its name, description or metadata last changed (ISO 8601)."
    )


class Cleanup(View):
    status: Literal["queued"] = Field(
        description="Removal of derived data goes on in the background."
    )
    job_id: str = Field(
        description="The job that does it; `GET /v1/account/receipts` says what it has removed."
    )


class DeletedCollection(View):
    id: str = Field(description="The collection's id.")
    deleted: Literal[True] = Field(description="It and everything in it can no longer be read.")
    cleanup: Cleanup = Field(description="What is still going on.")


class BulkResult(View):
    id: str = Field(description="The id as it was sent.")
    status: Literal["deleted", "not_found", "forbidden"] = Field(
        description="forbidden: the default collection, or another account's."
    )


class BulkDeleted(View):
    deleted: int = Field(description="Collections deleted.")
    not_found: int = Field(description="Ids that name no collection of this account.")
    results: list[BulkResult] = Field(description="One entry for each id, in order.")


class AllDeleted(View):
    deleted: int = Field(description="Collections deleted; the default collection stays, emptied.")
