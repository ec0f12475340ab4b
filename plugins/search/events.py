"""The event of a search, told without its words.

A search changes nothing, so its event is written after the reply, and only where a webhook waits
for it. The query itself is nobody else's business: `query_hash` is keyed with the account's own
secret, so equal queries of an account are seen to be equal, and nobody finds a query by trying out
likely ones.
"""

from __future__ import annotations

import hmac
from typing import Any

from pydantic import Field

from runtime.api.context import ReadContext
from runtime.api.operation import Event, View


class SearchCompleted(View):
    id: str = Field(description="The request's id, as in X-Request-ID.")
    query_hash: str = Field(
        description="Equal for equal queries of this account; the query cannot be told from it."
    )
    search_type: str = Field(description="hybrid, vector, bm25 or graph.")
    result_count: int = Field(description="Results on the page that was returned.")
    top_ids: list[str] = Field(description="Ids of these results, best first.")
    no_match: bool = Field(description="Nothing stored answers the query.")
    took_ms: float = Field(description="How long it took.")


SEARCH_COMPLETED = Event("search.completed", SearchCompleted)


def completed(ctx: ReadContext, reply: dict[str, Any]) -> dict[str, Any]:
    """The reply itself, after having it announced."""

    def data() -> dict[str, Any]:
        return {
            "id": ctx.call.request_id,
            "query_hash": hmac.digest(
                ctx.scope.key, b"query:" + reply["query"].encode(), "sha256"
            ).hex(),
            "search_type": reply["search_type"],
            "result_count": len(reply["evidence_ids"]),
            "top_ids": reply["evidence_ids"],
            "no_match": reply["no_match"],
            "took_ms": reply["processing_time_ms"],
        }

    ctx.announce(SEARCH_COMPLETED, data, ctx.call.request_id)
    return reply
