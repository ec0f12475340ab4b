"""Outcome memory: decisions with propensities, delayed outcomes, and what they say (specification part 4, Outcome memory).

A decision is declared up front: the candidates, the whole distribution the choice is drawn from, and the range of the reward. Where the
service chooses, it draws from exactly the distribution it writes down, so the propensity is exact and later evaluation can be honest.

    explore    Thompson sampling: each candidate's probability of being the best under the posteriors of the evidence so far (Monte
               Carlo), mixed with an even share ε over all candidates
    auto       the same once there is evidence; before, the baseline instead of the posteriors, if the request names one
    recommend  the candidate of the highest posterior mean; no exploration unless the request asks for it
    observe    the caller has chosen and says how likely that was
    shadow     the baseline acts (or the caller); the service notes what it would have recommended

The plugin's parts: plugins/receipts.py stores, plugins/policy_evidence.py answers what the evidence says, plugins/policy_statistics.py
calculates. Nothing here authorises an action, and every reply says so.

Choices where the specification is silent:
- The evidence of a choice is that of the same collection when the decision names one, else all of the policy's.
- A reward lies in the decision's range, else 422. A second observation of a metric takes the place of the first; both are kept.
- `policy_version` counts the reports that changed the policy's evidence. `metric_weights` weigh the composite reward; a metric without
  a weight beside others that have one does not count in it, but guardrails can use it.
- A context without words, or one the embedder could not take in time, is compared item by item only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plugins import policy_evidence
from plugins.collections import COLLECTION_CLEANUP
from plugins.embedded_text import Embedded, embedded, indexing_job
from plugins.learning_views import Decided, DecisionEvidence, NewDecision, NewOutcome, Observation, OutcomeRecorded
from plugins.policy_statistics import Beta, Normal, drawn_index, explored, posterior, probability_best
from plugins.receipts import (
    INDEXES,
    OBSERVATIONS,
    RECEIPT_DETAILS,
    RECEIPT_VECTORS,
    RECEIPTS,
    SUCCESS,
    TABLES,
    DetailsRow,
    ObservationRow,
    ReceiptRow,
    cells_of,
    digest,
    dropped_numbers,
    find_policy,
    get_receipt,
    number_of,
    observations,
    rewards_of,
    shared_range,
    store_outcome,
    store_receipt,
    sweep_collection,
)
from runtime import limits
from runtime.errors import Conflict, ValidationFailed
from runtime.inference import Models
from runtime.operation import Call, Idempotency, Kind, Operation, ReadContext, Reply, WriteContext
from runtime.plugin import Plugin
from runtime.timestamps import iso

EVIDENCE_OUTCOMES_MIN = 10  # of all candidates together; with less, a declared baseline acts

# --- deciding ---------------------------------------------------------------------------------------------------------


def load_decision(ctx: ReadContext, body: NewDecision) -> float:
    """Seconds the context may take to embed; foreign and unknown ids are refused before any work."""
    number_of(ctx, body.collection_id)
    for candidate in body.candidates:
        for memory_id in candidate.memory_ids or ():
            ctx.check_id("mem", memory_id)
    return ctx.settings.write.ready_wait_ms / 1000


async def prepare_decision(call: Call, seconds: float, models: Models) -> Embedded | None:
    return await embedded(context_text(call.body.context), seconds, models)


def decide(ctx: WriteContext, body: NewDecision) -> Reply:
    """Choose or record, and write the receipt."""
    number = number_of(ctx, body.collection_id)
    actions = [candidate.action_key for candidate in body.candidates]
    cells = cells_of(ctx, body.policy_key, number=number if body.collection_id else None, actions=actions)
    baseline = -1 if body.baseline_action_key is None else actions.index(body.baseline_action_key)
    low, high = body.reward_range or (None, None)
    span = shared_range(cells.values(), None if low is None else (low, high))
    beliefs = [posterior(rewards_of(cells.get(action), span)) for action in actions]
    recommended = best_by_mean(beliefs, baseline)
    outcomes = sum(cell.outcomes for cell in cells.values())
    probabilities, chosen, source, used_baseline, reason = _choice(ctx, body, beliefs, outcomes, baseline, recommended)
    row = ReceiptRow(
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
    ordinal = store_receipt(ctx, row, details, ctx.prepared)
    if ctx.prepared is None and context_text(body.context).strip():
        ctx.enqueue("learning.index", {"ordinal": ordinal})
    return Reply(201, decided_view(row, details, replayed=False), resource_id=row.id)


def decided_again(ctx: ReadContext, body: NewDecision, resource_id: str, call: Call) -> Reply:
    """A repeated decision: the one that was made."""
    ordinal, row = get_receipt(ctx, resource_id)
    return Reply(201, decided_view(row, ctx[RECEIPT_DETAILS].get(ordinal), replayed=True))


def best_by_mean(beliefs: Sequence[Beta | Normal], baseline: int) -> int:
    """The place of the highest posterior mean; of equals the baseline, then the first."""
    means = [belief.mean for belief in beliefs]
    top = max(means)
    return baseline if baseline >= 0 and means[baseline] >= top else means.index(top)


def _choice(
    ctx: WriteContext, body: NewDecision, beliefs: Sequence[Beta | Normal], outcomes: int, baseline: int, recommended: int
) -> tuple[list[float], int, str, bool, str]:
    """(probability of each candidate, −1 for unknown; place chosen; whose propensity it is; whether the baseline acted; why)."""
    if body.chosen_action_key is not None:
        return _behaviour(body)
    if body.mode == "shadow":
        certain = [float(place == baseline) for place in range(len(beliefs))]
        return certain, baseline, "server", True, "The baseline acts; the recommendation is noted only."
    rate = body.exploration_rate
    from_baseline = body.mode == "auto" and baseline >= 0 and outcomes < EVIDENCE_OUTCOMES_MIN
    if from_baseline:
        exploit = np.eye(len(beliefs))[baseline]
        reason = f"{outcomes} outcomes are too few to choose by, so the baseline acts except for the explored share."
    elif body.mode == "recommend":
        exploit = np.eye(len(beliefs))[recommended]
        reason = f"The highest posterior mean after {outcomes} outcomes."
        rate = rate or 0.0
    else:
        rng = np.random.default_rng(int.from_bytes(ctx.random(16), "big"))
        exploit = probability_best(beliefs, rng, limits.POSTERIOR_DRAWS)
        reason = f"Drawn by how likely each action is to be the best after {outcomes} outcomes, except for the explored share."
    distribution = explored(exploit, ctx.settings.learning.exploration_rate if rate is None else rate)
    chosen = drawn_index(distribution, ctx.random(8))
    return distribution.tolist(), chosen, "server", from_baseline and chosen == baseline, reason


def _behaviour(body: NewDecision) -> tuple[list[float], int, str, bool, str]:
    """What the caller says of its own choice."""
    actions = [candidate.action_key for candidate in body.candidates]
    chosen = actions.index(body.chosen_action_key)
    used_baseline = body.baseline_action_key == body.chosen_action_key
    if body.behavior_probabilities is not None:
        told = [float(body.behavior_probabilities.get(action, 0.0)) for action in actions]
        return told, chosen, "client", used_baseline, "Recorded as reported, with the whole distribution."
    chance = 1.0 if len(actions) == 1 else body.action_probability
    if chance is None:
        return [-1.0] * len(actions), chosen, "unknown", used_baseline, "Recorded as reported; without a propensity it proves nothing."
    told = [-1.0] * len(actions) if chance < 1 else [0.0] * len(actions)
    told[chosen] = float(chance)
    return told, chosen, "client", used_baseline, "Recorded as reported."


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
    details = ctx[RECEIPT_DETAILS].get(ordinal)
    return None if details is None else context_text(details.context)


# --- outcomes ---------------------------------------------------------------------------------------------------------


def report(ctx: WriteContext, body: NewOutcome) -> Reply:
    """Append what was observed, and bring receipt and evidence up to it."""
    ordinal, row = get_receipt(ctx, ctx.path["id"])
    details = ctx[RECEIPT_DETAILS].get(ordinal)
    known = observations(ctx, ordinal)
    metrics, ids = dict(row.metrics), []
    made: list[ObservationRow] = []
    for place, told in enumerate(told_observations(body)):
        repeated = _repeated(ctx, [*known, *made], told)
        if repeated is None:
            _check_observation(row, [*known, *made], told, place, body)
            made.append(_observation(ctx, told, made))
            metrics[told.metric_key] = told.value
        ids.append((repeated or made[-1]).id)
    if len(known) + len(made) > limits.OBSERVATIONS_PER_DECISION_MAX:
        raise Conflict(f"A decision keeps at most {limits.OBSERVATIONS_PER_DECISION_MAX:,} observations.")
    for number, observation in enumerate(made, len(known)):
        ctx[OBSERVATIONS].put((ordinal, number), observation)
    if made:
        changes = {
            "metrics": metrics,
            "reward": composite(metrics, details.metric_weights),
            "status": status_of([*known, *made]),
            "observations": len(known) + len(made),
        }
        row = store_outcome(ctx, ordinal, row, changes)
    return Reply(201, _recorded(row, ids, replayed=not made), resource_id=made[0].id if made else ids[0])


def reported_again(ctx: ReadContext, body: NewOutcome, resource_id: str, call: Call) -> Reply:
    """A repeated report: its observations, and the decision as it is now."""
    ordinal, row = get_receipt(ctx, ctx.path["id"])
    mine = [observation.id for observation in observations(ctx, ordinal) if resource_id in (observation.batch, observation.id)]
    return Reply(201, _recorded(row, mine, replayed=True))


def told_observations(body: NewOutcome) -> list[Observation]:
    """The report's observations; success and reward are short for one."""
    if body.observations:
        return body.observations
    if body.success is not None:
        return [Observation(metric_key=SUCCESS, value=body.success)]
    return [Observation(metric_key="reward", value=body.reward)]


