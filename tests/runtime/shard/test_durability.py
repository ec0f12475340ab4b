"""What an acknowledgement means in both modes, seen over the public API, with a real directory as
the object store.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import runtime.shard.durability
from runtime.installation import shard_place
from storage.replication import ObjectStore, restore, shipper
from tests.support.cut_off import LEASE_SECONDS, Link
from tests.support.in_process import InProcess, in_process
from tests.support.leases import waited_out

WAIT_SECONDS = 0.3
PATIENT_SECONDS = 60  # where everything has to be stored, however slow the machine is
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of renameat2(2)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper, "BACKOFF_SECONDS_MAX", 0.1)


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    return tmp_path / "objects"


def replicated(objects: Path, **more: Any) -> dict[str, Any]:
    return {
        "object_store__url": f"file://{objects}",
        "durability__mode": "replicated",
        "durability__wait_seconds_max": WAIT_SECONDS,
        "cluster__lease_seconds": LEASE_SECONDS,
        **more,
    }


def take_away(objects: Path) -> None:
    """From now on every request to the object store fails."""
    objects.with_name("away").write_text("not a directory")
    bring_back(objects)


def bring_back(objects: Path) -> None:
    """Exchange the two names at once: at no moment is there none, in whose place a writer would
    make a directory.
    """
    here, there = (os.fsencode(path) for path in (objects, objects.with_name("away")))
    assert (
        ctypes.CDLL(None, use_errno=True).renameat2(
            AT_FDCWD, here, AT_FDCWD, there, RENAME_EXCHANGE
        )
        == 0
    ), ctypes.get_errno()


def restored(service: InProcess, objects: Path, directory: Path) -> InProcess:
    """The service as object storage has it, on a directory of its own, as the shard's new owner."""
    place = ObjectStore(f"file://{objects}").below(
        shard_place(service.shard.store.identity.cluster_id, 0)
    )
    with waited_out():
        restore(place, directory, take_over=True, owner="a test")
    options = replicated(objects, durability__wait_seconds_max=PATIENT_SECONDS)
    return InProcess(directory, secrets=service.secrets, **options)


@contextmanager
def impatient_service(directory: Path, objects: Path) -> Iterator[tuple[InProcess, str]]:
    """A service that waits for the object store no longer than WAIT_SECONDS, and an account that
    was made in one with patience.
    """
    with in_process(
        directory, **replicated(objects, durability__wait_seconds_max=PATIENT_SECONDS)
    ) as patient:
        who = patient.register("ada@example.org")
    with in_process(directory, secrets=patient.secrets, **replicated(objects)) as service:
        yield service, who


def count(service: InProcess, who: str) -> int:
    return service.request("GET", "/v1/memories", who=who).json()["total_count"]


def test_without_an_object_store_nothing_is_recorded_and_no_thread_runs(tmp_path: Path) -> None:
    with in_process(tmp_path / "data") as service:
        service.register("ada@example.org")
        assert service.shard.store.log.size() == {"records": 0, "bytes": 0}
        assert "log" not in service.status()
        assert not list((tmp_path / "data").glob(".snapshot*"))


def test_an_acknowledged_write_is_on_another_machine(tmp_path: Path, objects: Path) -> None:
    service = InProcess(
        tmp_path / "data", **replicated(objects, durability__wait_seconds_max=PATIENT_SECONDS)
    )
    who = service.register("ada@example.org")
    for number in range(8):
        assert service.request(
            "POST", "/v1/memories", {"content": f"Fact {number} about tea."}, who=who
        ).status_code in (201, 202)
        assert service.log()["unshipped_records"] < 50
    # The machine is lost here: nothing of it is closed or asked any more.
    other = restored(service, objects, tmp_path / "other")
    assert count(other, who) == 8
    found = other.request("POST", "/v1/search", {"query": "tea", "limit": 20}, who=who).json()
    assert len(found["results"]) == 8
    # The first one wakes up: whatever it is asked to do, it does not say that it has done it.
    answer = service.request(
        "POST", "/v1/memories", {"content": "Written by nobody's owner."}, who=who
    )
    assert answer.status_code == 503
    assert (
        service.request("POST", "/v1/memories", {"content": "And again."}, who=who).status_code
        == 503
    )
    assert count(other, who) == 8
    other.close()


def test_a_write_that_cannot_be_stored_is_no_success_and_no_repeat_makes_it_one(
    tmp_path: Path, objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.shard.durability, "ObjectStore", Link)
    with impatient_service(tmp_path / "data", objects) as (service, who):
        body = {"content": "Tea is ready."}
        headers = {"Authorization": f"Bearer {who}", "Idempotency-Key": "once"}

        async def twice() -> list[httpx.Response]:
            """The second finds the record of the first, and must not take that for an answer."""
            return await asyncio.gather(
                *(service.client.post("/v1/memories", json=body, headers=headers) for _ in range(2))
            )

        with Link.silent():
            for answer in service.run(twice()):
                assert answer.status_code == 503 and "on disk" in answer.json()["error"]["message"]
                assert int(answer.headers["retry-after"]) >= 1
            take_away(objects)
        service.until(lambda: service.log()["failing_seconds"] > WAIT_SECONDS)
        for key in ("once", "another"):
            refused = service.request("POST", "/v1/memories", body, who=who, Idempotency_Key=key)
            assert (
                refused.status_code == 503
                and "nothing was written" in refused.json()["error"]["message"]
            )
        health = service.request("GET", "/v1/health")
        told = health.json()
        assert (health.status_code, told["status"]) == (200, "degraded"), told
        assert told["checks"]["shards"] == "ok" and told["shards"] == {"open": 1, "total": 1}
        assert told["checks"]["object_store"].startswith("has taken nothing of shard 0 for ")
        stored = count(service, who)  # reads go on
        bring_back(objects)
        service.until(lambda: service.log()["unshipped_records"] == 0)
        service.shard.parts.durability.wait_seconds = PATIENT_SECONDS
        answer = service.request("POST", "/v1/memories", body, who=who, Idempotency_Key="once")
        assert answer.status_code in (200, 201, 202)
        assert stored == count(service, who) == 1
        assert service.request("GET", "/v1/health").json()["checks"] == {"shards": "ok"}


