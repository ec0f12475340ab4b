"""What shipping the log costs: writes a second without an object store, in `local` and in
`replicated` mode, taken in turns in one run.

    python -m loadtests.durability [--rounds 6] [--writes 400] [--at-once 32] [--url
    file:///tmp/objects]

Each round gives every mode the same number of creates, in another order, to a service of its own in
this process (tests/support/in_process.py: the real gateway and shard, an embedder that costs next
to nothing). Printed are the medians, and the median of each round's share of what the same round
had without an object store: a machine that is busy for a while is so for all modes of a round.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.in_process import InProcess

MODES = ("off", "local", "replicated")


def options(mode: str, url: str) -> dict[str, Any]:
    return (
        {}
        if mode == "off"
        else {
            "object_store__url": url,
            "durability__mode": mode,
            "durability__wait_seconds_max": 60,
        }
    )


def measure(
    service: InProcess, who: str, writes: int, at_once: int, tag: str
) -> tuple[float, float]:
    """-> (writes a second, milliseconds of processor time of this process for each); the latter
    bears a busy machine
    """

    async def all_of_them() -> None:
        numbers = iter(range(writes))

        async def writer() -> None:
            for number in numbers:
                body = {
                    "content": (
                        f"Parcel {tag} {number} went to the depot on the hill, and nobody knows "
                        "when it will come back."
                    )
                }
                answer = await service.client.post(
                    "/v1/memories/raw", json=body, headers={"Authorization": f"Bearer {who}"}
                )
                assert answer.status_code in (201, 202), answer.text

        await asyncio.gather(*(writer() for _ in range(at_once)))

    begun, busy = time.monotonic(), time.process_time()
    service.run(all_of_them())
    return writes / (time.monotonic() - begun), 1000 * (time.process_time() - busy) / writes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--writes", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--url", help="default: a directory beside the stores")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        url = asked.url or f"file://{scratch}/objects"
        limits = {"limits__requests_per_minute": 0, "limits__endpoint_caps": False}
        services = {
            mode: InProcess(Path(scratch) / mode, **limits, **options(mode, url)) for mode in MODES
        }
        accounts = {mode: service.register("ada@example.org") for mode, service in services.items()}
        for mode, service in services.items():
            measure(service, accounts[mode], asked.at_once, asked.at_once, "first")
        figures: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
        for turn in range(asked.rounds):
            for mode in MODES[turn % 3 :] + MODES[: turn % 3]:
                figures[mode].append(
                    measure(services[mode], accounts[mode], asked.writes, asked.at_once, f"{turn}")
                )
        rates = {mode: statistics.median(rate for rate, _ in figures[mode]) for mode in MODES}
        costs = {mode: statistics.median(cost for _, cost in figures[mode]) for mode in MODES}
        for mode in MODES:
            rounds = ", ".join(f"{rate:.0f}" for rate, _ in figures[mode])
            shares = [
                [one / off for one, off in zip(*each, strict=True)]
                for each in zip(figures[mode], figures["off"], strict=True)
            ]
            rate_share, cost_share = (
                statistics.median(column) for column in zip(*shares, strict=True)
            )
            print(
                f"{mode:<11} {rates[mode]:6.0f} writes/s, {rate_share:.2f} of off; "
                f"{costs[mode]:.2f} ms of processor time a write, {cost_share:.2f} of off  "
                f"(rounds: {rounds})"
            )
        for mode in MODES[1:]:
            status = services[mode].shard.parts.durability.status()
            print(
                f"{mode:<11} {status['segments']} segments, {status['shipped_bytes']} bytes "
                f"shipped, {status['failures']} failures"
            )
        for service in services.values():
            service.close()


if __name__ == "__main__":
    main()
