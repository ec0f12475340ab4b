"""The memory endpoints' requests and responses: field by field what may come in and what goes out.

Content, titles, tags and metadata come back exactly as they were sent. Lengths count Unicode code
points, the length of a content without the white space around it. `user_id`, `agent_id`, `run_id`,
`app_id` and `session_id` are names the caller chooses for its own users and conversations: they
filter, and never give access to anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    RootModel,
    StrictBool,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from plugins.collections import METADATA_BYTES_MAX, CollectionId
from plugins.memories import limits
from runtime.api.operation import Body, Patch, Query, View, not_earlier
from runtime.api.pagination import PageQuery
from runtime.errors import ValidationFailed
from runtime.limits import ID_CHARS_MAX
from runtime.timestamps import Timestamp

DELETE_ALL_CONFIRMATION = "delete-all-memories"


def _of_length(text: str) -> str:
    length = len(text.strip())
    if length == 0:
        raise PydanticCustomError(
            "string_too_short", "must have at least {min_length} characters", {"min_length": 1}
        )
    if length > limits.CONTENT_CHARS_MAX:
        raise PydanticCustomError(
            "string_too_long",
            "must have at most {max_length} characters",
            {"max_length": limits.CONTENT_CHARS_MAX},
        )
    return text


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(orjson.dumps(metadata))
    except (TypeError, ValueError):
        raise PydanticCustomError(
            "metadata", "must hold JSON values only, integers of at most 64 bits"
        ) from None
    if size > METADATA_BYTES_MAX:
        raise PydanticCustomError(
            "metadata_too_large",
            "must be at most {bytes} bytes of JSON",
            {"bytes": METADATA_BYTES_MAX},
        )
    return metadata


Content = Annotated[
    str,
    Field(description="The text to remember, 1 to 100,000 characters.", min_length=1),
    AfterValidator(_of_length),
]
ScopeName = Annotated[str, Field(min_length=1, max_length=limits.SCOPE_CHARS_MAX)]
MemoryId = Annotated[
    str, Field(min_length=1, max_length=ID_CHARS_MAX, description="The memory's id.")
]
IMPORTANCE_DEFAULT = 0.5
Importance = Annotated[
    float, Field(strict=True, ge=0, le=1, description="How much it matters, 0 to 1.")
]
Metadata = Annotated[
    dict[str, Any], Field(description="Free JSON object, at most 16 KiB."), AfterValidator(_small)
]
Title = Annotated[str, Field(max_length=limits.TITLE_CHARS_MAX, description="A short name.")]
Tag = Annotated[str, Field(min_length=1, max_length=limits.TAG_CHARS_MAX)]
Tags = Annotated[
    list[Tag],
    Field(max_length=limits.TAGS_MAX, description="Labels to filter by."),
]
Source = Annotated[str, Field(min_length=1, max_length=limits.SOURCE_CHARS_MAX)]
Status = Literal["processing", "completed", "failed"]
Role = Literal["user", "assistant", "system", "tool"]
ROLES = frozenset(get_args(Role))
Tier = Literal["short_term", "long_term", "archived"]

# --- requests -------------------------------------------------------------------------------------


class Scoped(Body):
    """Whose memory it is, as far as the caller distinguishes."""

    collection_id: CollectionId | None = Field(
        default=None, description="The collection it belongs to; the default one when absent."
    )
    user_id: ScopeName | None = Field(default=None, description="The caller's end user.")
    agent_id: ScopeName | None = Field(default=None, description="The agent that remembers.")
    run_id: ScopeName | None = Field(default=None, description="The run or conversation.")
    app_id: ScopeName | None = Field(default=None, description="The application.")


class Described(Scoped):
    """What a new memory may say about itself beside its text."""

    importance: Importance = IMPORTANCE_DEFAULT
    metadata: Metadata = Field(default_factory=dict)
    title: Title | None = None
    tags: Tags = Field(default_factory=list)
    source: Source | None = Field(default=None, description="Where it comes from, such as `slack`.")
    source_type: ScopeName = Field(default="text", description="What kind of source that is.")
    source_reference: Source | None = Field(
        default=None, description="A reference into the source, such as a URL."
    )
    session_id: ScopeName | None = Field(
        default=None, description="The session it was said in; run_id when absent."
    )
    speaker: ScopeName | None = Field(default=None, description="Who said it.")
    role: Role | None = Field(
        default=None,
        description="As what it was said in a chat with an assistant; a message's own role.",
    )
    occurred_at: Timestamp | None = Field(
        default=None, description="When what it tells happened; now when absent."
    )
    expires_at: Timestamp | None = Field(
        default=None, description="When it ceases to be readable; never when absent."
    )
    wait_for_index: StrictBool = Field(
        default=False, description="Wait up to 30 seconds for it to be searchable."
    )


class RawMemory(Described):
    """A memory to store as it is."""

    content: Content


class Message(Body):
    role: ScopeName = Field(description="Who speaks, such as `user` or `assistant`.")
    content: Content
    name: ScopeName | None = Field(
        default=None, description="The speaker's name; the role stands in for it."
    )


Messages = Annotated[list[Message], Field(min_length=1, max_length=limits.MESSAGES_MAX)]


class NewMemory(Described):
    """A text, or the messages of a conversation."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["content"], "properties": {"content": {"type": "string"}}},
                {"required": ["messages"], "properties": {"messages": {"type": "array"}}},
            ]
        }
    )

    content: Content | None = Field(default=None, description="The text to remember.")
    messages: Messages | None = Field(
        default=None,
        description="A conversation instead of a content: one memory per message.",
    )
    infer: StrictBool = Field(
        default=False, description="Store what can be learned from the text instead of the text."
    )
    async_dispatch: StrictBool = Field(
        default=False, description="With infer: answer 202 at once and do it in the background."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> NewMemory:
        if self.content is None and self.messages is None:
            raise ValidationFailed.at(("body", "content"), "is required", "missing")
        if self.content is not None and self.messages is not None:
            raise ValidationFailed.at(
                ("body", "messages"), "must be absent when content is given", "value_error"
            )
        return self


class Batch(Scoped):
    """Up to 100 memories; scope fields here hold for items that have none of their own."""

    memories: list[RawMemory] = Field(
        min_length=1, max_length=limits.BATCH_ITEMS_MAX, description="The memories, in order."
    )
    wait_for_index: StrictBool = Field(
        default=False, description="Wait up to 30 seconds for all to be searchable."
    )

    @field_validator("memories", mode="before")
    @classmethod
    def _as_they_are(cls, items: Any) -> Any:
        first = items[: limits.BATCH_ITEMS_MAX] if isinstance(items, list) else []
        for place, item in enumerate(first):
            if isinstance(item, dict) and item.get("infer") is True:
                raise ValidationFailed.at(
                    ("body", "memories", place, "infer"),
                    "goes with POST /v1/memories and /v1/memories/process; a batch is stored as it "
                    "is",
                )
        return items


class MemoryPatch(Patch):
    """Absent fields stay. null clears title, expires_at, tags and metadata, and makes importance
    what it is of a new memory; metadata is replaced whole.
    """

    content: Content = ""
    importance: Importance | None = None
    metadata: Metadata | None = None
    title: Title | None = None
    tags: Tags | None = None
    expires_at: Timestamp | None = Field(default=None, description="When it ceases to be readable.")
    wait_for_index: StrictBool | None = Field(
        default=None, description="Wait up to 30 seconds for new content to be searchable."
    )


class Filters(Query):
    collection_id: CollectionId | None = Field(default=None, description="Only this collection.")
    user_id: ScopeName | None = Field(default=None, description="Only this end user.")
    agent_id: ScopeName | None = Field(default=None, description="Only this agent.")
    run_id: ScopeName | None = Field(default=None, description="Only this run.")
    app_id: ScopeName | None = Field(default=None, description="Only this application.")
    session_id: ScopeName | None = Field(default=None, description="Only this session.")


class MemoryQuery(PageQuery, Filters):
    tier: Tier | None = Field(default=None, description="Only this tier.")
    tag: ScopeName | None = Field(default=None, description="Only memories with this tag.")
    created_after: Timestamp | None = Field(
        default=None, description="Only memories created after this instant."
    )
    created_before: Timestamp | None = Field(
        default=None,
        description="Only memories created before this instant; of a date without a time, before "
        "that day.",
    )
    include_superseded: bool = Field(
        default=False, description="Include memories that newer ones have superseded."
    )
    scope: Literal["all"] | None = Field(
        default=None, description="`all`: every collection, as when collection_id is absent."
    )

    @model_validator(mode="after")
    def _runs_forwards(self) -> MemoryQuery:
        before, after = self.created_before, self.created_after
        not_earlier(("query", "created_before"), before, "created_after", after)
        return self


class DeleteAllQuery(Filters):
    model_config = ConfigDict(
        json_schema_extra={"required": ["confirm"]}
    )  # its absence is 400, not 422
    confirm: str | None = Field(default=None, description=f"Must be `{DELETE_ALL_CONFIRMATION}`.")


class Doomed(Scoped):
    session_id: ScopeName | None = Field(default=None, description="Only this session.")
    filters: dict[str, Any] = Field(
        min_length=1,
        description="Conditions on fields, with AND, OR and NOT, as in a search; at least one that "
        "does not hold for every memory.",
    )


class BulkDelete(Body):
    ids: list[MemoryId] = Field(
        min_length=1, max_length=limits.BULK_DELETE_MEMORIES_MAX, description="Memories to delete."
    )


# --- responses ------------------------------------------------------------------------------------


class Memory(View):
    id: str = Field(description="The memory's id.")
    content: str = Field(description="Its text, as it was sent.")
    collection_id: str = Field(description="The collection it belongs to.")
    importance: float = Field(description="How much it matters, 0 to 1.")
    tier: Tier = Field(description="How close at hand it is kept.")
    title: str | None = Field(description="A short name.")
    tags: list[str] = Field(description="Labels.")
    source: str | None = Field(description="Where it comes from.")
    source_type: str = Field(description="What kind of source that is.")
    kind: Literal["episodic", "semantic", "document", "file", "note"] = Field(
        description=(
            "What it is, by its source: what was told in a conversation, a fact that was read in "
            "it, a passage of a document, a file of an agent's memory folder, or any other text."
        )
    )
    source_reference: str | None = Field(description="A reference into the source.")
    metadata: dict[str, Any] = Field(description="Free JSON object.")
    user_id: str | None = Field(description="The caller's end user.")
    agent_id: str | None = Field(description="The agent that remembers.")
    run_id: str | None = Field(description="The run or conversation.")
    app_id: str | None = Field(description="The application.")
    session_id: str | None = Field(description="The session it was said in.")
    speaker: str | None = Field(description="Who said it.")
    role: Role | None = Field(description="As what it was said in a chat with an assistant.")
    occurred_at: str = Field(description="When what it tells happened (ISO 8601).")
    created_at: str = Field(description="When it was stored (ISO 8601).")
    updated_at: str = Field(description="When its current version was stored (ISO 8601).")
    version: int = Field(description="Counts its versions, from 1; the ETag.")
    access_count: int = Field(description="How often searches returned it, as last written down.")
    last_accessed_at: str | None = Field(description="When one last did (ISO 8601).")
    processing_status: Status = Field(description="`completed` exactly when it is searchable.")
    searchable: bool = Field(description="Whether searches find it.")
    status_url: str = Field(description="Where to ask again.")
    outbox_event_id: str = Field(description="The event of its current version.")
    conflict_status: Literal["none", "superseded"] = Field(
        description="Whether a newer memory has taken its place."
    )
    superseded_by_id: str | None = Field(description="That newer memory.")
    expires_at: str | None = Field(
        description="When it ceases to be readable (ISO 8601); null: never."
    )


class WriteResult(View):
    id: str = Field(description="The memory's id.")
    memory_id: str = Field(description="The same.")
    event: Literal["ADD", "UPDATE", "NOOP"] = Field(description="What happened to it.")
    memory: str = Field(description="Its text.")
    processing_status: Status = Field(description="`completed` when it is searchable.")


class Summary(View):
    """What a create did, over all its memories."""

    results: list[WriteResult] = Field(description="One entry per memory, in order.")
    memory_ids: list[str] = Field(description="The same ids.")
    created_count: int = Field(description="Memories added.")
    updated_count: int = Field(description="Memories that took another's place.")
    skipped_count: int = Field(description="Texts that were known already.")
    collection_id: str = Field(description="The collection written to.")
    processing_status: Status = Field(description="`completed` when all are searchable.")
    searchable: bool = Field(description="Whether all are searchable.")
    status_url: str = Field(description="Where to ask again: the memory, or the job of several.")
    outbox_event_id: str | None = Field(
        description="The event of the first memory; null when a repeated request made none."
    )
    request_id: str = Field(description="This request's id.")
    job_id: str | None = Field(
        default=None, description="The job that makes them searchable, while one is needed."
    )
    poll_url: str | None = Field(default=None, description="Where that job reports.")


class CreatedMemory(Summary, Memory):
    """One memory: its own fields and the summary."""


class Created(RootModel[CreatedMemory | Summary]):
    """The memory's own fields when there is one, and the summary in any case."""


class ItemError(View):
    code: str = Field(description="An error code of the API.")
    message: str = Field(description="What is wrong with the item.")


class IndexedError(ItemError):
    index: int = Field(description="The item's place in the request, from 0.")


class BatchResult(View):
    index: int = Field(description="The item's place in the request, from 0.")
    id: str | None = Field(description="The memory's id; null when the item failed.")
    memory_id: str | None = Field(description="The same.")
    status: Literal["created", "failed"] = Field(description="What became of the item.")
    processing_status: Status = Field(
        description="`completed` when it is searchable; `failed` with the item."
    )
    error: ItemError | None = Field(default=None, description="Why it failed.")


class BatchCreated(View):
    created: int = Field(description="Items stored.")
    failed: int = Field(description="Items refused.")
    accepted: int = Field(description="The same as created.")
    durable: Literal[True] = Field(description="What was created is on disk, in one transaction.")
    memory_ids: list[str] = Field(description="Ids of the memories created, in order.")
    errors: list[IndexedError] = Field(description="The refusals.")
    results: list[BatchResult] = Field(description="One entry per item, in order.")
    searchable: bool = Field(description="Whether all created memories are searchable.")
    processing_status: Status = Field(description="`completed` when they are.")
    status_url: str | None = Field(description="The job's path; null when nothing was created.")
    outbox_event_id: str | None = Field(
        description="The event of the first memory; null when nothing was created."
    )


class Version(View):
    version: int = Field(description="The version's number.")
    event: Literal["ADD", "UPDATE", "SUPERSEDE", "DELETE"] = Field(description="How it came about.")
    content: str = Field(description="The text.")
    importance: float = Field(description="0 to 1.")
    metadata: dict[str, Any] = Field(description="Free JSON object.")
    at: str = Field(description="When it was stored (ISO 8601).")
    actor: str = Field(
        description=(
            "The API key's id, the account's for an access token, or `system`; behind `imported:` "
            "where an export says so that this installation has not made."
        )
    )
    reason: str | None = Field(description="Why, where one was given.")


class Deleted(View):
    id: str = Field(description="The memory's id.")
    deleted: Literal[True] = Field(description="It can no longer be read or found.")


class BulkResult(View):
    id: str = Field(description="The id as it was sent.")
    status: Literal["deleted", "not_found", "forbidden"] = Field(
        description="forbidden: another account's."
    )


class BulkDeleted(View):
    deleted: int = Field(description="Memories deleted.")
    not_found: int = Field(description="Ids that name no memory of this account.")
    results: list[BulkResult] = Field(description="One entry per id, in order.")


class AllDeleted(View):
    deleted: int = Field(description="Memories deleted.")


class JobView(View):
    job_id: str = Field(description="The job's id.")
    status: Literal["queued", "processing", "completed", "failed"] = Field(
        description="Where it stands."
    )
    progress: float = Field(description="0 to 1.")
    created_at: str = Field(description="When it was accepted (ISO 8601).")
    started_at: str | None = Field(description="When its first attempt began (ISO 8601).")
    finished_at: str | None = Field(description="When it ended (ISO 8601).")
    attempts: int = Field(description="Attempts so far.")
    result: dict[str, Any] | None = Field(
        description="What it did; for an indexing job the counts `indexed` and `skipped`."
    )
    error: str | None = Field(description="Why it failed, or why the last attempt did.")


class MemoryJob(JobView):
    kind: Literal["memories.index", "memories.process", "documents.process"] = Field(
        description="What it does."
    )


class JobQuery(PageQuery):
    status: Literal["queued", "processing", "completed", "failed"] | None = Field(
        default=None, description="Only jobs in this state."
    )


# --- examples -------------------------------------------------------------------------------------

EXAMPLE_ID = "mem_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
EXAMPLE = {
    "id": EXAMPLE_ID,
    "content": "I moved to Lisbon in March.",
    "collection_id": "col_06a1kz0a1g3q5b7m9d1s3u5w7y9z2b4d",
    "importance": 0.5,
    "tier": "short_term",
    "title": None,
    "tags": ["home"],
    "source": None,
    "source_type": "text",
    "kind": "note",
    "source_reference": None,
    "metadata": {"channel": "chat"},
    "user_id": "ada",
    "agent_id": None,
    "run_id": None,
    "app_id": None,
    "session_id": "monday",
    "speaker": "Ada",
    "role": "user",
    "occurred_at": "2026-05-08T13:56:00.000Z",
    "created_at": "2026-05-08T13:56:00.000Z",
    "updated_at": "2026-05-08T13:56:00.000Z",
    "version": 1,
    "access_count": 0,
    "last_accessed_at": None,
    "processing_status": "completed",
    "searchable": True,
    "status_url": f"/v1/memories/{EXAMPLE_ID}",
    "outbox_event_id": "evt_06a1kz0e3m5v7f9r1h3y5a7c9e1g4j6k",
    "conflict_status": "none",
    "superseded_by_id": None,
    "expires_at": None,
}
