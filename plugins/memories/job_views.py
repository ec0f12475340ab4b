"""What jobs show: their results quote memories, but none that can be read no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugins.memories.store import find_ordinal, unreadable
from runtime.api import jobs
from runtime.api.context import ReadContext


def job_view(ctx: ReadContext, row: jobs.JobRow) -> dict[str, Any]:
    """The view of a job, without the texts of memories that expired, or were deleted with many
    others, and are not removed yet.
    """
    shown = jobs.view(row)
    if not isinstance(row.result, dict) or not row.result.get("events"):
        return shown
    if not (unread := unreadable(ctx)):
        return shown
    events = [dict(event) for event in row.result["events"]]
    for event in events:
        leave_out_text(event, lambda memory_id: find_ordinal(ctx, memory_id) in unread)
    return {**shown, "result": {**row.result, "events": events}}


def leave_out_text(event: dict[str, Any], is_gone: Callable[[str], bool]) -> None:
    """Take what memories said that are gone out of an event of a job's result."""
    named = (event["memory_id"], event.get("merged_memory_id"))
    if any(memory_id and is_gone(memory_id) for memory_id in named):
        event |= {"memory": "", "evidence": []}
    previous = event.get("previous_memory_id")
    if previous and is_gone(previous):
        event["previous_content"] = ""
