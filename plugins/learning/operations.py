"""The endpoints of decisions and outcomes."""

from __future__ import annotations

from plugins.learning.decide import decide, decided_again, load_decision, prepare_decision
from plugins.learning.models import (
    Decided,
    DecisionEvidence,
    NewDecision,
    NewOutcome,
    OutcomeRecorded,
)
from plugins.learning.outcomes import report, reported_again
from plugins.learning.views import get_decision
from runtime.api.operation import Idempotency, Read, Write

_ID = "dec_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_OBSERVATION = "obs_06a1kz0d9h2r4c6n8e0t2v4x6z8a1c3e"
_CANDIDATES = [
    {"action_key": "refund", "description": "Give the money back"},
    {"action_key": "voucher"},
]
_NEW = {"policy_key": "support.complaint", "candidates": _CANDIDATES,
    "context": {"complaint": "The parcel came late."}, "mode": "auto",
        "baseline_action_key": "voucher"}  # fmt: skip
_DECIDED = {
    "decision_id": _ID, "policy_key": "support.complaint", "policy_version": 0, "mode": "auto",
    "chosen_action_key": "voucher", "recommended_action_key": "voucher",
    "baseline_action_key": "voucher", "used_baseline": True, "action_probability": 0.95,
    "distribution": {"refund": 0.05, "voucher": 0.95}, "propensity_source": "server",
    "reason": "0 outcomes are too few to choose by, so the baseline acts except for the explored "
    "share.",
    "created_at": "2026-05-08T13:56:00.000Z", "replayed": False, "authorizes_action": False,
}  # fmt: skip
_OUTCOME = {
    "observation_id": _OBSERVATION, "metric_key": "success", "value": 1.0, "confidence": None,
    "source": None, "is_final": True, "corrects": None, "at": "2026-05-09T08:00:00.000Z",
}  # fmt: skip
_EVIDENCE = {
    **_DECIDED, "context": _NEW["context"], "candidates": _CANDIDATES, "reward_range": None,
    "collection_id": None, "user_id": None, "outcomes": [_OUTCOME], "status": "final",
    "composite_reward": 1.0, "evidence_revision": 1,
}  # fmt: skip
_RECORDED = {
    "decision_id": _ID, "observation_ids": [_OBSERVATION], "status": "final",
    "composite_reward": 1.0, "outcome_count": 1, "evidence_revision": 1, "replayed": False,
}  # fmt: skip

OPERATIONS = (
    Write(
        name="learning.decide",
        method="POST",
        path="/v1/learning/decisions",
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
        description=(
            "The choice is drawn from the distribution in the receipt, so its probability is exact."
        ),
        example=_NEW,
        example_reply=_DECIDED,
    ),
    Read(
        name="learning.get",
        method="GET",
        path="/v1/learning/decisions/{id}",
        handler=get_decision,
        response=DecisionEvidence,
        summary="Get a decision and its outcomes",
        example_reply=_EVIDENCE,
    ),
    Write(
        name="learning.report",
        method="POST",
        path="/v1/learning/decisions/{id}/outcomes",
        handler=report,
        resource=reported_again,
        body=NewOutcome,
        response=OutcomeRecorded,
        statuses=(201,),
        scope="write",
        idempotency=Idempotency.CANONICAL,
        summary="Report a delayed, final or corrected outcome",
        description=(
            "Nothing is overwritten: of each metric the latest counts. A decision without outcome "
            "is censored, no failure."
        ),
        example={"success": True},
        example_reply=_RECORDED,
    ),
)
