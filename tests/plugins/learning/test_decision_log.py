"""The decision log and the advice drawn from it, through a real shard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plugins.learning.confidence import ConfidenceQuery
from plugins.learning.corrections import RelevantQuery
from plugins.learning.decision_log import SimilarDecisionQuery
from runtime.api.operation import Query
from runtime.errors import ValidationFailed
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.learning_harness import PLUGINS
from tests.support.shard_harness import ShardHarness

LATE = "Refund the parcel that came late"


class DecisionHarness(ShardHarness):
    """A shard harness with the decision log and advice, and one account whose token is `me`."""

    def __init__(self, directory: Path):
        self.embedder = WordEmbedder()
        super().__init__(directory, PLUGINS, Models(self.embedder))
        self.me = self.register()

    def log(self, description: str, **fields: Any) -> dict[str, Any]:
        answer = self(
            "decisions.log",
            {"decision_type": "refund", "description": description, **fields},
            who=self.me,
        )
        assert answer.status == 201, answer
        return answer.body

    def advise(self, query: str, **fields: Any) -> dict[str, Any]:
        answer = self("confidence.get", who=self.me, query={"query": query, **fields})
        assert answer.status == 200, answer
        assert 0 <= answer.body["lower_bound"] <= answer.body["confidence"] <= 1
        return answer.body


@pytest.fixture
def log(tmp_path: Path) -> Iterator[DecisionHarness]:
    harness = DecisionHarness(tmp_path)
    yield harness
    harness.close()


# --- the log --------------------------------------------------------------------------------------


def test_a_decision_is_kept_as_it_was_told_and_found_again_by_meaning(log: DecisionHarness) -> None:
    made = log.log(LATE, outcome="success", context={"days": 14})
    log.log("Hire a second gardener for the spring")
    assert (made["outcome"], made["context"], made["collection_id"]) == (
        "success",
        {"days": 14},
        None,
    )
    found = log(
        "decisions.similar", who=log.me, query={"query": "the parcel came late, refund it"}
    ).body
    assert found["items"][0]["id"] == made["id"] and 0.5 < found["items"][0]["score"] <= 1
    assert log("decisions.get", who=log.me, id=made["id"]).body == made


def test_one_that_could_not_be_embedded_is_found_later(log: DecisionHarness) -> None:
    log.embedder.down = True
    log.log(LATE)
    log.embedder.down = False
    log.settle()
    assert log("decisions.similar", who=log.me, query={"query": LATE}).body["total_count"] == 1
    log.embedder.down = True
    assert log("decisions.similar", who=log.me, query={"query": LATE}).body == {
        "items": [],
        "total_count": 0,
    }


def test_lists_and_look_ups_filter(log: DecisionHarness) -> None:
    trips = log("collections.create", {"name": "trips"}, who=log.me).body["id"]
    one, two = (
        log.log(LATE, outcome="failure", collection_id=trips),
        log.log(LATE, decision_type="claim"),
    )

    def listed(**query: Any) -> list[str]:
        return [item["id"] for item in log("decisions.list", who=log.me, query=query).body["items"]]

    assert listed() == [two["id"], one["id"]]
    assert listed(decision_type="claim") == [two["id"]] and listed(outcome="failure") == [one["id"]]
    assert listed(collection_id=trips) == [one["id"]]
    similar = log(
        "decisions.similar", who=log.me, query={"query": LATE, "collection_id": trips}
    ).body
    assert [item["id"] for item in similar["items"]] == [one["id"]]
    log("collections.delete", who=log.me, id=trips)
    assert listed() == [two["id"]] and log("decisions.get", who=log.me, id=one["id"]).status == 404
    log.settle()
    assert listed() == [two["id"]]
    stranger = log.register("eve@example.com", "Eve")
    assert log("decisions.get", who=stranger, id=two["id"]).status == 403


# --- advice ---------------------------------------------------------------------------------------


def test_without_decisions_the_advice_is_to_ask(log: DecisionHarness) -> None:
    found = log.advise(LATE)
    assert (
        found["recommended_action"],
        found["basis"],
        found["decision_count"],
        found["confidence"],
    ) == ("ask", "prior", 0, 0.5)
    assert found["threshold"] == pytest.approx(0.8)


def test_many_successes_are_needed_to_act(log: DecisionHarness) -> None:
    for _ in range(4):
        log.log(LATE, outcome="success")
    few = log.advise(LATE)
    assert (few["recommended_action"], few["basis"], few["decision_count"]) == (
        "ask",
        "evidence",
        4,
    )
    for _ in range(16):
        log.log(LATE, outcome="success")
    many = log.advise(LATE)
    assert many["recommended_action"] == "act" and many["lower_bound"] >= many["threshold"]
    for _ in range(5):
        log.log(LATE, outcome="failure")
    assert log.advise(LATE)["recommended_action"] == "ask"


def test_what_is_not_similar_or_has_no_outcome_does_not_count(log: DecisionHarness) -> None:
    for _ in range(20):
        log.log("Plant seventeen apple trees, northern garden", outcome="success")
        log.log(LATE)
    assert log.advise(LATE)["decision_count"] == 0


def test_records_count_by_their_context(log: DecisionHarness) -> None:
    for number in range(20):
        body = {
            "policy_key": "support", "candidates": [{"action_key": "refund"}], "mode": "observe",
            "chosen_action_key": "refund", "context": {"country": ("pt", "es")[number % 2]},
            "user_id": "ada",
        }  # fmt: skip
        record = log("learning.decide", body, who=log.me).body["decision_id"]
        log("learning.report", {"success": number % 2 == 0}, who=log.me, id=record)
    there = log.advise(
        "refund?", policy_key="support", action_key="refund", context='{"country": "pt"}'
    )
    here = log.advise("refund?", policy_key="support", context='{"country": "es"}')
    assert (there["decision_count"], here["decision_count"]) == (10, 10)
    assert there["confidence"] > 0.9 and here["confidence"] < 0.1
    assert log.advise("refund?", policy_key="support", end_user_id="bob")["decision_count"] == 0
    assert log.advise("refund?", policy_key="support", action_key="other")["decision_count"] == 0
    assert log.advise("country: pt")["decision_count"] >= 10


def test_a_correction_calls_for_a_review_until_it_has_gone_well_since(log: DecisionHarness) -> None:
    for _ in range(20):
        log.log(LATE, outcome="success")
    right = {"corrected_content": f"{LATE} only once", "correction_type": "procedural"}
    assert log("corrections.create", right, who=log.me).status == 201
    found = log.advise(LATE)
    assert found["recommended_action"] == "review"
    assert [each["corrected_content"] for each in found["corrections"]] == [
        right["corrected_content"]
    ]
    for _ in range(12):
        log.log(LATE, outcome="success")
    assert log.advise(LATE)["recommended_action"] == "act"


def test_a_context_that_is_no_object_is_refused(log: DecisionHarness) -> None:
    assert log("confidence.get", who=log.me, query={"query": "x", "context": "["}).status == 422


@pytest.mark.parametrize("model", [ConfidenceQuery, RelevantQuery, SimilarDecisionQuery])
def test_a_question_has_words(model: type[Query]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate({"query": " \n"})


def test_a_user_is_named_once() -> None:
    same = {"query": "refund", "user_id": "ada", "end_user_id": "ada"}
    assert ConfidenceQuery.model_validate(same).user_id == "ada"
    with pytest.raises(ValidationFailed):
        ConfidenceQuery.model_validate({**same, "end_user_id": "eve"})
