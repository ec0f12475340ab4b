"""What the measurements share: workloads, a service of their own, and requests sent as fast as they
are answered.

A `Workload` is a file of workloads/: sizes, numbers of connections, and the mix of a realistic
user. A `Service` is `mneme serve` in a process of its own on a directory of its own, ended on every
way out. `measure` sends prepared requests over a number of open connections for a number of
seconds: with wrk where it is installed, so that the generator takes as little of the machine as can
be, otherwise with a small client in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.cli import demo  # noqa: E402
from runtime.limits import START_SECONDS_MAX, STOP_SECONDS_MAX  # noqa: E402
from runtime.serve import RunDirectory, free_port  # noqa: E402

HOST = "127.0.0.1"
WORKLOADS = ROOT / "loadtests" / "workloads"
SCRIPT = ROOT / "loadtests" / "requests.lua"
SECONDS_MAX = 120
CONNECTIONS_MAX = 256
_WIND_DOWN_SECONDS = 30
_BATCH_SECONDS_MAX = 60
_ANSWER_SECONDS_MAX = 10
_SETTING = re.compile(r"MNEME_\w+__\w+")  # a variable that is a setting, as MNEME_DURABILITY__MODE
_PR_SET_PDEATHSIG = 1


class LoadFailed(Exception):
    """A measurement that measured nothing; the message is one sentence."""


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named set of parameters, one JSON file of workloads/.

    memories           stored before reads and searches begin, in batches of `batch`,
                       `batches_in_flight` at a time
    results            that a search asks for
    …_connections      how many connections are open at once, one measurement for each number
    mix                what a realistic user does: task -> weight; the tasks are search, add, read,
                       list, update, delete
    """

    about: str
    memories: int
    batch: int
    batches_in_flight: int
    results: int
    read_connections: tuple[int, ...]
    search_connections: tuple[int, ...]
    write_connections: tuple[int, ...]
    mix: dict[str, int]

    @classmethod
    def named(cls, name: str) -> Workload:
        """The workload of workloads/<name>.json. Raises LoadFailed."""
        try:
            return msgspec.json.decode((WORKLOADS / f"{name}.json").read_bytes(), type=cls)
        except FileNotFoundError:
            known = ", ".join(sorted(path.stem for path in WORKLOADS.glob("*.json")))
            raise LoadFailed(f"There is no workload {name!r}; there are {known}.") from None
        except msgspec.MsgspecError as wrong:
            raise LoadFailed(f"The workload {name!r} is not well formed: {wrong}.") from None


class Figures(msgspec.Struct):
    """One measurement. `unexpected` answers had another status than asked for."""

    per_second: float
    p50_ms: float
    p99_ms: float
    unexpected: int = 0


# --- a service ------------------------------------------------------------------------------------


