"""What a conversation leaves behind turn by turn: over HTTP, without a language model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.in_process import InProcess, in_process

EVERYDAY = (
    "My accountant is Mrs. Lindqvist.",
    "I've been sober since 2016.",
    "We fostered a greyhound called Comet last winter.",
    "Our anniversary is on the 9th of June.",
    "Peanuts make my throat swell.",
    "The spare key is under the blue flower pot.",
    "Dad's surgery went well on Tuesday.",
    "I take my coffee black, two cups before nine.",
    "Nora starts school in September.",
    "Our landlord raised the rent by 80 euros.",
    "I sleep badly.",
    "Blue.",
    "Twice a week.",
    "我妹妹住在成都，她是医生。",
    "来週、京都へ引っ越します。",
    "내 생일은 3월 5일이야.",
    "Мою собаку зовут Шарик.",
    "Mój lekarz nazywa się Nowak.",
    "تعيش أختي في القاهرة.",
    "Meine Schwester heißt Greta und wohnt in Graz.",
)
SMALL_TALK = {
    "Hello there! How are you?": "greeting",
    "Yes, sure, thanks!": "acknowledgement",
    "Wow, that is so cool!": "reaction",
    "What do you think?": "question",
    "😀 😀": "reaction",
}


class Account:
    def __init__(self, service: InProcess):
        self.service, self.token = service, service.register("ada@example.com")

    def process(self, *said: str, **further: Any) -> dict[str, Any]:
        messages = [{"role": "user", "name": "Ada", "content": text} for text in said]
        return self.service.ingested({"messages": messages, **further}, who=self.token)

    def memories(self) -> dict[str, dict[str, Any]]:
        answer = self.service.request("GET", "/v1/memories?limit=100", who=self.token)
        return {memory["content"]: memory for memory in answer.json()["items"]}

    def search(self, query: str, **further: Any) -> list[dict[str, Any]]:
        body = {"query": query, **further}
        return self.service.request("POST", "/v1/search", body, who=self.token).json()["results"]


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    with in_process(tmp_path) as service:
        yield Account(service)


def test_what_is_told_is_kept_word_for_word(account: Account) -> None:
    result = account.process(*EVERYDAY, session_id="kitchen", occurred_at="2024-05-01T08:00:00Z")
    kept = account.memories()
    assert set(EVERYDAY) <= set(kept)
    assert {kept[text]["session_id"] for text in EVERYDAY} == {"kitchen"}
    assert {kept[text]["speaker"] for text in EVERYDAY} == {"Ada"}
    assert {kept[text]["role"] for text in EVERYDAY} == {"user"}
    assert {kept[text]["occurred_at"][:10] for text in EVERYDAY} == {"2024-05-01"}
    turns = [
        event for event in result["events"] if kept[event["memory"]]["source_type"] != "inferred"
    ]
    for source, event in enumerate(turns):
        assert event["evidence"] == [
            {
                "source": source,
                "start": 0,
                "end": len(EVERYDAY[source]),
                "quote": EVERYDAY[source],
            }
        ]
    assert result["statements"]["seen"] == result["statements"]["kept"] >= len(EVERYDAY)


def test_small_talk_is_left_out_and_told(account: Account) -> None:
    result = account.process(*SMALL_TALK, "I moved to Oslo in May.", "Great!")
    assert set(account.memories()) == {"I moved to Oslo in May."}
    assert result["statements"] == {
        "seen": 8,
        "kept": 1,
        "facts": 1,
        "left_out": {
            "greeting": 2,
            "acknowledgement": 1,
            "reaction": 3,
            "question": 1,
            "duplicate": 0,
            "other": 0,
        },
    }


@pytest.mark.parametrize(("text", "reason"), SMALL_TALK.items())
def test_a_dry_run_says_why_a_turn_would_be_left_out(
    account: Account, text: str, reason: str
) -> None:
    result = account.process(text, dry_run=True)
    assert set(result["statements"]["left_out"]) >= {reason}
    assert result["statements"]["left_out"][reason] == result["statements"]["seen"] > 0
    assert not account.memories() and not result["events"]


def test_how_much_is_kept_is_a_setting(tmp_path: Path) -> None:
    with in_process(tmp_path / "all", ingestion__salience_min=0) as service:
        account = Account(service)
        account.process(*SMALL_TALK)
        assert set(account.memories()) == set(SMALL_TALK) - {"😀 😀"}
    with in_process(tmp_path / "little", ingestion__salience_min=0.9) as service:
        account = Account(service)
        account.process("It hurts.", "We adopted a beagle named Biscuit in May 2021 from Ghent.")
        assert len(account.memories()) == 1


def test_a_fact_and_its_turn_are_one_result(account: Account) -> None:
    turn = "My sister Clara plays the cello. Tomorrow we rehearse the third suite in Graz."
    fact = "My sister Clara plays the cello."
    account.process(turn, session_id="s")
    kept = account.memories()
    assert set(kept) == {turn, fact}
    assert kept[fact]["source_reference"] == kept[turn]["id"]
    hits = account.search("Who plays the cello?")
    assert [hit["id"] for hit in hits] == [kept[turn]["id"]]
    (evidence,) = hits[0]["evidence"]
    assert (evidence["memory_id"], evidence["fact_id"]) == (kept[turn]["id"], kept[fact]["id"])
    assert turn[evidence["start"] : evidence["end"]] == fact
    alone = account.search("Who plays the cello?", filters={"source_type": "inferred"})
    assert [hit["id"] for hit in alone] == [kept[fact]["id"]] and "evidence" not in alone[0]


def test_a_fact_whose_text_was_edited_is_a_result_of_its_own(account: Account) -> None:
    turn = "My sister Clara plays the cello. Tomorrow we rehearse the third suite in Graz."
    account.process(turn, session_id="s")
    fact = account.memories()["My sister Clara plays the cello."]["id"]
    edited = {"content": "My sister Clara plays the harp.", "wait_for_index": True}
    path = f"/v1/memories/{fact}"
    assert account.service.request("PATCH", path, edited, who=account.token).status_code == 200
    for search_type in ("hybrid", "bm25"):
        hits = account.search("Who plays the harp?", search_type=search_type)
        assert (hits[0]["id"], hits[0]["content"]) == (fact, edited["content"])
        assert not any("evidence" in hit for hit in hits)


def test_the_same_turn_on_another_occasion_is_another_memory(account: Account) -> None:
    said = "The training run felt easier than the one before."
    first = account.process(said, session_id="a", occurred_at="2024-05-01")
    assert account.process(said, session_id="b", occurred_at="2024-05-08")["memories_created"] == 1
    again = account.process(said, session_id="a", occurred_at="2024-05-01")
    assert [event["event"] for event in again["events"]] == ["NOOP"]
    assert again["events"][0]["memory_id"] == first["events"][0]["memory_id"]
    assert again["statements"]["left_out"]["duplicate"] == 1


def test_deleting_a_turn_deletes_the_facts_that_rest_on_it(account: Account) -> None:
    turn = "My sister Clara plays the cello. Tomorrow we rehearse the third suite in Graz."
    result = account.process(turn)
    kept = account.memories()
    answer = account.service.request(
        "DELETE", f"/v1/memories/{kept[turn]['id']}", who=account.token
    )
    assert answer.status_code == 200 and not account.memories()
    stats = account.service.request("GET", "/v1/knowledge-graph/stats", who=account.token).json()
    assert stats["relationships"] == 0
    jobs = account.service.request("GET", "/v1/memories/jobs", who=account.token).text
    assert "cello" not in jobs and len(result["events"]) == 2


def test_what_was_recalled_is_no_part_of_a_turn(account: Account) -> None:
    account.process("<memories>Ada lives in Rome.</memories>\nWhat a storm we had in Porto!")
    assert set(account.memories()) == {"What a storm we had in Porto!"}
