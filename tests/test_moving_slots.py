"""Slots move between shard processes on Ray, and each of the processes that take part is killed on the way."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from runtime.placement import slot_of_email
from runtime.placement_table import PlacementTable
from runtime.run_directory import RunDirectory
from tests.commands import admin
from tests.served import Served, served
from tests.sharded import emails

MEMORIES = 20
MOVED_SECONDS_MAX = 120


def supervisor_process(service: Served) -> psutil.Process:
    """The process of the supervisor, which an order has started."""
    processes = RunDirectory.of(service.data_dir).processes()
    (found,) = [process for process in processes if "SupervisorActor" in process.name() + " ".join(process.cmdline())]
    return found


@pytest.mark.ray
@pytest.mark.slow
def test_slots_arrive_whoever_is_killed(tmp_path: Path) -> None:
    addresses = emails(0, 2, 3)
    slots = [slot_of_email(email) for email in addresses]
    with served(tmp_path / "data", "ray", shards__count=2) as service:
        tokens = [service.register(email) for email in addresses]
        for token in tokens:
            items = [{"content": f"the harbour has {number} ferries"} for number in range(MEMORIES)]
            service.http.post("/v1/memories/batch", json={"memories": items}, headers={"Authorization": f"Bearer {token}"})
        table = PlacementTable(service.data_dir)
        operator = {"Authorization": f"Bearer {(service.data_dir / 'secrets/operator_token').read_text().strip()}"}

        assert admin("move-slot", service.data_dir, *slots, "--to", 1, service=service)[0] == 0
        assert {table.load().owners[slot] for slot in slots} == {1}

        for target, victim in ((0, "source"), (1, "target"), (0, "supervisor")):
            service.http.post("/v1/internal/cluster/moves", json={"slots": slots, "shard": target}, headers=operator).raise_for_status()
            number = {"source": 1 - target, "target": target}.get(victim)
            (supervisor_process(service) if number is None else service.shard_process(number)).kill()
            deadline = time.monotonic() + MOVED_SECONDS_MAX
            while table.load().moves:
                assert time.monotonic() < deadline, table.load().moves
                service.http.get("/v1/internal/cluster", headers=operator)  # whoever looks wakes the supervisor
                time.sleep(0.1)
            for token in tokens:
                answer = service.http.get("/v1/memories?limit=100", headers={"Authorization": f"Bearer {token}"})
                while answer.status_code == 503 and time.monotonic() < deadline:
                    answer = service.http.get("/v1/memories?limit=100", headers={"Authorization": f"Bearer {token}"})
                assert answer.json()["total_count"] == MEMORIES
        assert {table.load().owners[slot] for slot in slots} == {0}
    assert admin("verify", tmp_path / "data")[0] == 0