def composite(metrics: dict[str, float], weights: dict[str, float] | None) -> float | None:
    """The mean of the metrics, weighted as declared; None when none of them counts."""
    shares = {name: 1.0 if weights is None else weights.get(name, 0.0) for name in metrics}
    total = sum(shares.values())
    return sum(shares[name] * value for name, value in metrics.items()) / total if total > 0 else None


def status_of(rows: Sequence[ObservationRow]) -> str:
    """pending until the latest observation of each metric is final; corrected once one took another's place."""
    latest = {row.metric_key: row for row in rows}
    if any(row.corrects is not None for row in latest.values()):
        return "corrected"
    return "final" if latest and all(row.is_final for row in latest.values()) else "pending"


def _repeated(ctx: ReadContext, known: Sequence[ObservationRow], told: Observation) -> ObservationRow | None:
    """The observation this one's own key already stands for. Raises Conflict when it said something else."""
    if told.idempotency_key is None:
        return None
    key = digest(ctx, "observation", told.idempotency_key)
    found = next((row for row in known if row.key == key), None)
    if found is not None and (found.metric_key, found.value) != (told.metric_key, told.value):
        raise Conflict("This observation's idempotency_key was used for another one.", param="observations")
    return found


def _check_observation(row: ReceiptRow, known: Sequence[ObservationRow], told: Observation, place: int, body: NewOutcome) -> None:
    at: tuple[str | int, ...] = ("body", "observations", place) if body.observations else ("body",)
    field = "value" if body.observations else SUCCESS if body.success is not None else "reward"
    low, high = (row.low, row.high) if row.low is not None else (0.0, 1.0) if told.metric_key == SUCCESS else (-1.0, 1.0)
    if not low <= told.value <= high:
        raise ValidationFailed.at((*at, field), f"must be inside the decision's reward range, {low:g} to {high:g}")
    if told.corrects is not None:
        corrected = next((other for other in known if other.id == told.corrects), None)
        if corrected is None:
            raise ValidationFailed.at((*at, "corrects"), "must be the id of an observation of this decision")
        if corrected.metric_key != told.metric_key:
            raise ValidationFailed.at((*at, "metric_key"), "must be the metric of the observation it corrects")


