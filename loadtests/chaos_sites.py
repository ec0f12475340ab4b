"""What loadtests/chaos.py breaks: the service on one machine, or on a Ray cluster of several, with
the ways in which its parts fail.

A site's `faults` are by their names: functions that take some seconds and come back when the fault
is over, though not what it did. A fault `of a move` happens while slots move, others now and then.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import httpx
import psutil

from loadtests.network import STORE, Network
from loadtests.nodes_apart import DATA, HEAD, LEASE_SECONDS, STARTS_MAX, NodesApart
from runtime.serve import RunDirectory
from tests.support.served import MNEME, ROOT, Served

SHARDS = 2
OF_A_MOVE = ("supervisor", "supervisor-stopped", "node-stopped")
STOPPED_SECONDS_MAX = 8.0  # of one process
CUT_SECONDS_MAX = 4 * LEASE_SECONDS
ZOMBIE_SECONDS_MAX = 3.0
VERIFY_SECONDS_MAX = 600
READY_SECONDS_MAX = 600
POLL_SECONDS = 0.2

KINDS = {
    "local": ("service",),
    "ray": (
        "service",
        "shard",
        "shard-stopped",
        "reader",
        "reader-stopped",
        "gateway",
        "supervisor",
        "supervisor-stopped",
    ),
    "nodes": (
        "shard",
        "shard-stopped",
        "gateway",
        "supervisor",
        "supervisor-stopped",
        "node-back",
        "node-lost",
        "node-stopped",
        "cut-objects",
        "cut-head",
        "cut-nodes",
        "cut-off",
    ),
}


class Site(Protocol):
    """url: where its clients ask; takes_over: whether a shard may lose what it has not stored."""

    url: str
    takes_over: bool
    faults: dict[str, Callable[[], None]]

    def transport(self) -> httpx.AsyncBaseTransport: ...
    def register(self, email: str) -> str: ...
    def order_move(self, slots: list[int], shard: int) -> None: ...
    def until_whole(self) -> None: ...
    def verify(self) -> None: ...
    def end(self) -> None: ...


class OneMachine:
    """`mneme serve` with two shards, on a Ray of its own, with a reader process for each, or in one
    process.
    """

    takes_over = False

    def __init__(self, data_dir: Path, engine: str, chance: random.Random):
        self.data_dir, self.engine, self._chance = data_dir, engine, chance
        self._tokens: list[str] = []
        self._service = self._served()
        self.url = self._service.url
        self.faults = {
            "service": self._kill_all,
            "shard": lambda: killed(self._shard()),
            "shard-stopped": lambda: stopped(self._shard(), chance),
            "reader": lambda: killed(self._reader()),
            "reader-stopped": lambda: stopped(self._reader(), chance),
            "gateway": lambda: killed(self._one("ServeReplica")),
            "supervisor": lambda: killed(self._one("SupervisorActor")),
            "supervisor-stopped": lambda: stopped(self._one("SupervisorActor"), chance),
        }

    def _served(self, port: int = 0, attempts: int = STARTS_MAX) -> Served:
        try:
            settings = {"shards.count": SHARDS, "shards.readers": 1}
            return Served(self.data_dir, self.engine, settings, port)
        except AssertionError as refused:
            if attempts == 1:
                raise
            print(f"it is started once more: {refused}", flush=True)
            return self._served(port, attempts - 1)

    def transport(self) -> httpx.AsyncBaseTransport:
        return httpx.AsyncHTTPTransport()

    def register(self, email: str) -> str:
        token = self._service.register(email)
        self._tokens.append(token)
        return token

    def _shard(self) -> psutil.Process:
        return self._one("ShardActor", SHARDS)

    def _reader(self) -> psutil.Process:
        """One of those that a heavy read of each account has begun, unless they were there."""
        for token in self._tokens:
            with contextlib.suppress(httpx.TransportError):
                self._service.http.get(
                    "/v1/search/similar/none", headers={"Authorization": f"Bearer {token}"}
                )
        return self._one("reader_process")

    def _one(self, kind: str, count: int = 1) -> psutil.Process:
        running = RunDirectory.of(self.data_dir).processes
        return self._chance.choice(awaited(lambda: of_kind(kind, running()), count))

    def _kill_all(self) -> None:
        """The service and, on Ray, everything it started, as a power failure would; then it is
        started anew.
        """
        processes = RunDirectory.of(self.data_dir).processes()
        self._service.kill()
        for process in processes:
            killed(process)
        self._service.end()
        self._service = self._served(httpx.URL(self.url).port or 0)

    @property
    def _operator(self) -> dict[str, str]:
        token = (self.data_dir / "secrets/operator_token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def order_move(self, slots: list[int], shard: int) -> None:
        with contextlib.suppress(httpx.TransportError):
            self._service.http.post(
                "/v1/internal/cluster/moves",
                json={"slots": slots, "shard": shard},
                headers=self._operator,
            )

    def until_whole(self) -> None:
        """Every shard is open and no slot moves; whoever looks wakes the supervisor."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while True:
            report: dict[str, Any] = {}
            with contextlib.suppress(httpx.TransportError):
                answer = self._service.http.get("/v1/internal/cluster", headers=self._operator)
                report = answer.json() if answer.is_success else {}
            if report and not report["moves"] and all(each["open"] for each in report["shards"]):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"the service did not come back: {report}")
            time.sleep(POLL_SECONDS)

    def verify(self) -> None:
        ended = subprocess.run(
            [
                MNEME, "admin", "verify", "--config", str(ROOT / "configs/test.yaml"),
                "--data-dir", str(self.data_dir),
            ],
            capture_output=True,
            text=True,
            timeout=VERIFY_SECONDS_MAX,
            cwd=ROOT,
            check=False,
        )  # fmt: skip
        assert ended.returncode == 0, f"an invariant is violated:\n{ended.stdout}{ended.stderr}"

    def end(self) -> None:
        self._service.end()


