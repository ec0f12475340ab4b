"""`serve` as a process, on both engines: it comes up, answers, survives a shard's death, and leaves
nothing behind however it ends.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from runtime.limits import SHARD_RECOVERY_SECONDS_MAX
from runtime.serve import RunDirectory
from tests.support.tiny_service import (
    FORGED,
    Running,
    assert_believes_no_client,
    eventually,
    refused,
    running,
)

# --- one process ----------------------------------------------------------------------------------


def test_local_serves_and_closes_in_order(tmp_path: Path) -> None:
    with running(tmp_path / "data", "engine=local", "shards.count=1") as service:
        assert service.get("/tiny/add").json()["count"] == 1
        assert service.get("/request").json()["client"] == "127.0.0.1"
        assert service.stop(signal.SIGINT) == 0
    assert (tmp_path / "data/shards/0000/closed").exists()
    with running(tmp_path / "data", "engine=local", "shards.count=1") as service:
        assert service.get("/tiny/add").json()["count"] == 2


@contextmanager
def hangups(handler: signal.Handlers) -> Iterator[None]:
    """What processes that are started do first when their terminal is closed: what this one does,
    which nohup may have started.
    """
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_local_closes_in_order_when_its_terminal_is_closed(tmp_path: Path) -> None:
    with (
        hangups(signal.SIG_DFL),
        running(tmp_path / "data", "engine=local", "shards.count=1") as service,
    ):
        assert service.get("/tiny/add").status_code == 200
        assert service.stop(signal.SIGHUP) == 0
    assert (tmp_path / "data/shards/0000/closed").exists()


def test_local_outlives_its_terminal_where_nohup_says_so(tmp_path: Path) -> None:
    with (
        hangups(signal.SIG_IGN),
        running(tmp_path / "data", "engine=local", "shards.count=1") as service,
    ):
        service.process.send_signal(signal.SIGHUP)
        assert service.get("/tiny/add").json()["count"] == 1
        assert service.stop(signal.SIGTERM) == 0


def test_local_serves_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    certfile, keyfile = certificate
    with running(
        tmp_path / "data",
        "engine=local",
        f"http.tls_certfile={certfile}",
        f"http.tls_keyfile={keyfile}",
    ) as service:
        assert (
            httpx.get(
                service.url + "/request", verify=ssl.create_default_context(cafile=certfile)
            ).json()["scheme"]
            == "https"
        )


def test_local_ends_on_a_storage_fault(tmp_path: Path) -> None:
    with running(tmp_path / "data", "engine=local", "shards.count=1") as service:
        assert service.get("/tiny/crash").status_code == 503
        assert service.process.wait(30) == 70


def test_a_start_that_cannot_be_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} on 127.0.0.1 is in use by process {os.getpid()}" in refused(
            tmp_path / "a", f"http.port={port}"
        )
    with running(tmp_path / "b", "engine=local") as service:
        assert f"b is in use by process {service.process.pid}" in refused(
            tmp_path / "b", "http.port=0"
        )
        service.stop()
        (tmp_path / "b/shards/0000/count").unlink()
        assert "0000 is damaged" in refused(tmp_path / "b", "http.port=0", "engine=local")


# --- Ray ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_ray(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]
) -> Iterator[Running]:
    """Two shards and two gateways, with TLS."""
    tls = (f"http.tls_certfile={certificate[0]}", f"http.tls_keyfile={certificate[1]}")
    with running(
        tmp_path_factory.mktemp("ray") / "data", "shards.count=2", "ray.gateway_replicas=2", *tls
    ) as service:
        yield service


@pytest.mark.ray
def test_ray_answers_through_haproxy_and_batching_queues(
    on_ray: Running, certificate: tuple[Path, Path]
) -> None:
    assert on_ray.get("/tiny/add").json()["count"] == 1
    assert_believes_no_client(on_ray, "https")
    assert "x-request-timeout-seconds" not in on_ray.get("/request", FORGED).json()["headers"]
    assert (
        httpx.get(
            on_ray.url + "/noop", verify=ssl.create_default_context(cafile=certificate[0])
        ).status_code
        == 200
    )
    together = 1
    with ThreadPoolExecutor(16) as pool:
        for _ in range(
            50
            # a call that comes while another is on its way travels with the next; that it does is a
            # matter of chance
        ):
            replies = list(pool.map(lambda _: on_ray.get("/tiny/read"), range(64)))
            assert all(reply.status_code == 200 for reply in replies)
            together = max(replies[-1].json()["batches"])
            if together > 1:
                break
    assert together > 1


@pytest.mark.ray
def test_both_gateways_answer_and_each_has_its_log(on_ray: Running) -> None:
    answered: set[int] = set()
    with (
        ThreadPoolExecutor(8) as pool
    ):  # HAProxy gives a request to the gateway that has the fewest, once its check has passed
        for _ in range(50):
            answered |= {
                reply.json()["gateway"]
                for reply in pool.map(lambda _: on_ray.get("/request"), range(80))
            }
            if len(answered) == 2:
                break
    assert len(answered) == 2
    logs = {file.name for file in (on_ray.data_dir / "logs").iterdir()}
    assert logs == {"gateway-0.log", "gateway-1.log", "shard-0.log", "shard-1.log"}


@pytest.mark.ray
def test_a_slow_call_does_not_hold_fast_ones(on_ray: Running) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(on_ray.get, "/tiny/wait")
        assert on_ray.get("/tiny/read").status_code == 200
        (on_ray.data_dir / "shards/0000/go_on").touch()
        assert slow.result().status_code == 200


@pytest.mark.ray
def test_a_shard_that_fails_comes_back_from_its_directory(on_ray: Running) -> None:
    before = on_ray.get("/tiny/add").json()
    lost = on_ray.get("/tiny/crash")
    assert lost.status_code == 503
    assert "unknown" in lost.json()["error"]
    while True:
        begun = time.monotonic()
        after = on_ray.get("/tiny/read")
        if after.status_code == 200:
            break
        assert time.monotonic() - begun >= SHARD_RECOVERY_SECONDS_MAX, (
            "a call that comes during the restart waits for it"
        )
    assert after.json()["count"] == before["count"]
    assert after.json()["pid"] != before["pid"]


@pytest.mark.ray
def test_only_the_front_door_is_open_to_the_network(on_ray: Running) -> None:
    family = on_ray.leftovers()
    doors = {
        connection.laddr.port
        for process in family
        if process.name() == "haproxy"
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert doors == {int(on_ray.url.rpartition(":")[2])}


@pytest.mark.ray
def test_the_process_that_started_it_keeps_next_to_nothing(on_ray: Running) -> None:
    waiting = psutil.Process(on_ray.process.pid)
    assert eventually(lambda: waiting.memory_full_info().uss < 12 << 20)
    opened = {os.readlink(file) for file in Path(f"/proc/{waiting.pid}/fd").iterdir()}
    lock = str(on_ray.data_dir / "serve.lock")
    assert lock in opened
    assert len(opened - {lock}) <= 4, "the standard streams and the settings"
    assert f"is in use by process {waiting.pid}" in refused(on_ray.data_dir, "http.port=0")


@pytest.mark.ray
@pytest.mark.slow
def test_after_a_kill_the_next_start_serves_even_without_haproxy(on_ray: Running) -> None:
    """One start for two questions, since a start takes ten seconds. It ends the service that the
    tests above share.
    """
    count = on_ray.get("/tiny/read").json()["count"]
    on_ray.stop(signal.SIGKILL)
    assert eventually(lambda: not on_ray.leftovers()), on_ray.leftovers()

    port = on_ray.url.rpartition(":")[2]
    with running(
        on_ray.data_dir, f"http.port={port}", RAY_SERVE_HAPROXY_BINARY_PATH="/nowhere"
    ) as service:
        assert service.get("/tiny/read").json()["count"] == count
        assert_believes_no_client(service, "http")
        assert service.said().count("no HAProxy for this platform") == 1
        assert service.stop(signal.SIGINT) == 0
        assert service.leftovers() == []
        assert not RunDirectory.of(on_ray.data_dir).path.exists()
    assert (on_ray.data_dir / "shards/0000/checkpoint").exists()
