"""Profiles: facts with evidence that come and go with their memories, and what callers set."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import serve_app
from plugins.ingestion.engine import RuleEngine
from plugins.profile import rules, store
from plugins.profile.rules import observations
from plugins.profile.store import TABLES
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(WordEmbedder()))
    yield harness
    harness.close()


@pytest.fixture
def me(harness: ShardHarness) -> str:
    return harness.register()


def remember(
    harness: ShardHarness, me: str, content: str, user: str | None = "ada", **fields: Any
) -> str:
    answer = harness("memories.create", {"content": content, "user_id": user, **fields}, who=me)
    assert answer.status in (201, 202), answer
    return answer.body["id"]


def profile(harness: ShardHarness, me: str, user: str | None = "ada") -> dict[str, Any]:
    harness.settle()
    return harness("profile.get", who=me, query={"user_id": user}).body


def facts(harness: ShardHarness, me: str, user: str | None = "ada") -> dict[str, list[str]]:
    """key -> values, latest first."""
    found: dict[str, list[str]] = {}
    shown = profile(harness, me, user)
    for fact in (*shown["static"], *shown["dynamic"]):
        found.setdefault(fact["key"], []).append(fact["value"])
    return found


# --- rules ----------------------------------------------------------------------------------------

SAID = {
    "I live in Lisbon.": ("lives_in", "Lisbon"),
    "I'm currently living in New York because of work.": ("lives_in", "New York"),
    "I've moved to Porto, finally": ("lives_in", "Porto"),
    "My name is Ada Lovelace.": ("named", "Ada Lovelace"),
    "I’m allergic to peanuts and I love tea": ("allergic_to", "peanuts"),
    "I really love hiking in the Alps, you know.": ("likes", "hiking in the Alps"),
    "I don't like olives": ("dislikes", "olives"),
    "I prefer tea": ("prefers", "tea"),
    "I work as a nurse.": ("works_as", "nurse"),
    "I'm a software engineer": ("works_as", "software engineer"),
    "I work at the Royal Hospital": ("works_at", "the Royal Hospital"),
    "I am vegan": ("diet", "vegan"),
    "My favourite colour is teal.": ("favorite.colour", "teal"),
    "My favorite color is ochre.": ("favorite.colour", "ochre"),
    "My birthday is on 10 December": ("born_on", "10 December"),
    "My dog is called Rex.": ("has_pet", "Rex"),
    "My sister Maria lives in Rome.": ("sister", "Maria"),
    "I'm training for a marathon": ("doing", "training for a marathon"),
    "I am planning to visit Japan in May": ("plans", "visit Japan in May"),
    "Ada lives in Porto.": ("lives_in", "Porto"),
    "The user prefers dark mode": ("prefers", "dark mode"),
    "Ada's favorite dish is soup": ("favorite.dish", "soup"),
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_said_is_observed(text: str) -> None:
    found = [(one.key, one.value) for one in observations(text, own=True, names=["Ada"])]
    assert SAID[text] in found
    assert all(value in text for _, value in found), "a value is taken from the text word for word"


SILENT = [
    "Do I live in Lisbon?", 'He said "I live in Rome".', "Eve lives in Rome.", "I like it.",
    "We went to the sea.", "", "Is my name Bob?", "Adam lives in Rome.", "It is what it is",
    "You are a nurse",
]  # fmt: skip


@pytest.mark.parametrize("text", SILENT)
def test_what_is_not_said_is_not(text: str) -> None:
    assert observations(text, own=True, names=["Ada"]) == []


def test_another_speakers_i_is_somebody_else() -> None:
    assert observations(
        "I live in Lisbon. Ada lives in Porto.", own=False, names=["Ada"]
    ) == observations("Ada lives in Porto.", own=False, names=["Ada"])


# --- facts come and go ----------------------------------------------------------------------------


def test_a_user_never_seen_has_an_empty_profile(harness: ShardHarness, me: str) -> None:
    assert profile(harness, me, "nobody") == {
        "user_id": "nobody", "name": None, "timezone": None, "language": None, "bio": None,
        "static": [], "dynamic": [], "sections": [], "updated_at": None, "memory_count": 0,
    }  # fmt: skip


def test_facts_have_evidence_and_grow_more_certain(harness: ShardHarness, me: str) -> None:
    first = remember(harness, me, "I live in Lisbon.", occurred_at="2026-01-01T00:00:00Z")
    (alone,) = profile(harness, me)["static"]
    second = remember(
        harness,
        me,
        "As I live in lisbon, I know.",
        speaker="Ada",
        occurred_at="2026-02-01T00:00:00Z",
    )
    third = remember(
        harness,
        me,
        "Ada lives in Lisbon, they say.",
        speaker="Eve",
        occurred_at="2026-03-01T00:00:00Z",
    )
    (fact,) = profile(harness, me)["static"]
    assert (fact["key"], fact["value"], fact["id"]) == ("lives_in", "Lisbon", alone["id"])
    assert fact["evidence_memory_ids"] == [third, first], "a place has a capital"
    assert (
        fact["confidence"] > alone["confidence"]
        and fact["observed_at"] == "2026-03-01T00:00:00.000Z"
    )
    assert profile(harness, me)["memory_count"] == 3 and second


def test_each_user_has_their_own(harness: ShardHarness, me: str) -> None:
    eve = harness.register("eve@example.com", "Eve")
    remember(harness, me, "I live in Lisbon.")
    remember(harness, me, "I live in Porto.", user="bo")
    remember(harness, me, "I live in Rome.", user=None)
    assert [facts(harness, me, user) for user in ("ada", "bo", None)] == [
        {"lives_in": [place]} for place in ("Lisbon", "Porto", "Rome")
    ]
    assert profile(harness, me, None)["memory_count"] == 1
    assert facts(harness, eve) == {} and profile(harness, eve)["memory_count"] == 0


def test_what_others_say_and_what_was_recalled_is_not_the_users(
    harness: ShardHarness, me: str
) -> None:
    remember(harness, me, "I live in Rome.", speaker="assistant")
    remember(harness, me, "You said: I live in Paris.", speaker="user", tags=["recalled"])
    remember(harness, me, "I live in Berlin.", source_type="document")
    assert facts(harness, me) == {}
    assert profile(harness, me)["memory_count"] == 3


def test_the_latest_of_a_kind_counts_and_the_one_before_comes_back(
    harness: ShardHarness, me: str
) -> None:
    remember(harness, me, "I live in Lisbon.", occurred_at="2024-01-01T00:00:00Z")
    later = remember(harness, me, "I moved to Porto.", occurred_at="2025-01-01T00:00:00Z")
    remember(harness, me, "I live in Rome.", occurred_at="2020-01-01T00:00:00Z")
    remember(harness, me, "I like tea. I like bread.")
    assert facts(harness, me)["lives_in"] == ["Porto"] and sorted(facts(harness, me)["likes"]) == [
        "bread",
        "tea",
    ]
    harness("memories.delete", who=me, id=later)
    assert facts(harness, me)["lives_in"] == ["Lisbon"]
    remember(harness, me, "I left Lisbon.", occurred_at="2026-01-01T00:00:00Z")
    assert facts(harness, me)["lives_in"] == ["Rome"]


def test_no_fact_outlives_its_memories(harness: ShardHarness, me: str) -> None:
    gone = remember(harness, me, "I am vegan.")
    changed = remember(harness, me, "I live in Lisbon.")
    hidden = harness("collections.create", {"name": "c"}, who=me).body["id"]
    remember(harness, me, "I speak Greek.", collection_id=hidden)
    assert set(facts(harness, me)) == {"diet", "lives_in", "speaks"}
    harness("memories.delete", who=me, id=gone)
    shown = harness("profile.get", who=me, query={"user_id": "ada"}).body
    assert {fact["key"] for fact in shown["static"]} == {"lives_in", "speaks"}, (
        "at once, not after a job"
    )
    harness("memories.update", {"content": "I live in Porto."}, who=me, id=changed)
    shown = harness("profile.get", who=me, query={"user_id": "ada"}).body
    assert "Lisbon" not in str(shown), "what it said counts no more from this transaction on"
    assert facts(harness, me)["lives_in"] == ["Porto"]
    harness("collections.delete", who=me, id=hidden)
    shown = harness("profile.get", who=me, query={"user_id": "ada"}).body
    assert {fact["key"] for fact in shown["static"]} == {"lives_in"}
    harness("memories.delete_all", who=me, query={"confirm": "delete-all-memories"})
    assert harness("profile.get", who=me, query={"user_id": "ada"}).body["static"] == []
    harness.settle()
    assert rows(harness, me)["profile_facts"] == rows(harness, me)["profile_sources"] == 0, (
        "nothing of them is left in the store"
    )


def rows(harness: ShardHarness, me: str) -> dict[str, int]:
    with harness.shard.store.snapshot() as snapshot:
        return {table.name: snapshot.bind(table, harness.scope_of(me)).count() for table in TABLES}


def test_any_number_of_memories_is_read_in_steps(
    harness: ShardHarness, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PROFILE_MEMORIES_PER_STEP", 3)
    harness(
        "memories.create_batch",
        {"memories": [{"content": f"I like place{n}."} for n in range(10)], "user_id": "ada"},
        who=me,
    )
    assert len(facts(harness, me)["likes"]) == 10
    assert rows(harness, me)["profile_pending"] == rows(harness, me)["profile_alarm"] == 0
    remember(harness, me, "I like place11.")
    assert len(facts(harness, me)["likes"]) == 11


def test_evidence_and_facts_are_bounded(
    harness: ShardHarness, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FACT_EVIDENCE_MEMORIES_MAX", 2)
    monkeypatch.setattr(store, "FACTS_PER_PROFILE_MAX", 2)
    made = [
        remember(harness, me, "I like tea.", occurred_at=f"2026-01-0{day}T00:00:00Z")
        for day in (1, 3, 2)
    ]
    for food in ("bread", "soup", "rice"):
        remember(harness, me, f"I like {food}.")
    shown = profile(harness, me)["static"]
    assert len(shown) == 2
    (tea,) = [fact for fact in shown if fact["value"] == "tea"]
    assert tea["evidence_memory_ids"] == [made[1], made[2]]
    assert rows(harness, me)["profile_sources"] == 3


def test_a_restart_goes_on_reading(harness: ShardHarness, me: str) -> None:
    remember(harness, me, "I live in Lisbon.")
    harness.reopen()
    assert facts(harness, me) == {"lives_in": ["Lisbon"]}


# --- what callers set -----------------------------------------------------------------------------


def test_what_is_set_stands_before_what_is_derived(harness: ShardHarness, me: str) -> None:
    remember(harness, me, "My name is Ada Lovelace. I live in Lisbon.")
    assert profile(harness, me)["name"] == "Ada Lovelace"
    body = {
        "name": "Countess",
        "timezone": "Europe/Lisbon",
        "language": "pt-PT",
        "bio": "Counts.",
        "static": [{"key": "lives_in", "value": "Rome"}],
    }
    shown = harness("profile.update", body, who=me, query={"user_id": "ada"}).body
    assert (shown["name"], shown["timezone"], shown["language"], shown["bio"]) == (
        "Countess",
        "Europe/Lisbon",
        "pt-PT",
        "Counts.",
    )
    (lives,) = [fact for fact in shown["static"] if fact["key"] == "lives_in"]
    assert (lives["value"], lives["confidence"], lives["evidence_memory_ids"]) == ("Rome", 1.0, [])
    again = harness(
        "profile.update",
        {"static": [{"key": "lives_in", "value": "Rome"}, {"key": "diet", "value": "vegan"}]},
        who=me,
        query={"user_id": "ada"},
    )
    assert [fact["id"] for fact in again.body["static"] if fact["key"] == "lives_in"] == [
        lives["id"]
    ]
    cleared = harness(
        "profile.update",
        {"name": None, "static": None, "bio": None},
        who=me,
        query={"user_id": "ada"},
    ).body
    assert (cleared["name"], cleared["bio"], cleared["timezone"]) == (
        "Ada Lovelace",
        None,
        "Europe/Lisbon",
    )
    assert [fact["value"] for fact in cleared["static"] if fact["key"] == "lives_in"] == ["Lisbon"]


@pytest.mark.parametrize(
    "body",
    [
        {"timezone": "Mars/Olympus"},
        {"language": "not a tag"},
        {"static": [{"key": "Not A Key", "value": "x"}]},
        {"name": ""},
        {"bio": "x" * 2_001},
    ],
)
def test_nonsense_is_refused(harness: ShardHarness, body: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        harness.registry.operations["profile.update"].body.model_validate(body)


def test_an_empty_patch_changes_nothing(harness: ShardHarness, me: str) -> None:
    assert harness("profile.update", {}, who=me, query={"user_id": "ada"}).body == profile(
        harness, me
    )
    assert harness("profile.delete", who=me, query={"user_id": "ada"}).status == 404


# --- deletion -------------------------------------------------------------------------------------


def test_after_a_deletion_only_what_is_stored_later_counts(harness: ShardHarness, me: str) -> None:
    old = remember(harness, me, "I live in Lisbon.")
    harness("profile.update", {"bio": "x"}, who=me, query={"user_id": "ada"})
    assert facts(harness, me)
    assert harness("profile.delete", who=me, query={"user_id": "ada"}).body == {"deleted": True}
    assert harness("profile.delete", who=me, query={"user_id": "ada"}).status == 404
    harness("memories.update", {"content": "I live in Porto."}, who=me, id=old)
    shown = profile(harness, me)
    assert (shown["static"], shown["bio"], shown["memory_count"]) == ([], None, 1)
    remember(harness, me, "I live in Rome.")
    assert facts(harness, me) == {"lives_in": ["Rome"]}
    assert harness("profile.delete", who=me, query={"user_id": "ada"}).status == 200


def test_a_memory_that_waits_to_be_read_does_not_bring_a_deleted_profile_back(
    harness: ShardHarness, me: str
) -> None:
    remember(harness, me, "I live in Lisbon.")
    assert harness("profile.delete", who=me, query={"user_id": "ada"}).status == 200
    assert facts(harness, me) == {}


# --- sections -------------------------------------------------------------------------------------


def tell(harness: ShardHarness, me: str, *said: str, at: str, user: str = "u1") -> list[str]:
    """What Ada says, one thing at a time, by smart ingestion; -> ids of the memories it made."""
    made = []
    for text in said:
        messages = [{"role": "user", "name": "Ada", "content": text}]
        body = {"messages": messages, "occurred_at": at, "user_id": user}
        job = harness("memories.process", body, who=me).body["job_id"]
        harness.settle()
        result = harness("memories.jobs.get", who=me, job_id=job).body["result"]
        made += [event["memory_id"] for event in result["events"]]
    return made


def in_sections(harness: ShardHarness, me: str, user: str) -> dict[str, tuple[list, list]]:
    """section -> (values that hold, values that held once), each with evidence."""
    shown = profile(harness, me, user)["sections"]
    assert all(fact["evidence_memory_ids"] for each in shown for fact in each["current"])
    assert all(fact["evidence_memory_ids"] for each in shown for fact in each["former"])
    return {
        each["name"]: (
            [fact["value"] for fact in each["current"]],
            [fact["value"] for fact in each["former"]],
        )
        for each in shown
    }


def test_sections_tell_what_holds_from_what_held_once(harness: ShardHarness, me: str) -> None:
    tell(
        harness, me, "I live in Lisbon.", "I work as a nurse.", "My sister is called Clara.",
        "I'm allergic to nuts.", "I love hiking.", "We have a car.", "I plan to visit Japan.",
        at="2023-03-01T10:00:00Z",
    )  # fmt: skip
    tell(harness, me, "I live in Rome.", at="2023-03-01T10:00:00Z", user="u2")
    assert in_sections(harness, me, "u1") == {
        "where": (["Lisbon"], []),
        "work": (["nurse"], []),
        "people": (["Clara"], []),
        "health_and_diet": (["nuts"], []),
        "likes_and_dislikes": (["hiking"], []),
        "plans": (["visit Japan"], []),
        "possessions": (["car"], []),
    }
    (moved, _) = tell(
        harness, me, "I moved from Lisbon to Oslo.", "We sold the car.", at="2023-06-10T10:00:00Z"
    )
    after = in_sections(harness, me, "u1")
    assert (after["where"], after["possessions"]) == ((["Oslo"], ["Lisbon"]), ([], ["car"]))
    assert in_sections(harness, me, "u2") == {"where": (["Rome"], [])}
    harness("memories.delete", who=me, id=moved)
    assert in_sections(harness, me, "u1")["where"] == (["Lisbon"], [])


def test_what_is_over_is_meant_by_fewer_words(harness: ShardHarness, me: str) -> None:
    tell(harness, me, "I live in Leeds and I work at Siemens Energy.", at="2026-05-01")
    tell(harness, me, "I no longer work at Siemens.", at="2026-06-01")
    shown = in_sections(harness, me, "u1")
    assert shown["where"] == (["Leeds"], [])
    assert shown["work"] == ([], ["Siemens Energy"])


def test_who_is_not_allergic_to_nuts_may_be_to_pine_nuts(harness: ShardHarness, me: str) -> None:
    tell(harness, me, "I'm allergic to pine nuts.", at="2026-05-01")
    tell(harness, me, "I'm not allergic to nuts.", at="2026-06-01")
    assert in_sections(harness, me, "u1")["health_and_diet"] == (["pine nuts"], [])


def test_a_set_fact_is_in_its_section(harness: ShardHarness, me: str) -> None:
    body = {"static": [{"key": "diet", "value": "vegan"}, {"key": "crm_id", "value": "7"}]}
    (section,) = harness("profile.update", body, who=me, query={"user_id": "x"}).body["sections"]
    assert section["name"] == "health_and_diet"
    assert [fact["value"] for fact in section["current"]] == ["vegan"]


def test_favourites_that_were_kept_in_another_spelling_are_followed(
    harness: ShardHarness, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "in_one_spelling", str.casefold)  # as earlier releases did
    remember(harness, me, "My favorite color is teal.")
    assert facts(harness, me)["favorite.color"] == ["teal"]
    monkeypatch.undo()
    remember(harness, me, "My favourite colour is ochre.")
    assert facts(harness, me) == {"favorite.colour": ["ochre"]}


def test_a_favourite_of_a_conversation_is_one_fact(harness: ShardHarness, me: str) -> None:
    for said in ("My favourite colour is teal.", "My favourite colour is ochre."):
        body = {"messages": [{"role": "user", "content": said}], "user_id": "ada"}
        assert harness("memories.process", body, who=me).status == 202
        harness.settle()
    assert facts(harness, me) == {"favorite.colour": ["ochre"]}
    (gone,) = in_sections(harness, me, "ada").values()
    assert gone == (["ochre"], ["teal"])


def test_claims_that_a_memory_is_given_later_are_in_the_profile(
    harness: ShardHarness, me: str
) -> None:
    said = "I am married to Cleo."
    remember(harness, me, said)
    assert facts(harness, me) == {}
    body = {"messages": [{"role": "user", "content": said}], "user_id": "ada"}
    job = harness("memories.process", body, who=me).body["job_id"]
    assert facts(harness, me) == {"married_to": ["Cleo"]}
    assert harness("memories.jobs.undo", who=me, job_id=job).status == 200
    assert facts(harness, me) == {}


def test_what_is_read_anew_is_in_the_profile_however_late(
    harness: ShardHarness, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (memory,) = tell(harness, me, "I live in Lisbon.", at="2024-05-01", user="ada")
    learned, learn, extract = threading.Event(), store.learn, RuleEngine.extract

    def learns(*given: Any) -> None:
        learn(*given)
        learned.set()

    async def extracts_later(*given: Any) -> Any:
        await asyncio.to_thread(learned.wait)
        return await extract(*given)

    monkeypatch.setattr(store, "learn", learns)
    monkeypatch.setattr(RuleEngine, "extract", extracts_later)
    edited = {"content": "I am married to Cleo."}
    assert harness("memories.update", edited, who=me, id=memory).status in (200, 202)
    assert facts(harness, me) == {"married_to": ["Cleo"]}
