"""Sessions of the framework, kept by a real service; the framework's own one in SQLite says what is
meant.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage
from agents.memory import Session, SessionSettings
from mneme_client import Mneme
from mneme_openai_agents import MnemeSession
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

ITEMS: list[Any] = [
    {"role": "user", "content": "I eat no nuts. 🥜"},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Noted.", "annotations": [], "logprobs": []}],
    },
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "x"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "y" * 40_000},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
]


@pytest.fixture(scope="session")
def client() -> Iterator[Mneme]:
    with Mneme() as client:
        yield client


@pytest.fixture(params=["mneme", "sqlite"])
def make(request: pytest.FixtureRequest, client: Mneme) -> Callable[..., Any]:
    """Makes a session of either kind."""

    def of(**settings: Any) -> Any:
        name = uuid.uuid4().hex
        if request.param == "sqlite":
            return SQLiteSession(name, **settings)
        return MnemeSession(name, client, user_id="ada", **settings)

    return of


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def test_items_come_back_as_they_were_in_their_order(make: Callable[..., Any]) -> None:
    session = make()

    async def story() -> None:
        assert isinstance(session, Session)
        assert await session.get_items() == []
        await session.add_items(ITEMS[:2])
        await session.add_items([])
        await session.add_items(ITEMS[2:])
        assert await session.get_items() == ITEMS

    run(story)
    run(story_of_one_more(session))


def story_of_one_more(session: Any) -> Callable[[], Awaitable[None]]:
    async def story() -> None:  # in another event loop
        await session.add_items(ITEMS[:1])
        assert await session.get_items() == [*ITEMS, ITEMS[0]]

    return story


def test_a_limit_gives_the_latest_oldest_first(make: Callable[..., Any]) -> None:
    session, limited = make(), make(session_settings=SessionSettings(limit=2))

    async def story() -> None:
        for each in (session, limited):
            await each.add_items(ITEMS)
        assert await session.get_items(limit=2) == ITEMS[-2:]
        assert await session.get_items(limit=99) == ITEMS
        assert await session.get_items(limit=0) == []
        assert await limited.get_items() == ITEMS[-2:]
        assert await limited.get_items(limit=3) == ITEMS[-3:]

    run(story)


def test_the_latest_item_is_popped(make: Callable[..., Any]) -> None:
    session = make()

    async def story() -> None:
        await session.add_items(ITEMS)
        popped = [await session.pop_item() for _ in ITEMS]
        assert popped == ITEMS[::-1]
        assert await session.pop_item() is None and await session.get_items() == []

    run(story)


def test_a_cleared_session_is_empty_and_may_begin_anew(make: Callable[..., Any]) -> None:
    session, other = make(), make()

    async def story() -> None:
        for each in (session, other):
            await each.add_items(ITEMS)
        await session.clear_session()
        assert await session.get_items() == [] and await other.get_items() == ITEMS
        await session.add_items(ITEMS[:1])
        assert await session.get_items() == ITEMS[:1]

    run(story)


class Parrot(Model):
    """Answers with how many items it was given."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        given = args[1] if len(args) > 1 else kwargs["input"]
        text = ResponseOutputText(type="output_text", text=f"{len(given)}", annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("nobody asks for it")


def test_a_runner_goes_on_where_the_session_ended(make: Callable[..., Any]) -> None:
    session, agent = make(), Agent(name="parrot", model=Parrot())
    config = RunConfig(tracing_disabled=True)
    told = [
        Runner.run_sync(agent, text, session=session, run_config=config).final_output
        for text in ("one", "two", "three")
    ]
    assert told == ["1", "3", "5"]


# --- what only the service has --------------------------------------------------------------------


def test_another_process_finds_the_conversation(client: Mneme) -> None:
    name = uuid.uuid4().hex

    async def story() -> None:
        mine = MnemeSession(name, user_id="ada")
        await mine.add_items(ITEMS)
        mine.close()
        assert await MnemeSession(name, client, user_id="ada").get_items() == ITEMS
        assert await MnemeSession(name, client, user_id="ben").get_items() == []

    run(story)


def test_earlier_conversations_of_the_user_are_recalled(client: Mneme) -> None:
    user = uuid.uuid4().hex

    async def story() -> None:
        monday, tuesday, stranger = (
            MnemeSession(f"{day}-{user}", client, user_id=of)
            for day, of in (("mon", user), ("tue", user), ("mon", f"not {user}"))
        )
        await monday.add_items([{"role": "user", "content": "I eat no nuts."}])
        await monday.add_items([{"role": "assistant", "content": "So you eat no nuts."}])
        await tuesday.add_items([{"role": "user", "content": "What must I not eat, nuts?"}])
        for memory in client.memories.list(user_id=user):
            client.wait_ready(memory)
        assert await tuesday.recall("What must I not eat?") == ["I eat no nuts."]
        assert await stranger.recall("What must I not eat?") == []

    run(story)


def test_a_session_of_nobody_is_one_of_its_own(client: Mneme) -> None:
    async def story() -> None:
        name = uuid.uuid4().hex
        ada, nobody = MnemeSession(name, client, user_id="ada"), MnemeSession(name, client)
        await ada.add_items([{"role": "user", "content": "I eat no nuts."}])
        assert await nobody.get_items() == [] and await nobody.pop_item() is None
        await nobody.add_items([{"role": "user", "content": "I eat no tofu."}])
        await nobody.clear_session()
        assert len(await ada.get_items()) == 1
        for memory in client.memories.list(session_id=name):
            client.wait_ready(memory)
        other = MnemeSession(uuid.uuid4().hex, client)
        assert "I eat no nuts." not in await other.recall("Who eats no nuts?", limit=100)

    run(story)
    with pytest.raises(ValueError, match="user_id is an empty text"):
        MnemeSession("monday", client, user_id="")


def test_a_query_may_be_long_or_empty(client: Mneme) -> None:
    async def story() -> None:
        user = uuid.uuid4().hex
        monday, tuesday = (MnemeSession(f"{day}-{user}", client, user_id=user) for day in "mt")
        await monday.add_items([{"role": "user", "content": "I eat no nuts."}])
        (memory,) = client.memories.list(user_id=user)
        client.wait_ready(memory)
        assert await tuesday.recall("What must I not eat? " * 600) == ["I eat no nuts."]
        assert await tuesday.recall("") == await tuesday.recall(" \n") == []

    run(story)


def test_parallel_additions_keep_together(client: Mneme) -> None:
    session = MnemeSession(uuid.uuid4().hex, client)

    async def story() -> None:
        await asyncio.gather(
            *(
                session.add_items([{"role": "user", "content": f"{n}.{m}"} for m in range(3)])
                for n in range(6)
            )
        )
        texts = [item["content"] for item in await session.get_items()]
        groups = [texts[at : at + 3] for at in range(0, 18, 3)]
        assert sorted(groups) == [[f"{n}.{m}" for m in range(3)] for n in range(6)]

    run(story)
