"""What a search may return."""

from __future__ import annotations

from typing import Any

from pyroaring import BitMap

from plugins.memories import MEMORY_FIELDS, compile_filter, is_wide, known_at, readable
from runtime.api.context import ReadContext
from runtime.api.operation import Call
from storage.indexes import AllOf

FILTERS_AT = ("body", "filters")
QUERY_CHARS_LIGHT = 1_000  # a text of so many is read in some milliseconds, whatever it is of


def is_heavy(call: Call) -> bool:
    """Whether a search may have much to do before it ranks any: by a wide filter, in the past, or
    for a long text.
    """
    body = call.body
    return body.as_of is not None or is_wide(body.filters) or len(body.query) > QUERY_CHARS_LIGHT


def universe(ctx: ReadContext, body: Any) -> BitMap:
    """Everything a search may return: live, indexed, in scope, inside the filters."""
    past = body.as_of is not None
    superseded = body.include_superseded or past
    found = readable(ctx, body, include_superseded=superseded, include_pending=False)
    if past:
        found = known_at(ctx, found, body.as_of, include_superseded=body.include_superseded)
    return filtered(ctx, found, body.filters)


def filtered(ctx: ReadContext, found: BitMap, filters: dict[str, Any] | None) -> BitMap:
    """Those of `found` that are inside the filters of a search's body, if it has any."""
    if not filters:
        return found
    inside = AllOf(compile_filter(ctx, filters, FILTERS_AT))
    return inside.evaluate(ctx.index(MEMORY_FIELDS), found)
