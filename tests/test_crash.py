"""What was acknowledged survives: a killed process, a second one on the same directory, a damaged
file, a full disk.

More rounds than the few here: python loadtests/chaos.py --rounds 10.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.cluster import EXIT_STORAGE_FAULT
from tests.support.crashes import Books, write_until
from tests.support.faulty_disk import FaultyDisk
from tests.support.receivers import receiver
from tests.support.served import STOP_SECONDS_MAX, Served, refusal, served
from tests.support.tiny_service import eventually

EMAIL = "ada@example.com"
ACKNOWLEDGEMENTS = (10, 60)  # before each kill, at random between these
FILL_ATTEMPTS_MAX = 60
DELIVERED_SECONDS_MAX = 120
ERASURE_SECONDS_MAX = 120
DISK_BYTES = 64 << 20  # a new data directory takes 25 MB, most of it the model's graph


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=pytest.mark.long)])
def test_every_acknowledged_write_survives_a_kill(tmp_path: Path, seed: int, kills: int) -> None:
    with served(tmp_path / "data") as service:
        books = Books(service.url, service.register(), seed)
        write_until(books, random.Random(seed).randint(*ACKNOWLEDGEMENTS), service.kill)
    for number in range(1, kills + 1):
        with served(tmp_path / "data") as service:
            books.url = service.url
            asyncio.run(books.audit())
            if number < kills:
                write_until(
                    books, random.Random(seed + number).randint(*ACKNOWLEDGEMENTS), service.kill
                )
            else:
                assert service.stop() == 0


@pytest.mark.ray
def test_every_acknowledged_write_survives_the_end_of_a_shard(
    service_on_ray: Served, seed: int
) -> None:
    books = Books(service_on_ray.url, service_on_ray.register("grace@example.com"), seed)
    write_until(
        books,
        random.Random(seed).randint(*ACKNOWLEDGEMENTS),
        service_on_ray.shard_process().kill,
        afterwards=20,
    )
    asyncio.run(books.audit())


@pytest.mark.slow
def test_a_directory_in_use_or_with_a_file_cut_short_is_refused_and_a_whole_one_has_everything(
    tmp_path: Path,
) -> None:
    data_file = tmp_path / "data/shards/0000/data.mdb"
    with served(tmp_path / "data") as service:
        books = Books(service.url, service.register(), 1)
        write_until(books, 20, lambda: None)
        said = refusal(tmp_path / "data", "ray")
        assert (
            said == f"mneme serve: {tmp_path / 'data'} is in use by process {service.process.pid}."
        )
        assert service.http.get("/v1/health").json()["status"] == "ok"
        assert service.stop() == 0
    whole = shutil.copy(data_file, tmp_path / "whole.mdb")
    for size in (data_file.stat().st_size // 2, 100):
        os.truncate(data_file, size)
        said = refusal(tmp_path / "data")
        assert str(data_file) in said and "Restore it from a backup" in said, said
        assert data_file.stat().st_size == size, "a refused file is left as it is"
    data_file.unlink()
    assert f"there is no store in {data_file.parent}" in refusal(tmp_path / "data")
    shutil.move(whole, data_file)
    with served(tmp_path / "data") as service:
        books.url = service.url
        asyncio.run(books.audit())


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.long)])
def test_every_event_is_delivered_across_kills(tmp_path: Path, kills: int) -> None:
    """Killed while some deliveries are done, some under way and some waiting; the receiver hears of
    every memory at least once.
    """
    told = {"webhooks__allow_private_networks": True, "webhooks__backoff_seconds_min": 0.05}
    batch = {"memories": [{"content": f"Memory number {n}."} for n in range(100)]}
    headers: dict[str, str] = {}
    made: list[str] = []
    with receiver() as there:
        for _ in range(kills):
            with served(tmp_path / "data", **told) as service:
                if not headers:
                    headers = {"Authorization": f"Bearer {service.register()}"}
                    webhook = {"url": there.url, "events": ["memory.created"]}
                    assert (
                        service.http.post("/v1/webhooks", json=webhook, headers=headers).status_code
                        == 201
                    )
                heard = len(there.received)
                made += service.http.post("/v1/memories/batch", json=batch, headers=headers).json()[
                    "memory_ids"
                ]
                wait_until(lambda heard=heard: len(there.received) >= heard + 20)
                assert service.process.poll() is None
                there.let_go.clear()
                service.kill()
                there.let_go.set()
        with served(tmp_path / "data", **told) as service:
            wait_until(lambda: delivered(service, headers) == len(made))
    assert {received.event["data"]["id"] for received in there.received} == set(made)
    bodies = {received.event["idempotency_key"]: received.body for received in there.received}
    assert len(bodies) == len(made) == 100 * kills
    assert all(
        received.body == bodies[received.event["idempotency_key"]] for received in there.received
    )


def delivered(service: Served, headers: dict[str, str]) -> int:
    (webhook,) = service.http.get("/v1/webhooks", headers=headers).json()["items"]
    return service.http.get(
        f"/v1/webhooks/{webhook['id']}/deliveries?status=delivered", headers=headers
    ).json()["total_count"]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DELIVERED_SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_erasure_survives_a_kill(tmp_path: Path) -> None:
    """The process is killed as soon as the DELETE is acknowledged; the next one finishes the sweep,
    and nobody gets in meanwhile.
    """
    word = "Zyzzyva"
    with served(tmp_path / "data") as service:
        headers = {"Authorization": f"Bearer {service.register(EMAIL)}", "Prefer": "respond-async"}
        for batch in range(8):
            items = [
                {"content": f"{word} number {batch}-{n}", "tags": [f"{word}{n}"]}
                for n in range(100)
            ]
            assert (
                service.http.post(
                    "/v1/memories/batch", json={"memories": items}, headers=headers
                ).status_code
                == 202
            )
        answer = service.http.delete("/v1/account?confirm=erase-account", headers=headers)
        assert answer.status_code == 200
        service.kill()
    with served(tmp_path / "data") as service:
        assert service.http.get("/v1/memories", headers=headers).status_code == 401
        receipt = {"receipt": answer.json()["receipt"]}
        deadline = time.monotonic() + ERASURE_SECONDS_MAX
        while (told := service.http.post("/v1/account/receipts", json=receipt).json())[
            "status"
        ] != "completed":
            assert time.monotonic() < deadline, told
        erased = {entry["store"]: entry["count"] for entry in told["receipts"]}
        assert (erased["memories"], erased["tenants"], erased["data key"]) == (800, 1, 1)
        service.register(EMAIL)  # the address is free
        assert service.stop() == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "models" not in path.parts]
    assert any(path.name == "data.mdb" for path in files)
    assert not [path for path in files if word.lower().encode() in path.read_bytes().lower()]


class Disk:
    """A small disk of its own where we may mount one; else a bound on the size of the service's
    files, which fails like one.
    """

    def __init__(self, path: Path, is_mounted: bool):
        self.path = path
        self._is_mounted = is_mounted

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"

    def fill(self, service: Served) -> None:
        """From now on no file grows."""
        if self._is_mounted:
            with self._ballast.open("wb", buffering=0) as file:
                try:
                    while file.write(b"\0" * 4096):
                        pass
                except OSError:
                    return
        size = max(file.stat().st_size for file in service.data_dir.rglob("data.mdb"))
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def free(self, service: Served) -> None:
        if self._is_mounted:
            self._ballast.unlink()
        else:
            resource.prlimit(
                service.process.pid,
                resource.RLIMIT_FSIZE,
                (resource.RLIM_INFINITY, resource.RLIM_INFINITY),
            )


@contextmanager
def disk(path: Path) -> Iterator[Disk]:
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(path)]
    is_mounted = (
        os.geteuid() == 0
        and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    )
    try:
        yield Disk(path, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", str(path)], check=True)


def test_a_disk_that_fails_ends_the_process_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FaultyDisk(tmp_path)
    for name, value in disk.environment.items():
        monkeypatch.setenv(name, value)
    with served(tmp_path / "data") as service:
        books = Books(service.url, service.register(), 2)
        write_until(books, 15, lambda: None)
        disk.fail("sync", errno.EIO)
        headers = {"Authorization": f"Bearer {books.token}", "Prefer": "respond-async"}
        answer = service.http.post(
            "/v1/memories/raw", json={"content": "Nobody knows."}, headers=headers
        )
        assert answer.status_code == 503 and "full" not in answer.text, service.errors
        assert service.process.wait(STOP_SECONDS_MAX) == EXIT_STORAGE_FAULT, service.errors
        assert "its device failed" in service.errors and "Free space" not in service.errors
        disk.work()
        with served(tmp_path / "data") as again:
            books.url = again.url
            asyncio.run(books.audit())


def test_a_full_disk_refuses_writes_and_loses_nothing(tmp_path: Path) -> None:
    with disk(tmp_path / "disk") as space, served(space.path / "data") as service:
        books = Books(service.url, service.register(), 2)
        write_until(books, 15, lambda: None)
        space.fill(service)
        headers = {"Authorization": f"Bearer {books.token}"}
        refused = None
        for number in range(FILL_ATTEMPTS_MAX):
            # Pages that were freed earlier still take a few writes.
            body = {"content": f"Parcel r{number} " + f"filler{number} " * 8_000}
            answer = service.http.post(
                "/v1/memories/raw", json=body, headers={**headers, "Prefer": "respond-async"}
            )
            if answer.status_code == 503:
                refused = answer
                break
            assert answer.status_code == 202
            books.memories[answer.json()["id"]] = body["content"]
        assert refused is not None, "the disk never filled"
        assert (
            "disk" in refused.json()["error"]["message"]
            and int(refused.headers["Retry-After"]) >= 1
        )
        health = service.http.get("/v1/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded"), health.text
        assert health.json()["checks"]["disk"].startswith("has had no room for writes of shard 0 ")
        listed = service.http.get("/v1/memories?limit=1", headers=headers).json()
        assert listed["total_count"] == len(books.memories), (
            "reads go on, and what was refused is not there"
        )
        space.free(service)
        asyncio.run(books.audit())
        write_until(books, 10, lambda: None)
        sound = {"shards": "ok"}
        assert eventually(lambda: service.http.get("/v1/health").json()["checks"] == sound)
        service.kill()
        with served(space.path / "data") as again:
            books.url = again.url
            asyncio.run(books.audit())
