"""What an account gets beside another that asks for all it can: python loadtests/neighbours.py
[--engine local] [--kinds KIND …] [--asked read search write] [--connections 32] [--seconds 4]
[--rounds 3]

Two accounts of one shard, with the same memories. One is quiet: it reads, searches or writes over
one connection, for its latency, and over eight, for its rate. The other sends requests of one kind
at a time over --connections, each as soon as the one before is answered, without any limit on its
rate:

    read      one memory
    list      a page of twenty
    search    another question each time
    write     a short fact
    later     a short fact, whose answer does not wait for its index (Prefer: respond-async)
    batch     sixteen turns of conversation at once
    wide      a search with 250 conditions on texts
    process   four messages, taken in as memories and facts

For each pair the quiet one is measured alone and beside the other in turns, and the median of the
rounds' ratios is printed: of the latencies beside to those alone (p50, p99), and of the rates.
Without limits of theirs two accounts should have half of a machine each: a rate of .5, and
latencies that are not more than twice those alone where the machine is full.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests import conversations
from loadtests.compare import searches, writes
from loadtests.load import SECONDS_MAX, Figures, LoadFailed, Requests, Service, settle

MEMORIES, BATCH, IN_FLIGHT = 2_000, 100, 4
LINES = 4_000  # of requests, after which the first one follows
SETTLED_SECONDS_MAX = 120.0
LEAD_SECONDS = 1  # for which the loud one is at work before the quiet one is measured
FEW, SEVERAL = 1, 8  # connections of the quiet one
ASKED = ("read", "search", "write")
WIDE = {"OR": [{"content": {"icontains": f"nothing like {n}"}} for n in range(250)]}

Lines = list[tuple[str, str]]


def kinds(ids: list[str]) -> dict[str, Lines]:
    """Name -> the requests of that kind, to an account with these memories."""
    facts = conversations.facts(LINES, seed=3)
    turns = conversations.memories(LINES, seed=4)
    said = [{"role": "user", "content": fact} for fact in facts]
    return {
        "read": [(f"/v1/memories/{each}", "") for each in ids],
        "list": [("/v1/memories?limit=20", "")],
        "search": searches(LINES, 10),
        "write": writes(LINES),
        "later": writes(LINES),
        "batch": [
            ("/v1/memories/batch", json.dumps({"memories": turns[at : at + 16]}))
            for at in range(0, LINES, 16)
        ],
        "wide": [
            ("/v1/search", json.dumps({"query": question, "filters": WIDE}))
            for question in conversations.questions(LINES, seed=5)
        ],
        "process": [
            ("/v1/memories/process", json.dumps({"messages": said[at : at + 4]}))
            for at in range(0, LINES, 4)
        ],
    }


class Loud:
    """The account that asks for all it can, of one kind."""

    def __init__(self, requests: Requests, connections: int):
        self._requests, self._connections = requests, connections
        self.rates: list[float] = []

    @contextlib.contextmanager
    def at_work(self, seconds: int) -> Iterator[None]:
        """It sends its requests for that long, beginning a moment before the block. Raises
        LoadFailed.
        """
        with ThreadPoolExecutor(1) as sender:
            sent = sender.submit(
                self._requests.measure, self._connections, seconds + 2 * LEAD_SECONDS
            )
            time.sleep(LEAD_SECONDS)
            yield
            self.rates.append(sent.result().per_second)


def measure(asked: argparse.Namespace) -> None:
    """Start the service, fill it, measure each pair, print as it comes."""
    with (
        tempfile.TemporaryDirectory(prefix="mneme-neighbours-") as directory,
        Service.started(asked.engine, Path(directory), ["shards.count=1"]) as quiet,
    ):
        loud = Service(quiet.base_url, quiet.data_dir)
        memories = conversations.memories(MEMORIES)
        ids = [account.ingest(memories, BATCH, IN_FLIGHT)[1] for account in (quiet, loud)]
        settle(quiet.base_url, SETTLED_SECONDS_MAX)
        own, others = kinds(ids[0]), kinds(ids[1])
        for kind in asked.kinds:
            for part in asked.asked:
                later = {"Prefer": "respond-async"} if kind == "later" else {}
                with (
                    Requests(quiet.base_url, quiet.headers, own[part]) as requests,
                    Requests(loud.base_url, loud.headers | later, others[kind]) as its,
                ):
                    neighbour = Loud(its, asked.connections)
                    print(_beside(quiet, requests, neighbour, kind, part, asked), flush=True)


def _beside(
    quiet: Service,
    requests: Requests,
    neighbour: Loud,
    kind: str,
    part: str,
    asked: argparse.Namespace,
) -> str:
    """What the quiet account gets of `part` beside a neighbour of this kind, as a line."""
    pairs: dict[int, list[tuple[Figures, Figures]]] = {FEW: [], SEVERAL: []}
    for _ in range(asked.rounds):
        for connections, measured in pairs.items():
            settle(quiet.base_url, SETTLED_SECONDS_MAX)
            alone = requests.measure(connections, asked.seconds)
            with neighbour.at_work(asked.seconds):
                measured.append((alone, requests.measure(connections, asked.seconds)))
    few = pairs[FEW]
    p50, p99 = (
        statistics.median(getattr(beside, name) / getattr(alone, name) for alone, beside in few)
        for name in ("p50_ms", "p99_ms")
    )
    shares = {
        connections: statistics.median(
            beside.per_second / alone.per_second for alone, beside in measured
        )
        for connections, measured in pairs.items()
    }
    took = statistics.median(beside.p99_ms for _, beside in few)
    return (
        f"{part:7} beside {kind:8} p50 x{p50:5.2f}  p99 x{p99:5.2f} ({took:6.1f} ms)  rate of one "
        f"x{shares[FEW]:4.2f}, of eight x{shares[SEVERAL]:4.2f}   the other "
        f"{statistics.median(neighbour.rates):6.0f}/s   load {os.getloadavg()[0]:.1f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = tuple(kinds([]))
    parser.add_argument("--engine", choices=("ray", "local"), default="ray")
    parser.add_argument("--kinds", nargs="+", choices=every, default=every, metavar="KIND")
    parser.add_argument("--asked", nargs="+", choices=ASKED, default=ASKED, metavar="PART")
    parser.add_argument("--connections", type=int, default=32, help="of the other (%(default)s)")
    parser.add_argument("--seconds", type=int, default=4, help="of a slice (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    asked = parser.parse_args()
    if not 0 < asked.seconds <= SECONDS_MAX - 2 * LEAD_SECONDS:
        parser.error(f"--seconds: from 1 to {SECONDS_MAX - 2 * LEAD_SECONDS}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # everything started is ended
    try:
        measure(asked)
    except LoadFailed as failed:
        print(f"neighbours: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
