"""Memories longer than the model reads: found by the meaning of any part, gone from every index
when they go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from plugins.memories import MEMORY_WORDS, limits
from plugins.memories import indexing as memory_indexing
from plugins.memories.passages import CHUNK_OWNERS, CHUNK_RUNS, MEMORY_CHUNKS
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.search_harness import SearchHarness

FILLER = "The weather stayed as it was and nobody came by. "
LONG = FILLER * 60  # 2,940 characters, four passages


class Nearsighted(WordEmbedder):
    """Reads the first 1,000 characters of a text, as a model reads its first tokens."""

    width, space = 128, "nearsighted/128"

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        """How often a word is there says nothing here, or the filler would drown all else."""
        return await super().embed(
            [" ".join(dict.fromkeys(text[:1_000].lower().split())) for text in texts]
        )


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path)
    harness.embedder = Nearsighted()
    harness.ask(Models(harness.embedder))
    yield harness
    harness.close()


def stored(library: SearchHarness) -> tuple[int, int, int]:
    """How many chunks, runs and owners are stored."""
    scope = library.scope_of(library.me)
    with library.shard.store.snapshot() as snapshot:
        tables = (MEMORY_CHUNKS.vectors, CHUNK_RUNS.records, CHUNK_OWNERS.records)
        return tuple(len(list(snapshot.bind(table, scope).keys())) for table in tables)


def best(library: SearchHarness, query: str, **fields: object) -> dict:
    return library.find(query, search_type="vector", **fields)["results"][0]


@pytest.mark.parametrize("end", [0.3, 0.6, 1.0])
def test_a_long_memory_is_found_by_the_meaning_of_any_part(
    library: SearchHarness, end: float
) -> None:
    at = int(60 * end)
    wanted = library.add(
        FILLER * at + "Copper violins resonate beautifully underwater. " + FILLER * (60 - at)
    )
    for i in range(20):
        library.add(LONG + f"Number {i}.")
    assert stored(library)[0] > 60
    for kind in ("vector", "hybrid"):
        found = library.find("copper violins resonate beautifully underwater", search_type=kind)
        assert found["evidence_ids"][0] == wanted
    library.reopen()
    library.ask(Models(library.embedder))
    assert best(library, "copper violins resonate beautifully underwater")["id"] == wanted


def test_a_short_memory_has_no_chunks(library: SearchHarness) -> None:
    library.add("Copper violins resonate.")
    assert stored(library) == (0, 0, 0)


def test_a_narrow_filter_leaves_chunks_of_others_out(library: SearchHarness) -> None:
    ends = {
        name: library.add(LONG + "Copper violins resonate.", user_id=name)
        for name in ("ann", "bob")
    }
    for i in range(6):
        library.add(LONG + f"Number {i}.", user_id="cid")
    for name, memory in ends.items():
        assert best(library, "copper violins resonate", user_id=name)["id"] == memory
        assert {
            hit["id"] for hit in library.find("copper violins resonate", user_id=name)["results"]
        } == {memory}
    assert (
        best(library, "copper violins resonate", filters={"user_id": {"in": ["bob", "cid"]}})["id"]
        == ends["bob"]
    )


def test_new_content_replaces_the_chunks_and_deletion_removes_them(library: SearchHarness) -> None:
    memory = library.add(LONG + "Copper violins resonate.")
    first = stored(library)
    assert first[0] == first[2] >= 3 and first[1] == 1
    assert library("memories.update", {"importance": 0.9}, who=library.me, id=memory).status == 200
    assert stored(library) == first
    library(
        "memories.update", {"content": LONG + "Purple elephants juggle."}, who=library.me, id=memory
    )
    assert stored(library) == first
    before, after = (
        best(library, query, include_low_confidence=True)["score"]
        for query in ("copper violins", "purple elephants")
    )
    assert after > before + 0.1
    library("memories.update", {"content": "Short now."}, who=library.me, id=memory)
    assert stored(library) == (0, 0, 0)
    library("memories.update", {"content": LONG}, who=library.me, id=memory)
    assert stored(library)[1] == 1
    assert library("memories.delete", who=library.me, id=memory).status == 200
    assert stored(library) == (0, 0, 0)
    assert library.find("purple elephants juggle", search_type="vector")["no_match"]


def test_everything_goes_with_delete_all(library: SearchHarness) -> None:
    for i in range(3):
        library.add(LONG + f"Number {i}.")
    library("memories.delete_all", query={"confirm": "delete-all-memories"}, who=library.me)
    library.settle()
    assert stored(library) == (0, 0, 0)


def test_what_is_indexed_later_is_found_as_well_in_steps_if_need_be(
    library: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_indexing, "PASSAGES_INDEXED_PER_STEP", 9)
    library.embedder.down = True
    items = [{"content": LONG + f"Number{i} violin{i} resonates{i}."} for i in range(7)]
    pending = library("memories.create_batch", {"memories": items}, who=library.me)
    assert pending.status == 202
    library.embedder.down = False
    library.settle()
    job = library(
        "memories.jobs.get", who=library.me, job_id=pending.body["status_url"].rpartition("/")[2]
    )
    assert job.body["status"] == "completed" and job.body["result"] == {"indexed": 7, "skipped": 0}
    for i, memory in enumerate(pending.body["memory_ids"]):
        assert best(library, f"number{i} violin{i} resonates{i}")["id"] == memory
    passages = [text for text in library.embedder.texts if text.startswith("the weather")]
    assert len(passages) == stored(library)[0] + 7  # each once


def test_words_of_all_passages_are_kept_up_to_a_bound(library: SearchHarness) -> None:
    library.add(" ".join(f"word{i}" for i in range(9_000)))
    scope = library.scope_of(library.me)
    with library.shard.store.snapshot() as snapshot:
        rows = [raw for _, raw in snapshot.bind(MEMORY_WORDS.words, scope).scan()]
    assert [len(raw) // 64 for raw in rows] == [limits.WORD_VECTORS_PER_MEMORY_MAX]
