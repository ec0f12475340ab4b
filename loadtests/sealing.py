"""What sealing costs: the same calls on two shards, one with sealed rows and one whose store was
opened without a key.

    python loadtests/sealing.py [--memories 2000] [--rounds 30]

Both shards live in this process and answer in turns, so that the machine's moods meet both alike;
"request" goes through the gateway's ASGI application, without sockets, and the embedding model is
the tests' small one. Times are medians of processor time in microseconds per call; the last column
is sealed over open.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

import serve_app
from plugins.memories.rows import MEMORIES
from runtime.cluster import LocalShards
from runtime.http import build_asgi
from runtime.inference import Models
from runtime.telemetry import Telemetry
from storage.store import Store
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness

CALLS_PER_ROUND = 200
TEXT = (
    "Ada said that she would keep the spare key number {} under the blue flowerpot, next to the "
    "bicycle shed in the garden."
)


def desk_without_key(directory: Path) -> ShardHarness:
    opened = Store.open

    def without_key(*arguments: object, service_key: bytes, **options: object) -> Store:
        return opened(*arguments, **options)

    with mock.patch.object(Store, "open", without_key):
        return ShardHarness(directory, serve_app.PLUGINS, Models(WordEmbedder()))


class Subject:
    """One shard with an account and its memories."""

    def __init__(self, harness: ShardHarness, memories: int):
        self.harness = harness
        self.me = harness.register()
        self.application = build_asgi(
            harness.registry,
            harness.settings,
            LocalShards([harness.shard]),
            harness.secrets,
            Telemetry(),
        )
        for start in range(0, memories, 100):
            items = [
                {"content": TEXT.format(n), "tags": ["home"], "metadata": {"n": n}}
                for n in range(start, start + 100)
            ]
            answer = harness("memories.create_batch", {"memories": items}, who=self.me)
        self.ids = answer.body["memory_ids"]
        self.scope = harness.scope_of(self.me)
        self.ordinals = [(n * 37 % memories,) for n in range(10)]

    def read(self) -> float:
        """Seconds for a read by id, through the whole shard."""
        calls = [
            self.harness.form("memories.get", who=self.me, id=self.ids[n % 100])
            for n in range(CALLS_PER_ROUND)
        ]

        async def run() -> float:
            started = time.process_time()
            for call in calls:
                await self.harness.shard.execute(call)
            return time.process_time() - started

        return self.harness.run(run()) / CALLS_PER_ROUND

    def request(self) -> float:
        """Seconds for the same read as a request to the gateway."""
        path = f"/v1/memories/{self.ids[0]}"
        headers = [(b"host", b"x"), (b"authorization", f"Bearer {self.me}".encode())]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
        }
        scope |= {"query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}
        statuses = set()

        async def receive() -> dict:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict) -> None:
            statuses.add(message.get("status", 200))

        async def run() -> float:
            started = time.process_time()
            for _ in range(CALLS_PER_ROUND):
                await self.application(scope, receive, send)
            return time.process_time() - started

        seconds = self.harness.run(run()) / CALLS_PER_ROUND
        assert statuses == {200}
        return seconds

    def hydrate(self) -> float:
        """Seconds to fetch ten rows of a search."""
        started = time.process_time()
        for _ in range(CALLS_PER_ROUND):
            with self.harness.shard.store.snapshot() as snapshot:
                snapshot.bind(MEMORIES, self.scope).get_many(self.ordinals)
        return (time.process_time() - started) / CALLS_PER_ROUND

    def search(self) -> float:
        calls = [
            self.harness.form("search.search", {"query": f"the spare key {n}"}, who=self.me)
            for n in range(20)
        ]

        async def run() -> float:
            started = time.process_time()
            for call in calls:
                await self.harness.shard.execute(call)
            return time.process_time() - started

        return self.harness.run(run()) / len(calls)

    def write(self) -> float:
        calls = [
            self.harness.form("memories.create", {"content": TEXT.format(n)}, who=self.me)
            for n in range(20)
        ]

        async def run() -> float:
            started = time.process_time()
            await asyncio.gather(*(self.harness.shard.execute(call) for call in calls))
            return time.process_time() - started

        return self.harness.run(run()) / len(calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        sealed = Subject(
            ShardHarness(Path(directory) / "sealed", serve_app.PLUGINS, Models(WordEmbedder())),
            given.memories,
        )
        bare = Subject(desk_without_key(Path(directory) / "open"), given.memories)
        print(f"{'':24}{'open':>10}{'sealed':>10}{'ratio':>8}")
        for name in ("read", "request", "hydrate", "search", "write"):
            times: dict[Subject, list[float]] = {bare: [], sealed: []}
            for turn in range(given.rounds):
                for subject in (bare, sealed) if turn % 2 else (sealed, bare):
                    times[subject].append(getattr(subject, name)())
            before, after = (statistics.median(times[subject]) * 1e6 for subject in (bare, sealed))
            print(f"{name:24}{before:10.1f}{after:10.1f}{after / before:8.3f}")
        for subject in (bare, sealed):
            print(f"data.mdb {subject.harness.shard.store.stat()['data_bytes'] >> 10} KiB")
            subject.harness.close()


if __name__ == "__main__":
    main()
