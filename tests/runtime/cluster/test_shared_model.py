"""A model in a process of its own: what it makes of texts is what a model in the shard makes. That
shards get over its end: tests/test_two_shards_on_ray.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.cluster.shared_model import (
    ModelProcess,
    SharedModel,
    model_deployments,
)
from runtime.inference import (
    InferenceUnavailable,
    MiniLmEmbedder,
    Worker,
    remembered_for,
)
from runtime.inference.local_embedder import Pause, Tokens
from runtime.inference.minilm import MiniLm
from runtime.settings import Settings
from tests.support.reading import OPENER
from tests.support.worlds import settings

TEXTS = ["We adopted a beagle named Biscuit last spring.", "The lease ends in May."]
SPANS = [[(3, 10), (13, 19)], [(4, 9)]]


async def opened(chosen: Settings) -> ModelProcess:
    """As Serve makes a replica."""
    process = ModelProcess.__new__(ModelProcess)
    await process.__init__(chosen, "embedder", OPENER)  # type: ignore[misc]
    return process


def embedder(directory: Path, worker: Worker | None = None) -> MiniLmEmbedder:
    return MiniLmEmbedder(directory, worker=worker, timeout_seconds=60)


def test_it_makes_of_texts_what_a_model_in_the_shard_makes(tmp_path: Path) -> None:
    async def work() -> None:
        chosen = settings(data_dir=str(tmp_path / "data"), embedder__processes=1)
        process = await opened(chosen)
        shared = SharedModel(chosen, "embedder", process.release)
        theirs, own = embedder(tmp_path, shared), embedder(tmp_path)
        for each in (theirs, own):
            assert each.knows("spring") and not each.knows("beagel")
        np.testing.assert_array_equal(await theirs.embed(TEXTS), await own.embed(TEXTS))
        for found, wanted in zip(
            await theirs.embed_read(TEXTS, SPANS), await own.embed_read(TEXTS, SPANS), strict=True
        ):
            np.testing.assert_array_equal(found[0].vector, wanted[0].vector)
            np.testing.assert_array_equal(found[0].words, wanted[0].words)
            assert found[1] == wanted[1] and found[1].sentences[0].tokens
        await own.close()
        await theirs.close()
        with pytest.raises(InferenceUnavailable, match="closed"):
            await theirs.embed(TEXTS)
        await process.close()

    asyncio.run(work())


def test_many_shards_texts_go_in_few_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        chosen = settings(data_dir=str(tmp_path / "data"), embedder__processes=1)
        process = await opened(chosen)
        runs: list[int] = []
        plain = MiniLm.embed

        def embed(model: MiniLm, texts: Sequence[Tokens], pause: Pause | None = None) -> Any:
            runs.append(len(texts))
            return plain(model, texts, pause)

        monkeypatch.setattr(MiniLm, "embed", embed)
        shards = [
            embedder(tmp_path, SharedModel(chosen, "embedder", process.release)) for _ in range(4)
        ]

        async def ask(shard: MiniLmEmbedder, number: int) -> None:
            with remembered_for(number):
                assert len(await shard.embed([f"which of the {number} dogs is hers"])) == 1

        async with asyncio.TaskGroup() as group:
            for number in range(60):
                group.create_task(ask(shards[number % 4], number))
        assert sum(runs) == 60 and len(runs) < 30
        for shard in shards:
            await shard.close()
        await process.close()

    asyncio.run(work())


def test_another_release_is_not_listened_to(tmp_path: Path) -> None:
    async def work() -> None:
        chosen = settings(data_dir=str(tmp_path / "data"), embedder__processes=1)
        process = await opened(chosen)
        other = embedder(tmp_path, SharedModel(chosen, "embedder", "mneme 0.0.1"))
        with pytest.raises(InferenceUnavailable, match="The embedding model is of release"):
            await other.embed(TEXTS)
        await other.close()
        await process.close()

    asyncio.run(work())


def test_without_processes_nothing_is_deployed() -> None:
    assert model_deployments(settings(), OPENER) == []
    assert model_deployments(settings(embedder__backend="openai", embedder__processes=1,
                                      embedder__base_url="http://127.0.0.1:9/v1",
                                      embedder__model="any"), OPENER) == []  # fmt: skip
