"""Slots move between shard processes on Ray, and each of the processes that take part is killed on
the way.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from runtime.placement import PlacementTable
from runtime.tenancy import slot_of_email
from tests.support.commands import admin
from tests.support.served import served
from tests.support.sharded import emails

MEMORIES = 20
MOVED_SECONDS_MAX = 120


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(("source",), id="source"),
        pytest.param(("source", "target", "supervisor") * 5, id="all", marks=pytest.mark.long),
    ],
)
def test_slots_arrive_whoever_is_killed(tmp_path: Path, victims: tuple[str, ...]) -> None:
    addresses = emails(0, 2, 3)
    slots = [slot_of_email(email) for email in addresses]
    with served(tmp_path / "data", "ray", shards__count=2) as service:
        tokens = [service.register(email) for email in addresses]
        for token in tokens:
            items = [{"content": f"the harbour has {number} ferries"} for number in range(MEMORIES)]
            service.http.post(
                "/v1/memories/batch",
                json={"memories": items},
                headers={"Authorization": f"Bearer {token}"},
            )
        table = PlacementTable(service.data_dir)
        secret = (service.data_dir / "secrets/operator_token").read_text().strip()
        operator = {"Authorization": f"Bearer {secret}"}

        assert admin("move-slot", service.data_dir, *slots, "--to", 1, service=service)[0] == 0
        assert {table.load().owners[slot] for slot in slots} == {1}

        for target, victim in zip(itertools.cycle((0, 1)), victims, strict=False):
            service.http.post(
                "/v1/internal/cluster/moves",
                json={"slots": slots, "shard": target},
                headers=operator,
            ).raise_for_status()
            number = {"source": 1 - target, "target": target}.get(victim)
            (
                service.supervisor_process() if number is None else service.shard_process(number)
            ).kill()
            deadline = time.monotonic() + MOVED_SECONDS_MAX
            while table.load().moves:
                assert time.monotonic() < deadline, table.load().moves
                service.http.get(
                    "/v1/internal/cluster", headers=operator
                )  # whoever looks wakes the supervisor
                time.sleep(0.1)
            for token in tokens:
                answer = service.http.get(
                    "/v1/memories?limit=100", headers={"Authorization": f"Bearer {token}"}
                )
                while answer.status_code == 503 and time.monotonic() < deadline:
                    time.sleep(0.1)
                    answer = service.http.get(
                        "/v1/memories?limit=100", headers={"Authorization": f"Bearer {token}"}
                    )
                assert answer.json()["total_count"] == MEMORIES
        assert {table.load().owners[slot] for slot in slots} == {target}
    assert admin("verify", tmp_path / "data")[0] == 0
