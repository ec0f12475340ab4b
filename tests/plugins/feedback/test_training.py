"""Feedback and what is learned from it: statistics, promotion, versions, rollback, erasure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from plugins.feedback.pairwise import Judged, fitted, gains_of, halves, lower_bound, ndcg, pairs_of
from plugins.feedback.training import RANKING_VERSIONS, TRAINING_STATE, StateRow, VersionRow
from plugins.search.learned_weights import RANKING_WEIGHTS, ActiveRow
from runtime.api import jobs, tenants
from runtime.api.context import WriteContext
from runtime.api.operation import Call, Principal
from runtime.timestamps import iso
from storage.store import Transaction
from tests.support.training_harness import TOPICS, TrainingHarness, query


@pytest.fixture
def school(tmp_path: Path) -> Iterator[TrainingHarness]:
    harness = TrainingHarness(tmp_path)
    yield harness
    harness.close()


# --- feedback -------------------------------------------------------------------------------------


def test_feedback_is_counted_and_announced(school: TrainingHarness) -> None:
    memory = school("memories.create", {"content": "The key is in the shed."}, who=school.me).body[
        "id"
    ]
    made = school(
        "feedback.relevance",
        {"query": "key", "memory_id": memory, "is_relevant": True},
        who=school.me,
    )
    assert made.status == 201 and made.body["kind"] == "relevance"
    school(
        "feedback.relevance",
        {"query": "key", "memory_id": memory, "is_relevant": False},
        who=school.me,
    )
    school(
        "feedback.ranking",
        {"query": "key", "memory_id": memory, "actual_rank": 7, "expected_rank": 2},
        who=school.me,
    )
    school(
        "feedback.missing", {"query": "key", "expected_content": "The other key."}, who=school.me
    )
    found = school("feedback.stats", who=school.me).body
    assert found["relevance"] == {"count": 2, "relevant": 1, "precision": 0.5}
    assert found["ranking"] == {"count": 1, "mean_absolute_rank_error": 5.0}
    assert found["missing"] == {"count": 1}
    assert found["by_day"] == [
        {"date": iso(school.now_ms)[:10], "relevance": 2, "ranking": 1, "missing": 1}
    ]
    assert school.events("user.") == ["user.feedback_received"] * 4


def test_feedback_goes_with_its_memory(school: TrainingHarness) -> None:
    memory = school("memories.create", {"content": "The key is in the shed."}, who=school.me).body[
        "id"
    ]
    school(
        "feedback.ranking",
        {"query": "key", "memory_id": memory, "actual_rank": 7, "expected_rank": 2},
        who=school.me,
    )
    school("memories.delete", who=school.me, id=memory)
    found = school("feedback.stats", who=school.me).body
    assert (
        found["ranking"] == {"count": 0, "mean_absolute_rank_error": None} and found["by_day"] == []
    )
    assert (
        school(
            "feedback.relevance",
            {"query": "key", "memory_id": memory, "is_relevant": True},
            who=school.me,
        ).status
        == 404
    )


def test_no_feedback_has_no_precision(school: TrainingHarness) -> None:
    found = school("feedback.stats", who=school.me).body
    assert found["relevance"]["precision"] is None and found["by_day"] == []


# --- training -------------------------------------------------------------------------------------


def test_too_little_feedback_promotes_nothing(school: TrainingHarness) -> None:
    memory = school("memories.create", {"content": "The key is in the shed."}, who=school.me).body[
        "id"
    ]
    school.tell("key", memory, True)
    result = school.train()
    assert result["promoted"] is False and "Too little feedback" in result["reason"]
    assert school.metrics() == {"active_version": 0, "versions": []}
    assert school.events("rl.") == ["rl.training_started", "rl.training_completed"]


def test_a_liking_for_the_recent_and_important_is_learned_promoted_used_and_taken_back(
    school: TrainingHarness,
) -> None:
    notes = school.furnish()
    before = {topic: school.ask(topic).index(ids[0]) for topic, ids in notes.items()}
    for topic in TOPICS:
        school.tell(topic, notes[topic][0], True)
        school.tell(topic, notes[topic][-1], False)
    result = school.train()
    assert result["promoted"] and result["metrics"]["lower_bound"] > 0, result
    after = {topic: school.ask(topic).index(ids[0]) for topic, ids in notes.items()}
    assert np.mean(list(after.values())) < np.mean(list(before.values()))
    version = school.metrics()["versions"][0]
    assert school.metrics()["active_version"] == version["version"] == 1
    assert version["promoted"] and version["ndcg_after"] > version["ndcg_before"]
    hit = school("search.search", {"query": query(TOPICS[0]), "explain": True}, who=school.me).body[
        "results"
    ][0]
    assert hit["score"] == pytest.approx(sum(hit["explanation"].values()), abs=1e-4)
    assert hit["explanation"]["feedback"] != 0

    assert school("rl.rollback", {"version": 0}, who=school.me).body["active_version"] == 0
    assert {topic: school.ask(topic).index(ids[0]) for topic, ids in notes.items()} == before
    assert school("rl.rollback", {"version": 1}, who=school.me).body["active_version"] == 1
    assert {topic: school.ask(topic).index(ids[0]) for topic, ids in notes.items()} == after
    assert school("rl.rollback", {"version": 9}, who=school.me).status == 404
    with pytest.raises(ValidationError):
        school("rl.rollback", {"version": 2**63}, who=school.me)

    school("memories.delete", who=school.me, id=notes[TOPICS[0]][-1])
    school.settle()
    versions = school.metrics()["versions"]
    assert [(each["version"], each["promoted"]) for each in versions][-1] == (1, False)
    assert "erased" in versions[-1]["reason"] and school.metrics()["active_version"] in (0, 2)
    assert school("rl.rollback", {"version": 1}, who=school.me).status == 404


def test_random_feedback_is_not_promoted(school: TrainingHarness) -> None:
    notes, chance = school.furnish(), random.Random(5)
    for topic in TOPICS:
        liked, disliked = chance.sample(notes[topic], 2)
        school.tell(topic, liked, True)
        school.tell(topic, disliked, False)
    result = school.train()
    assert result["promoted"] is False and result["version"] == 1, result
    assert school.metrics()["active_version"] == 0
    assert school("rl.rollback", {"version": 1}, who=school.me).status == 404


def test_a_training_that_fails_for_good_says_so_and_keeps_nothing_it_must_not(
    school: TrainingHarness,
) -> None:
    """Its last attempt is failed by hand, in the midst of a withdrawal."""
    scope = school.scope_of(school.me)

    def fail(transaction: Transaction) -> None:
        principal, _ = tenants.tenant(transaction, scope.slot, scope.tenant)
        made = _write_context(school, transaction, principal, "made")
        made[RANKING_VERSIONS].put(
            (1,), VersionRow(1, school.now_ms, 0.1, 0.2, True, "promoted", {"recency": 0.5})
        )
        made[RANKING_WEIGHTS].put((), ActiveRow(1, {"recency": 0.5}))
        made[TRAINING_STATE].put((), StateRow(erasures=1, retraining=True))
        job_id = made.enqueue("rl.train", {"policy": "ranking", "because": "erased"})
        ctx = _write_context(school, transaction, principal, job_id)
        jobs.begin(ctx, job_id)
        jobs.fail(ctx, job_id, "the disk is on fire", 0.0, final=True)

    school.shard.store.write(fail)
    assert school.metrics()["active_version"] == 0
    assert not school.metrics()["versions"][0]["promoted"]
    assert school.events("rl.") == ["rl.training_failed"]


def _write_context(
    school: TrainingHarness, transaction: Transaction, principal: Principal, request_id: str
) -> WriteContext:
    call = Call("job:rl.train", 0, school.now_ms, request_id.encode().ljust(32)[:32], request_id)
    return WriteContext(
        transaction, school.scope_of(school.me), call, school.shard.environment, principal
    )


# --- the mathematics ------------------------------------------------------------------------------


def test_pairs_say_what_the_feedback_says() -> None:
    pairs = pairs_of(4, {2: True, 0: False}, {})
    assert {(better, worse) for better, worse, _ in pairs} == {
        (2, 0),
        (2, 1),
        (2, 3),
        (1, 0),
        (3, 0),
    }
    assert sum(weight for _, _, weight in pairs) == pytest.approx(1)
    assert {pair[:2] for pair in pairs_of(4, {}, {3: 2})} == {(3, 1), (3, 2)}
    assert {pair[:2] for pair in pairs_of(4, {}, {0: 3})} == {(1, 0), (2, 0)}
    assert pairs_of(4, {}, {1: 2}) == []


def test_ndcg_is_the_textbook_one() -> None:
    judged = Judged("q", np.zeros((3, 1)), np.array([3.0, 2.0, 1.0]), np.array([0.0, 1.0, 0.5]))
    got = 1 / np.log2(3) + 0.5 / np.log2(4)
    assert ndcg(judged, np.zeros(1)) == pytest.approx(got / (1 + 0.5 / np.log2(3)))
    assert ndcg(Judged("q", np.zeros((1, 1)), np.ones(1), np.zeros(1)), np.zeros(1)) == 0.0


def test_gains_follow_judgements_and_expected_ranks() -> None:
    assert gains_of(4, {0: True, 1: False}, {2: 3}).tolist() == [1.0, 0.0, 0.5, 0.0]


def test_fitting_finds_what_makes_the_better_one_better_and_leaves_the_rest() -> None:
    rng = np.random.default_rng(1)
    queries = []
    for number in range(40):
        features = rng.random((6, 3))
        best, worst = int(features[:, 1].argmax()), int(features[:, 1].argmin())
        queries.append(
            Judged(
                str(number),
                features,
                np.zeros(6),
                np.zeros(6),
                pairs_of(6, {best: True, worst: False}, {}),
            )
        )
    found = fitted(queries, 3)
    assert found[1] > 0.3 and abs(found[0]) < 0.15 and abs(found[2]) < 0.15
    assert fitted([], 3).tolist() == [0, 0, 0]


def test_halves_are_even_disjoint_and_the_same_for_a_seed() -> None:
    queries = [
        Judged(str(number), np.zeros((1, 1)), np.zeros(1), np.zeros(1)) for number in range(11)
    ]
    one, other = halves(queries, 1)
    assert (len(one), len(other)) == (6, 5) and {q.query for q in one}.isdisjoint(
        q.query for q in other
    )
    assert [q.query for q in halves(queries[::-1], 1)[0]] == [q.query for q in one]
    assert [q.query for q in halves(queries, 2)[0]] != [q.query for q in one]


def test_the_bound_is_students() -> None:
    assert lower_bound([0.1, 0.2, 0.3], 0.05) == pytest.approx(
        0.2 - 2.919986 * 0.1 / 3**0.5, abs=1e-6
    )
    assert lower_bound([0.5]) == -np.inf
