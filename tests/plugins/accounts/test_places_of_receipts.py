"""The receipts of an erasure name every place that may still hold something, as the installation
has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.in_process import InProcess, in_process

ALWAYS = {"free pages", "backups", "credits of the month", "logs"}
CHEAP = {"auth__argon2_time_cost": 1, "auth__argon2_memory_kib": 64}


def retained(service: InProcess, *, webhook: bool) -> dict[str, str]:
    """Erase an account; -> place -> reason."""
    who = service.register("ada@example.org")
    if webhook:
        body = {"url": "http://127.0.0.1:9999/hook", "events": ["memory.created"]}
        answer = service.request("POST", "/v1/webhooks", body, who=who)
        assert answer.status_code == 201, answer.text
    answer = service.request("DELETE", "/v1/account?confirm=erase-account", who=who)
    service.settle()
    asked = {"receipt": answer.json()["receipt"]}
    told = service.request("POST", "/v1/account/receipts", asked).json()
    assert told["status"] == "completed"
    return {
        each["store"]: each["reason"] for each in told["receipts"] if each["outcome"] == "retained"
    }


def test_an_installation_by_itself_keeps_nothing_elsewhere(tmp_path: Path) -> None:
    with in_process(tmp_path, **CHEAP) as service:
        assert set(retained(service, webhook=False)) == ALWAYS


def test_object_store_endpoints_receivers_and_payment_provider_are_named(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "object_store__url": f"file://{tmp_path}/objects",
        "object_store__ship_interval_ms": 5,
        "llm__base_url": "http://127.0.0.1:9/v1",
        "transcriber__base_url": "http://127.0.0.1:9/v1",
        "billing__provider": "stripe",
        "billing__stripe_api_key": "sk_test",
        "billing__stripe_signing_secret": "whsec_test",
        "webhooks__allow_private_networks": True,
    }
    with in_process(tmp_path / "data", **CHEAP, **options) as service:
        told = retained(service, webhook=True)
    assert set(told) == ALWAYS | {
        "object store",
        "model endpoints (llm, transcriber)",
        "payment provider",
        "webhook receivers",
    }
    assert "until two snapshots" in told["object store"] and "Stripe" in told["payment provider"]
