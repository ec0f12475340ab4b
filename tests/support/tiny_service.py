"""The tiny service (tiny_app.py) as a process: started, asked, and ended with everything it
started.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from runtime.serve.run_directory import RunDirectory
from tests.support import ROOT

START_SECONDS = 120
FORGED = {
    "x-mneme-peer": "6.6.6.6",
    "x-mneme-scheme": "ftp",
    "X-Forwarded-For": "6.6.6.6",
    "x-request-timeout-seconds": "1",
}


class Running:
    """A service in a process of its own, from its announcement on."""

    def __init__(self, data_dir: Path, *overrides: str, **variables: str):
        self.data_dir = data_dir
        self._said = data_dir.with_name(f"{data_dir.name}.said").open("w+")
        command = [
            sys.executable,
            "-m",
            "tests.support.tiny_app",
            f"data_dir={data_dir}",
            "http.port=0",
            *overrides,
        ]
        environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=self._said, text=True
        )
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http"), f"the service did not start: {self.said()}"
        self._client = httpx.Client(base_url=self.url, verify=False, timeout=60)

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self._client.get(path, headers=headers)

    def said(self) -> str:
        """What it wrote to standard error until now."""
        return Path(self._said.name).read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def leftovers(self) -> list[psutil.Process]:
        return RunDirectory.of(self.data_dir).processes()


@contextmanager
def running(data_dir: Path, *overrides: str, **variables: str) -> Iterator[Running]:
    service = Running(data_dir, *overrides, **variables)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()
        shutil.rmtree(RunDirectory.of(data_dir).path, ignore_errors=True)


def eventually(true: Callable[[], bool], seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def refused(data_dir: Path, *overrides: str, **variables: str) -> str:
    """What a start that must fail says; it is one line, and the status is 1."""
    command = [sys.executable, "-m", "tests.support.tiny_app", f"data_dir={data_dir}", *overrides]
    environment = {**os.environ, **variables}
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert ended.returncode == 1
    return ended.stderr.strip().splitlines()[-1]


def assert_believes_no_client(service: Running, scheme: str) -> None:
    """The address and the scheme are the connection's own whatever a client says, and the answer
    has one request id.
    """
    seen = service.get("/request", FORGED)
    assert seen.json()["client"] == "127.0.0.1"
    assert seen.json()["scheme"] == scheme
    assert not {"x-mneme-peer", "x-mneme-scheme"} & set(seen.json()["headers"])
    assert len(seen.headers.get_list("x-request-id")) == 1
