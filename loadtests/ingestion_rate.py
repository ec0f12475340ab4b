"""What smart ingestion costs beside storing the same turns as they are.

    python loadtests/ingestion_rate.py --data locomo10.json [--sessions 40] [--rounds 3] [--profile]

The file has conversations as LoCoMo has them. Each session goes to a shard of this process, with
the shipped model and no language model, in one request each way, `infer` true and false, in turns
and the one first that was second before; no embedding is kept from one to the other. What the
stored turns mention is read after the clock has stopped, as it is in a service that has time left;
ingestion reads that in its own request. `rate` is the median, over sessions, of the time of storing
over that of ingesting, by the clock and by the processor. --profile prints where ingesting spends
its time.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import serve_app
from runtime.inference import MiniLmEmbedder, Models
from tests.support.shard_harness import ShardHarness

PROFILE_LINES = 60
WARM_SESSIONS = 3


def sessions(path: Path) -> list[list[dict[str, str]]]:
    """The messages of each session."""
    found = []
    for sample in json.loads(path.read_text()):
        told = sample["conversation"]
        for name, turns in told.items():
            if name.startswith("session_") and isinstance(turns, list):
                found.append(
                    [
                        {"role": "user", "name": turn["speaker"], "content": turn["text"]}
                        for turn in turns
                        if turn["text"].strip()
                    ]
                )
    return found


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


class Account:
    """Somebody whose sessions come one after the other."""

    def __init__(self, service: ShardHarness, name: str, infer: bool):
        self.service, self.infer = service, infer
        self.me = service.register(f"{name}@example.com")

    def take(self, number: int, messages: list[dict[str, str]]) -> None:
        body = {"messages": messages, "session_id": f"s{number}", "infer": self.infer}
        answer = self.service("memories.create", {**body, "wait_for_index": True}, who=self.me)
        assert answer.status in (200, 201), answer


def measure(
    service: ShardHarness, told: list[list[dict[str, str]]], rounds: int
) -> list[dict[str, tuple[float, float]]]:
    """The times of each session, stored and ingested."""
    found = []
    for part in range(rounds):
        raw = Account(service, f"raw{part}", False)
        smart = Account(service, f"smart{part}", True)
        for number, messages in enumerate(told):
            ways = [("stored", raw), ("ingested", smart)]
            times = {}
            for name, account in ways if number % 2 else reversed(ways):
                times[name] = timed(lambda: account.take(number, messages))  # noqa: B023
                service.settle()
            if number >= WARM_SESSIONS:
                found.append(times)
    return found


def profiled(service: ShardHarness, told: list[list[dict[str, str]]]) -> None:
    smart = Account(service, "profiled", True)
    profile = cProfile.Profile()
    for number, messages in enumerate(told):
        profile.enable()
        smart.take(number, messages)
        profile.disable()
        service.settle()
    pstats.Stats(profile).sort_stats("cumulative").print_stats(PROFILE_LINES)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FILE")
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    told = sessions(asked.data)[: asked.sessions]
    with tempfile.TemporaryDirectory(prefix="mneme-rate-") as directory:
        embedder = MiniLmEmbedder(
            Path(directory) / "models", threads=1, timeout_seconds=600, cache_entries=1
        )
        asyncio.run(embedder.read_language(["The loops are compiled before anything is timed."]))
        service = ShardHarness(Path(directory) / "data", serve_app.PLUGINS, Models(embedder))
        try:
            if asked.profile:
                profiled(service, told)
                return
            found = measure(service, told, asked.rounds)
        finally:
            service.close()
            asyncio.run(embedder.close())
    for place, name in enumerate(("clock", "processor")):
        rates = [each["stored"][place] / each["ingested"][place] for each in found]
        print(
            f"by the {name}: rate {median(rates):.3f} (of {len(rates)} sessions, quartiles "
            f"{sorted(rates)[len(rates) // 4]:.3f} and {sorted(rates)[3 * len(rates) // 4]:.3f})"
        )


if __name__ == "__main__":
    main()
