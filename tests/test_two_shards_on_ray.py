"""Two shards on Ray, which share one embedding model in a process of its own: slots move between
them, and each of the processes that take part is killed on the way; then the model is. One service
for all of it, since a start of Ray costs as much as the rest.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from runtime.cluster.shared_model import sockets_of
from runtime.placement import PlacementTable
from runtime.tenancy import slot_of_email
from tests.support.commands import admin
from tests.support.served import Served, served
from tests.support.sharded import emails
from tests.support.worlds import settings

MEMORIES = 20
MOVED_SECONDS_MAX = 120


@pytest.fixture(scope="module")
def two_shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("two-shards") / "data"
    with served(data, engine="ray", shards__count=2, embedder__processes=1) as service:
        yield service
    assert admin("verify", data)[0] == 0


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(("source", "supervisor"), id="two"),
        pytest.param(("source", "target", "supervisor") * 5, id="all", marks=pytest.mark.long),
    ],
)
def test_slots_arrive_whoever_is_killed(two_shards: Served, victims: tuple[str, ...]) -> None:
    addresses = emails(0, 2, 3)
    slots = [slot_of_email(email) for email in addresses]
    tokens = [two_shards.register(email) for email in addresses]
    for token in tokens:
        items = [{"content": f"the harbour has {number} ferries"} for number in range(MEMORIES)]
        two_shards.http.post(
            "/v1/memories/batch",
            json={"memories": items},
            headers={"Authorization": f"Bearer {token}"},
        )
    table = PlacementTable(two_shards.data_dir)
    secret = (two_shards.data_dir / "secrets/operator_token").read_text().strip()
    operator = {"Authorization": f"Bearer {secret}"}

    assert admin("move-slot", two_shards.data_dir, *slots, "--to", 1, service=two_shards)[0] == 0
    assert {table.load().owners[slot] for slot in slots} == {1}

    for target, victim in zip(itertools.cycle((0, 1)), victims, strict=False):
        two_shards.http.post(
            "/v1/internal/cluster/moves",
            json={"slots": slots, "shard": target},
            headers=operator,
        ).raise_for_status()
        number = {"source": 1 - target, "target": target}.get(victim)
        (
            two_shards.supervisor_process() if number is None else two_shards.shard_process(number)
        ).kill()
        deadline = time.monotonic() + MOVED_SECONDS_MAX
        while table.load().moves:
            assert time.monotonic() < deadline, table.load().moves
            time.sleep(0.1)  # nobody looks, which would have the supervisor go on
        for token in tokens:
            answer = two_shards.http.get(
                "/v1/memories?limit=100", headers={"Authorization": f"Bearer {token}"}
            )
            while answer.status_code == 503 and time.monotonic() < deadline:
                time.sleep(0.1)
                answer = two_shards.http.get(
                    "/v1/memories?limit=100", headers={"Authorization": f"Bearer {token}"}
                )
            assert answer.json()["total_count"] == MEMORIES
    assert {table.load().owners[slot] for slot in slots} == {target}


def weights_in(process: psutil.Process) -> bool:
    return any("packed" in each.path or ".graph" in each.path for each in process.memory_maps())


def found(service: Served, token: str, query: str = "arachnophobia") -> dict[str, Any]:
    answer = service.http.post(
        "/v1/search",
        json={"query": query},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.ray
@pytest.mark.slow
def test_shards_on_ray_share_one_model_and_outlive_it(two_shards: Served) -> None:
    tokens = [two_shards.register() for _ in range(4)]
    for token in tokens:
        for content in ("I am afraid of spiders.", "The lease ends in May."):
            made = two_shards.http.post(
                "/v1/memories",
                json={"content": content},
                headers={"Authorization": f"Bearer {token}"},
            )
            assert made.status_code == 201, made.text
        first = found(two_shards, token)
        assert not first["degraded"]
        assert first["results"][0]["content"] == "I am afraid of spiders."
    (process,) = two_shards.model_processes()
    assert weights_in(process)
    assert not any(weights_in(two_shards.shard_process(number)) for number in (0, 1))

    for path in sockets_of(settings(data_dir=str(two_shards.data_dir)), "embedder"):
        path.unlink()  # as on another machine: Serve carries what is asked
    for number in range(50):  # the first to go over Serve may find the way not open in time
        over_serve = found(two_shards, tokens[0], f"fear of insects by way {number}")
        if not over_serve["degraded"]:
            break
    assert not over_serve["degraded"]
    assert over_serve["results"][0]["content"] == "I am afraid of spiders."

    os.kill(process.pid, signal.SIGKILL)
    for number, token in enumerate(tokens * 50):  # a question that was asked needs no model
        after = found(two_shards, token, f"fear of insects, number {number}")
        if not after["degraded"]:
            break
    assert not after["degraded"] and two_shards.model_processes() not in ([], [process])
    assert after["results"][0]["content"] == "I am afraid of spiders."

    own = settings(data_dir=str(two_shards.data_dir))
    assert len(sockets_of(own, "embedder")) == 1  # the killed one's has gone
    assert two_shards.stop() == 0
    assert sockets_of(own, "embedder") == []
