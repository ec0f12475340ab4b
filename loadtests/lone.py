"""What a search adds to the floor when it is the only one: python loadtests/lone.py [--memories
6000] [--blocks 60]

The floor (loadtests/floor.py) and the service are both up, and one connection asks them in turns: a
block of hops, each one message to an actor that does nothing, then a block of searches, each for
the ten best of a new question. What a block of searches took is compared with the block of hops
beside it, so a machine that is slow for a while is slow for both; the figures are medians over
blocks.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from loadtests import conversations  # noqa: E402
from loadtests.load import Service  # noqa: E402

BLOCK = 25
WARM_BLOCKS = 8
BATCH, IN_FLIGHT = 100, 2


@contextlib.contextmanager
def floor() -> Iterator[str]:
    """Its address."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "loadtests" / "floor.py"), "--stay"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield json.loads(process.stdout.readline())["base_url"]
    finally:
        process.terminate()
        process.wait()


class Asker:
    """One connection that is kept."""

    def __init__(self, base_url: str, headers: dict[str, str]):
        self._connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=60)
        self._headers = headers

    def p50(self, requests: Iterable[tuple[str, str, str | None]]) -> float:
        """Milliseconds of requests (method, path, body), one after the other."""
        taken = []
        for method, path, body in requests:
            begun = time.perf_counter()
            self._connection.request(method, path, body, self._headers)
            answer = self._connection.getresponse()
            answer.read()
            taken.append((time.perf_counter() - begun) * 1_000)
            if answer.status != 200:
                raise RuntimeError(f"{method} {path} answered {answer.status}")
        return statistics.median(taken)


def measure(floor_url: str, service: Service, blocks: int) -> None:
    hops, searches = (
        Asker(floor_url, {}),
        Asker(service.base_url, {**service.headers, "Content-Type": "application/json"}),
    )
    questions = iter(conversations.questions((WARM_BLOCKS + blocks) * BLOCK, seed=11))
    found = []
    for _ in range(WARM_BLOCKS + blocks):
        hop = hops.p50([("GET", "/hop", None)] * BLOCK)
        found.append(
            (
                hop,
                searches.p50(
                    [
                        ("POST", "/v1/search", json.dumps({"query": next(questions), "limit": 10}))
                        for _ in range(BLOCK)
                    ]
                ),
            )
        )
    found = found[WARM_BLOCKS:]
    hop, search = (statistics.median(each) for each in zip(*found, strict=True))
    quarter, half, more = statistics.quantiles([search - hop for hop, search in found], n=4)
    print(
        f"hop {hop:.2f} ms, search {search:.2f} ms: {half:.2f} ms more (half of the blocks "
        f"{quarter:.2f} to {more:.2f})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=6_000)
    parser.add_argument("--blocks", type=int, default=60)
    options = parser.parse_args()
    with (
        floor() as url,
        tempfile.TemporaryDirectory() as directory,
        Service.started("ray", Path(directory) / "data") as service,
    ):
        service.ingest(list(conversations.memories(options.memories)), BATCH, IN_FLIGHT)
        measure(url, service, options.blocks)


if __name__ == "__main__":
    main()
