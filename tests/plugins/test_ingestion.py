"""Smart ingestion: what a conversation becomes, what takes whose place, and that nothing is half done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import serve_app
from plugins import fact_merging
from runtime.inference import MiniLmEmbedder, Models
from runtime.timestamps import iso
from tests.plugins import Desk
from tests.plugins.embedding import WordEmbedder

pytestmark = pytest.mark.usefixtures("without_delay")

MARCH, JUNE = "2023-03-01T10:00:00Z", "2023-06-10T10:00:00Z"


class Ears:
    """A desk that listens: an account with a model-free service."""

    def __init__(self, directory: Path, models: Models | None = None):
        self.embedder = WordEmbedder()
        self.desk = Desk(directory, serve_app.PLUGINS, models or Models(self.embedder))
        self.me = self.desk.register()

    def __call__(self, operation: str, body: Any = None, **further: Any) -> Any:
        return self.desk(operation, body, who=self.me, **further).body

    def hear(self, *said: str, at: str = MARCH, speaker: str = "Ada", **further: Any) -> dict[str, Any]:
        """The finished job of one speaker's messages."""
        messages = [{"role": "user", "name": speaker, "content": text} for text in said]
        job = self("memories.process", {"messages": messages, "occurred_at": at, **further})["job_id"]
        self.desk.settle()
        self.desk.now_ms = int(time.time() * 1000)  # jobs went by the real clock; who asks comes after them
        done = self("memories.jobs.get", job_id=job)
        assert done["status"] == "completed", done
        return done["result"] | {"job_id": job}

    def contents(self, **query: Any) -> list[str]:
        return sorted(item["content"] for item in self("memories.list", query=query)["items"])

    def targets(self, entity: str, kind: str, **asked: Any) -> list[str]:
        answer = self.desk("graph.query", {"entity": entity, "relation_type": kind, **asked}, who=self.me)
        return [] if answer.status == 404 else sorted(found["target"]["name"] for found in answer.body["relationships"])


@pytest.fixture
def ears(tmp_path: Path) -> Iterator[Ears]:
    listening = Ears(tmp_path)
    yield listening
    listening.desk.close()


def kinds(result: dict[str, Any]) -> list[str]:
    return [event["event"] for event in result["events"]]


def test_a_conversation_becomes_memories_and_claims(ears: Ears) -> None:
    result = ears.hear("I live in Lisbon and I work at Farfetch. Do you like it?", "My sister Clara plays the cello.")
    assert (kinds(result), result["memories_created"], result["engine"]) == (["ADD"] * 3, 3, "rules")
    assert ears.contents() == ["I live in Lisbon", "I work at Farfetch", "My sister Clara plays the cello"]
    assert ears.targets("Ada", "lives_in") == ["Lisbon"] and ears.targets("Clara", "plays") == ["cello"]
    memory = ears("memories.list")["items"][-1]
    assert (memory["speaker"], memory["source_type"], memory["occurred_at"]) == ("Ada", "inferred", "2023-03-01T10:00:00.000Z")
    assert memory["searchable"]


def test_evidence_is_verbatim(ears: Ears) -> None:
    said = ["Well: I moved from Lisbon to Oslo in May!", "Und ich — äh — wohne jetzt in Oslo. 🙂 I'm allergic to peanuts."]
    for event in ears.hear(*said)["events"]:
        for evidence in event["evidence"]:
            assert said[evidence["source"]][evidence["start"] : evidence["end"]] == evidence["quote"] != ""


def test_the_same_conversation_again_adds_nothing(ears: Ears) -> None:
    talk = ("I live in Lisbon.", "I moved to Oslo in May.", "I love hiking and I no longer work at Farfetch.", "I live in Oslo now.")
    ears.hear(*talk, at=JUNE)
    before, stats = ears("memories.list", query={"include_superseded": True}), ears("graph.stats")
    again = ears.hear(*talk, at=JUNE)
    assert set(kinds(again)) == {"NOOP"} and again["memories_created"] == 0 and again["skipped"] == len(again["events"])
    assert ears("memories.list", query={"include_superseded": True}) == before
    assert ears("graph.stats") == stats


def test_a_move_supersedes_keeps_history_and_is_known_on_both_clocks(ears: Ears) -> None:
    ears.hear("I live in Lisbon.")
    before = iso(ears.desk.now_ms)
    result = ears.hear("I moved from Lisbon to Oslo in May.", at=JUNE)
    (event,) = result["events"]
    assert (event["event"], event["previous_content"]) == ("UPDATE", "I live in Lisbon")
    assert (result["memories_created"], result["memories_updated"]) == (1, 1)
    assert ears.contents() == ["I moved from Lisbon to Oslo in May"]
    old = ears("memories.get", id=event["previous_memory_id"])
    assert (old["conflict_status"], old["superseded_by_id"]) == ("superseded", event["memory_id"])
    assert [version["event"] for version in ears("memories.history", id=old["id"])["items"]] == ["ADD", "SUPERSEDE"]
    assert ears.targets("Ada", "lives_in", valid_at="2023-04-15") == ["Lisbon"]
    assert ears.targets("Ada", "lives_in", valid_at="2023-05-15") == ["Oslo"] == ears.targets("Ada", "lives_in")
    assert ears.targets("Ada", "lives_in", known_at=before, valid_at="2023-05-15") == ["Lisbon"]
    assert ears("graph.contradictions")["items"] == []