@contextmanager
def ended_with_us(
    command: list[str], *, output: Path, cwd: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is asked to end when the block does, and by the kernel when this process is
    killed.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MNEME_")
    }
    with output.open("ab") as file:
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=file,
            cwd=cwd,
            env=environment,
            preexec_fn=_end_with_parent,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX * 2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Service:
    """A running `mneme serve` without rate limits, and one account of it, a new one unless its
    e-mail says otherwise.
    """

    process_id: int | None = None  # of `mneme serve`, where it was started here

    def __init__(self, base_url: str, data_dir: Path, email: str | None = None):
        self.base_url = base_url
        self.data_dir = data_dir
        email = email or f"load-{os.getpid()}-{time.time_ns()}@example.com"
        self.api_key = demo.register(base_url, email, "a long enough password", ["read", "write"])

    @classmethod
    @contextmanager
    def started(
        cls, engine: str, data_dir: Path, overrides: Iterable[str] = (), checkout: Path = ROOT
    ) -> Iterator[Service]:
        """Start it on `data_dir` and wait until it is healthy; another checkout's with its own
        .venv. Raises LoadFailed with its last words otherwise, and where the environment has
        settings: none of them reaches what is measured here, so figures would be taken for theirs.
        """
        if unheard := sorted(name for name in os.environ if _SETTING.match(name)):
            raise LoadFailed(
                f"{', '.join(unheard)} would not be heard: give settings as --set KEY=VALUE."
            )
        port = free_port(HOST)
        data_dir.mkdir(parents=True, exist_ok=True)
        output = data_dir / "serve.out"
        serve = [
            sys.executable if checkout == ROOT else str(checkout / ".venv" / "bin" / "python"),
            "-c",
            "import sys; from runtime.cli import main; sys.exit(main())",
            "serve",
        ]
        where = [
            "--config",
            str(checkout / "configs" / "local.yaml"),
            "--data-dir",
            str(data_dir),
            "--host",
            HOST,
            "--port",
            str(port),
        ]
        options = [part for override in overrides for part in ("--set", override)]
        try:
            with ended_with_us(
                [*serve, *where, "--engine", engine, *options], output=output, cwd=checkout
            ) as process:
                wait_until_healthy(port, process, output)
                service = cls(f"http://{HOST}:{port}", data_dir)
                service.process_id = process.pid
                yield service
        finally:
            for left in RunDirectory.of(data_dir).processes():
                left.kill()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}

    def ingest(
        self, memories: list[dict[str, Any]], batch: int, in_flight: int
    ) -> tuple[Figures, list[str]]:
        """Store the memories in batches, searchable when each is answered; -> (memories per second
        and milliseconds per batch, ids).
        """
        batches = [memories[start : start + batch] for start in range(0, len(memories), batch)]
        begun = time.perf_counter()
        with ThreadPoolExecutor(in_flight) as senders:
            answers = list(senders.map(self._send_batch, batches))
        rate = len(memories) / (time.perf_counter() - begun)
        taken = sorted(milliseconds for milliseconds, _ in answers)
        return Figures(rate, quantile(taken, 0.5), quantile(taken, 0.99)), [
            each for _, ids in answers for each in ids
        ]

    def _send_batch(self, batch: list[dict[str, Any]]) -> tuple[float, list[str]]:
        body = json.dumps({"memories": batch, "wait_for_index": True})
        begun = time.perf_counter()
        connection = http.client.HTTPConnection(
            self.base_url.removeprefix("http://"), timeout=_BATCH_SECONDS_MAX
        )
        try:
            connection.request("POST", "/v1/memories/batch", body, self.headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 201:
            raise LoadFailed(f"A batch was answered {answer.status}: {content[:200]!r}.")
        return (time.perf_counter() - begun) * 1000, json.loads(content)["memory_ids"]


def figures(base_url: str, name: str) -> dict[str, float]:
    """The samples of one metric of a service: by their labels."""
    with urllib.request.urlopen(f"{base_url}/metrics", timeout=_ANSWER_SECONDS_MAX) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        " ".join(sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def settle(base_url: str, seconds_max: float) -> float:
    """Wait until no job of the service waits, or so long; -> seconds."""
    began = time.monotonic()
    while sum(figures(base_url, "mneme_shard_jobs_waiting").values()):
        if time.monotonic() - began > seconds_max:
            break
        time.sleep(1)
    return time.monotonic() - began


def wait_until_healthy(
    port: int, process: subprocess.Popen[bytes], output: Path, path: str = "/v1/health"
) -> None:
    """Return when a GET of that path is answered 200. Raises LoadFailed with the process's last
    words.
    """
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection(HOST, port, timeout=5)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass  # nobody listens yet
        finally:
            connection.close()
        time.sleep(0.1)
    raise LoadFailed(
        f"The service did not start: {output.read_text(errors='replace')[-300:].strip()}"
    )


# --- requests -------------------------------------------------------------------------------------


class Requests:
    """Prepared requests, sent in turn, each measurement going on where the last one stopped. Use it
    as a context manager.

    lines   (path, body) of each request; no body makes it a GET, a body a POST
    status  that every answer has to have; None where wrk need not look, which spares it work
    """

    def __init__(
        self,
        base_url: str,
        headers: dict[str, str],
        lines: Iterable[tuple[str, str]],
        status: int | None = None,
    ):
        self._base_url, self._headers, self._status = base_url, headers, status
        self._next = 0
        with tempfile.NamedTemporaryFile("w", suffix=".requests", delete=False) as file:
            file.writelines(f"{path}\t{body}\n" for path, body in lines)
        self._file = Path(file.name)

    def __enter__(self) -> Requests:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.unlink()

    def measure(self, connections: int, seconds: int) -> Figures:
        """Send them over so many connections for so long. Raises LoadFailed when an answer is
        missing or has another status.
        """
        connections, seconds = min(connections, CONNECTIONS_MAX), min(seconds, SECONDS_MAX)
        wrk = shutil.which("wrk")
        expected = "-" if self._status is None else str(self._status)
        if wrk is None:
            sender = [
                sys.executable,
                __file__,
                f"--connections={connections}",
                f"--seconds={seconds}",
            ]
        else:
            sender = [
                wrk,
                "-t1",
                f"-c{connections}",
                f"-d{seconds}s",
                f"--timeout={_WIND_DOWN_SECONDS}s",
                "--latency",
                "-s",
                str(SCRIPT),
            ]
        headers = [
            part for name, value in self._headers.items() for part in ("-H", f"{name}: {value}")
        ]
        command = [
            *sender,
            *headers,
            self._base_url,
            "--",
            str(self._file),
            str(self._next),
            expected,
        ]
        finished = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=seconds + _WIND_DOWN_SECONDS,
            check=False,
        )
        reported = re.search(r"^figures (.*)$", finished.stdout, re.MULTILINE)
        if reported is None:
            raise LoadFailed(
                f"The load generator failed: {(finished.stderr or finished.stdout)[-300:].strip()}"
            )
        found = json.loads(reported[1])
        self._next += found["requests"] + connections
        if found["broken"] or found["unexpected"] or not found["requests"]:
            raise LoadFailed(
                f"Of {found['requests']} answers {found['unexpected']} had another status, and "
                f"{found['broken']} never came."
            )
        return Figures(found["requests"] / found["seconds"], found["p50_ms"], found["p99_ms"])


def quantile(ordered: list[float], share: float) -> float:
    return round(ordered[int((len(ordered) - 1) * share)], 3)


# --- the client where wrk is missing --------------------------------------------------------------


async def _send_all(options: argparse.Namespace) -> dict[str, float]:
    """What requests.lua does, in one asyncio process."""
    host, port = re.fullmatch(r"http://([^:/]+):(\d+)", options.url).groups()
    head = "".join(f"{header}\r\n" for header in ("Host: " + host, *options.H))
    lines = Path(options.file).read_text().splitlines()
    turn = itertools.count(options.first)
    expected = options.status.encode()
    latencies: list[float] = []
    tally = {"unexpected": 0, "broken": 0}
    begun = time.perf_counter()

    async def one_connection() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while (sent := time.perf_counter()) < begun + options.seconds:
            path, body = lines[next(turn) % len(lines)].split("\t", 1)
            content = body.encode()
            writer.write(
                (
                    f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\n{head}Content-Length: "
                    f"{len(content)}\r\n\r\n"
                ).encode()
                + content
            )
            answer = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", answer)[1]))
            latencies.append(time.perf_counter() - sent)
            status = answer[9:12]
            tally["unexpected"] += status != expected if expected != b"-" else status[:1] != b"2"
        writer.close()

    ended = await asyncio.gather(
        *(one_connection() for _ in range(options.connections)), return_exceptions=True
    )
    tally["broken"] = sum(isinstance(end, BaseException) for end in ended)
    seconds = time.perf_counter() - begun
    ordered = sorted(latency * 1000 for latency in latencies) or [0.0]
    return {
        "requests": len(latencies),
        "seconds": seconds,
        "p50_ms": quantile(ordered, 0.5),
        "p99_ms": quantile(ordered, 0.99),
        **tally,
    }


def main() -> None:
    """The client's command line, which `Requests.measure` writes; its arguments are wrk's as far as
    they mean the same.
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("url")
    parser.add_argument("file")
    parser.add_argument("first", type=int)
    parser.add_argument("status")
    print("figures " + json.dumps(asyncio.run(_send_all(parser.parse_args()))))


if __name__ == "__main__":
    main()
