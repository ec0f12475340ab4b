"""What the cases run against: a real service, by $MNEME_BASE_URL and $MNEME_API_KEY, and the
framework's own store, which says what is meant.
"""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections.abc import Iterator

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from mneme_client import Mneme
from mneme_langgraph import MnemeStore

WORDS = re.compile(r"\w+")
DIMENSIONS = 256


def by_words(texts: list[str]) -> list[list[float]]:
    """Embeddings that are near where texts share words."""
    vectors = []
    for text in texts:
        vector = [0.0] * DIMENSIONS
        for word in WORDS.findall(text.lower()):
            vector[hashlib.sha256(word.encode()).digest()[0]] += 1.0
        length = math.sqrt(sum(value * value for value in vector)) or 1.0
        vectors.append([value / length for value in vector])
    return vectors


@pytest.fixture(scope="session")
def client() -> Iterator[Mneme]:
    with Mneme() as client:
        yield client


@pytest.fixture
def collection_id(client: Mneme) -> Iterator[str]:
    made = client.collections.create(name=f"langgraph {uuid.uuid4().hex}")
    yield made["id"]
    client.collections.delete(made["id"])


@pytest.fixture
def mneme(client: Mneme, collection_id: str) -> MnemeStore:
    return MnemeStore(client, collection_id=collection_id)


@pytest.fixture(params=["mneme", "in memory"])
def store(request: pytest.FixtureRequest) -> BaseStore:
    """Either store, with everything indexed."""
    if request.param == "mneme":
        return request.getfixturevalue("mneme")
    return InMemoryStore(index={"dims": DIMENSIONS, "embed": by_words})