def _observation(ctx: WriteContext, told: Observation, made: Sequence[ObservationRow]) -> ObservationRow:
    observation_id = ctx.new_id("obs")
    return ObservationRow(
        id=observation_id,
        batch=made[0].id if made else observation_id,
        metric_key=told.metric_key,
        value=told.value,
        at=ctx.now,
        is_final=told.is_final,
        confidence=told.confidence,
        source=told.source,
        corrects=told.corrects,
        key=b"" if told.idempotency_key is None else digest(ctx, "observation", told.idempotency_key),
    )


def _recorded(row: ReceiptRow, ids: list[str], *, replayed: bool) -> dict[str, Any]:
    return {
        "decision_id": row.id,
        "observation_ids": ids,
        "status": row.status,
        "composite_reward": row.reward,
        "outcome_count": row.observations,
        "evidence_revision": row.revision,
        "replayed": replayed,
    }


# --- showing ----------------------------------------------------------------------------------------------------------


def get_decision(ctx: ReadContext, body: None) -> dict[str, Any]:
    ordinal, row = get_receipt(ctx, ctx.path["id"])
    return decision_view(ctx, ordinal, row)


def decided_view(row: ReceiptRow, details: DetailsRow, *, replayed: bool) -> dict[str, Any]:
    """A receipt, as the API shows it."""
    return {
        "decision_id": row.id,
        "policy_key": row.policy_key,
        "policy_version": details.version,
        "mode": row.mode,
        "chosen_action_key": row.actions[row.chosen],
        "recommended_action_key": row.actions[row.recommended],
        "baseline_action_key": None if row.baseline < 0 else row.actions[row.baseline],
        "used_baseline": row.used_baseline,
        "action_probability": row.propensity,
        "distribution": {action: chance for action, chance in zip(row.actions, row.probabilities, strict=True) if chance >= 0},
        "propensity_source": row.source,
        "reason": details.reason,
        "created_at": iso(row.created_at),
        "replayed": replayed,
        "authorizes_action": False,
    }


