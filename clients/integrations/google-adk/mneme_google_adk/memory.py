"""MnemeMemoryService: an event with a text as a memory of its app, user and session.

    add_session_to_memory, add_events_to_memory, add_memory   memories.create_raw, one for each
    search_memory                                             search.search
    delete_memory                                             memories.get, memories.delete

Each event is created under an Idempotency-Key of its own, so that it is kept once, however often
its session is added and by however many processes, and does not come again after it was deleted.
What was kept first stays, though the event comes again with another text or other metadata.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types
from mneme_client import Mneme, errors, searchable

FOUND_MAX = 10
CONTENT_CHARS_MAX = 100_000
METADATA_BYTES_MAX = 15 * 1024  # of 16 KiB: the content as it was, where it fits beside the rest
MODEL_ROLE, USER_AUTHOR = "model", "user"
KEPT_IDS_MAX = 100_000  # of events that this service has seen stored


class MnemeMemoryService(BaseMemoryService):
    """What the sessions of users said, for later sessions.

    client         a connection of yours, which stays yours to close; otherwise base_url and api_key
                   open one, by default $MNEME_BASE_URL and $MNEME_API_KEY
    collection_id  where the memories lie; the account's default collection when absent
    limit          how many memories a search returns at most, 1 to 100
    filters        which memories are searched, in the service's filter language

    Only texts are kept: an event without one is passed over. Raises the client's errors.
    """

    def __init__(
        self,
        client: Mneme | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        collection_id: str | None = None,
        limit: int = FOUND_MAX,
        filters: Mapping[str, Any] | None = None,
    ):
        self._client = client or Mneme(base_url=base_url, api_key=api_key)
        self._owns_client = client is None
        self._collection_id, self._limit, self._filters = collection_id, limit, filters
        self._stored: set[str] = set()

    def close(self) -> None:
        """End the connections that the service opened."""
        if self._owns_client:
            self._client.close()

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep the session's events that are not kept yet."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep the events that are not kept yet. custom_metadata: JSON, given back with each."""
        for event in events:
            if event.content is None:
                continue
            said = datetime.fromtimestamp(event.timestamp, UTC).isoformat()
            entry = MemoryEntry(
                id=event.id,
                content=event.content,
                author=event.author,
                timestamp=said,
                custom_metadata=dict(custom_metadata or {}),
            )
            await asyncio.to_thread(self._keep, app_name, user_id, session_id, entry)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep memories as they are; one with an id is kept once. custom_metadata: JSON, for all of
        them.
        """
        for memory in memories:
            both = {**(custom_metadata or {}), **memory.custom_metadata}
            entry = memory.model_copy(update={"custom_metadata": both})
            await asyncio.to_thread(self._keep, app_name, user_id, None, entry)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """What answers the query, best first; nothing is padded, and nothing answers an empty one.
        A memory's id is the service's.
        """
        wanted = searchable(query)
        if not wanted:
            return SearchMemoryResponse()
        found = await asyncio.to_thread(
            self._client.search,
            wanted,
            app_id=app_name,
            user_id=user_id,
            collection_id=self._collection_id,
            filters=self._filters,
            limit=self._limit,
        )
        return SearchMemoryResponse(memories=[_entry(hit) for hit in found["results"]])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory of this app and user; another one, and none, is passed over."""
        if memory_id:
            await asyncio.to_thread(self._delete, app_name, user_id, memory_id)

    def _keep(
        self, app_name: str, user_id: str, session_id: str | None, entry: MemoryEntry
    ) -> None:
        place = [app_name, user_id, session_id, entry.id]
        whole = _digest(place) if entry.id else None
        if whole in self._stored:
            return
        for number, record in enumerate(_records(entry)):
            key = _digest([*place, number]) if entry.id else None
            try:
                self._client.memories.create_raw(
                    **record,
                    app_id=app_name,
                    user_id=user_id,
                    session_id=session_id,
                    collection_id=self._collection_id,
                    wait_for_index=True,
                    idempotency_key=key,
                )
            except errors.NotFound as error:
                if key is None or isinstance(error, errors.CollectionNotFound):
                    raise
                # It was kept before, and deleted: so it stays.
            except errors.Conflict as error:
                if key is None or error.retry_after is not None:
                    raise
                break  # It was kept before as something else: so it stays.
        if whole is not None and len(self._stored) < KEPT_IDS_MAX:
            self._stored.add(whole)

    def _delete(self, app_name: str, user_id: str, memory_id: str) -> None:
        try:
            memory = self._client.memories.get(memory_id)
            if (memory["app_id"], memory["user_id"]) == (app_name, user_id):
                self._client.memories.delete(memory_id)
        except errors.NotFound:
            return


def _digest(place: list[Any]) -> str:
    return hashlib.sha256(json.dumps(place).encode()).hexdigest()


def _records(entry: MemoryEntry) -> Iterator[dict[str, Any]]:
    """What the memories of an entry are created with: one, unless its text is very long."""
    parts = [part.text for part in entry.content.parts or [] if part.text and not part.thought]
    text = "\n".join(parts)
    kept: dict[str, Any] = {"custom": entry.custom_metadata} if entry.custom_metadata else {}
    both = {**kept, "content": entry.content.model_dump(mode="json", exclude_none=True)}
    if len(json.dumps(both).encode()) <= METADATA_BYTES_MAX and len(text) <= CONTENT_CHARS_MAX:
        kept = both
    by_model = entry.content.role == MODEL_ROLE or (entry.author or USER_AUTHOR) != USER_AUTHOR
    for start in range(0, len(text), CONTENT_CHARS_MAX):
        part = text[start : start + CONTENT_CHARS_MAX]
        if part.strip():
            yield {
                "content": part,
                "role": "assistant" if by_model else "user",
                "speaker": entry.author,
                "occurred_at": entry.timestamp,
                "metadata": kept,
            }


def _entry(hit: Mapping[str, Any]) -> MemoryEntry:
    kept = hit["metadata"]
    if "content" in kept:
        content = types.Content.model_validate(kept["content"])
    else:
        content = types.Content(parts=[types.Part(text=hit["content"])])
    return MemoryEntry(
        id=hit["id"],
        content=content,
        author=hit["speaker"],
        timestamp=hit["occurred_at"],
        custom_metadata=kept.get("custom", {}),
    )