class SeveralMachines:
    """The service on a Ray cluster of machines of a network of their own, in `replicated` mode."""

    takes_over = True

    def __init__(self, directory: Path, network: Network, chance: random.Random):
        self._chance, self._network = chance, network
        self._nodes = NodesApart(directory, network, SHARDS + 1)
        self.url = self._nodes.url
        self.register, self.until_whole = self._nodes.register, self._nodes.until_whole
        self.verify, self.end = self._nodes.verify, self._nodes.end
        self.faults = {
            "shard": lambda: killed(self._one("ShardActor")),
            "shard-stopped": lambda: stopped(self._one("ShardActor"), chance),
            "gateway": lambda: killed(self._one("ServeReplica")),
            "supervisor": lambda: killed(self._one("SupervisorActor")),
            "supervisor-stopped": lambda: stopped(self._one("SupervisorActor"), chance),
            "node-back": lambda: self._lose(disk=False),
            "node-lost": lambda: self._lose(disk=True),
            "node-stopped": self._stop_node,
            "cut-objects": lambda: self._cut(chance.choice(HEAD + DATA), STORE),
            "cut-head": lambda: self._cut(chance.choice(DATA), HEAD),
            "cut-nodes": lambda: self._cut(*chance.sample(DATA, 2)),
            "cut-off": lambda: self._cut(name := chance.choice(DATA), *self._others(name), STORE),
        }

    def transport(self) -> httpx.AsyncBaseTransport:
        return self._nodes.transport(self._chance)

    def order_move(self, slots: list[int], shard: int) -> None:
        self._nodes.order_move(slots, shard)

    def _others(self, name: str) -> str:
        return (HEAD + DATA).replace(name, "")

    def _one(self, kind: str) -> psutil.Process:
        return self._chance.choice(awaited(lambda: self._nodes.processes(kind)))

    def _lose(self, *, disk: bool) -> None:
        name = self._chance.choice(DATA)
        self._nodes.kill(name)
        if disk:
            self._nodes.lose_disk(name)
        time.sleep(self._chance.choice((0.0, 2 * LEASE_SECONDS)))
        self._nodes.start(name)

    def _stop_node(self) -> None:
        """The supervisor's node where it has no head's duties; its raylet wakes last, so that for a
        while nobody ends what was taken over meanwhile.
        """
        with_supervisor = [name for name in DATA if self._nodes.on(name, "SupervisorActor")]
        name = self._chance.choice(with_supervisor or list(DATA))
        self._nodes.signal(name, signal.SIGSTOP)
        time.sleep(self._chance.uniform(1.0, CUT_SECONDS_MAX))
        self._nodes.signal(name, signal.SIGCONT, but="raylet")
        time.sleep(self._chance.uniform(0.0, ZOMBIE_SECONDS_MAX))
        self._nodes.signal(name, signal.SIGCONT)

    def _cut(self, name: str, *others: str) -> None:
        for other in others:
            self._network.cut(name, other)
        time.sleep(self._chance.uniform(1.0, CUT_SECONDS_MAX))
        self._network.mend()


def of_kind(kind: str, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those of a kind: ShardActor, reader_process, ServeReplica, SupervisorActor."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if kind in process.name() + " ".join(process.cmdline()):
                found.append(process)
    return found


def awaited(find: Callable[[], list[psutil.Process]], count: int = 1) -> list[psutil.Process]:
    """So many processes, as soon as they are there. Raises TimeoutError."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while len(found := find()) < count:
        if time.monotonic() > deadline:
            raise TimeoutError("what is to fail is not there")
        time.sleep(POLL_SECONDS)
    return found


def killed(process: psutil.Process) -> None:
    """End a process, unless it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def stopped(process: psutil.Process, chance: random.Random) -> None:
    """Stop a process for a while, and have it go on."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.suspend()
        time.sleep(chance.uniform(0.5, STOPPED_SECONDS_MAX))
        process.resume()
