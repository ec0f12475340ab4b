"""Feedback and training on a real shard: one account with notes on many topics that judges what it
finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plugins import accounts, collections, feedback, memories, search
from runtime.api.outbox import OUTBOX
from runtime.inference import Models
from runtime.timestamps import DAY_MS, iso
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness

TOPICS = [
    f"{kind} {place}"
    for kind in ("harbour", "meadow", "violin", "orchard", "copper")
    for place in "abcdefgh"
]


class TrainingHarness(ShardHarness):
    """A shard harness with search, feedback and training, and one account whose token is `me`."""

    def __init__(self, directory: Path):
        self.embedder = WordEmbedder()
        plugins = (accounts, collections, memories, search, feedback)
        super().__init__(directory, [each.plugin for each in plugins], Models(self.embedder))
        self.me = self.register()

    def furnish(self) -> dict[str, list[str]]:
        """Five notes on each topic, in words that say the same, old and new, important or not; ->
        topic -> ids, most recent first.
        """
        items, topics = [], []
        for topic in TOPICS:
            for number in range(5):
                items.append(
                    {
                        "content": f"The {topic} note says {topic} again, said number{number}.",
                        "importance": 0.9 - 0.2 * number,
                        "occurred_at": iso(self.now_ms - number * 40 * DAY_MS),
                    }
                )
                topics.append(topic)
        ids: list[str] = []
        for start in range(0, len(items), 100):
            ids += self(
                "memories.create_batch", {"memories": items[start : start + 100]}, who=self.me
            ).body["memory_ids"]
        found: dict[str, list[str]] = {}
        for topic, memory_id in zip(topics, ids, strict=True):
            found.setdefault(topic, []).append(memory_id)
        return found

    def ask(self, topic: str) -> list[str]:
        return self("search.search", {"query": query(topic), "limit": 10}, who=self.me).body[
            "evidence_ids"
        ]

    def tell(self, topic: str, memory_id: str, is_relevant: bool) -> None:
        body = {"query": query(topic), "memory_id": memory_id, "is_relevant": is_relevant}
        assert self("feedback.relevance", body, who=self.me).status == 201

    def train(self) -> dict[str, Any]:
        job = self("rl.train", {}, who=self.me)
        assert job.status == 202, job
        self.settle()
        done = self("rl.jobs.get", who=self.me, job_id=job.body["job_id"]).body
        assert done["status"] == "completed", done
        return done["result"]

    def metrics(self) -> dict[str, Any]:
        return self("rl.metrics", who=self.me).body

    def events(self, prefix: str) -> list[str]:
        with self.shard.store.snapshot() as snapshot:
            return [
                row.kind
                for _, row in snapshot.bind(OUTBOX, self.scope_of(self.me)).scan()
                if row.kind.startswith(prefix)
            ]


def query(topic: str) -> str:
    return f"what about {topic}"
