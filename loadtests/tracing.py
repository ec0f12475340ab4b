"""What traces cost a read: the same reads of a service that records none and of one that records
every request, and of another checkout where one is named.

    python loadtests/tracing.py [--engine local|ray] [--rounds 60] [--requests 100] [--base DIR]

    look-up  one memory by its id
    search   the ten best for a question, each time another one
    base     the checkout at DIR, such as one from before there were traces
    off, on  no collector is named; every span goes to one, which this process is

Each service is `mneme serve` in a process of its own, asked over HTTP by one client, in turns, a
round each in an order that alternates, so that whatever else the machine does falls on all. What
is measured is the processor time of the service's threads, those that send the spans among them,
from /proc/PID/task/*/schedstat: with engine local of its one process, on Ray of the front door,
the gateway and the shard, which a read goes through, without what Ray does beside. Printed are
medians over the rounds, microseconds a request, and medians of the ratios of rounds that were
asked one after the other, with the quarters that the middle half of them lies between.

    python loadtests/tracing.py --calls

measures what a look-up and a search call of runtime/tracing, and nothing else, in microseconds of
this thread's processor time, where nothing is recorded: the least and the median of nine rounds.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime import tracing  # noqa: E402

MEMORIES = 100
WARM_UP_ROUNDS = 5
CALLS = 3_000
HEADERS = [(b"host", b"127.0.0.1"), (b"accept", b"*/*"), (b"authorization", b"Bearer x")]
ON_THE_WAY = ("ray::ServeReplica:", "ray::ShardActor", "haproxy")
STOP_SECONDS_MAX = 60
START = "import sys; from runtime.cli import main; sys.exit(main())"


class Side:
    """A service of one checkout, an account of it, and what its rounds cost."""

    def __init__(self, checkout: Path, engine: str, data_dir: Path, variables: dict[str, str]):
        self.rounds: dict[str, list[float]] = {"look-up": [], "search": []}
        self._engine, self._processes = engine, list[int]()
        where = ["--engine", engine, "--port", "0", "--data-dir", str(data_dir)]
        config = ["--config", str(checkout / "configs/local.yaml")]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, "serve", *where, *config],
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": f"{checkout}:{checkout}/runtime/author", **variables},
        )
        assert self._process.stdout is not None
        announced = self._process.stdout.readline()
        self._connection = http.client.HTTPConnection(announced.rpartition("//")[2].strip())
        self._headers = {"Content-Type": "application/json"}
        account = {"email": "a@example.com", "password": secrets.token_hex(), "full_name": "Ada"}
        token = self._ask("POST", "/v1/auth/register", account)["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"
        texts = [f"Parcel {number} went to depot {number % 7}." for number in range(MEMORIES)]
        batch = {"memories": [{"content": text} for text in texts], "wait_for_index": True}
        self._ids = self._ask("POST", "/v1/memories/batch", batch)["memory_ids"]

    def round(self, requests: int) -> None:
        self._connection.close()  # the service may have, while the others were asked
        self._processes = self._on_the_way()
        begun = self._nanoseconds()
        for number in range(requests):
            self._ask("GET", f"/v1/memories/{self._ids[number % MEMORIES]}", None)
        looked_up = self._nanoseconds()
        for _ in range(requests):
            question = f"Where did parcel {secrets.randbelow(10**9)} go?"
            self._ask("POST", "/v1/search", {"query": question})
        self.rounds["look-up"].append((looked_up - begun) / requests / 1000)
        self.rounds["search"].append((self._nanoseconds() - looked_up) / requests / 1000)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(STOP_SECONDS_MAX)

    def _ask(self, method: str, path: str, body: Any) -> Any:
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, self._headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status not in (200, 201):
            raise SystemExit(f"{path} was answered {answer.status}: {said[:200]!r}.")
        return json.loads(said)

    def _on_the_way(self) -> list[int]:
        """The processes that a read goes through."""
        if self._engine == "local":
            return [self._process.pid]
        family = psutil.Process(self._process.pid).children(recursive=True)
        called = {each.pid: _called(each) for each in family}
        for name in ON_THE_WAY:
            if not any(each.startswith(name) for each in called.values()):
                raise SystemExit(f"There is no {name} among {', '.join(called.values())}.")
        return [pid for pid, name in called.items() if name.startswith(ON_THE_WAY)]

    def _nanoseconds(self) -> int:
        tasks = (Path(f"/proc/{pid}/task").glob("*/schedstat") for pid in self._processes)
        return sum(int(task.read_text().split()[0]) for task in itertools.chain(*tasks))


def _called(process: psutil.Process) -> str:
    """What Ray calls a process, or the name of its program."""
    try:
        (first, *_) = process.cmdline() or [""]
    except psutil.NoSuchProcess:
        return ""
    return first.rpartition("/")[2]


@contextmanager
def collector() -> Iterator[str]:
    """The URL of one that takes everything and looks at nothing."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def measured(engine: str, rounds: int, requests: int, base: Path | None) -> dict[str, Any]:
    with ExitStack() as opened:
        directory = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="mneme-traces-")))
        told = {"OTEL_EXPORTER_OTLP_ENDPOINT": opened.enter_context(collector())}
        checkouts = {"off": (ROOT, {}), "on": (ROOT, told)}
        if base is not None:
            checkouts = {"base": (base.resolve(), {}), **checkouts}
        sides = {}
        for name, (checkout, variables) in checkouts.items():
            sides[name] = Side(checkout, engine, directory / name, variables)
            opened.callback(sides[name].stop)
        for number in range(rounds + WARM_UP_ROUNDS):
            for side in list(sides.values())[:: 1 if number % 2 else -1]:
                side.round(requests)
    figures: dict[str, Any] = {}
    for kind in ("look-up", "search"):
        taken = {name: side.rounds[kind][WARM_UP_ROUNDS:] for name, side in sides.items()}
        figures[kind] = {f"{name}_us": round(statistics.median(t), 1) for name, t in taken.items()}
        for less, more in itertools.pairwise(taken):
            ratios = [b / a for a, b in zip(taken[less], taken[more], strict=True)]
            first, middle, third = statistics.quantiles(ratios, n=4)
            figures[kind][f"{more}/{less}"] = round(middle, 4)
            figures[kind][f"{more}/{less} quarters"] = [round(first, 4), round(third, 4)]
    return figures


