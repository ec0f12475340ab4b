"""What the decisions of a policy say: insights, which describe, and evaluation, which decides
whether the evidence suffices. And which policies there are.

Insights come from the policy's cells, a few rows however many decisions there are; only a `context`
filter walks over decisions, the newest of them. Evaluation walks over the newest decisions that
have an outcome, in the order in which they were made.

The target "recommended" is judged prequentially: for each decision, the action with the highest
posterior mean over the outcomes of strictly earlier decisions. So no decision is judged by a
recommendation it had a part in, which is a later time split at every step.

Verdicts of `evaluate` (beta):

    invalid       a propensity is unknown, the target had no chance somewhere, or the weights cannot
                  have a mean of 1: nothing follows
    sufficient    the lower bound of the difference exceeds the margin, and every guardrail is shown
                  not to be worse
    harmful       the upper bound of the difference, or of a guardrail within its margin, is below 0
    insufficient  anything else, no outcomes included

Decisions without outcome are left out, not counted as failures; insights say how many there are,
and what they could change at most. The guarantee holds for looks at a growing history. Where more
decisions than `limit` have outcomes, the window moves, and it holds for each window by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugins.learning.decision_store import (
    DECISION_DETAILS,
    DECISION_RECORDS,
    FOLDS,
    POLICY_NAMES,
    WEIGHT_CAP,
    CellRow,
    DecisionRecord,
    cells_of,
    folds_of,
    get_policy,
    is_offered,
    newest,
    number_of,
    packed,
    records_of,
    rewards_of,
    shared_range,
    weight_of,
)
from plugins.learning.limits import ACTIONS_SHOWN_MAX, DECISIONS_EVALUATED_MAX, POSTERIOR_DRAWS
from plugins.learning.models import (
    Evaluate,
    Evaluation,
    Insights,
    InsightsQuery,
    Policy,
    TargetAction,
    parsed_context,
)
from plugins.learning.statistics import (
    LEARNING,
    Weighted,
    difference_bounds,
    doubly_robust,
    holm,
    log_capital,
    p_value,
    paired_difference,
    posterior,
    probability_best,
    weights_are_plausible,
    worst_case,
)
from runtime.api.context import ReadContext
from runtime.api.operation import Read
from runtime.api.pagination import Page, PageQuery, envelope, example_page, position
from runtime.timestamps import iso

CENSORED_SHARE_MAX = 0.5  # of the decisions; with more missing, the others say little of them

# --- policies -------------------------------------------------------------------------------------


def list_policies(ctx: ReadContext, body: None) -> dict[str, Any]:
    """Newest first, by their first decision."""
    limit = ctx.query.limit
    found = list(ctx[POLICY_NAMES].scan(before=position(ctx), reverse=True, limit=limit + 1))
    items = [_policy_view(ctx, name.policy_key) for _, name in found[:limit]]
    return envelope(
        ctx, items, found[limit - 1][0] if len(found) > limit else None, ctx[POLICY_NAMES].count()
    )


def _policy_view(ctx: ReadContext, policy_key: str) -> dict[str, Any]:
    policy = get_policy(ctx, policy_key)
    decided = records_of(ctx, policy_key, number=None, user_id=None)
    last = ctx[DECISION_RECORDS].get(decided.max()) if decided else None
    return {
        "policy_key": policy_key,
        "policy_version": policy.revision,
        "decisions": len(decided),
        "outcomes": len(records_of(ctx, policy_key, number=None, user_id=None, resolved=True)),
        "created_at": iso(policy.created_at),
        "last_decision_at": None if last is None else iso(last.created_at),
    }


# --- insights -------------------------------------------------------------------------------------


def load_insights(ctx: ReadContext, body: None) -> dict[str, Any] | None:
    """The context filter; an unknown policy or collection and a broken context are refused before
    any work.
    """
    get_policy(ctx, ctx.path["key"])
    number_of(ctx, ctx.query.collection_id)
    return parsed_context(ctx.query.context)


def insights(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked: InsightsQuery = ctx.query
    policy_key = ctx.path["key"]
    number = None if asked.collection_id is None else number_of(ctx, asked.collection_id)
    if ctx.prepared is None:
        cells = cells_of(
            ctx, policy_key, number=number, user_id=asked.user_id, actions=asked.action_key
        )
    else:
        cells = _cells_in_context(ctx, policy_key, number, asked, ctx.prepared)
    largest = sorted(cells.values(), key=lambda cell: (-cell.count, cell.action_key))[
        :ACTIONS_SHOWN_MAX
    ]
    return evidence_view(policy_key, get_policy(ctx, policy_key).revision, len(cells), largest)


def evidence_view(
    policy_key: str, version: int, action_count: int, cells: Sequence[CellRow]
) -> dict[str, Any]:
    """Insights over these cells."""
    low, high = shared_range(cells)
    posteriors = [posterior(rewards_of(cell, (low, high))) for cell in cells]
    # The same evidence is described in the same words every time, hence the fixed seed.
    best = (
        probability_best(posteriors, np.random.default_rng(0), POSTERIOR_DRAWS)
        if posteriors
        else np.zeros(0)
    )
    sums = [sum(folds_of(cell), Weighted()) for cell in cells]
    count, resolved = sum(cell.count for cell in cells), sum(cell.outcomes for cell in cells)
    lower, upper = worst_case(
        sum(cell.total for cell in cells), resolved, count - resolved, low, high
    )
    return {
        "policy_key": policy_key,
        "policy_version": version,
        "action_count": action_count,
        "actions": [
            _action_view(*parts) for parts in zip(cells, posteriors, best, sums, strict=True)
        ],
        "overlap": min(
            (each.effective_sample_size / each.offered if each.offered else 0.0 for each in sums),
            default=0.0,
        ),
        "max_weight": max((each.largest for each in sums), default=0.0),
        "missingness": (count - resolved) / count if count else 0.0,
        "worst_case_bounds": {"lower": lower, "upper": upper},
    }


def _action_view(cell: CellRow, belief: Any, best: float, sums: Weighted) -> dict[str, Any]:
    return {
        "action_key": cell.action_key,
        "count": cell.count,
        "outcomes": cell.outcomes,
        "censored": cell.count - cell.outcomes,
        "posterior": {
            "mean": belief.mean,
            "credible_interval_90": list(belief.interval()),
            "distribution": belief.parameters(),
        },
        "probability_best": float(best),
        "effective_sample_size": sums.effective_sample_size,
        "estimators": {
            "ips": sums.ips,
            "clipped_ips": sums.clipped_ips,
            "snips": sums.snips,
            "dr": doubly_robust(folds_of(cell)),
        },
    }


def _cells_in_context(
    ctx: ReadContext,
    policy_key: str,
    number: int | None,
    asked: InsightsQuery,
    context: dict[str, Any],
) -> dict[str, CellRow]:
    """The sums over the newest decisions whose context has all these items."""
    found = newest(
        ctx,
        records_of(ctx, policy_key, number=number, user_id=asked.user_id),
        DECISIONS_EVALUATED_MAX,
    )
    cells: dict[str, CellRow] = {}
    for ordinal, row in found:
        own = ctx[DECISION_DETAILS].row(ordinal).context
        if any(name not in own or own[name] != value for name, value in context.items()):
            continue
        for place, action in enumerate(row.actions):
            if asked.action_key is None or action in asked.action_key:
                low, high = row.bounds
                cell = cells.setdefault(
                    action, CellRow(action, low, high, folds=[packed(Weighted())] * FOLDS)
                )
                _count(cell, row, place, ordinal % FOLDS)
    return cells


def _count(cell: CellRow, row: DecisionRecord, place: int, fold: int) -> None:
    chosen = place == row.chosen
    cell.count += chosen
    if row.reward is None:
        return
    low, high = row.bounds
    cell.low, cell.high = (
        (min(cell.low, low), max(cell.high, high)) if cell.has_outcomes() else (low, high)
    )
    if chosen:
        cell.outcomes, cell.total, cell.squares = (
            cell.outcomes + 1,
            cell.total + row.reward,
            cell.squares + row.reward**2,
        )
    if is_offered(row, place):
        one = Weighted.of([weight_of(row, place)], [row.outcome], WEIGHT_CAP)
        cell.folds = [
            *cell.folds[:fold],
            packed(folds_of(cell)[fold] + one),
            *cell.folds[fold + 1 :],
        ]


# --- evaluation -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weights:
    """(n,) weights of a policy over the decisions, and the logged chances of its actions, NaN where
    not told; `unsupported` decisions gave its action no chance."""

    values: np.ndarray
    chances: np.ndarray
    unsupported: int


def load_evaluation(ctx: ReadContext, body: Evaluate) -> None:
    """An unknown policy or collection is refused before any work."""
    get_policy(ctx, ctx.path["key"])
    number_of(ctx, body.collection_id)


def evaluate(ctx: ReadContext, body: Evaluate) -> dict[str, Any]:
    number = None if body.collection_id is None else number_of(ctx, body.collection_id)
    policy_key = ctx.path["key"]
    decided = records_of(ctx, policy_key, number=number, user_id=body.user_id)
    resolved = records_of(ctx, policy_key, number=number, user_id=body.user_id, resolved=True)
    rows = [row for _, row in newest(ctx, resolved, body.limit)]
    censored = 1 - len(resolved) / len(decided) if decided else 0.0
    return judged(rows, body, censored)


def judged(rows: Sequence[DecisionRecord], body: Evaluate, censored: float) -> dict[str, Any]:
    """The evaluation of decisions with outcomes, oldest first. censored: share of all decisions
    that have none.
    """
    low = min((row.bounds[0] for row in rows), default=0.0)
    high = max((row.bounds[1] for row in rows), default=1.0)
    target = (
        recommended_weights(rows)
        if body.target == "recommended"
        else action_weights(rows, body.target.action_key)
    )
    baseline = (
        logged_weights(rows) if body.baseline is None else action_weights(rows, _key(body.baseline))
    )
    reasons = _objections(rows, target, baseline)
    reply: dict[str, Any] = {
        "verdict": "invalid",
        "lower_bound": low - high,
        "upper_bound": high - low,
        "estimate": None,
        "n": len(rows),
        "effective_sample_size": Weighted.of(
            target.values, np.zeros(len(rows)), WEIGHT_CAP
        ).effective_sample_size,
        "guardrails": [],
        "reasons": reasons,
        "authorizes_action": False,
    }
    if reasons:
        return reply
    if not rows:
        return reply | {
            "verdict": "insufficient",
            "reasons": ["No decision of this policy has an outcome yet."],
        }
    rewards = np.array([row.reward for row in rows])
    bounds = difference_bounds(rewards, target.values, baseline.values, low, high, body.alpha)
    guardrails = _guardrails(rows, body, target.values, baseline.values)
    verdict, reasons = _verdict(body, bounds.lower, bounds.upper, guardrails, censored)
    views = [
        {name: value for name, value in guardrail.items() if name != "harmed"}
        for guardrail in guardrails
    ]
    return reply | {
        "verdict": verdict,
        "lower_bound": bounds.lower,
        "upper_bound": bounds.upper,
        "estimate": bounds.estimate,
        "guardrails": views,
        "reasons": reasons,
    }


def _key(baseline: TargetAction | str) -> str:
    return baseline if isinstance(baseline, str) else baseline.action_key


def logged_weights(rows: Sequence[DecisionRecord]) -> Weights:
    """The policy as it was: every weight is 1."""
    return Weights(np.ones(len(rows)), np.ones(len(rows)), 0)


def action_weights(rows: Sequence[DecisionRecord], action: str) -> Weights:
    """Weights of always this action."""
    places = [row.actions.index(action) if action in row.actions else -1 for row in rows]
    return _weights(rows, places)


def recommended_weights(rows: Sequence[DecisionRecord]) -> Weights:
    """For each decision the candidate of the highest posterior mean over the rewards of the
    decisions before it.
    """
    totals: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    places = []
    for row in rows:
        low, high = row.bounds
        # Shares of the range, so that decisions of different ranges can be compared; two
        # pseudo-observations at its middle.
        means = [(totals[action] + 1) / (counts[action] + 2) for action in row.actions]
        top = max(means)
        places.append(
            row.baseline if row.baseline >= 0 and means[row.baseline] >= top else means.index(top)
        )
        taken = row.actions[row.chosen]
        totals[taken] += (row.outcome - low) / (high - low)
        counts[taken] += 1
    return _weights(rows, places)


def _weights(rows: Sequence[DecisionRecord], places: Sequence[int]) -> Weights:
    """Weigh each decision. places: of the policy's action among each decision's candidates, −1
    where it is none of them.
    """
    values, chances, unsupported = np.zeros(len(rows)), np.full(len(rows), np.nan), 0
    for i, (row, place) in enumerate(zip(rows, places, strict=True)):
        if place < 0 or row.probabilities[place] == 0:
            unsupported += 1
            continue
        if place == row.chosen and row.propensity is not None:
            values[i] = 1 / row.propensity
        if min(row.probabilities) >= 0:
            chances[i] = row.probabilities[place]
    return Weights(values, chances, unsupported)


def _objections(rows: Sequence[DecisionRecord], target: Weights, baseline: Weights) -> list[str]:
    """Why nothing can follow from these decisions, if so."""
    found = []
    unknown = sum(row.propensity is None for row in rows)
    if unknown:
        found.append(
            f"Unknown propensity: {unknown} of {len(rows)} decisions do not say how likely their "
            "action was."
        )
    for name, policy in (("target", target), ("baseline", baseline)):
        if policy.unsupported:
            found.append(
                f"Missing support: {policy.unsupported} of {len(rows)} decisions gave the action "
                f"of the {name} no chance."
            )
        elif not unknown and not weights_are_plausible(policy.values, policy.chances):
            mean = policy.values.mean()
            found.append(
                f"The weights of the {name} have a mean of {mean:.2f} where 1 is due: the "
                "propensities cannot be right."
            )
    return found


def _guardrails(
    rows: Sequence[DecisionRecord], body: Evaluate, target: np.ndarray, baseline: np.ndarray
) -> list[dict[str, Any]]:
    """Each guardrail's verdict, by Holm over all of them at alpha."""
    judged_ones, p_values = [], []
    for guardrail in body.guardrails:
        held = [i for i, row in enumerate(rows) if guardrail.metric_key in row.metrics]
        sign = 1.0 if guardrail.direction == "higher_is_better" else -1.0
        values = sign * np.array([rows[i].metrics[guardrail.metric_key] for i in held])
        ends = [sign * end for i in held for end in rows[i].bounds]
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        bounds = difference_bounds(values, target[held], baseline[held], low, high, body.alpha)
        gains = paired_difference(values, target[held], baseline[held], low, high)
        p_values.append(
            p_value(log_capital(gains, high - low, -guardrail.margin))
            if guardrail.margin < high - low
            else 0.0
        )
        judged_ones.append(
            {
                "metric_key": guardrail.metric_key,
                "lower_bound": bounds.lower,
                "upper_bound": bounds.upper,
                "estimate": bounds.estimate,
                "n": len(held),
                "harmed": bounds.upper < -guardrail.margin,
            }
        )
    passed = holm(p_values, body.alpha)
    return [
        {**guardrail, "passed": ok and guardrail["n"] > 0}
        for guardrail, ok in zip(judged_ones, passed, strict=True)
    ]


