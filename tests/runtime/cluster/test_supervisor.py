"""Supervisors that cannot read the placement for a while, or are not told of what is planned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.cluster import supervisor as cluster_supervisor
from runtime.cluster.supervisor import Supervisor
from runtime.placement import COPYING, Move, Placement, PlacementTable
from runtime.tenancy import slot_of_email
from storage.replication import ObjectStoreFailed
from tests.support.sharded import emails, sharded


class AwayTable(PlacementTable):
    """A table whose object store does not answer the next `away` readings."""

    away = 0

    def load(self) -> Placement:
        if self.away:
            self.away -= 1
            raise ObjectStoreFailed("the request was lost")
        return super().load()


def test_moves_go_on_when_the_placement_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_supervisor, "MOVE_RETRY_SECONDS", 0.01)

    async def work() -> None:
        async with sharded(tmp_path) as service:
            (email,) = emails(0, 2, 1)
            token, slot = await service.register(email), slot_of_email(email)
            table = AwayTable(service.settings.data_dir)
            supervisor = Supervisor(
                table, lambda number, step, *given: service.opened[number].order(step, *given)
            )
            await supervisor.move([slot], 1)
            table.away = 3
            supervisor.start()
            await service.moved()
            await supervisor.close()
            assert not table.away and service.table.load().owners[slot] == 1
            assert await service.texts(token) == []

    asyncio.run(work())


class LateTable(PlacementTable):
    """A table whose object store does what it is asked, and does not say so."""

    def change(self, change: Callable[[Placement], Placement]) -> Placement:
        super().change(change)
        raise ObjectStoreFailed("the answer was lost")


def test_moves_that_were_planned_without_an_answer_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_supervisor, "MOVES_LOOKED_FOR_SECONDS", 0.01)

    async def work() -> None:
        async with sharded(tmp_path) as service:
            (email,) = emails(0, 2, 1)
            await service.register(email)
            slot, data_dir = slot_of_email(email), service.settings.data_dir

            async def ask(number: int, step: str, *given: Any) -> Any:
                return await service.opened[number].order(step, *given)

            supervisor = Supervisor(PlacementTable(data_dir), ask)
            await supervisor.order("report")
            with pytest.raises(ObjectStoreFailed):
                await Supervisor(LateTable(data_dir), ask).order("move", slots=[slot], shard=1)
            await service.moved()
            await supervisor.close()
            assert service.table.load().owners[slot] == 1

    asyncio.run(work())


def test_slots_that_another_copies_are_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_supervisor, "MOVES_LOOKED_FOR_SECONDS", 0.0)
    looked = asyncio.Semaphore(0)

    class SeenTable(PlacementTable):
        def load(self) -> Placement:
            loop.call_soon_threadsafe(looked.release)
            return super().load()

    async def work() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        async with sharded(tmp_path) as service:
            table = SeenTable(service.settings.data_dir)
            supervisor = Supervisor(table, lambda *given: pytest.fail(f"asked for {given}"))
            await supervisor.order("report")
            slot = service.table.load().slots_of(0)[0]
            copied = Move("mv_1", (slot,), 0, 1, COPYING, token="another's")
            planned = service.table.change(lambda newest: newest.planned([copied]))
            for _ in range(20):
                await looked.acquire()
            await supervisor.close()
            assert service.table.load() == planned

    loop: asyncio.AbstractEventLoop
    asyncio.run(work())
