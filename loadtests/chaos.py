"""Kill the service while it writes, again and again, and audit what is left: python loadtests/chaos.py [--rounds 10] [--engine ray]

local   the whole process is killed and started anew
ray     the shard actor's process is killed; the service stays up and goes on by itself

Each round prints what was acknowledged, what the kill left unanswered, and how long it took until everything had been read back,
compared and found by a search. A difference ends the run with the failed comparison; the seed it prints repeats the writes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.crashes import Books, write_until
from tests.served import Served, served


def report(number: int, books: Books, audited: float) -> None:
    memories, unanswered = len(books.memories), books.left_in_limbo
    print(
        f"round {number:2d}: {books.acknowledged} acknowledged, {unanswered} unanswered, {memories} memories, audit {audited:.1f} s",
        flush=True,
    )


def audit(number: int, books: Books, service: Served) -> None:
    books.url = service.url
    begun = time.perf_counter()
    asyncio.run(books.audit())
    report(number, books, time.perf_counter() - begun)


def kill_the_service(data_dir: Path, rounds: int, chance: random.Random) -> None:
    books: Books | None = None
    for number in range(rounds + 1):
        with served(data_dir) as service:
            if books is None:
                books = Books(service.url, service.register(), chance.getrandbits(32))
            else:
                audit(number, books, service)
            if number < rounds:
                write_until(books, chance.randint(20, 300), service.kill)


def kill_the_shard(data_dir: Path, rounds: int, chance: random.Random) -> None:
    with served(data_dir, "ray") as service:
        books = Books(service.url, service.register(), chance.getrandbits(32))
        for number in range(1, rounds + 1):
            write_until(books, chance.randint(20, 300), service.shard_process().kill, afterwards=50)
            audit(number, books, service)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    print(f"engine {given.engine}, seed {given.seed}")
    with tempfile.TemporaryDirectory(prefix="mneme-chaos-") as directory:
        strike = kill_the_service if given.engine == "local" else kill_the_shard
        strike(Path(directory) / "data", given.rounds, random.Random(given.seed))


if __name__ == "__main__":
    main()
