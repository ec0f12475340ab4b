"""Corrections through a real shard: what they replace, how they are found, how they are taken
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import serve_app
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.learning_harness import PLUGINS
from tests.support.shard_harness import ShardHarness

LISBON, PORTO = "Ada lives in Lisbon.", "Ada lives in Porto."


class CorrectionHarness(ShardHarness):
    """A shard harness with memories, search and corrections; the token of its account is `me`."""

    def __init__(self, directory: Path):
        self.embedder = WordEmbedder()
        super().__init__(directory, PLUGINS, Models(self.embedder))
        self.me = self.register()

    def add(self, content: str, **fields: Any) -> str:
        return self("memories.create", {"content": content, **fields}, who=self.me).body["id"]

    def correct(self, content: str, key: str | None = None, **fields: Any) -> dict[str, Any]:
        answer = self(
            "corrections.create",
            {"corrected_content": content, "correction_type": "factual", **fields},
            who=self.me,
            key=key,
        )
        assert answer.status in (201, 202), answer
        return answer.body

    def found(self, query: str) -> list[str]:
        return [
            hit["content"]
            for hit in self("search.search", {"query": query}, who=self.me).body["results"]
        ]

    def relevant(self, query: str, **fields: Any) -> list[str]:
        answer = self("corrections.relevant", who=self.me, query={"query": query, **fields})
        assert answer.status == 200, answer
        scores = [item["score"] for item in answer.body["items"]]
        assert scores == sorted(scores, reverse=True) and answer.body["total_count"] >= len(scores)
        return [item["corrected_content"] for item in answer.body["items"]]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[CorrectionHarness]:
    harness = CorrectionHarness(tmp_path)
    yield harness
    harness.close()


def test_a_correction_is_found_in_the_place_of_what_it_corrects(archive: CorrectionHarness) -> None:
    wrong = archive.add(LISBON, user_id="ada")
    made = archive.correct(PORTO, memory_id=wrong, metadata={"by": "Ada"})
    assert archive.found("Where does Ada live?") == [PORTO]
    assert (made["superseded_memory_id"], made["original_content"], made["user_id"]) == (
        wrong,
        LISBON,
        "ada",
    )
    assert (made["searchable"], made["processing_status"], made["metadata"]) == (
        True,
        "completed",
        {"by": "Ada"},
    )
    memory = archive("memories.get", who=archive.me, id=made["memory_id"]).body
    assert (memory["content"], memory["source_type"], memory["source_reference"]) == (
        PORTO,
        "correction",
        made["id"],
    )
    assert (
        archive("memories.get", who=archive.me, id=wrong).body["superseded_by_id"]
        == made["memory_id"]
    )


def test_deleting_it_brings_the_other_back(archive: CorrectionHarness) -> None:
    wrong = archive.add(LISBON)
    made = archive.correct(PORTO, memory_id=wrong)
    assert archive("corrections.delete", who=archive.me, id=made["id"]).body == {
        "id": made["id"],
        "deleted": True,
    }
    assert archive.found("Where does Ada live?") == [LISBON]
    assert archive("corrections.delete", who=archive.me, id=made["id"]).status == 404
    assert archive("memories.get", who=archive.me, id=made["memory_id"]).status == 404
    assert archive("corrections.get", who=archive.me, id=made["id"]).status == 404


def test_a_correction_of_a_correction_keeps_one_truth_whatever_goes(
    archive: CorrectionHarness,
) -> None:
    wrong = archive.add(LISBON)
    first = archive.correct(PORTO, memory_id=wrong)
    second = archive.correct("Ada lives in Faro.", memory_id=first["memory_id"])
    assert archive.found("Where does Ada live?") == ["Ada lives in Faro."]
    archive("corrections.delete", who=archive.me, id=first["id"])
    assert archive.found("Where does Ada live?") == ["Ada lives in Faro."]
    archive("corrections.delete", who=archive.me, id=second["id"])
    assert archive.found("Where does Ada live?") == [LISBON]


@pytest.mark.parametrize("gone", ["memory", "collection"])
def test_what_it_took_the_place_of_comes_back_however_it_goes(
    archive: CorrectionHarness, gone: str
) -> None:
    trips = archive("collections.create", {"name": "trips"}, who=archive.me).body["id"]
    wrong = archive.add(LISBON)
    made = archive.correct(PORTO, memory_id=wrong, collection_id=trips)
    if gone == "memory":
        archive("memories.delete", who=archive.me, id=made["memory_id"])
    else:
        archive("collections.delete", who=archive.me, id=trips)
    archive.settle()
    assert archive.found("Where does Ada live?") == [LISBON]
    memory = archive("memories.get", who=archive.me, id=wrong).body
    assert memory["superseded_by_id"] is None
    assert archive("corrections.list", who=archive.me).body["total_count"] == 0


@pytest.mark.parametrize("gone", ["memory", "collection"])
def test_what_it_took_the_place_of_is_named_for_as_long_as_it_is_there(
    archive: CorrectionHarness, gone: str
) -> None:
    trips = archive("collections.create", {"name": "trips"}, who=archive.me).body["id"]
    default = archive("collections.get_default", who=archive.me).body["id"]
    wrong = archive.add(LISBON, collection_id=trips)
    made = archive.correct(PORTO, memory_id=wrong, collection_id=default)
    assert (made["superseded_memory_id"], made["original_content"]) == (wrong, LISBON)
    if gone == "memory":
        archive("memories.delete", who=archive.me, id=wrong)
    else:
        archive("collections.delete", who=archive.me, id=trips)
    (left,) = archive("corrections.list", who=archive.me).body["items"]
    assert left == archive("corrections.get", who=archive.me, id=made["id"]).body
    assert (left["superseded_memory_id"], left["original_content"]) == (None, None)
    assert archive.found("Where does Ada live?") == [PORTO]


def test_deleting_the_memory_of_a_corrected_correction_hands_on(archive: CorrectionHarness) -> None:
    wrong = archive.add(LISBON)
    first = archive.correct(PORTO, memory_id=wrong)
    second = archive.correct("Ada lives in Faro.", memory_id=first["memory_id"])
    archive("memories.delete", who=archive.me, id=first["memory_id"])
    assert archive.found("Where does Ada live?") == ["Ada lives in Faro."]
    archive("memories.delete", who=archive.me, id=second["memory_id"])
    assert archive.found("Where does Ada live?") == [LISBON]


def test_what_was_handed_on_to_another_memory_comes_back_when_that_goes(tmp_path: Path) -> None:
    harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(WordEmbedder()))
    me = harness.register()
    wrong, newer = (
        harness("memories.create", {"content": content}, who=me).body["id"]
        for content in (LISBON, "Ada lives in Porto now.")
    )
    right = {"corrected_content": PORTO, "correction_type": "factual", "memory_id": wrong}
    corrected = harness("corrections.create", right, who=me).body["memory_id"]
    merged = {"keep": newer, "duplicates": [corrected]}
    assert harness("memories.merge", merged, who=me).status == 200
    harness("memories.delete", who=me, id=corrected)
    assert harness("memories.get", who=me, id=wrong).body["superseded_by_id"] == newer
    assert harness("memories.merged", who=me, id=newer).body["items"] == []
    harness("memories.delete", who=me, id=newer)
    memory = harness("memories.get", who=me, id=wrong).body
    assert (memory["conflict_status"], memory["superseded_by_id"]) == ("none", None)
    harness.close()


def test_an_agents_file_is_corrected_where_it_is(archive: CorrectionHarness) -> None:
    path = "/memories/ada.md"
    file = {"command": "create", "path": path, "file_text": LISBON}
    assert archive("memory_files.execute", file, who=archive.me).status in (200, 201)
    (memory,) = archive("memories.list", who=archive.me).body["items"]
    wrong = {"corrected_content": PORTO, "correction_type": "factual", "memory_id": memory["id"]}
    refused = archive("corrections.create", wrong, who=archive.me)
    assert refused.status == 409 and path in refused.body["message"]
    assert archive("memories.list", who=archive.me).body["total_count"] == 1


def test_what_is_superseded_already_is_not_corrected_again(archive: CorrectionHarness) -> None:
    wrong = archive.add(LISBON)
    archive.correct(PORTO, memory_id=wrong)
    again = {
        "corrected_content": "Ada lives in Faro.",
        "correction_type": "factual",
        "memory_id": wrong,
    }
    assert archive("corrections.create", again, who=archive.me).status == 409
    assert archive(
        "corrections.create", {**again, "memory_id": "mem_" + "0" * 32}, who=archive.me
    ).status in (403, 404)


def test_one_key_makes_one_correction_and_outlives_it(archive: CorrectionHarness) -> None:
    wrong = archive.add(LISBON)
    made, again = (archive.correct(PORTO, key="k", memory_id=wrong) for _ in range(2))
    assert again == made
    archive("corrections.delete", who=archive.me, id=made["id"])
    body = {"corrected_content": PORTO, "correction_type": "factual", "memory_id": wrong}
    assert archive("corrections.create", body, who=archive.me, key="k").status == 404


def test_a_correction_that_is_not_indexed_yet_says_so_and_becomes_ready(
    archive: CorrectionHarness,
) -> None:
    archive.embedder.down = True
    made = archive.correct(PORTO, key="k")
    assert (made["searchable"], made["processing_status"]) == (False, "processing")
    archive.embedder.down = False
    archive.settle()
    ready = archive.correct(PORTO, key="k")
    assert (ready["id"], ready["searchable"]) == (made["id"], True)


def test_relevant_ones_are_near_and_not_corrected_themselves(archive: CorrectionHarness) -> None:
    archive.correct("The bus to the lake leaves at nine.", correction_type="procedural")
    first = archive.correct(PORTO)
    archive.correct("Ada lives in Faro.", memory_id=first["memory_id"])
    found = archive.relevant("Where does Ada live in Faro?")
    assert found[0] == "Ada lives in Faro." and PORTO not in found
    assert archive.relevant("Where does Ada live in Faro?", correction_type="preference") == []
    archive.embedder.down = True
    assert archive.relevant("Which bus goes to the lake?") == [
        "The bus to the lake leaves at nine."
    ]


def test_lists_filter_and_page(archive: CorrectionHarness) -> None:
    made = [
        archive.correct(
            f"Fact {n}.", correction_type=("factual", "preference")[n % 2], user_id=f"u{n}"
        )["id"]
        for n in range(5)
    ]

    def listed(**query: Any) -> dict[str, Any]:
        return archive("corrections.list", who=archive.me, query=query).body

    assert [item["id"] for item in listed()["items"]] == made[::-1]
    assert [item["id"] for item in listed(correction_type="preference")["items"]] == [
        made[3],
        made[1],
    ]
    assert [item["id"] for item in listed(user_id="u2")["items"]] == [made[2]]
    page = listed(limit=2)
    assert (page["total_count"], page["has_more"]) == (5, True)
    assert [item["id"] for item in listed(limit=2, cursor=page["next_cursor"])["items"]] == [
        made[2],
        made[1],
    ]


def test_a_correction_goes_with_its_memory_and_with_its_collection(
    archive: CorrectionHarness,
) -> None:
    trips = archive("collections.create", {"name": "trips"}, who=archive.me).body["id"]
    inside, outside = archive.correct("One.", collection_id=trips), archive.correct("Two.")
    archive("collections.delete", who=archive.me, id=trips)
    assert archive("corrections.get", who=archive.me, id=inside["id"]).status == 404
    assert archive("corrections.list", who=archive.me).body["total_count"] == 1
    archive.settle()
    archive("memories.delete", who=archive.me, id=outside["memory_id"])
    assert archive("corrections.list", who=archive.me).body["total_count"] == 0


def test_another_account_can_neither_see_nor_take_it_back(archive: CorrectionHarness) -> None:
    made = archive.correct(PORTO)
    stranger = archive.register("eve@example.com", "Eve")
    assert archive("corrections.get", who=stranger, id=made["id"]).status == 403
    assert archive("corrections.delete", who=stranger, id=made["id"]).status == 403
    assert archive("corrections.relevant", who=stranger, query={"query": PORTO}).body["items"] == []


def test_what_takes_the_place_of_a_memory_is_found_where_that_was(
    archive: CorrectionHarness,
) -> None:
    scopes = {"user_id": "u", "agent_id": "g", "app_id": "a", "run_id": "r", "session_id": "s"}
    wrong = archive.add(LISBON, tags=["home"], **scopes)
    archive.correct(PORTO, memory_id=wrong)
    query = {"app_id": "a", "run_id": "r", "session_id": "s"}
    (listed,) = archive("memories.list", who=archive.me, query=query).body["items"]
    assert listed["content"] == PORTO and listed["tags"] == ["home"]
    assert {name: listed[name] for name in scopes} == scopes
