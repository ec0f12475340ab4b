"""Ingestion on a real shard: one account that says things and looks at what became of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import serve_app
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness

MARCH, JUNE = "2023-03-01T10:00:00Z", "2023-06-10T10:00:00Z"


class IngestionHarness:
    """A shard harness that listens: an account with a model-free service."""

    def __init__(self, directory: Path, models: Models | None = None):
        self.embedder = WordEmbedder()
        self.harness = ShardHarness(directory, serve_app.PLUGINS, models or Models(self.embedder))
        self.me = self.harness.register()

    def __call__(self, operation: str, body: Any = None, **further: Any) -> Any:
        return self.harness(operation, body, who=self.me, **further).body

    def hear(
        self, *said: str, at: str = MARCH, speaker: str = "Ada", **further: Any
    ) -> dict[str, Any]:
        """The finished job of one speaker's messages."""
        messages = [{"role": "user", "name": speaker, "content": text} for text in said]
        job = self("memories.process", {"messages": messages, "occurred_at": at, **further})[
            "job_id"
        ]
        self.harness.settle()
        self.harness.now_ms = int(
            time.time() * 1000
        )  # jobs went by the real clock; who asks comes after them
        done = self("memories.jobs.get", job_id=job)
        assert done["status"] == "completed", done
        return done["result"] | {"job_id": job}

    def contents(self, **query: Any) -> list[str]:
        return sorted(item["content"] for item in self("memories.list", query=query)["items"])

    def targets(self, entity: str, kind: str, **asked: Any) -> list[str]:
        answer = self.harness(
            "graph.query", {"entity": entity, "relation_type": kind, **asked}, who=self.me
        )
        return (
            []
            if answer.status == 404
            else sorted(found["target"]["name"] for found in answer.body["relationships"])
        )


def kinds(result: dict[str, Any]) -> list[str]:
    return [event["event"] for event in result["events"]]
