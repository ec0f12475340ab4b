"""The two ways to reach shards: each slot's calls arrive at its shard, and a shard that fails is never asked again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runtime import cluster
from runtime.cluster import LocalShards, RayShards
from runtime.errors import Unavailable
from runtime.layout import Layout
from runtime.limits import SLOTS
from runtime.run_directory import RunDirectory
from runtime.settings import Settings
from tests.runtime.tiny_app import call, open_shard, registry


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    Layout.load_or_create(tmp_path, 2)
    return Settings.load(None, {"data_dir": str(tmp_path), "shards.count": 2})


async def counts(shards: LocalShards | RayShards) -> list[int]:
    """Adds once in the first and twice in the last slot; -> what each shard then counts."""
    last = SLOTS - 1
    for slot in (0, last, last):
        await shards.execute(call("tiny.add", slot))
    return [(await shards.execute(call("tiny.read", slot))).body for slot in (0, last)]


def test_local_shards_are_chosen_by_slot_and_answer_in_bytes(settings: Settings) -> None:
    async def work() -> None:
        shards = LocalShards([await open_shard(settings, number) for number in range(2)])
        first, second = await counts(shards)
        assert b'"count":1' in first
        assert b'"count":2' in second
        assert [status["shard"] for status in await shards.status()] == [0, 1]
        await shards.drain()
        await shards.close()
        assert {file.name for file in (settings.data_dir / "shards/0001").iterdir()} == {"count", "drained", "checkpoint", "closed"}

    asyncio.run(work())


def test_a_fault_of_the_storage_ends_local_shards(settings: Settings) -> None:
    async def work() -> None:
        told: list[bool] = []
        shards = LocalShards([await open_shard(settings, number) for number in range(2)], on_fault=lambda: told.append(True))
        with pytest.raises(Unavailable, match="unknown"):
            await shards.execute(call("tiny.crash"))
        with pytest.raises(Unavailable, match="restarting"):
            await shards.execute(call("tiny.read", SLOTS - 1))
        assert told == [True]

    asyncio.run(work())


@pytest.mark.ray
def test_ray_shards_live_in_actors(settings: Settings) -> None:
    """A process of its own would be nearer to the service, but this one can look at both sides."""
    import ray

    run_directory = RunDirectory.of(settings.data_dir)
    run_directory.make()
    ray.init(
        num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000, _temp_dir=str(run_directory.path / "ray")
    )
    try:
        handles = cluster.start_shards(settings, 2, "tests.runtime.tiny_app:open_shard")
        cluster.open_shards(handles)

        async def work() -> None:
            shards = RayShards(cluster.find_shards(settings, 2), registry())
            first, second = await counts(shards)
            assert b'"count":1' in first
            assert b'"count":2' in second
            assert [(status["shard"], status["open"]) for status in await shards.status()] == [(0, True), (1, True)]

        asyncio.run(work())
        assert cluster.stop_shards(handles, 30)
        assert (settings.data_dir / "shards/0000/closed").exists()
    finally:
        ray.shutdown()
        run_directory.end_processes()
