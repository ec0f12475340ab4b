"""Memories and their storage against a real service; the framework's own storage says what is
meant of one.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

import pytest
from crewai import Agent, BaseLLM, Crew, Task
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.memory_events import MemoryQueryCompletedEvent, MemorySaveCompletedEvent
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord
from mneme_client import Mneme
from mneme_crewai import MnemeMemory, MnemeStorage

NOW = datetime(2026, 5, 1, 12)


@pytest.fixture(scope="session")
def client() -> Iterator[Mneme]:
    with Mneme() as client:
        yield client


@pytest.fixture(params=["mneme", "lancedb"])
def storage(request: pytest.FixtureRequest, client: Mneme, tmp_path: Path) -> Any:
    """Either storage."""
    if request.param == "lancedb":
        return LanceDBStorage(path=str(tmp_path), vector_dim=4)
    return MnemeStorage(client, user_id=uuid.uuid4().hex)


@pytest.fixture
def memory(client: Mneme) -> MnemeMemory:
    return MnemeMemory(client, user_id=uuid.uuid4().hex)


def record(content: str, scope: str = "/", **given: Any) -> MemoryRecord:
    made = {"created_at": NOW, "embedding": [0.1, 0.2, 0.3, 0.4], **given}
    return MemoryRecord(content=content, scope=scope, **made)


RECORDS = {
    "/": ["root"],
    "/a": ["in a"],
    "/a/b": ["in b", "also in b"],
    "/a/c/d": ["in d"],
    "/x": ["in x"],
}


def filled(storage: Any) -> None:
    storage.save([record(text, scope) for scope, texts in RECORDS.items() for text in texts])


def texts(records: list[MemoryRecord]) -> set[str]:
    return {one.content for one in records}


# --- what both storages do ------------------------------------------------------------------------


def test_a_record_comes_back_as_it_was(storage: Any) -> None:
    kept = record(
        "Ada eats no nuts. 🥜",
        "/users/ada",
        categories=["food", "health"],
        metadata={"from": "test", "n": 1},
        importance=0.9,
        source="chat",
        private=True,
    )
    assert isinstance(storage, StorageBackend)
    storage.save([kept, record("another")])
    got = storage.get_record(kept.id)
    compared = ("id", "content", "scope", "categories", "metadata", "source", "private")
    assert {name: getattr(got, name) for name in compared} == {
        name: getattr(kept, name) for name in compared
    }
    assert got.importance == pytest.approx(0.9) and got.created_at == NOW
    assert storage.get_record("nobody") is None


def test_a_scope_holds_what_is_below_it(storage: Any) -> None:
    filled(storage)
    assert storage.count() == 6 and storage.count("/a") == 4 and storage.count("/a/b") == 2
    assert texts(storage.list_records("/a")) == {"in a", "in b", "also in b", "in d"}
    assert texts(storage.list_records("/a/c/d")) == {"in d"}
    assert storage.count("/nowhere") == 0 and storage.list_records("/nowhere") == []


def test_scopes_tell_of_their_children(storage: Any) -> None:
    filled(storage)
    assert sorted(storage.list_scopes("/")) == ["/a", "/x"]
    assert sorted(storage.list_scopes("/a")) == ["/a/b", "/a/c"]
    assert storage.list_scopes("/a/b") == []
    info = storage.get_scope_info("/a")
    assert (info.path, info.record_count) == ("/a", 4)
    assert sorted(info.child_scopes) == ["/a/b", "/a/c"]
    assert info.oldest_record == info.newest_record == NOW


def test_categories_are_counted(storage: Any) -> None:
    storage.save(
        [
            record("1", "/a", categories=["x", "y"]),
            record("2", "/a", categories=["x"]),
            record("3", "/b", categories=["x", "z"]),
        ]
    )
    assert storage.list_categories() == {"x": 3, "y": 1, "z": 1}
    assert storage.list_categories("/a") == {"x": 2, "y": 1}
    assert storage.get_scope_info("/a").categories == ["x", "y"]


def test_records_are_listed_page_by_page(storage: Any) -> None:
    storage.save([record(str(n), created_at=NOW + timedelta(minutes=n)) for n in range(7)])
    pages = [storage.list_records(limit=3, offset=at) for at in (0, 3, 6)]
    assert [[one.content for one in page] for page in pages] == [
        ["6", "5", "4"],
        ["3", "2", "1"],
        ["0"],
    ]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"categories": ["x"]}, {"2", "3"}),
        ({"scope_prefix": "/a"}, {"3"}),
        ({"scope_prefix": "/a", "categories": ["x"]}, {"2", "3"}),
        ({"older_than": NOW - timedelta(days=1)}, {"1", "3"}),
        ({"metadata_filter": {"kind": "k2"}}, {"1", "3"}),
        ({"record_ids": ["r1", "r3", "nobody"]}, {"2"}),
    ],
)
def test_what_meets_all_conditions_is_deleted(
    storage: Any, asked: dict[str, Any], left: set[str]
) -> None:
    old = NOW - timedelta(days=2)
    storage.save(
        [
            record("1", "/a", id="r1", categories=["x"], metadata={"kind": "k1"}),
            record("2", "/a/b", id="r2", metadata={"kind": "k2"}, created_at=old),
            record("3", "/c", id="r3", metadata={"kind": "k3"}),
        ]
    )
    assert storage.delete(**asked) == 3 - len(left)
    assert texts(storage.list_records()) == left


def test_a_scope_is_reset(storage: Any) -> None:
    filled(storage)
    storage.reset("/a/b")
    assert storage.count("/a/b") == 0 and storage.count() == 4
    storage.reset()
    assert storage.count() == 0


def test_a_record_is_replaced(storage: Any) -> None:
    kept = record("before", "/a", categories=["x"])
    storage.save([kept])
    changed = {"content": "after", "scope": "/b", "importance": 1.0, "categories": ["y"]}
    storage.update(kept.model_copy(update=changed))
    got = storage.get_record(kept.id)
    assert (got.content, got.scope, got.importance, got.categories) == ("after", "/b", 1.0, ["y"])
    assert storage.count() == 1


def test_a_scope_is_no_beginning_of_a_name(client: Mneme) -> None:
    storage = MnemeStorage(client, user_id=uuid.uuid4().hex)
    storage.save([record("in a", "/a"), record("in ab", "/ab")])
    assert texts(storage.list_records("/a")) == {"in a"} and storage.count("/a") == 1
    storage.reset("/a")
    assert texts(storage.list_records()) == {"in ab"}


def test_a_star_is_a_name_like_any_other(client: Mneme, memory: MnemeMemory) -> None:
    memory.remember("I like red wine.", categories=["x"], metadata={"k": 1}, source="ada")
    memory.remember("I like old wine.", source="ada", private=True)
    assert len(memory.recall("Which wine do I like?", source="*")) == 1
    assert memory.recall("Which wine do I like?", categories=["*"]) == []
    for asked in ({"record_ids": ["*"]}, {"categories": ["*"]}, {"metadata_filter": {"k": "*"}}):
        assert memory.forget(**asked) == 0
    with pytest.raises(ValueError, match="not found"):
        memory.update("*", content="x")


# --- the memory -----------------------------------------------------------------------------------


def test_what_is_remembered_is_recalled(memory: MnemeMemory) -> None:
    kept = memory.remember(
        "Ada flies to Lisbon on 12 June.", "/trips", ["travel"], {"n": 1}, importance=0.9
    )
    memory.remember_many(["The cat is named Minka.", "The garage code is 4711."])
    first, *_ = memory.recall("When does Ada fly to Lisbon?")
    assert (first.record.id, first.record.scope) == (kept.id, "/trips")
    assert first.record.categories == ["travel"] and first.record.metadata == {"n": 1}
    assert first.match_reasons == ["semantic", "recency", "importance"] and first.score > 0.5
    assert memory.recall("What is the boiling point of lead?") == [] == memory.recall(" ")


def test_a_query_may_be_long_or_empty(client: Mneme, memory: MnemeMemory) -> None:
    memory.remember("Ada eats no nuts.")
    (match,) = memory.recall("What must Ada not eat? " * 600)
    assert match.record.content == "Ada eats no nuts."
    assert memory.recall(" ") == [] and MnemeStorage(client).find(" ") == []


def test_recall_keeps_to_scopes_categories_and_limit(memory: MnemeMemory) -> None:
    for name, scope, category in (("red", "/a", "x"), ("white", "/a/b", "y"), ("pink", "/c", "x")):
        memory.remember(f"I like {name} wine.", scope, [category])

    def found(**given: Any) -> set[str]:
        matches = memory.recall("Which wine do I like?", **given)
        return {match.record.content.split()[2] for match in matches}

    assert found() == {"red", "white", "pink"}
    assert found(scope="/a") == {"red", "white"} and found(categories=["x"]) == {"red", "pink"}
    assert found(scope="/a", categories=["x"]) == {"red"} and len(found(limit=1)) == 1


def test_private_memories_are_their_sources(memory: MnemeMemory) -> None:
    memory.remember("The garage code is 4711.", source="ada", private=True)

    def codes(**given: Any) -> int:
        return len(memory.recall("What is the garage code?", **given))

    assert codes() == codes(source="ben") == 0
    assert codes(source="ada") == codes(include_private=True) == 1


def test_a_root_scope_is_above_everything(client: Mneme, memory: MnemeMemory) -> None:
    user_id = uuid.uuid4().hex
    crew = MnemeMemory(client, user_id=user_id, root_scope="/crew/one")
    other = MnemeMemory(client, user_id=user_id, root_scope="/crew/two")
    assert crew.remember("I like red wine.", "/a").scope == "/crew/one/a"
    assert crew.remember("I like old wine.").scope == "/crew/one"
    assert len(crew.recall("Which wine do I like?")) == 2
    assert other.recall("Which wine do I like?") == []
    assert crew.list_scopes() == ["/crew/one/a"] and crew.info().record_count == 2
    assert "/crew/one/a (1 records)" in crew.tree()
    assert other.forget() == 0 and crew.forget(scope="/a") == 1
    assert memory.recall("Which wine do I like?") == []  # of another user


def test_views_of_a_memory_keep_to_their_scopes(memory: MnemeMemory) -> None:
    view = memory.scope("/a")
    view.remember("I like red wine.")
    memory.remember("I like white wine.", "/b")
    memory.remember("I like pink wine.", "/c")
    assert [match.record.scope for match in view.recall("Which wine do I like?")] == ["/a"]
    both = memory.slice(["/a", "/b"]).recall("Which wine do I like?")
    assert {match.record.scope for match in both} == {"/a", "/b"}


def test_a_record_is_changed_and_forgotten(memory: MnemeMemory) -> None:
    kept = memory.remember("Ada lives in Porto.", "/a")
    changed = memory.update(kept.id, content="Ada lives in Faro.", importance=1.0)
    assert (changed.content, changed.scope, changed.importance) == ("Ada lives in Faro.", "/a", 1.0)
    (match,) = memory.recall("Where does Ada live?")
    assert match.record.content == "Ada lives in Faro."
    assert memory.forget(record_ids=[kept.id]) == 1 and memory.list_records() == []
    with pytest.raises(ValueError, match="not found"):
        memory.update(kept.id, content="x")


def test_a_read_only_memory_keeps_nothing(client: Mneme, memory: MnemeMemory) -> None:
    reader = MnemeMemory(client, user_id=uuid.uuid4().hex, read_only=True)
    assert reader.remember("x") is None and reader.remember_many(["x"]) == []
    assert reader.list_records() == []


def test_its_events_are_the_frameworks(memory: MnemeMemory) -> None:
    heard: list[Any] = []
    with crewai_event_bus.scoped_handlers():
        for kind in (MemorySaveCompletedEvent, MemoryQueryCompletedEvent):
            crewai_event_bus.on(kind)(lambda source, event: heard.append(event))
        memory.remember("I like red wine.")
        memory.recall("Which wine do I like?")
        crewai_event_bus.flush()
    assert {type(event) for event in heard} == {MemorySaveCompletedEvent, MemoryQueryCompletedEvent}
    assert [len(event.results) for event in heard if event.type == "memory_query_completed"] == [1]


def test_a_storage_says_that_it_searches_for_texts(client: Mneme) -> None:
    storage = MnemeStorage(client)
    with pytest.raises(TypeError, match="texts"):
        storage.search([0.1, 0.2])
    with pytest.raises(TypeError, match="texts"):
        asyncio.run(storage.asearch([0.1, 0.2]))


def test_a_storage_is_awaited(client: Mneme) -> None:
    async def story() -> None:
        storage = MnemeStorage(client, user_id=uuid.uuid4().hex)
        await storage.asave([record("a"), record("b", "/x")])
        assert await storage.adelete(scope_prefix="/x") == 1 and storage.count() == 1

    asyncio.run(story())


class Scripted(BaseLLM):
    """Answers every task alike, and takes no memories out of it."""

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        heard.append(str(messages))
        return "Final Answer: The boarding gate is B7."


heard: list[str] = []


def test_a_crew_keeps_what_came_of_its_tasks(client: Mneme, memory: MnemeMemory) -> None:
    agent = Agent(
        role="guide", goal="Guide", backstory="You guide.", llm=Scripted(model="scripted")
    )

    def ask(text: str) -> str:
        task = Task(description=text, expected_output="a gate", agent=agent)
        return Crew(agents=[agent], tasks=[task], memory=memory).kickoff().raw

    assert ask("Find the boarding gate.") == "The boarding gate is B7."
    (kept,) = memory.list_records()
    assert "The boarding gate is B7." in kept.content
    heard.clear()
    ask("Which boarding gate was it?")
    assert "Relevant memories:" in heard[0] and "B7" in heard[0]


def test_it_connects_by_the_environment() -> None:
    memory = MnemeMemory(user_id=uuid.uuid4().hex)
    memory.remember("I like red wine.")
    assert len(memory.recall("Which wine do I like?")) == 1
