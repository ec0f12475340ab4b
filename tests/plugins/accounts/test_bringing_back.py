"""An import of what was just deleted."""

from __future__ import annotations

import time
from pathlib import Path

import serve_app
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness


def test_what_was_deleted_a_moment_ago_can_be_brought_again(tmp_path: Path) -> None:
    """Both in one commit, so that no job has removed what is only hidden."""
    harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(WordEmbedder()))
    me = harness.register()
    work = harness("collections.create", {"name": "work"}, who=me).body["id"]
    for number in range(3):
        body = {"content": f"Fact {number}", "collection_id": work}
        harness("memories.create", body, who=me)
    named = {"name": "Zorblatt", "type": "person", "collection_id": work}
    harness("graph.entities.create", named, who=me)
    harness.settle()
    harness.now_ms = int(time.time() * 1000)
    records = harness("account.export_part", who=me).body["records"]
    deleted, brought = harness.together(
        [
            harness.form("collections.delete", who=me, id=work),
            harness.form("account.import_part", {"records": records}, who=me),
        ]
    )
    assert (deleted.status, brought.status) == (200, 200)
    for _ in range(2):  # and once the jobs have been over it
        assert harness("memories.list", who=me).body["total_count"] == 3
        assert harness("collections.get", who=me, id=work).body["memory_count"] == 3
        assert harness("graph.entities.get", who=me, entity_name="Zorblatt").status == 200
        harness.settle()
        harness.now_ms = int(time.time() * 1000)
    harness.close()
