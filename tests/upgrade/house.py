"""A shard on a whole data directory, layout and secrets included, the way a service opens it; and
what a user sees of it.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import serve_app
from runtime.inference import Models
from runtime.installation import Layout, Secrets, shard_directory
from runtime.shard import Shard, verification
from runtime.timestamps import parse
from serve_app import Settings
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import CHEAP, ShardHarness

EMAIL, PASSWORD = "ada@example.com", "correct horse"
QUESTIONS = ("violin", "harbour", "copper meadow")


def seen_at(data_dir: Path) -> int:
    """Unix seconds at which a kept store was seen, and two minutes; now for a new one."""
    path = data_dir / "seen.json"
    if not path.exists():
        return int(time.time())
    times = [parse(memory["created_at"]) for memory in json.loads(path.read_bytes())["memories"]]
    return max(times) // 1000 + 120


class UpgradeHarness(ShardHarness):
    """A ShardHarness on a data directory that lasts. Time goes on there from when what lies in it
    was seen, so that nothing grows old between the releases that a test compares.
    """

    def __init__(self, data_dir: Path):
        self.data_dir = data_dir
        offset = seen_at(data_dir) - int(time.time())
        self.settings = Settings.load(CHEAP, {"clock.offset_seconds": offset})
        self.registry = serve_app.registry()
        self.layout = Layout.load_or_create(data_dir, 1)
        self.secrets = Secrets.load(data_dir / "secrets", create=not self.layout.complete)
        self.now_ms = int((time.time() + offset) * 1000) - 60_000
        self._seeds = 0
        self._models = Models(WordEmbedder())
        self._runner = asyncio.Runner()
        self.open(create=not self.layout.complete)
        self.layout = self.layout.completed(data_dir)

    def open(self, *, create: bool) -> None:
        directory = shard_directory(self.data_dir, 0)
        self.shard = Shard(
            directory,
            self.registry,
            self.settings,
            self._models,
            self.layout.identity(0),
            self.secrets,
        )
        self._runner.run(self.shard.open(create=create))

    def login(self) -> str:
        return self("auth.login", {"email": EMAIL, "password": PASSWORD}).body["access_token"]

    def seen(self) -> dict[str, Any]:
        """What a user sees: every list, every history, what searches find, what a repeated key
        says.
        """
        me = self.login()
        memories = self(
            "memories.list", who=me, query={"limit": 100, "include_superseded": True}
        ).body["items"]
        return {
            "memories": memories,
            "histories": [
                self("memories.history", who=me, id=memory["id"]).body["items"]
                for memory in memories
            ],
            "collections": self("collections.list", who=me).body["items"],
            "keys": [key["id"] for key in self("auth.api_keys.list", who=me).body["items"]],
            "found": [
                self("search.search", {"query": question, "relevance": "all"}, who=me).body[
                    "evidence_ids"
                ]
                for question in QUESTIONS
            ],
            "repeated": self(
                "memories.create", {"content": "a violin, kept under a key"}, who=me, key="kept"
            ).body["id"],
        }

    def exported(self) -> list[dict[str, Any]]:
        """Every record of the account's export, in order."""
        me, records, cursor = self.login(), [], ""
        while True:
            query = {"cursor": cursor} if cursor else None
            part = self("account.export_part", who=me, query=query).body
            records += part["records"]
            cursor = part["next_cursor"]
            if not part["has_more"]:
                return records

    def findings(self) -> list[str]:
        with self.shard.store.snapshot() as snapshot:
            return [
                f"{finding.table}: {finding.what}"
                for account in verification.accounts(snapshot)
                for finding in verification.examine(
                    snapshot, self.shard.environment, account, self.now_ms
                )
            ]
