"""Memories on their way from one embedding model to another: searches keep to one space until all
is there, writes land in both, and what is left over goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins import operator
from plugins.memories.limits import RE_EMBEDDED_ROWS_PER_STEP, VECTORS_FREED_AFTER_SECONDS
from plugins.memories.passages import MEMORY_CHUNKS
from plugins.memories.rows import MEMORY_SPACE, MEMORY_VECTORS, MEMORY_WORDS, SpaceRow
from plugins.memories.spaces import unknown_space
from runtime.inference import Models
from serve_app import Settings
from tests.support.embedding import WordEmbedder
from tests.support.search_harness import SearchHarness
from tests.support.shard_harness import CHEAP

OLD, NEW = "words/32", "newer/64"
LONG = "The weather stayed as it was and nobody came by. " * 60


class Newer(WordEmbedder):
    """Another model: wider, and with a space of its own."""

    space, width = NEW, 64


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path, operator.plugin)
    yield harness
    harness.close()


def take_over(library: SearchHarness) -> Newer:
    """From here on the newer model is the current one, and the one before is the previous one."""
    newer = Newer()
    library.ask(Models(newer, previous=library.embedder))
    return newer


def held(library: SearchHarness) -> dict[str, list[int]]:
    """Space -> ordinals that have a vector in it."""
    scope, found = library.scope_of(library.me), {}
    with library.shard.store.snapshot() as snapshot:
        for space, ordinal in snapshot.bind(MEMORY_VECTORS.vectors, scope).keys():  # noqa: SIM118
            found.setdefault(space, []).append(ordinal)
    return found


def state(library: SearchHarness) -> SpaceRow | None:
    with library.shard.store.snapshot() as snapshot:
        return snapshot.bind(MEMORY_SPACE, library.scope_of(library.me)).get()


def re_embed(library: SearchHarness, **fields: str) -> dict:
    answer = library(
        "internal.re_embed",
        {"email": "ada@example.com", **fields},
        who=library.secrets.operator_token,
    )
    assert answer.status == 200, answer
    return answer.body


def free(library: SearchHarness) -> None:
    """Let the time pass after which what is left over goes, and see it go."""
    models, library.settings = (
        library.shard.parts.models,
        Settings.load({**CHEAP, "clock": {"offset_seconds": VECTORS_FREED_AFTER_SECONDS + 60}}),
    )
    library.reopen()
    library.ask(models)
    library.settle()


def vectors_of(library: SearchHarness, space: str) -> dict[str, dict[tuple, bytes]]:
    """All that is stored of a space, without the sequences."""
    scope = library.scope_of(library.me)
    with library.shard.store.snapshot() as snapshot:
        return {
            table.name: {
                key: raw[8:] if skips else raw
                for key, raw in snapshot.bind(table, scope).scan()
                if key[0] == space
            }
            for table, skips in (
                (MEMORY_VECTORS.vectors, True),
                (MEMORY_CHUNKS.vectors, True),
                (MEMORY_WORDS.words, False),
            )
        }


def test_searches_keep_to_the_old_space_until_the_new_one_is_whole(
    library: SearchHarness, tmp_path: Path
) -> None:
    texts = [f"note {number} about rye bread {number * 7}" for number in range(80)]
    ids = [library.add(text) for text in (*texts, LONG)]
    assert len(ids) > RE_EMBEDDED_ROWS_PER_STEP
    assert held(library) == {OLD: list(range(81))} and state(library) is None
    newer = take_over(library)

    found = library.find("rye bread 77")
    assert not found["degraded"] and newer.texts == [] and found["evidence_ids"]
    added = library.add("a walk to the lighthouse")
    assert held(library)[NEW] == [81] and 81 in held(library)[OLD]
    assert state(library) == SpaceRow(OLD, NEW)
    assert library.ids("walk lighthouse")[0] == added
    library("memories.update", {"content": "a note on barley"}, who=library.me, id=ids[3])
    library("memories.delete", who=library.me, id=ids[4])
    assert held(library)[NEW] == [3, 81] and 4 not in held(library)[OLD]

    job_id = re_embed(library)["job_id"]
    assert re_embed(library)["job_id"] == job_id
    library.until(lambda: re_embed(library, job_id=job_id)["status"] == "switched")
    assert re_embed(library, job_id=job_id) == {
        "job_id": job_id, "status": "switched", "embedded": 80, "space": NEW, "error": None,
    }  # fmt: skip
    assert state(library) == SpaceRow(NEW, OLD)
    assert held(library)[NEW] == held(library)[OLD] == [n for n in range(82) if n != 4]
    asked = len(library.embedder.texts)
    assert library.ids("walk lighthouse")[0] == added
    assert len(library.embedder.texts) == asked and newer.texts[-1] == "walk lighthouse"
    last = library.add("bread with seeds")
    assert held(library)[NEW][-1] == 82 and 82 not in held(library)[OLD]

    free(library)
    assert list(held(library)) == [NEW] and state(library) == SpaceRow(NEW)

    fresh = SearchHarness(tmp_path / "fresh")
    try:
        fresh.ask(Models(Newer()))
        made = [fresh.add(text) for text in (*texts, LONG, "a walk to the lighthouse")]
        fresh("memories.update", {"content": "a note on barley"}, who=fresh.me, id=made[3])
        fresh("memories.delete", who=fresh.me, id=made[4])
        fresh.add("bread with seeds")
        assert vectors_of(library, NEW) == vectors_of(fresh, NEW)
        for query in ("rye bread 77", "walk lighthouse", "barley", "weather"):
            ours, theirs = library.find(query), fresh.find(query)
            assert [hit["content"] for hit in ours["results"]] == [
                hit["content"] for hit in theirs["results"]
            ]
    finally:
        fresh.close()
    assert library.ids("bread seeds")[0] == last


def test_a_changed_model_is_noticed_until_the_one_before_is_named(library: SearchHarness) -> None:
    library.add("rye bread")
    store, older, newer = library.shard.store, library.embedder, Newer()
    assert unknown_space(store, Models(older)) is None
    assert unknown_space(store, Models(newer)) == OLD
    assert unknown_space(store, Models(newer, previous=older)) is None
    assert unknown_space(store, Models(newer, accepts_any=True)) is None
    library.ask(Models(newer, previous=older))
    job_id = re_embed(library)["job_id"]
    library.until(lambda: re_embed(library, job_id=job_id)["status"] == "switched")
    assert unknown_space(store, Models(newer)) is None
    assert unknown_space(store, Models(older)) == NEW


def test_a_third_model_begins_anew_and_leaves_nothing_of_the_second(
    library: SearchHarness,
) -> None:
    """The second model's job is under way when the service is started with the third."""
    for number in range(70):
        library.add(f"note {number}")
    library.ask(Models(Newer(), previous=library.embedder))
    library.embedder.down = False
    second = take_over(library)
    job_id = re_embed(library)["job_id"]
    library.until(lambda: re_embed(library, job_id=job_id)["embedded"] > 0)
    third = Newer()
    third.space, third.width = "third/16", 16
    library.ask(Models(third, previous=library.embedder))
    library.until(lambda: re_embed(library, job_id=job_id)["status"] == "switched")
    another = re_embed(library)["job_id"]
    library.until(lambda: re_embed(library, job_id=another)["status"] == "switched")
    free(library)
    assert held(library) == {"third/16": list(range(70))} and second.texts


def test_without_the_model_before_searches_go_by_words_meanwhile(library: SearchHarness) -> None:
    memory_id = library.add("rye bread from the mill")
    library.ask(Models(Newer(), accepts_any=True))
    assert library.ids("rye bread") == [memory_id]
    job_id = re_embed(library)["job_id"]
    library.until(lambda: re_embed(library, job_id=job_id)["status"] == "switched")
    assert library.ids("rye", search_type="vector") == [memory_id]
