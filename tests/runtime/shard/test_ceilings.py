"""The per-minute ceilings over HTTP: exact, however many gateways there are, because the tenant's
one shard keeps the log.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runtime.http import build_asgi
from runtime.machine import usable_cores
from runtime.telemetry import Telemetry
from tests.support.in_process import InProcess, in_process
from tests.support.served import served

AT_ONCE = 200


class Clock:
    now = 5_000.0

    def __call__(self) -> float:
        return self.now


class TwoGateways:
    """Two gateways over the same shard, and the shard's clock in the test's hand. The account is on
    the tier free.
    """

    def __init__(self, service: InProcess):
        self.service, self.clock = service, Clock()
        service.shard.parts.admission.clock = self.clock
        self.token = service.register("ada@example.com")
        operator = service.secrets.operator_token
        service.request(
            "POST",
            "/v1/internal/billing/set-tier",
            {"email": "ada@example.com", "tier": "free"},
            who=operator,
        )
        self._applications = [
            build_asgi(
                service.registry,
                service.settings,
                service.shards,
                service.secrets,
                Telemetry(gateway=name),
            )
            for name in "ab"
        ]

    def at_once(
        self, method: str, path: str, body: Any = None, times: int = AT_ONCE
    ) -> list[httpx.Response]:
        """The answers to as many requests, sent together, every other one to the other gateway."""
        return self.service.run(self._at_once(method, path, body, times))

    async def _at_once(self, method: str, path: str, body: Any, times: int) -> list[httpx.Response]:
        headers = {"Authorization": f"Bearer {self.token}"}
        clients = [
            httpx.AsyncClient(
                transport=httpx.ASGITransport(application),
                base_url="http://mneme.test",
                headers=headers,
            )
            for application in self._applications
        ]
        return await asyncio.gather(
            *(clients[number % 2].request(method, path, json=body) for number in range(times))
        )


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[TwoGateways]:
    with in_process(
        tmp_path, limits__requests_per_minute=None, limits__endpoint_caps=True
    ) as service:
        yield TwoGateways(service)


def statuses(answers: list[httpx.Response]) -> dict[int, int]:
    found = [answer.status_code for answer in answers]
    return {status: found.count(status) for status in sorted(set(found))}


def test_of_two_hundred_at_once_sixty_are_served_in_any_minute(gateways: TwoGateways) -> None:
    answers = gateways.at_once("GET", "/v1/memories")
    assert statuses(answers) == {200: 60, 429: 140}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert (refused.headers["X-RateLimit-Limit"], refused.headers["Retry-After"]) == ("60", "60")
    error = refused.json()["error"]
    assert (error["code"], error["type"], error["status"]) == (
        "rate_limit_exceeded",
        "rate_limit_error",
        429,
    )
    assert not [
        name
        for name in refused.headers
        if name.lower() in ("x-ratelimit-remaining", "x-ratelimit-reset")
    ]
    gateways.clock.now += 59.9
    assert statuses(gateways.at_once("GET", "/v1/memories")) == {429: 200}
    gateways.clock.now += 0.1
    assert statuses(gateways.at_once("GET", "/v1/memories")) == {200: 60, 429: 140}


def test_a_key_that_is_abused_does_not_keep_its_owner_from_taking_it_back(
    gateways: TwoGateways,
) -> None:
    ask, session = gateways.service.request, gateways.token
    minted = gateways.service.mint(session, "read")
    gateways.token = minted["key"]  # who has got hold of it
    for path in ("/v1/memories", "/v1/auth/me"):
        assert 429 in statuses(gateways.at_once("GET", path))
    assert ask("GET", "/v1/memories", who=session).status_code == 429
    assert ask("GET", "/v1/auth/me", who=session).status_code == 200
    assert ask("GET", "/v1/auth/sessions", who=session).status_code == 200
    deleted = ask("DELETE", f"/v1/auth/api-keys/{minted['id']}", who=session)
    assert deleted.status_code == 204
    assert statuses(gateways.at_once("GET", "/v1/memories")) == {401: AT_ONCE}
    gateways.token = session  # what it may ask apart has the same ceiling
    assert statuses(gateways.at_once("GET", "/v1/auth/me")) == {200: 56, 429: 144}


def test_the_window_slides(gateways: TwoGateways) -> None:
    for _ in range(3):
        assert statuses(gateways.at_once("GET", "/v1/memories", times=20)) == {200: 20}
        gateways.clock.now += 15
    assert statuses(gateways.at_once("GET", "/v1/memories", times=50)) == {429: 50}
    gateways.clock.now += 15
    assert statuses(gateways.at_once("GET", "/v1/memories", times=50)) == {200: 20, 429: 30}


def test_the_thirty_first_search_of_a_minute_is_refused(gateways: TwoGateways) -> None:
    answers = gateways.at_once("POST", "/v1/search", {"query": "key"}, times=31)
    assert statuses(answers) == {200: 30, 429: 1}
    (refused,) = [answer for answer in answers if answer.status_code == 429]
    assert refused.headers["X-RateLimit-Limit"] == "30"
    assert statuses(gateways.at_once("GET", "/v1/memories", times=60)) == {200: 30, 429: 30}, (
        "a refused search took nothing of the sixty"
    )
    usage = gateways.service.request("GET", "/v1/usage", who=gateways.token)
    assert usage.status_code == 429


def test_a_batch_has_the_cap_of_batches_and_validation_counts_too(gateways: TwoGateways) -> None:
    assert statuses(
        gateways.at_once("POST", "/v1/memories/batch", {"memories": [{"content": "x"}]}, times=31)
    ) == {201: 30, 429: 1}
    assert statuses(gateways.at_once("POST", "/v1/memories", {"content": 7}, times=40)) == {
        422: 30,
        429: 10,
    }


def test_credits_run_out_over_two_gateways_at_exactly_a_thousand(gateways: TwoGateways) -> None:
    for _ in range(9):
        assert statuses(
            gateways.at_once(
                "POST", "/v1/memories/batch", {"memories": [{"content": "x"}] * 100}, times=1
            )
        ) == {201: 1}
    made = 0
    while made < 100:
        gateways.clock.now += 60
        answers = gateways.at_once("POST", "/v1/memories/raw", {"content": "y"}, times=60)
        made += statuses(answers).get(201, 0)
    assert made == 100
    refused = next(answer for answer in answers if answer.status_code != 201)
    assert (
        refused.status_code,
        refused.json()["error"]["code"],
        refused.headers["X-RateLimit-Limit"],
    ) == (429, "quota_exceeded", "1000")
    assert 1 <= int(refused.headers["Retry-After"]) <= 31 * 24 * 3600
    # Forty of the last sixty were served; the others took nothing of the minute.
    assert statuses(gateways.at_once("GET", "/v1/memories", times=30)) == {200: 20, 429: 10}
    gateways.clock.now += 60
    credits = gateways.service.request("GET", "/v1/usage", who=gateways.token).json()["credits"]
    assert credits == {"used": 1_000, "limit": 1_000, "remaining": 0, "percentage": 100.0}


@pytest.mark.ray
@pytest.mark.long
def test_two_gateways_of_a_cluster_share_one_ceiling(tmp_path: Path) -> None:
    limits = {
        "billing__default_tier": "free",
        "limits__requests_per_minute": None,
        "limits__endpoint_caps": True,
    }
    with served(tmp_path / "data", "ray", ray__gateway_replicas=2, **limits) as service:
        token = service.register(f"{secrets.token_hex(4)}@example.com")

        async def at_once() -> list[httpx.Response]:
            connections = httpx.Limits(max_connections=min(AT_ONCE, 32 * usable_cores()))
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(
                base_url=service.url, headers=headers, timeout=60, limits=connections
            ) as client:
                return await asyncio.gather(*(client.get("/v1/memories") for _ in range(AT_ONCE)))

        assert statuses(asyncio.run(at_once())) == {200: 60, 429: 140}
