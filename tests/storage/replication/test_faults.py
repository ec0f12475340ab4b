"""Seeded histories of kills, take-overs and a failing object store; see
tests/support/log_schedule.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.replication import shipper, snapshots
from tests.support.log_accounts import Accounts
from tests.support.log_schedule import Schedule

SEEDS, LONG_SEEDS = 5, 60


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Accounts:
    return Accounts(tmp_path_factory.mktemp("accounts") / "store")


@pytest.mark.parametrize(
    "seed",
    [pytest.param(n, marks=() if n < SEEDS else pytest.mark.long) for n in range(LONG_SEEDS)],
)
def test_no_acknowledged_write_is_lost(
    tmp_path: Path, seed: int, accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipper, "BACKOFF_SECONDS_MAX", 0.1)
    monkeypatch.setattr(shipper, "HEARTBEAT_SECONDS", 0.3)
    monkeypatch.setattr(snapshots, "RETRY_SECONDS_MAX", 0.2)
    schedule = Schedule(tmp_path, seed, accounts)
    schedule.run()
    assert schedule.told["writes"] > 0
