"""A restore to a time before an account was erased does not bring it back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from runtime.cli.recovery import restore_installation
from runtime.installation import Layout, shard_directory
from storage.replication import restore
from storage.replication.snapshots import snapshots
from tests.support.clocks import next_millisecond
from tests.support.cut_off import of_shard
from tests.support.in_process import PASSWORD, InProcess, in_process
from tests.support.worlds import settings

CONFIRMED = "/v1/account?confirm=erase-account"


def logs_in(service: InProcess, email: str) -> bool:
    answer = service.request("POST", "/v1/auth/login", {"email": email, "password": PASSWORD})
    assert answer.status_code in (200, 401), answer.text
    return answer.status_code == 200


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory) -> tuple[InProcess, Path, int, str]:
    """A service that is over and its object store; a moment before Ada's account was erased, and
    the text of the receipt. Cy's erasure was asked for before that moment, Dan came after it.
    """
    place = tmp_path_factory.mktemp("erased")
    objects = place / "objects"
    options = {
        "auth__argon2_time_cost": 1,
        "auth__argon2_memory_kib": 64,
        "object_store__url": f"file://{objects}",
        "object_store__ship_interval_ms": 5,
    }
    with in_process(place / "data", **options) as service:
        service.until(lambda: bool(snapshots(of_shard(service, objects))))
        ada, _, cy = (service.register(f"{name}@example.org") for name in ("ada", "bob", "cy"))
        service.request("POST", "/v1/memories", {"content": "Ada's secret."}, who=ada)
        service.request("DELETE", CONFIRMED, who=cy)
        service.settle()
        moment = next_millisecond()
        next_millisecond()
        service.register("dan@example.org")
        receipt = service.request("DELETE", CONFIRMED, who=ada).json()["receipt"]
        service.settle()
        service.until(lambda: service.log()["unshipped_records"] == 0)
    identity = service.shard.store.identity
    layout = Layout(identity.cluster_id, 1, complete=True)
    (objects / identity.cluster_id / "layout.json").write_text(json.dumps(asdict(layout)))
    return service, objects, moment, receipt


def restored(erased, directory: Path, *, take_over: bool) -> int:
    """-> how many accounts were closed again."""
    service, objects, moment, _ = erased
    told = []
    given = settings(
        data_dir=str(directory),
        object_store__url=f"file://{objects}",
        secrets__service=service.secrets.service.hex(),
        secrets__pepper=service.secrets.pepper.hex(),
        secrets__operator_token=service.secrets.operator_token,
    )
    restore_installation(
        given,
        cluster_id=None,
        at=moment,
        take_over=take_over,
        report=lambda *_: None,
        erased_again=told.append,
    )
    return sum(told)


def test_it_stays_erased_and_its_receipt_is_kept(erased, tmp_path: Path) -> None:
    first, _, _, receipt = erased
    assert restored(erased, tmp_path, take_over=False) == 1
    options = {"auth__argon2_time_cost": 1, "auth__argon2_memory_kib": 64}
    with in_process(shard_directory(tmp_path, 0), secrets=first.secrets, **options) as service:
        assert not logs_in(service, "ada@example.org"), "from the first moment on"
        assert logs_in(service, "bob@example.org") and not logs_in(service, "dan@example.org")
        service.settle()
        told = service.request("POST", "/v1/account/receipts", {"receipt": receipt}).json()
        assert told["status"] == "completed"
        assert {"store": "memories", "outcome": "erased", "count": 1, "reason": None} in told[
            "receipts"
        ]
        with service.shard.store.snapshot() as snapshot:
            assert len([scope for scope in snapshot.scopes() if scope.tenant]) == 1  # Bob


def test_nor_does_it_come_back_to_a_service_that_goes_on_from_then(erased, tmp_path: Path) -> None:
    first, objects, _, _ = erased
    assert restored(erased, tmp_path, take_over=True) == 1
    options = {
        "auth__argon2_time_cost": 1,
        "auth__argon2_memory_kib": 64,
        "object_store__url": f"file://{objects}",
        "object_store__ship_interval_ms": 5,
    }
    with in_process(shard_directory(tmp_path, 0), secrets=first.secrets, **options) as service:
        assert not logs_in(service, "ada@example.org") and logs_in(service, "bob@example.org")
        service.settle()
        service.until(lambda: service.log()["complete"])
        service.until(lambda: service.log()["unshipped_records"] == 0)
        newest = of_shard(service, objects)
    restore(newest, tmp_path / "again")
    with in_process(tmp_path / "again", secrets=first.secrets) as service:
        assert not logs_in(service, "ada@example.org") and logs_in(service, "bob@example.org")
