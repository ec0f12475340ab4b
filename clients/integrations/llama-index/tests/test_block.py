"""The block in the framework's own Memory, against a real service."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.memory import BaseMemoryBlock, Memory
from mneme_client import Mneme
from mneme_llama_index import MnemeMemoryBlock

FACTS = ["I eat no nuts.", "My sister Ilse lives in Porto.", "The garage code is 4711."]


@pytest.fixture(scope="session")
def client() -> Iterator[Mneme]:
    with Mneme() as client:
        yield client


@pytest.fixture
def block(client: Mneme) -> MnemeMemoryBlock:
    return MnemeMemoryBlock(client=client, user_id=uuid.uuid4().hex)


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def settled(client: Mneme, block: MnemeMemoryBlock) -> list[dict[str, object]]:
    """The block's memories, newest first, once searches find them."""
    return [client.wait_ready(one) for one in client.memories.list(user_id=block.user_id)]  # type: ignore[misc]


def test_what_was_put_answers_later_conversations(client: Mneme, block: MnemeMemoryBlock) -> None:
    assert isinstance(block, BaseMemoryBlock)

    async def story() -> None:
        await block.aput([user(fact) for fact in FACTS], session_id="monday")
        settled(client, block)
        told = await block.aget([user("Where does my sister Ilse live?")])
        assert told.splitlines()[0] == FACTS[1]
        assert await block.aget([user("What is the boiling point of lead?")]) == ""
        assert await block.aget([]) == "" and await block.aget(None) == ""

    run(story)
    kept = settled(client, block)
    assert [one["content"] for one in kept] == FACTS[::-1]
    assert {(one["session_id"], one["role"]) for one in kept} == {("monday", "user")}


def test_the_latest_message_of_the_user_is_what_counts(
    client: Mneme, block: MnemeMemoryBlock
) -> None:
    async def story() -> None:
        await block.aput([user(fact) for fact in FACTS])
        settled(client, block)
        asked = [
            user("Where does my sister Ilse live?"),
            ChatMessage(role="assistant", content="In Porto."),
            user("What is the garage code?"),
            ChatMessage(role="assistant", content="Let me look at what you eat."),
        ]
        assert (await block.aget(asked)).splitlines()[0] == FACTS[2]

    run(story)


def test_what_the_prompt_holds_is_not_told_again(client: Mneme, block: MnemeMemoryBlock) -> None:
    async def story() -> None:
        await block.aput([user(FACTS[1])])
        settled(client, block)
        held = [user(FACTS[1]), user("Where does my sister Ilse live?")]
        assert await block.aget(held) == ""

    run(story)


def test_users_are_strangers_to_each_other(client: Mneme, block: MnemeMemoryBlock) -> None:
    async def story() -> None:
        await block.aput([user(FACTS[0])])
        settled(client, block)
        other = MnemeMemoryBlock(client=client, user_id=uuid.uuid4().hex)
        assert await other.aget([user("What must I not eat, nuts?")]) == ""

    run(story)


def test_limit_filters_and_options_narrow(client: Mneme, block: MnemeMemoryBlock) -> None:
    async def story() -> None:
        said = ["I like red wine.", "I like white wine."]
        answer = ChatMessage(role="assistant", content="You like wine.")
        await block.aput([*(user(text) for text in said), answer])
        settled(client, block)
        asked = [user("Which wine do I like?")]

        async def lines(**given: object) -> list[str]:
            made = MnemeMemoryBlock(client=client, user_id=block.user_id, **given)
            return (await made.aget(asked)).splitlines()

        everything = {"include_low_confidence": True}
        assert len(await lines(options=everything)) == 3
        assert len(await lines(options=everything, limit=1)) == 1
        assert sorted(await lines(options=everything, filters={"role": "user"})) == said

    run(story)


