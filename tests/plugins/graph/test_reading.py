"""Every memory is read for its mentions, once a text, in the background; what they lead a search
to, and what is left of them when memories change or go.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import serve_app
from plugins.graph import reading
from plugins.graph.proximity import Neighbourhood, pagerank
from plugins.graph.rows import MENTIONS, NAMES, READING, SOURCES, UNREAD, EntityRow
from runtime.api.jobs import Again
from runtime.inference import InferenceUnavailable, MiniLmEmbedder, Models, language
from tests.support import worlds
from tests.support.in_process import InProcess
from tests.support.shard_harness import ShardHarness

pytestmark = pytest.mark.usefixtures("without_delay")
LIGHTHOUSE = "The Blue Heron lighthouse was designed by Ines Moreau in 1902."
ASKED = "Who designed the Blue Heron lighthouse?"


class Reader:
    """A service with the language heads, and an account of it."""

    def __init__(self, directory: Path, models: Path, **settings: Any):
        self.embedder = MiniLmEmbedder(models, timeout_seconds=120)
        self.service = InProcess(directory, embedder=self.embedder, **settings)
        self.me = self.service.register("ada@example.com")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.service.request(method, f"/v1{path}", body, who=self.me)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def remember(self, content: str, **fields: Any) -> str:
        return self.ask("POST", "/memories", {"content": content, "wait_for_index": True} | fields)[
            "id"
        ]

    def read(self) -> dict[str, dict[str, Any]]:
        """The entities by name, once all is read."""
        self.service.settle()
        listed = self.ask("GET", "/knowledge-graph/entities?limit=100")
        assert listed["total_count"] == self.ask("GET", "/knowledge-graph/stats")["entities"]
        return {item["name"]: item for item in listed["items"]}

    def found(self, query: str, **asked: Any) -> list[str]:
        body = {"query": query, **asked}
        return [hit["content"] for hit in self.ask("POST", "/search/graph", body)["results"]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def reader(tmp_path: Path, models: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path, models)
    yield reader
    reader.service.close()


def test_a_stored_memory_answers_and_a_deleted_one_does_not(reader: Reader) -> None:
    stored = reader.remember(LIGHTHOUSE)
    assert reader.found(ASKED) == [LIGHTHOUSE]  # before it is read
    entities = reader.read()
    assert set(entities) == {"Blue Heron lighthouse", "Ines Moreau"}
    assert entities["Ines Moreau"]["type"] == "person"
    assert reader.found(ASKED) == reader.found("what about ines moreau") == [LIGHTHOUSE]
    details = reader.ask("GET", "/knowledge-graph/entities/blue heron")
    assert [memory["memory_id"] for memory in details["source_memories"]] == [stored]
    reader.ask("DELETE", f"/memories/{stored}")
    assert reader.read() == {} and reader.found(ASKED) == []
    assert empty(reader)


def test_however_it_came_in(reader: Reader) -> None:
    reader.ask("POST", "/memories/raw", {"content": "We saw Lisbon."})
    reader.ask("POST", "/memories/batch", {"memories": [{"content": "We saw Rotterdam."}]})
    said = [{"role": "user", "name": "Mira", "content": "We met Priya in Vienna on Monday."}]
    reader.ask("POST", "/memories/process", {"messages": said})
    assert set(reader.read()) >= {"Lisbon", "Rotterdam", "Priya", "Vienna"}


def test_a_rewritten_memory_mentions_what_it_says_now(reader: Reader) -> None:
    stored = reader.remember("We met Ana in Porto.")
    assert set(reader.read()) == {"Ana", "Porto"}
    reader.ask("PATCH", f"/memories/{stored}", {"content": "We met Ana in Faro."})
    assert set(reader.read()) == {"Ana", "Faro"}
    reader.ask("PATCH", f"/memories/{stored}", {"importance": 0.9})
    assert set(reader.read()) == {"Ana", "Faro"}


def test_my_sister_is_who_she_was_said_to_be_for_as_long_as_that_is_stored(reader: Reader) -> None:
    reader.remember("I called my sister today.", speaker="Mira")
    assert set(reader.read()) == {"Mira", "Mira's sister"}
    told = reader.remember("My sister Ana lives in Porto.", speaker="Mira")
    reader.remember("My sister likes the sea.", speaker="Mira")
    reader.remember("I called my sister today.", speaker="Tomas")
    ana = reader.read()["Ana"]
    assert (ana["mention_count"], ana["aliases"]) == (3, ["Mira's sister"])
    assert len(reader.found("What does Mira's sister like?", depth=1)) == 3
    reader.ask("DELETE", f"/memories/{told}")
    entities = reader.read()
    assert set(entities) == {"Mira", "Tomas", "Mira's sister", "Tomas's sister"}
    assert entities["Mira's sister"]["mention_count"] == 2


def test_a_name_that_begins_a_sentence_counts_where_it_is_known(reader: Reader) -> None:
    reader.remember("Pottery was fun.")
    assert reader.read() == {}
    reader.remember("We had dinner with Pottery, our neighbour's dog.")
    reader.remember("Pottery barked all night.")
    entities = reader.read()
    assert "Pottery" not in entities or entities["Pottery"]["mention_count"] <= 2


def test_what_claims_alone_speak_of_is_a_value_and_no_entity(reader: Reader) -> None:
    said = [{"role": "user", "name": "Mira", "content": "I love karaoke. I live in Lisbon."}]
    reader.ask("POST", "/memories/process", {"messages": said})
    assert set(reader.read()) == {"Mira", "Lisbon"}
    told = reader.ask("POST", "/knowledge-graph/query", {"entity": "Mira"})["relationships"]
    assert {(each["type"], each["target"]["name"]) for each in told} == {
        ("likes", "karaoke"),
        ("lives_in", "Lisbon"),
    }
    reader.ask("POST", "/knowledge-graph/entities", {"name": "karaoke"})
    assert "karaoke" in reader.read()


def test_two_hops_lead_over_what_memories_mention(reader: Reader) -> None:
    met = "We met Ines Moreau at the Kettle Club."
    reader.remember(LIGHTHOUSE)
    reader.remember(met)
    reader.remember("We spent a week in Vienna.")
    reader.read()
    assert reader.found(ASKED, depth=1) == [LIGHTHOUSE]
    assert reader.found(ASKED, depth=2) == [LIGHTHOUSE, met]


def test_each_text_is_read_once_and_a_restart_goes_on(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "READING_MEMORIES_PER_STEP", 2)
    embedder = MiniLmEmbedder(models, timeout_seconds=120)
    heads, read = embedder.read_language, list[str]()
    is_down = False

    async def counted(texts: Sequence[str]) -> list[language.Reading]:
        if is_down:
            raise InferenceUnavailable("down")
        read.extend(texts)
        return await heads(texts)

    monkeypatch.setattr(embedder, "read_language", counted)
    harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(embedder))
    me = harness.register()
    texts = [f"We saw {name} together." for name in ("Ana", "Ben", "Priya", "Tomas", "Ines")]
    for text in texts[:3]:
        harness("memories.create", {"content": text}, who=me)
    harness.settle()
    is_down = True
    for text in texts[3:]:
        harness("memories.create", {"content": text}, who=me)
    harness.until(lambda: harness.status()["jobs"]["failures_total_by_kind"]["graph.read"] > 0)
    harness.reopen()
    is_down = False
    harness.settle()
    assert sorted(read) == sorted(texts)
    listed = harness("graph.entities.list", who=me).body["items"]
    assert {item["name"] for item in listed} == {"Ana", "Ben", "Priya", "Tomas", "Ines"}
    harness.close()
    asyncio.run(embedder.close())


def test_what_is_ingested_mentions_at_once_and_is_read_by_no_job(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = MiniLmEmbedder(models, timeout_seconds=120)
    heads, read = embedder.read_language, list[str]()

    async def counted(texts: Sequence[str]) -> list[language.Reading]:
        read.extend(texts)
        return await heads(texts)

    monkeypatch.setattr(embedder, "read_language", counted)
    monkeypatch.setattr(reading, "READING_LOOKS_MAX", 1_000)
    monkeypatch.setattr(reading, "processor_seconds", itertools.count().__next__)  # it is busy
    yielding = worlds.settings(graph__reading_share=0.5)
    harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(embedder), yielding)
    me = harness.register()

    def names() -> set[str]:
        return {item["name"] for item in harness("graph.entities.list", who=me).body["items"]}

    said = [
        {"role": "user", "name": "Mira", "content": content}
        for content in ("My sister Ana lives in Kiel.", "She and Ben came by train.")
    ]
    harness("memories.create", {"messages": said, "infer": True}, who=me)
    assert names() == {"Mira", "Ana", "Kiel", "Ben"}
    harness("memories.create", {"content": "We saw Priya together."}, who=me)
    harness("memories.create", {"content": "I met Tomas in Riga.", "infer": True}, who=me)
    assert names() >= {"Tomas", "Riga"} and "Priya" not in names() and not read
    monkeypatch.setattr(reading, "processor_seconds", lambda: 0.0)
    harness.settle()
    assert read == ["We saw Priya together."] and "Priya" in names()
    harness.close()
    asyncio.run(embedder.close())


def test_reading_waits_while_its_process_is_busy(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, looks = Reader(tmp_path, models, graph__reading_share=0.5), list[float]()

    def busy() -> float:
        looks.append(1)
        return 1e6 * min(len(looks), 4)

    monkeypatch.setattr(reading, "READING_LOOKS_MAX", 50)
    monkeypatch.setattr(reading, "processor_seconds", busy)
    reader.remember(LIGHTHOUSE)
    reader.service.until(lambda: len(looks) >= 6)
    monkeypatch.undo()
    assert "Ines Moreau" in reader.read()
    reader.service.close()


def test_all_steps_together_take_their_share(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, pauses = Reader(tmp_path, models, graph__reading_share=0.2), list[int]()

    def again(payload: dict[str, Any], delay_ms: int = 0) -> Again:
        pauses.append(delay_ms)
        return Again(payload, delay_ms=delay_ms)

    took = itertools.count()
    monkeypatch.setattr(reading, "Again", again)
    monkeypatch.setattr(reading, "READING_LOOKS_MAX", 0)
    clock = SimpleNamespace(monotonic=lambda: next(took) / 100)
    monkeypatch.setattr(reading, "time", clock)
    for number in range(reading.READING_MEMORIES_PER_STEP + 1):
        reader.remember(f"Ines met guest number {number}.")
    reader.read()
    assert pauses and set(pauses) == {40}  # after ten milliseconds
    reader.service.close()


def test_a_walk_comes_by_what_two_lead_to_more_often() -> None:
    starts = [entity(ordinal, mentions) for ordinal, mentions in ((0, 1), (1, 99))]
    around = Neighbourhood({0: 0, 1: 1}, {10: (2, 1), 11: (3, 1), 12: (4, 1)})
    around.edges = [(0, 2), (1, 2), (0, 3), (1, 4)]
    ranks = pagerank(around, starts)
    assert ranks[2] > ranks[3] > ranks[4] > 0
    assert ranks.sum() == pytest.approx(1, abs=1e-3)


def entity(ordinal: int, mentions: int) -> EntityRow:
    name = f"entity {ordinal}"
    return EntityRow("", ordinal, name, name, "person", 0, 0, mentions=mentions)


def empty(reader: Reader) -> bool:
    """Whether the account has no mention left, nor anything that is to be read."""
    shard = reader.service.shard
    with shard.store.snapshot() as snapshot:
        (scope,) = [scope for scope in snapshot.scopes() if scope.tenant]
        counts = [
            snapshot.bind(table, scope).count() for table in (MENTIONS, NAMES, SOURCES, UNREAD)
        ]
        state = snapshot.bind(READING, scope).get()
        return counts == [0, 0, 0, 0] and state is not None and not state.waits
