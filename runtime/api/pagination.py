"""Pages and cursors.

A cursor is a position, signed with the tenant's own key and bound to the operation and its filters:
a cursor of another tenant, another route or other filters is refused with 400, never answered with
somebody else's page. Lists run over ordinals, newest first, so a page boundary is one number and
stays put while writes go on: new items are above it.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
from typing import Any, Generic, TypeVar

import orjson
from pydantic import Field

from runtime.api.context import ReadContext
from runtime.api.operation import Query, View
from runtime.errors import BadRequest
from runtime.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX

Item = TypeVar("Item")

_SIGNATURE_BYTES = 12
_CURSOR_CHARS_MAX = 1024  # what is longer was not made here


class PageQuery(Query):
    """Rule P's parameters; list operations derive theirs from it and add filters."""

    limit: int = Field(
        default=PAGE_ITEMS_DEFAULT, ge=1, le=PAGE_ITEMS_MAX, description="Items per page."
    )
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before.")


class Page(View, Generic[Item]):
    """The envelope of every list."""

    items: list[Item] = Field(description="One page of resources.")
    next_cursor: str | None = Field(
        description="Pass it as `cursor` to get the next page; null on the last one."
    )
    has_more: bool = Field(description="Whether more items follow.")
    total_count: int = Field(description="How many items match the filters.")


def position(ctx: ReadContext) -> tuple | None:
    """Where the page starts: the position the cursor carries, or None for the first page. A bad
    cursor is 400.
    """
    cursor = ctx.query.cursor
    if cursor is None:
        return None
    raw = b""
    if len(cursor) <= _CURSOR_CHARS_MAX:
        with contextlib.suppress(ValueError):
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not payload or not hmac.compare_digest(signature, _sign(ctx, payload)):
        raise BadRequest(
            "This cursor does not belong to this list; start again without `cursor`.",
            param="cursor",
        )
    return tuple(orjson.loads(payload))


def envelope(
    ctx: ReadContext, items: list[Any], next_position: tuple | None, total: int
) -> dict[str, Any]:
    """items of this page, the position after them (None at the end) and the filters' total -> the
    response body.
    """
    cursor = None
    if next_position is not None:
        payload = orjson.dumps(next_position)
        cursor = base64.urlsafe_b64encode(_sign(ctx, payload) + payload).rstrip(b"=").decode()
    return {
        "items": items,
        "next_cursor": cursor,
        "has_more": cursor is not None,
        "total_count": total,
    }


def example_page(item: Any) -> dict[str, Any]:
    """A list of this one item, for `example_reply`."""
    return {"items": [item], "next_cursor": None, "has_more": False, "total_count": 1}


def newest_first(ctx: ReadContext, ordinals: Any) -> tuple[list[int], tuple | None]:
    """A BitMap of matching ordinals -> (this page's ordinals, descending; the position after
    them).
    """
    start = position(ctx)
    below = ordinals if start is None else ordinals - type(ordinals)(range(start[0], 2**32))
    limit = ctx.query.limit
    size = len(below)
    page = [below[size - 1 - i] for i in range(min(limit, size))]
    return page, ((page[-1],) if size > limit else None)


def _sign(ctx: ReadContext, payload: bytes) -> bytes:
    filters = ctx.query.model_dump(mode="json", exclude={"cursor", "limit"})
    bound = orjson.dumps([ctx.call.operation, ctx.path, filters], option=orjson.OPT_SORT_KEYS)
    return hmac.digest(ctx.scope.key, b"cursor:" + bound + b"\0" + payload, "sha256")[
        :_SIGNATURE_BYTES
    ]