def test_event_time_decides_not_arrival(ears: Ears) -> None:
    ears.hear("I live in Oslo.", at=JUNE)
    result = ears.hear("I live in Lisbon.", at=MARCH)
    assert kinds(result) == ["ADD"]
    assert ears.contents() == ["I live in Oslo"]
    assert ears("memories.get", id=result["events"][0]["memory_id"])["conflict_status"] == "superseded"
    assert ears.targets("Ada", "lives_in") == ["Oslo"]
    assert ears.targets("Ada", "lives_in", valid_at="2023-04-01") == ["Lisbon"]


def test_what_ends_takes_its_memory_with_it(ears: Ears) -> None:
    ears.hear("I work at Acme. I love karaoke.")
    result = ears.hear("I no longer work at Acme.", "I hate karaoke.", at=JUNE)
    assert kinds(result) == ["DELETE", "UPDATE"]
    assert (result["memories_invalidated"], result["memories_updated"]) == (1, 1)
    assert ears.contents() == ["I hate karaoke", "I no longer work at Acme"]
    assert ears.targets("Ada", "works_at") == [] and ears.targets("Ada", "likes") == []


def test_moving_back_is_news(ears: Ears) -> None:
    ears.hear("I live in Lisbon.")
    ears.hear("I live in Oslo.", at=JUNE)
    assert kinds(ears.hear("I live in Lisbon.", at="2023-09-01T00:00:00Z")) == ["UPDATE"]
    assert ears.targets("Ada", "lives_in") == ["Lisbon"]
    assert ears.targets("Ada", "lives_in", valid_at="2023-07-01") == ["Oslo"]


def test_third_parties_keep_what_is_theirs(ears: Ears) -> None:
    ears.hear("I live in Lisbon. My sister Clara lives in Paris.")
    ears.hear("My sister moved to Rome in May.", at=JUNE)
    assert ears.targets("Ada", "lives_in") == ["Lisbon"]
    assert ears.targets("Clara", "lives_in") == ["Rome"]


def test_end_users_do_not_overrule_each_other(ears: Ears) -> None:
    ears.hear("My boss Kim lives in Oslo.", user_id="a")
    assert kinds(ears.hear("My boss Kim lives in Bergen.", at=JUNE, user_id="b")) == ["ADD"]
    assert len(ears.contents()) == 2


def test_assistants_are_not_listened_to(ears: Ears) -> None:
    body = {
        "messages": [{"role": "assistant", "content": "I live in Lisbon."}, {"role": "user", "content": "I live in Oslo."}],
        "user_id": "ada",
    }
    ears("memories.process", body)
    ears.desk.settle()
    ears.desk.now_ms += 120_000
    assert ears.contents() == ["I live in Oslo"] and ears.targets("ada", "lives_in") == ["Oslo"]


def test_deleting_a_memory_takes_back_what_it_did(ears: Ears) -> None:
    ears.hear("I live in Lisbon.")
    result = ears.hear("I moved to Oslo in May.", at=JUNE)
    ears("memories.delete", id=result["events"][0]["memory_id"])
    assert ears.contents() == ["I live in Lisbon"]
    assert ears.targets("Ada", "lives_in") == ["Lisbon"]
    assert ears.desk("graph.entities.get", who=ears.me, entity_name="Oslo").status == 404
    kept = ears("memories.jobs.get", job_id=result["job_id"])["result"]["events"][0]
    assert (kept["memory"], kept["evidence"]) == ("", [])


def test_deleting_what_was_between_leaves_the_last_word(ears: Ears) -> None:
    first, second, third = (
        ears.hear(f"I live in {town}.", at=at)["events"][0]["memory_id"]
        for town, at in (("Lisbon", MARCH), ("Oslo", JUNE), ("Bergen", "2023-09-01T00:00:00Z"))
    )
    ears("memories.delete", id=second)
    assert ears.contents() == ["I live in Bergen"] and ears("graph.contradictions")["items"] == []
    assert ears("memories.get", id=first)["superseded_by_id"] == third
    assert ears.targets("Ada", "lives_in", valid_at="2023-07-01") == ["Lisbon"] and ears.targets("Ada", "lives_in") == ["Bergen"]
    ears("memories.delete", id=third)
    assert ears.contents() == ["I live in Lisbon"] and ears.targets("Ada", "lives_in") == ["Lisbon"]


