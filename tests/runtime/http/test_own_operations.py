"""What the gateway answers itself, and to whom."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from runtime.http import build_asgi
from runtime.settings import Settings
from runtime.telemetry import Telemetry
from tests.support.note_service import REGISTRY, SECRETS, NotingShards


def get(app: Any, headers: dict[str, bytes]) -> httpx.Response:
    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.get("/metrics", headers=headers)

    return asyncio.run(request())


def test_metrics_are_for_who_has_their_token_and_public_on_a_machine_of_one_s_own():
    def status(settings: Settings, token: str | None) -> int:
        app = build_asgi(REGISTRY, settings, NotingShards(), SECRETS, Telemetry())
        headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
        return get(app, headers).status_code

    with_token = {"http": {"metrics_token": "for prometheus 17"}}
    for named, who, expected in (
        ({}, None, 200),
        (with_token, None, 401),
        (with_token, "for prometheus 18", 401),
        (with_token, "für prometheus 17", 401),
        (with_token, "for prometheus 17", 200),
        (with_token, SECRETS.operator_token, 200),
        ({"environment": "production"}, None, 401),
        ({"environment": "production"}, "", 401),
        ({"environment": "production"}, SECRETS.operator_token, 200),
        ({"environment": "production", **with_token}, "for prometheus 17", 200),
    ):
        assert status(Settings.load(named), who) == expected, (named, who)


def test_metrics_ask_the_shards_once_a_second_whoever_asks():
    class CountingShards(NotingShards):
        asked = 0

        async def status(self) -> list[dict[str, Any]]:
            self.asked += 1
            await asyncio.sleep(0)
            return await super().status()

    shards = CountingShards()
    app = build_asgi(REGISTRY, Settings(), shards, SECRETS, Telemetry())

    async def crowd() -> set[int]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            answers = await asyncio.gather(*(client.get("/metrics") for _ in range(20)))
            return {answer.status_code for answer in answers}

    assert asyncio.run(crowd()) == {200}
    assert shards.asked == 1
