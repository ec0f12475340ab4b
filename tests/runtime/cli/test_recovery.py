"""The disaster recovery drill, as OPERATIONS.md has it: a killed service, an empty machine, and the
operator's commands.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.support.clocks import next_millisecond
from tests.support.commands import admin
from tests.support.served import Served, refusal, served

pytestmark = pytest.mark.slow


def created(service: Served, token: str, text: str) -> None:
    answer = httpx.post(
        f"{service.url}/v1/memories",
        json={"content": text},
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code in (201, 202), answer.text


def contents(service: Served, token: str) -> set[str]:
    answer = httpx.get(
        f"{service.url}/v1/memories",
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    )
    return {item["content"] for item in answer.json()["items"]}


def test_the_drill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_OBJECT_STORE__URL", f"file://{tmp_path}/objects")
    options = {
        "durability__mode": "replicated",
        "durability__wait_seconds_max": 30,
        "cluster__lease_seconds": 8,  # which the restore waits for
    }
    with served(tmp_path / "data", **options) as service:
        token = service.register()
        for number in range(3):
            created(service, token, f"Fact {number} about tea.")
        moment = datetime.fromtimestamp(next_millisecond() / 1000, UTC)
        next_millisecond()
        created(service, token, "A fact of later.")
        service.kill()
    for name in ("then", "now"):
        shutil.copytree(tmp_path / "data" / "secrets", tmp_path / name / "secrets")
    status, told, said = admin("restore", tmp_path / "then", "--at", moment.isoformat())
    assert status == 0 and "for looking at" in told, said
    assert admin("verify", tmp_path / "then")[0] == 0
    assert "Restore the shard" in refusal(tmp_path / "then")
    status, told, said = admin("restore", tmp_path / "now", "--take-over")
    assert status == 0, said
    assert admin("verify", tmp_path / "now")[0] == 0
    with served(tmp_path / "now") as service:
        assert contents(service, token) == {
            "A fact of later.",
            *(f"Fact {number} about tea." for number in range(3)),
        }
        assert service.stop() == 0
    assert "Restore the shard" in refusal(tmp_path / "data")  # the lost machine comes back
    assert admin("restore", tmp_path / "now")[0] == 1  # never over data
    status, _, said = admin("restore", tmp_path / "early", "--at", "2020-01-01T00:00:00Z")
    assert status == 1 and "secret" in said
