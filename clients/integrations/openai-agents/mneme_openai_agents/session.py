"""MnemeSession: a conversation's items as the service's memories of a session.

get_items       memories.list
add_items       memories.create_batch
pop_item        memories.list, then memories.bulk_delete
clear_session   the same
recall          search.search, over the user's other sessions
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast, get_args

from agents import FunctionTool, SessionSettings, TResponseInputItem, function_tool
from mneme_client import Entry, History, Mneme, searchable
from mneme_client.history import Role

RECALLED_MAX = 5
TEXT_PARTS = ("input_text", "output_text", "text")


class MnemeSession:
    """The items of one conversation, for `Runner.run(…, session=…)`.

    session_id        which conversation, 1 to 255 characters
    client            a connection of yours, which stays yours to close; otherwise base_url and
                      api_key open one, by default $MNEME_BASE_URL and $MNEME_API_KEY
    user_id           whose conversation it is; nobody's when absent, a conversation of its own
    collection_id     where its memories lie; the account's default collection when absent
    session_settings  limit: how many of the latest items a run is given, all when absent

    Safe to share between tasks, threads and event loops; other processes see each item once it is
    added. Raises the client's errors.
    """

    def __init__(
        self,
        session_id: str,
        client: Mneme | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        user_id: str | None = None,
        collection_id: str | None = None,
        session_settings: SessionSettings | None = None,
    ):
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self._client = client or Mneme(base_url=base_url, api_key=api_key)
        self._owns_client = client is None
        self._user_id, self._collection_id = user_id, collection_id
        self._history = History(
            self._client, session_id, collection_id=collection_id, user_id=user_id
        )

    def close(self) -> None:
        """End the connections that the session opened."""
        if self._owns_client:
            self._client.close()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """All items, or the latest `limit` ones, by default those of session_settings; oldest
        first.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        found = await asyncio.to_thread(self._history.items, limit)
        return cast(list[TResponseInputItem], found)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, all at once."""
        if items:
            entries = [_entry(cast(dict[str, Any], item)) for item in items]
            await asyncio.to_thread(self._history.add, entries)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; None where there is none."""
        return cast(TResponseInputItem | None, await asyncio.to_thread(self._history.pop))

    async def clear_session(self) -> None:
        """Remove all items."""
        await asyncio.to_thread(self._history.clear)

    async def recall(self, query: str, limit: int = RECALLED_MAX) -> list[str]:
        """What the user's memories outside this conversation say to it, best first; nothing to an
        empty query.
        """
        wanted = searchable(query)
        if not wanted:
            return []
        nobody = {"user_id": None} if self._user_id is None else {}
        found = await asyncio.to_thread(
            self._client.search,
            wanted,
            user_id=self._user_id,
            collection_id=self._collection_id,
            filters={**nobody, "NOT": [{"session_id": self.session_id}, {"role": "assistant"}]},
            limit=limit,
        )
        return [hit["content"] for hit in found["results"]]

    def recall_tool(self) -> FunctionTool:
        """A tool of this name and purpose, for an agent's `tools`."""

        @function_tool
        async def recall(query: str) -> str:
            """Look up what the user said in earlier conversations.

            Args:
                query: What to look for, in plain words.
            """
            return "\n".join(await self.recall(query)) or "Nothing is known of that."

        return recall


def _entry(item: Mapping[str, Any]) -> Entry:
    role = item.get("role")
    return Entry(dict(item), _text(item), cast(Role, role) if role in get_args(Role) else None)


def _text(item: Mapping[str, Any]) -> str:
    """What a message says; nothing for a call of a tool and the like."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        part["text"]
        for part in parts
        if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS
    )