def test_a_slow_object_store_slows_a_write_and_changes_nothing_else(
    tmp_path: Path, objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(ObjectStore):
        def put_new(self, path: str, content: bytes) -> bool:
            time.sleep(0.05)
            return super().put_new(path, content)

    monkeypatch.setattr(runtime.shard.durability, "ObjectStore", Slow)
    with in_process(
        tmp_path / "data", **replicated(objects, durability__wait_seconds_max=PATIENT_SECONDS)
    ) as service:
        who = service.register("ada@example.org")
        before = service.log()["segments"]

        async def all_at_once() -> list[int]:
            send = service.client.post
            headers = {"Authorization": f"Bearer {who}"}
            answers = [
                send("/v1/memories/raw", json={"content": f"Number {n}."}, headers=headers)
                for n in range(24)
            ]
            return [answer.status_code for answer in await asyncio.gather(*answers)]

        assert set(service.run(all_at_once())) <= {200, 201, 202}
        assert service.log()["segments"] - before < 20  # many share one


def test_in_local_mode_an_object_store_that_is_away_holds_nothing_up(
    tmp_path: Path, objects: Path
) -> None:
    with in_process(
        tmp_path / "data",
        object_store__url=f"file://{objects}",
        object_store__ship_interval_ms=5,
        durability__outage_writes_may_be_lost=True,
    ) as service:
        who = service.register("ada@example.org")
        take_away(objects)
        for number in range(3):
            assert service.request(
                "POST", "/v1/memories", {"content": f"Fact {number}."}, who=who
            ).status_code in (201, 202)
        service.until(lambda: service.log()["failures"] > 0)
        status = service.log()
        assert status["unshipped_records"] > 0 and status["unshipped_seconds"] > 0
        bring_back(objects)
        service.until(lambda: service.log()["unshipped_records"] == 0)


@pytest.mark.parametrize(
    ("mode", "status"), [("", "not_configured"), ("local", "pending"), ("replicated", "delivered")]
)
def test_graph_writes_tell_what_became_of_them_elsewhere(
    tmp_path: Path, objects: Path, mode: str, status: str
) -> None:
    options = {"object_store__url": f"file://{objects}", "durability__mode": mode} if mode else {}
    with in_process(tmp_path / "data", **options) as service:
        who = service.register("ada@example.org")
        answer = service.request(
            "POST", "/v1/knowledge-graph/entities", {"name": "Ada", "type": "person"}, who=who
        )
        assert answer.status_code == 201
        assert answer.json()["replica_delivery"]["status"] == status
        if mode == "replicated":
            assert service.log()["unshipped_records"] == 0


def test_jobs_wait_for_the_object_store_and_are_not_lost(tmp_path: Path, objects: Path) -> None:
    said = {"messages": [{"role": "user", "content": "I live in Graz."}]}
    with impatient_service(tmp_path / "data", objects) as (service, who):
        take_away(objects)
        service.until(lambda: service.log()["failing_seconds"] > WAIT_SECONDS)
        assert service.request("POST", "/v1/memories/process", said, who=who).status_code == 503
        bring_back(objects)
        service.until(lambda: service.log()["failing_seconds"] == 0)
    with in_process(
        tmp_path / "data",
        secrets=service.secrets,
        **replicated(objects, durability__wait_seconds_max=PATIENT_SECONDS),
    ) as service:
        answer = service.request("POST", "/v1/memories/process", said, who=who)
        assert answer.status_code == 202
        url = answer.json()["status_url"]
        service.until(lambda: service.request("GET", url, who=who).json()["status"] == "completed")


def test_a_file_is_on_another_machine_too_and_gone_from_there_when_it_is_erased(
    tmp_path: Path, objects: Path
) -> None:
    service = InProcess(
        tmp_path / "data", **replicated(objects, durability__wait_seconds_max=PATIENT_SECONDS)
    )
    who = service.register("ada@example.org")
    document = service.processed("tea.txt", b"Tea needs four minutes.", who=who)
    assert document["status"] == "completed"
    assert len(list((objects / "blobs").glob("*/*"))) == 1
    other = restored(service, objects, tmp_path / "other")
    path = f"/v1/documents/{document['id']}"
    assert other.request("GET", f"{path}/content", who=who).content == b"Tea needs four minutes."
    assert other.request("DELETE", path, who=who).status_code == 200
    other.until(lambda: not list((objects / "blobs").glob("*/*")))
    other.close()
    take_away(objects)
    answer = service.upload("more.txt", b"More tea.", who=who)
    assert answer.status_code == 503
    bring_back(objects)


def test_in_local_mode_files_follow_when_the_object_store_is_back(
    tmp_path: Path, objects: Path
) -> None:
    options = {"object_store__url": f"file://{objects}", "cluster__lease_seconds": LEASE_SECONDS}
    with in_process(tmp_path / "data", **options) as service:
        who = service.register("ada@example.org")
        take_away(objects)
        document = service.processed("tea.txt", b"Tea needs four minutes.", who=who)
        assert document["status"] == "completed"
        bring_back(objects)
        service.until(lambda: len(list((objects / "blobs").glob("*/*"))) == 1)