def test_a_duplicate_of_what_was_superseded_stays_superseded(ears: Ears) -> None:
    kept = ears.hear("I live in Lisbon.")["events"][0]["memory_id"]
    duplicate = ears.hear("I am living in Lisbon.")["events"][0]["merged_memory_id"]
    moved = ears.hear("I live in Oslo.", at=JUNE)["events"][0]["memory_id"]
    ears("memories.delete", id=kept)
    assert ears.contents() == ["I live in Oslo"]
    assert ears("memories.get", id=duplicate)["superseded_by_id"] == moved
    ears("memories.delete", id=moved)
    assert ears.contents() == ["I am living in Lisbon"] and ears.targets("Ada", "lives_in") == ["Lisbon"]


def test_what_is_stored_already_gets_the_claims_and_no_twin(ears: Ears) -> None:
    raw = ears("memories.create", {"content": "I live  in OSLO!", "speaker": "Ada"})["id"]
    ears("memories.create", {"content": "I live in Oslo", "speaker": "Bob"})
    result = ears.hear("I live in Oslo.")
    assert (kinds(result), result["events"][0]["memory_id"], result["relationships"]) == (["NOOP"], raw, 1)
    assert ears.contents() == ["I live  in OSLO!", "I live in Oslo"] and ears.targets("Ada", "lives_in") == ["Oslo"]
    assert ears("memories.jobs.undo", job_id=result["job_id"])["deleted"] == 0 and ears.targets("Ada", "lives_in") == []
    for _ in range(2):
        assert kinds(ears.hear("I live in Oslo.")) == ["NOOP"] and ears.targets("Ada", "lives_in") == ["Oslo"]
    assert kinds(ears.hear("I moved to Bergen.", at="2999-06-10T10:00:00Z")) == ["UPDATE"]
    assert ears("memories.get", id=raw)["conflict_status"] == "superseded"


def test_a_rewritten_memory_claims_nothing_it_said_before(ears: Ears) -> None:
    memory = ears.hear("I live in Lisbon.")["events"][0]["memory_id"]
    ears("memories.update", {"content": "I like the sea."}, id=memory)
    assert ears.targets("Ada", "lives_in") == []
    assert kinds(ears.hear("I live in Oslo.", at=JUNE)) == ["ADD"]
    assert kinds(ears.hear("I live in Lisbon.")) == ["ADD"]
    assert ears.contents() == ["I like the sea.", "I live in Oslo"], "it is older than what is known by now"


def test_a_job_can_be_undone(ears: Ears) -> None:
    ears.hear("I live in Lisbon. I love karaoke.")
    stats = ears("graph.stats") | {"updated_at": None}
    result = ears.hear("I moved to Oslo in May, and I hate karaoke.", at=JUNE)
    assert ears("memories.jobs.undo", job_id=result["job_id"]) == {"job_id": result["job_id"], "deleted": 2, "restored": 2}
    assert ears.contents() == ["I live in Lisbon", "I love karaoke"]
    assert ears.targets("Ada", "lives_in") == ["Lisbon"]
    assert ears("graph.stats") | {"updated_at": None} == stats


def test_a_dry_run_says_what_would_happen(ears: Ears) -> None:
    ears.hear("I live in Lisbon.")
    before, stats = ears("memories.list"), ears("graph.stats")
    result = ears.hear("I moved to Oslo in May.", "I love Oslo.", at=JUNE, dry_run=True)
    assert kinds(result) == ["UPDATE", "ADD"]
    assert [event["memory_id"] for event in result["events"]] == [None, None]
    assert ears("memories.list") == before and ears("graph.stats") == stats


def test_a_key_starts_one_job(ears: Ears) -> None:
    body = {"content": "I live in Lisbon."}
    first = ears.desk("memories.process", body, who=ears.me, key="k")
    again = ears.desk("memories.process", body, who=ears.me, key="k")
    assert (first.status, again.body["job_id"]) == (202, first.body["job_id"])
    ears.desk.settle()
    done = ears.desk("memories.process", body, who=ears.me, key="k")
    assert (done.status, done.body["status"]) == (200, "completed") and len(ears.contents()) == 1


def test_the_embedder_may_be_down(ears: Ears) -> None:
    ears.embedder.down = True
    job = ears("memories.process", {"content": "I live in Lisbon."})["job_id"]
    while ears("memories.jobs.get", job_id=job)["status"] != "completed":
        ears.desk.breathe()
    assert not ears("memories.list")["items"][0]["searchable"]
    ears.embedder.down = False


