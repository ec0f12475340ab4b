"""What opens a shard's store in the reader processes of tests: with the model of tests, so that
they start sooner.
"""

from __future__ import annotations

import serve_app
from runtime.inference import Models
from runtime.installation import Layout, Secrets, shard_directory
from runtime.shard import ReadingShard
from serve_app import Settings, registry
from tests.support.embedding import WordEmbedder

__all__ = ["OPENER", "open_reader", "registry"]

OPENER = "tests.support.reading:open_reader"


def open_reader(settings: Settings, number: int, count: int) -> ReadingShard:
    """As serve_app.open_reader."""
    return ReadingShard(
        shard_directory(settings.data_dir, number),
        serve_app.registry(),
        settings,
        Models(WordEmbedder()),
        Layout.load(settings.data_dir).identity(number),
        Secrets.load(settings.data_dir / "secrets", create=False),
        count,
    )