def test_only_texts_are_kept_and_all_of_them(client: Mneme, block: MnemeMemoryBlock) -> None:
    async def story() -> None:
        picture = ImageBlock(image=b"x", image_mimetype="image/png")
        mixed = ChatMessage(role="user", blocks=[TextBlock(text="Look at this."), picture])
        await block.aput([ChatMessage(role="user", blocks=[picture]), mixed, user("  ")])
        await block.aput([user("word " * 30_000)])
        await block.aput([])
        kept = list(client.memories.list(user_id=block.user_id))
        assert kept[-1]["content"] == "Look at this."
        assert "".join(one["content"] for one in kept[-2::-1]) == "word " * 30_000

    run(story)


def test_messages_that_leave_the_short_term_memory_are_kept(
    client: Mneme, block: MnemeMemoryBlock
) -> None:
    async def story() -> None:
        memory = Memory.from_defaults(
            session_id="tuesday", token_limit=120, token_flush_size=30, memory_blocks=[block]
        )
        await memory.aput(user(FACTS[1]))
        await memory.aput(ChatMessage(role="assistant", content="Noted."))
        for number in range(20):
            await memory.aput(user(f"Something else to fill it with, number {number}."))
            await memory.aput(ChatMessage(role="assistant", content="Go on."))
        kept = settled(client, block)
        assert kept[-1]["content"] == FACTS[1] and kept[-1]["session_id"] == "tuesday"
        prompt = await memory.aget(input="Where does my sister Ilse live?")
        assert prompt[0].role == "system" and FACTS[1] in str(prompt[0].content)
        assert "<EarlierConversations>" in str(prompt[0].content)

    run(story)


def test_a_block_may_be_kept_from_what_leaves(client: Mneme) -> None:
    block = MnemeMemoryBlock(
        client=client, user_id=uuid.uuid4().hex, accept_short_term_memory=False
    )

    async def story() -> None:
        await block.aput([user(FACTS[0])], from_short_term_memory=True)
        assert list(client.memories.list(user_id=block.user_id)) == []

    run(story)


def test_the_weakest_lines_are_truncated_first(block: MnemeMemoryBlock) -> None:
    async def story() -> None:
        content = "\n".join(["best " * 8, "good " * 8, "weak " * 8])
        assert await block.atruncate(content, 5) == "\n".join(["best " * 8, "good " * 8])
        assert await block.atruncate(content, 15) == "best " * 8
        assert await block.atruncate(content, 1_000) is None
        assert await block.atruncate(content, 0) == content

    run(story)


def test_the_memory_truncates_the_block(client: Mneme) -> None:
    block = MnemeMemoryBlock(
        client=client,
        user_id=uuid.uuid4().hex,
        priority=1,
        options={"include_low_confidence": True},
    )

    async def story() -> None:
        await block.aput([user(f"The violin number {n} is {'very ' * 20}old.") for n in range(5)])
        settled(client, block)
        memory = Memory.from_defaults(token_limit=90, memory_blocks=[block])
        prompt = await memory.aget(input="How old are the violins?")
        told = str(prompt[0].content) if prompt else ""
        assert 1 <= told.count("violin number") < 5

    run(story)


def test_it_connects_by_the_environment() -> None:
    async def story() -> None:
        block = MnemeMemoryBlock(user_id=uuid.uuid4().hex)
        assert await block.aget([user("Hello?")]) == ""
        block.client.close()

    run(story)


def test_the_latest_message_may_be_long(client: Mneme, block: MnemeMemoryBlock) -> None:
    async def story() -> None:
        await block.aput([user(fact) for fact in FACTS], session_id="monday")
        settled(client, block)
        told = await block.aget([user("Where does my sister Ilse live? " * 600)])
        assert told.splitlines()[0] == FACTS[1]
        assert await block.aget([user(" \n")]) == ""

    run(story)


def test_an_option_goes_before_the_field_of_its_name(
    client: Mneme, block: MnemeMemoryBlock
) -> None:
    async def story() -> None:
        await block.aput([user(fact) for fact in FACTS], session_id="monday")
        settled(client, block)
        block.options = {"limit": 1, "include_low_confidence": True}
        assert len((await block.aget([user("Where is what?")])).splitlines()) == 1

    run(story)
