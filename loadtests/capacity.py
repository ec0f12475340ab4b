"""What an installation comes to: python loadtests/capacity.py [--accounts 1000000]
[--memories 1000] [--active 0.05] [--reads 0] [--searches 0] [--writes 0] [--mode local]

Nothing is measured here: it works out, from the figures below, how many cores, how much memory and
disk, how many shards and how many requests of an object store so many accounts of so many memories
take, of which a part is in use at a time, and so many requests a second. The formulas are explained
in docs/scale.md, and checked there against what was measured.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

# Measured by fleet.py, compare.py, readers.py and restoring.py, on two cores of an AMD EPYC.
DISK_BYTES = 5_350  # a memory of 25 tokens, with all that is derived from it
ROOM = 1.5  # of a disk, for what comes
RESIDENT_BYTES, RESIDENT_LARGE_BYTES = 1_300, 600  # a memory of an account in use
LARGE = 80_000  # memories; the words of a larger account stay on the disk
SEARCH_MS, LARGE_MS, SEARCH_MS_PER_100_000 = 3.0, 1.0, 1.3  # of a core, in the shard's processes
READ_MS, WRITE_MS = 0.2, 6.5
GATEWAY_READ_MS, GATEWAY_SEARCH_MS, GATEWAY_WRITE_MS = 0.45, 0.61, 1.4
BUSY = 0.6  # of a core, so that one waits little
SHARD_WRITES = 300  # a second, single and durable
SHARD_CORES = 9  # a writer, and eight readers at most
SHARD_DISK_BYTES = 200e9
SHARD_BASE_BYTES, GATEWAY_BASE_BYTES = 500e6, 150e6
SEGMENTS_PER_SECOND = 5  # `object_store.ship_interval_ms: 200`
RESTORED_BYTES_PER_SECOND = 38e6
DAY = 86_400


class Load(NamedTuple):
    """What is asked of an installation. active: the part of the accounts in use at a time; reads,
    searches, writes: a second.
    """

    accounts: int
    memories: int
    active: float = 1.0
    reads: float = 0
    searches: float = 0
    writes: float = 0
    mode: str = "local"


class Needs(NamedTuple):
    """What it comes to."""

    disk_bytes: float
    resident_bytes: float
    gateway_cores: float
    shard_cores: float
    shards: int
    memory_bytes: float
    puts_per_day: float
    restore_seconds: float


def search_ms(memories: int) -> float:
    """Of one core, for a search of an account of so many memories."""
    large = LARGE_MS if memories > LARGE else 0.0
    return SEARCH_MS + large + SEARCH_MS_PER_100_000 * memories / 100_000


def resident_bytes(memories: int) -> float:
    """What an account of so many memories takes in memory while it is in use."""
    return memories * (RESIDENT_LARGE_BYTES if memories > LARGE else RESIDENT_BYTES)


def needs(load: Load) -> Needs:
    """What a load comes to."""
    disk = load.accounts * load.memories * DISK_BYTES * ROOM
    resident = math.ceil(load.accounts * load.active) * resident_bytes(load.memories)
    gateway = (
        load.reads * GATEWAY_READ_MS
        + load.searches * GATEWAY_SEARCH_MS
        + load.writes * GATEWAY_WRITE_MS
    )
    shard = load.reads * READ_MS + load.searches * search_ms(load.memories) + load.writes * WRITE_MS
    gateway_cores, shard_cores = (each / 1_000 / BUSY for each in (gateway, shard))
    # An account lies in one shard, so there are no more shards than accounts.
    wanted = (shard_cores / SHARD_CORES, load.writes / SHARD_WRITES, disk / SHARD_DISK_BYTES)
    shards = max(1, min(load.accounts, math.ceil(max(wanted))))
    memory = resident + shards * SHARD_BASE_BYTES + math.ceil(gateway_cores) * GATEWAY_BASE_BYTES
    puts = load.writes if load.mode == "replicated" else shards * SEGMENTS_PER_SECOND
    return Needs(
        disk,
        resident,
        gateway_cores,
        shard_cores,
        shards,
        memory,
        min(puts, load.writes) * DAY,
        disk / ROOM / shards / RESTORED_BYTES_PER_SECOND,
    )


def described(load: Load) -> str:
    """A load and what it comes to, as lines of text."""
    found = needs(load)
    asked = f"{load.reads:,.0f} reads, {load.searches:,.0f} searches, {load.writes:,.0f} writes"
    lines = (
        f"{load.accounts:,} accounts of {load.memories:,} memories, {load.active:.0%} in use; "
        f"{asked} a second; {load.mode}",
        f"  disk            {_size(found.disk_bytes)}, with room for half as much again",
        f"  resident        {_size(found.resident_bytes)}",
        f"  gateways        {found.gateway_cores:,.1f} cores",
        f"  shards          {found.shard_cores:,.1f} cores; {found.shards:,} shards",
        f"  memory          {_size(found.memory_bytes)} in all",
        f"  puts a day      {found.puts_per_day:,.0f}",
        f"  a shard is back {found.restore_seconds / 60:,.1f} minutes after its disk is lost",
    )
    return "\n".join(lines)


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1_000:
            return f"{count:,.1f} {unit}"
        count /= 1_000
    return f"{count:,.1f} TB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=1_000_000)
    parser.add_argument("--memories", type=int, default=1_000, help="of each (%(default)s)")
    parser.add_argument("--active", type=float, default=0.05, help="part in use (%(default)s)")
    for kind in ("reads", "searches", "writes"):
        parser.add_argument(f"--{kind}", type=float, default=0, help="a second (%(default)s)")
    parser.add_argument("--mode", choices=("local", "replicated"), default="local")
    print(described(Load(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
