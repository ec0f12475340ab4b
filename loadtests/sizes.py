"""How search fares as data grows: python loadtests/sizes.py [--sizes 1000 6000 10000 100000]
[--tenants 100] [--seconds 3] [--first-ordinal 50000000]

    hop      loadtests/floor.py's one actor hop, before and after: what any request costs on this
             machine
    grown    one tenant grows to each size; its search is timed with one connection and with eight,
             the ten best for a new question each
    recall   the approximate index of the largest size against an exact comparison with every
             vector, ten best, over stored vectors with noise
    far      two tenants of a thousand memories, whose ordinals begin at 0 and at --first-ordinal,
             as of one that has had so many before: the first search of each after a start, what it
             adds to the service's memory, and the searches after it
    tenants  as many tenants of a thousand memories each; the service starts anew, and the first
             search of each (cold) is compared with the ones after it (warm)

Everything runs through the service on Ray with configs/local.yaml. Times are milliseconds at the
client, on one connection unless said.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import serve_app
from loadtests import compare, conversations
from loadtests.load import ROOT, Requests, Service
from plugins.memories import MEMORY_VECTORS
from runtime.api.context import COUNTERS
from runtime.serve import RunDirectory
from runtime.tenancy import slot_of_email
from serve_app import Settings

TENANT_MEMORIES = 1_000
WARM_SEARCHES = 5
FAR, FAR_SEARCHES = "far@example.com", 50
BATCH, IN_FLIGHT = 100, 2
RECALL_QUERIES, RECALL_K, NOISE = 200, 10, 0.05
ORDINALS_SPARE = 1_000  # ordinals start at one, and a few may belong to nothing
WARM_SECONDS = 1
KEYS = "tenants.json"
TOLD_EVERY = 50


def hop(seconds: int) -> float:
    """p50 of one actor hop, milliseconds."""
    return dict(compare.floor(seconds))["hop c=1"].p50_ms


def grow(service: Service, sizes: list[int], seconds: int) -> None:
    """Fill the service's account to each size in turn, and time its searches there. No question is
    asked twice: the embedder knows the last ones by heart."""
    memories = conversations.memories(max(sizes))
    print(
        f"\n{'memories':>9} {'ingest/s':>9} {'p50':>8} {'p99':>8} {'c=8: /s':>9} {'p50':>8}",
        flush=True,
    )
    stored = 0
    asked = compare.REQUESTS_PER_SECOND_MAX * len(sizes) * (seconds + WARM_SECONDS)
    with Requests(service.base_url, service.headers, compare.searches(asked, 10), 200) as searches:
        for size in sorted(sizes):
            rate, _ = service.ingest(memories[stored:size], BATCH, IN_FLIGHT)
            stored = size
            searches.measure(1, WARM_SECONDS)
            one, eight = searches.measure(1, seconds), searches.measure(8, seconds)
            figures = (
                f"{one.p50_ms:8.2f} {one.p99_ms:8.2f} {eight.per_second:9.0f} {eight.p50_ms:8.2f}"
            )
            print(f"{size:9} {rate.per_second:9.0f} {figures}", flush=True)


def timed_searches(base_url: str, api_key: str, questions: Iterable[str]) -> list[float]:
    """Milliseconds of each search, one after another on one connection."""
    connection = http.client.HTTPConnection(base_url.removeprefix("http://"), timeout=60)
    headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
    taken = []
    for question in questions:
        begun = time.perf_counter()
        connection.request(
            "POST", "/v1/search", json.dumps({"query": question, "limit": 10}), headers
        )
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        taken.append((time.perf_counter() - begun) * 1000)
    connection.close()
    return taken


def fill_tenants(data_dir: Path, tenants: int) -> list[str]:
    """A thousand memories for each, those of an earlier run included; -> their API keys."""
    kept = data_dir / KEYS
    keys: list[str] = json.loads(kept.read_text()) if kept.exists() else []
    memories = conversations.memories(TENANT_MEMORIES)
    if len(keys) < tenants:
        with Service.started("ray", data_dir) as running:
            for number in range(len(keys), tenants):
                tenant = Service(running.base_url, data_dir)
                rate, _ = tenant.ingest(memories, BATCH, IN_FLIGHT)
                keys.append(tenant.api_key)
                kept.write_text(json.dumps(keys))
                if not (number + 1) % TOLD_EVERY:
                    print(f"{number + 1} tenants, {rate.per_second:.0f} memories/s", flush=True)
    return keys[:tenants]


def many_tenants(data_dir: Path, tenants: int) -> None:
    """A new start, and the first search of each tenant beside the following ones."""
    keys, memories = fill_tenants(data_dir, tenants), conversations.memories(BATCH)
    questions = conversations.questions(tenants * (1 + WARM_SEARCHES), seed=3)
    with Service.started("ray", data_dir) as running:
        stranger = Service(running.base_url, data_dir)
        stranger.ingest(memories, BATCH, 1)
        timed_searches(
            running.base_url, stranger.api_key, questions[:50]
        )  # the process itself is warm then, no tenant of the test is
        rounds = iter(questions)
        taken = [
            timed_searches(running.base_url, key, [next(rounds) for _ in range(1 + WARM_SEARCHES)])
            for key in keys
        ]
    cold, warm = (
        statistics.median(each[0] for each in taken),
        statistics.median(one for each in taken for one in each[1:]),
    )
    first = f"cold p50 {cold:.1f} ms, worst {max(each[0] for each in taken):.1f} ms"
    print(
        f"\n{tenants} tenants of {TENANT_MEMORIES}: {first}; warm p50 {warm:.1f} ms; + "
        f"{cold - warm:.1f} ms"
    )


def far(data_dir: Path, first_ordinal: int) -> None:
    """Two tenants with the same memories and other ordinals, after a new start."""
    memories, emails = conversations.memories(TENANT_MEMORIES), ("near@example.com", FAR)
    with Service.started("ray", data_dir) as running:
        for email in emails:
            Service(running.base_url, data_dir, email).ingest(memories[:1], 1, 1)
    asyncio.run(_set_ahead(data_dir, first_ordinal))
    with Service.started("ray", data_dir) as running:
        for email in emails:
            Service(running.base_url, data_dir, email).ingest(memories[1:], BATCH, IN_FLIGHT)
    questions = conversations.questions(2 * FAR_SEARCHES, seed=3)
    with Service.started("ray", data_dir) as running:
        stranger = Service(running.base_url, data_dir)
        stranger.ingest(memories[:BATCH], BATCH, 1)
        timed_searches(running.base_url, stranger.api_key, questions[:FAR_SEARCHES])
        for email, first in zip(emails, (0, first_ordinal), strict=True):
            key = Service(running.base_url, data_dir, email).api_key
            before = _resident_bytes(data_dir)
            cold, *warm = timed_searches(running.base_url, key, questions[FAR_SEARCHES:])
            added = (_resident_bytes(data_dir) - before) / 2**20
            print(
                f"{TENANT_MEMORIES} memories from ordinal {first}: first search {cold:.1f} ms, then"
                f" p50 {statistics.median(warm):.1f} ms; + {added:.1f} MiB",
                flush=True,
            )


async def _set_ahead(data_dir: Path, first_ordinal: int) -> None:
    """Let the tenant that has a memory and is called FAR have had so many."""
    settings = Settings.load(ROOT / "configs" / "local.yaml", [f"data_dir={data_dir}"])
    shard = await serve_app.open_shard(settings, 0)
    try:
        slot = slot_of_email(FAR)
        with shard.store.snapshot() as snapshot:
            (scope,) = [
                scope
                for scope in snapshot.scopes(slot)
                if scope.tenant and snapshot.bind(COUNTERS, scope).get("memories") is not None
            ]
        last = (first_ordinal - 1).to_bytes(8, "big")
        shard.store.write(lambda write: write.bind(COUNTERS, scope).put(("memories",), last))
    finally:
        await shard.close()


def _resident_bytes(data_dir: Path) -> int:
    return sum(each.memory_info().rss for each in RunDirectory.of(data_dir).processes())


def recall(data_dir: Path) -> None:
    """Open the store that the service left and compare the index with the truth."""
    print(f"\nrecall@{RECALL_K} of the approximate index: {asyncio.run(_recall(data_dir)):.4f}")


async def _recall(data_dir: Path) -> float:
    settings = Settings.load(ROOT / "configs" / "local.yaml", [f"data_dir={data_dir}"])
    shard = await serve_app.open_shard(settings, 0)
    try:
        with shard.store.snapshot() as snapshot:
            tenants = [
                MEMORY_VECTORS.bind(snapshot, scope) for scope in snapshot.scopes() if scope.tenant
            ]
            index, space = max(
                ((each, space) for each in tenants for space in each.spaces()),
                key=lambda found: found[0].count(found[1]),
            )
            ordinals = np.arange(index.count(space) + ORDINALS_SPARE)
            stored, known = index.get_many(space, ordinals)
            stored, ordinals = stored[known], ordinals[known]
            chance = np.random.default_rng(7)
            queries = stored[chance.choice(len(stored), RECALL_QUERIES, replace=False)]
            queries = queries + chance.normal(0, NOISE, queries.shape).astype(np.float32)
            queries /= np.linalg.norm(queries, axis=1, keepdims=True)
            truth = [
                set(ordinals[np.argsort(-(stored @ query))[:RECALL_K]].tolist())
                for query in queries
            ]
            found = [set(near.tolist()) for near, _ in index.search(space, queries, RECALL_K)]
            return float(
                np.mean([len(a & b) / RECALL_K for a, b in zip(truth, found, strict=True)])
            )
    finally:
        await shard.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 6_000, 10_000, 100_000])
    parser.add_argument("--tenants", type=int, default=100)
    parser.add_argument("--first-ordinal", type=int, default=0, help="of a tenant of its own")
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement (%(default)s)")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="keep the tenants there, and use those that are there",
    )
    asked = parser.parse_args()
    before = hop(asked.seconds)
    with tempfile.TemporaryDirectory(prefix="mneme-sizes-") as directory:
        if asked.sizes:
            with Service.started("ray", Path(directory) / "one") as service:
                grow(service, asked.sizes, asked.seconds)
            recall(Path(directory) / "one")
        if asked.first_ordinal:
            far(Path(directory) / "far", asked.first_ordinal)
        if asked.tenants:
            many_tenants((asked.keep or Path(directory)) / "many", asked.tenants)
    print(f"\none hop: p50 {before:.2f} ms before, {hop(asked.seconds):.2f} ms after")


if __name__ == "__main__":
    main()
