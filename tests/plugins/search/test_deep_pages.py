"""Pages that end further down than a channel usually proposes, over HTTP."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.over_http import over_http

MEMORIES = 120
WORDS = ("parrot", "almonds", "lisbon", "guitar", "cheese", "doctor", "train", "coffee", "violin")


@pytest.mark.parametrize("search_type", ["bm25", "vector", "hybrid"])
def test_a_page_has_what_its_limit_and_offset_ask_for(tmp_path: Path, search_type: str) -> None:
    with over_http(tmp_path) as service:
        me = service.register()
        for first in range(0, MEMORIES, 60):
            batch = [
                {"content": f"Parrot {number} likes almonds"} for number in range(first, first + 60)
            ]
            stored = service.post(
                "/v1/memories/batch", {"memories": batch, "wait_for_index": True}, me
            )
            assert stored.status_code == 201, stored.text
        asked = {"query": "parrots and almonds", "search_type": search_type, "relevance": "all"}
        first = service.post("/v1/search", {**asked, "limit": 100}, me).json()
        assert len(first["results"]) == 100
        assert first["total"] >= 100
        last = service.post("/v1/search", {**asked, "limit": 20, "offset": 100}, me).json()
        assert len(last["results"]) == 20
        assert not set(first["evidence_ids"]) & set(last["evidence_ids"])


@pytest.mark.parametrize("search_type", ["bm25", "vector"])
@pytest.mark.parametrize("boosts", [None, {"tags": {"dear": 0.5}}])
def test_pages_share_no_result_and_lose_none(
    tmp_path: Path, search_type: str, boosts: dict[str, Any] | None
) -> None:
    chosen = random.Random(1)
    texts = [" and ".join(chosen.choices(WORDS, k=4)) + f" {at}" for at in range(240)]
    with over_http(tmp_path) as service:
        me = service.register()
        for first in range(0, len(texts), 60):
            batch: list[dict[str, Any]] = [{"content": text} for text in texts[first : first + 60]]
            for each in batch[::3]:
                each |= {"tags": ["dear"]}
            stored = service.post(
                "/v1/memories/batch", {"memories": batch, "wait_for_index": True}, me
            )
            assert stored.status_code == 201, stored.text
        asked: dict[str, Any] = {
            "query": "which parrot likes almonds and cheese",
            "search_type": search_type,
            "relevance": "all",
        }
        if boosts is not None:
            asked["boosts"] = boosts
        path = "/v1/search" if boosts is None else "/v1/search/advanced"
        found, total = list[str](), 0
        for offset in range(0, len(texts), 20):
            page = service.post(path, {**asked, "limit": 20, "offset": offset}, me).json()
            found += [result["id"] for result in page["results"]]
            scores = [result["score"] for result in page["results"]]
            assert scores == sorted(scores, reverse=True)
            total = page["total"]
        assert len(found) == len(set(found)) == total > 60
