"""What the machine and Ray Serve give at best: the floor that every other figure is measured
against, in the same run.

    /noop   the gateway answers by itself
    /hop    one message to a shard actor per request, which answers at once
    /queue   the same through a batching queue: requests that arrive together share a message of Ray
    /socket the same over the service's own Unix socket, which carries the queues of one machine

    python loadtests/floor.py [--seconds 5] [--connections 1 32] [--set key=value …]   -> one JSON
                                                                                       object per
                                                                                       line
    python loadtests/floor.py --stay                                                   -> its
                                                                                       address, then
                                                                                       nothing until
                                                                                       SIGTERM

It is served exactly as the service is (runtime/serve/__init__.py), with a shard that does nothing.
Requests come from wrk where it is installed, otherwise from a small client in a process of its own;
both keep their connections open.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime import cluster  # noqa: E402
from runtime import serve as serving  # noqa: E402
from runtime.api import Call, Plugin, Read, Registry, Reply  # noqa: E402  # noqa: E402
from runtime.cluster import RayShards  # noqa: E402
from runtime.cluster.batching import PICKLE_PROTOCOL, BatchingQueue, pack_calls, unpack_replies  # noqa: E402
from runtime.serve import HEALTH_PATH, neighbour  # noqa: E402
from runtime.settings import Settings  # noqa: E402

MODULE = "loadtests.floor"
BODY = json.dumps({"id": "mem_" + "0" * 32, "content": "x" * 200}).encode()
OPERATION = Read("floor.read", "GET", "/queue", handler=dict, summary="", response=None)


def registry() -> Registry:
    return Registry.build([Plugin("floor", operations=(OPERATION,))])


class IdleShard:
    """Answers every call with the same bytes."""

    def __init__(self, number: int):
        self._number = number

    async def execute(self, call: Call) -> Reply:
        return Reply(200, BODY)

    async def execute_many(self, calls: list[Call], early: object = None) -> list[Reply]:
        return [Reply(200, BODY) for _ in calls]

    async def status(self) -> dict[str, Any]:
        return {"shard": self._number, "open": True}

    async def checkpoint(self) -> None: ...

    async def drain(self) -> None: ...

    async def close(self) -> None: ...


async def open_shard(settings: Settings, number: int) -> IdleShard:
    return IdleShard(number)


class FloorGateway:
    """The four paths, as bare as ASGI allows."""

    def __init__(self, settings: Settings, front_door: bool):
        self._front_door = front_door
        self._handles = cluster.start_shards(
            settings, settings.shards.resolved, "loadtests.floor:open_shard"
        )  # they run
        self._shards = RayShards(settings, registry(), "loadtests.floor:open_shard")
        self._queue = BatchingQueue("read", self._send, self._is_up)

    async def _send(self, message: bytes, early: object) -> bytes:
        return await self._handles[0].execute.remote(message)

    async def _is_up(self, seconds: float) -> bool:
        return True

    def __serve_build_asgi_app__(self) -> Any:
        return neighbour(self._answer, self._front_door)

    async def _answer(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = BODY
        if scope["path"] == HEALTH_PATH:
            await (
                self._shards.status()
            )  # opens the connection to the actor, which takes half a second once
        elif scope["path"] == "/hop":
            body = unpack_replies(
                await self._handles[0].execute.remote(pack_calls([_packed_call()]))
            )[0].body
        elif scope["path"] == "/queue":
            body = (await self._queue.execute(_call())).body
        elif scope["path"] == "/socket":
            body = (await self._shards.execute(_call())).body
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _call() -> Call:
    return Call(
        OPERATION.name,
        0,
        time.time_ns() // 1_000_000,
        os.urandom(32),
        "00000000-0000-0000-0000-000000000000",
    )


def _packed_call() -> bytes:
    return pickle.dumps(_call(), PICKLE_PROTOCOL)


def build(settings: Settings, front_door: bool) -> Any:
    return cluster.application(FloorGateway, settings, front_door)


# --- the measurement ------------------------------------------------------------------------------


def measure(url: str, connections: int, seconds: int) -> dict[str, float]:
    """Requests per second and latency quantiles in milliseconds, of GETs over `connections` open
    connections.
    """
    wrk = shutil.which("wrk")
    if wrk is None:
        finished = subprocess.run(
            [
                sys.executable,
                __file__,
                "--client",
                url,
                "--connections",
                str(connections),
                "--seconds",
                str(seconds),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(finished.stdout)
    finished = subprocess.run(
        [wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url],
        capture_output=True,
        text=True,
        check=True,
    )
    if "Non-2xx" in finished.stdout:
        raise RuntimeError(f"{url} did not answer 200 throughout")
    figures = {"per_second": float(re.search(r"Requests/sec: +([\d.]+)", finished.stdout)[1])}
    units = {"us": 0.001, "ms": 1.0, "s": 1000.0}
    for quantile in ("50", "99"):
        value, unit = re.search(rf"{quantile}% +([\d.]+)(us|ms|s)\b", finished.stdout).groups()
        figures[f"p{quantile}_ms"] = round(float(value) * units[unit], 3)
    return figures


async def _drive(url: str, connections: int, seconds: int) -> dict[str, float]:
    host, port, path = re.fullmatch(r"http://([^:/]+):(\d+)(/.*)", url).groups()
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def one_connection() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while (began := time.perf_counter()) < end:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
            latencies.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(one_connection() for _ in range(connections)))
    latencies.sort()
    quantile = {
        name: round(latencies[int(len(latencies) * share)] * 1000, 3)
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99))
    }
    return {"per_second": len(latencies) / seconds, **quantile}


def _measure_all(base_url: str, connections: list[int], seconds: int) -> None:
    try:
        for path in ("/noop", "/hop", "/queue", "/socket"):
            for count in connections:
                measure(base_url + path, count, 1)  # warm
                figures = measure(base_url + path, count, seconds)
                print(json.dumps({"path": path, "connections": count, **figures}), flush=True)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--stay", action="store_true", help="measure nothing; stay up for whoever does"
    )
    parser.add_argument("--client", metavar="URL", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.client:
        print(json.dumps(asyncio.run(_drive(asked.client, asked.connections[0], asked.seconds))))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings.load(None, [f"data_dir={directory}", "http.port=0", *asked.set])

        def announce(base_url: str) -> None:
            if asked.stay:
                return print(json.dumps({"base_url": base_url}), flush=True)
            threading.Thread(
                target=_measure_all, args=(base_url, asked.connections, asked.seconds), daemon=True
            ).start()

        return serving.serve(settings, announce, module=MODULE)


if __name__ == "__main__":
    sys.exit(main())
