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
    assert_type(client.memories.create(content="x")["id"], str)
    assert_type(client.memories.create(content="x", infer=False), models.CreatedMemory)
    assert_type(client.memories.create(content="x", infer=True), models.Created)
    assert_type(client.memories.create(content="x")["memory_ids"], list[str])
    messages = [{"role": "user", "content": "x"}]
    assert_type(client.memories.create(messages=messages), models.Created)
    assert_type(client.memories.process(messages=messages)["job_id"], str)
    memories = [{"content": "x", "tags": ["a"]}]
    assert_type(client.memories.create_batch(memories), models.BatchCreated)
    raw: list[models.RawMemory] = [{"content": "x"}]
    client.memories.create_batch(raw)
    client.memories.create_batch([{"content": text} for text in ("a", "b")])
    assert_type(client.memories.update("mem_1", title=None, tags=UNSET), models.Memory)
    assert_type(
        client.chat.stream_completions([{"role": "user", "content": "x"}]), Stream[dict[str, Any]]
    )
    assert_type(
        client.memories.get("mem_1")["tier"], Literal["short_term", "long_term", "archived"]
    )
    client.memories.create(contents="x")  # type: ignore[call-overload]
    client.search("tea", limit="ten")  # type: ignore[arg-type]
    event = verify_webhook(b"{}", {}, "whsec_1")
    if event["event_type"] == "memory.created":
        assert_type(event["data"], models.MemoryCreated)


async def awaited(client: AsyncMneme) -> AsyncIterator[str]:
    assert_type(await client.memories.get("mem_1"), models.Memory)
    assert_type(await client.memories.create(content="x"), models.CreatedMemory)
    assert_type(client.memories.list(), AsyncListing[models.Memory])
    async for memory in client.memories.list():
        yield memory["content"]