def calls() -> dict[str, Any]:
    """What the spans of one read cost where nothing is recorded."""

    def looked_up() -> None:
        with tracing.request(HEADERS):
            with tracing.resumed("", "shard", "memories.get", shard=0):
                tracing.carried()
            tracing.answered("memories.get", "GET", 200, "req_1")

    def searched() -> None:
        with tracing.request(HEADERS):
            with tracing.resumed("", "shard", "search.search", shard=0):
                tracing.carried()
                with tracing.part("model", "embedder", texts=1):
                    pass
                with tracing.part("read", "search.search"):
                    pass
            tracing.answered("search.search", "POST", 200, "req_1")

    def microseconds(read: Callable[[], None]) -> float:
        begun = time.thread_time()
        for _ in range(CALLS):
            read()
        return (time.thread_time() - begun) / CALLS * 1e6

    taken = {
        name: [microseconds(read) for _ in range(9)]
        for name, read in (("look-up", looked_up), ("search", searched))
    }
    return {
        name: {"min_us": round(min(each), 2), "median_us": round(statistics.median(each), 2)}
        for name, each in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What traces cost a read.")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--rounds", type=int, default=60, help="of each side (%(default)s)")
    parser.add_argument("--requests", type=int, default=100, help="of a round (%(default)s)")
    parser.add_argument("--base", type=Path, help="another checkout to compare with")
    parser.add_argument("--calls", action="store_true", help="the calls alone, without a service")
    given = parser.parse_args()
    given_sides = given.engine, given.rounds, given.requests, given.base
    figures = calls() if given.calls else measured(*given_sides)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
