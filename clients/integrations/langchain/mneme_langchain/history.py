"""MnemeChatMessageHistory: the messages of a chat as the service's memories of a session."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from mneme_client import Entry, History, Mneme
from mneme_client.history import Role

ROLES: dict[str, Role] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
}


class MnemeChatMessageHistory(BaseChatMessageHistory):
    """The messages of one chat.

    session_id     which chat, 1 to 255 characters
    client         a connection of yours, which stays yours to close; otherwise base_url and api_key
                   open one, by default $MNEME_BASE_URL and $MNEME_API_KEY
    user_id        whose chat it is; nobody's when absent, a chat of its own
    collection_id  where its memories lie; the account's default collection when absent
    limit          how many of the latest messages `messages` has, all when absent

    The `a…` methods run the same calls in a thread. Safe to share; raises the client's errors.
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
        limit: int | None = None,
    ):
        self.session_id, self._limit = session_id, limit
        self._client = client or Mneme(base_url=base_url, api_key=api_key)
        self._owns_client = client is None
        self._history = History(
            self._client, session_id, user_id=user_id, collection_id=collection_id
        )

    def close(self) -> None:
        """End the connections that the history opened."""
        if self._owns_client:
            self._client.close()

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first. Each use asks the service."""
        return messages_from_dict(self._history.items(self._limit))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, all at once."""
        if messages:
            self._history.add(
                Entry(message_to_dict(message), str(message.text), ROLES.get(message.type))
                for message in messages
            )

    def clear(self) -> None:
        """Remove all messages."""
        self._history.clear()
