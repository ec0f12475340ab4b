"""Fill stores faster than a model reads, and see what they take: python loadtests/fleet.py
fill DIRECTORY [--accounts 100] [--memories 1000], and python loadtests/fleet.py measure DIRECTORY
[--engine local] [--asked 100]

    fill     accounts with so many memories each, through the service's own front door, on a service
             of engine local whose embedding model is asked once for each sentence: what is said in
             the same words about another town gets the recorded vectors, turned a little, and the
             recorded reading. Everything else is as ever, so the store is one that a release has
             written. Goes on where it stopped
    measure  a service on what was filled: the start, the first search of accounts in random order
             and those that follow, the largest account alone and with eight connections, and what
             it all takes in memory and on the disk

Each account's API key is in fleet.ndjson beside the store. Times are milliseconds at the client.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import statistics
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import serve_app  # noqa: E402
from loadtests import compare, conversations  # noqa: E402
from loadtests.load import (  # noqa: E402
    HOST,
    Requests,
    Service,
    ended_with_us,
    figures,
    quantile,
    settle,
    wait_until_healthy,
)
from loadtests.sizes import timed_searches  # noqa: E402
from runtime.inference import Caller, Embedding, Models, Worker, load_models, load_worker  # noqa: E402
from runtime.serve import free_port, serve  # noqa: E402
from runtime.shard import Shard  # noqa: E402

KEYS = "fleet.ndjson"
SENTENCES = 2_000
BATCH, IN_FLIGHT = 100, 4
PART = 10_000  # memories of an account between two words about it
TOLD_EVERY = 100  # accounts
SETTLE_SECONDS_MAX = 7_200
# How far a town turns a sentence's vector: two such sentences then have a cosine of about .9, as
# the model's own vectors of them do.
TURN = 0.33
WARM_SEARCHES, WARM_SECONDS, SECONDS, RESULTS = 5, 2, 8, 10
MIB = 1 << 20
# Nobody signs in here, so a password may be cheap to check; and nobody needs what reading takes.
FILLING = (
    "auth.argon2_time_cost=1", "auth.argon2_memory_kib=64", "auth.register_per_minute=0",
    "auth.login_per_minute=0", "limits.requests_per_minute=0", "limits.endpoint_caps=false",
    "graph.reading_share=1",
)  # fmt: skip

# --- the service that fills -----------------------------------------------------------------------


class _Key(NamedTuple):
    """A sentence's words, and how it is asked about: of how many words vectors are wanted, and of
    how many words each of its sentences has to be read.
    """

    pattern: str
    vectors: int | None
    read: tuple[int, ...]


class RecordedWorker:
    """A worker that asks another one about each sentence once, whatever towns and numbers are in
    it.
    """

    def __init__(self, worker: Worker):
        self._worker = worker
        self._recorded: dict[_Key, Embedding] = {}

    async def compute(
        self, asked: list[Any], caller: Caller, on_run: Callable[[], object]
    ) -> list[Embedding]:
        keys = [_key(*each) for each in asked]
        unknown = {key: row for row, key in enumerate(keys) if key not in self._recorded}
        if unknown:
            texts = [asked[row] for row in unknown.values()]
            found = await self._worker.compute(texts, caller, on_run)
            self._recorded |= dict(zip(unknown, found, strict=True))
        return [
            _turned(self._recorded[key], text) for key, (text, _) in zip(keys, asked, strict=True)
        ]

    def yield_to_reads(self, reads_wait: bool) -> None:
        self._worker.yield_to_reads(reads_wait)

    async def close(self) -> None:
        await self._worker.close()


def _key(text: str, wanted: Any) -> _Key:
    """wanted: as a worker is asked, the places of words in the text, or what is to be read."""
    sentences = getattr(wanted, "sentences", ())
    words = wanted.embedded if sentences else wanted
    pattern = conversations.pattern(text)
    return _Key(pattern, None if words is None else len(words), tuple(map(len, sentences)))


def _turned(recorded: Embedding, text: str) -> Embedding:
    """The embedding with its vector turned in a direction that is the text's own."""
    if not len(recorded.vector):
        return recorded
    chance = np.random.default_rng(zlib.crc32(text.encode()))
    direction = chance.standard_normal(len(recorded.vector), np.float32)
    turned = recorded.vector + TURN * direction / np.linalg.norm(direction)
    return recorded._replace(vector=turned / np.linalg.norm(turned))


