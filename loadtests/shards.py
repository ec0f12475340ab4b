"""What a second shard gives on one machine: python loadtests/shards.py [--shards 1 2] [--memories
2000] [--seconds 5]

Two accounts, whose slots lie in different halves, are read, searched and written at the same time,
each over as many connections. With one shard both live in it; with two each has its own process,
with its own model and its own writer. Printed are the requests a second of both accounts together,
and the processor time of all processes of the service for each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests import compare, conversations
from loadtests.load import Requests, Service
from tests.support.sharded import emails

HALVES = 2
CONNECTIONS = {"read": 16, "search": 4, "write": 16}
BATCH, IN_FLIGHT, WARM_SECONDS = 100, 2, 2


def requests(
    kind: str, ids: list[str], count: int, half: int
) -> tuple[list[tuple[str, str]], int | None]:
    """Lines of one kind, and the status that every answer has to have where it is not any success.
    The halves say nothing alike: one embedder would know by heart what it read for the other
    account."""
    if kind == "read":
        return [(f"/v1/memories/{each}", "") for each in ids], None
    lines, status = (
        (compare.searches(HALVES * count, 10), None)
        if kind == "search"
        else (compare.writes(HALVES * count), 201)
    )
    return lines[half::HALVES], status


def processor_seconds() -> float:
    """Of everything this process has started, so far."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def measure(shards: int, memories: int, seconds: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="mneme-shards-") as directory,
        ExitStack() as open_files,
    ):
        service = open_files.enter_context(
            Service.started("ray", Path(directory) / "data", [f"shards.count={shards}"])
        )
        accounts = [
            Service(service.base_url, service.data_dir, email)
            for half in range(HALVES)
            for email in emails(half, HALVES, 1)
        ]
        stored = [
            account.ingest(conversations.memories(memories), BATCH, IN_FLIGHT)[1]
            for account in accounts
        ]
        for kind, connections in CONNECTIONS.items():
            senders = [
                open_files.enter_context(
                    Requests(
                        account.base_url,
                        account.headers,
                        *requests(kind, ids, 2_000 * seconds, half),
                    )
                )
                for half, (account, ids) in enumerate(zip(accounts, stored, strict=True))
            ]
            with ThreadPoolExecutor(len(senders)) as threads:
                list(
                    threads.map(
                        lambda sender, wide=connections: sender.measure(wide, WARM_SECONDS), senders
                    )
                )
                before = processor_seconds()
                figures = list(
                    threads.map(
                        lambda sender, wide=connections: sender.measure(wide, seconds), senders
                    )
                )
                spent = (
                    processor_seconds() - before
                )  # the load generators have ended, and count no more
            rate = sum(each.per_second for each in figures)
            worst = max(each.p50_ms for each in figures)
            told = (
                f"{rate:7.0f}/s   p50 {worst:7.2f} ms   {1000 * spent / (rate * seconds):6.2f} ms "
                "of processor time each"
            )
            print(f"{shards} shards   {kind:6} c={HALVES}x{connections:<3} {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--memories", type=int, default=2_000, help="of each account (%(default)s)")
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement (%(default)s)")
    asked = parser.parse_args()
    for shards in asked.shards:
        measure(shards, asked.memories, asked.seconds)


if __name__ == "__main__":
    main()
