"""Send a service four times what it can answer and see what it makes of it: python
loadtests/overload.py [--seconds 60] [--factor 4]

Its capacity is measured with a mix of reads, searches and writes over 16 connections, before and
after, since a shared machine drifts; in between as many requests a second as `factor` says arrive
whether or not it answers. It holds when it lives, its memory stays bounded, at least 70 % of the
capacity goes on being answered well, every request has an answer, and every refusal is a 429 or 503
that says when to come back.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil

from runtime.serve import RunDirectory
from tests.support.flood import Client, Tally, mixed, raise_file_limit
from tests.support.served import Served, served

MEMORIES = 400
GOODPUT_SHARE_MIN = 0.7
GROWTH_BYTES_MAX = 512 << 20


class Memory:
    """The memory that the service's processes keep to themselves together, now and at most."""

    def __init__(self, service: Served):
        self._processes = [
            psutil.Process(service.process.pid),
            *RunDirectory.of(service.data_dir).processes(),
        ]
        self._ticks = 0
        self.before = self.most = self._now()

    def watch(self) -> None:
        self._ticks += 1
        if self._ticks % 50 == 0:
            self.most = max(self.most, self._now())

    def _now(self) -> int:
        total = 0
        for process in self._processes:
            try:
                total += process.memory_info().rss - process.memory_info().shared
            except psutil.NoSuchProcess:
                continue
        return total


def report(name: str, tally: Tally) -> None:
    counts = ", ".join(f"{count} × {status}" for status, count in sorted(tally.statuses.items()))
    times = f"p50 {tally.quantile(0.5) * 1000:.0f} ms, p99 {tally.quantile(0.99) * 1000:.0f} ms"
    print(
        f"{name}: {tally.good:.0f}/s answered well, {times}; {counts}; "
        f"{dict(tally.broken) or 'none'} broken, {tally.unsent} unsent",
        flush=True,
    )


def run(service: Served, seconds: float, factor: float) -> list[str]:
    """-> what does not hold."""
    token = service.register()
    headers = {"Authorization": f"Bearer {token}"}
    ids: list[str] = []
    for start in range(0, MEMORIES, 100):
        batch = {
            "memories": [
                {"content": f"the violin of number {start + n} is here"} for n in range(100)
            ],
            "wait_for_index": True,
        }
        ids += service.http.post("/v1/memories/batch", json=batch, headers=headers).json()[
            "memory_ids"
        ]
    client = Client(service.url, token, mixed(ids))
    asyncio.run(client.capacity(3))  # warm
    capacity = asyncio.run(client.capacity(min(10.0, seconds)))
    report("capacity", capacity)
    memory = Memory(service)
    flooded = asyncio.run(client.flood(capacity.good * factor, seconds, memory.watch))
    report(f"{factor:g} times as much", flooded)
    after = asyncio.run(client.capacity(min(10.0, seconds)))
    report("afterwards", after)
    share = 2 * flooded.good / (capacity.good + after.good)
    growth = memory.most - memory.before
    print(
        f"goodput {share:.0%} of capacity; memory {memory.before >> 20} MiB before, "
        f"{memory.most >> 20} MiB at most"
    )
    failures = {
        "the service has ended": service.process.poll() is not None,
        f"goodput under {GOODPUT_SHARE_MIN:.0%}": share < GOODPUT_SHARE_MIN,
        f"{flooded.broken.total()} requests had no answer": flooded.broken.total() > 0,
        "afterwards it is slower": after.good < GOODPUT_SHARE_MIN * capacity.good,
        f"memory grew by {growth >> 20} MiB": growth > GROWTH_BYTES_MAX,
        f"{flooded.silent_refusals} refusals without Retry-After": flooded.silent_refusals,
        f"other answers: {flooded.unexpected}": flooded.unexpected,
        "ordinary requests fail afterwards": set(after.statuses) - {200, 201, 202},
    }
    return [what for what, fails in failures.items() if fails]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--factor", type=float, default=4)
    parser.add_argument("--engine", choices=("local", "ray"), default="ray")
    given = parser.parse_args()
    raise_file_limit()
    with (
        tempfile.TemporaryDirectory(prefix="mneme-overload-") as directory,
        served(Path(directory) / "data", given.engine) as service,
    ):
        failures = run(service, given.seconds, given.factor)
    print("\n".join(f"DOES NOT HOLD: {failure}" for failure in failures) or "all holds")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
