"""MnemeRetriever: a query as search.search, each result as a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from mneme_client import Mneme, searchable
from pydantic import Field

RETRIEVED = 4


class MnemeRetriever(BaseRetriever):
    """What is remembered and answers a query, best first; nothing is padded.

    client         a connection, by default one to $MNEME_BASE_URL with $MNEME_API_KEY
    k              how many documents at most, 1 to 100
    user_id        only memories of this end user
    collection_id  only memories of this collection
    filters        conditions in the service's filter language
    options        further arguments of `client.search`: threshold, token_budget, as_of, relevance,
                   session_id and the like; one of the same name as those above goes before it

    A document's id is its memory's, its metadata the other fields of the result: score, created_at,
    session_id, tags, the memory's own metadata under `metadata`, …
    """

    client: Mneme = Field(default_factory=Mneme, exclude=True, repr=False)
    k: int = Field(default=RETRIEVED, ge=1, le=100)
    user_id: str | None = None
    collection_id: str | None = None
    filters: dict[str, Any] | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        wanted = searchable(query)
        if not wanted:
            return []
        given = {
            "user_id": self.user_id,
            "collection_id": self.collection_id,
            "filters": self.filters,
            "limit": self.k,
        }
        found = self.client.search(wanted, **(given | self.options))
        return [_document(hit) for hit in found["results"]]


def _document(hit: Mapping[str, Any]) -> Document:
    aside = ("id", "memory_id", "content", "highlights")
    metadata = {name: value for name, value in hit.items() if name not in aside}
    return Document(id=hit["id"], page_content=hit["content"], metadata=metadata)
