"""How the kept stores were made: run with the release whose format is wanted, from its root, with
the directory to write to.

    git archive <release> | tar -x -C /tmp/release && cd /tmp/release && python <here>/make_store.py
    /tmp/store

It uses an account as a customer would, then leaves a compacted copy of the store behind. What it
writes is told by `CONTENT`, `TAGS` and the rest, which the test reads back.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SECRET_BYTES = (b"s" * 32, b"p" * 32, "mem_op_" + "0" * 64)
CONTENT = [
    "Ada keeps the spare key under the blue flowerpot.",
    "Bread is baked on Mondays.",
    "The boat is called Odysseus.",
]
TAGS = ["home", "t" * 64]
NAMES = ["travel", "travel plans", "work"]
USER = "ada@" + "x" * 250


def fill(directory: Path) -> str:
    """Make the store; -> an API key of its account."""
    import serve_app
    from runtime.inference import Models
    from runtime.installation import Secrets
    from tests.support.embedding import WordEmbedder
    from tests.support.shard_harness import ShardHarness

    Secrets.generate = classmethod(lambda cls: cls(*SECRET_BYTES))
    harness = ShardHarness(directory / "live", serve_app.PLUGINS, Models(WordEmbedder()))
    me = harness.register()
    key = harness("auth.api_keys.create", {"name": "kept", "scopes": ["admin"]}, who=me).body["key"]
    collections = [
        harness("collections.create", {"name": name, "description": "A trip."}, who=me).body["id"]
        for name in NAMES
    ]
    first = {
        "content": CONTENT[0],
        "tags": TAGS,
        "user_id": USER,
        "speaker": "Ada",
        "session_id": "s1",
        "metadata": {"n": 1},
    }
    memory = harness("memories.create", first, who=me, key="first").body["id"]
    harness(
        "memories.create",
        {
            "content": CONTENT[1],
            "collection_id": collections[0],
            "session_id": "s1",
            "speaker": "Bo",
        },
        who=me,
    )
    harness("memories.create_batch", {"memories": [{"content": CONTENT[2]}]}, who=me, key="batch")
    harness("memories.update", {"importance": 0.9}, who=me, id=memory)
    harness("collections.delete", who=me, id=collections[2])
    harness.settle()
    harness.shard.store.backup(directory / "store")
    harness.close()
    shutil.rmtree(directory / "live")
    return key


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    print(fill(Path(sys.argv[1])))
