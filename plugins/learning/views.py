"""Decisions as the API and an export have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugins.collections import dropped_numbers
from plugins.learning.decision_store import (
    DECISION_DETAILS,
    DECISION_RECORDS,
    DecisionRecord,
    DetailsRow,
    find_record,
    observations,
)
from runtime.api.context import ReadContext
from runtime.timestamps import iso
from storage.store import Key


def get_decision(ctx: ReadContext, body: None) -> dict[str, Any]:
    ordinal, row = find_record(ctx, ctx.path["id"])
    return decision_view(ctx, ordinal, row)


def decided_view(row: DecisionRecord, details: DetailsRow, *, replayed: bool) -> dict[str, Any]:
    """A decision record without its outcomes; replayed: whether it was made by an earlier call."""
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
        "distribution": {
            action: chance
            for action, chance in zip(row.actions, row.probabilities, strict=True)
            if chance >= 0
        },
        "propensity_source": row.source,
        "reason": details.reason,
        "created_at": iso(row.created_at),
        "replayed": replayed,
        "authorizes_action": False,
    }


def decision_view(ctx: ReadContext, ordinal: int, row: DecisionRecord) -> dict[str, Any]:
    """A decision record and everything reported of it."""
    details = ctx[DECISION_DETAILS].row(ordinal)
    outcomes = [
        {
            "observation_id": observation.id,
            "metric_key": observation.metric_key,
            "value": observation.value,
            "confidence": observation.confidence,
            "source": observation.source,
            "is_final": observation.is_final,
            "corrects": observation.corrects,
            "at": iso(observation.at),
        }
        for observation in observations(ctx, ordinal)
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


def export(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    """("decision", record with its outcomes, key) for each behind a key, oldest first; the evidence
    follows from them.
    """
    gone = dropped_numbers(ctx)
    for (ordinal,), row in ctx[DECISION_RECORDS].scan(after=after):
        if row.number not in gone:
            yield "decision", decision_view(ctx, ordinal, row), (ordinal,)