@cache
def recorded_models(settings: serve_app.Settings) -> Models:
    """The service's models, with an embedder that is asked once for each sentence."""
    worker = RecordedWorker(load_worker(settings.embedder, settings.data_dir))
    return load_models(settings, settings.data_dir, {"embedder": worker}.get)


async def open_shard(settings: serve_app.Settings, number: int) -> Shard:
    """As serve_app has it, with these models."""
    return await serve_app.open_shard(settings, number, recorded_models)


build_local = serve_app.build_local


def serve_filling(directory: Path, port: int) -> int:
    """Run the service that fills until it is told to end; -> its exit status."""
    overrides = [f"data_dir={directory}", f"http.host={HOST}", f"http.port={port}", *FILLING]
    settings = serve_app.Settings.load(
        ROOT / "configs" / "local.yaml", [*overrides, "engine=local"]
    )
    return serve(settings, module="loadtests.fleet")


# --- filling --------------------------------------------------------------------------------------


class Account(msgspec.Struct):
    """One line of fleet.ndjson."""

    api_key: str
    memories: int


def accounts(directory: Path) -> list[Account]:
    """What was filled so far."""
    kept = directory / KEYS
    lines = kept.read_bytes().splitlines() if kept.exists() else []
    return [msgspec.json.decode(line, type=Account) for line in lines]


def memories_of(number: int, count: int) -> Iterator[dict[str, Any]]:
    """The memories of an account: conversations that are nobody else's, in everybody's words."""
    said, chance = _sentences(), random.Random(number)
    for place in range(count):
        first = (number * count + place) % SENTENCES
        turn = said[first]
        yield {
            **turn,
            "content": conversations.retold(turn["content"], chance),
            "session_id": f"session-{place // conversations.TURNS_PER_SESSION}",
        }


@cache
def _sentences() -> list[dict[str, Any]]:
    return conversations.memories(SENTENCES)