@pytest.fixture
def meaning(tmp_path: Path) -> Iterator[Ears]:
    """With the model that is shipped, which knows what words mean."""
    embedder = MiniLmEmbedder(tmp_path / "model", threads=1, timeout_seconds=60, queue_max=1_000, cache_entries=0)
    listening = Ears(tmp_path, Models(embedder))
    yield listening
    listening.desk.run(embedder.close())
    listening.desk.close()


def test_a_claim_in_other_words_is_merged_and_can_be_parted(ears: Ears) -> None:
    kept = ears.hear("I live in Oslo.", user_id="ada")["events"][0]["memory_id"]
    result = ears.hear("I am living in Oslo.", at=JUNE, user_id="ada")
    event = result["events"][0]
    assert (kinds(result), event["memory_id"], result["memories_created"], result["skipped"]) == (["NOOP"], kept, 0, 1)
    assert ears.contents() == ["I live in Oslo"]
    duplicate = event["merged_memory_id"]
    (listed,) = ears("memories.merged", id=kept)["items"]
    assert (listed["id"], listed["superseded_by_id"], listed["content"]) == (duplicate, kept, event["memory"])
    history = ears("memories.history", id=duplicate)["items"]
    assert [version["event"] for version in history] == ["ADD", "SUPERSEDE"] and history[1]["reason"].startswith("merged: ")
    for at in (JUNE, "2023-09-01T00:00:00Z"):
        again = ears.hear("I am living in Oslo.", at=at, user_id="ada")
        assert "merged_memory_id" not in again["events"][0] and again["events"][0]["memory_id"] == kept
    ears("memories.delete", id=kept)
    assert ears.contents() == [event["memory"]] and ears.targets("Ada", "lives_in") == ["Oslo"], "nothing is lost with the one kept"


def test_a_meaning_in_other_words_is_merged_and_can_be_parted(meaning: Ears) -> None:
    kept = meaning.hear("I love old films.")["events"][0]["memory_id"]
    result = meaning.hear("I love old movies.", "I love old cars.", at=JUNE)
    assert kinds(result) == ["NOOP", "ADD"]
    assert meaning.contents() == ["I love old cars", "I love old films"] and meaning.targets("Ada", "likes") == ["old cars", "old films"]
    duplicate = result["events"][0]["merged_memory_id"]
    assert meaning("memories.restore", id=duplicate)["conflict_status"] == "none"
    assert meaning.targets("Ada", "likes") == ["old cars", "old films", "old movies"] and meaning("memories.merged", id=kept)["items"] == []
    meaning("memories.delete", id=kept)
    assert meaning.targets("Ada", "likes") == ["old cars", "old movies"], "each has claims of its own again"
    meaning("memories.delete", id=duplicate)
    assert meaning.desk("graph.entities.get", who=meaning.me, entity_name="old movies").status == 404


def test_undoing_a_job_takes_back_what_it_merged(meaning: Ears) -> None:
    meaning.hear("I love old films.")
    before, stats = meaning("memories.list", query={"include_superseded": True}), meaning("graph.stats") | {"updated_at": None}
    rehearsed = meaning.hear("I love old movies.", "I love to see old movies.", at=JUNE, dry_run=True)
    assert kinds(rehearsed)[0] == "NOOP" and "merged_memory_id" not in rehearsed["events"][0]
    assert meaning("memories.list", query={"include_superseded": True}) == before
    result = meaning.hear("I love old movies.", at=JUNE)
    assert meaning("memories.jobs.undo", job_id=result["job_id"])["deleted"] == 1
    assert meaning("memories.list", query={"include_superseded": True}) == before
    assert meaning("graph.stats") | {"updated_at": None} == stats


def test_paraphrases_of_one_conversation_are_merged(meaning: Ears) -> None:
    assert kinds(meaning.hear("I love Thai food.", "I plan to run 5 km in May.", "I love Thai cuisine.", "I plan to run 8 km in May.")) == [
        "ADD", "ADD", "NOOP", "ADD",
    ]  # fmt: skip
    assert kinds(meaning.hear("I love Thai cuisine.", speaker="Bob")) == ["ADD"]


def test_a_memory_stands_for_so_many(ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_merging, "MERGED_MEMORIES_MAX", 1)
    kept = ears.hear("I live in Oslo.")["events"][0]["memory_id"]
    ears.hear("I am living in Oslo.", "Right now I live in Oslo.")
    assert len(ears("memories.merged", id=kept)["items"]) == 1
    other = ears("memories.create", {"content": "Oslo it is."})["id"]
    assert ears.desk("memories.merge", {"keep": kept, "duplicates": [other]}, who=ears.me).status == 409
    merged = ears("memories.merged", id=kept)["items"][0]["id"]
    assert ears.desk("memories.merge", {"keep": merged, "duplicates": [other]}, who=ears.me).status == 409
