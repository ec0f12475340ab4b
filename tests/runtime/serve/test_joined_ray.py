"""A Ray cluster that somebody else runs: the service joins it, alone or through Serve's own
command, and takes only itself away.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from runtime import cluster
from runtime.cluster.actors import short_cut
from runtime.errors import Unavailable
from runtime.installation import Layout, LayoutError, Secrets
from runtime.serve import prepare_for_serve_command
from runtime.serve.joined_ray import JoinedRay, check_token_authentication
from runtime.serve.listening import StartError, free_port
from runtime.serve.stopping import stop_all
from runtime.settings import Settings
from tests.support import ROOT
from tests.support.several_nodes import NAME, SECRETS
from tests.support.tiny_app import counts, registry
from tests.support.tiny_service import assert_believes_no_client, eventually, refused, running

OPENER = "tests.support.tiny_app:open_shard"
STOP_SECONDS_MAX = 60
BIN = Path(sys.executable).parent
NO_TOKEN = {"RAY_AUTH_MODE": "disabled"}  # as an operator does who keeps others out by the network
PATIENT = {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60"}  # Serve's 5 are few beside other tests
FRUGAL = {"RAY_enable_worker_prestart": "0"}  # no idle process for each processor


class Cluster:
    """A Ray node of its own, and what runs on it."""

    def __init__(self, directory: Path):
        self.address = f"127.0.0.1:{free_port('127.0.0.1')}"
        ports = {
            "port": self.address.rpartition(":")[2],
            "ray-client-server-port": str(free_port("127.0.0.1")),
        }
        options = {
            **ports,
            "num-cpus": "4",
            "object-store-memory": "80000000",
            "include-dashboard": "false",
            "temp-dir": str(directory),
        }
        command = [
            BIN / "ray",
            "start",
            "--head",
            "--block",
            *(f"--{name}={value}" for name, value in options.items()),
        ]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **NO_TOKEN, **PATIENT, **FRUGAL},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def actors(self) -> list[str]:
        """The titles of the actors that run on it."""
        titles = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                titles += [
                    title
                    for title in process.cmdline()[:1]
                    if title.startswith(("ray::Shard", "ray::Serve", "ray::Proxy"))
                ]
            except psutil.NoSuchProcess:
                continue
        return titles

    def end(self) -> None:
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.terminate()
        self.process.wait(STOP_SECONDS_MAX)
        _, left = psutil.wait_procs(family, timeout=STOP_SECONDS_MAX)
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    # Unix sockets allow 107 bytes of path, of which pytest's directories leave too few.
    directory = Path(f"/tmp/ray-{os.getpid()}")
    started = Cluster(directory)
    try:
        yield started
    finally:
        started.end()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def joined(elsewhere: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is on the cluster itself."""
    import ray

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray.init(address=elsewhere.address, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    assert f"No Ray cluster answers at {address}" in refused(
        tmp_path / "data", f"ray.address={address}"
    )
    assert "client's address" in refused(tmp_path / "data", "ray.address=ray://127.0.0.1:10001")


def test_a_cluster_that_lets_everybody_in_is_not_joined_in_production(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with `mneme serve` nor under Serve's own command."""
    strict = settings.model_copy(update={"environment": "production"})
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        joins = strict.model_copy(
            update={"ray": strict.ray.model_copy(update={"address": address})}
        )
        for mode in ("disabled", "k8s", None):
            if mode is None:
                monkeypatch.delenv("RAY_AUTH_MODE")
            else:
                monkeypatch.setenv("RAY_AUTH_MODE", mode)
            with pytest.raises(StartError, match="RAY_AUTH_MODE=token"):
                JoinedRay(joins).enter()
            with pytest.raises(StartError, match="RAY_AUTH_MODE=token"):
                prepare_for_serve_command(strict)


def test_an_open_cluster_is_warned_of_elsewhere(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    check_token_authentication(settings)
    assert "anyone who reaches its ports" in caplog.text
    caplog.clear()
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    check_token_authentication(settings.model_copy(update={"environment": "production"}))
    # Other threads of this process may have said something else meanwhile.
    assert "anyone who reaches its ports" not in caplog.text


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a data directory for two shards, with its layout and secrets made."""
    data = tmp_path / "data"
    Layout.load_or_create(data, 2)
    Secrets.load(data / "secrets", create=True)
    return Settings.load(None, {"data_dir": str(data)})


@pytest.mark.ray
def test_ray_shards_live_in_actors(joined: None, settings: Settings) -> None:
    handles = cluster.start_shards(settings, 2, OPENER)
    cluster.await_open(cluster.open_shards(handles))

    async def work() -> None:
        shards = cluster.RayShards(settings, registry(), OPENER)
        first, second = await counts(shards)
        assert b'"count":1' in first
        assert b'"count":2' in second
        assert [(status["shard"], status["open"]) for status in await shards.status()] == [
            (0, True),
            (1, True),
        ]
        # Without a socket that it can trust, as on another machine, a gateway goes through Ray.
        short_cut(settings, 0).parent.chmod(0o755)
        first, second = await counts(cluster.RayShards(settings, registry(), OPENER))
        assert b'"count":2' in first
        assert b'"count":4' in second

    asyncio.run(work())
    assert cluster.stop_shards(handles, STOP_SECONDS_MAX)
    assert (settings.data_dir / "shards/0000/closed").exists()


@pytest.mark.ray
def test_a_shard_that_cannot_open_says_why(joined: None, settings: Settings) -> None:
    Layout.load(settings.data_dir).completed(settings.data_dir)
    handles = cluster.start_shards(settings, 2, OPENER)
    with pytest.raises(LayoutError, match="is damaged"):
        cluster.await_open(cluster.open_shards(handles))
    assert cluster.stop_shards(handles, STOP_SECONDS_MAX)


@pytest.mark.ray
def test_an_order_that_finds_no_shard_can_be_repeated(joined: None, settings: Settings) -> None:
    import ray

    async def work() -> None:
        shards = cluster.RayShards(settings, registry(), OPENER)
        with pytest.raises(Unavailable, match=r"Shard \d does not answer"):
            await shards.supervise("rebalance")
        handles = cluster.start_shards(settings, 2, OPENER)
        await asyncio.gather(*cluster.open_shards(handles))
        await shards.supervise("report")
        for handle in handles:
            ray.kill(handle, no_restart=True)
        with pytest.raises(Unavailable, match=r"Shard \d does not answer"):
            await shards.supervise("rebalance")

    asyncio.run(work())
    stop_all(settings)


@pytest.mark.ray
def test_an_order_that_cannot_read_the_placement_says_why(joined: None, settings: Settings) -> None:
    async def work() -> None:
        shards = cluster.RayShards(settings, registry(), OPENER)
        (settings.data_dir / "placement").mkdir()
        (settings.data_dir / "placement" / "000000000001.json").write_text("{}")
        with pytest.raises(Unavailable, match="is damaged"):
            await shards.supervise("report")

    asyncio.run(work())
    stop_all(settings)


@pytest.mark.ray
@pytest.mark.slow
def test_the_service_joins_a_cluster_and_takes_only_itself_away(
    elsewhere: Cluster, joined: None, settings: Settings
) -> None:
    left_behind = cluster.start_shards(settings, 2, OPENER)  # as by a service that was killed
    cluster.await_open(cluster.open_shards(left_behind))
    Layout.load(settings.data_dir).completed(settings.data_dir)
    (settings.data_dir / "shards/0000/count").write_text("41")

    with running(settings.data_dir, f"ray.address={elsewhere.address}", **NO_TOKEN) as service:
        assert (settings.data_dir / "shards/0001/closed").exists()
        assert service.get("/tiny/add").json()["count"] == 42
        assert_believes_no_client(service, "http")
        assert service.stop() == 0
    assert elsewhere.process.poll() is None
    assert eventually(lambda: not elsewhere.actors()), elsewhere.actors()


@pytest.mark.ray
@pytest.mark.slow
def test_gateways_of_several_nodes_find_a_layout(
    elsewhere: Cluster, joined: None, tmp_path: Path
) -> None:
    from ray import serve

    serve.start(http_options={"port": free_port("127.0.0.1")})  # so that gateways start at once
    try:
        given = {
            **SECRETS,
            "ray.address": elsewhere.address,
            "cluster.name": NAME,
            "object_store.url": f"file://{tmp_path}/objects",
        }
        overrides = [f"{name}={value}" for name, value in given.items()]
        with running(tmp_path / "data", *overrides, **NO_TOKEN) as service:
            assert service.get("/tiny/add").json()["count"] == 1
            assert service.stop() == 0
    finally:
        serve.shutdown()


@pytest.mark.ray
@pytest.mark.slow
def test_serves_own_command_runs_the_service(
    elsewhere: Cluster, joined: None, tmp_path: Path
) -> None:
    from ray import serve

    port = free_port("127.0.0.1")
    environment = {
        **os.environ,
        **NO_TOKEN,
        "MNEME_CONFIG": str(ROOT / "configs/test.yaml"),
        "MNEME_DATA_DIR": str(tmp_path / "data"),
    }
    serve.start(http_options={"port": port})  # the command itself has no option for it
    command = [BIN / "serve", "run", "--address", elsewhere.address, "serve_app:app"]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            assert eventually(lambda: process.poll() is not None or _healthy(client))
            account = {
                "email": "ada@example.com",
                "password": "correct horse battery",
                "full_name": "Ada",
            }
            token = client.post("/v1/auth/register", json=account).json()["access_token"]
            client.headers["Authorization"] = f"Bearer {token}"
            assert (
                client.post(
                    "/v1/memories",
                    json={"messages": [{"role": "user", "content": "I like trains."}]},
                ).status_code
                == 201
            )
            assert "trains" in client.post("/v1/search", json={"query": "trains"}).text
        assert len(elsewhere.actors()) == 4
        process.send_signal(signal.SIGINT)
        assert process.wait(STOP_SECONDS_MAX) == 0
    finally:
        if process.poll() is None:
            process.kill()
    assert eventually(lambda: not elsewhere.actors()), elsewhere.actors()


def _healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/v1/health").status_code == 200
    except httpx.TransportError:
        return False
