"""Real services for tests: `mneme serve` in a process of its own, reached over HTTP, and ended by
its process id.

Whatever a test does, leaving the block ends the service and everything it started.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from runtime.inference.minilm import MiniLm
from runtime.serve.run_directory import RunDirectory
from tests.support import ROOT
from tests.support.warm_start import WarmProcess

MNEME = str(Path(sys.executable).with_name("mneme"))
MODELS = "models"  # of a data directory
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
REQUEST_SECONDS_MAX = 60
UNTHROTTLED = {
    "billing.default_tier": "enterprise",
    "limits.requests_per_minute": 0,
    "limits.endpoint_caps": False,
}
PASSWORD = "correct horse battery staple"


def command(
    data_dir: Path,
    engine: str,
    settings: Mapping[str, Any],
    port: int = 0,
    program: str = MNEME,
) -> list[str]:
    """The command line of a service on this directory, on a free port unless one is named; settings
    by their dotted names. program: `mneme` of another environment.
    """
    given = [f"--set={name}={value}" for name, value in {**UNTHROTTLED, **settings}.items()]
    return [
        program,
        "serve",
        "--engine",
        engine,
        "--config",
        str(ROOT / "configs/test.yaml"),
        "--data-dir",
        str(data_dir),
        "--port",
        str(port),
        *given,
    ]


def refusal(data_dir: Path, engine: str = "local", **settings: Any) -> str:
    """What a start says that must fail: one sentence, and a status that is not 0."""
    ended = subprocess.run(
        command(data_dir, engine, settings),
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        cwd=ROOT,
        check=False,
    )
    assert ended.returncode == 1, (ended.returncode, ended.stdout, ended.stderr)
    (line,) = ended.stderr.strip().splitlines()
    return line


def _begun(
    line: list[str], variables: Mapping[str, str], errors: IO[str]
) -> subprocess.Popen[str] | WarmProcess:
    """Begin warm what is one process of this environment, unless the linker is to load something
    into it first.
    """
    local = line[line.index("--engine") + 1] == "local"
    if local and line[0] == MNEME and "LD_PRELOAD" not in variables:
        return WarmProcess(line[1:], variables, errors)
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=dict(variables)
    )


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


@cache
def _prepared_weights() -> Path:
    """What a first start makes of the model's weights, half of the work of such a start; how it is
    made is for tests/runtime/inference/minilm/test_weights.py.
    """
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory)
    MiniLm.load(directory)
    return directory


class Served:
    """A service that answers, from its announcement on. `errors` is its standard error so far."""

    def __init__(
        self,
        data_dir: Path,
        engine: str = "local",
        settings: Mapping[str, Any] | None = None,
        port: int = 0,
        program: str = MNEME,
        variables: Mapping[str, str] | None = None,
    ):
        self.data_dir, self.engine = data_dir, engine
        self.error_file = data_dir.with_name(data_dir.name + ".stderr")
        if not (data_dir / MODELS).exists():
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copytree(_prepared_weights(), data_dir / MODELS, copy_function=_linked)
        with self.error_file.open("a") as errors:
            self.process = _begun(
                command(data_dir, engine, settings or {}, port, program),
                {**os.environ, **(variables or {})},
                errors,
            )
        announcement = self.process.stdout.readline()
        if " at http" not in announcement:
            self.end()
            raise AssertionError(f"the service did not start: {self.errors}")
        self.url = announcement.split()[-1]
        self.http = httpx.Client(base_url=self.url, timeout=REQUEST_SECONDS_MAX)
        self._accounts = itertools.count(1)

    @property
    def errors(self) -> str:
        return self.error_file.read_text()

    def kill(self) -> None:
        """End the process as a power failure would; nothing in it gets a chance to act."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_SECONDS_MAX)

    def stop(self) -> int:
        """Ask it to stop; -> its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS_MAX)

    def shard_process(self, number: int = 0) -> psutil.Process:
        """The process of a shard actor, on engine ray."""
        (found,) = [
            process for process in self._actors("ShardActor") if self._is_shard(process, number)
        ]
        return found

    def gateway_processes(self) -> list[psutil.Process]:
        """The processes of the gateway replicas, on engine ray."""
        return self._replicas("gateway")

    def model_processes(self) -> list[psutil.Process]:
        """The processes of an embedding model that shards share, on engine ray."""
        return self._replicas("embedder")

    def supervisor_process(self) -> psutil.Process:
        """The process of the supervisor, which an order has started, on engine ray."""
        (found,) = self._actors("SupervisorActor")
        return found

    def _replicas(self, deployment: str) -> list[psutil.Process]:
        return self._actors(f"ServeReplica:[^ ]*:{deployment}")

    def _actors(self, title: str) -> list[psutil.Process]:
        # Ray writes the method behind the name while one runs: "...:embedder.check_health".
        pattern = re.compile(rf":{title}(\.\w+)?$")
        found = []
        for process in RunDirectory.of(self.data_dir).processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if pattern.search(" ".join(process.cmdline()).strip()):
                    found.append(process)
        return found

    def _is_shard(self, process: psutil.Process, number: int) -> bool:
        """Each shard's process holds the lock of its own directory open."""
        lock = str(self.data_dir / "shards" / f"{number:04d}" / "LOCK")
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                if os.readlink(link) == lock:
                    return True
        return False

    def end(self) -> None:
        """Stop it in order if it still runs, and remove what a killed one left behind."""
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        directory = RunDirectory.of(self.data_dir)
        for process in directory.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        shutil.rmtree(directory.path, ignore_errors=True)

    def register(self, email: str | None = None) -> str:
        """A new account's access token."""
        body = {
            "email": email or f"ada-{next(self._accounts)}@example.com",
            "password": PASSWORD,
            "full_name": "Ada Lovelace",
        }
        answer = self.http.post("/v1/auth/register", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["access_token"]


@contextmanager
def served(
    data_dir: Path,
    engine: str = "local",
    variables: Mapping[str, str] | None = None,
    port: int = 0,
    **settings: Any,
) -> Iterator[Served]:
    """A running service; settings are written with two underscores: served(path,
    write__ready_wait_ms=0). variables: of its environment, beside those of this process.
    """
    given = {name.replace("__", "."): value for name, value in settings.items()}
    service = Served(data_dir, engine, given, port, variables=variables)
    try:
        yield service
    finally:
        service.end()
