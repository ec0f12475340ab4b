"""Shards in this process: each slot's calls arrive at its shard, and a shard that fails is never
asked again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runtime.cluster import LocalShards
from runtime.errors import Unavailable
from runtime.installation import Layout
from runtime.limits import SLOTS
from runtime.settings import Settings
from tests.support.tiny_app import call, counts, open_shard


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    Layout.load_or_create(tmp_path, 2)
    return Settings.load(None, {"data_dir": str(tmp_path), "shards.count": 2})


def test_local_shards_are_chosen_by_slot_and_answer_in_bytes(settings: Settings) -> None:
    async def work() -> None:
        shards = LocalShards([await open_shard(settings, number) for number in range(2)])
        first, second = await counts(shards)
        assert b'"count":1' in first
        assert b'"count":2' in second
        assert [status["shard"] for status in await shards.status()] == [0, 1]
        await shards.drain()
        await shards.close()
        assert {file.name for file in (settings.data_dir / "shards/0001").iterdir()} == {
            "count",
            "drained",
            "checkpoint",
            "closed",
        }

    asyncio.run(work())


def test_a_fault_of_the_storage_ends_local_shards(settings: Settings) -> None:
    async def work() -> None:
        told: list[bool] = []
        shards = LocalShards(
            [await open_shard(settings, number) for number in range(2)],
            on_fault=lambda: told.append(True),
        )
        with pytest.raises(Unavailable, match="unknown"):
            await shards.execute(call("tiny.crash"))
        with pytest.raises(Unavailable, match="restarting"):
            await shards.execute(call("tiny.read", SLOTS - 1))
        assert told == [True]

    asyncio.run(work())
