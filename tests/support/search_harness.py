"""Search on a real shard: one account that adds memories and asks for them, every answer checked
against the envelope.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plugins import accounts, collections, memories, search, webhooks
from plugins.search.advanced import AdvancedReply
from plugins.search.models import SearchReply
from runtime.api.plugin import Plugin
from runtime.inference import Models, load_reranker
from serve_app import Settings
from tests.support.embedding import WordEmbedder
from tests.support.rerankers import RerankerEndpoint
from tests.support.shard_harness import CHEAP, ShardHarness


class SearchHarness(ShardHarness):
    """A shard harness with memories and search, and one account whose token is `me`."""

    def __init__(self, directory: Path, *further: Plugin, **settings: Any):
        self.embedder = WordEmbedder()
        plugins = (accounts.plugin, collections.plugin, memories.plugin, search.plugin, *further)
        chosen = Settings.load({**CHEAP, **settings})
        super().__init__(
            directory, plugins, Models(self.embedder, reranker=load_reranker(chosen)), chosen
        )
        self.me = self.register()

    def add(self, content: str, who: str | None = None, **fields: Any) -> str:
        answer = self("memories.create", {"content": content, **fields}, who=who or self.me)
        assert answer.status == 201, answer
        return answer.body["id"]

    def find(self, query: str, who: str | None = None, **fields: Any) -> dict[str, Any]:
        answer = self("search.search", {"query": query, **fields}, who=who or self.me)
        assert answer.status == 200, answer
        check(answer.body)
        return answer.body

    def ids(self, query: str, **fields: Any) -> list[str]:
        return self.find(query, **fields)["evidence_ids"]


class AdvancedSearchHarness(SearchHarness):
    """A library with advanced search, and a reranker when one is given."""

    def __init__(
        self,
        directory: Path,
        reranker: RerankerEndpoint | None = None,
        further: tuple[Plugin, ...] = (),
        **settings: Any,
    ):
        if reranker is not None:
            settings["reranker"] = {
                "base_url": reranker.url,
                "model": "judge-1",
                "timeout_seconds": 2.0,
            }
        super().__init__(directory, webhooks.plugin, *further, **settings)

    def ask(self, query: str = "note", **fields: Any) -> dict[str, Any]:
        answer = self("search.advanced", {"query": query, **fields}, who=self.me)
        assert answer.status == 200, answer
        AdvancedReply.model_validate(answer.body)
        check({name: value for name, value in answer.body.items() if name != "facets"})
        return answer.body

    def order(self, query: str = "note", **fields: Any) -> list[str]:
        return self.ask(query, **fields)["evidence_ids"]


def check(body: dict[str, Any]) -> None:
    """The envelope keeps its word, whatever was asked."""
    SearchReply.model_validate(body)
    assert set(body) | {"ranking_profile"} == set(SearchReply.model_fields)
    ids = [hit["id"] for hit in body["results"]]
    assert body["evidence_ids"] == ids and len(set(ids)) == len(ids)
    scores = [hit["score"] for hit in body["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= hit["normalized_score"] <= 1 for hit in body["results"])
    if body["no_match"]:
        assert (
            not ids
            and body["query_confidence"] == 0
            and body["abstain_recommended"]
            and body["grounding"]["status"] == "no_grounded_match"
        )
