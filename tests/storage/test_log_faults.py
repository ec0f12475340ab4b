"""Seeded histories of kills, take-overs and a failing object store; see tests/storage/log_schedule.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.log_accounts import Accounts
from tests.storage.log_schedule import Schedule


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Accounts:
    return Accounts(tmp_path_factory.mktemp("accounts") / "store")


@pytest.mark.parametrize("seed", range(20))
def test_no_acknowledged_write_is_lost(tmp_path: Path, seed: int, accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.log_shipping.BACKOFF_SECONDS_MAX", 0.1)
    monkeypatch.setattr("storage.log_shipping.HEARTBEAT_SECONDS", 0.3)
    monkeypatch.setattr("storage.log_snapshots.RETRY_SECONDS_MAX", 0.2)
    schedule = Schedule(tmp_path, seed, accounts)
    schedule.run()
    assert schedule.told["writes"] > 0
