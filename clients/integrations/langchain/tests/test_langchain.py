"""The retriever and the chat history against a real service; the framework's own history in memory
says what is meant of one.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory, InMemoryChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from mneme_client import Mneme
from mneme_langchain import MnemeChatMessageHistory, MnemeRetriever

MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("I eat no nuts. 🥜", name="ada", id="m1"),
    AIMessage("", tool_calls=[{"name": "look", "args": {"at": ["x", 1]}, "id": "c1"}]),
    ToolMessage("y" * 40_000, tool_call_id="c1", artifact={"raw": [1, 2]}),
    HumanMessage([{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": "x"}]),
    AIMessage("Noted.", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}),
]

Make = Callable[[], BaseChatMessageHistory]


@pytest.fixture(scope="session")
def client() -> Iterator[Mneme]:
    with Mneme() as client:
        yield client


@pytest.fixture(params=["mneme", "in memory"])
def make(request: pytest.FixtureRequest, client: Mneme) -> Make:
    """Makes a history of either kind."""
    if request.param == "in memory":
        return InMemoryChatMessageHistory
    return lambda: MnemeChatMessageHistory(uuid.uuid4().hex, client, user_id="ada")


# --- histories ------------------------------------------------------------------------------------


def test_messages_come_back_as_they_were_in_their_order(make: Make) -> None:
    history = make()
    assert history.messages == []
    history.add_messages(MESSAGES[:3])
    history.add_messages([])
    history.add_messages(MESSAGES[3:])
    assert history.messages == MESSAGES
    assert [type(message) for message in history.messages] == [type(one) for one in MESSAGES]


def test_messages_are_added_one_by_one(make: Make) -> None:
    history = make()
    history.add_user_message("one")
    history.add_ai_message("two")
    history.add_message(SystemMessage("three"))
    assert [message.text for message in history.messages] == ["one", "two", "three"]
    assert str(history) == "Human: one\nAI: two\nSystem: three"


def test_a_cleared_history_may_begin_anew(make: Make) -> None:
    history, other = make(), make()
    for each in (history, other):
        each.add_messages(MESSAGES)
    history.clear()
    assert history.messages == [] and other.messages == MESSAGES
    history.add_user_message("again")
    assert [message.text for message in history.messages] == ["again"]


def test_the_async_methods_do_the_same(make: Make) -> None:
    async def story() -> None:
        history = make()
        await history.aadd_messages(MESSAGES)
        assert await history.aget_messages() == MESSAGES
        await history.aclear()
        assert await history.aget_messages() == []

    asyncio.run(story())


def test_a_chain_goes_on_where_the_history_ended(make: Make) -> None:
    histories: dict[str, BaseChatMessageHistory] = {}
    chain = RunnableWithMessageHistory(
        RunnableLambda(lambda messages: AIMessage(str(len(messages)))),
        lambda session_id: histories.setdefault(session_id, make()),
    )

    def say(text: str, session_id: str) -> str:
        config: Any = {"configurable": {"session_id": session_id}}
        return chain.invoke([HumanMessage(text)], config).text

    assert [say("one", "a"), say("two", "a"), say("three", "b"), say("four", "a")] == list("1315")


def test_another_process_finds_the_latest_messages(client: Mneme) -> None:
    name = uuid.uuid4().hex
    mine = MnemeChatMessageHistory(name, user_id="ada")
    mine.add_messages(MESSAGES)
    mine.close()
    assert MnemeChatMessageHistory(name, client, user_id="ada", limit=2).messages == MESSAGES[-2:]
    assert MnemeChatMessageHistory(name, client, user_id="ben").messages == []


def test_a_chat_of_nobody_is_one_of_its_own(client: Mneme) -> None:
    name = uuid.uuid4().hex
    ada = MnemeChatMessageHistory(name, client, user_id="ada")
    nobody = MnemeChatMessageHistory(name, client)
    ada.add_messages(MESSAGES)
    assert nobody.messages == []
    nobody.add_user_message("again")
    assert [message.text for message in nobody.messages] == ["again"]
    nobody.clear()
    assert nobody.messages == [] and ada.messages == MESSAGES


# --- the retriever --------------------------------------------------------------------------------


@pytest.fixture
def user_id(client: Mneme) -> str:
    user_id = uuid.uuid4().hex
    for content, tags in (
        ("Ada flies to Lisbon on 12 June.", ["travel"]),
        ("Ada eats no nuts.", ["food"]),
        ("Ada eats a lot of fish and rice.", ["food", "fish"]),
    ):
        client.memories.create(
            content=content,
            user_id=user_id,
            tags=tags,
            metadata={"from": "test"},
            wait_for_index=True,
        )
    return user_id


def test_a_query_finds_documents(client: Mneme, user_id: str) -> None:
    retriever = MnemeRetriever(client=client, user_id=user_id)
    assert isinstance(retriever, BaseRetriever)
    first, *_ = retriever.invoke("When does Ada fly to Lisbon?")
    assert first.page_content == "Ada flies to Lisbon on 12 June."
    assert client.memories.get(first.id)["content"] == first.page_content
    assert first.metadata["tags"] == ["travel"] and first.metadata["metadata"] == {"from": "test"}
    assert first.metadata["score"] > 0 and first.metadata["user_id"] == user_id


def test_what_does_not_stand_is_left_out(client: Mneme, user_id: str) -> None:
    retriever = MnemeRetriever(client=client, user_id=user_id)
    assert retriever.invoke("What is the boiling point of lead?") == []
    assert MnemeRetriever(client=client, user_id="nobody").invoke("Lisbon") == []


def test_k_filters_and_options_narrow(client: Mneme, user_id: str) -> None:
    def texts(**given: Any) -> list[str]:
        retriever = MnemeRetriever(client=client, user_id=user_id, **given)
        return [document.page_content for document in retriever.invoke("What does Ada eat?")]

    everything: dict[str, Any] = {"include_low_confidence": True}
    assert len(texts(options=everything)) == 3 and len(texts(k=1, options=everything)) == 1
    assert texts(filters={"tags": "fish"}) == ["Ada eats a lot of fish and rice."]
    assert texts(options={**everything, "threshold": 0.99}) == []
    with pytest.raises(ValueError, match="k"):
        MnemeRetriever(client=client, k=0)


def test_it_runs_in_chains_and_in_async_code(client: Mneme, user_id: str) -> None:
    retriever = MnemeRetriever(client=client, user_id=user_id, k=1)
    chain = retriever | (lambda documents: documents[0].page_content)
    asked = "When does Ada fly to Lisbon?"
    assert chain.invoke(asked) == asyncio.run(chain.ainvoke(asked)) == chain.batch([asked])[0]


def test_it_connects_by_the_environment(user_id: str) -> None:
    retriever = MnemeRetriever(user_id=user_id)
    assert retriever.invoke("When does Ada fly to Lisbon?")
    retriever.client.close()


def test_a_query_may_be_long_or_empty(client: Mneme, user_id: str) -> None:
    retriever = MnemeRetriever(client=client, user_id=user_id, k=1)
    (first,) = retriever.invoke("When does Ada fly to Lisbon? " * 600)
    assert first.page_content == "Ada flies to Lisbon on 12 June."
    assert retriever.invoke("") == retriever.invoke(" \n") == []


def test_an_option_goes_before_the_field_of_its_name(client: Mneme, user_id: str) -> None:
    options = {"limit": 3, "include_low_confidence": True}
    retriever = MnemeRetriever(client=client, user_id=user_id, k=1, options=options)
    assert len(retriever.invoke("What does Ada eat?")) == 3
