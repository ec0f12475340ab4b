"""A shard harness with memories and their tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins import accounts, collections, memories, memory_tools
from runtime.inference import Models
from serve_app import Settings
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import CHEAP, ShardHarness
from tests.support.superseding import superseding

PLUGINS = (accounts.plugin, collections.plugin, memories.plugin, memory_tools.plugin, superseding)


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def harness(tmp_path: Path, embedder: WordEmbedder) -> Iterator[ShardHarness]:
    harness = ShardHarness(
        tmp_path,
        PLUGINS,
        Models(embedder),
        Settings.load({**CHEAP, "write": {"ready_wait_ms": 50}}),
    )
    yield harness
    harness.close()


@pytest.fixture
def ada(harness: ShardHarness) -> str:
    return harness.register()
