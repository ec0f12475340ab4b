"""The service beside its floor, in one run on one machine: rates, latencies, and the ratios the
goals are stated in.

    python loadtests/compare.py [--seconds 4] [--engine ray|local] [--only read search …]
    [--workload standard] [--json FILE]

    floor     loadtests/floor.py: Ray Serve with an actor that does nothing, before and after the
              service; the mean of both counts, since a shared machine drifts
    ingest    an account is filled by batches; a batch is answered when searches find all of it
    read      one memory by its id      search   the ten best for a question, each time a new one
    write     one short fact, answered 201 after the fsync and after searches find it
    embedder  the model alone over the same texts, with as many threads as the service gives it and
              with one per core

Everything is on 127.0.0.1 and two cores share generator and service, so ratios mean more than
rates. The service runs with configs/local.yaml on a new directory. Exit status 1 when a ratio
misses what it must reach.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests import conversations
from loadtests.embedder import texts_per_second
from loadtests.load import ROOT, Figures, LoadFailed, Requests, Service, Workload
from runtime.inference import MiniLmEmbedder
from serve_app import Settings

PARTS = ("floor", "ingest", "read", "search", "write", "embedder")
FLOOR_CONNECTIONS = ("1", "8", "32")
FLOOR_SECONDS_MAX = 240
WARM_SECONDS = 1
REQUESTS_PER_SECOND_MAX = 5_000  # how many different requests are prepared
EMBEDDER_TEXTS = 2_000
CORES = os.cpu_count() or 1

Measured = dict[str, Figures]


@dataclass(frozen=True, slots=True)
class Goal:
    """measure / against has to reach `must`; `goal` is what we want. must 0: shown for comparison
    only.
    """

    measure: str
    against: str
    must: float = 0.0
    goal: float = 0.0


GOALS = (
    Goal("read c=32", "queue c=32", 0.6, 0.9),
    Goal("search c=8", "queue c=8", 0.25, 0.5),
    Goal("search c=8", "queue c=32"),
    Goal("write c=32", "hop c=32", 0.3, 0.6),
    Goal("write c=32", "queue c=32"),
    Goal("ingest", f"embedder, threads={CORES}", 0.6, 0.85),
    Goal("ingest", "embedder, threads as in the service"),
)


# --- the parts ------------------------------------------------------------------------------------


def floor(seconds: int) -> Iterator[tuple[str, Figures]]:
    """One run of floor.py; -> its measurements as they come."""
    command = [
        sys.executable,
        str(ROOT / "loadtests" / "floor.py"),
        "--seconds",
        str(seconds),
        "--connections",
        *FLOOR_CONNECTIONS,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + FLOOR_SECONDS_MAX
    try:
        for line in process.stdout:
            found = json.loads(line)
            yield (
                f"{found['path'].strip('/')} c={found['connections']}",
                Figures(found["per_second"], found["p50_ms"], found["p99_ms"]),
            )
            if time.monotonic() > deadline:
                raise LoadFailed("The floor takes too long to measure.")
    finally:
        process.terminate()
        process.wait()
    if process.returncode:
        raise LoadFailed("The floor could not be measured; run loadtests/floor.py to see why.")


def service(
    engine: str,
    data_dir: Path,
    overrides: list[str],
    workload: Workload,
    parts: set[str],
    seconds: int,
) -> Iterator[tuple[str, Figures]]:
    """Fill one account, then read, search and write in it."""
    with Service.started(engine, data_dir, overrides) as running:
        stored = conversations.memories(workload.memories)
        figures, ids = running.ingest(stored, workload.batch, workload.batches_in_flight)
        yield "ingest", figures
        count = REQUESTS_PER_SECOND_MAX * (seconds + WARM_SECONDS)
        plans = {
            "read": (
                workload.read_connections,
                [(f"/v1/memories/{each}", "") for each in ids],
                None,
            ),
            "search": (workload.search_connections, searches(count, workload.results), None),
            "write": (
                workload.write_connections,
                writes(count * len(workload.write_connections)),
                201,
            ),
        }
        for part, (connections, lines, status) in plans.items():
            if part not in parts:
                continue
            with Requests(running.base_url, running.headers, lines, status) as requests:
                for number in connections:
                    requests.measure(number, WARM_SECONDS)
                    yield f"{part} c={number}", requests.measure(number, seconds)


def searches(count: int, limit: int) -> list[tuple[str, str]]:
    """Requests for the `limit` best of so many questions, each another one."""
    return [
        ("/v1/search", json.dumps({"query": question, "limit": limit}))
        for question in conversations.questions(count, seed=1)
    ]


def writes(count: int) -> list[tuple[str, str]]:
    """Requests that store so many short facts, each another one."""
    return [
        ("/v1/memories", json.dumps({"content": fact}))
        for fact in conversations.facts(count, seed=2)
    ]


def embedder(data_dir: Path, overrides: list[str]) -> Iterator[tuple[str, Figures]]:
    """Texts per second of the model alone, which the service left built in its directory."""
    texts = [memory["content"] for memory in conversations.memories(EMBEDDER_TEXTS)]
    own = Settings.load(None, overrides).embedder.threads or max(
        1, CORES // 2
    )  # as runtime/inference/models.py decides
    for name, threads in (("threads as in the service", own), (f"threads={CORES}", CORES)):
        yield (
            f"embedder, {name}",
            Figures(asyncio.run(_embed(data_dir / "models", threads, texts)), 0.0, 0.0),
        )


async def _embed(models: Path, threads: int, texts: list[str]) -> float:
    model = MiniLmEmbedder(models, threads=threads, timeout_seconds=600)
    try:
        await model.embed(texts[:100])
        return await texts_per_second(model, texts)
    finally:
        await model.close()


# --- the run --------------------------------------------------------------------------------------


def run(asked: argparse.Namespace) -> Measured:
    """All parts asked for, in order; each figure is printed as it comes."""
    workload, parts = Workload.named(asked.workload), set(asked.only)
    floors: list[Measured] = []
    measured: Measured = {}
    with tempfile.TemporaryDirectory(prefix="mneme-compare-") as directory:
        data_dir = Path(directory) / "data"
        if "floor" in parts:
            floors.append(_shown("floor before", floor(asked.seconds)))
        if parts & {"ingest", "read", "search", "write"}:
            measured |= _shown(
                "service",
                service(asked.engine, data_dir, asked.set, workload, parts, asked.seconds),
            )
        if "embedder" in parts:
            measured |= _shown("embedder", embedder(data_dir, asked.set))
        if "floor" in parts:
            floors.append(_shown("floor after", floor(asked.seconds)))
    return {**measured, **_mean(floors)}


def _shown(title: str, figures: Iterable[tuple[str, Figures]]) -> Measured:
    found: Measured = {}
    print(f"{title}   (load average {os.getloadavg()[0]:.1f})", flush=True)
    for name, each in figures:
        latency = f"p50 {each.p50_ms:8.2f} ms   p99 {each.p99_ms:8.2f} ms" if each.p50_ms else ""
        print(f"    {name:38} {each.per_second:8.0f}/s   {latency}", flush=True)
        found[name] = each
    return found


def _mean(runs: list[Measured]) -> Measured:
    return {
        name: Figures(
            *(
                round(sum(getattr(run[name], part) for run in runs) / len(runs), 3)
                for part in ("per_second", "p50_ms", "p99_ms")
            )
        )
        for name in (runs[0] if runs else ())
    }


def ratios(measured: Measured) -> list[dict[str, Any]]:
    """Every goal whose two figures are there, with what was reached."""
    return [
        {
            "measure": goal.measure,
            "against": goal.against,
            "ratio": round(
                measured[goal.measure].per_second / measured[goal.against].per_second, 3
            ),
            "must": goal.must,
            "goal": goal.goal,
        }
        for goal in GOALS
        if goal.measure in measured and goal.against in measured
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement (%(default)s)")
    parser.add_argument(
        "--engine",
        choices=("ray", "local"),
        default="ray",
        help="of the service; the floor is always Ray (%(default)s)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        metavar="PART",
        help=f"some of: {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--workload", default="standard", help="a file of loadtests/workloads (%(default)s)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the service, such as embedder.threads=2",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write figures and ratios there as well"
    )
    asked = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # as an exception, so that everything started is ended
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": CORES,
        "load_average": os.getloadavg()[0],
    }
    try:
        measured = run(asked)
    except LoadFailed as failed:
        print(f"compare: {failed}", file=sys.stderr)
        return 1
    reached = ratios(measured)
    print("ratios")
    for each in reached:
        verdict = f"must {each['must']:.2f}, goal {each['goal']:.2f}" if each["must"] else ""
        missed = "   MISSED" if each["ratio"] < each["must"] else ""
        print(
            f"    {each['measure'] + ' / ' + each['against']:50} {each['ratio']:6.2f}   "
            f"{verdict}{missed}"
        )
    if asked.json:
        asked.json.write_bytes(
            msgspec.json.format(
                msgspec.json.encode({"machine": machine, "figures": measured, "ratios": reached})
            )
            + b"\n"
        )
    return int(any(each["ratio"] < each["must"] for each in reached))


if __name__ == "__main__":
    sys.exit(main())
