"""A knowledge graph on a shard of its own, and short names for what is asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plugins import accounts, collections, graph, memories, search
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import Answer, ShardHarness
from tests.support.superseding import superseding

PLUGINS = (
    accounts.plugin,
    collections.plugin,
    memories.plugin,
    search.plugin,
    graph.plugin,
    superseding,
)


class GraphHarness:
    """A shard harness and its account, with the graph's operations by short names."""

    def __init__(self, directory: Path):
        self.harness = ShardHarness(directory, PLUGINS, Models(WordEmbedder()))
        self.me = self.harness.register()

    def close(self) -> None:
        self.harness.close()

    def __call__(self, operation: str, body: Any = None, **further: Any) -> Answer:
        return self.harness(operation, body, who=self.me, **further)

    def relate(self, source: str, kind: str, target: str, **fields: Any) -> dict[str, Any]:
        answer = self(
            "graph.relationships.create",
            {"source": source, "type": kind, "target": target, **fields},
        )
        assert answer.status in (200, 201), answer
        return answer.body

    def remember(self, content: str) -> str:
        return self("memories.create", {"content": content, "wait_for_index": True}).body["id"]

    def targets(self, entity: str, **asked: Any) -> list[str]:
        body = self("graph.query", {"entity": entity, **asked}).body
        return sorted(found["target"]["name"] for found in body["relationships"])

    def stats(self) -> dict[str, Any]:
        return self("graph.stats").body
