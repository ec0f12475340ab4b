"""Too much at once: what is beyond a bound is refused at once and says when to come back; what was
accepted is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime import turns
from runtime.http import arriving, gateway
from runtime.shard import reads as pipelines
from runtime.shard import writer
from tests.support.flood import Client, Tally, mixed, raise_file_limit
from tests.support.in_process import InProcess, in_process
from tests.support.served import Served, served

FLOOD_SECONDS, FLOOD_RATE = 2, 1_500
GROWTH_BYTES_MAX = 300 << 20


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcess]:
    with in_process(tmp_path) as service:
        yield service


def at_once(service: InProcess, token: str, requests: list[tuple[str, str, Any]]) -> list[Any]:
    headers = {"Authorization": f"Bearer {token}"}

    async def ask() -> list[Any]:
        asked = (
            service.client.request(method, path, json=body, headers=headers)
            for method, path, body in requests
        )
        return list(await asyncio.gather(*asked))

    return service.run(ask())


def refused(answer: Any) -> bool:
    return (
        answer.status_code == 503
        and int(answer.headers["Retry-After"]) >= 1
        and "Retry" in answer.json()["error"]["message"]
    )


@pytest.mark.parametrize("bound", ["GATEWAY_REQUESTS_MAX", "GATEWAY_CALLS_MAX"])
def test_a_gateway_answers_so_many_at_once_and_refuses_the_rest(
    service: InProcess, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(turns, "CROWDED_SECONDS", 0.0)  # nobody waits for a turn
    me = service.register("ada@example.com")
    monkeypatch.setattr(gateway, bound, 5)
    answers = at_once(
        service, me, [("POST", "/v1/memories", {"content": f"number {n}"}) for n in range(20)]
    )
    assert sum(answer.status_code == 201 for answer in answers) == 5
    assert all(refused(answer) for answer in answers if answer.status_code != 201)
    assert service.request("GET", "/v1/memories", who=me).json()["total_count"] == 5
    more = at_once(service, me, [("GET", "/v1/health", None)] * 20)
    assert {answer.status_code for answer in more} == {200}, (
        "whoever watches the service is not refused"
    )


def test_a_full_queue_of_searches_refuses_further_ones(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = service.register("ada@example.com")
    monkeypatch.setattr(pipelines, "SLOW_CALLS_MAX", 3)
    answers = at_once(service, me, [("POST", "/v1/search", {"query": "harbour"})] * 12)
    assert sum(answer.status_code == 200 for answer in answers) >= 3 and any(
        refused(answer) for answer in answers
    )
    assert all(answer.status_code == 200 or refused(answer) for answer in answers)


def test_a_full_write_queue_refuses_further_writes(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = service.register("ada@example.com")
    monkeypatch.setattr(writer, "WRITE_QUEUE_MAX", 3)
    answers = at_once(
        service, me, [("POST", "/v1/collections", {"name": f"number {n}"}) for n in range(12)]
    )
    stored = sum(answer.status_code == 201 for answer in answers)
    assert stored >= 3 and all(answer.status_code == 201 or refused(answer) for answer in answers)
    assert service.request("GET", "/v1/collections", who=me).json()["total_count"] == stored + 1


def test_bodies_that_arrive_together_are_bounded(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = service.register("ada@example.com")
    monkeypatch.setattr(arriving, "BODIES_ARRIVING_BYTES_MAX", 100_000)

    async def drip(size: int, gate: asyncio.Event) -> Any:
        async def body() -> Any:
            yield b'{"content": "'
            yield b"a" * size
            await gate.wait()
            yield b'"}'

        headers = {
            "Authorization": f"Bearer {me}",
            "Content-Type": "application/json",
            "Prefer": "respond-async",
        }
        return await service.client.post("/v1/memories/raw", content=body(), headers=headers)

    async def story() -> list[int]:
        gate = asyncio.Event()
        under_way = [asyncio.create_task(drip(40_000, gate)) for _ in range(2)]
        await asyncio.sleep(0)
        late = await _until_answered(lambda: drip(40_000, gate))
        assert refused(late)
        gate.set()
        return [answer.status_code for answer in await asyncio.gather(*under_way)]

    async def _until_answered(ask: Callable[[], Any]) -> Any:
        async with asyncio.timeout(10):
            return await ask()

    assert service.run(story()) == [202, 202]
    assert service.request(
        "POST", "/v1/memories/raw", {"content": "b" * 90_000}, who=me
    ).status_code in (201, 202), "the bytes are given back"


@pytest.mark.ray
def test_a_flood_through_the_front_door_is_answered_whole(service_on_ray: Served) -> None:
    """More connections than the gateways take at a time: each request is answered, or refused with
    a time to come back.
    """
    raise_file_limit()
    token = service_on_ray.register("flood@example.com")
    headers = {"Authorization": f"Bearer {token}"}
    made = service_on_ray.http.post(
        "/v1/memories/batch", json={"memories": [{"content": "a violin"}]}, headers=headers
    )
    client = Client(service_on_ray.url, token, mixed(made.json()["memory_ids"]))
    alive = {
        process.pid
        for process in (service_on_ray.shard_process(), *service_on_ray.gateway_processes())
    }
    tally: Tally = asyncio.run(client.burst())
    assert tally.statuses[503] and tally.statuses[200] and not tally.unexpected, tally
    assert not (tally.silent_refusals or tally.anonymous or tally.broken), tally
    after = asyncio.run(client.capacity(1))
    assert set(after.statuses) <= {200, 201, 202}, after
    assert alive == {
        process.pid
        for process in (service_on_ray.shard_process(), *service_on_ray.gateway_processes())
    }


@pytest.mark.slow
def test_a_flood_is_survived(tmp_path: Path) -> None:
    """What a service of two cores cannot answer arrives for some seconds; the script
    loadtests/overload.py goes on for longer.
    """
    import psutil

    raise_file_limit()
    with served(tmp_path / "data") as service:
        token = service.register()
        headers = {"Authorization": f"Bearer {token}"}
        made = service.http.post(
            "/v1/memories/batch",
            json={"memories": [{"content": f"the violin {n}"} for n in range(50)]},
            headers=headers,
        )
        client = Client(service.url, token, mixed(made.json()["memory_ids"]))
        asyncio.run(client.capacity(1))
        process = psutil.Process(service.process.pid)
        before = process.memory_info().rss
        tally: Tally = asyncio.run(client.flood(FLOOD_RATE, FLOOD_SECONDS))
        assert (
            tally.latencies
            and not tally.unexpected
            and not tally.silent_refusals
            and not tally.broken
        ), tally.statuses
        assert process.memory_info().rss - before < GROWTH_BYTES_MAX
        after = asyncio.run(client.capacity(1))
        assert set(after.statuses) <= {200, 201, 202}
        assert "Traceback" not in service.errors
