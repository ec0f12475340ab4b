"""How webhooks do under pressure: python loadtests/webhooks.py [--queued 1000] [--searches 300]

hole       one webhook's receiver takes every connection and answers none, with --queued events
           waiting for it; another webhook of the same account hears of one new memory after the
           other: how long from the write's answer to the arrival
drain      the same number of events, all for a receiver that answers at once: deliveries per second
searches   the latency of a search with no webhook, with one for other events, and with one that
           waits for search.completed

Everything runs on this machine: `mneme serve --engine local` in a process of its own, the receivers
in this one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.receivers import Receiver, receiver
from tests.support.served import Served, served

BATCH = 100
PROBES = 200
WAIT_SECONDS_MAX = 300


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit("it did not happen in time")
        time.sleep(0.001)


class Account:
    """An account of its own on the service."""

    def __init__(self, service: Served, email: str):
        self._http = service.http
        self._headers = {"Authorization": f"Bearer {service.register(email)}"}

    def post(self, path: str, body: object) -> dict:
        answer = self._http.post(path, json=body, headers=self._headers)
        if not answer.is_success:
            raise SystemExit(f"{path}: {answer.text}")
        return answer.json()

    def hook(self, to: Receiver, *events: str) -> None:
        self.post("/v1/webhooks", {"url": to.url, "events": events})

    def queue(self, events: int) -> None:
        for first in range(0, events, BATCH):
            self.post(
                "/v1/memories/batch",
                {
                    "memories": [
                        {"content": f"memory {first + n}"}
                        for n in range(min(BATCH, events - first))
                    ]
                },
            )


def spread(name: str, milliseconds: list[float]) -> None:
    ordered = sorted(milliseconds)
    p99 = ordered[int(len(ordered) * 0.99)]
    print(
        f"{name:<44} p50 {statistics.median(ordered):7.1f} ms   p99 {p99:7.1f} ms   max "
        f"{ordered[-1]:7.1f} ms",
        flush=True,
    )


def hole(service: Served, queued: int) -> None:
    account = Account(service, "hole@example.com")
    with receiver(hangs=True) as dead, receiver() as there:
        account.hook(dead, "memory.created")
        account.queue(queued)
        account.hook(there, "memory.created")
        taken = []
        for number in range(PROBES):
            account.post("/v1/memories", {"content": f"probe {number}"})
            answered = time.perf_counter()
            until(lambda expected=number + 1: len(there.received) == expected)
            taken.append((time.perf_counter() - answered) * 1000)
        print(f"the hole holds {len(dead.received)} connections of {queued + PROBES} events")
        spread(f"arrival beside a hole with {queued} events queued", taken)


def drain(service: Served, queued: int) -> None:
    account = Account(service, "drain@example.com")
    with receiver() as there:
        account.hook(there, "memory.created")
        begun = time.perf_counter()
        account.queue(queued)
        stored = time.perf_counter()
        until(lambda: len(there.received) >= queued)
        done = time.perf_counter()
        print(
            f"{queued} memories stored in {stored - begun:.1f} s, the last event delivered "
            f"{done - stored:.1f} s later",
            flush=True,
        )
        print(f"deliveries per second, one receiver: {queued / (done - begun):.0f}", flush=True)


def searches(service: Served, count: int) -> None:
    def latency(account: Account) -> float:
        started = time.perf_counter()
        account.post("/v1/search", {"query": "Which memory is number 17?"})
        return (time.perf_counter() - started) * 1000

    with receiver() as there:
        accounts = {}
        for name, events in (
            ("no webhook", ()),
            ("other events", ("memory.deleted",)),
            ("search.completed", ("search.completed",)),
        ):
            accounts[name] = Account(service, f"{name.replace(' ', '.')}@example.com")
            accounts[name].queue(300)
            if events:
                accounts[name].hook(there, *events)
        taken: dict[str, list[float]] = {name: [] for name in accounts}
        for _ in range(count):  # in turn, so that all meet the same machine
            for name, account in accounts.items():
                taken[name].append(latency(account))
        for name, values in taken.items():
            spread(f"search, {name}", values)
        until(lambda: len(there.received) == count)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queued", type=int, default=1_000)
    parser.add_argument("--searches", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mneme-webhooks-") as directory:
        told = {"webhooks__allow_private_networks": True, "write__ready_wait_ms": 30_000}
        with served(Path(directory) / "data", **told) as service:
            hole(service, given.queued)
            drain(service, given.queued)
            searches(service, given.searches)


if __name__ == "__main__":
    main()
