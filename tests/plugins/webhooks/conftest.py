"""A shard harness with quick webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shard_harness import ShardHarness
from tests.support.webhook_harness import harness


@pytest.fixture
def at(tmp_path: Path) -> Iterator[ShardHarness]:
    with harness(tmp_path) as made:
        yield made
