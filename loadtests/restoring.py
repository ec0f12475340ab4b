"""How long a shard takes to come back from the object store: python -m loadtests.restoring
[--memories 10000] [--url file:///tmp/objects]

Memories of 130 characters go into a service in this process (tests/support/in_process.py: the real
gateway and shard, an embedder that costs next to nothing, vectors of the usual width). Then the
shard is restored twice into an empty directory, once from its log alone and once from a snapshot,
and opened. Printed are bytes, objects, seconds and rates.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from runtime.installation import shard_place
from storage.replication import ObjectStore, restore
from tests.support.in_process import InProcess

BATCH = 100
TEXT = (
    "Parcel {0} went to the depot on the hill at noon, was weighed there twice, and nobody can say "
    "when number {0} will come back to us."
)


def filled(service: InProcess, memories: int) -> None:
    who = service.register("ada@example.org")
    for start in range(0, memories, BATCH):
        items = [{"content": TEXT.format(number)} for number in range(start, start + BATCH)]
        answer = service.request("POST", "/v1/memories/batch", {"memories": items}, who=who)
        assert answer.status_code in (201, 202), answer.text
    service.until(
        lambda: (
            service.request("GET", "/v1/memories/jobs?status=queued&limit=1", who=who).json()[
                "total_count"
            ]
            == 0
        )
    )


def timed(objects: ObjectStore, directory: Path, memories: int, what: str) -> None:
    directory.mkdir()
    begun, busy = time.monotonic(), time.process_time()
    found = restore(objects, directory, take_over=False, owner="a measurement")
    seconds, processor = time.monotonic() - begun, time.process_time() - busy
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    print(
        f"{what:<22} {seconds:5.1f} s ({processor:.1f} s of processor), {found.segments} segments: "
        f"{memories / seconds:.0f} memories/s, {size / seconds / 1e6:.0f} MB/s of store"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--url", help="default: a directory beside the stores")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        url = asked.url or (root / "objects").as_uri()
        limits = {"limits__requests_per_minute": 0, "limits__endpoint_caps": False}
        service = InProcess(
            root / "data",
            **limits,
            object_store__url=url,
            object_store__snapshot_interval_seconds=24 * 3600,
        )
        durability = service.shard.parts.durability
        service.until(lambda: durability.status()["complete"])  # the snapshot of an empty shard
        filled(service, asked.memories)
        service.until(lambda: durability.status()["unshipped_records"] == 0)
        status, stored = durability.status(), service.shard.store.stat()
        identity = service.shard.store.identity
        objects = ObjectStore(url).below(shard_place(identity.cluster_id, identity.shard))
        print(
            f"{asked.memories} memories: {stored['data_bytes'] / asked.memories:.0f} bytes each on "
            "disk, "
            f"{status['shipped_bytes'] / asked.memories:.0f} in {status['segments']} segments"
        )
        timed(objects, root / "from-the-log", asked.memories, "from the log")
        begun = time.monotonic()
        durability._snapshots.take()
        packed = sum(path.stat().st_size for path in (root / "objects").rglob("pages-*"))
        print(
            f"a snapshot             {time.monotonic() - begun:5.1f} s, "
            f"{packed / asked.memories:.0f} bytes a memory"
        )
        timed(objects, root / "from-a-snapshot", asked.memories, "from the snapshot")
        service.close()


if __name__ == "__main__":
    main()
