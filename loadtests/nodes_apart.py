"""The service on a Ray cluster whose nodes are machines of a network of their own
(loadtests/network.py), and an object store beside them.

The head has a gateway and no data; each other node has a data directory, shards and a gateway. The
object store is S3 as moto plays it, which judges one request after the other, so that of two puts
under one name one is refused.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx
import psutil

from loadtests.network import STORE, Network
from runtime.settings import NODE_VARIABLE
from tests.support import ROOT
from tests.support.served import MNEME, PASSWORD, UNTHROTTLED
from tests.support.several_nodes import NAME, OPERATOR, RAY, SECRETS

HEAD, DATA = "h", "bc"
PORT, RAYS_PORT, STORES_PORT = 8700, 6379, 5000
NODE_LOST_SECONDS, LEASE_SECONDS = 2, 6
AWAY_SECONDS = 90  # a node that is not back in so long is started anew
READY_SECONDS_MAX = 600
STARTS_MAX = 4  # of which the first may take too long on a busy machine
POLL_SECONDS = 0.5
NODE_MEMORY_BYTES = 80_000_000
OPERATOR_HEADERS = {"Authorization": f"Bearer {OPERATOR}"}


class AnyNode(httpx.AsyncBaseTransport):
    """A load balancer before the proxies of all nodes: a request goes to one of them, and to the
    next where nobody listens.
    """

    def __init__(self, addresses: Iterable[str], chance: random.Random):
        self._addresses, self._chance = list(addresses), chance
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        for address in self._chance.sample(self._addresses, len(self._addresses)):
            request.url = request.url.copy_with(host=address)
            with contextlib.suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._inner.handle_async_request(request)
        raise httpx.ConnectError("no node has a proxy that listens", request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class NodesApart:
    """The cluster, from the first answer of the service on."""

    def __init__(self, directory: Path, network: Network, shards: int):
        self.directory, self.network = directory, network
        self.rays = Path(tempfile.mkdtemp(prefix="mr-", dir="/tmp"))  # sockets have short names
        self.url = f"http://{network.addresses[HEAD]}:{PORT}"
        self.http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        self._starts: dict[str, subprocess.Popen[bytes]] = {}
        self._silent: dict[str, float] = {}
        self.restarts = 0
        bucket = _s3()
        self.environment = os.environ | {
            **RAY,
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_failure_threshold": "4",
            "RAY_health_check_timeout_ms": "1000",
            "AWS_ENDPOINT": f"http://{STORE}:{STORES_PORT}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        self.settings = {
            **UNTHROTTLED,
            **SECRETS,
            "cluster.name": NAME,
            "cluster.node_lost_seconds": NODE_LOST_SECONDS,
            "cluster.lease_seconds": LEASE_SECONDS,
            "object_store.url": f"s3://{bucket}/prefix",
            "durability.mode": "replicated",
            "shards.count": shards,
            "ray.gateway_replicas": 1 + len(DATA),
            "http.host": "0.0.0.0",
        }
        self.start(HEAD)
        for name in DATA:
            # One after another: they share a folder, and of two that look for a free name for their
            # sockets at once one fails. All before the service, which takes the head for a node
            # that is to have data where it sees none with a name.
            self.start(name)
            _until(functools.partial(self._has_joined, name), "a node does not join the cluster")
        self.service = self._serve()

    def data_dir(self, name: str) -> Path:
        return self.directory / f"node-{name}"

    def start(self, name: str) -> None:
        """A node joins, or comes back with the data directory that it has."""
        data_dir, address = self.data_dir(name), self.network.addresses[name]
        data_dir.mkdir(parents=True, exist_ok=True)
        role = (
            ["--head", f"--port={RAYS_PORT}", "--include-dashboard=false"]
            if name == HEAD
            else [
                f"--address={self.network.addresses[HEAD]}:{RAYS_PORT}",
                f"--labels=mneme-node={name}",
            ]
        )
        with (self.directory / f"ray-{name}.log").open("ab") as told:
            self._starts[name] = subprocess.Popen(
                [
                    *self.network.inside(name),
                    str(Path(sys.executable).with_name("ray")), "start", "--block", *role,
                    f"--node-ip-address={address}", "--num-cpus=16",
                    f"--object-store-memory={NODE_MEMORY_BYTES}", f"--temp-dir={self.rays}",
                    "--include-log-monitor=false", "--disable-usage-stats",
                ],
                env=self.environment | {NODE_VARIABLE: str(data_dir)},
                stdout=told,
                stderr=told,
                cwd=ROOT,
            )  # fmt: skip
        self._silent.pop(name, None)
        if name == HEAD:
            _until(lambda: _answers(address, RAYS_PORT), "Ray's head does not start")

    def _has_joined(self, name: str) -> bool:
        return "Ray runtime started" in (self.directory / f"ray-{name}.log").read_text()

    def _serve(self, attempts: int = STARTS_MAX) -> subprocess.Popen[str]:
        given = [f"--set={name}={value}" for name, value in self.settings.items()]
        with (self.directory / "stderr").open("a") as errors:
            service = subprocess.Popen(
                [
                    *self.network.inside(HEAD),
                    MNEME, "serve", "--engine", "ray",
                    "--address", f"{self.network.addresses[HEAD]}:{RAYS_PORT}",
                    "--config", str(ROOT / "configs/test.yaml"),
                    "--data-dir", str(self.data_dir(HEAD)), "--port", str(PORT), *given,
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env=self.environment | {NODE_VARIABLE: str(self.data_dir(HEAD))},
            )  # fmt: skip
        announcement = service.stdout.readline()
        if " at http" in announcement:
            return service
        service.wait()
        refused = (self.directory / "stderr").read_text().splitlines()[-1]
        if attempts == 1:
            raise AssertionError(f"the service did not start: {refused}")
        print(f"it is started once more: {refused}", flush=True)
        return self._serve(attempts - 1)

    def transport(self, chance: random.Random) -> AnyNode:
        return AnyNode(self.network.addresses.values(), chance)

    def register(self, email: str) -> str:
        """A new account's access token."""
        answer = self.http.post(
            "/v1/auth/register",
            json={"email": email, "password": PASSWORD, "full_name": "Ada Lovelace"},
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["access_token"]

    # --- what is looked at ------------------------------------------------------------------------

    def report(self) -> dict[str, Any] | None:
        """What `mneme admin cluster` shows; None while nobody answers."""
        with contextlib.suppress(httpx.TransportError):
            answer = self.http.get("/v1/internal/cluster", headers=OPERATOR_HEADERS)
            if answer.is_success:
                return answer.json()
        return None

    def order_move(self, slots: list[int], shard: int) -> bool:
        """Plan a move; -> whether the order was taken."""
        with contextlib.suppress(httpx.TransportError):
            body = {"slots": slots, "shard": shard}
            return self.http.post(
                "/v1/internal/cluster/moves", json=body, headers=OPERATOR_HEADERS
            ).is_success
        return False

    def processes(self, kind: str) -> list[psutil.Process]:
        """Of this kind of actor, wherever they are: ShardActor, ServeReplica, SupervisorActor."""
        return [process for name in (HEAD, *DATA) for process in self.on(name, kind)]

    def on(self, name: str, kind: str) -> list[psutil.Process]:
        """Those of one node."""
        found = []
        for process in self.network.processes(name):
            with contextlib.suppress(psutil.NoSuchProcess):
                if kind in process.name() + " ".join(process.cmdline()):
                    found.append(process)
        return found

    # --- what is done to nodes --------------------------------------------------------------------

    def signal(self, name: str, number: signal.Signals, *, but: str = "") -> None:
        """Send a signal to every process of a node, except of a kind."""
        for process in self.network.processes(name):
            with contextlib.suppress(psutil.NoSuchProcess):
                if not but or but not in process.name():
                    process.send_signal(number)

    def kill(self, name: str) -> None:
        """End every process of a node, as a power failure would."""
        left = self.network.processes(name)
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=READY_SECONDS_MAX)
        self._starts[name].wait()

    def lose_disk(self, name: str) -> None:
        shutil.rmtree(self.data_dir(name))

    def until_whole(self) -> dict[str, Any]:
        """The report, when every node is there, every shard open, and no move or restoration left.
        A node that Ray has given up is started anew, as whoever runs it would.
        """
        deadline = time.monotonic() + READY_SECONDS_MAX
        while True:
            report = self.report()
            self._restart_the_lost(report)
            if (
                report is not None
                and set(DATA) <= set(report["nodes"])
                and all(shard.get("open") for shard in report["shards"])
                and all(came["done"] for came in report["restorations"])
                and not report["moves"]
            ):
                return report
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cluster did not come back: {report}")
            time.sleep(POLL_SECONDS)

    def _restart_the_lost(self, report: dict[str, Any] | None) -> None:
        now = time.monotonic()
        for name in DATA:
            is_there = self._starts[name].poll() is None
            if is_there and (report is None or name in report["nodes"]):
                self._silent.pop(name, None)
            elif not is_there or now - self._silent.setdefault(name, now) > AWAY_SECONDS:
                self.kill(name)
                self.start(name)
                self.restarts += 1

    def verify(self) -> None:
        """Every store of the nodes keeps its invariants, says `mneme admin verify`."""
        given = [f"--set={name}={value}" for name, value in self.settings.items()]
        for name in DATA:
            if not list(self.data_dir(name).glob("shards/*/data.mdb")):
                continue
            ended = subprocess.run(
                [
                    MNEME, "admin", "verify", "--config", str(ROOT / "configs/test.yaml"),
                    "--set=engine=ray", "--data-dir", str(self.data_dir(name)), *given,
                ],
                capture_output=True,
                text=True,
                cwd=ROOT,
                env=self.environment,
                timeout=READY_SECONDS_MAX,
                check=False,
            )  # fmt: skip
            assert ended.returncode == 0, f"an invariant is violated:\n{ended.stdout}{ended.stderr}"

    def end(self) -> None:
        """End every process of every node, and remove what Ray left."""
        self.http.close()
        for name in (HEAD, *DATA):
            self.kill(name)
        self.service.wait()
        shutil.rmtree(self.rays, ignore_errors=True)


def _s3() -> str:
    """-> a bucket of its own on the object store, which is started once in a process."""
    endpoint = f"http://{STORE}:{STORES_PORT}"
    if not _answers(STORE, STORES_PORT):
        threading.Thread(target=_play_s3, daemon=True).start()
        _until(lambda: _answers(STORE, STORES_PORT), "the object store does not start")
    bucket = f"bucket-{os.urandom(8).hex()}"
    httpx.put(f"{endpoint}/{bucket}", trust_env=False).raise_for_status()
    return bucket


def _play_s3() -> None:
    import io
    import logging

    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_by_one(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))  # may take for ever
        with turn:
            return [b"".join(application(environ, start_response))]

    make_server(
        STORE, STORES_PORT, one_by_one, threaded=True, request_handler=MotoRequestHandler
    ).serve_forever()


def _answers(address: str, port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection((address, port), timeout=1).close()
        return True
    return False


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(POLL_SECONDS)
