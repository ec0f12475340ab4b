"""A flow's credits: held where it begins, charged with its end, free when it fails, whatever it
composes.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.api.operation import Body, Call, Flow, Idempotency, Reply, View
from runtime.api.steps import Steps
from runtime.errors import ApiError, UpstreamFailed
from runtime.http import flow
from tests.support import metered as metered_module
from tests.support.metered import MeteredHarness, metered


class Ask(Body):
    fails: bool = False
    credits: int = 10


class Answered(View):
    found: int


async def ask(call: Call, steps: Steps, models: Any) -> dict[str, int]:
    found = await steps.run("search.search", {"query": "key"})
    await steps.run("memories.create_raw", {"content": "Asked about the key."})
    if call.body.fails:
        raise UpstreamFailed("The model is away.")
    return {"found": found["total"]}


OPERATION = Flow(
    "work.ask", "POST", "/v1/work/ask", ask, summary="", response=Answered,
    body=Ask, scope="write", idempotency=Idempotency.CACHED, credits=lambda body: body.credits,
)  # fmt: skip


@pytest.fixture
def ada(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MeteredHarness]:
    plugin = dataclasses.replace(
        metered_module.PLUGIN, operations=(*metered_module.PLUGIN.operations, OPERATION)
    )
    monkeypatch.setattr(metered_module, "PLUGIN", plugin)
    with metered(tmp_path, limits__credits_per_month=100) as account:
        yield account


def run(
    ada: MeteredHarness, times: int = 1, key: str | None = None, **body: Any
) -> list[Reply | ApiError]:
    """So many flows at once."""

    async def one() -> Reply | ApiError:
        call = ada.harness.form("work.ask", body, who=ada.token, key=key)
        try:
            return await flow.Flow(
                call, OPERATION, ada.harness.registry, ada.harness.shard, None
            ).run()
        except ApiError as failed:
            return failed

    async def all_of_them() -> list[Reply | ApiError]:
        return await asyncio.gather(*(one() for _ in range(times)))

    return ada.harness.run(all_of_them())


def test_a_flow_costs_its_own_weight_and_nothing_for_its_parts(ada: MeteredHarness) -> None:
    (reply,) = run(ada)
    assert (reply.status, reply.error) == (200, None)
    usage = ada("usage.get").body
    assert usage["credits"]["used"] == 10
    assert usage["by_operation"] == [{"operation": "work.ask", "count": 1, "credits": 10}]
    ada.audited()


def test_a_flow_that_fails_costs_nothing_and_gives_its_credits_back(ada: MeteredHarness) -> None:
    (failed,) = run(ada, fails=True, credits=100)
    assert failed.status == 502
    assert ada.used() == 0
    assert run(ada, credits=100)[0].status == 200


def test_flows_at_once_get_exactly_what_is_left(ada: MeteredHarness) -> None:
    replies = run(ada, times=30)
    assert (
        sorted(
            reply.status
            if isinstance(reply, ApiError) or reply.error is None
            else reply.error.status
            for reply in replies
        )
        == [200] * 10 + [429] * 20
    )
    assert ada.used() == 100
    ada.audited()


def test_a_replayed_flow_costs_nothing(ada: MeteredHarness) -> None:
    for _ in range(3):
        assert run(ada, key="once")[0].status == 200
    assert ada("usage.get").body["by_operation"][0] == {
        "operation": "work.ask",
        "count": 3,
        "credits": 10,
    }