def fill(directory: Path, wanted: int, memories: int) -> None:
    """So many accounts of so many memories each, in addition to those that are there."""
    there = len(accounts(directory))
    port = free_port(HOST)
    directory.mkdir(parents=True, exist_ok=True)
    output = directory / "serve.out"
    command = [sys.executable, __file__, "serve", str(directory), "--port", str(port)]
    base_url = f"http://{HOST}:{port}"
    at_once = 1 if wanted == 1 else IN_FLIGHT  # accounts; a lone one's batches go side by side
    began, told, stored = time.monotonic(), itertools.count(1), itertools.count(1)

    def fill_one(number: int) -> Account:
        service = Service(base_url, directory, f"fleet-{number}-{time.time_ns()}@example.com")
        turns = memories_of(number, memories)
        while part := list(itertools.islice(turns, PART)):
            service.ingest(part, BATCH, IN_FLIGHT // at_once)
            if wanted == 1:
                tell(next(told) * PART)
        return Account(service.api_key, memories)

    def tell(count: int) -> None:
        count = min(count, wanted * memories)
        rate = count / (time.monotonic() - began)
        print(f"{count:,} of {wanted * memories:,} memories, {rate:,.0f}/s", flush=True)

    with ended_with_us(command, output=output) as process:
        wait_until_healthy(port, process, output)
        with ThreadPoolExecutor(at_once) as fillers, (directory / KEYS).open("ab") as kept:
            for account in fillers.map(fill_one, range(there, there + wanted)):
                kept.write(msgspec.json.encode(account) + b"\n")
                kept.flush()
                if (done := next(stored)) % TOLD_EVERY == 0 or done == wanted:
                    tell(done * memories)
        print(f"jobs: {settle(base_url, SETTLE_SECONDS_MAX):.0f} s more", flush=True)


# --- measuring ------------------------------------------------------------------------------------


def measure(directory: Path, engine: str, asked: int) -> None:
    """Start the service on what was filled, and print what it takes."""
    known = accounts(directory)
    stored = sum(account.memories for account in known)
    print(f"{len(known):,} accounts, {stored:,} memories, engine {engine}", flush=True)
    chance = random.Random(1)
    sample = chance.sample(known, min(asked, len(known)))
    largest = max(known, key=lambda account: account.memories)
    questions = iter(conversations.questions((len(sample) + 20) * (1 + WARM_SEARCHES), seed=5))
    began = time.perf_counter()
    with Service.started(engine, directory) as service:
        print(f"healthy after {time.perf_counter() - began:.2f} s", flush=True)
        service.ingest(list(memories_of(-1, BATCH)), BATCH, 1)
        family = psutil.Process(service.process_id)

        def searched(key: str, count: int) -> list[float]:
            return timed_searches(service.base_url, key, itertools.islice(questions, count))

        searched(service.api_key, 20)  # the process itself is warm then
        empty = memory_mb(family)
        rounds = [searched(each.api_key, 1 + WARM_SEARCHES) for each in sample]
        cold = sorted(first for first, *_ in rounds)
        warm = sorted(each for _, *after in rounds for each in after)
        print(
            f"first search of {len(sample)} accounts: p50 {statistics.median(cold):.1f}, p99 "
            f"{quantile(cold, 0.99):.1f}, worst {cold[-1]:.1f} ms; those that follow: p50 "
            f"{statistics.median(warm):.1f}, p99 {quantile(warm, 0.99):.1f} ms",
            flush=True,
        )
        resident = sum(figures(service.base_url, "mneme_shard_residents_bytes").values())
        loaded = sum(account.memories for account in sample)
        own, pages = memory_mb(family)
        print(
            f"memory: {empty[0]:.0f} MB before, {own:.0f} after, and {pages:.0f} of the store's "
            f"file that the kernel may take back; resident "
            f"{resident / MIB:.0f} MiB, of {loaded:,} memories: {resident / loaded:.0f} bytes each",
            flush=True,
        )
        on_disk = sum(figures(service.base_url, "mneme_shard_store_data_bytes").values())
        print(f"disk: {on_disk / MIB:,.0f} MiB, {on_disk / stored:,.0f} bytes a memory", flush=True)
        headers = {
            "Authorization": f"Bearer {largest.api_key}", "Content-Type": "application/json"
        }  # fmt: skip
        lines = compare.searches(compare.REQUESTS_PER_SECOND_MAX * 2 * SECONDS, RESULTS)
        with Requests(service.base_url, headers, lines, 200) as searches:
            searches.measure(1, WARM_SECONDS)
            one, eight = searches.measure(1, SECONDS), searches.measure(8, SECONDS)
        print(
            f"the account of {largest.memories:,}: c=1 p50 {one.p50_ms:.2f}, p99 {one.p99_ms:.2f} "
            f"ms; c=8 {eight.per_second:.0f}/s, p50 {eight.p50_ms:.1f}, p99 {eight.p99_ms:.1f} ms",
            flush=True,
        )


def memory_mb(process: psutil.Process) -> tuple[float, float]:
    """What a process and its children have for themselves, and what they share of files."""
    own = files = 0
    for each in [process, *process.children(recursive=True)]:
        rolled = Path(f"/proc/{each.pid}/smaps_rollup").read_text()
        kinds = dict(re.findall(r"^Pss_(\w+): +(\d+) kB", rolled, re.MULTILINE))
        own += int(kinds["Anon"]) + int(kinds["Shmem"])
        files += int(kinds["File"])
    return own / 1_000, files / 1_000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("fill", "measure", "serve"):
        commands.add_parser(name).add_argument("directory", type=Path)
    filling, measuring, serving = (commands.choices[name] for name in ("fill", "measure", "serve"))
    filling.add_argument("--accounts", type=int, default=100)
    filling.add_argument("--memories", type=int, default=1_000, help="of each (%(default)s)")
    measuring.add_argument("--engine", default="local", choices=("local", "ray"))
    measuring.add_argument("--asked", type=int, default=100, help="accounts (%(default)s)")
    serving.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    if asked.command == "serve":
        return serve_filling(asked.directory, asked.port)
    if asked.command == "fill":
        fill(asked.directory, asked.accounts, asked.memories)
    else:
        measure(asked.directory, asked.engine, asked.asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
