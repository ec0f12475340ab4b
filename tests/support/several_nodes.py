"""A Ray cluster of several nodes on this machine, each with a data directory of its own, and the
service on it.

A node is a raylet with its workers, and is killed as a whole. Everything that was started is ended
by its process id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil

from runtime.settings import NODE_VARIABLE
from tests.support import ROOT
from tests.support.served import MNEME, PASSWORD, UNTHROTTLED

NAME = "harbour"
OPERATOR = "mem_op_" + "7" * 64
SECRETS = {
    "secrets.service": "11" * 32,
    "secrets.pepper": "22" * 32,
    "secrets.operator_token": OPERATOR,
}
RAY = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_worker_niceness": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray finds out within two seconds that a node has gone, instead of fifteen.
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}
STOP_SECONDS_MAX = 60
NODE_MEMORY_BYTES = 80_000_000


class Node:
    """One node: its name, its data directory, its raylet."""

    def __init__(self, cluster: Any, name: str, data_dir: Path):
        self.name, self.data_dir = name, data_dir
        data_dir.mkdir(parents=True, exist_ok=True)
        options = {
            "num_cpus": 16,
            "object_store_memory": NODE_MEMORY_BYTES,
            "labels": {"mneme-node": name},
        }
        self.ray_node = cluster.add_node(
            **options, include_dashboard=False, env_vars={NODE_VARIABLE: str(data_dir)}
        )
        (self.raylet,) = [each.process.pid for each in self.ray_node.all_processes["raylet"]]

    def kill(self) -> None:
        """End the raylet and every process below it as a power failure would."""
        raylet = psutil.Process(self.raylet)
        for process in (raylet, *raylet.children(recursive=True)):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue


class SeveralNodes:
    """The cluster and `mneme serve` on it. The first node is the head, which Ray cannot lose."""

    def __init__(self, directory: Path, names: str, **settings: Any):
        from ray.cluster_utils import Cluster

        self.directory = directory
        self.before = {name: os.environ.get(name) for name in RAY}
        os.environ.update(RAY)
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.process: subprocess.Popen[str] | None = None
        self.settings = {
            **UNTHROTTLED,
            **SECRETS,
            "cluster.name": NAME,
            "object_store.url": f"file://{directory}/objects",
            **settings,
        }
        try:
            for name in names:
                self.add(name)
            self._serve()
        except BaseException:
            self.end()
            raise

    def add(self, name: str) -> Node:
        """A node joins, or comes back with the data directory that it had."""
        node = self.nodes[name] = Node(self.cluster, name, self.directory / f"node-{name}")
        return node

    def _serve(self) -> None:
        head = next(iter(self.nodes.values()))
        given = [f"--set={name}={value}" for name, value in self.settings.items()]
        config = [
            "--config",
            str(ROOT / "configs/test.yaml"),
            "--data-dir",
            str(head.data_dir),
            "--port",
            "0",
        ]
        with (self.directory / "stderr").open("w") as errors:
            self.process = subprocess.Popen(
                [
                    MNEME,
                    "serve",
                    "--engine",
                    "ray",
                    "--address",
                    self.cluster.address,
                    *config,
                    *given,
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
            )
        announcement = self.process.stdout.readline()
        assert " at http" in announcement, (self.directory / "stderr").read_text()
        self.url = announcement.split()[-1]
        self.http = httpx.Client(base_url=self.url, timeout=60)

    def report(self) -> dict[str, Any]:
        answer = self._reported()
        answer.raise_for_status()
        return answer.json()

    def story(self) -> str:
        """What the service tells of itself, for who has to find out what went wrong."""
        return f"{self._reported().text}\n{(self.directory / 'stderr').read_text()[-10_000:]}"

    def _reported(self) -> httpx.Response:
        return self.http.get(
            "/v1/internal/cluster", headers={"Authorization": f"Bearer {OPERATOR}"}
        )

    def kill_supervisor(self) -> None:
        """End its process, wherever it is."""
        families = [process for node in self.nodes.values() for process in _family(node.raylet)]
        for process in families:
            with contextlib.suppress(psutil.NoSuchProcess):
                if "SupervisorActor" in process.name() + " ".join(process.cmdline()):
                    process.kill()

    def register(self, email: str) -> str:
        """A new account's access token."""
        answer = self.http.post(
            "/v1/auth/register",
            json={"email": email, "password": PASSWORD, "full_name": "Ada Lovelace"},
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["access_token"]

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
        families = [family for node in self.nodes.values() for family in _family(node.raylet)]
        session = self.cluster.head_node and self.cluster.head_node.get_session_dir_path()
        self.cluster.shutdown()
        for process in families:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if session:
            shutil.rmtree(session, ignore_errors=True)
        for name, value in self.before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _family(pid: int) -> list[psutil.Process]:
    try:
        return [*(process := psutil.Process(pid)).children(recursive=True), process]
    except psutil.NoSuchProcess:
        return []


@contextlib.contextmanager
def several_nodes(directory: Path, names: str, **settings: Any) -> Iterator[SeveralNodes]:
    """Nodes of these one-letter names; settings by their dotted names with two underscores for a
    dot.
    """
    service = SeveralNodes(
        directory, names, **{name.replace("__", "."): value for name, value in settings.items()}
    )
    try:
        yield service
    finally:
        service.end()
