"""A store with vectors, and thresholds that few of them reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.indexes import change_tokens
from storage.indexes.vectors import space as vectors_space
from storage.store import Store
from tests.support.vectors import open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "shard")
    yield store
    store.close()


@pytest.fixture
def low_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters that leave more than 50 vectors may go by cells, of which 256 are made of 2,000;
    files are written of all, and read anew where one of sixteen has changed.
    """
    monkeypatch.setattr(vectors_space, "GATHERED_MAX", 50)
    monkeypatch.setattr(vectors_space, "PENDING_MAX", 20)
    monkeypatch.setattr(vectors_space, "KEPT_MIN", 1)
    monkeypatch.setattr(change_tokens, "RANGE_SHIFT", 4)
    monkeypatch.setattr(vectors_space, "LARGE", 100)
