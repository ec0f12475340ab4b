"""Queries that were asked before, on a real shard: remembered for whoever asked, and for no other
account.
"""

from __future__ import annotations

from pathlib import Path

from plugins import accounts, collections, memories, search
from runtime.inference import Models
from runtime.inference.embedding import Asked, BoundedEmbedder, Embedding
from serve_app import Settings
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import CHEAP, ShardHarness


class CountingEmbedder(BoundedEmbedder):
    """The cache and queue of every embedder, before words; `computed` is what it had to embed."""

    space = WordEmbedder.space
    width = WordEmbedder.width

    def __init__(self) -> None:
        super().__init__(timeout_seconds=10, queue_max=100, cache_entries=100)
        self._words = WordEmbedder()

    @property
    def computed(self) -> list[str]:
        return self._words.texts

    async def _compute(self, asked: list[Asked], deadline: float) -> list[Embedding]:
        texts, words = [text for text, _ in asked], [spans or () for _, spans in asked]
        return await self._words.embed_words(texts, words)

    def yield_to_reads(self, reads_wait: bool) -> None:
        """It takes no time."""

    async def close(self) -> None:
        self._closed = True


def test_a_query_is_computed_once_for_each_account(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    plugins = (accounts.plugin, collections.plugin, memories.plugin, search.plugin)
    harness = ShardHarness(tmp_path, plugins, Models(embedder), Settings.load(CHEAP))
    try:
        ada, eve = harness.register("ada@example.com"), harness.register("eve@example.com")
        for who, computed in ((ada, 1), (ada, 1), (eve, 2), (ada, 2), (eve, 2)):
            answer = harness("search.search", {"query": "salary of the new director"}, who=who)
            assert answer.status == 200
            assert len(embedder.computed) == computed
    finally:
        harness.close()
