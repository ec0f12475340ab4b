"""What the Python client costs over bare httpx: python loadtests/client_overhead.py [--calls 2000]

Starts a service (engine local, a process of its own), stores a few memories and asks the same
question again and again, one call at a time: once with httpx.AsyncClient.post and .json(), once
with AsyncMneme.search, in turn, over the same pool of connections. What the service is slow with
hits both alike, so the difference is the client's. Reported are the medians of wall-clock time and
of this process's CPU time, and the difference of the medians. The goal is less than 0.5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
from mneme_client import AsyncMneme

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.served import served

GOAL_MS = 0.5
WARM_UP = 50
QUESTION = "What must Ada not eat?"
FACTS = [
    f"Ada wrote in note {number} that she eats no nuts on day {number}." for number in range(50)
]


async def measured(call: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """(wall-clock, CPU of this process) of one call, in milliseconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    await call()
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


async def run(url: str, token: str, calls: int) -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        client = AsyncMneme(base_url=url, api_key=token, http=http)
        await client.memories.create_batch(
            memories=[{"content": fact} for fact in FACTS], wait_for_index=True
        )

        async def bare() -> object:
            headers = {"Authorization": f"Bearer {token}"}
            answer = await http.post(
                f"{url}/v1/search", json={"query": QUESTION, "limit": 10}, headers=headers
            )
            return answer.raise_for_status().json()

        async def with_client() -> object:
            return await client.search(QUESTION, limit=10)

        ways = {"httpx": bare, "client": with_client}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(calls + WARM_UP):
            for name, call in ways.items() if number % 2 else reversed(ways.items()):
                taken = await measured(call)
                if number >= WARM_UP:
                    times[name].append(taken)
    medians = {
        name: [statistics.median(column) for column in zip(*taken, strict=True)]
        for name, taken in times.items()
    }
    for name, (wall, cpu) in medians.items():
        print(f"{name:7} median {wall:.3f} ms, CPU {cpu:.3f} ms")
    wall, cpu = (medians["client"][index] - medians["httpx"][index] for index in (0, 1))
    print(
        f"the client adds {wall:+.3f} ms, CPU {cpu:+.3f} ms, in {calls} pairs; goal: under "
        f"{GOAL_MS} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=2000, help="pairs of calls")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, served(Path(directory) / "data") as service:
        asyncio.run(run(service.url, service.register(), options.calls))


if __name__ == "__main__":
    main()
