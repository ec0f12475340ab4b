"""Outcome memory through a real shard: records, outcomes, insights, evaluation."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from plugins.learning.decision_store import (
    DECISION_RECORDS,
    POLICIES,
    POLICY_CELLS,
    POLICY_NAMES,
    CellRow,
    folds_of,
)
from runtime.api.context import ReadContext
from runtime.api.operation import Call
from runtime.errors import ValidationFailed
from tests.support.learning_harness import POLICY, TWO, LearningHarness


@pytest.fixture
def office(tmp_path: Path) -> Iterator[LearningHarness]:
    harness = LearningHarness(tmp_path)
    yield harness
    harness.close()


# --- records -------------------------------------------------------------------------------------


def test_a_choice_comes_with_its_whole_distribution_and_its_exact_propensity(
    office: LearningHarness,
) -> None:
    record = office.decide(exploration_rate=0.2)
    assert sum(record["distribution"].values()) == pytest.approx(1)
    assert min(record["distribution"].values()) >= 0.1
    assert record["action_probability"] == record["distribution"][record["chosen_action_key"]]
    assert (record["propensity_source"], record["replayed"], record["authorizes_action"]) == (
        "server",
        False,
        False,
    )
    shown = office("learning.get", who=office.me, id=record["decision_id"]).body
    assert {name: shown[name] for name in record} == record
    assert (
        shown["outcomes"],
        shown["status"],
        shown["composite_reward"],
        shown["evidence_revision"],
    ) == ([], "pending", None, 0)


def test_candidates_are_spoken_for_by_memories_that_can_be_read(office: LearningHarness) -> None:
    kept, gone = (
        office("memories.create_raw", {"content": text}, who=office.me).body["id"]
        for text in ("Refunds pleased Ada.", "Vouchers did not.")
    )
    assert office("memories.delete", who=office.me, id=gone).status == 200
    body = {"policy_key": POLICY, "candidates": [{**TWO[0], "memory_ids": [kept, gone]}, TWO[1]]}
    refused = office("learning.decide", body, who=office.me)
    assert (refused.status, refused.body["code"]) == (404, "resource_not_found")
    body["candidates"][0]["memory_ids"] = [kept]
    made = office("learning.decide", body, who=office.me, key="once")
    assert made.status == 201
    assert office("memories.delete", who=office.me, id=kept).status == 200
    again = office("learning.decide", body, who=office.me, key="once")
    assert (again.status, again.body["decision_id"]) == (201, made.body["decision_id"])


def test_without_evidence_the_baseline_acts_except_for_the_explored_share(
    office: LearningHarness,
) -> None:
    record = office.decide(baseline_action_key="voucher", exploration_rate=0.1)
    assert record["distribution"] == pytest.approx({"refund": 0.05, "voucher": 0.95})
    assert record["recommended_action_key"] == "voucher"
    assert record["used_baseline"] == (record["chosen_action_key"] == "voucher")
    explored = office.decide(baseline_action_key="voucher", mode="explore", exploration_rate=0.1)
    assert explored["distribution"]["refund"] > 0.3 and not explored["used_baseline"]


def test_evidence_moves_choices_and_recommendations(office: LearningHarness) -> None:
    office.history(60, {"refund": 0.95, "voucher": 0.1})
    record = office.decide(baseline_action_key="voucher")
    assert record["recommended_action_key"] == "refund"
    assert record["distribution"]["refund"] > 0.9
    assert record["policy_version"] == 60
    greedy = office.decide(mode="recommend")
    assert (
        greedy["distribution"] == {"refund": 1.0, "voucher": 0.0}
        and greedy["action_probability"] == 1.0
    )


def test_an_action_never_tried_is_measured_by_the_range_of_the_others(
    office: LearningHarness, stats: ModuleType
) -> None:
    """Where rewards run from −1 to 1, nothing known means 0 and not one half."""
    for _ in range(12):
        office.report(office.observe("refund", 0.5), reward=0.3)
    new = [*TWO, {"action_key": "lawsuit"}]
    record = office.decide(mode="recommend", candidates=new)
    assert record["recommended_action_key"] == "refund"
    actions = {action["action_key"]: action for action in office.insights()["actions"]}
    assert actions["lawsuit"]["posterior"]["mean"] == 0.0
    told = actions["refund"]["posterior"]["distribution"]
    assert (told["family"], told["degrees_of_freedom"], told["low"], told["high"]) == (
        "student_t",
        14,
        -1,
        1,
    )
    half = told["scale"] * stats.t.ppf(0.95, told["degrees_of_freedom"])
    assert actions["refund"]["posterior"]["credible_interval_90"] == pytest.approx(
        [told["location"] - half, told["location"] + half]
    )


def test_shadow_lets_the_baseline_act_and_notes_the_recommendation(office: LearningHarness) -> None:
    office.history(40, {"refund": 1.0, "voucher": 0.0})
    record = office.decide(mode="shadow", baseline_action_key="voucher")
    assert (
        record["chosen_action_key"],
        record["recommended_action_key"],
        record["used_baseline"],
    ) == ("voucher", "refund", True)
    assert record["distribution"] == {"refund": 0.0, "voucher": 1.0}


def test_an_observed_choice_is_recorded_as_reported(office: LearningHarness) -> None:
    record = office.decide(mode="observe", chosen_action_key="refund", action_probability=0.3)
    assert (record["propensity_source"], record["action_probability"]) == ("client", 0.3)
    assert record["distribution"] == {"refund": 0.3}
    alone = office.decide(mode="observe", candidates=TWO[:1], chosen_action_key="refund")
    assert alone["action_probability"] == 1.0
    unknown = office.decide(mode="observe", chosen_action_key="refund", propensity_unknown=True)
    assert (
        unknown["propensity_source"],
        unknown["action_probability"],
        unknown["distribution"],
    ) == ("unknown", None, {})
    for told in ({"action_probability": 0.3}, {"behavior_probabilities": {"refund": 1.0}}):
        doubted = office.decide(
            mode="observe", chosen_action_key="refund", propensity_unknown=True, **told
        )
        assert (doubted["propensity_source"], doubted["distribution"]) == ("unknown", {})


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"mode": "observe"}, "chosen_action_key"),
        ({"mode": "observe", "chosen_action_key": "refund"}, "action_probability"),
        (
            {"mode": "observe", "chosen_action_key": "lawsuit", "action_probability": 0.5},
            "chosen_action_key",
        ),
        (
            {"mode": "observe", "chosen_action_key": "refund",
             "behavior_probabilities": {"refund": 0.5}},
            "behavior_probabilities",
        ),
        (
            {"mode": "observe", "chosen_action_key": "refund",
             "behavior_probabilities": {"refund": 0.4, "voucher": 0.6}, "action_probability": 0.5},
            "behavior_probabilities",
        ),
        ({"mode": "shadow"}, "baseline_action_key"),
        ({"chosen_action_key": "refund"}, "chosen_action_key"),
        ({"baseline_action_key": "lawsuit"}, "baseline_action_key"),
        ({"candidates": [*TWO, TWO[0]]}, "candidates"),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_honest_is_refused(
    office: LearningHarness, fields: dict[str, Any], at: str
) -> None:
    with pytest.raises(ValidationFailed) as refused:
        office.decide(**fields)
    assert refused.value.details[0]["loc"] == ["body", at]


def test_a_repeated_key_makes_one_decision_and_one_report(office: LearningHarness) -> None:
    first, again = office.decide(key="k"), office.decide(key="k")
    assert again == {**first, "replayed": True}
    told = office.report(first["decision_id"], key="r", success=True)
    repeated = office.report(first["decision_id"], key="r", success=True)
    assert repeated == {**told, "replayed": True}
    assert office.insights()["actions"][0]["count"] + office.insights()["actions"][1]["count"] == 1


# --- outcomes -------------------------------------------------------------------------------------


def test_an_observation_that_corrects_another_stands_where_that_stood(
    office: LearningHarness,
) -> None:
    decision = office.observe("refund", 0.5)
    first, _ = (
        office.report(decision, observations=[{"metric_key": "success", "value": value}])
        for value in (1, 0)
    )
    (corrected,) = first["observation_ids"]
    late = {"metric_key": "success", "value": 0.5, "corrects": corrected}
    assert office.report(decision, observations=[late])["composite_reward"] == 0.0
    third = office.report(decision, observations=[{**late, "corrects": None, "value": 0.25}])
    assert third["composite_reward"] == 0.25


def test_a_reward_lies_in_the_range_that_its_decision_declares(office: LearningHarness) -> None:
    decision = office.observe("refund", 0.5, reward_range=[2, 5])
    assert office.report(decision, reward=3.0)["composite_reward"] == 3.0
    for told in ({"reward": 1.0}, {"reward": 5.5}, {"success": True}):
        refused = office("learning.report", told, who=office.me, id=decision)
        assert refused.status == 422 and "2 to 5" in refused.body["message"], told
    plain = office.observe("refund", 0.5)
    assert office("learning.report", {"reward": 1.5}, who=office.me, id=plain).status == 422


def test_outcomes_append_and_the_latest_of_each_metric_counts(office: LearningHarness) -> None:
    decision = office.observe("refund", 0.5)
    first = office.report(
        decision, observations=[{"metric_key": "speed", "value": 0.2, "is_final": False}]
    )
    assert (first["status"], first["composite_reward"], first["outcome_count"]) == (
        "pending",
        0.2,
        1,
    )
    second = office.report(decision, observations=[{"metric_key": "joy", "value": 0.6}])
    assert second["composite_reward"] == pytest.approx(0.4)
    wrong = second["observation_ids"][0]
    third = office.report(
        decision,
        observations=[{"metric_key": "joy", "value": 1.0, "corrects": wrong, "source": "survey"}],
    )
    assert (third["status"], third["composite_reward"], third["outcome_count"]) == (
        "corrected",
        pytest.approx(0.6),
        3,
    )
    shown = office("learning.get", who=office.me, id=decision).body
    outcomes = shown["outcomes"]
    assert [(told["metric_key"], told["value"], told["corrects"]) for told in outcomes] == [
        ("speed", 0.2, None), ("joy", 0.6, None), ("joy", 1.0, wrong),
    ]  # fmt: skip
    assert shown["evidence_revision"] == third["evidence_revision"] == 3


def test_metrics_are_weighted_as_declared(office: LearningHarness) -> None:
    decision = office.observe("refund", 0.5, metric_weights={"a": 3, "b": 1})
    values = [
        {"metric_key": name, "value": value}
        for name, value in (("a", 1.0), ("b", 0.0), ("aside", -1.0))
    ]
    assert office.report(decision, observations=values)["composite_reward"] == pytest.approx(0.75)
    only_aside = office.observe("refund", 0.5, metric_weights={"a": 1})
    assert office.report(only_aside, observations=values[2:])["composite_reward"] is None


def test_the_range_is_the_declared_one(office: LearningHarness) -> None:
    decision = office.observe("refund", 0.5, reward_range=[0, 10])
    assert (
        office.report(decision, observations=[{"metric_key": "stars", "value": 7}])[
            "composite_reward"
        ]
        == 7
    )
    for body in ({"observations": [{"metric_key": "stars", "value": 11}]}, {"reward": -0.5}):
        assert office("learning.report", body, who=office.me, id=decision).status == 422
    plain = office.observe("refund", 0.5)
    assert (
        office(
            "learning.report",
            {"observations": [{"metric_key": "x", "value": 2}]},
            who=office.me,
            id=plain,
        ).status
        == 422
    )
    assert office.report(plain, reward=-1.0)["composite_reward"] == -1.0


def test_a_correction_must_name_what_it_corrects(office: LearningHarness) -> None:
    one, other = office.observe("refund", 0.5), office.observe("refund", 0.5)
    foreign = office.report(other, success=True)["observation_ids"][0]
    told = office.report(one, success=True)["observation_ids"][0]
    for wrong in (
        {"metric_key": "success", "value": 0, "corrects": foreign},
        {"metric_key": "joy", "value": 0, "corrects": told},
    ):
        assert (
            office("learning.report", {"observations": [wrong]}, who=office.me, id=one).status
            == 422
        )


def test_an_observation_with_a_key_of_its_own_is_told_once(office: LearningHarness) -> None:
    decision = office.observe("refund", 0.5)
    told = [{"metric_key": "joy", "value": 1, "idempotency_key": "a"}]
    first = office.report(decision, observations=told)
    again = office.report(decision, observations=told)
    assert again == {**first, "replayed": True}
    other = [{"metric_key": "joy", "value": 0, "idempotency_key": "a"}]
    assert (
        office("learning.report", {"observations": other}, who=office.me, id=decision).status == 409
    )


# --- insights -------------------------------------------------------------------------------------


def test_insights_by_hand(office: LearningHarness) -> None:
    for chosen, probability, success in (
        ("refund", 0.5, True),
        ("refund", 0.25, False),
        ("voucher", 0.5, True),
    ):
        office.report(office.observe(chosen, probability), success=success)
    office.observe("refund", 0.5)
    found = office.insights()
    refund, voucher = found["actions"]
    assert (
        found["policy_version"],
        found["action_count"],
        found["missingness"],
        found["max_weight"],
    ) == (3, 2, 0.25, 4.0)
    assert (refund["action_key"], refund["count"], refund["outcomes"], refund["censored"]) == (
        "refund",
        3,
        2,
        1,
    )
    assert refund["posterior"]["mean"] == pytest.approx(2 / 4)
    assert refund["posterior"]["distribution"] == {"family": "beta", "a": 2.0, "b": 2.0}
    assert refund["estimators"]["ips"] == pytest.approx(2 / 3)
    assert refund["estimators"]["snips"] == pytest.approx(2 / 6)
    assert refund["effective_sample_size"] == pytest.approx(36 / 20)
    assert voucher["estimators"]["ips"] == pytest.approx(2 / 3)
    assert found["worst_case_bounds"] == {
        "lower": pytest.approx(2 / 4),
        "upper": pytest.approx(3 / 4),
    }
    assert refund["probability_best"] + voucher["probability_best"] == pytest.approx(1)


def test_a_correction_takes_back_what_was_counted(office: LearningHarness) -> None:
    decision = office.observe("refund", 0.5)
    told = office.report(decision, success=True)["observation_ids"][0]
    before = office.insights()
    office.report(
        decision, observations=[{"metric_key": "success", "value": False, "corrects": told}]
    )
    after = office.insights()
    assert before["actions"][0]["posterior"]["mean"] == pytest.approx(2 / 3)
    assert after["actions"][0]["posterior"]["mean"] == pytest.approx(1 / 3)
    assert after["actions"][0]["estimators"]["ips"] == 0 and after["actions"][0]["outcomes"] == 1


def test_insights_can_be_asked_for_by_action_user_collection_and_context(
    office: LearningHarness,
) -> None:
    trips = office("collections.create", {"name": "trips"}, who=office.me).body["id"]
    office.report(
        office.observe("refund", 0.5, user_id="ada", context={"country": "pt", "late": True}),
        success=True,
    )
    office.report(
        office.observe(
            "voucher", 0.5, user_id="bob", collection_id=trips, context={"country": "es"}
        ),
        success=False,
    )

    def taken(**query: Any) -> dict[str, int]:
        return {
            action["action_key"]: action["count"]
            for action in office.insights(**query)["actions"]
            if action["count"]
        }

    assert taken() == {"refund": 1, "voucher": 1}
    assert taken(action_key=["voucher"]) == {"voucher": 1}
    assert taken(user_id="ada") == {"refund": 1} and taken(user_id="eve") == {}
    assert taken(collection_id=trips) == {"voucher": 1}
    assert taken(context='{"country": "pt"}') == {"refund": 1}
    assert taken(context='{"country": "pt", "late": false}') == {}
    assert taken(context='{"country": "es"}', user_id="ada") == {}
    assert office.ask_insights(context="[1]").status == 422


def test_unknown_policies_are_not_there(office: LearningHarness) -> None:
    for call in (
        office.form("learning.insights", who=office.me),
        office.form("learning.evaluate", {}, who=office.me),
    ):
        assert office.together([office.under(call, "never.seen")])[0].status == 404


def test_policies_are_listed_newest_first_by_their_first_decision(office: LearningHarness) -> None:
    def listed(**query: Any) -> dict[str, Any]:
        return office("learning.policies", who=office.me, query=query).body

    assert listed() == {"items": [], "next_cursor": None, "has_more": False, "total_count": 0}
    first = office.decide(policy_key="first")["decision_id"]
    for name in ("second", "third", "first"):
        office.decide(policy_key=name)
    office.report(first, success=True)
    page = listed(limit=2)
    assert [item["policy_key"] for item in page["items"]] == ["third", "second"] and page[
        "total_count"
    ] == 3
    (oldest,) = listed(limit=2, cursor=page["next_cursor"])["items"]
    expected = {"policy_key": "first", "policy_version": 1, "decisions": 2, "outcomes": 1}
    assert {name: oldest[name] for name in expected} == expected
    assert oldest["created_at"] < page["items"][0]["created_at"] < oldest["last_decision_at"]
    assert office("learning.policies", who=office.register("other@example.com")).body["items"] == []


def test_a_policy_outlives_the_collection_of_its_decisions(office: LearningHarness) -> None:
    collection = office("collections.create", {"name": "passing"}, who=office.me).body["id"]
    office.decide(collection_id=collection)
    office("collections.delete", who=office.me, id=collection)
    (policy,) = office("learning.policies", who=office.me).body["items"]
    assert (policy["policy_key"], policy["decisions"], policy["last_decision_at"]) == (
        POLICY,
        0,
        None,
    )


def test_a_policy_of_an_older_store_is_listed_from_its_next_outcome_on(
    office: LearningHarness,
) -> None:
    decision = office.decide()["decision_id"]

    scope = office.scope_of(office.me)

    def forget(transaction: Any) -> None:
        policies = transaction.bind(POLICIES, scope)
        ((key, row),) = policies.scan()
        policies.put(key, msgspec.structs.replace(row, place=-1))
        transaction.bind(POLICY_NAMES, scope).delete_prefix()

    office.shard.store.write(forget)
    assert office("learning.policies", who=office.me).body["items"] == []
    office.report(decision, success=True)
    (policy,) = office("learning.policies", who=office.me).body["items"]
    assert (policy["policy_key"], policy["outcomes"]) == (POLICY, 1)


def test_the_cells_are_the_sum_over_the_decisions(office: LearningHarness) -> None:
    """What is kept up to date step by step equals a walk over everything, corrections and all."""
    chance = random.Random(4)
    reports: list[tuple[str, str]] = []
    for number in range(120):
        mode = chance.choice(["auto", "explore", "recommend"])
        fields = {
            "user_id": chance.choice(["ada", "bob", None]),
            "reward_range": chance.choice([None, [-2, 2]]),
        }
        decision = office.decide(
            mode=mode, **{name: value for name, value in fields.items() if value}
        )["decision_id"]
        if number % 4:
            told = office.report(
                decision,
                observations=[{"metric_key": "joy", "value": chance.choice([-1, 0, 0.5, 1])}],
            )
            reports.append((decision, told["observation_ids"][0]))
    for decision, observation in chance.sample(reports, 30):
        office.report(
            decision,
            observations=[
                {"metric_key": "joy", "value": chance.choice([-1, 1]), "corrects": observation}
            ],
        )
    scope = office.scope_of(office.me)
    with office.shard.store.snapshot() as snapshot:
        ctx = ReadContext(
            snapshot,
            scope,
            Call("t", scope.slot, office.now_ms, b"", "r"),
            office.shard.environment,
            None,
        )
        rows = [row for _, row in ctx[DECISION_RECORDS].scan()]
        cells: list[CellRow] = [cell for key, cell in ctx[POLICY_CELLS].scan(POLICY, b"")]
    for cell in cells:
        mine = [row for row in rows if row.actions[row.chosen] == cell.action_key]
        resolved = [row for row in mine if row.reward is not None]
        sums = folds_of(cell)
        assert (cell.count, cell.outcomes) == (len(mine), len(resolved))
        assert cell.total == pytest.approx(sum(row.reward for row in resolved), abs=1e-9)
        assert sum(each.valued for each in sums) == pytest.approx(
            sum(row.reward / row.propensity for row in resolved), abs=1e-6
        )
        place = rows[0].actions.index(cell.action_key)
        offered = [row for row in rows if row.reward is not None and row.probabilities[place] > 0]
        assert sum(each.offered for each in sums) == len(offered)


def test_ten_thousand_actions_are_described_by_the_ones_taken_most(office: LearningHarness) -> None:
    calls = []
    for number in range(250):
        fifty = [{"action_key": f"a{number}-{i}"} for i in range(40)]
        body = {
            "policy_key": POLICY,
            "candidates": fifty,
            "mode": "observe",
            "chosen_action_key": f"a{number}-7",
            "action_probability": 0.1,
        }
        calls.append(office.form("learning.decide", body, who=office.me))
    assert all(answer.status == 201 for answer in office.together(calls))
    found = office.insights()
    assert found["action_count"] == 10_000
    assert len(found["actions"]) == 100 and all(action["count"] == 1 for action in found["actions"])
    assert found["missingness"] == 1 and found["worst_case_bounds"] == {"lower": -1.0, "upper": 1.0}
    json.dumps(found, allow_nan=False)


# --- evaluation -----------------------------------------------------------------------------------


def test_a_real_difference_suffices_and_its_opposite_is_harm(office: LearningHarness) -> None:
    office.history(300, {"refund": 0.9, "voucher": 0.3})
    better = office.evaluate(target={"action_key": "refund"}, baseline={"action_key": "voucher"})
    assert better["verdict"] == "sufficient"
    assert 0 < better["lower_bound"] < better["estimate"] < better["upper_bound"]
    worse = office.evaluate(target={"action_key": "voucher"}, baseline="refund")
    assert worse["verdict"] == "harmful" and worse["upper_bound"] < 0
    assert office.evaluate(target={"action_key": "refund"}, margin=0.9)["verdict"] == "insufficient"
    followed = office.evaluate()
    assert followed["verdict"] == "sufficient" and followed["n"] == 300


def test_no_difference_is_not_enough(office: LearningHarness) -> None:
    office.history(150, {"refund": 0.5, "voucher": 0.5})
    found = office.evaluate(target={"action_key": "refund"})
    assert found["verdict"] == "insufficient" and found["lower_bound"] < 0 < found["upper_bound"]
    assert found["effective_sample_size"] == pytest.approx(75, abs=20)


@pytest.mark.parametrize("success", [True, False])
def test_rewards_that_are_all_equal_prove_nothing(office: LearningHarness, success: bool) -> None:
    office.history(60, {"refund": float(success), "voucher": float(success)})
    assert office.evaluate(target={"action_key": "refund"})["verdict"] == "insufficient"


def test_one_observation_is_insufficient_and_none_too(office: LearningHarness) -> None:
    decision = office.decide()["decision_id"]
    nothing = office.evaluate()
    assert (nothing["verdict"], nothing["n"], nothing["estimate"]) == ("insufficient", 0, None)
    office.report(decision, success=True)
    one = office.evaluate()
    assert (one["verdict"], one["n"]) == ("insufficient", 1)


def test_unknown_propensities_make_it_invalid(office: LearningHarness) -> None:
    office.history(20, {"refund": 0.9, "voucher": 0.1})
    decision = office.decide(mode="observe", chosen_action_key="refund", propensity_unknown=True)[
        "decision_id"
    ]
    office.report(decision, success=True)
    found = office.evaluate(target={"action_key": "refund"})
    assert found["verdict"] == "invalid" and "Unknown propensity" in found["reasons"][0]
    assert (found["lower_bound"], found["upper_bound"], found["estimate"]) == (-1.0, 1.0, None)


def test_missing_support_makes_it_invalid(office: LearningHarness) -> None:
    for _ in range(10):
        office.report(
            office.decide(mode="shadow", baseline_action_key="voucher")["decision_id"], success=True
        )
    found = office.evaluate(target={"action_key": "refund"})
    assert found["verdict"] == "invalid" and "Missing support" in found["reasons"][0]
    assert office.evaluate(target={"action_key": "lawsuit"})["verdict"] == "invalid"
    insights = office.insights()
    assert insights["overlap"] == 0.0
    refund = next(action for action in insights["actions"] if action["action_key"] == "refund")
    assert refund["estimators"] == {"ips": None, "clipped_ips": None, "snips": None, "dr": None}


def test_propensities_that_cannot_be_right_make_it_invalid(office: LearningHarness) -> None:
    chance = random.Random(2)
    for _ in range(60):
        office.report(office.observe(chance.choice(["refund", "voucher"]), 0.05), success=True)
    found = office.evaluate(target={"action_key": "refund"})
    assert found["verdict"] == "invalid" and "mean of" in found["reasons"][0]


def test_guardrails_must_be_shown_to_hold(office: LearningHarness) -> None:
    chance = random.Random(3)
    body = {
        "policy_key": POLICY, "candidates": TWO, "mode": "observe",
        "behavior_probabilities": {"refund": 0.5, "voucher": 0.5}, "reward_range": [0, 1],
        "metric_weights": {"joy": 1},
    }  # fmt: skip
    chosen = [chance.choice(["refund", "voucher"]) for _ in range(300)]
    decided = office.together(
        [
            office.form("learning.decide", {**body, "chosen_action_key": key}, who=office.me)
            for key in chosen
        ]
    )
    outcomes = {}
    for answer, key in zip(decided, chosen, strict=True):
        joy, cost = (0.9, 0.8) if key == "refund" else (0.2, 0.1)
        values = {"joy": joy, "cost": cost, "speed": 0.5}
        told = [{"metric_key": name, "value": value} for name, value in values.items()]
        outcomes[answer.body["decision_id"]] = {"observations": told}
    office.report_all(outcomes)
    target = {"target": {"action_key": "refund"}, "baseline": "voucher"}
    assert office.evaluate(**target)["verdict"] == "sufficient"
    cheap = office.evaluate(
        **target, guardrails=[{"metric_key": "cost", "direction": "lower_is_better", "margin": 0.1}]
    )
    assert cheap["verdict"] == "harmful" and not cheap["guardrails"][0]["passed"]
    speedy = office.evaluate(**target, guardrails=[{"metric_key": "speed", "margin": 0.4}])
    assert speedy["verdict"] == "sufficient" and speedy["guardrails"][0]["passed"]
    unseen = office.evaluate(**target, guardrails=[{"metric_key": "unseen"}])
    assert unseen["verdict"] == "insufficient" and unseen["guardrails"][0]["n"] == 0


def test_many_missing_outcomes_are_not_passed_over(office: LearningHarness) -> None:
    office.history(200, {"refund": 1.0, "voucher": 0.0})
    assert office.evaluate(target={"action_key": "refund"})["verdict"] == "sufficient"
    office.together(
        [
            office.form("learning.decide", {"policy_key": POLICY, "candidates": TWO}, who=office.me)
            for _ in range(220)
        ]
    )
    found = office.evaluate(target={"action_key": "refund"})
    assert found["verdict"] == "insufficient" and "no outcome" in found["reasons"][0]


# --- collections and privacy ----------------------------------------------------------------------


def test_decisions_go_with_their_collection(office: LearningHarness) -> None:
    doomed = office("collections.create", {"name": "doomed"}, who=office.me).body["id"]
    gone, kept = office.observe("refund", 0.5, collection_id=doomed), office.observe("refund", 0.5)
    for decision in (gone, kept):
        office.report(decision, success=True)
    assert office("collections.delete", who=office.me, id=doomed).status == 200
    assert office("learning.get", who=office.me, id=gone).status == 404
    assert [action["count"] for action in office.insights()["actions"]][:1] == [1]
    assert office.evaluate()["n"] == 1
    office.settle()
    assert office("learning.get", who=office.me, id=gone).status == 404
    assert office("learning.get", who=office.me, id=kept).status == 200
    assert [action["count"] for action in office.insights()["actions"]][:1] == [1]


def test_another_account_sees_nothing_of_it(office: LearningHarness) -> None:
    decision = office.observe("refund", 0.5)
    stranger = office.register("eve@example.com", "Eve")
    assert office("learning.get", who=stranger, id=decision).status == 403
    assert office("learning.report", {"success": True}, who=stranger, id=decision).status == 403
    assert (
        office.together([office.under(office.form("learning.insights", who=stranger))])[0].status
        == 404
    )


def test_a_late_embedder_delays_nothing_but_the_comparison(office: LearningHarness) -> None:
    office.embedder.down = True
    record = office.decide(context={"complaint": "The parcel came late."})
    assert record["decision_id"]
    office.embedder.down = False
    office.settle()
    assert "complaint: The parcel came late." in office.embedder.texts
