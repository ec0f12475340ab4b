"""Outcome memory: decisions with propensities, delayed outcomes, and what they say.

A decision is declared up front: the candidates, the whole distribution the choice is drawn from,
and the range of the reward. Where the service chooses, it draws from exactly the distribution it
writes down, so the propensity is exact and later evaluation can be honest.

    explore    Thompson sampling: each candidate's probability of being the best under the
               posteriors of the evidence so far (Monte Carlo), mixed with an even share ε over all
               candidates
    auto       the same once there is evidence; before, the baseline instead of the posteriors, if
               the request names one
    recommend  the candidate of the highest posterior mean; no exploration unless the request asks
               for it
    observe    the caller has chosen and says how likely that was
    shadow     the baseline acts (or the caller); the service notes what it would have recommended

decide.py chooses, outcomes.py takes in how it went, decision_store.py stores, evaluation.py answers
what the evidence says, statistics.py calculates. Nothing here authorises an action, and every reply
says so. Beside the decisions with a propensity stand decision_log.py, notes of decisions that are
found again by meaning; corrections.py, what a person put right; and confidence.py, the advice that
is drawn from all three.

Choices:
- The evidence of a choice is that of the same collection when the decision names one, else all of
  the policy's.
- A reward lies in the decision's range, else 422. A second observation of a metric takes the place
  of the first; both are kept.
- `policy_version` counts the reports that changed the policy's evidence. `metric_weights` weigh the
  composite reward; a metric without a weight beside others that have one does not count in it, but
  guardrails can use it.
- A context without words, or one the embedder could not take in time, is compared item by item
  only.
"""

from __future__ import annotations

from collections.abc import Iterator

from plugins.collections import COLLECTION_CLEANUP, Sweep
from plugins.learning import (
    confidence,
    corrections,
    decision_log,
    decision_store,
    evaluation,
    views,
)
from plugins.learning.decide import INDEX_JOB
from plugins.learning.operations import OPERATIONS
from plugins.learning.settings import LearningSettings
from plugins.learning.statistics import LEARNING
from plugins.learning.tools import TOOLS
from plugins.memories import MEMORY_DELETED, MEMORY_UPDATED
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from runtime.api.plugin import Plugin

__all__ = ["plugin"]


def sweep_collection(
    ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str
) -> None:
    """Subscriber: one step of removing what a dropped collection has here."""
    decision_store.sweep_collection(ctx, event_id, kind, data, resource_id)
    decision_log.sweep_collection(ctx, event_id, kind, data, resource_id)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all decisions, their evidence, the log and the corrections. Counts by store."""
    return decision_log.erase(ctx) | corrections.erase(ctx) | decision_store.erase(ctx)


def export(ctx: ReadContext) -> Iterator[Exported]:
    """(kind, record, place): decisions with their outcomes, corrections, then logged decisions."""
    return sections(ctx, views.export, corrections.export, decision_log.export)


plugin = Plugin(
    name="learning",
    id_prefixes=("cor", "dec", "obs"),
    requires=("collections", "memories", "memory_tools", "search"),
    tools=TOOLS,
    operations=(
        *OPERATIONS,
        *evaluation.OPERATIONS,
        *corrections.OPERATIONS,
        *decision_log.OPERATIONS,
        *confidence.OPERATIONS,
    ),
    tables=(*decision_store.TABLES, *corrections.TABLES, *decision_log.TABLES),
    indexes=(*decision_store.INDEXES, corrections.CORRECTION_FIELDS, *decision_log.INDEXES),
    events=(corrections.HANDED_ON,),
    subscribe={
        COLLECTION_CLEANUP.kind: sweep_collection,
        MEMORY_DELETED.kind: corrections.forget,
        MEMORY_UPDATED.kind: corrections.note_successor,
    },
    migrations={("corrections", 1): lambda row: row},  # what was added since has a default
    jobs=(INDEX_JOB, decision_log.INDEX_JOB),
    settings={"learning": LearningSettings},
    extras=(LEARNING,),
    erase=erase,
    export=export,
)
