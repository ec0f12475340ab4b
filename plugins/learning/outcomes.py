"""Reports of how a decision turned out: each appended once, and the decision's reward and the
evidence over all decisions brought up to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugins.learning import limits
from plugins.learning.decision_store import (
    DECISION_DETAILS,
    OBSERVATIONS,
    SUCCESS,
    DecisionRecord,
    ObservationRow,
    digest,
    find_record,
    observations,
    store_outcome,
)
from plugins.learning.models import (
    NewOutcome,
    Observation,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Reply
from runtime.errors import Conflict, ValidationFailed


def report(ctx: WriteContext, body: NewOutcome) -> Reply:
    """Append what was observed, and bring the decision record and the evidence up to it."""
    ordinal, row = find_record(ctx, ctx.path["id"])
    details = ctx[DECISION_DETAILS].row(ordinal)
    known = observations(ctx, ordinal)
    ids: list[str] = []
    made: list[ObservationRow] = []
    for place, told in enumerate(told_observations(body)):
        repeated = _repeated(ctx, [*known, *made], told)
        if repeated is None:
            _check_observation(row, [*known, *made], told, place, body)
            made.append(_observation(ctx, told, made))
        ids.append((repeated or made[-1]).id)
    if len(known) + len(made) > limits.OBSERVATIONS_PER_DECISION_MAX:
        raise Conflict(
            f"A decision keeps at most {limits.OBSERVATIONS_PER_DECISION_MAX:,} observations."
        )
    for number, observation in enumerate(made, len(known)):
        ctx[OBSERVATIONS].put((ordinal, number), observation)
    if made:
        metrics = {name: each.value for name, each in latest([*known, *made]).items()}
        changes = {
            "metrics": metrics,
            "reward": composite(metrics, details.metric_weights),
            "status": status_of([*known, *made]),
            "observations": len(known) + len(made),
        }
        row = store_outcome(ctx, ordinal, row, changes)
    return Reply(
        201, _recorded(row, ids, replayed=not made), resource_id=made[0].id if made else ids[0]
    )


def reported_again(ctx: ReadContext, body: NewOutcome, resource_id: str, call: Call) -> Reply:
    """A repeated report: its observations, and the decision as it is now."""
    ordinal, row = find_record(ctx, ctx.path["id"])
    mine = [
        observation.id
        for observation in observations(ctx, ordinal)
        if resource_id in (observation.batch, observation.id)
    ]
    return Reply(201, _recorded(row, mine, replayed=True))


def told_observations(body: NewOutcome) -> list[Observation]:
    """The report's observations; success and reward are short for one."""
    if body.success is not None:
        return [Observation(metric_key=SUCCESS, value=body.success)]
    if body.reward is not None:
        return [Observation(metric_key="reward", value=body.reward)]
    return body.observations or []


def composite(metrics: dict[str, float], weights: dict[str, float] | None) -> float | None:
    """The mean of the metrics, weighted as declared; None when none of them counts."""
    shares = {name: 1.0 if weights is None else weights.get(name, 0.0) for name in metrics}
    total = sum(shares.values())
    return (
        sum(shares[name] * value for name, value in metrics.items()) / total if total > 0 else None
    )


def latest(rows: Sequence[ObservationRow]) -> dict[str, ObservationRow]:
    """Metric -> the observation that counts, the one reported last; one that corrects another
    stands where that one stood.
    """
    places: dict[str, int] = {}
    counting: dict[str, ObservationRow] = {}
    for number, row in enumerate(rows):
        places[row.id] = number if row.corrects is None else places.get(row.corrects, number)
        before = counting.get(row.metric_key)
        if before is None or places[before.id] <= places[row.id]:
            counting[row.metric_key] = row
    return counting


def status_of(rows: Sequence[ObservationRow]) -> str:
    """pending until the latest observation of each metric is final; corrected once one took
    another's place.
    """
    counting = latest(rows).values()
    if any(row.corrects is not None for row in counting):
        return "corrected"
    return "final" if counting and all(row.is_final for row in counting) else "pending"


def _repeated(
    ctx: ReadContext, known: Sequence[ObservationRow], told: Observation
) -> ObservationRow | None:
    """The observation this one's own key already stands for. Raises Conflict when it said something
    else.
    """
    if told.idempotency_key is None:
        return None
    key = digest(ctx, "observation", told.idempotency_key)
    found = next((row for row in known if row.key == key), None)
    if found is not None and (found.metric_key, found.value) != (told.metric_key, told.value):
        raise Conflict(
            "This observation's idempotency_key was used for another one.", param="observations"
        )
    return found


def _check_observation(
    row: DecisionRecord,
    known: Sequence[ObservationRow],
    told: Observation,
    place: int,
    body: NewOutcome,
) -> None:
    at: tuple[str | int, ...] = ("body", "observations", place) if body.observations else ("body",)
    field = "value" if body.observations else SUCCESS if body.success is not None else "reward"
    low, high = (
        (row.low, row.high)
        if row.low is not None and row.high is not None
        else (0.0, 1.0)
        if told.metric_key == SUCCESS
        else (-1.0, 1.0)
    )
    if not low <= told.value <= high:
        told_as = "; tell `reward`" if field == SUCCESS else ""
        raise ValidationFailed.at(
            (*at, field),
            f"must be inside the decision's reward range, {low:g} to {high:g}{told_as}",
        )
    if told.corrects is not None:
        corrected = next((other for other in known if other.id == told.corrects), None)
        if corrected is None:
            raise ValidationFailed.at(
                (*at, "corrects"), "must be the id of an observation of this decision"
            )
        if corrected.metric_key != told.metric_key:
            raise ValidationFailed.at(
                (*at, "metric_key"), "must be the metric of the observation it corrects"
            )


def _observation(
    ctx: WriteContext, told: Observation, made: Sequence[ObservationRow]
) -> ObservationRow:
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
        key=b""
        if told.idempotency_key is None
        else digest(ctx, "observation", told.idempotency_key),
    )


def _recorded(row: DecisionRecord, ids: list[str], *, replayed: bool) -> dict[str, Any]:
    return {
        "decision_id": row.id,
        "observation_ids": ids,
        "status": row.status,
        "composite_reward": row.reward,
        "outcome_count": row.observations,
        "evidence_revision": row.revision,
        "replayed": replayed,
    }
