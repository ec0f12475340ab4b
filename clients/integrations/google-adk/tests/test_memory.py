"""The memory service against a real service of Mneme; the framework's own one in memory says what
is meant.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator

import pytest
from google.adk.events import Event
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai.types import Content, FunctionCall, Part
from mneme_client import Mneme, errors
from mneme_google_adk import MnemeMemoryService

APP = "app"
TIME = 1_767_225_600.0  # 2026-01-01T00:00:00Z


@pytest.fixture(scope="session")
def client() -> Iterator[Mneme]:
    with Mneme() as client:
        yield client


@pytest.fixture
def mneme(client: Mneme) -> MnemeMemoryService:
    return MnemeMemoryService(client)


@pytest.fixture(params=["mneme", "in memory"])
def memory(request: pytest.FixtureRequest) -> BaseMemoryService:
    """Either service."""
    if request.param == "mneme":
        return request.getfixturevalue("mneme")
    return InMemoryMemoryService()


@pytest.fixture
def user_id() -> str:
    return uuid.uuid4().hex


def event(text: str, author: str = "user", **given: object) -> Event:
    role = "user" if author == "user" else "model"
    return Event(
        id=uuid.uuid4().hex,
        author=author,
        timestamp=TIME,
        content=Content(role=role, parts=[Part(text=text)]),
        **given,
    )


def session(user_id: str, *events: Event, name: str = "monday") -> Session:
    return Session(id=name, app_name=APP, user_id=user_id, events=list(events))


async def texts(memory: BaseMemoryService, user_id: str, query: str, app: str = APP) -> list[str]:
    found = await memory.search_memory(app_name=app, user_id=user_id, query=query)
    return [entry.content.parts[0].text for entry in found.memories]


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


# --- what both do ---------------------------------------------------------------------------------


def test_what_a_session_said_is_found(memory: BaseMemoryService, user_id: str) -> None:
    async def story() -> None:
        said = event("The cello teacher is called Jonas")
        await memory.add_session_to_memory(session(user_id, event("Lisbon is sunny"), said))
        found = await memory.search_memory(
            app_name=APP, user_id=user_id, query="Jonas cello teacher"
        )
        first = found.memories[0]
        assert first.content == said.content and first.author == "user" and first.id
        assert first.timestamp and first.timestamp.startswith("2026-01-01T00:00:00")
        assert await texts(memory, user_id, "zebra") == []

    run(story)


def test_a_session_may_be_added_again_as_it_grows(memory: BaseMemoryService, user_id: str) -> None:
    async def story() -> None:
        events = [event("My violin is old")]
        for number in range(3):
            await memory.add_session_to_memory(session(user_id, *events))
            events.append(event(f"The violin cost {number} euros"))
        found = await texts(memory, user_id, "violin")
        assert sorted(found) == [
            "My violin is old",
            "The violin cost 0 euros",
            "The violin cost 1 euros",
        ]

    run(story)


def test_events_are_added_as_a_delta(memory: BaseMemoryService, user_id: str) -> None:
    async def story() -> None:
        first, second = event("My violin is old"), event("The violin cost nothing")
        for events in ([first], [second], [first, second], []):
            await memory.add_events_to_memory(
                app_name=APP, user_id=user_id, events=events, session_id="monday"
            )
        assert len(await texts(memory, user_id, "violin")) == 2
        await memory.add_events_to_memory(
            app_name=APP, user_id=user_id, events=[event("A violin without a session")]
        )
        assert len(await texts(memory, user_id, "violin")) == 3

    run(story)


def test_apps_and_users_are_apart(memory: BaseMemoryService, user_id: str) -> None:
    async def story() -> None:
        await memory.add_session_to_memory(session(user_id, event("My violin is old")))
        assert await texts(memory, user_id, "violin") == ["My violin is old"]
        assert await texts(memory, f"not {user_id}", "violin") == []
        assert await texts(memory, user_id, "violin", app="another") == []

    run(story)


def test_events_without_a_text_are_not_found(memory: BaseMemoryService, user_id: str) -> None:
    async def story() -> None:
        call = Part(function_call=FunctionCall(name="violin", args={"violin": "violin"}))
        empty = Event(author="user")
        calling = Event(author="agent", content=Content(role="model", parts=[call]))
        await memory.add_session_to_memory(session(user_id, empty, calling))
        assert await texts(memory, user_id, "violin") == []

    run(story)


def test_a_deleted_memory_does_not_come_again(memory: BaseMemoryService, user_id: str) -> None:
    async def story() -> None:
        whole = session(user_id, event("My violin is old"), event("My violin was cheap"))
        await memory.add_session_to_memory(whole)
        found = await memory.search_memory(app_name=APP, user_id=user_id, query="violin old")
        doomed = found.memories[0]
        for user, name in (("another", doomed.id), (user_id, doomed.id), (user_id, doomed.id)):
            await memory.delete_memory(app_name=APP, user_id=user, memory_id=name)
        await memory.delete_memory(app_name=APP, user_id=user_id)
        assert await texts(memory, user_id, "violin") == ["My violin was cheap"]
        await memory.add_session_to_memory(whole)
        assert await texts(memory, user_id, "violin") == ["My violin was cheap"]

    run(story)


# --- what only Mneme's does -----------------------------------------------------------------------


def test_another_process_adds_nothing_twice(client: Mneme, user_id: str) -> None:
    async def story() -> None:
        whole = session(user_id, event("My violin is old"), event("My violin was cheap"))
        services = [MnemeMemoryService(client) for _ in range(4)]
        await asyncio.gather(*(each.add_session_to_memory(whole) for each in services))
        await services[0].add_session_to_memory(whole)
        kept = list(client.memories.list(user_id=user_id))
        assert sorted(one["content"] for one in kept) == ["My violin is old", "My violin was cheap"]
        assert {(one["app_id"], one["session_id"], one["role"]) for one in kept} == {
            (APP, "monday", "user")
        }

    run(story)


def test_what_was_deleted_elsewhere_does_not_come_again(client: Mneme, user_id: str) -> None:
    async def story() -> None:
        whole = session(user_id, event("My violin is old"))
        await MnemeMemoryService(client).add_session_to_memory(whole)
        (kept,) = client.memories.list(user_id=user_id)
        client.memories.delete(kept["id"])
        await MnemeMemoryService(client).add_session_to_memory(whole)
        assert list(client.memories.list(user_id=user_id)) == []

    run(story)


def test_an_event_that_comes_again_as_another_stays_as_it_was(client: Mneme, user_id: str) -> None:
    async def story() -> None:
        old, long, new = event("My violin is old"), event("viola"), event("My harp is new")
        where = {"app_name": APP, "user_id": user_id, "session_id": "monday"}
        await MnemeMemoryService(client).add_events_to_memory(events=[old, long], **where)
        other = [old.model_copy(deep=True), long.model_copy(deep=True), new]
        other[0].content.parts[0].text = "My violin is very old"
        other[1].content.parts[0].text = "viola " * 20_000
        service = MnemeMemoryService(client)
        for _ in range(2):
            await service.add_events_to_memory(
                events=other, custom_metadata={"source": "web"}, **where
            )
        kept = [memory["content"] for memory in client.memories.list(user_id=user_id)]
        assert kept == ["My harp is new", "viola", "My violin is old"]

    run(story)


def test_a_text_and_metadata_that_have_no_room_together_are_kept(
    mneme: MnemeMemoryService, user_id: str
) -> None:
    async def story() -> None:
        content = Content(role="user", parts=[Part(text="The violin is old. " * 600)])
        entry = MemoryEntry(content=content, custom_metadata={"x": "y" * 6_000})
        await mneme.add_memory(app_name=APP, user_id=user_id, memories=[entry])
        (found,) = (
            await mneme.search_memory(app_name=APP, user_id=user_id, query="violin")
        ).memories
        assert found.custom_metadata == entry.custom_metadata
        assert found.content.parts[0].text == "The violin is old. " * 600

    run(story)


def test_a_query_may_be_long_or_empty(mneme: MnemeMemoryService, user_id: str) -> None:
    async def story() -> None:
        await mneme.add_session_to_memory(session(user_id, event("My violin is old")))
        assert await texts(mneme, user_id, "How old is my violin? " * 600) == ["My violin is old"]
        assert await texts(mneme, user_id, "") == await texts(mneme, user_id, " \n") == []

    run(story)


def test_memories_are_written_directly(mneme: MnemeMemoryService, user_id: str) -> None:
    async def story() -> None:
        entry = MemoryEntry(
            content=Content(role="user", parts=[Part(text="Ada prefers aisle seats")]),
            author="ada",
            timestamp="2026-05-01T10:00:00Z",
            custom_metadata={"kind": "preference"},
        )
        named = entry.model_copy(update={"id": "m1"})
        await mneme.add_memory(
            app_name=APP, user_id=user_id, memories=[entry], custom_metadata={"from": "test"}
        )
        for _ in range(2):
            await mneme.add_memory(app_name=APP, user_id=user_id, memories=[named])
        found = await mneme.search_memory(app_name=APP, user_id=user_id, query="aisle seats")
        assert len(found.memories) == 2
        kinds = sorted(str(one.custom_metadata) for one in found.memories)
        assert kinds == ["{'from': 'test', 'kind': 'preference'}", "{'kind': 'preference'}"]
        assert {(one.author, one.timestamp) for one in found.memories} == {
            ("ada", "2026-05-01T10:00:00.000Z")
        }

    run(story)


def test_contents_come_back_whole_or_as_their_text(
    mneme: MnemeMemoryService, client: Mneme, user_id: str
) -> None:
    async def story() -> None:
        thought = Part(text="Hm, a secret.", thought=True)
        call = Part(function_call=FunctionCall(name="look", args={"x": [1]}))
        mixed = Content(role="model", parts=[thought, Part(text="The violin is old"), call])
        long = Content(role="user", parts=[Part(text="viola " * 20_000)])
        events = [Event(author="agent", content=mixed), Event(author="user", content=long)]
        await mneme.add_session_to_memory(session(user_id, *events))
        found = await mneme.search_memory(app_name=APP, user_id=user_id, query="the old violin")
        assert found.memories[0].content == mixed and found.memories[0].author == "agent"
        kept = list(client.memories.list(user_id=user_id))
        assert [one["role"] for one in kept] == ["user", "user", "assistant"]
        assert kept[1]["content"] + kept[0]["content"] == "viola " * 20_000
        assert "secret" not in kept[2]["content"]

    run(story)


def test_limit_and_filters_narrow(client: Mneme, user_id: str) -> None:
    async def story() -> None:
        events = [event(f"My violin number {number} is old") for number in range(3)]
        answer = event("Your violins are old", author="agent")
        await MnemeMemoryService(client).add_session_to_memory(session(user_id, *events, answer))
        assert len(await texts(MnemeMemoryService(client, limit=2), user_id, "old violin")) == 2
        by_user = MnemeMemoryService(client, filters={"role": "user"})
        assert "Your violins are old" not in await texts(by_user, user_id, "old violins")

    run(story)


def test_a_collection_that_is_not_there_is_an_error(client: Mneme, user_id: str) -> None:
    async def story() -> None:
        lost = MnemeMemoryService(client, collection_id="col_nowhere")
        with pytest.raises(errors.NotFound):
            await lost.add_session_to_memory(session(user_id, event("My violin is old")))

    run(story)


def test_it_connects_by_the_environment(user_id: str) -> None:
    async def story() -> None:
        service = MnemeMemoryService()
        await service.add_session_to_memory(session(user_id, event("My violin is old")))
        assert await texts(service, user_id, "violin") == ["My violin is old"]
        service.close()

    run(story)
