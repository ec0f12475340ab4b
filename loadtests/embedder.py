"""How fast the embedded model is on this machine: python loadtests/embedder.py [--threads 1 2]
[--texts 1024] [--models DIRECTORY] [--device cuda]

Per thread count it prints texts per second when chat-like sentences of about 25 tokens arrive in
batches of 100, two batches in flight, and the milliseconds of one new query: alone, and while such
batches keep the model busy. Figures are of the whole embedder, tokenizer and queue included.
Queries are all different, so the cache answers none of them.

--ways compares the compiled model, by one thread and by two, with the graph instead, without
tokenizer and queue, on a processor that can run both: in turns, each run after 4 MB of other memory
were read, as between two requests.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from runtime.inference import MiniLmEmbedder, packaged_files
from runtime.inference.minilm.onnx import GraphMiniLm
from runtime.inference.minilm.weights import Device, kept

BATCH_TEXTS = 100
WAYS = ((6, 1), (13, 1), (20, 1), (30, 1), (20, 24), (64, 8), (256, 2))  # (tokens, texts)
WAYS_MILLISECONDS = 400
QUERIES = 200
QUERIES_WHILE_BUSY = 40

OPENINGS = (
    "Guess what,",
    "Honestly,",
    "By the way,",
    "Last night",
    "So",
    "You know,",
    "On Sunday",
    "Finally,",
)
DEEDS = (
    "I went hiking up the ridge with my cousin",
    "we booked the train tickets to Lisbon",
    "my sister got the offer from the observatory",
    "the kids built a volcano for the science fair",
    "I have been learning to bake rye bread from my neighbour",
    "our quartet played the slow movement without stopping",
    "the pottery class kept me up far too late",
    "I ran the half marathon with a sore knee",
)
ENDINGS = (
    "and it was far better than I had expected!",
    "so we will need someone to water the tomatoes in June.",
    "and now I cannot stop thinking about it.",
    "which reminds me, how is your garden doing this year?",
    "but the weather turned and we came home soaked.",
    "and I would love to do it again with you.",
)


def sentences(count: int, chance: random.Random) -> list[str]:
    return [
        f"{chance.choice(OPENINGS)} {chance.choice(DEEDS)} {chance.choice(ENDINGS)} ({number})"
        for number in range(count)
    ]


async def texts_per_second(embedder: MiniLmEmbedder, texts: list[str]) -> float:
    batches = iter(
        [texts[start : start + BATCH_TEXTS] for start in range(0, len(texts), BATCH_TEXTS)]
    )

    async def send() -> None:
        for batch in batches:
            await embedder.embed(batch)

    begun = time.perf_counter()
    await asyncio.gather(send(), send())
    return len(texts) / (time.perf_counter() - begun)


async def query_milliseconds(
    embedder: MiniLmEmbedder, count: int, chance: random.Random
) -> list[float]:
    taken = []
    for _ in range(count):
        query = (
            f"where did {chance.choice(('Mara', 'Tobias', 'Ines'))} go hiking in "
            f"{chance.randrange(10**6)}?"
        )
        begun = time.perf_counter()
        await embedder.embed([query])
        taken.append((time.perf_counter() - begun) * 1_000)
    return taken


async def while_busy(
    embedder: MiniLmEmbedder, texts: list[str], measured: Awaitable[list[float]]
) -> list[float]:
    async def ingest() -> None:
        while True:
            await embedder.embed(texts[:BATCH_TEXTS])

    ingestion = [asyncio.create_task(ingest()) for _ in range(2)]
    try:
        return await measured
    finally:
        for task in ingestion:
            task.cancel()
        await asyncio.gather(*ingestion, return_exceptions=True)


async def measure(directory: Path, threads: int, texts: list[str], device: Device) -> None:
    chance = random.Random(0)
    embedder = MiniLmEmbedder(directory, threads=threads, device=device, timeout_seconds=600)
    try:
        await embedder.embed(texts[:BATCH_TEXTS])
        rate = await texts_per_second(embedder, texts)
        alone = await query_milliseconds(embedder, QUERIES, chance)
        busy = await while_busy(
            embedder, texts, query_milliseconds(embedder, QUERIES_WHILE_BUSY, chance)
        )
    finally:
        await embedder.close()
    print(
        f"{device} threads {threads}  {rate:6.0f} texts/s   "
        f"query alone p50 {statistics.median(alone):.2f} ms, p95 "
        f"{statistics.quantiles(alone, n=20)[-1]:.2f} ms   "
        f"while ingesting p50 {statistics.median(busy):.0f} ms, max {max(busy):.0f} ms",
        flush=True,
    )


def compare_ways(directory: Path) -> None:
    from runtime.inference.minilm.kernels import (
        CompiledMiniLm,
        packed,
    )  # cannot be compiled on every processor

    graph = GraphMiniLm.load(directory, packaged_files(), 1)
    path = kept(directory / "packed", packaged_files(), packed)
    ways = {
        "graph": graph.run,
        "compiled": CompiledMiniLm.open(path, 1).run,
        "by two threads": CompiledMiniLm.open(path, 2).run,
    }
    draw, other = np.random.default_rng(0), np.ones(4 << 20, np.uint8)
    for tokens, texts in WAYS:
        taken: dict[str, list[float]] = {name: [] for name in ways}
        while sum(taken["graph"]) < WAYS_MILLISECONDS:
            ids = [
                [101, *draw.integers(2_000, 20_000, tokens - 2).tolist(), 102] for _ in range(texts)
            ]
            for name, run in ways.items():
                other.sum()
                begun = time.perf_counter()
                run(ids)
                taken[name].append((time.perf_counter() - begun) * 1_000)
        graphs, one, two = (statistics.median(taken[name]) / texts for name in ways)
        print(
            f"{texts:3d} texts of {tokens:3d} tokens: graph {graphs:6.2f} ms a text, compiled "
            f"{one:6.2f}, {one / graphs:.2f} of it, by two threads {two:6.2f}, {two / one:.2f} of "
            "that",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--texts", type=int, default=1_024)
    parser.add_argument(
        "--models",
        type=Path,
        help="where what the model runs from is kept; a temporary directory when not given",
    )
    parser.add_argument(
        "--ways", action="store_true", help="compare the compiled model with the graph"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    texts = sentences(options.texts, random.Random(1))
    with tempfile.TemporaryDirectory() as temporary:
        if options.ways:
            return compare_ways(options.models or Path(temporary))
        for threads in options.threads:
            asyncio.run(measure(options.models or Path(temporary), threads, texts, options.device))


if __name__ == "__main__":
    main()
