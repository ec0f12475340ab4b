"""What a type checker must know of the client; test_generated.py has mypy read it."""

from collections.abc import AsyncIterator
from typing import Any, Literal, assert_type

from mneme_client import (
    UNSET,
    AsyncListing,
    AsyncMneme,
    Listing,
    Mneme,
    Stream,
    models,
    verify_webhook,
)


def blocking(client: Mneme) -> None:
    assert_type(client.memories.get("mem_1"), models.Memory)
    assert_type(client.memories.list(user_id="ada"), Listing[models.Memory])
    assert_type(client.search("tea")["results"][0]["score"], float)
    assert_type(client.memories.create(content="x")["memory_ids"], list[str])
    assert_type(client.memories.update("mem_1", title=None, tags=UNSET), models.Memory)
    assert_type(
        client.chat.stream_completions([{"role": "user", "content": "x"}]), Stream[dict[str, Any]]
    )
    assert_type(
        client.memories.get("mem_1")["tier"], Literal["short_term", "long_term", "archived"]
    )
    client.memories.create(contents="x")  # type: ignore[call-arg]
    client.search("tea", limit="ten")  # type: ignore[arg-type]
    event = verify_webhook(b"{}", {}, "whsec_1")
    if event["event_type"] == "memory.created":
        assert_type(event["data"], models.MemoryCreated)


async def awaited(client: AsyncMneme) -> AsyncIterator[str]:
    assert_type(await client.memories.get("mem_1"), models.Memory)
    assert_type(client.memories.list(), AsyncListing[models.Memory])
    async for memory in client.memories.list():
        yield memory["content"]
