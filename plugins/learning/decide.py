"""Choosing, or recording a choice: the distribution, the draw, and the record of the decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plugins.learning import limits
from plugins.learning.decision_store import (
    DECISION_DETAILS,
    DECISION_VECTORS,
    DecisionRecord,
    DetailsRow,
    cells_of,
    find_policy,
    find_record,
    number_of,
    rewards_of,
    shared_range,
    store_record,
)
from plugins.learning.embedding import Embedded, embedded, indexing_job
from plugins.learning.models import (
    NewDecision,
)
from plugins.learning.settings import LearningSettings
from plugins.learning.statistics import (
    Beta,
    Normal,
    drawn_index,
    explored,
    posterior,
    probability_best,
)
from plugins.learning.views import decided_view
from plugins.memories import WriteSettings, get_row
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Reply
from runtime.inference import Models

EVIDENCE_OUTCOMES_MIN = 10  # of all candidates together; with less, a declared baseline acts


def load_decision(ctx: ReadContext, body: NewDecision) -> float:
    """Seconds the context may take to embed; foreign and unknown ids are refused before any
    work.
    """
    number_of(ctx, body.collection_id)
    named = (memory_id for each in body.candidates for memory_id in each.memory_ids or ())
    for memory_id in dict.fromkeys(named):
        get_row(ctx, memory_id)
    return WriteSettings.of(ctx.settings).ready_wait_ms / 1000


async def prepare_decision(call: Call, seconds: float, models: Models) -> Embedded | None:
    return await embedded(context_text(call.body.context), seconds, models)


def decide(ctx: WriteContext, body: NewDecision) -> Reply:
    """Choose an action, or take the caller's choice, and write the decision record."""
    number = number_of(ctx, body.collection_id)
    actions = [candidate.action_key for candidate in body.candidates]
    cells = cells_of(
        ctx, body.policy_key, number=number if body.collection_id else None, actions=actions
    )
    baseline = -1 if body.baseline_action_key is None else actions.index(body.baseline_action_key)
    low, high = body.reward_range or (None, None)
    span = shared_range(cells.values(), None if low is None or high is None else (low, high))
    beliefs = [posterior(rewards_of(cells.get(action), span)) for action in actions]
    recommended = best_by_mean(beliefs, baseline)
    outcomes = sum(cell.outcomes for cell in cells.values())
    probabilities, chosen, source, used_baseline, reason = _choice(
        ctx, body, beliefs, outcomes, baseline, recommended
    )
    row = DecisionRecord(
        id=ctx.new_id("dec"),
        policy_key=body.policy_key,
        number=number,
        created_at=ctx.now,
        mode=body.mode,
        actions=actions,
        probabilities=probabilities,
        chosen=chosen,
        recommended=recommended,
        baseline=baseline,
        used_baseline=used_baseline,
        source=source,
        user_id=body.user_id,
        low=low,
        high=high,
    )
    policy = find_policy(ctx, body.policy_key)
    details = DetailsRow(
        context=body.context,
        candidates=[candidate.model_dump(exclude_none=True) for candidate in body.candidates],
        reason=reason,
        version=0 if policy is None else policy.revision,
        collection_id=body.collection_id,
        reward_range=body.reward_range,
        metric_weights=body.metric_weights,
    )
    ordinal = store_record(ctx, row, details, ctx.prepared)
    if ctx.prepared is None and context_text(body.context).strip():
        ctx.enqueue("learning.index", {"ordinal": ordinal})
    return Reply(201, decided_view(row, details, replayed=False), resource_id=row.id)


def decided_again(ctx: ReadContext, body: NewDecision, resource_id: str, call: Call) -> Reply:
    """A repeated decision: the one that was made."""
    ordinal, row = find_record(ctx, resource_id)
    return Reply(201, decided_view(row, ctx[DECISION_DETAILS].row(ordinal), replayed=True))


def best_by_mean(beliefs: Sequence[Beta | Normal], baseline: int) -> int:
    """The place of the highest posterior mean; of equals the baseline, then the first."""
    means = [belief.mean for belief in beliefs]
    top = max(means)
    return baseline if baseline >= 0 and means[baseline] >= top else means.index(top)


def _choice(
    ctx: WriteContext,
    body: NewDecision,
    beliefs: Sequence[Beta | Normal],
    outcomes: int,
    baseline: int,
    recommended: int,
) -> tuple[list[float], int, str, bool, str]:
    """(probability of each candidate, −1 for unknown; place chosen; whose propensity it is; whether
    the baseline acted; why).
    """
    if body.chosen_action_key is not None:
        return _behaviour(body, body.chosen_action_key)
    if body.mode == "shadow":
        certain = [float(place == baseline) for place in range(len(beliefs))]
        return (
            certain,
            baseline,
            "server",
            True,
            "The baseline acts; the recommendation is noted only.",
        )
    rate = body.exploration_rate
    from_baseline = body.mode == "auto" and baseline >= 0 and outcomes < EVIDENCE_OUTCOMES_MIN
    if from_baseline:
        exploit = np.eye(len(beliefs))[baseline]
        reason = (
            f"{outcomes} outcomes are too few to choose by, so the baseline acts except for the "
            "explored share."
        )
    elif body.mode == "recommend":
        exploit = np.eye(len(beliefs))[recommended]
        reason = f"The highest posterior mean after {outcomes} outcomes."
        rate = rate or 0.0
    else:
        rng = np.random.default_rng(int.from_bytes(ctx.random(16), "big"))
        exploit = probability_best(beliefs, rng, limits.POSTERIOR_DRAWS)
        reason = (
            f"Drawn by how likely each action is to be the best after {outcomes} outcomes, except "
            "for the explored share."
        )
    distribution = explored(
        exploit, LearningSettings.of(ctx.settings).exploration_rate if rate is None else rate
    )
    chosen = drawn_index(distribution, ctx.random(8))
    return distribution.tolist(), chosen, "server", from_baseline and chosen == baseline, reason


def _behaviour(body: NewDecision, action: str) -> tuple[list[float], int, str, bool, str]:
    """What the caller says of its own choice."""
    actions = [candidate.action_key for candidate in body.candidates]
    chosen = actions.index(action)
    used_baseline = body.baseline_action_key == action
    if body.behavior_probabilities is not None and not body.propensity_unknown:
        probabilities = [float(body.behavior_probabilities.get(action, 0.0)) for action in actions]
        return (
            probabilities,
            chosen,
            "client",
            used_baseline,
            "Recorded as reported, with the whole distribution.",
        )
    chance = 1.0 if len(actions) == 1 else body.action_probability
    if chance is None or body.propensity_unknown:
        return (
            [-1.0] * len(actions),
            chosen,
            "unknown",
            used_baseline,
            "Recorded as reported; without a propensity it proves nothing.",
        )
    probabilities = [-1.0] * len(actions) if chance < 1 else [0.0] * len(actions)
    probabilities[chosen] = float(chance)
    return probabilities, chosen, "client", used_baseline, "Recorded as reported."


def context_text(context: Any) -> str:
    """The words of a context, to be embedded: its texts with the names they have, in order."""
    return "\n".join(_lines(context, ""))[: limits.CONTEXT_CHARS_EMBEDDED_MAX]


def _lines(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, name)
    elif isinstance(value, str) and value.strip():
        yield f"{name}: {value}" if name else value


def _stored_text(ctx: ReadContext, ordinal: int) -> str | None:
    details = ctx[DECISION_DETAILS].get(ordinal)
    return None if details is None else context_text(details.context)


INDEX_JOB = indexing_job("learning.index", DECISION_VECTORS, _stored_text)
