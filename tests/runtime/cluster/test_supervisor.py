"""A supervisor that cannot read the placement for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runtime.cluster import supervisor as cluster_supervisor
from runtime.cluster.supervisor import Supervisor
from runtime.placement import Placement, PlacementTable
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
