"""What jobs show: their results quote memories, but none that can be read no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugins.memories.store import find_ordinal, unreadable
from runtime.api import jobs
from runtime.api.context import ReadContext


def job_view(ctx: ReadContext, row: jobs.JobRow) -> dict[str, Any]:
    """The view of one job, as of `job_views`."""
    return job_views(ctx, [row])[0]


def job_views(ctx: ReadContext, rows: Sequence[jobs.JobRow]) -> list[dict[str, Any]]:
    """The views of jobs, without the texts of memories that expired, or were deleted with many
    others, and are not removed yet.
    """
    unread = unreadable(ctx)

    def is_gone(memory_id: str) -> bool:
        ordinal = find_ordinal(ctx, memory_id)
        return ordinal is None or ordinal in unread

    views = [jobs.view(row) for row in rows]
    for view in views if unread else ():
        result = view["result"]
        if isinstance(result, dict) and result.get("events"):
            events = [dict(event) for event in result["events"]]
            view["result"] = {**result, "events": events}
            for event in events:
                leave_out_text(event, is_gone)
    return views


def leave_out_text(event: dict[str, Any], is_gone: Callable[[str], bool]) -> None:
    """Take what memories said that are gone out of an event of a job's result."""
    named = (event["memory_id"], event.get("merged_memory_id"))
    if any(memory_id and is_gone(memory_id) for memory_id in named):
        event |= {"memory": "", "evidence": []}
    previous = event.get("previous_memory_id")
    if previous and is_gone(previous):
        event["previous_content"] = ""
