"""MnemeMemoryBlock: messages as memories of a user, and what answers the latest one.

aput        memories.create_batch, a memory for each message with a text
aget        search.search, by the user's latest message
atruncate   nothing: the weakest lines go first
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock
from mneme_client import Mneme, searchable

FOUND_MAX = 5
BATCH_ITEMS_MAX = 100
CONTENT_CHARS_MAX = 100_000
CHARS_PER_TOKEN = 4
ROLES = {
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}


class MnemeMemoryBlock(BaseMemoryBlock[str]):
    """What earlier conversations of a user said, a line each, best first; empty where nothing
    stands.

    client         a connection, by default one to $MNEME_BASE_URL with $MNEME_API_KEY
    user_id        whose memories they are
    collection_id  where they lie; the account's default collection when absent
    limit          how many lines at most, 1 to 100
    filters        which memories are given, in the service's filter language
    options        further arguments of `client.search`: threshold, token_budget, relevance, …; one
                   of the same name as those above goes before it

    Every conversation of the user is searched, whatever its session_id; what this conversation
    holds anyway is left out. Raises the client's errors.
    """

    name: str = Field(default="EarlierConversations")
    client: Mneme = Field(default_factory=Mneme, exclude=True, repr=False)
    user_id: str | None = Field(default=None)
    collection_id: str | None = Field(default=None)
    limit: int = Field(default=FOUND_MAX, ge=1, le=100)
    filters: dict[str, Any] | None = Field(default=None)
    options: dict[str, Any] = Field(default_factory=dict)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [message for message in messages or [] if message.role == MessageRole.USER]
        query = searchable(_text(said[-1])) if said else ""
        if not query:
            return ""
        given = {
            "user_id": self.user_id,
            "collection_id": self.collection_id,
            "filters": self.filters,
            "limit": self.limit,
        }
        found: Any = await asyncio.to_thread(self.client.search, query, **(given | self.options))
        held = {_text(message) for message in messages or []}
        lines = [hit["content"] for hit in found["results"] if hit["content"] not in held]
        return "\n".join(lines)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        records = [record for message in messages for record in _records(message, self.user_id)]
        for start in range(0, len(records), BATCH_ITEMS_MAX):
            stored: Any = await asyncio.to_thread(
                self.client.memories.create_batch,
                records[start : start + BATCH_ITEMS_MAX],
                collection_id=self.collection_id,
            )
            for refused in stored["errors"]:
                raise ValueError(f"A message was refused: {refused}")

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The content without so many lines of its end that about so many tokens are saved, a token
        being four characters; None where nothing is left.
        """
        lines = content.split("\n")
        spared = 0
        while lines and spared < tokens_to_truncate * CHARS_PER_TOKEN:
            spared += len(lines.pop()) + 1
        return "\n".join(lines) or None


def _records(message: ChatMessage, user_id: str | None) -> Iterator[dict[str, Any]]:
    """What the memories of a message are created with: one, unless its text is very long."""
    text = _text(message)
    optional = {
        "user_id": user_id,
        "session_id": message.additional_kwargs.get("session_id"),
        "role": ROLES.get(message.role),
    }
    given = {name: value for name, value in optional.items() if value is not None}
    for start in range(0, len(text), CONTENT_CHARS_MAX):
        part = text[start : start + CONTENT_CHARS_MAX]
        if part.strip():
            yield {"content": part, **given}


def _text(message: ChatMessage) -> str:
    return message.content or ""
