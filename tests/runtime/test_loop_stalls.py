"""Steps that hold an event loop are counted under the operation that takes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plugins import accounts
from runtime.api.operation import Flow, Read, Write
from runtime.api.plugin import Job, Plugin
from runtime.limits import LOOP_STALL_SECONDS
from runtime.loop_stalls import Label, LoopStalls
from tests.support.over_http import OverHttp, over_http

HELD = LOOP_STALL_SECONDS + 0.01


def hold() -> None:
    """Take the thread for longer than a step may."""
    began = time.perf_counter()
    while time.perf_counter() - began < HELD:
        pass


def blocking(ctx, body) -> dict:
    hold()
    return {}


async def thinking(call, steps, models) -> dict:
    await asyncio.sleep(0)
    hold()
    return {}


def enqueue(ctx, body) -> dict:
    return {"id": ctx.enqueue("block.job", {})}


async def preparing(steps, loaded, payload, models) -> None:
    hold()


PLUGIN = Plugin(
    name="block",
    operations=(
        Read("block.read", "GET", "/v1/block/read", blocking, "", None),
        Read("block.heavy", "GET", "/v1/block/heavy", blocking, "", None, heavy=True),
        Flow("block.flow", "GET", "/v1/block/flow", thinking, "", None),
        Write("block.enqueue", "POST", "/v1/block/enqueue", enqueue, "", None, scope="write"),
    ),
    jobs=(Job("block.job", lambda ctx, payload: None, prepare=preparing),),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverHttp]:
    with over_http(tmp_path_factory.mktemp("stalls"), (accounts.plugin, PLUGIN)) as service:
        yield service


def counted(service: OverHttp) -> dict[tuple[str, str], float]:
    """(metric, operation) -> how often."""
    families = text_string_to_metric_families(service.http.get("/metrics").text)
    return {
        (sample.name, sample.labels["operation"]): sample.value
        for family in families
        for sample in family.samples
        if sample.name in ("mneme_loop_stalls_total", "mneme_shard_loop_stalls_total")
    }


def test_an_operation_that_blocks_is_named_by_gateway_and_shard(service: OverHttp) -> None:
    """One loop is both here. A flow runs in the gateway; what runs on a thread holds nobody."""
    who = service.register()
    for name in ("read", "flow", "heavy"):
        answer = service.get(f"/v1/block/{name}", who)
        assert answer.status_code == 200, answer.text
    found: dict[tuple[str, str], float] = {}

    def is_counted() -> bool:
        found.update(counted(service))  # asked once a second, however often somebody asks
        return ("mneme_loop_stalls_total", "block.flow") in found

    service.until(is_counted)
    assert found[("mneme_loop_stalls_total", "block.read")] == 1
    assert found[("mneme_shard_loop_stalls_total", "block.read")] == 1
    assert found[("mneme_loop_stalls_total", "block.flow")] == 1
    assert not [name for name in found if name[1] == "block.heavy"]


def test_a_job_that_blocks_is_named(service: OverHttp) -> None:
    who = service.register("eve@example.com")
    assert service.post("/v1/block/enqueue", {}, who).status_code == 200
    name = ("mneme_shard_loop_stalls_total", "job:block.job")
    service.until(lambda: counted(service).get(name) == 1)


def test_a_coroutine_is_awaited_as_it_would_be_itself() -> None:
    """Results, errors, and cancellations that it takes or answers otherwise."""
    stalls = LoopStalls()

    async def answers() -> int:
        await asyncio.sleep(0)
        return await asyncio.wait_for(asyncio.sleep(0, 7), 5)

    async def fails() -> None:
        await asyncio.sleep(0)
        raise LookupError("gone")

    async def held() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "cleaned up"
        return ""

    async def run() -> None:
        assert await stalls.watch(answers(), Label()) == 7
        with pytest.raises(LookupError):
            await stalls.watch(fails(), Label())
        task = asyncio.ensure_future(stalls.watch(held(), Label()))
        await asyncio.sleep(0)
        task.cancel()
        assert await task == "cleaned up"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stalls.watch(asyncio.sleep(3600), Label())

    asyncio.run(run())


def test_each_long_step_counts_and_the_waits_between_do_not() -> None:
    noted: list[tuple[str, float]] = []
    stalls, label = LoopStalls(lambda name, seconds: noted.append((name, seconds))), Label("first")

    async def work() -> None:
        hold()
        label.operation = "second"
        await asyncio.sleep(HELD)
        hold()

    async def run() -> None:
        await stalls.watch(work(), label)

    asyncio.run(run())
    assert [name for name, _ in noted] == ["second", "second"]  # by the name at the step's end
    assert all(seconds >= HELD for _, seconds in noted)
    assert stalls.figures()["stalls_total_by_operation"] == {"other": 0, "second": 2}
