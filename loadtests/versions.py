"""Another checkout beside this one: both services run, and are measured in turns by short slices.

    python -m loadtests.versions ../before [--engine ray|local] [--rounds 6] [--seconds 3]
    [--only read search …] [--set KEY=VALUE]

`../before` has a `.venv` of its own (make build). Both start on directories of their own, store the
same memories, and finish what is left for later: a version that does more of it must not look slow
in everything else. Then they get the same requests, a slice each, in an order that changes from
round to round; so a machine that is slow for a while is slow for both. Before each slice both have
finished what the last ones left; while that is under way, storing is slower than is printed here.
Printed are the medians of the rates, and the median and the middle half of the rounds' ratios, this
checkout over the other one. `--set` is a setting of both; `{version}` in it is `before` for the one
and `after` for the other, as in `--set object_store.url=file:///tmp/objects/{version}`.

    read, search, write   as in loadtests/compare.py, each with one connection and with many
    ingest                a batch after the other to an account of its own, twice as many under way
                          as in compare.py, since slices are short
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from loadtests import conversations
from loadtests.compare import REQUESTS_PER_SECOND_MAX, searches, writes
from loadtests.load import ROOT, LoadFailed, Requests, Service, Workload, settle

PARTS = ("read", "search", "write", "ingest")
INGESTED = 400  # memories of a slice
SETTLED_SECONDS_MAX = 900.0

Slice = Callable[[], float]  # -> so many a second


class Version:
    """One of the two services, filled, and what it is asked."""

    def __init__(self, running: Service, workload: Workload, asked: argparse.Namespace):
        self._running, self._workload, self._asked = running, workload, asked
        self._ids = running.ingest(
            conversations.memories(workload.memories), workload.batch, workload.batches_in_flight
        )[1]
        self._ingested = 0
        self.rest()

    def rest(self) -> None:
        """Wait until nothing is left for later."""
        if settle(self._running.base_url, SETTLED_SECONDS_MAX) > SETTLED_SECONDS_MAX:
            raise LoadFailed(f"Jobs are waiting yet after {SETTLED_SECONDS_MAX:.0f} seconds.")

    @contextlib.contextmanager
    def slices(self) -> Iterator[dict[str, Slice]]:
        """Name of a measurement -> what makes it once."""
        workload = self._workload
        count = REQUESTS_PER_SECOND_MAX * self._asked.seconds * self._asked.rounds
        read = [(f"/v1/memories/{each}", "") for each in self._ids]
        plans: dict[str, tuple[tuple[int, ...], list[tuple[str, str]], int | None]] = {
            "read": (workload.read_connections, read, None),
            "search": (workload.search_connections, searches(count // 4, workload.results), None),
            "write": (workload.write_connections, writes(count // 4), 201),
        }
        with contextlib.ExitStack() as open_requests:
            found: dict[str, Slice] = {}
            for part, (connections, lines, status) in plans.items():
                if part not in self._asked.only:
                    continue
                requests = open_requests.enter_context(
                    Requests(self._running.base_url, self._running.headers, lines, status)
                )
                for number in (min(connections), max(connections)):
                    found[f"{part} c={number}"] = self._slice(requests, number)
            if "ingest" in self._asked.only:
                found["ingest"] = self._ingest
            yield found

    def _slice(self, requests: Requests, connections: int) -> Slice:
        return lambda: requests.measure(connections, self._asked.seconds).per_second

    def _ingest(self) -> float:
        memories: list[dict[str, Any]] = [
            memory | {"content": f"{memory['content']} ({self._ingested})"}
            for memory in conversations.memories(INGESTED)
        ]
        self._ingested += 1
        figures, _ = self._running.ingest(
            memories, self._workload.batch, 2 * self._workload.batches_in_flight
        )
        return figures.per_second


def measure(asked: argparse.Namespace) -> None:
    """Start both, fill both, measure in turns, print as it comes."""
    workload = Workload.named(asked.workload)
    with (
        tempfile.TemporaryDirectory(prefix="mneme-versions-") as directory,
        contextlib.ExitStack() as running,
    ):
        versions, slices = list[Version](), []
        for name, checkout in (("before", asked.before.resolve()), ("after", ROOT)):
            settings = [each.replace("{version}", name) for each in asked.set]
            service = running.enter_context(
                Service.started(asked.engine, Path(directory) / name, settings, checkout=checkout)
            )
            versions.append(Version(service, workload, asked))
            slices.append(running.enter_context(versions[-1].slices()))
        for name in slices[0]:
            rates = _in_turns(versions, [each[name] for each in slices], asked.rounds)
            print(_line(name, rates), flush=True)


def _in_turns(
    versions: list[Version], slices: list[Slice], rounds: int
) -> list[tuple[float, float]]:
    """-> rates (before, after) of each round, the first of which is not counted."""
    counted = []
    for turn in range(rounds + 1):
        order = (0, 1) if turn % 2 else (1, 0)
        rates = dict[int, float]()
        for which in order:
            for version in versions:
                version.rest()
            rates[which] = slices[which]()
        if turn:
            counted.append((rates[0], rates[1]))
    return counted


def _line(name: str, rates: list[tuple[float, float]]) -> str:
    ratios = sorted(after / before for before, after in rates)
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    before, after = (statistics.median(each) for each in zip(*rates, strict=True))
    return (
        f"{name:14} {before:8.0f}/s {after:8.0f}/s   {middle:.3f} "
        f"({low:.2f} to {high:.2f})   load {os.getloadavg()[0]:.1f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("--engine", choices=("ray", "local"), default="ray")
    parser.add_argument("--rounds", type=int, default=6, help="that count (%(default)s)")
    parser.add_argument("--seconds", type=int, default=3, help="of a slice (%(default)s)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--workload", default="standard")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # everything started is ended
    try:
        measure(parser.parse_args())
    except LoadFailed as failed:
        print(f"versions: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
