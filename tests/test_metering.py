"""Usage is exact through kill −9: what was acknowledged was charged once, and events, counters,
invoice and ledger agree.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from runtime.api.metering import period_end, period_of
from tests.support.commands import admin
from tests.support.log_world import until
from tests.support.served import Served, served

CONNECTIONS = 32
EMAIL = "ada@example.com"
ANSWERS = (60, 200)  # before the kill, at random between these
INTO_NEXT_MONTH_SECONDS = 24 * 3600


class Till:
    """Sends charged requests and books what was acknowledged, by operation, and what was under way
    when the service died.
    """

    def __init__(self, token: str, seed: int):
        self.token = token
        self.charged: Counter[str] = Counter()
        self.unsure: Counter[str] = Counter()
        self._chance = random.Random(seed)

    async def spend(self, service: Served, answers: int) -> None:
        """Keep CONNECTIONS requests under way; kill the service in the midst of it."""
        booked = 0
        async with httpx.AsyncClient(
            base_url=service.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=60
        ) as client:

            async def spender() -> None:
                nonlocal booked
                while service.process.poll() is None:
                    operation, path, body, credits = self._request()
                    try:
                        answer = await client.post(path, json=body)
                    except httpx.TransportError:
                        self.unsure[operation] += credits
                        return
                    if answer.status_code == 503:
                        self.unsure[operation] += credits
                        continue
                    assert answer.status_code in (200, 201, 202, 404), answer.text
                    self.charged[operation] += credits
                    booked += 1
                    if booked == answers:
                        service.kill()

            await asyncio.gather(*(spender() for _ in range(CONNECTIONS)))

    def _request(self) -> tuple[str, str, Any, int]:
        dice = self._chance.random()
        if dice < 0.15:
            return "search.search", "/v1/search", {"query": "parcel"}, 1
        if dice < 0.3:
            count = self._chance.randint(1, 5)
            return (
                "memories.create_batch",
                "/v1/memories/batch",
                {"memories": [{"content": "A parcel."}] * count},
                count,
            )
        if dice < 0.4:
            return (
                "memories.create_raw",
                "/v1/memories/raw",
                {"content": "x", "collection_id": "col_nowhere"},
                0,
            )
        return (
            "memories.create_raw",
            "/v1/memories/raw",
            {"content": "A parcel went to the depot."},
            1,
        )

    def check(self, usage: dict[str, Any]) -> None:
        """Compare what the service says was spent with the books."""
        spent = {share["operation"]: share["credits"] for share in usage["by_operation"]}
        for operation in ("memories.create_raw", "memories.create_batch"):
            assert (
                self.charged[operation]
                <= spent.get(operation, 0)
                <= self.charged[operation] + self.unsure[operation]
            ), operation
        # A search has no transaction: its charge follows within a second, so a kill may lose that
        # second's, and adds none.
        assert (
            spent.get("search.search", 0)
            <= self.charged["search.search"] + self.unsure["search.search"]
        )


def seconds_to_next_month() -> int:
    """From now into the next month: a day of it will be over."""
    now = int(time.time() * 1000)
    return (period_end(period_of(now)) - now) // 1000 + INTO_NEXT_MONTH_SECONDS


def internal(service: Served, path: str) -> dict[str, Any]:
    token = (service.data_dir / "secrets/operator_token").read_text().strip()
    answer = service.http.post(
        f"/v1/internal/{path}", json={"email": EMAIL}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.long)])
def test_events_counters_and_invoice_agree_after_kills_under_load(
    tmp_path: Path, seed: int, kills: int
) -> None:
    data_dir = tmp_path / "data"
    till = None
    for number in range(kills):
        with served(data_dir, auth__token_seconds=366 * 24 * 3600) as service:
            if till is None:
                till = Till(service.register(EMAIL), seed)
            asyncio.run(till.spend(service, random.Random(seed + number).randint(*ANSWERS)))
    with served(data_dir) as service:
        usage = service.http.get(
            "/v1/usage", headers={"Authorization": f"Bearer {till.token}"}
        ).json()
        till.check(usage)
        (period,) = internal(service, "usage/audit")["periods"]
        assert period["consistent"] and period["counter"] == usage["credits"]["used"] > 0
        assert service.stop() == 0
    with served(data_dir, clock__offset_seconds=seconds_to_next_month()) as service:
        # The month's end is long past: its job has been waiting for this start.
        headers = {"Authorization": f"Bearer {till.token}"}
        while not (
            found := service.http.get("/v1/billing/invoices", headers=headers).json()["items"]
        ):
            assert service.process.poll() is None
        (invoice,) = found
        assert invoice["lines"][0]["quantity"] == period["counter"] == period["events"]
        assert internal(service, "billing/close")["invoices"] == [], "what is closed stays closed"
        status, told, said = admin("audit-usage", data_dir, service=service)
        assert status == 0 and f"events={period['events']} counter={period['counter']}" in told, (
            told + said
        )


def billed_and_erased(service: Served, data_dir: Path) -> tuple[str, int]:
    """Number and cents of the invoice of an account that was erased."""
    bob = "bob@example.com"
    headers = {"Authorization": f"Bearer {service.register(bob)}"}
    admin("set-tier", data_dir, "--email", bob, "--tier", "free", service=service)
    upgraded = service.http.post("/v1/billing/upgrade", json={"tier": "pro"}, headers=headers)
    invoice = upgraded.json()["invoice"]
    erased = service.http.delete("/v1/account?confirm=erase-account", headers=headers).json()
    asked = {"receipt": erased["receipt"]}
    until(
        lambda: (
            service.http.post("/v1/account/receipts", json=asked).json()["status"] == "completed"
        )
    )
    return invoice["number"], invoice["total_cents"]


@pytest.mark.slow
def test_the_operators_commands_work_on_a_service_and_on_its_files(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with served(data_dir) as service:
        headers = {"Authorization": f"Bearer {service.register(EMAIL)}"}
        status, told, said = admin(
            "set-tier", data_dir, "--email", EMAIL, "--tier", "free", service=service
        )
        assert (status, told) == (0, f"{EMAIL} has the tier free.\n"), said
        number = service.http.post(
            "/v1/billing/upgrade", json={"tier": "pro"}, headers=headers
        ).json()["invoice"]["number"]
        status, _, said = admin(
            "set-tier", data_dir, "--email", "nobody@example.com", "--tier", "pro", service=service
        )
        assert status == 1 and said.count("\n") == 1 and "no account" in said
        status, told, said = admin("load", data_dir, service=service)
        heading, *rows = told.splitlines()
        assert (status, heading.split()[:2]) == (0, ["CORES", "REQ/S"]), said
        assert [row.split()[-1] for row in rows] == [EMAIL]
        kept = billed_and_erased(service, data_dir)
        assert service.stop() == 0
    status, told, said = admin("financial-records", data_dir)
    (document,) = [
        record for record in map(json.loads, told.splitlines()) if record["record"] == "document"
    ]
    assert (status, document["number"], document["total_cents"]) == (0, *kept), said
    assert "bob" not in told.lower()
    status, told, said = admin(
        "mark-paid", data_dir, "--email", EMAIL, "--invoice", number, "--reference", "transfer 7"
    )
    assert status == 0 and told.startswith(number) and told.endswith("paid\n"), said
    later = ("--set", f"clock.offset_seconds={seconds_to_next_month()}")
    # Whether the command closes the month or the job that waited for its end does, it is closed
    # once.
    assert admin("close-period", data_dir, *later)[0] == 0
    status, told, said = admin("audit-usage", data_dir, *later)
    assert status == 0 and "due_cents=9900" in told, told + said
    assert admin("audit-usage", tmp_path / "nothing")[0] == 1
