"""A request that is repeated while the commit of the first one is on its way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from plugins.memories.rows import MEMORY_VECTORS
from storage.indexes import VectorIndex
from storage.store import Store
from tests.support.sharded import emails, sharded

WAIT_SECONDS_MAX = 60


def test_whoever_repeats_a_write_is_answered_once_searches_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_go_on = threading.Event(), threading.Event()
    apply = VectorIndex.apply

    def held_up(index: VectorIndex, store: Store, changes: Iterable[Any]) -> None:
        if index is MEMORY_VECTORS:
            began.set()
            assert may_go_on.wait(WAIT_SECONDS_MAX)
        apply(index, store, changes)

    async def work() -> None:
        async with sharded(tmp_path, 1) as service:
            (email,) = emails(0, 1, 1)
            token = await service.register(email)
            await service.remember(token, "the first fact is about cats")
            query = {"query": "zebra crossing", "search_type": "vector"}
            await service.call("POST", "/v1/search", query, who=token)
            monkeypatch.setattr(VectorIndex, "apply", held_up)

            async def remember() -> tuple[int, list[str]]:
                """-> status, and what a search finds right after the answer."""
                answer = await service.remember(token, "zebra crossing", Idempotency_Key="k1")
                found = await service.call("POST", "/v1/search", query, who=token)
                return answer.status_code, [one["content"] for one in found.json()["results"]]

            first = asyncio.create_task(remember())
            await asyncio.to_thread(began.wait, WAIT_SECONDS_MAX)
            again = asyncio.create_task(remember())
            try:
                # Its key is on disk, and nothing else keeps it from its answer.
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(again), 0.3)
            finally:
                may_go_on.set()
            for status, found in (await first, await again):
                assert status == 201 and "zebra crossing" in found

    asyncio.run(work())
