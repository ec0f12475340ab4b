"""Smart ingestion: what a conversation becomes, what takes whose place, and that nothing is half
done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.ingestion import duplicates as fact_merging
from plugins.ingestion import job
from runtime.inference import MiniLmEmbedder, Models
from runtime.timestamps import iso
from tests.support.ingestion_harness import JUNE, MARCH, IngestionHarness, kinds

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.fixture
def ingestion(tmp_path: Path) -> Iterator[IngestionHarness]:
    listening = IngestionHarness(tmp_path)
    yield listening
    listening.harness.close()


def test_a_conversation_becomes_memories_and_claims(ingestion: IngestionHarness) -> None:
    result = ingestion.hear(
        "I live in Lisbon and I work at Farfetch. We chose it for the schools.",
        "My sister Clara plays the cello.",
    )
    assert (kinds(result), result["memories_created"], result["engine"]) == (
        ["ADD"] * 3,
        3,
        "rules",
    )
    turn = "I live in Lisbon and I work at Farfetch. We chose it for the schools."
    assert ingestion.contents() == [
        "I live in Lisbon and I work at Farfetch.",
        turn,
        "My sister Clara plays the cello.",
    ]
    assert ingestion.targets("Ada", "lives_in") == ["Lisbon"] and ingestion.targets(
        "Clara", "plays"
    ) == ["cello"]
    memory = ingestion("memories.list")["items"][-1]
    assert (memory["speaker"], memory["source_type"], memory["occurred_at"]) == (
        "Ada",
        "message",
        "2023-03-01T10:00:00.000Z",
    )
    assert memory["searchable"]
    by_text = {item["content"]: item for item in ingestion("memories.list")["items"]}
    fact = by_text["I live in Lisbon and I work at Farfetch."]
    assert (fact["source_type"], fact["source_reference"]) == ("inferred", by_text[turn]["id"])


def test_evidence_is_verbatim(ingestion: IngestionHarness) -> None:
    said = [
        "Well: I moved from Lisbon to Oslo in May!",
        "Und ich — äh — wohne jetzt in Oslo. 🙂 I'm allergic to peanuts.",
    ]
    for event in ingestion.hear(*said)["events"]:
        for evidence in event["evidence"]:
            assert (
                said[evidence["source"]][evidence["start"] : evidence["end"]]
                == evidence["quote"]
                != ""
            )


def test_the_same_conversation_again_adds_nothing(ingestion: IngestionHarness) -> None:
    talk = (
        "I live in Lisbon.",
        "I moved to Oslo in May.",
        "I love hiking and I no longer work at Farfetch.",
        "I live in Oslo now.",
    )
    ingestion.hear(*talk, at=JUNE)
    before, stats = (
        ingestion("memories.list", query={"include_superseded": True}),
        ingestion("graph.stats"),
    )
    again = ingestion.hear(*talk, at=JUNE)
    assert (
        set(kinds(again)) == {"NOOP"}
        and again["memories_created"] == 0
        and again["skipped"] == len(again["events"])
    )
    assert ingestion("memories.list", query={"include_superseded": True}) == before
    assert ingestion("graph.stats") == stats


def test_a_move_supersedes_keeps_history_and_is_known_on_both_clocks(
    ingestion: IngestionHarness,
) -> None:
    ingestion.hear("I live in Lisbon.")
    before = iso(ingestion.harness.now_ms)
    result = ingestion.hear("I moved from Lisbon to Oslo in May.", at=JUNE)
    (event,) = result["events"]
    assert (event["event"], event["previous_content"]) == ("UPDATE", "I live in Lisbon.")
    assert (result["memories_created"], result["memories_updated"]) == (1, 1)
    assert ingestion.contents() == ["I moved from Lisbon to Oslo in May."]
    old = ingestion("memories.get", id=event["previous_memory_id"])
    assert (old["conflict_status"], old["superseded_by_id"]) == ("superseded", event["memory_id"])
    assert [
        version["event"] for version in ingestion("memories.history", id=old["id"])["items"]
    ] == [
        "ADD",
        "SUPERSEDE",
    ]
    assert ingestion.targets("Ada", "lives_in", valid_at="2023-04-15") == ["Lisbon"]
    assert (
        ingestion.targets("Ada", "lives_in", valid_at="2023-05-15")
        == ["Oslo"]
        == ingestion.targets("Ada", "lives_in")
    )
    assert ingestion.targets("Ada", "lives_in", known_at=before, valid_at="2023-05-15") == [
        "Lisbon"
    ]
    assert ingestion("graph.contradictions")["items"] == []


def test_event_time_decides_not_arrival(ingestion: IngestionHarness) -> None:
    ingestion.hear("I live in Oslo.", at=JUNE)
    result = ingestion.hear("I live in Lisbon.", at=MARCH)
    assert kinds(result) == ["ADD"]
    assert ingestion.contents() == ["I live in Oslo."]
    assert (
        ingestion("memories.get", id=result["events"][0]["memory_id"])["conflict_status"]
        == "superseded"
    )
    assert ingestion.targets("Ada", "lives_in") == ["Oslo"]
    assert ingestion.targets("Ada", "lives_in", valid_at="2023-04-01") == ["Lisbon"]


def test_what_ends_takes_its_memory_with_it(ingestion: IngestionHarness) -> None:
    ingestion.hear("I work at Acme. I love karaoke.")
    result = ingestion.hear("I no longer work at Acme.", "I hate karaoke.", at=JUNE)
    assert kinds(result) == ["DELETE", "UPDATE"]
    assert (result["memories_invalidated"], result["memories_updated"]) == (1, 1)
    assert ingestion.contents() == ["I hate karaoke.", "I no longer work at Acme."]
    assert ingestion.targets("Ada", "works_at") == [] and ingestion.targets("Ada", "likes") == []


def test_moving_back_is_news(ingestion: IngestionHarness) -> None:
    ingestion.hear("I live in Lisbon.")
    ingestion.hear("I live in Oslo.", at=JUNE)
    assert kinds(ingestion.hear("I live in Lisbon.", at="2023-09-01T00:00:00Z")) == ["UPDATE"]
    assert ingestion.targets("Ada", "lives_in") == ["Lisbon"]
    assert ingestion.targets("Ada", "lives_in", valid_at="2023-07-01") == ["Oslo"]


def test_third_parties_keep_what_is_theirs(ingestion: IngestionHarness) -> None:
    ingestion.hear("I live in Lisbon. My sister Clara lives in Paris.")
    ingestion.hear("My sister moved to Rome in May.", at=JUNE)
    assert ingestion.targets("Ada", "lives_in") == ["Lisbon"]
    assert ingestion.targets("Clara", "lives_in") == ["Rome"]


def test_end_users_do_not_overrule_each_other(ingestion: IngestionHarness) -> None:
    ingestion.hear("My boss Kim lives in Oslo.", user_id="a")
    assert kinds(ingestion.hear("My boss Kim lives in Bergen.", at=JUNE, user_id="b")) == ["ADD"]
    assert len(ingestion.contents()) == 2


def test_assistants_are_not_listened_to(ingestion: IngestionHarness) -> None:
    body = {
        "messages": [
            {"role": "assistant", "content": "I live in Lisbon."},
            {"role": "user", "content": "I live in Oslo."},
        ],
        "user_id": "ada",
    }
    ingestion("memories.process", body)
    ingestion.harness.settle()
    ingestion.harness.now_ms += 120_000
    assert ingestion.contents() == ["I live in Oslo."] and ingestion.targets("ada", "lives_in") == [
        "Oslo"
    ]


def test_deleting_a_memory_takes_back_what_it_did(ingestion: IngestionHarness) -> None:
    ingestion.hear("I live in Lisbon.")
    result = ingestion.hear("I moved to Oslo in May.", at=JUNE)
    ingestion("memories.delete", id=result["events"][0]["memory_id"])
    assert ingestion.contents() == ["I live in Lisbon."]
    assert ingestion.targets("Ada", "lives_in") == ["Lisbon"]
    assert (
        ingestion.harness("graph.entities.get", who=ingestion.me, entity_name="Oslo").status == 404
    )
    kept = ingestion("memories.jobs.get", job_id=result["job_id"])["result"]["events"][0]
    assert (kept["memory"], kept["evidence"]) == ("", [])


def test_deleting_what_was_between_leaves_the_last_word(ingestion: IngestionHarness) -> None:
    first, second, third = (
        ingestion.hear(f"I live in {town}.", at=at)["events"][0]["memory_id"]
        for town, at in (("Lisbon", MARCH), ("Oslo", JUNE), ("Bergen", "2023-09-01T00:00:00Z"))
    )
    ingestion("memories.delete", id=second)
    assert (
        ingestion.contents() == ["I live in Bergen."]
        and ingestion("graph.contradictions")["items"] == []
    )
    assert ingestion("memories.get", id=first)["superseded_by_id"] == third
    assert ingestion.targets("Ada", "lives_in", valid_at="2023-07-01") == [
        "Lisbon"
    ] and ingestion.targets("Ada", "lives_in") == ["Bergen"]
    ingestion("memories.delete", id=third)
    assert ingestion.contents() == ["I live in Lisbon."] and ingestion.targets(
        "Ada", "lives_in"
    ) == ["Lisbon"]


def test_a_duplicate_of_what_was_superseded_stays_superseded(ingestion: IngestionHarness) -> None:
    kept = ingestion.hear("I live in Lisbon.")["events"][0]["memory_id"]
    duplicate = ingestion.hear("I am living in Lisbon.")["events"][0]["merged_memory_id"]
    moved = ingestion.hear("I live in Oslo.", at=JUNE)["events"][0]["memory_id"]
    ingestion("memories.delete", id=kept)
    assert ingestion.contents() == ["I live in Oslo."]
    assert ingestion("memories.get", id=duplicate)["superseded_by_id"] == moved
    ingestion("memories.delete", id=moved)
    assert ingestion.contents() == ["I am living in Lisbon."] and ingestion.targets(
        "Ada", "lives_in"
    ) == ["Lisbon"]


def test_what_is_stored_already_gets_the_claims_and_no_twin(ingestion: IngestionHarness) -> None:
    raw = ingestion("memories.create", {"content": "I live  in OSLO!", "speaker": "Ada"})["id"]
    ingestion("memories.create", {"content": "I live in Oslo", "speaker": "Bob"})
    result = ingestion.hear("I live in Oslo.")
    assert (kinds(result), result["events"][0]["memory_id"], result["relationships"]) == (
        ["NOOP"],
        raw,
        1,
    )
    assert ingestion.contents() == ["I live  in OSLO!", "I live in Oslo"] and ingestion.targets(
        "Ada", "lives_in"
    ) == ["Oslo"]
    assert (
        ingestion("memories.jobs.undo", job_id=result["job_id"])["deleted"] == 0
        and ingestion.targets("Ada", "lives_in") == []
    )
    for _ in range(2):
        assert kinds(ingestion.hear("I live in Oslo.")) == ["NOOP"] and ingestion.targets(
            "Ada", "lives_in"
        ) == ["Oslo"]
    assert kinds(ingestion.hear("I moved to Bergen.", at="2999-06-10T10:00:00Z")) == ["UPDATE"]
    assert ingestion("memories.get", id=raw)["conflict_status"] == "superseded"


def test_a_claim_in_another_spelling_is_ended_all_the_same(ingestion: IngestionHarness) -> None:
    entered = {"source": "Ada", "type": "favorite_color", "target": "teal"}
    ingestion("graph.relationships.create", entered)
    ingestion.hear("My favourite colour is ochre.", at="2999-06-10T10:00:00Z")
    assert ingestion.targets("Ada", "favorite_colour", valid_at="2999-07-01") == ["ochre"]
    assert ingestion.targets("Ada", "favorite_color", valid_at="2999-07-01") == []


def test_a_rewritten_memory_claims_nothing_it_said_before(ingestion: IngestionHarness) -> None:
    memory = ingestion.hear("I live in Lisbon.")["events"][0]["memory_id"]
    ingestion("memories.update", {"content": "I like the sea."}, id=memory)
    assert ingestion.targets("Ada", "lives_in") == []
    assert kinds(ingestion.hear("I live in Oslo.", at=JUNE)) == ["ADD"]
    assert kinds(ingestion.hear("I live in Lisbon.")) == ["ADD"]
    assert ingestion.contents() == ["I like the sea.", "I live in Oslo."], (
        "it is older than what is known by now"
    )


def test_a_job_can_be_undone(ingestion: IngestionHarness) -> None:
    ingestion.hear("I live in Lisbon. I love karaoke.")
    stats = ingestion("graph.stats") | {"updated_at": None}
    before = ingestion.contents()
    result = ingestion.hear("I moved to Oslo in May. And I hate karaoke.", at=JUNE)
    assert (result["memories_created"], result["memories_updated"]) == (3, 2)
    assert set(ingestion.contents()).isdisjoint(before), "the turn holds no more than its sentences"
    assert ingestion("memories.jobs.undo", job_id=result["job_id"]) == {
        "job_id": result["job_id"],
        "deleted": 3,
        "restored": 3,
        "kept": [],
    }
    assert ingestion.contents() == before
    assert ingestion.targets("Ada", "lives_in") == ["Lisbon"]
    assert ingestion("graph.stats") | {"updated_at": None} == stats


def test_a_job_whose_collection_is_deleted_meanwhile_fails(
    ingestion: IngestionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_deleted, extract = asyncio.Event(), job.extract

    async def once_deleted(*given: Any) -> job.Prepared:
        await is_deleted.wait()
        return await extract(*given)

    monkeypatch.setattr(job, "extract", once_deleted)
    collection = ingestion("collections.create", {"name": "brief"})["id"]
    told = {"content": "I live in Lisbon.", "collection_id": collection}
    processed = ingestion("memories.process", told)["job_id"]
    body = {**told, "infer": True, "async_dispatch": True}
    created = ingestion("memories.create", body)["job_id"]
    ingestion("collections.delete", id=collection)
    is_deleted.set()
    ingestion.harness.settle()
    for each in (processed, created):
        ended = ingestion("memories.jobs.get", job_id=each)
        assert (ended["status"], ended["result"]) == ("failed", None)
        assert "collection was deleted" in ended["error"]
    assert ingestion.contents() == []


def test_a_job_that_extracts_nothing_is_not_undone(ingestion: IngestionHarness) -> None:
    body = {"memories": [{"content": "The key is in the shed."}] * 2}
    job = ingestion("memories.create_batch", body)["status_url"].rpartition("/")[2]
    ingestion.harness.settle()
    assert ingestion("memories.jobs.get", job_id=job)["status"] == "completed"
    refused = ingestion.harness("memories.jobs.undo", who=ingestion.me, job_id=job)
    assert refused.status == 409 and "bulk-delete" in refused.body["message"]
    assert len(ingestion.contents()) == 2


def test_a_dry_run_says_what_would_happen(ingestion: IngestionHarness) -> None:
    ingestion.hear("I live in Lisbon.")
    before, stats = ingestion("memories.list"), ingestion("graph.stats")
    result = ingestion.hear("I moved to Oslo in May.", "I love Oslo.", at=JUNE, dry_run=True)
    assert kinds(result) == ["UPDATE", "ADD"]
    assert [event["memory_id"] for event in result["events"]] == [None, None]
    assert ingestion("memories.list") == before and ingestion("graph.stats") == stats


def test_a_key_starts_one_job(ingestion: IngestionHarness) -> None:
    body = {"content": "I live in Lisbon."}
    first = ingestion.harness("memories.process", body, who=ingestion.me, key="k")
    again = ingestion.harness("memories.process", body, who=ingestion.me, key="k")
    assert (first.status, again.body["job_id"]) == (202, first.body["job_id"])
    ingestion.harness.settle()
    done = ingestion.harness("memories.process", body, who=ingestion.me, key="k")
    assert (done.status, done.body["status"]) == (200, "completed") and len(
        ingestion.contents()
    ) == 1


def test_the_embedder_may_be_down(ingestion: IngestionHarness) -> None:
    ingestion.embedder.down = True
    job = ingestion("memories.process", {"content": "I live in Lisbon."})["job_id"]
    while ingestion("memories.jobs.get", job_id=job)["status"] != "completed":
        ingestion.harness.breathe()
    assert not ingestion("memories.list")["items"][0]["searchable"]
    ingestion.embedder.down = False


@pytest.fixture
def meaning(tmp_path: Path) -> Iterator[IngestionHarness]:
    """With the model that is shipped, which knows what words mean."""
    embedder = MiniLmEmbedder(
        tmp_path / "model", threads=1, timeout_seconds=60, queue_max=1_000, cache_entries=0
    )
    listening = IngestionHarness(tmp_path, Models(embedder))
    yield listening
    listening.harness.run(embedder.close())
    listening.harness.close()


def test_a_claim_in_other_words_is_merged_and_can_be_parted(ingestion: IngestionHarness) -> None:
    kept = ingestion.hear("I live in Oslo.", user_id="ada")["events"][0]["memory_id"]
    result = ingestion.hear("I am living in Oslo.", at=JUNE, user_id="ada")
    event = result["events"][0]
    assert (kinds(result), event["memory_id"], result["memories_created"], result["skipped"]) == (
        ["NOOP"],
        kept,
        0,
        1,
    )
    assert ingestion.contents() == ["I live in Oslo."]
    duplicate = event["merged_memory_id"]
    (listed,) = ingestion("memories.merged", id=kept)["items"]
    assert (listed["id"], listed["superseded_by_id"], listed["content"]) == (
        duplicate,
        kept,
        event["memory"],
    )
    history = ingestion("memories.history", id=duplicate)["items"]
    assert [version["event"] for version in history] == ["ADD", "SUPERSEDE"] and history[1][
        "reason"
    ].startswith("merged: ")
    for at in (JUNE, "2023-09-01T00:00:00Z"):
        again = ingestion.hear("I am living in Oslo.", at=at, user_id="ada")
        assert (
            "merged_memory_id" not in again["events"][0] and again["events"][0]["memory_id"] == kept
        )
    ingestion("memories.delete", id=kept)
    assert ingestion.contents() == [event["memory"]] and ingestion.targets("Ada", "lives_in") == [
        "Oslo"
    ], "nothing is lost with the one kept"


def test_a_meaning_in_other_words_is_merged_and_can_be_parted(meaning: IngestionHarness) -> None:
    kept = meaning.hear("I love old films.")["events"][0]["memory_id"]
    result = meaning.hear("I love old movies.", "I love old cars.", at=JUNE)
    assert kinds(result) == ["NOOP", "ADD"]
    assert meaning.contents() == ["I love old cars.", "I love old films."] and meaning.targets(
        "Ada", "likes"
    ) == ["old cars", "old films"]
    duplicate = result["events"][0]["merged_memory_id"]
    assert meaning("memories.restore", id=duplicate)["conflict_status"] == "none"
    assert (
        meaning.targets("Ada", "likes") == ["old cars", "old films", "old movies"]
        and meaning("memories.merged", id=kept)["items"] == []
    )
    meaning("memories.delete", id=kept)
    assert meaning.targets("Ada", "likes") == ["old cars", "old movies"], (
        "each has claims of its own again"
    )
    meaning("memories.delete", id=duplicate)
    assert (
        meaning.harness("graph.entities.get", who=meaning.me, entity_name="old movies").status
        == 404
    )


def test_undoing_a_job_takes_back_what_it_merged(meaning: IngestionHarness) -> None:
    meaning.hear("I love old films.")
    before, stats = (
        meaning("memories.list", query={"include_superseded": True}),
        meaning("graph.stats") | {"updated_at": None},
    )
    rehearsed = meaning.hear(
        "I love old movies.", "I love to see old movies.", at=JUNE, dry_run=True
    )
    assert kinds(rehearsed)[0] == "NOOP" and "merged_memory_id" not in rehearsed["events"][0]
    assert meaning("memories.list", query={"include_superseded": True}) == before
    result = meaning.hear("I love old movies.", at=JUNE)
    assert meaning("memories.jobs.undo", job_id=result["job_id"])["deleted"] == 1
    assert meaning("memories.list", query={"include_superseded": True}) == before
    assert meaning("graph.stats") | {"updated_at": None} == stats


def test_paraphrases_of_one_conversation_are_merged(meaning: IngestionHarness) -> None:
    assert kinds(meaning.hear("I love Thai food.", "I plan to run 5 km in May.", ("I love "
        "Thai cuisine."), "I plan to run 8 km in May.")) == [
        "ADD", "ADD", "NOOP", "ADD",
    ]  # fmt: skip
    assert kinds(meaning.hear("I love Thai cuisine.", speaker="Bob")) == ["ADD"]


def test_a_memory_stands_for_so_many(
    ingestion: IngestionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_merging, "MERGED_MEMORIES_MAX", 1)
    kept = ingestion.hear("I live in Oslo.")["events"][0]["memory_id"]
    ingestion.hear("I am living in Oslo.", "Right now I live in Oslo.")
    assert len(ingestion("memories.merged", id=kept)["items"]) == 1
    other = ingestion("memories.create", {"content": "Oslo it is."})["id"]
    assert (
        ingestion.harness(
            "memories.merge", {"keep": kept, "duplicates": [other]}, who=ingestion.me
        ).status
        == 409
    )
    merged = ingestion("memories.merged", id=kept)["items"][0]["id"]
    assert (
        ingestion.harness(
            "memories.merge", {"keep": merged, "duplicates": [other]}, who=ingestion.me
        ).status
        == 409
    )
