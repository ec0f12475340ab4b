"""What memories of real conversations mention: a random sample of the entities, to be judged by
reading, and what reading costs.

    python loadtests/mentions.py --data locomo10.json [--entities 100] [--seed 1] [--show]

The file has conversations as LoCoMo has them: sessions of turns with a speaker and a text. Every
turn is stored as it is, in an account of its own for each conversation, in a service of this
process with the language heads; once all is read, figures are printed, and with --show the sample
of entities: how many memories mention each, its name, its type, its further names. What the sample
says is for whoever reads it to judge.

Processor time is this process's: of storing the turns, indexed as ever, with reading put off; and
of reading them then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import serve_app
from runtime.inference import MiniLmEmbedder, Models
from tests.support.shard_harness import ShardHarness

BATCH = 100


def turns(path: Path) -> dict[str, list[dict[str, str]]]:
    """The turns of each conversation, as memories to be stored."""
    found: dict[str, list[dict[str, str]]] = {}
    for sample in json.loads(path.read_text()):
        told = sample["conversation"]
        sessions = [
            told[name]
            for name in told
            if name.startswith("session_") and isinstance(told[name], list)
        ]
        found[sample["sample_id"]] = [
            {"content": turn["text"], "speaker": turn["speaker"]}
            for session in sessions
            for turn in session
            if turn["text"].strip()
        ]
    return found


class Held(MiniLmEmbedder):
    """The embedded model, which says that it is busy while `holds`: then nothing is read."""

    holds = False

    def stats(self) -> dict[str, float]:
        return {**super().stats(), "texts_per_second": float("inf") if self.holds else 0.0}


def fill(
    harness: ShardHarness, embedder: Held, number: int, memories: list[dict[str, str]]
) -> tuple[list[dict[str, Any]], float, float]:
    """Store a conversation in an account of its own -> its entities, and the seconds of the
    processor that storing and reading took.
    """
    me = harness.register(f"reader{number}@example.com")
    embedder.holds = True
    before = time.process_time()
    for first in range(0, len(memories), BATCH):
        stored = harness(
            "memories.create_batch", {"memories": memories[first : first + BATCH]}, who=me
        )
        assert stored.status in (200, 201, 202), stored
    between = time.process_time()
    embedder.holds = False
    harness.settle()
    after = time.process_time()
    entities: list[dict[str, Any]] = []
    cursor = None
    while True:
        query = {"limit": 100, **({"cursor": cursor} if cursor else {})}
        page = harness("graph.entities.list", who=me, query=query).body
        entities += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return entities, between - before, after - between


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FILE")
    parser.add_argument("--entities", type=int, default=100, help="of the sample (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the sample")
    asked = parser.parse_args()
    conversations = turns(asked.data)
    entities: list[dict[str, Any]] = []
    stored = storing = reading = 0.0
    with tempfile.TemporaryDirectory(prefix="mneme-mentions-") as directory:
        embedder = Held(Path(directory) / "models", threads=1, timeout_seconds=600)
        asyncio.run(embedder.read_language(["The loops are compiled before anything is timed."]))
        harness = ShardHarness(Path(directory) / "data", serve_app.PLUGINS, Models(embedder))
        try:
            for number, memories in enumerate(conversations.values()):
                found, taken, read = fill(harness, embedder, number, memories)
                entities += found
                stored, storing, reading = stored + len(memories), storing + taken, reading + read
        finally:
            harness.close()
            asyncio.run(embedder.close())
    kinds = Counter(entity["type"] for entity in entities)
    mentions = sum(entity["mention_count"] for entity in entities)
    print(f"{stored:.0f} memories, {len(entities)} entities, {mentions} mentions; {dict(kinds)}")
    print(
        f"processor seconds for 1,000 memories: stored {1000 * storing / stored:.2f}, then read "
        f"{1000 * reading / stored:.2f}"
    )
    if asked.show:
        chosen = random.Random(asked.seed).sample(entities, min(asked.entities, len(entities)))
        for entity in chosen:
            print(
                f"{entity['mention_count']:5} {entity['name']:40} {entity['type']:14} "
                f"{', '.join(entity['aliases'])}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
