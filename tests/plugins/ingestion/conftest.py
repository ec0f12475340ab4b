"""The shipped model, the rules that read trees with it, and an account on a shard that has both."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.ingestion.engine import RuleEngine
from runtime.inference import MiniLmEmbedder, Models
from tests.support.ingestion_harness import IngestionHarness


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniLmEmbedder]:
    model = MiniLmEmbedder(tmp_path_factory.mktemp("models"), timeout_seconds=120)
    yield model
    asyncio.run(model.close())


@pytest.fixture(scope="module")
def engine(model: MiniLmEmbedder) -> RuleEngine:
    return RuleEngine(model.read_language)


@pytest.fixture
def reading(tmp_path: Path, model: MiniLmEmbedder) -> Iterator[IngestionHarness]:
    listening = IngestionHarness(tmp_path, Models(model))
    yield listening
    listening.harness.close()
