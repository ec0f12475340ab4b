"""Feedback on search results, and what it teaches the ranking.

A result was relevant or not, ranked too high or too low, or missing. Feedback is kept as it was
given (operations.py); training.py learns from it, by the mathematics of pairwise.py. Totals and
daily counts are brought up to date in the same transaction, so the statistics cost a few rows.

Feedback on a memory is erased with the memory, since its query may tell what the memory said; and
nothing that was learned outlives the feedback it was learned from.
"""

from __future__ import annotations

from collections.abc import Iterator

from plugins.feedback import operations, training
from plugins.memories import MEMORY_DELETED
from runtime.api.context import ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from runtime.api.plugin import Plugin
from runtime.api.tiers import Feature

__all__ = ["plugin"]


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all feedback, and the trainings on it. Counts of rows by table."""
    return operations.erase(ctx) | training.erase(ctx)


def export(ctx: ReadContext) -> Iterator[Exported]:
    """(kind, record, place): all feedback, then the versions that were learned from it."""
    return sections(ctx, operations.export, training.export)


plugin = Plugin(
    name="feedback",
    id_prefixes=("fbk",),
    requires=("memories", "search"),
    operations=(*operations.OPERATIONS, *training.OPERATIONS),
    tables=(*operations.TABLES, *training.TABLES),
    events=(operations.FEEDBACK_RECEIVED, operations.FEEDBACK_ERASED, *training.EVENTS),
    subscribe={
        MEMORY_DELETED.kind: operations.forget,
        operations.FEEDBACK_ERASED.kind: training.retrain,
    },
    jobs=training.JOBS,
    extras=(training.LEARNING,),
    features={"training": Feature("Training the ranking", tier="pro")},
    erase=erase,
    export=export,
)