def decision_view(ctx: ReadContext, ordinal: int, row: ReceiptRow) -> dict[str, Any]:
    """A receipt and everything reported of it."""
    details = ctx[RECEIPT_DETAILS].get(ordinal)
    outcomes = [
        {
            "observation_id": told.id,
            "metric_key": told.metric_key,
            "value": told.value,
            "confidence": told.confidence,
            "source": told.source,
            "is_final": told.is_final,
            "corrects": told.corrects,
            "at": iso(told.at),
        }
        for told in observations(ctx, ordinal)
    ]
    return decided_view(row, details, replayed=False) | {
        "context": details.context,
        "candidates": details.candidates,
        "reward_range": details.reward_range,
        "collection_id": details.collection_id,
        "user_id": row.user_id,
        "outcomes": outcomes,
        "status": row.status,
        "composite_reward": row.reward,
        "evidence_revision": row.revision,
    }


# --- privacy ----------------------------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all decisions and their evidence. Counts of rows by table, of vectors by index."""
    counts = {}
    for index in INDEXES:
        if index is RECEIPT_VECTORS:
            counts[index.name] = ctx.index(index).clear()
        else:
            counts |= {table.name: ctx[table].delete_prefix() for table in index.tables}
    return counts | {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """("decision", receipt with its outcomes) for each, oldest first; the evidence follows from them."""
    gone = dropped_numbers(ctx)
    for (ordinal,), row in ctx[RECEIPTS].scan():
        if row.number not in gone:
            yield "decision", decision_view(ctx, ordinal, row)


# --- the plugin -------------------------------------------------------------------------------------------------------

_ID = "dec_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_OBSERVATION = "obs_06a1kz0d9h2r4c6n8e0t2v4x6z8a1c3e"
_CANDIDATES = [{"action_key": "refund", "description": "Give the money back"}, {"action_key": "voucher"}]
_NEW = {"policy_key": "support.complaint", "candidates": _CANDIDATES, "context": {"complaint": "The parcel came late."}, "mode": "auto",
        "baseline_action_key": "voucher"}  # fmt: skip
_DECIDED = {
    "decision_id": _ID, "policy_key": "support.complaint", "policy_version": 0, "mode": "auto", "chosen_action_key": "voucher",
    "recommended_action_key": "voucher", "baseline_action_key": "voucher", "used_baseline": True, "action_probability": 0.95,
    "distribution": {"refund": 0.05, "voucher": 0.95}, "propensity_source": "server",
    "reason": "0 outcomes are too few to choose by, so the baseline acts except for the explored share.",
    "created_at": "2026-05-08T13:56:00.000Z", "replayed": False, "authorizes_action": False,
}  # fmt: skip
_OUTCOME = {
    "observation_id": _OBSERVATION, "metric_key": "success", "value": 1.0, "confidence": None, "source": None, "is_final": True,
    "corrects": None, "at": "2026-05-09T08:00:00.000Z",
}  # fmt: skip
_EVIDENCE = {
    **_DECIDED, "context": _NEW["context"], "candidates": _CANDIDATES, "reward_range": None, "collection_id": None, "user_id": None,
    "outcomes": [_OUTCOME], "status": "final", "composite_reward": 1.0, "evidence_revision": 1,
}  # fmt: skip
_RECORDED = {
    "decision_id": _ID, "observation_ids": [_OBSERVATION], "status": "final", "composite_reward": 1.0, "outcome_count": 1,
    "evidence_revision": 1, "replayed": False,
}  # fmt: skip
_SPEC = "part 4, Outcome memory and feedback"

OPERATIONS = (
    Operation(
        name="learning.decide",
        method="POST",
        path="/v1/learning/decisions",
        kind=Kind.WRITE,
        load=load_decision,
        prepare=prepare_decision,
        handler=decide,
        resource=decided_again,
        body=NewDecision,
        response=Decided,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CANONICAL,
        credits=1,
        summary="Choose an action, or record one, with its propensity",
        description="The choice is drawn from the distribution in the receipt, so its probability is exact.",
        spec=_SPEC,
        example=_NEW,
        example_reply=_DECIDED,
    ),
    Operation(
        name="learning.get",
        method="GET",
        path="/v1/learning/decisions/{id}",
        kind=Kind.READ,
        handler=get_decision,
        response=DecisionEvidence,
        summary="Get a decision and its outcomes",
        spec=_SPEC,
        example_reply=_EVIDENCE,
    ),
    Operation(
        name="learning.report",
        method="POST",
        path="/v1/learning/decisions/{id}/outcomes",
        kind=Kind.WRITE,
        handler=report,
        resource=reported_again,
        body=NewOutcome,
        response=OutcomeRecorded,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CANONICAL,
        summary="Report a delayed, final or corrected outcome",
        description="Nothing is overwritten: of each metric the latest counts. A decision without outcome is censored, no failure.",
        spec=_SPEC,
        example={"success": True},
        example_reply=_RECORDED,
    ),
    *policy_evidence.OPERATIONS,
)

plugin = Plugin(
    name="learning",
    requires=("collections", "memories"),
    operations=OPERATIONS,
    tables=TABLES,
    indexes=INDEXES,
    subscribe={COLLECTION_CLEANUP.kind: sweep_collection},
    jobs=(indexing_job("learning.index", RECEIPT_VECTORS, _stored_text),),
    erase=erase,
    export=export,
)