def _verdict(
    body: Evaluate,
    lower: float,
    upper: float,
    guardrails: Sequence[dict[str, Any]],
    censored: float,
) -> tuple[str, list[str]]:
    harmed = [guardrail["metric_key"] for guardrail in guardrails if guardrail["harmed"]]
    if upper < 0 or harmed:
        reasons = [f"The difference is below 0: at most {upper:.4f}."] if upper < 0 else []
        return "harmful", reasons + [
            f"The guardrail {name} is worse than its margin allows." for name in harmed
        ]
    reasons = []
    if lower <= body.margin:
        reasons.append(f"The lower bound {lower:.4f} does not exceed the margin {body.margin:g}.")
    reasons += [
        f"The guardrail {g['metric_key']} is not shown to be within its margin."
        for g in guardrails
        if not g["passed"]
    ]
    if censored > CENSORED_SHARE_MAX:
        reasons.append(
            f"{censored:.0%} of the decisions have no outcome, which could hide anything."
        )
    if reasons:
        return "insufficient", reasons
    return "sufficient", [
        f"The lower bound {lower:.4f} exceeds the margin {body.margin:g}, and every guardrail "
        "holds."
    ]


# --- operations -----------------------------------------------------------------------------------

_KEY = "support.complaint"

OPERATIONS = (
    Read(
        name="learning.policies",
        method="GET",
        path="/v1/learning/policies",
        handler=list_policies,
        heavy=True,
        query=PageQuery,
        response=Page[Policy],
        stability="beta",
        summary="List the policies decisions were made under",
        description="Newest first. A policy begins with its first decision.",
        example_reply=example_page({
                    "policy_key": _KEY, "policy_version": 40, "decisions": 50, "outcomes": 40,
                    "created_at": "2026-05-08T13:56:00.000Z",
                    "last_decision_at": "2026-05-12T09:30:00.000Z",
                }),
    ),
    Read(
        name="learning.insights",
        method="GET",
        path="/v1/learning/policies/{key}/insights",
        load=load_insights,
        heavy=True,
        handler=insights,
        query=InsightsQuery,
        response=Insights,
        extra=LEARNING,
        summary="What a policy's decisions say of its actions",
        description="Posteriors and point estimates; they describe, and decide nothing.",
        example_reply={
            "policy_key": _KEY,
            "policy_version": 40,
            "action_count": 1,
            "actions": [
                {
                    "action_key": "voucher",
                    "count": 50,
                    "outcomes": 40,
                    "censored": 10,
                    "posterior": {
                        "mean": 0.74,
                        "credible_interval_90": [0.62, 0.84],
                        "distribution": {"family": "beta", "a": 31.0, "b": 11.0},
                    },
                    "probability_best": 1.0,
                    "effective_sample_size": 38.2,
                    "estimators": {"ips": 0.76, "clipped_ips": 0.76, "snips": 0.75, "dr": 0.75},
                }
            ],
            "overlap": 0.96,
            "max_weight": 1.05,
            "missingness": 0.2,
            "worst_case_bounds": {"lower": 0.6, "upper": 0.8},
        },
    ),
    Read(
        name="learning.evaluate",
        method="POST",
        path="/v1/learning/policies/{key}/evaluate",
        load=load_evaluation,
        heavy=True,
        handler=evaluate,
        body=Evaluate,
        response=Evaluation,
        credits=2,
        stability="beta",
        summary="Whether the evidence for a policy suffices",
        description=(
            "The bounds are an anytime-valid confidence sequence: they hold however often you ask "
            "and whenever you stop."
        ),
        example={"target": {"action_key": "refund"}, "baseline": "voucher", "alpha": 0.05},
        example_reply={
            "verdict": "insufficient",
            "lower_bound": -0.04,
            "upper_bound": 0.21,
            "estimate": 0.08,
            "n": 40,
            "effective_sample_size": 19.5,
            "guardrails": [],
            "reasons": ["The lower bound -0.0400 does not exceed the margin 0."],
            "authorizes_action": False,
        },
    ),
)  # fmt: skip
